"""Bring the items of a dataset to the shape that a trained model takes."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InputError
from .dataset import Dataset
from .images.resized import ResizedDataset


def resize_for_model(dataset: Dataset, shape: Sequence[int], workers: int | None = None) -> Dataset:
    """Return the dataset with its images resized to what a model takes; nothing is read yet.

    Args:
        dataset: images, or features.
        shape: the shape of one item that the model was trained on.
        workers: threads that read the images; by default as many as the dataset allows.

    Returns:
        A resized view, or the dataset itself where its items need no resizing.

    Raises:
        InputError: the dataset holds images, but the model takes features.
    """
    array, _ = dataset.array_rows()
    if array is not None:
        item_shape: tuple[int, ...] = tuple(array.shape[1:])
        if len(item_shape) != 3 or len(shape) != 3 or item_shape[2] != 3 or item_shape == tuple(shape):
            return dataset
    if len(shape) != 3:
        raise InputError(
            f"{dataset.name} holds images, but the model takes {shape[0]} features an item: make them with adsh "
            "features SOURCE --out new.npy, with the same network as before, and pass new.npy instead"
        )
    if shape[0] != shape[1]:
        return dataset  # trained on images that are not square: new ones must have the same shape already
    resized = ResizedDataset(dataset, shape[0])
    resized.workers = dataset.workers if workers is None else workers
    return resized
