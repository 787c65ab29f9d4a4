"""The case study: some queries and their ten nearest, by ADSH and by the three best of the others."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from ...data import as_items
from ...evaluate.examples import Case, picture, study
from ...evaluate.examples import Shown as CaseItem
from ..cell import Cell
from ..experiment_config import ExperimentConfig, ExperimentData, at, open_data
from ..measure import about, fitted, model_of, version_of_code
from ..rendering import Rendering
from ..summaries import Done, label, share
from ..tables import Table

TITLE = "Case study"
METHODS = ("adsh", "lfh_d", "sdh_d", "cosdish_d")
_QUERIES = 8


def cells(config: ExperimentConfig) -> list[Cell]:
    """The shortest codes, as in the paper; the first seed: it draws the queries, the same for all."""
    wanted = [name for name in METHODS if not config.methods or name in config.methods]
    shortest, first = min(config.bits), config.seeds[0]
    return [replace(config.cell(name, shortest, first), measure="cases") for name in wanted]


def measured(cell: Cell, data: ExperimentData) -> dict[str, Any]:
    """The queries with what they find; pictures where the items have some, whatever the method saw."""
    model = model_of(cell, data)
    database, _, _ = fitted(cell, data, model)
    asking = data.sides(cell)[0]
    pictures = data.pictures
    found = study(
        model.encode(at(data.seen_by(cell), asking)), model.database_codes_, data.labels.take(asking),
        data.labels.take(database), at(pictures, asking), at(pictures, database), _QUERIES, cell.seed,
    )  # fmt: skip
    return {
        **about(cell, data),
        "device": str(model.device_),
        "commit": version_of_code(),
        "cases": [_without_pictures(asdict(case)) for case in found],
    }


def _without_pictures(case: dict[str, Any]) -> dict[str, Any]:
    """Records hold no pictures: they are the data's, and are looked up there when a page is made."""
    for shown in (case["query"], *case["found"]):
        shown["picture"] = None
    return case


def _with_pictures(case: Case, cell: Cell, data: ExperimentData) -> Case:
    asking, database, _ = data.sides(cell)
    items = as_items(data.pictures, "items")

    def seen(shown: CaseItem, at: Any) -> CaseItem:
        return replace(shown, picture=picture(items, int(at[shown.index])))

    return Case(seen(case.query, asking), [seen(shown, database) for shown in case.found])


def show(config: ExperimentConfig, done: Done) -> Rendering:
    """The pictures, and how many of those found are right."""
    data = open_data(config)
    studies = {
        label(cell): [_with_pictures(Case.from_json(case), cell, data) for case in record["cases"]]
        for cell, record in done
    }
    rows = []
    for name, cases in studies.items():
        found = [shown.relevant for case in cases for shown in case.found]
        rows.append([name, f"{sum(found)} of {len(found)}", share(sum(found) / max(len(found), 1))])
    title = f"Right among the ten nearest of {_QUERIES} queries, {min(config.bits)} bits"
    return Rendering([Table("cases", title, ["method", "right", "share"], rows)], cases=studies)
