"""Not in the paper: items added after training, with and without labels, and a class unseen in training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...evaluate.metrics import mean_average_precision
from ...hamming.bits import Codes
from ..cell import Cell, Record
from ..experiment_config import ExperimentConfig
from ..experiment_data import ExperimentData, Indices, take
from ..measure import build_model, code_version, describe_cell
from ..rendering import Rendering, Results
from ..summaries import describe_seeds, format_mean
from ..tables import Table

TITLE = "Items added after training"
SCENARIOS = {
    "labelled": "new items of known classes, coded by their labels",
    "unlabelled": "new items of known classes, coded by the network",
    "learned": "the same items, learned with the others",
    "unseen_labelled": "a class never seen, coded by its label",
    "unseen_unlabelled": "a class never seen, coded by the network",
}

_FRACTION = 12  # one in this many database items is new


def cells(config: ExperimentConfig) -> list[Cell]:
    """Return a cell of ADSH for each code length and seed."""
    return [replace(cell, measure="new-items") for cell in config.cells(("adsh",))]


def measure(cell: Cell, data: ExperimentData) -> Record:
    """Return MAP over the new items alone; for an unseen class, MAP of its own queries over the whole database."""
    queries, database, _ = data.sides(cell)
    rng = np.random.default_rng([cell.seed, 7])
    is_new = np.zeros(len(database), dtype=bool)
    is_new[rng.choice(len(database), max(1, len(database) // _FRACTION), replace=False)] = True
    new = database[is_new]
    trial = _Trial(cell, data)
    partial, complete = trial.train(database[~is_new]), trial.train(database)
    scores: dict[str, float | None] = {
        "labelled": trial.score(partial, queries, partial.code_for(trial.label_names(new)), new),
        "unlabelled": trial.score(partial, queries, trial.encode(partial, new), new),
        "learned": trial.score(complete, queries, complete.database_codes_[is_new], new),
    }
    if not data.is_multi_label:
        scores |= _score_unseen_class(trial, queries, database)
    origin = {"device": str(partial.device_), "commit": code_version()}
    return {**describe_cell(cell, data), "new": len(new), **{name: scores.get(name) for name in SCENARIOS}, **origin}


class _Trial:
    """Train and score models of one cell on parts of the data."""

    def __init__(self, cell: Cell, data: ExperimentData) -> None:
        self.cell, self.data, self.labels, self._items = cell, data, data.labels, data.inputs(cell)

    def train(self, indices: Indices) -> Any:
        """Return a model trained on these items."""
        return build_model(self.cell, self.data).fit(take(self._items, indices), self.labels.take(indices))

    def encode(self, model: Any, indices: Indices) -> Codes:
        """Return the codes of these items by the network."""
        codes: Codes = model.encode(take(self._items, indices))
        return codes

    def label_names(self, indices: Indices) -> list[Any]:
        """Return the label names of these items."""
        return [self.labels.names_of(int(label)) for label in self.labels.ids[indices]]

    def score(self, model: Any, queries: Indices, codes: Codes, database: Indices) -> float:
        """Return MAP.

        Args:
            model: Encodes the queries.
            queries: The indices of the queries.
            codes: The codes of the database.
            database: The indices of the database.

        Returns:
            MAP in expectation over ties.
        """
        k = self.data.k and min(self.data.k, len(database))
        labels = self.labels.take(queries), self.labels.take(database)
        query_codes = self.encode(model, queries)
        return float(mean_average_precision(query_codes, codes, *labels, bits=self.cell.bits, k=k))


def _score_unseen_class(trial: _Trial, queries: Indices, database: Indices) -> dict[str, float]:
    """Leave the class of the first query out of training, then add its items.

    Args:
        trial: Trains and scores models.
        queries: The indices of the queries.
        database: The indices of the database.

    Returns:
        MAP of the queries of that class, its items coded by their label and by the network.
    """
    ids: NDArray[Any] = trial.labels.ids
    unseen = int(ids[queries[0]])
    is_unseen = ids[database] == unseen
    model = trial.train(database[~is_unseen])
    codes = np.empty((len(database), model.database_codes_.shape[1]), dtype=np.uint8)
    codes[~is_unseen] = model.database_codes_
    class_queries = queries[ids[queries] == unseen]
    codes[is_unseen] = model.code_for([trial.labels.names_of(unseen)])[0]
    labelled = trial.score(model, class_queries, codes, database)
    codes[is_unseen] = trial.encode(model, database[is_unseen])
    return {
        "unseen_labelled": labelled,
        "unseen_unlabelled": trial.score(model, class_queries, codes, database),
    }


def render(config: ExperimentConfig, results: Results) -> Rendering:
    """Return MAP of each scenario at each code length."""
    rows = []
    for key, description in SCENARIOS.items():
        scores = {bits: [r[key] for c, r in results if c.bits == bits and r[key] is not None] for bits in config.bits}
        if any(scores.values()):
            rows.append([description, *(format_mean(numbers) for numbers in scores.values())])
    headings = ["MAP", *(f"{bits} bits" for bits in config.bits)]
    notes = [
        describe_seeds(results),
        f"One in {_FRACTION} of the database is new; queries search the new items alone.",
    ]
    if len(rows) == len(SCENARIOS):
        notes.append("For the class never seen, its own queries search the whole database.")
    return Rendering([Table("new-items", TITLE, headings, rows, notes)])
