"""Fits that several processes share, each case small; what each process ends with goes into a file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed as dist
from torch import nn

import adsh
from adsh.errors import InputError, TrainingError
from adsh.learn import CodeTable
from adsh.methods import create
from adsh.networks import create_network
from adsh.train.distributed import ProcessGroup
from adsh.train.launch import exit_now

OPTIONS: dict[str, Any] = {"outer": 4, "samples": 90, "batch_size": 32, "progress": False}
SMALL: dict[str, Any] = {"network": "mlp", "network_options": {"hidden": 16}, **OPTIONS}


def points() -> tuple[np.ndarray, np.ndarray]:
    """240 points of 4 classes, not well separated."""
    rng = np.random.default_rng(3)
    labels = np.arange(240) % 4
    return (rng.normal(size=(4, 6))[labels] * 2 + rng.normal(size=(240, 6))).astype(np.float32), labels


def tags() -> np.ndarray:
    hot = (np.random.default_rng(4).random((240, 5)) < 0.3).astype(int)
    hot[hot.sum(axis=1) == 0, 0] = 1
    return hot


def images() -> np.ndarray:
    rng = np.random.default_rng(5)
    return (rng.integers(0, 60, (240, 8, 8, 3)) + 60 * points()[1][:, None, None, None]).astype(np.uint8)


def single() -> Any:
    """A head of bits."""
    return adsh.ADSH(12, recipe={"head": "bits"}, **SMALL).fit(*points())


def multi() -> Any:
    unlabelled = tags()
    unlabelled[5:11] = 0  # coded by the network afterwards
    return adsh.ADSH(12, preset="paper", **SMALL).fit(points()[0], unlabelled)


def queries() -> Any:
    features, labels = points()
    return adsh.ADSH(12, **SMALL).fit(features[:140], labels[:140], queries=features[140:], query_labels=labels[140:])


def given() -> Any:
    features, labels = points()
    return adsh.ADSH(12, **SMALL).fit(features, similarity=np.where(labels[:, None] == labels, 1, -1).astype(np.int8))


def sparse() -> Any:
    from scipy.sparse import csr_matrix

    features, labels = points()
    return adsh.ADSH(12, **SMALL).fit(features, similarity=csr_matrix((labels[:, None] == labels).astype(np.int8)))


def many_classes(recipe: dict[str, Any] | None = None) -> Any:
    """A posterior head: more classes than bits."""
    return adsh.ADSH(12, recipe=recipe, **SMALL).fit(points()[0], np.arange(240) % 24)


def last_batch_of_two() -> Any:
    """Less than one row for each of four processes."""
    return adsh.ADSH(12, recipe={"head": "bits"}, **{**SMALL, "samples": 66}).fit(*points())


def dropout() -> Any:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Dropout(0.4), nn.Linear(24, 12))
    return adsh.ADSH(12, network=network, **OPTIONS).fit(*points())


def convolutions() -> Any:
    """Batch norm, random changes and averaged weights; by SGD, since AdamW makes much of a rounding."""
    recipe = {"optimizer": "sgd", "ema": 0.9, "flip": True, "shift": 0.2, "crop": 0.5, "mirror": True}
    options = {**OPTIONS, "network": "tiny", "network_options": {"width": 4}, "recipe": recipe}
    return adsh.ADSH(12, **{**options, "samples": 66}).fit(images(), points()[1])


def frozen() -> Any:
    """The features of all items are computed once, by all processes together."""
    return adsh.ADSH(12, network="frozen:tiny", network_options={"hidden": 16}, **OPTIONS).fit(images(), points()[1])


class InFloat64(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inside = create_network("mlp", 12, (6,), hidden=16).double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.inside(x.double()).float()
        return out


def a_long_run() -> Any:
    """In float64, where a rounding does not grow into a difference in the course of it."""
    return adsh.ADSH(12, network=InFloat64(), **{**OPTIONS, "outer": 40}).fit(*points())


def dpsh() -> Any:
    return create("dpsh", bits=12, **SMALL).fit(*points())


def dsh() -> Any:
    return create("dsh", bits=12, **SMALL).fit(*points())


def convolutions_in_parts() -> Any:
    """Whole AdamW steps in float32, 44 of them: batch norm, dropout, random changes and averaged weights."""
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2), nn.Linear(216, 12)
    )
    recipe = {"parts": 4, "ema": 0.9, "flip": True, "shift": 0.2, "crop": 0.5, "mirror": True}
    options = {**OPTIONS, "network": network, "outer": 11, "samples": 98, "lr": 1e-2, "recipe": recipe}
    return adsh.ADSH(12, **options).fit(images(), points()[1])


def given_in_parts(**checkpoints: Any) -> Any:
    """S given, and noise."""
    features, labels = points()
    same = np.where(labels[:, None] == labels, 1, -1).astype(np.int8)
    return adsh.ADSH(12, **{**SMALL, "recipe": {"parts": 4}}).fit(features, similarity=same, **checkpoints)


def many_in_parts() -> Any:
    """A posterior head, and noise."""
    return many_classes({"parts": 4})


def multi_in_parts() -> Any:
    """U by a fresh pass, and points that the network codes afterwards: fewer than four."""
    unlabelled = tags()
    unlabelled[5:8] = 0
    return adsh.ADSH(12, preset="paper", **{**SMALL, "recipe": {"parts": 4}}).fit(points()[0], unlabelled)


def frozen_in_parts() -> Any:
    options = {"network": "frozen:tiny", "network_options": {"hidden": 16}, "recipe": {"parts": 4}}
    return adsh.ADSH(12, **{**OPTIONS, "outer": 2}, **options).fit(images(), points()[1])


def few_in_parts() -> Any:
    """A posterior head whose votes are fitted: classes no more than bits."""
    return adsh.ADSH(12, recipe={"parts": 4}, **SMALL).fit(*points())


def dpsh_in_parts() -> Any:
    return create("dpsh", bits=12, **{**SMALL, "outer": 2, "recipe": {"parts": 4}}).fit(*points())


_ALL = (
    single, multi, many_classes, queries, given, sparse, last_batch_of_two, dropout, convolutions, frozen, a_long_run,
    dpsh, dsh,
)  # fmt: skip
_EXACT = (
    convolutions_in_parts, given_in_parts, multi_in_parts, few_in_parts, many_in_parts, frozen_in_parts, dpsh_in_parts,
)  # fmt: skip
CASES: dict[str, Callable[[], Any]] = {case.__name__: case for case in _ALL}
EXACT: dict[str, Callable[[], Any]] = {case.__name__: case for case in _EXACT}


def ended(case: str) -> dict[str, np.ndarray]:
    """The codes and the weights that a case ends with."""
    return left_by((CASES | EXACT)[case]())


def left_by(model: Any) -> dict[str, np.ndarray]:
    """Those of a model."""
    weights = {f"weight.{name}": value.numpy() for name, value in model.network_.state_dict().items()}
    return {"codes": model.database_codes_, "loss": np.array([r["loss"] for r in model.history_]), **weights}


def _mistakes(group: ProcessGroup) -> None:
    """An error that one process finds is raised in all."""

    def refuse() -> None:
        raise InputError("the first says no")

    with pytest.raises(InputError, match="the first says no"):
        group.broadcast_from_rank0(refuse)
    assert group.broadcast_from_rank0(lambda: group.rank) == 0
    features, labels = points()
    with pytest.raises(TrainingError, match="different data"):
        adsh.ADSH(12, **SMALL).fit(features + group.rank, labels)
    with pytest.raises(
        InputError, match=f"deterministic_shards=3 in {group.size} processes: give a multiple of {group.size}"
    ):
        adsh.ADSH(12, **{**SMALL, "recipe": {"parts": 3}}).fit(features, labels)
    table = CodeTable(labels, 12)
    table.update(np.arange(9), np.tanh(np.random.default_rng(group.rank).normal(size=(9, 12))), 200.0)
    with pytest.raises(TrainingError, match="no longer hold the same codes"):
        group.assert_equal_codes(table)


def run_cases(rank: int, size: int, folder: Path, cases: list[str]) -> None:
    """Runs these cases as one of several processes."""
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    os.environ["LOCAL_RANK"] = str(rank)
    rendezvous = f"file://{folder / f'rendezvous-{size}'}"
    dist.init_process_group("gloo", init_method=rendezvous, rank=rank, world_size=size, timeout=timedelta(seconds=60))
    for case in cases:
        np.savez(folder / f"{case}-{size}-{rank}.npz", **ended(case))
    given_in_parts(checkpoints=folder / f"checkpoints-{size}")
    _mistakes(ProcessGroup.current())
    dist.destroy_process_group()
    exit_now()  # as `adsh train` does: threads of torch's have aborted processes on the way out
