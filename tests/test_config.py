"""Recipes: every value is checked by name, before anything is trained."""

from __future__ import annotations

from dataclasses import asdict, fields
from math import inf, nan

import pytest

from adsh.config import _CHECKS, PRESETS, Recipe, recipe
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
        ({"start_share": "half"}, "start_share='half': give a share, 0 to 1"),
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
    assert set(_CHECKS) == {field.name for field in fields(Recipe)}


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("multi_label", [False, True])
def test_a_recipe_is_made_again_from_its_values(preset, network, multi_label):
    made = recipe(preset, network, multi_label=multi_label)
    assert Recipe(**asdict(made)) == made
