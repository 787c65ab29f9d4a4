"""Evaluate a model on queries that it was not trained on, as plain figures that can be saved and compared.

An evaluation has a column for each coding of the database:

learned   the codes as learned (V): a labelled database, which is ADSH's setting
network   codes by the network, of the items that it was trained on
hashed    codes by the hash function of a method that has no network
new       codes as of a query, of items that no training saw: the queries, each searched among the others
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..hamming.bits import Codes, unpack
from ..labels import LabelSets
from ..utils.arrays import unique_rows
from .classes import ClassPair, ClassResult, bootstrap_interval, by_class, nearest_classes
from .examples import Case, case_study
from .ranking import Ranking
from .ties import Divisor

if TYPE_CHECKING:
    from ..models.protocol import HashModel

LEARNED, NETWORK, HASHED, NEW = "learned", "network", "hashed", "new"
COLUMNS = {
    LEARNED: "codes as learned",
    NETWORK: "trained items, by the network",
    HASHED: "database, by the hash function",
    NEW: "new items",
}

_CURVE = (1, 5, 10, 20, 50, *range(100, 2001, 100))  # k of the precision and recall curves
_BLOCK = 1 << 18  # codes unpacked at a time


@dataclass(frozen=True)
class Column:
    """All metrics of the queries against one coding of the database."""

    map_expected: float  # in expectation over the orders of tied items
    map_stable: float  # ties in database order, for comparison with the literature
    map_lowest: float  # over all orders of the ties
    map_highest: float
    ndcg: float
    distinct_codes: int
    ks: list[int]
    precision: list[float]  # at each of ks
    recall: list[float]
    radius_precision: list[float]  # by Hamming radius 0 .. c; an empty look-up counts 0
    radius_recall: list[float]
    radius_returned: list[float]
    similar_pairs: list[int]  # by Hamming distance 0 .. c
    dissimilar_pairs: list[int]
    balance: list[float]  # share of +1, bit by bit
    correlation: list[list[float]]  # between the bits, over the database
    map_interval: list[float] | None = None  # of map_expected: 95 %, by bootstrap over the queries; None in older files
    map_classes: float | None = None  # the mean over classes of the mean over the queries of each
    chance: float | None = None  # map_expected of a random order
    by_class: list[ClassResult] | None = None  # the class found worst first

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Column:
        """Return the column that `asdict` gave; files of earlier versions lack the last values."""
        by_class = saved.get("by_class")
        results = None if by_class is None else [ClassResult(**result) for result in by_class]
        return cls(**{**saved, "by_class": results})


@dataclass(frozen=True)
class Evaluation:
    """One model on one split. `about` says what was run: network, preset, seed, protocol, …"""

    name: str
    bits: int
    queries: int
    database: int
    without_relevant: int  # queries to which nothing is relevant: they count 0
    k: int | None  # MAP and NDCG over the first k
    divisor: Divisor
    columns: dict[str, Column]
    about: dict[str, Any] = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)
    cases: dict[str, list[Case]] = field(default_factory=dict)
    nearest_classes: list[ClassPair] = field(
        default_factory=list, kw_only=True
    )  # by their learned codes, the nearest first

    def to_json(self) -> dict[str, Any]:
        """Return plain dictionaries, lists and numbers."""
        cases = {name: [case.to_json() for case in shown] for name, shown in self.cases.items()}
        return {**asdict(self), "cases": cases}

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Evaluation:
        """Return the evaluation that `to_json` gave."""
        try:
            columns = {name: Column.from_json(column) for name, column in saved["columns"].items()}
            cases = {name: [Case.from_json(case) for case in shown] for name, shown in saved["cases"].items()}
            pairs = [ClassPair(**pair) for pair in saved.get("nearest_classes", [])]
            return cls(**{**saved, "columns": columns, "cases": cases, "nearest_classes": pairs})
        except (KeyError, TypeError, AttributeError) as problem:
            raise InputError(
                f"this is not an evaluation that adsh saved ({problem}): evaluate the model again"
            ) from None


def evaluate_codes(
    query_codes: Codes,
    database_codes: Codes,
    query_labels: Any = None,
    database_labels: Any = None,
    *,
    bits: int,
    k: int | None = None,
    divisor: Divisor = "retrieved",
    relevance: Any = None,
) -> Column:
    """Evaluate queries against one coding of the database.

    Args:
        query_codes: packed, one a query.
        database_codes: packed, one an item.
        query_labels: in any form that `LabelSets.of` takes.
        database_labels: the same for the database.
        bits: the code length.
        k: MAP and NDCG over the first k; over the whole ranking unless given.
        divisor: of the average precision at k: "retrieved" or "min", see `mean_average_precision`.
        relevance: a (queries, database) matrix of grades, instead of labels.

    Returns:
        The metrics of this coding.
    """
    ranking = Ranking(
        query_codes, database_codes, query_labels, database_labels, bits=bits, relevance=relevance, graded=True
    )
    return _column(ranking, database_codes, None if relevance is not None else query_labels, k, divisor)


class EvaluationOptions(TypedDict, total=False):
    """What `evaluate_model` and `evaluate_codings` also take.

    k          MAP and NDCG over the first k; over the whole ranking unless given
    divisor    of the average precision at k: "retrieved" (the default) or "min", see `mean_average_precision`
    cases      how many queries are shown with their ten nearest; 5 unless given
    seed       draws these queries; 0 unless given
    """

    k: int | None
    divisor: Divisor
    cases: int
    seed: int


class _CodingOptions(EvaluationOptions, total=False):
    about: dict[str, Any] | None
    history: list[dict[str, float]] | None


@dataclass(frozen=True)
class _Options:
    """The options with their defaults."""

    k: int | None = None
    divisor: Divisor = "retrieved"
    cases: int = 5
    seed: int = 0
    about: dict[str, Any] | None = None
    history: list[dict[str, float]] | None = None


def evaluate_model(
    model: HashModel,
    queries: Any,
    query_labels: Any,
    database: Any,
    database_labels: Any,
    *,
    name: str | None = None,
    about: dict[str, Any] | None = None,
    **options: Unpack[EvaluationOptions],
) -> Evaluation:
    """Evaluate a trained model: database codes as learned, as the model encodes them, and items new to it.

    Args:
        model: what to evaluate.
        queries: items that it was not trained on.
        query_labels: in any form that `LabelSets.of` takes.
        database: the items that it was trained on, in that order.
        database_labels: of these items.
        name: the name of the evaluation; method, network and bits unless given.
        about: what else to say of the run, by name.
        **options: k, divisor, cases and seed: see `EvaluationOptions`.

    Returns:
        The evaluation, for `write_report`.

    Raises:
        InputError: the database is not the one that the model was trained on.
    """
    _check_options("evaluate_model", options, ())
    codes = model.database_codes_
    if len(database) != len(codes):
        raise InputError(
            f"database has {len(database)} items, but the model was fitted on {len(codes)}: "
            "evaluate on the database it was fitted on"
        )
    name_parts, run = _describe(model)
    evaluation = evaluate_codings(
        model.encode(queries),
        {LEARNED: codes, coded_by(model): model.encode_database(database)},
        queries,
        query_labels,
        database,
        database_labels,
        bits=model.bits,
        name=name or ", ".join(name_parts),
        about={**run, **(about or {})},
        history=[dict(record) for record in model.history_],
        **options,
    )
    pairs = nearest_classes(codes, LabelSets.of(database_labels), model.bits) if model.codes_labels else []
    return replace(evaluation, nearest_classes=pairs)


def coded_by(model: HashModel) -> str:
    """Return the column of a database that the model encodes as it encodes queries."""
    return HASHED if model.network_name is None else NETWORK


def _describe(model: HashModel) -> tuple[list[str], dict[str, Any]]:
    """Return the parts of a model's name, and how it was trained."""
    method = "ADSH" if model.name == "adsh" else model.name + "_d" * model.use_full_database
    run: dict[str, Any] = {"seed": model.seed, "device": str(model.device_)}
    network = model.network_name
    if network is not None:
        run = {"network": network, "preset": model.preset, **run}
    run["training_seconds"] = round(model.training_seconds, 2)
    return [method, *([network] if network else []), f"{model.bits} bits"], run


def evaluate_codings(
    query_codes: Codes,
    codings: dict[str, Codes],
    queries: Any,
    query_labels: Any,
    database: Any,
    database_labels: Any,
    *,
    bits: int,
    name: str,
    **options: Unpack[_CodingOptions],
) -> Evaluation:
    """Evaluate codes of the queries against several codings of the database.

    Args:
        query_codes: packed, one a query.
        codings: packed codes of the database, by the names of `COLUMNS`.
        queries: the items, to show some of them.
        query_labels: in any form that `LabelSets.of` takes.
        database: the items of the database, to show some of them.
        database_labels: of these items.
        bits: the code length.
        name: the name of the evaluation.
        **options: `about`, what was run, by name; `history`, the records of training; and those of
            `EvaluationOptions`.

    Returns:
        An evaluation with a column for each coding.
    """
    _check_options("evaluate_codings", options, ("about", "history"))
    chosen = _Options(**options)
    columns, cases, without = {}, {}, 0
    for column, codes in codings.items():
        ranking = Ranking(query_codes, codes, query_labels, database_labels, bits=bits, graded=True)
        columns[column] = _column(ranking, codes, query_labels, chosen.k, chosen.divisor)
        without = ranking.without_relevant
        cases[column] = case_study(
            query_codes, codes, query_labels, database_labels, queries, database, chosen.cases, chosen.seed
        )
    if len(query_codes) > 1:
        ranking = Ranking(
            query_codes, query_codes, query_labels, query_labels, bits=bits, graded=True, leave_one_out=True
        )
        columns[NEW] = _column(ranking, query_codes, query_labels, chosen.k, chosen.divisor)
    return Evaluation(
        name=name,
        bits=bits,
        queries=len(query_codes),
        database=len(database),
        without_relevant=without,
        k=None if chosen.k is None else int(chosen.k),
        divisor=chosen.divisor,
        columns=columns,
        about=chosen.about or {},
        history=chosen.history or [],
        cases=cases,
    )


def _check_options(function: str, options: Mapping[str, Any], more: tuple[str, ...]) -> None:
    """Raise what Python raises for a keyword that a function does not have.

    Args:
        function: its name, for the error.
        options: what was passed.
        more: names that it takes besides those of `EvaluationOptions`.
    """
    for name in options:
        if name not in EvaluationOptions.__annotations__ and name not in more:
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


def _column(ranking: Ranking, database_codes: Codes, query_labels: Any, k: int | None, divisor: Divisor) -> Column:
    """Return all metrics of a ranking.

    Args:
        ranking: the queries against one coding.
        database_codes: that coding.
        query_labels: of the queries; None where relevance is given.
        k: as of `evaluate_codes`.
        divisor: as of `evaluate_codes`.
    """
    precisions = ranking.average_precisions(k=k, divisor=divisor)
    classes = None if query_labels is None else by_class(precisions, LabelSets.of(query_labels))
    ks = [place for place in _CURVE if place <= ranking.database]
    lowest, highest = ranking.average_precision_bounds(k=k, divisor=divisor)
    curve = ranking.precision_recall_by_radius()
    similar, dissimilar = ranking.pairs_by_distance
    balance, correlation, rows = bit_statistics(database_codes, ranking.bits)
    return Column(
        map_expected=float(precisions.mean()),
        map_stable=ranking.mean_average_precision(k=k, divisor=divisor, ties="stable"),
        map_lowest=lowest,
        map_highest=highest,
        ndcg=ranking.ndcg_at(k or ranking.database),
        distinct_codes=rows,
        ks=ks,
        precision=ranking.precision_at(ks).tolist(),
        recall=ranking.recall_at(ks).tolist(),
        radius_precision=curve.precision.tolist(),
        radius_recall=curve.recall.tolist(),
        radius_returned=curve.returned.tolist(),
        similar_pairs=similar.tolist(),
        dissimilar_pairs=dissimilar.tolist(),
        balance=balance.round(6).tolist(),
        correlation=correlation.round(4).tolist(),
        map_interval=bootstrap_interval(precisions),
        map_classes=None if classes is None else float(np.mean([result.map for result in classes])),
        chance=float(ranking.chance(k=k, divisor=divisor)),
        by_class=classes,
    )


def bit_statistics(codes: Codes, bits: int) -> tuple[NDArray[np.float64], NDArray[np.float64], int]:
    """Return (c,) the share of +1 of each bit, (c, c) their correlation, and the number of distinct codes.

    The correlation with a bit that never varies is 0.
    """
    rows, _, counts = unique_rows(codes)
    n = counts.sum()
    sums, products = np.zeros(bits), np.zeros((bits, bits))
    for start in range(0, len(rows), _BLOCK):
        block, weight = unpack(rows[start : start + _BLOCK], bits).astype(np.float64), counts[start : start + _BLOCK]
        sums += weight @ block
        products += (block * weight[:, None]).T @ block
    mean = sums / n
    deviation = np.sqrt(np.maximum(1 - mean**2, 0.0))
    scale = np.where(deviation > 1e-12, 1 / np.maximum(deviation, 1e-12), 0.0)
    correlation = (products / n - np.outer(mean, mean)) * np.outer(scale, scale)
    return (1 + mean) / 2, correlation, len(rows)
