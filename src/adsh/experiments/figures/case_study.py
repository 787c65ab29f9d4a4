"""The case study: example queries with their ten nearest items, by ADSH and by the three best baselines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...data import as_items
from ...evaluate.examples import Case, case_study, item_thumbnail
from ...evaluate.examples import Shown as CaseItem
from ..cell import Cell, Record
from ..experiment_config import ExperimentConfig
from ..experiment_data import ExperimentData, Indices, open_data, take
from ..measure import build_model, code_version, describe_cell, train
from ..rendering import Rendering, Results
from ..summaries import format_score, label
from ..tables import Table

TITLE = "Case study"
METHODS = ("adsh", "lfh_d", "sdh_d", "cosdish_d")

_NUM_QUERIES = 8


def cells(config: ExperimentConfig) -> list[Cell]:
    """Return a cell for each method with the shortest codes, as in the paper; all have the same queries."""
    bits, seed = min(config.bits), config.seeds[0]
    return [replace(config.cell(name, bits, seed), measure="cases") for name in config.select(METHODS)]


def measure(cell: Cell, data: ExperimentData) -> Record:
    """Return the example queries with their nearest items, without images."""
    model = build_model(cell, data)
    database = train(cell, data, model).database
    queries = data.sides(cell).queries
    cases = case_study(
        model.encode(take(data.inputs(cell), queries)), model.database_codes_, data.labels.take(queries),
        data.labels.take(database), take(data.images, queries), take(data.images, database), _NUM_QUERIES, cell.seed,
    )  # fmt: skip
    return {
        **describe_cell(cell, data),
        "device": str(model.device_),
        "commit": code_version(),
        "cases": [_without_images(case.to_json()) for case in cases],
    }


def _without_images(case: dict[str, Any]) -> dict[str, Any]:
    """Remove the images, which belong to the data set: a page takes them from there."""
    for item in (case["query"], *case["found"]):
        item["picture"] = None
    return case


def _with_images(case: Case, cell: Cell, data: ExperimentData) -> Case:
    """Add the images to a case.

    Args:
        case: A query and its nearest items.
        cell: The cell that it belongs to.
        data: The data of the experiment.

    Returns:
        The case with thumbnails, where the items are images.
    """
    queries, database, _ = data.sides(cell)
    images = as_items(data.images, "items")

    def add(item: CaseItem, indices: Indices) -> CaseItem:
        return replace(item, image=item_thumbnail(images, int(indices[item.index])))

    return Case(add(case.query, queries), [add(item, database) for item in case.found])


def render(config: ExperimentConfig, results: Results) -> Rendering:
    """Return the queries with images, and how many of their nearest items are relevant."""
    data = open_data(config)
    cases = {
        label(cell): [_with_images(Case.from_json(case), cell, data) for case in record["cases"]]
        for cell, record in results
    }
    rows = []
    for name, method_cases in cases.items():
        relevant = [item.relevant for case in method_cases for item in case.found]
        fraction = sum(relevant) / max(len(relevant), 1)
        rows.append([name, f"{sum(relevant)} of {len(relevant)}", format_score(fraction)])
    title = f"Right among the ten nearest of {_NUM_QUERIES} queries, {min(config.bits)} bits"
    return Rendering([Table("cases", title, ["method", "right", "share"], rows)], cases=cases)
