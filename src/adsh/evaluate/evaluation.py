"""Evaluate a model on queries that it was not trained on, as plain figures that can be saved and compared.

An evaluation has a column for each coding of the database: see `columns`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from ..data.adapt import adapt_for
from ..data.items import labels_of
from ..errors import InputError
from ..hamming.bits import Codes
from ..labels import LabelSets
from .baselines import Baseline
from .classes import ClassPair, nearest_classes
from .columns import COLUMNS as COLUMNS
from .columns import HASHED as HASHED
from .columns import LEARNED, NETWORK, NEW, Column, measure_column
from .columns import bit_statistics as bit_statistics
from .confusions import confusions
from .cross_fit import CrossFit
from .examples import Case, case_study
from .ranking import Ranking
from .ties import Divisor

if TYPE_CHECKING:
    from ..models.protocol import HashModel


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
    baselines: list[Baseline] = field(default_factory=list, kw_only=True)  # on the features that the model takes
    baselines_missing: str | None = field(default=None, kw_only=True)  # why there are none
    cross_fit: CrossFit | None = field(default=None, kw_only=True)
    cross_fit_missing: str | None = field(default=None, kw_only=True)  # why a small held-out part was not cross-fitted

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
            baselines = [Baseline.from_json(baseline) for baseline in saved.get("baselines", [])]
            folds = saved.get("cross_fit")
            lists = {"cases": cases, "nearest_classes": pairs, "baselines": baselines}
            fitted = None if folds is None else CrossFit.from_json(folds)
            return cls(**{**saved, "columns": columns, "cross_fit": fitted, **lists})
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
    chosen = _Options(k=k, divisor=divisor)
    if relevance is None:
        return _measure(query_codes, database_codes, query_labels, database_labels, bits, chosen)[1]
    ranking = Ranking(
        query_codes, database_codes, query_labels, database_labels, bits=bits, relevance=relevance, graded=True
    )
    return measure_column(ranking, database_codes, None, k, divisor)


def _measure(
    query_codes: Codes,
    database_codes: Codes,
    query_labels: Any,
    database_labels: Any,
    bits: int,
    options: _Options,
    *,
    leave_one_out: bool = False,
) -> tuple[Ranking, Column]:
    """Return the ranking of the queries against one coding, and its metrics.

    Args:
        query_codes, database_codes, query_labels, database_labels, bits: as of `evaluate_codes`.
        options: k and divisor.
        leave_one_out: the queries are the database, and each is left out of its own ranking.
    """
    ranking = Ranking(
        query_codes, database_codes, query_labels, database_labels, bits=bits, graded=True, leave_one_out=leave_one_out
    )
    column = measure_column(ranking, database_codes, query_labels, options.k, options.divisor)
    labels = LabelSets.of(query_labels), LabelSets.of(database_labels)
    found = confusions(query_codes, database_codes, *labels, bits=bits, leave_one_out=leave_one_out)
    return ranking, replace(column, confusions=found)


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
        query_labels: in any form that `LabelSets.of` takes; None for those of a dataset.
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
    queries = adapt_for(queries, model.input_shape_, "queries")
    database = adapt_for(database, model.input_shape_, "database")
    query_labels, database_labels = labels_of(queries, query_labels), labels_of(database, database_labels)
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
        ranking, columns[column] = _measure(query_codes, codes, query_labels, database_labels, bits, chosen)
        without = ranking.without_relevant
        cases[column] = case_study(
            query_codes, codes, query_labels, database_labels, queries, database, chosen.cases, chosen.seed
        )
    if len(query_codes) > 1:
        among = query_codes, query_codes, query_labels, query_labels
        _, columns[NEW] = _measure(*among, bits, chosen, leave_one_out=True)
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
