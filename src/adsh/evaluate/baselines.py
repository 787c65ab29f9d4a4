"""What the features give without codes: float cosine and a linear classifier, next to a model on the same features."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import Items, as_items
from ..labels import LabelSets
from .classes import bootstrap_interval, by_class
from .columns import LEARNED, NETWORK, NEW
from .ties import Divisor

COSINE, CLASSIFIER = "float cosine", "linear classifier"

_QUERIES, _DATABASE, _TRAINING = 1_000, 10_000, 50_000  # items at most: more are sampled
_PRODUCTS = 4e9  # multiplications of one pass of the classifier: of more, it learns from fewer items
_BLOCK = 1 << 22  # scores ranked at a time

Scores = NDArray[np.float32]


@dataclass(frozen=True)
class BaselineScore:
    """Mean average precision of a baseline in one column."""

    map_expected: float
    map_interval: list[float]  # 95 %, by bootstrap over the queries
    map_classes: float  # the mean over classes


@dataclass(frozen=True)
class Baseline:
    """A ranking by real-valued features, without codes."""

    name: str
    saw: str  # what it learned from
    queries: int
    database: int
    columns: dict[str, BaselineScore]
    seconds: float

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Baseline:
        """Return the baseline that `to_json` gave."""
        columns = {name: BaselineScore(**score) for name, score in saved["columns"].items()}
        return cls(**{**saved, "columns": columns})

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers."""
        return asdict(self)


def evaluate_baselines(
    queries: Any,
    database: Any,
    query_labels: Any,
    database_labels: Any,
    *,
    k: int | None = None,
    divisor: Divisor = "retrieved",
    encoded: str = NETWORK,
    seed: int = 0,
) -> list[Baseline]:
    """Return how well items are found by their features alone, and by a linear classifier of them.

    Float cosine ranks by the cosine of two features. The classifier, a logistic regression in which each class counts
    the same, ranks by the probability that two items share a label: of an item with a known label that is its
    probability for the query. At most 1,000 queries and 10,000 items of the database are compared, drawn at random.

    Args:
        queries: (q, d) features, or images that are small enough to serve as such.
        database: (n, d), the same of the items that the classifier learns from.
        query_labels: in any form that `LabelSets.of` takes.
        database_labels: the same for the database.
        k: MAP over the first k; over the whole ranking unless given.
        divisor: of the average precision at k, as of `mean_average_precision`.
        encoded: the column for the database coded as queries are.
        seed: draws what is compared, and what the classifier's weight decay is selected on.

    Returns:
        A baseline for each of the two; columns as in an evaluation.
    """
    data = _sampled(as_items(queries), as_items(database), query_labels, database_labels, seed)
    return [_cosine(data, k, divisor, encoded), _classifier(data, k, divisor, encoded, seed)]


@dataclass(frozen=True)
class _Data:
    """The items that are compared; the first `ranked` of the database are, all of it is learned from."""

    queries: Scores  # (q, d)
    database: Scores  # (n, d)
    query_labels: LabelSets
    query_hot: Scores  # (q, L) 1 for each label
    database_hot: Scores  # (n, L)
    ranked: int
    total: int  # items of the database before it was sampled


def _sampled(queries: Items, database: Items, query_labels: Any, database_labels: Any, seed: int) -> _Data:
    """Draw the items that are compared.

    Args:
        queries, database: the features.
        query_labels, database_labels: as of `evaluate_baselines`.
        seed: of the draw.
    """
    rng = np.random.default_rng(seed)
    sides = LabelSets.of(query_labels), LabelSets.of(database_labels)
    names = sides[1].names
    width = int(np.prod(database.shape)) * max(len(names), 1)
    most = int(np.clip(_PRODUCTS / width, 1, _TRAINING))
    chosen = np.sort(rng.permutation(len(queries))[:_QUERIES])
    stored = rng.permutation(len(database))[: max(most, min(_DATABASE, len(database)))]
    query_labels, database_labels = sides[0].take(chosen), sides[1].take(stored)
    return _Data(
        _flat(queries, chosen), _flat(database, stored), query_labels, _hot(query_labels, names),
        _hot(database_labels, names), min(_DATABASE, len(stored)), len(database),
    )  # fmt: skip


def _flat(items: Items, indices: NDArray[np.int64]) -> Scores:
    """Return (b, d) the items as float32 features."""
    order = np.argsort(indices)  # files are read in their order
    taken = items.take(indices[order])
    result = np.empty((len(indices), int(np.prod(items.shape))), dtype=np.float32)
    result[order] = taken.reshape(len(taken), -1)
    return result


def _hot(labels: LabelSets, names: tuple[Any, ...]) -> Scores:
    """Return (n, L) 1 for each label of an item; labels that are not among the names are left out."""
    table = np.zeros((labels.set_count, len(names)), dtype=np.float32)
    sets = np.repeat(np.arange(labels.set_count), np.diff(labels.starts))
    tags = labels.tags_in(names)
    table[sets[tags >= 0], tags[tags >= 0]] = 1
    return table[labels.ids]


def _cosine(data: _Data, k: int | None, divisor: Divisor, encoded: str) -> Baseline:
    started = time.perf_counter()
    queries, database = _unit(data.queries), _unit(data.database[: data.ranked])
    scores = _columns(data, {encoded: (queries, database), NEW: (queries, queries)}, k, divisor)
    saw = "nothing: features as they are"
    return Baseline(COSINE, saw, len(queries), data.ranked, scores, time.perf_counter() - started)


def _unit(features: Scores) -> Scores:
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    return np.divide(features, np.where(norms > 0, norms, 1)).astype(np.float32)


def _classifier(data: _Data, k: int | None, divisor: Divisor, encoded: str, seed: int) -> Baseline:
    from ..methods.solvers.logistic import fit_logistic

    started = time.perf_counter()
    labelled = np.asarray(data.database_hot.any(axis=1))
    used = np.flatnonzero(data.database_hot.any(axis=0))  # labels that no sampled item has cannot be learned
    fitted = fit_logistic(data.database[labelled], data.database_hot[labelled][:, used], np.random.default_rng(seed))
    queries, database = (
        _spread(fitted.probabilities(side), used, data.query_hot.shape[1])
        for side in (data.queries, data.database[: data.ranked])
    )
    known = np.where(labelled[: data.ranked, None], data.database_hot[: data.ranked], database)
    pairs = {LEARNED: (queries, known), encoded: (queries, database), NEW: (queries, queries)}
    scores = _columns(data, pairs, k, divisor)
    count = f"{labelled.sum():,}" + (f" of {data.total:,}" if len(data.database) < data.total else "")
    saw = f"the labels of {count} database items; weight decay {fitted.decay:g}, selected on some held out of them"
    return Baseline(CLASSIFIER, saw, len(queries), data.ranked, scores, time.perf_counter() - started)


def _spread(probabilities: Scores, used: NDArray[np.int64], width: int) -> Scores:
    """Return (n, width) probabilities of all labels, 0 for those that were not learned."""
    result = np.zeros((len(probabilities), width), dtype=np.float32)
    result[:, used] = probabilities
    return result


def _columns(
    data: _Data, pairs: dict[str, tuple[Scores, Scores]], k: int | None, divisor: Divisor
) -> dict[str, BaselineScore]:
    """Return the score of each column, ranked by inner products.

    Args:
        data: says what is relevant.
        pairs: for each column, queries and database.
        k, divisor: as of `evaluate_baselines`.
    """
    scores = {}
    for name, (queries, database) in pairs.items():
        if name == NEW and len(queries) < 2:
            continue
        hot = data.query_hot if name == NEW else data.database_hot[: data.ranked]
        precisions = _average_precisions(queries, database, data.query_hot, hot, k, divisor, leave_one_out=name == NEW)
        classes = by_class(precisions, data.query_labels)
        mean = float(np.mean([result.map for result in classes])) if classes else float(precisions.mean())
        scores[name] = BaselineScore(float(precisions.mean()), bootstrap_interval(precisions), mean)
    return scores


def _average_precisions(
    queries: Scores,
    database: Scores,
    query_hot: Scores,
    database_hot: Scores,
    k: int | None,
    divisor: Divisor,
    *,
    leave_one_out: bool,
) -> NDArray[np.float64]:
    """Return (q,) the average precision of a ranking by inner products; ties are in the order of the database.

    Args:
        queries, database: what is multiplied.
        query_hot, database_hot: the labels; items that share one are relevant.
        k, divisor: as of `evaluate_baselines`.
        leave_one_out: query i is item i of the database, and left out of its own ranking.
    """
    found = np.zeros(len(queries))
    places = len(database) - leave_one_out
    first = min(k or places, places)
    step = max(1, _BLOCK // len(database))
    for start in range(0, len(queries), step):
        block = np.arange(start, min(start + step, len(queries)))
        scores = queries[block] @ database.T
        relevant = query_hot[block] @ database_hot.T > 0
        if leave_one_out:
            scores[np.arange(len(block)), block] = -np.inf
        order = np.argsort(-scores, axis=1, kind="stable")[:, :places]
        ranked = np.take_along_axis(relevant, order, axis=1)
        everything = ranked.sum(axis=1)
        ranked = ranked[:, :first]
        precision = ranked.cumsum(axis=1) / np.arange(1, first + 1)
        by = np.minimum(first, everything) if divisor == "min" else ranked.sum(axis=1)
        found[block] = (precision * ranked).sum(axis=1) / np.maximum(by, 1)
    return found
