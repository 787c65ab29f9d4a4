"""A whole source coded into a file, block by block."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..data import Dataset, ResizedDataset
from ..data.match_input import resize_for_model
from ..errors import InputError
from ..hamming.bits import bytes_for
from ..models.protocol import HashModel
from ..utils.files import check_parent, replacing_file
from ..utils.progress import OnProgress
from .inputs import prepare_inputs

_BLOCK = 4096  # items between two reports


def check_out(path: Path) -> None:
    """Raises where codes could not be written there."""
    if path.suffix not in (".npz", ".npy"):
        raise InputError(f"--out {path}: give a name that ends in .npz (codes, keys and bits) or .npy (codes alone)")
    check_parent(path)


def items_for(
    model: HashModel,
    dataset: Dataset,
    *,
    skip_bad: bool = False,
    workers: int | None = None,
    on_read: OnProgress | None = None,
) -> tuple[Dataset, list[tuple[str, str]]]:
    """The items as the model takes them, and with `skip_bad` the key and reason of those that cannot be read."""
    fitted = resize_for_model(dataset, model.input_shape_, workers)
    if not skip_bad or not isinstance(fitted, ResizedDataset):
        return fitted, []
    prepared = prepare_inputs(dataset, size=fitted.size, skip_bad=True, workers=workers, on_read=on_read)
    return prepared.usable(), prepared.bad


def encode(model: HashModel, dataset: Dataset, path: Path, *, on_done: Callable[[int], None] | None = None) -> float:
    """Writes the codes of every item, whole or not at all; the seconds it took."""
    started = time.perf_counter()
    codes = np.empty((len(dataset), bytes_for(model.bits)), dtype=np.uint8)
    for start in range(0, len(dataset), _BLOCK):
        indices = np.arange(start, min(start + _BLOCK, len(dataset)))
        codes[indices] = model.encode(dataset.subset(indices))
        if on_done:
            on_done(int(indices[-1]) + 1)
    with replacing_file(path) as file:
        if path.suffix == ".npy":
            np.save(file, codes, allow_pickle=False)
        else:
            np.savez(file, codes=codes, keys=np.array(dataset.keys[:]), bits=np.array(model.bits))
    return time.perf_counter() - started
