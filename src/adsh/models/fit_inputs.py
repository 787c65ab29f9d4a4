"""What `ADSH.fit` is given, checked: a table of codes to learn from labels or similarities, and sizes of classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..data import Dataset, Items, prepare
from ..errors import InputError
from ..labels import LabelSets, check_columns
from ..learn import CodeTable
from ..learn.head_choice import ClassSizes
from ..networks import input_size


def images_for(network: str | None, size: int | None, options: dict[str, Any], source: Any) -> Any:
    """Return the images of a source at the size that a network takes, all read once; anything else as it is.

    Args:
        network: its name; None for a user's own module, which gets images as they are.
        size: the side that the preset gives them; None for the network's own.
        options: of the network, which may say its `size`.
        source: what `fit` was given, adapted.

    Returns:
        The source, or its prepared images.
    """
    if not isinstance(source, Dataset) or network is None or source.image_size is not None:
        return source
    if source.array_rows()[0] is not None:
        return source
    side = options.get("size") or size or input_size(network)
    if side is None:
        raise InputError(
            f"network {network!r} takes features, but {source.name} holds images: give network='frozen:"
            "efficientnet_lite0', 'tiny', … or compute features of them first"
        )
    return prepare(source, side).dataset


def build_table(
    items: Items, queries: Items | None, labels: Any, query_labels: Any, similarity: Any, bits: int, unlabelled: str
) -> CodeTable:
    """Build the table of codes to learn, from labels or from a similarity matrix.

    Args:
        items: The database.
        queries: Separate queries, or None.
        labels: Of the database, or None.
        query_labels: Of the queries, or None.
        similarity: A matrix in place of labels, or None.
        bits: The code length.
        unlabelled: As of `CodeTable`.

    Returns:
        The table, with initial codes.
    """
    n = len(items)
    if (labels is None) == (similarity is None):
        instead = ": fit(Y, labels) requires y to be passed, but the target y is None"
        raise InputError("give either labels or similarity" + (instead if labels is None else ", not both"))
    if (query_labels is not None) and (queries is None or similarity is not None):
        raise InputError("query_labels go with queries and labels: give all three")
    if similarity is not None:
        matrix = _check_similarity(similarity, n, None if queries is None else len(queries))
        return CodeTable.from_similarity(matrix, bits, separate_queries=queries is not None)
    database = labels_for(items, labels, "labels", "Y")
    query_sets = None
    if queries is not None:
        if query_labels is None:
            raise InputError("queries without query_labels: give the queries' labels too")
        query_sets = labels_for(queries, query_labels, "query_labels", "queries")
        check_columns(query_labels, "query_labels", len(database.names), "the database has")
    return CodeTable(database, bits, queries=query_sets, unlabelled=unlabelled)


def class_sizes(table: CodeTable) -> ClassSizes | None:
    """Return the sizes of the classes; None where a posterior head cannot be used."""
    labels = table.label_sets
    if labels is None or table.separate_queries:
        return None
    if labels.empty[table.rows.label_set].any():
        return None  # points that are similar to nothing
    count = table.rows.count
    return ClassSizes(len(count), int(count.min()), int(count.max()), several=int(np.diff(labels.starts).max()) > 1)


def _check_similarity(similarity: Any, points: int, queries: int | None) -> Any:
    """Check that a similarity matrix has the shape of the queries and the database.

    Args:
        similarity: As `fit` was given it.
        points: How many points the database has.
        queries: How many separate queries there are; None for none.

    Returns:
        The matrix.
    """
    if isinstance(similarity, list | tuple):
        try:
            similarity = np.asarray(similarity)
        except ValueError:
            raise InputError("similarity is a list of rows of different lengths: give a matrix") from None
    shape = tuple(np.shape(similarity))
    if shape != (points if queries is None else queries, points):
        expected = f"{points} x {points}" if queries is None else f"{queries} x {points} (queries x database)"
        raise InputError(f"similarity has shape {shape}, but these items need {expected}")
    return similarity


def labels_for(items: Items, labels: Any, what: str, whose: str) -> LabelSets:
    """Check that there is a label for each item.

    Args:
        items: What the labels are for.
        labels: As `fit` was given them.
        what: The argument, for the error.
        whose: The argument of the items, for the error.

    Returns:
        The label sets.
    """
    sets = LabelSets.of(labels)
    if len(sets) != len(items):
        raise InputError(f"{what} are for {len(sets)} points, but {whose} has {len(items)}: give one per point")
    return sets
