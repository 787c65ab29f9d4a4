"""Not in the paper: MAP against the number of classes and against their imbalance, for features of many classes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...evaluate import LEARNED, evaluate_model
from ...evaluate.evaluation import coded_by
from ...methods.sdh import SDH
from .. import drawing
from ..cell import Cell, Record, display_name
from ..experiment_config import ExperimentConfig
from ..experiment_data import ExperimentData, Indices, open_data
from ..measure import build_model, code_version, describe_cell, new_items, training_seconds
from ..paper import BITS
from ..rendering import Rendering, Results
from ..summaries import NEW_ITEMS, describe_seeds, format_mean, mean, values
from ..tables import Best, Table

TITLE = "Many classes, unequal classes"
CLASSES, RATIOS, LENGTHS = (10, 20, 50, 100, 200), (1, 4, 16, 64), (16, 32, 64)
REFERENCE = 50  # classes where their imbalance is varied
PUBLISHED = "published objective"

_METHODS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("adsh", {}), ("adsh", {"head": "bits"}), ("classifier_d", {}), ("sdh_d", {}),
)  # fmt: skip
_QUERIES, _MEAN_ITEMS = 8, 40  # of a class: queries, and database items on average

Draw = tuple[Indices, Indices]  # queries and database


def cells(config: ExperimentConfig) -> list[Cell]:
    """Return cells of each method by number of classes, then by imbalance; none for several labels an item."""
    data = open_data(config)
    if data.is_multi_label:
        return []
    there = int((data.labels.sizes > 0).sum())
    counts = [count for count in CLASSES if count <= there]
    if not counts:
        return []
    reference = max(count for count in counts if count <= max(REFERENCE, counts[0]))
    settings = [(count, 1) for count in counts] + [(reference, ratio) for ratio in RATIOS if ratio > 1]
    selected = set(config.select(tuple(dict.fromkeys(method for method, _ in _METHODS))))
    return [
        replace(config.cell(method, bits, seed, classes=count, ratio=ratio, **options), measure="classes")
        for seed in config.seeds
        for count, ratio in settings
        for bits in lengths(config)
        for method, options in _METHODS
        if method in selected
    ]


def lengths(config: ExperimentConfig) -> tuple[int, ...]:
    """Return the code lengths of this experiment, unless others than the paper's are configured."""
    return LENGTHS if config.bits == BITS else config.bits


def measure(cell: Cell, data: ExperimentData) -> Record:
    """Train a method on some of the classes, and evaluate it on their queries."""
    options = dict(cell.options)
    count, ratio, head = options.pop("classes"), options.pop("ratio"), options.pop("head", None)
    plain = replace(cell, options=tuple(sorted(options.items())))
    queries, database = draw(data.labels.ids, count, ratio, cell.seed)
    items, labels = data.inputs(plain), np.asarray(data.labels.ids, dtype=np.int64)
    model = build_model(plain, data)
    if head is not None:
        model.recipe = {**model.recipe, "head": head}
    if model.name == SDH.name:  # a few classes have fewer items than anchors
        model.anchors = min(model.anchors, len(database))
    started = time.perf_counter()
    model.fit(items[database], labels[database])
    seconds = time.perf_counter() - started
    evaluation = evaluate_model(
        model, items[queries], labels[queries], items[database], labels[database], k=data.k, cases=0
    )
    learned, sizes = evaluation.columns[LEARNED], np.unique(labels[database], return_counts=True)[1]
    return {
        **describe_cell(cell, data),
        "map_expected": learned.map_expected,
        "map_stable": learned.map_stable,
        "map_network": evaluation.columns[coded_by(model)].map_expected,
        **new_items(evaluation),
        "seconds": training_seconds(model, seconds),
        "device": str(model.device_),
        "commit": code_version(),
        "classes": count,
        "ratio": ratio,
        "head": head,
        "smallest": int(sizes.min()),
        "largest": int(sizes.max()),
        "database": len(database),
        "distinct_codes": learned.distinct_codes,
    }


def draw(ids: Any, count: int, ratio: float, seed: int) -> Draw:
    """Draw classes, eight queries of each, and a database whose largest class has `ratio` times the smallest's items.

    The sizes fall geometrically, and are 40 on average at any ratio, as far as the classes have so many items.

    Args:
        ids: (n,) the class of each item.
        count: how many classes.
        ratio: between the largest and the smallest.
        seed: of the draw; the classes of a small count are among those of a large one.

    Returns:
        The indices of queries and database.
    """
    rng = np.random.default_rng([seed, 11])
    chosen = rng.permutation(np.unique(ids))[:count]
    orders = [rng.permutation(np.flatnonzero(ids == number)) for number in chosen]
    orders.sort(key=len, reverse=True)  # the largest classes stay the largest
    shares = ratio ** -(np.arange(count) / max(count - 1, 1))
    sizes = np.maximum(1, np.round(_MEAN_ITEMS * shares / shares.mean())).astype(int)
    few_of = [min(_QUERIES, len(order) // 2) for order in orders]
    queries = np.concatenate([order[:few] for order, few in zip(orders, few_of, strict=True)])
    database = [order[few : few + size] for order, few, size in zip(orders, few_of, sizes, strict=True)]
    return np.sort(queries), np.sort(np.concatenate(database))


def render(config: ExperimentConfig, results: Results) -> Rendering:
    """Return a table and a figure by the number of classes, and by their imbalance."""
    equal = [(cell, record) for cell, record in results if record["ratio"] == 1]
    reference = max((record["classes"] for _, record in results if record["ratio"] > 1), default=None)
    at_reference = [(cell, record) for cell, record in results if record["classes"] == reference]
    parts: list[tuple[str, str, Results, str, str]] = [
        ("classes", "MAP against the number of classes of equal size", equal, "classes", "classes")
    ]
    if reference is not None:
        title = f"MAP against the imbalance of {reference} classes"
        parts.append(("classes-imbalance", title, at_reference, "ratio", "imbalance: largest class / smallest"))
    tables = [_table(config, name, title, some, key) for name, title, some, key, _ in parts]
    figures = {
        name: (f"{title}, averaged over classes: of codes as learned, and of new items.", _figure(config, some, key, x))
        for name, title, some, key, x in parts
    }
    return Rendering(tables, figures)


def _name(cell: Cell) -> str:
    return PUBLISHED if cell.option("head") == "bits" else display_name(cell.method)


def _groups(results: Results) -> dict[str, list[tuple[Cell, Record]]]:
    """Group results by method and objective."""
    groups: dict[str, list[tuple[Cell, Record]]] = {}
    for cell, record in results:
        groups.setdefault(_name(cell), []).append((cell, record))
    return groups


def _table(config: ExperimentConfig, name: str, title: str, results: Results, key: str) -> Table:
    """Return MAP over classes of each method, of learned codes and of new items.

    Args:
        config: The configuration of the experiment.
        name: The name of the table.
        title: Its title.
        results: What it is made of.
        key: The value that varies from row to row.
    """
    groups = _groups(results)
    rows = []
    for value in sorted({record[key] for _, record in results}):
        for bits in lengths(config):
            by_column = [
                {name: values(group, column, bits=bits, **{key: value}) for name, group in groups.items()}
                for column in ("map_classes", "map_new_classes")
            ]
            cells: list[str] = []
            for method in groups:
                cells += [_marked(scores, method) for scores in by_column]
            codes = values(groups.get(PUBLISHED, []), "distinct_codes", bits=bits, **{key: value})
            if any(any(scores.values()) for scores in by_column):
                rows.append([f"{value}, {bits} bits", *cells, f"{mean(codes):,.0f}" if codes else ""])
    headings = [f"{key}, bits", *(text for name in groups for text in (name, "new")), "codes, published"]
    notes = [
        describe_seeds(results), "Each class counts the same. Codes: how many distinct ones the published objective "
        "gave to the database, those of sampled items among them; with fewer than classes, some share one.", NEW_ITEMS,
    ]  # fmt: skip
    return Table(name, title, headings, rows, notes)


def _marked(scores: dict[str, list[float]], method: str) -> str:
    """Return the mean score of a method, marked where it is the best."""
    text = format_mean(scores[method])
    best = max((mean(numbers) for numbers in scores.values() if numbers), default=None)
    return Best(text) if scores[method] and mean(scores[method]) == best else text


def _figure(config: ExperimentConfig, results: Results, key: str, x: str) -> Any:
    """Draw a row of two panels for each code length: learned codes, and new items."""
    panels: list[drawing.Panel] = []
    for bits in lengths(config):
        for column, words in (("map_classes", "codes as learned"), ("map_new_classes", "new items")):
            series = {name: _means(group, key, column, bits) for name, group in _groups(results).items()}
            panels.append((f"{bits} bits, {words}", series, x, "MAP", "x"))
    return drawing.side_by_side(panels)


def _means(group: Sequence[tuple[Cell, Record]], key: str, column: str, bits: int) -> dict[Any, float]:
    """Return the mean of a column at each value of the key.

    Args:
        group: The results of a method.
        key: What varies.
        column: The name of the score.
        bits: The code length.
    """
    present = sorted({record[key] for _, record in group})
    scores = {value: values(group, column, bits=bits, **{key: value}) for value in present}
    return {value: mean(numbers) for value, numbers in scores.items() if numbers}
