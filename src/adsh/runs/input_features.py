"""The features that a model learned from: its items, or what a frozen network computes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor, nn

from ..data import Dataset
from ..models.protocol import HashModel
from ..networks.class_lookup import split_scores
from ..networks.frozen import Frozen

_MOST = 200_000  # images whose features are kept


class InputFeatures(NamedTuple):
    """Features of the queries and of the database; or why there are none."""

    queries: Any = None
    database: Any = None
    missing: str | None = None


@contextmanager
def input_features(model: HashModel, queries: Dataset, database: Dataset) -> Iterator[Callable[[], InputFeatures]]:
    """Collect the features that a model takes while it encodes first the queries, then the database, in the block.

    A frozen network computes them for that anyway, so they cost no second pass.

    Args:
        model: Encodes the items in the block.
        queries: All that it encodes first.
        database: All that it encodes then.

    Yields:
        A function that returns them, after the block's work.
    """
    network = model.network_
    if not isinstance(network, Frozen):
        found = InputFeatures(queries, database)
        if len(model.input_shape_) > 1 and network is not None:
            found = InputFeatures(missing=f"{model.network_name} learned its own features from the images")
        yield lambda: found
        return
    if len(queries) + len(database) > _MOST:
        yield lambda: InputFeatures(missing=f"there are more than {_MOST:,} images")
        return
    batches: list[Any] = []

    def keep(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        batches.append(inputs[0].detach().float().cpu().numpy())

    def collected() -> InputFeatures:
        rows = np.concatenate(batches)
        if len(rows) != len(queries) + len(database):  # averaged with mirror images, for instance
            return InputFeatures(missing="the network was not given each image once")
        return InputFeatures(rows[: len(queries)], rows[len(queries) :])

    handle = split_scores(network.top)[0].register_forward_pre_hook(keep)
    try:
        yield collected
    finally:
        handle.remove()
