"""Recipes: every value is checked by name, before anything is trained."""

from __future__ import annotations

from dataclasses import fields
from math import inf, nan

import numpy as np
import pytest

from adsh.config import (
    _CHECKS,
    PRESETS,
    ImageConfig,
    OptimizerConfig,
    Recipe,
    SystemConfig,
    network_options,
    recipe,
    source_values,
)  # fmt: skip
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


def test_presets_carry_the_values_their_sources_name():
    assert recipe("paper", "alexnet").samples == 1000
    assert recipe("paper", "alexnet", multi_label=True).samples == 2000
    assert recipe("paper", "alexnet", multi_label=True).inner == 5
    assert recipe("paper", "alexnet").codes_after == "epoch"
    assert recipe("paper", "alexnet").batch_size == 128
    matlab, pytorch = recipe("authors-matlab", "cnn_f"), recipe("authors-pytorch", "alexnet")
    assert matlab.signed
    assert recipe("authors-matlab", "cnn_f", multi_label=True).lr == 1e-4
    assert source_values("authors-matlab", "nuswide") == {"lr": 10**-4.5}  # of this data set alone
    assert source_values("authors-matlab", "coco17") == source_values("modern", "nuswide") == {}
    assert network_options("authors-matlab", "cnn_f") == {"dropout": 0.0}
    assert matlab.interpolation == "bicubic"
    assert matlab.divisor == "nominal"
    assert pytorch.divisor == "batch"
    assert recipe("modern", "mlp", multi_label=True).sweeps == 3
    on_features = [(preset, network) for preset in ("modern", "fast") for network in ("mlp", "linear")]
    kept_small = [recipe(*each, multi_label=True) for each in on_features]
    assert {(settings.weight_decay, settings.gamma) for settings in kept_small} == {(1.0, 2000.0)}
    assert recipe("modern", "mlp", multi_label=True, method="classifier").weight_decay == 1.0
    assert recipe("modern", "mlp", multi_label=True, method="dsh").weight_decay == 1e-4
    assert recipe("modern", "efficientnet_lite0", multi_label=True).weight_decay == 0.05
    soft = recipe("modern", "mlp", multi_label=True).target
    assert [soft(bits) for bits in (4, 12, 192)] == [1, 1, 0.5]
    assert [recipe(preset, "mlp", multi_label=True).target(192) for preset in ("paper", "authors-pytorch")] == [1, 1]
    assert recipe("modern", "mlp").target(192) == 1
    assert matlab.schedule == "log"
    assert matlab.head_std == 0.01
    assert not pytorch.signed
    assert pytorch.schedule == "tenth"
    assert not pytorch.reshuffle
    for authors in (matlab, pytorch):
        assert (authors.samples, authors.inner, authors.batch_size, authors.outer) == (2000, 3, 64, 50)
        assert (authors.optimizer, authors.weight_decay) == ("sgd", 5e-4)
        assert (authors.codes_after, authors.collect) == ("outer", "stale")
    assert {recipe(preset, "mlp").gamma for preset in PRESETS} == {200.0}
    assert recipe("modern", "mlp").batch_size == 64
    assert recipe("modern", "mlp", outer=7, lr=None).outer == 7
    given = recipe("modern", "mlp", outer=np.int64(7), gamma=np.float32(2))
    assert (type(given.outer), type(given.gamma)) == (int, float)


@pytest.mark.parametrize(
    "values",
    [
        {"outer": 0},
        {"samples": 1.5},
        {"batch_size": -1},
        {"parts": 0},
        {"gamma": -1.0},
        {"lr": "a"},
        {"size": -1},
    ],
)
def test_values_outside_their_range_are_refused(values):
    with pytest.raises(InputError, match=next(iter(values))):
        recipe("modern", "mlp", **values)


def test_an_unknown_preset_lists_those_there_are():
    with pytest.raises(InputError, match="authors-matlab"):
        recipe("modem", "mlp")
