"""Recipes: every value is checked by name, before anything is trained."""

from __future__ import annotations

from dataclasses import fields
from math import inf, nan

import pytest

from adsh.config import _CHECKS, PRESETS, ImageConfig, OptimizerConfig, Recipe, SystemConfig, recipe
from adsh.errors import InputError

NETWORKS = ("linear", "mlp", "tiny", "dsh_net", "alexnet", "efficientnet_lite0", "efficientnet_lite2", "frozen:tiny")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"schedule": "cosin"}, "schedule='cosin': give one of constant, log, tenth, cosine"),
        ({"optimizer": "adam"}, "optimizer='adam': give one of sgd, adamw"),
        ({"codes_after": "epochs"}, "codes_after='epochs': give one of epoch, outer"),
        ({"collect": ["stale"]}, r"collect=\['stale'\]: give one of stale, fresh"),
        ({"enlarge": "cubic"}, "enlarge='cubic': give one of bilinear, bicubic"),
        ({"schedule": "log"}, "schedule='log' from lr=0.001 to lr_end=0: both must be above 0"),
        ({"lr_end": -1}, "lr_end=-1: give a number of at least 0"),
        ({"weight_decay": inf}, "weight_decay=inf: give a number of at least 0"),
        ({"lr": True}, "lr=True: give a number of at least 0"),
        ({"ema": nan}, "ema=nan: give a share, 0 to 1"),
        ({"crop": 2}, "crop=2: give a share, 0 to 1"),
        ({"bf16": "no"}, "bf16='no': give True or False"),
        ({"compile": 3}, "compile=3: give True, False or one of graph, default, reduce-overhead"),
        ({"compile": "fast"}, "compile='fast': give True, False or one of graph, default, reduce-overhead"),
        ({"outer": 2.5}, "outer=2.5: give a whole number of at least 1"),
        ({"samples": 0}, "samples=0: give a whole number of at least 1"),
        ({"size": -1}, "size=-1: give a side in pixels, or 0"),
        ({"head_std": -1}, "head_std=-1: give a number of at least 0, or None"),
    ],
)
def test_a_value_that_does_not_fit_is_named(values, message):
    with pytest.raises(InputError, match=message):
        recipe("paper", "mlp", **values)


def test_no_value_is_left_unchecked():
    groups = (Recipe, OptimizerConfig, ImageConfig, SystemConfig)
    names = {field.name for group in groups for field in fields(group)}
    assert set(_CHECKS) == names - {"optimization", "images", "system"}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("multi_label", [False, True])
def test_a_recipe_is_built_again_from_the_values_in_a_file(preset, network, multi_label):
    built = recipe(preset, network, multi_label=multi_label)
    assert Recipe(**built.saved()) == built
    assert Recipe.load({**built.saved(), "start_size": 8, "start_share": 0.5}) == built  # written by an earlier version


def test_a_value_is_given_and_read_by_its_flat_name_in_its_group_and_by_its_earlier_name():
    given = Recipe(images=ImageConfig(flip_tta=True), ema=0.5, lr=0.1)
    assert given == Recipe(mirror=True, optimization=OptimizerConfig(ema_decay=0.5, lr=0.1))
    assert (given.mirror, given.flip_tta, given.images.flip_tta) == (True, True, True)
    assert (given.ema, given.ema_decay, given.optimization.ema_decay) == (0.5, 0.5, 0.5)
    assert given.replace(soften=0.25).target_exponent == 0.25
    assert recipe("modern", "mlp", parts=4).system.deterministic_shards == 4


def test_a_value_that_no_recipe_has_is_named():
    with pytest.raises(InputError, match="'start_size' is not a value of a recipe"):
        recipe("modern", "mlp", start_size=8)
    with pytest.raises(AttributeError, match="a recipe has no value 'depth'"):
        _ = Recipe().depth
