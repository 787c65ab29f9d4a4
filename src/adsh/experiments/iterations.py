"""How many outer iterations the whole training of a method takes."""

from __future__ import annotations

from math import ceil
from typing import Any

from ..config import POSTERIOR, recipe
from ..methods import DEEP, create
from .experiment_config import ExperimentConfig


def rate_of(method: str, config: ExperimentConfig, network: str) -> float:
    """Return the learning rate that a method has unless another is given: its own, or the preset's."""
    rate: float = _own_values(method).get("lr", recipe(config.preset, network).lr)
    return rate


def total_iterations(config: ExperimentConfig, method: str, points: int, database: int) -> int:
    """Return the outer iterations of a training: all methods see as many items as ADSH, where it sees no fewer.

    A method with a number of its own, as its authors have it, keeps it; fewer than the preset's shorten it alike.

    Args:
        config: The configuration of the experiment; its `outer` is ADSH's.
        method: The name of the method.
        points: How many items it is trained on.
        database: How many items ADSH is trained on.

    Returns:
        The number of outer iterations.
    """
    preset = recipe(config.preset, config.network)
    ours = recipe(config.preset, config.network, fits=POSTERIOR, points=database)  # the head of ADSH on features
    outer = config.outer or ours.outer
    own: int | None = _own_values(method).get("outer")
    if method == "adsh":
        return outer
    if own is not None:
        return max(1, round(own * min(1, outer / preset.outer)))
    drawn = [values.inner * min(values.samples, count) for values, count in ((ours, database), (preset, points))]
    return max(outer, ceil(outer * drawn[0] / drawn[1]))


def _own_values(method: str) -> dict[str, Any]:
    """Return the values of a recipe that a deep method has of its own, whatever the preset."""
    values: dict[str, Any] = create(method, bits=1).values if method in DEEP else {}
    return values
