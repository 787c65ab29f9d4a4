"""Compute features of a whole source by a network, into a file that `adsh train` takes.

    features.npy            (n, d) float32, to be memory-mapped
    features.labels.npy     (n,) class numbers, -1 for none, or (n, L) multi-hot
    features.classes.npy    the names of the classes
    features.keys.npy       the key of each item in its source
    features.about.json     network, weights and data

`open_source("features.npy")` takes them all. A run that was stopped is resumed: see train/feature_cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ..data import Dataset, as_items
from ..data.fingerprint import fingerprint
from ..errors import InputError
from ..labels import LabelSets
from ..networks import create_network
from ..networks.traits import traits_of
from ..train.feature_cache import FeatureFile, compute_features, feature_batches, sidecar, weights_fingerprint
from ..utils.device import DeviceChoice, choose_device
from ..utils.files import check_parent, replacing_file
from .defaults import PRETRAINED


@dataclass(frozen=True)
class Features:
    """What a run computed."""

    path: Path
    """The file of features."""
    shape: tuple[int, int]
    """(items, features)."""
    resumed: int
    """Items that an earlier run had done."""
    seconds: float
    device: DeviceChoice


def check_out(path: Path) -> None:
    """Raise where features could not be written to this path."""
    if path.suffix != ".npy":
        raise InputError(f"--out {path}: give a name that ends in .npy")
    check_parent(path)


def make_features(
    dataset: Dataset,
    out: Path,
    *,
    network: str = PRETRAINED,
    weights: str | None = "auto",
    batch: int | None = None,
    device: str = "auto",
    overwrite: bool = False,
    on_done: Callable[[int, int], None] | None = None,
) -> Features:
    """Write the input of the network's last layer for each image, in evaluation mode.

    Args:
        dataset: Images of one size: see `runs.inputs.prepare_inputs`.
        out: The file, which ends in .npy.
        network: The name of a network that takes images.
        weights: "auto" for the network's own, "pretrained", the path of a file, or None for random ones.
        batch: Images at once; None for what suits the network.
        device: Where to compute.
        overwrite: Start anew, whatever is there.
        on_done: Called with the number of items done, and of all.

    Returns:
        The file, its shape, and how long it took.
    """
    check_out(out)
    if batch is not None and batch < 1:
        raise InputError(f"batch={batch}: give 1 or more")
    choice, items = choose_device(device), as_items(dataset, "the source")
    extractor = _build_network(network, items.shape, weights).to(choice.device).eval()
    about = {"network": network, **weights_fingerprint(extractor), **fingerprint(items, dataset.labels)}
    file = FeatureFile(out, (len(items), int(extractor.feature_size)), about, overwrite)  # type: ignore[arg-type]  # not a tensor
    resumed, started = file.done, time.perf_counter()
    batches = feature_batches(extractor, [slice(resumed, len(items))], batch)
    compute_features(extractor, items, choice, file.write, batches, on_done)
    if not file.is_complete:
        _write_sidecars(out, dataset)
    file.finish()
    return Features(out, file.shape, resumed, time.perf_counter() - started, choice)


def plain_labels(labels: LabelSets) -> NDArray[Any]:
    """Return (n,) the class number of each item, -1 for none; or (n, L) multi-hot where an item has several."""
    counts = np.diff(labels.starts)
    if counts.max(initial=0) <= 1:
        classes = np.full(labels.set_count, -1, dtype=np.int32)
        classes[counts == 1] = labels.tags
        return classes[labels.ids]
    table = np.zeros((labels.set_count, len(labels.names)), dtype=np.uint8)
    table[np.repeat(np.arange(labels.set_count), counts), labels.tags] = 1
    return table[labels.ids]


def _build_network(name: str, shape: tuple[int, ...], weights: str | None) -> nn.Module:
    """Build a network for images that computes features.

    Args:
        name: As `create_network` takes it.
        shape: Of an item.
        weights: As for `make_features`.

    Returns:
        The network.

    Raises:
        InputError: The items are no images, or the network has no features.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # random weights are the same when a run is resumed
        options: dict[str, Any] = {} if weights == "auto" else {"weights": weights}
        network = create_network(name, 1, shape, **options)
    if len(shape) != 3 or traits_of(network).features is None:
        raise InputError(f"network {name!r} gives no features of items of shape {shape}: give images, and a network")
    return network


def _write_sidecars(out: Path, dataset: Dataset) -> None:
    """Write labels, class names and keys next to the features."""
    for what in ("labels", "classes"):  # of other features that were here before
        sidecar(out, what).unlink(missing_ok=True)
    if dataset.labels is not None:
        _save(sidecar(out, "labels"), plain_labels(dataset.labels))
        _save(sidecar(out, "classes"), np.array([str(name) for name in dataset.labels.names]))
    _save(sidecar(out, "keys"), np.array(dataset.keys[:]))


def _save(path: Path, array: NDArray[Any]) -> None:
    with replacing_file(path) as file:
        np.save(file, array, allow_pickle=False)
