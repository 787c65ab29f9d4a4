"""Encode a whole source into a file, block by block."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..data import Dataset
from ..data.frames import codes_table, write_parquet
from ..data.match_input import resize_for_model
from ..errors import InputError
from ..hamming.bits import bytes_for
from ..models.protocol import HashModel
from ..utils.files import check_parent, replacing_file
from ..utils.progress import OnProgress
from .inputs import prepare_inputs

_BLOCK = 4096  # items between two reports


def check_out(path: Path) -> None:
    """Raise where codes could not be written to this path."""
    if path.suffix not in (".npz", ".npy", ".parquet"):
        raise InputError(
            f"--out {path}: give a name that ends in .npz (codes, keys and bits), .npy (codes alone) or .parquet (keys "
            "and codes)"
        )
    check_parent(path)


def items_for(
    model: HashModel,
    dataset: Dataset,
    *,
    skip_bad: bool = False,
    workers: int | None = None,
    on_read: OnProgress | None = None,
) -> tuple[Dataset, list[tuple[str, str]]]:
    """Return the items as the model takes them, and the unreadable ones that were left out.

    Args:
        model: The model that is to encode them.
        dataset: The source as opened.
        skip_bad: Read all files first, and leave out those that cannot be read.
        workers: Threads that read files.
        on_read: Called with the number of items read, and of all.

    Returns:
        The items, and with `skip_bad` the key and reason of each that cannot be read.
    """
    resized = resize_for_model(dataset, model.input_shape_, workers)
    if not skip_bad or resized.image_size is None:
        return resized, []
    prepared = prepare_inputs(dataset, size=resized.image_size, skip_bad=True, workers=workers, on_read=on_read)
    return prepared.usable(), prepared.bad


def encode(model: HashModel, dataset: Dataset, path: Path, *, on_done: Callable[[int], None] | None = None) -> float:
    """Encode every item and write the codes, completely or not at all.

    Args:
        model: The model.
        dataset: Items as the model takes them: see `items_for`.
        path: codes.npz (codes, keys and bits), codes.npy (codes alone) or codes.parquet (keys and codes).
        on_done: Called with the number of items done.

    Returns:
        The seconds it took.
    """
    started = time.perf_counter()
    codes = np.empty((len(dataset), bytes_for(model.bits)), dtype=np.uint8)
    for start in range(0, len(dataset), _BLOCK):
        indices = np.arange(start, min(start + _BLOCK, len(dataset)))
        codes[indices] = model.encode(dataset.subset(indices))
        if on_done:
            on_done(int(indices[-1]) + 1)
    with replacing_file(path) as file:
        if path.suffix == ".parquet":
            write_parquet(codes_table(codes, list(dataset.keys[:]), model.bits), file)
        elif path.suffix == ".npy":
            np.save(file, codes, allow_pickle=False)
        else:
            np.savez(file, codes=codes, keys=np.array(dataset.keys[:]), bits=np.array(model.bits))
    return time.perf_counter() - started
