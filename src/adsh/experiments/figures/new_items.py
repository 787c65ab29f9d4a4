"""Beyond the paper: items that come after training, labelled or not, and a class that was never seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...evaluate.metrics import mean_average_precision
from ..cell import Cell
from ..experiment_config import ExperimentConfig, ExperimentData, at
from ..measure import about, model_of, version_of_code
from ..rendering import Rendering
from ..summaries import Done, seeds_in_words, spread
from ..tables import Table

TITLE = "Items added after training"
WAYS = {
    "labelled": "new items of known classes, coded by their labels",
    "unlabelled": "new items of known classes, coded by the network",
    "learned": "the same items, learned with the others",
    "unseen_labelled": "a class never seen, coded by its label",
    "unseen_unlabelled": "a class never seen, coded by the network",
}
_SHARE = 12  # one in so many is new


def cells(config: ExperimentConfig) -> list[Cell]:
    """ADSH at every length."""
    return [replace(cell, measure="new-items") for cell in config.cells(("adsh",))]


def measured(cell: Cell, data: ExperimentData) -> dict[str, Any]:
    """MAP of queries that search the new items alone; and, for the unseen class, of its own queries among all."""
    items, (asking, database, _) = data.seen_by(cell), data.sides(cell)
    rng = np.random.default_rng([cell.seed, 7])
    is_new = np.zeros(len(database), dtype=bool)
    is_new[rng.choice(len(database), max(1, len(database) // _SHARE), replace=False)] = True
    new = database[is_new]
    names = [data.labels.names_of(int(one)) for one in data.labels.ids[new]]

    def learned(which: Any) -> Any:
        return model_of(cell, data).fit(at(items, which), data.labels.take(which))

    def judged(model: Any, who: Any, codes: Any, among: Any) -> float:
        asked = model.encode(at(items, who))
        known = data.labels.take(who), data.labels.take(among)
        return float(mean_average_precision(asked, codes, *known, bits=cell.bits, k=data.k and min(data.k, len(among))))

    part, whole = learned(database[~is_new]), learned(database)
    figures: dict[str, float | None] = {
        "labelled": judged(part, asking, part.code_for(names), new),
        "unlabelled": judged(part, asking, part.encode(at(items, new)), new),
        "learned": judged(whole, asking, whole.database_codes_[is_new], new),
    }
    if not data.several:
        unseen = int(data.labels.ids[asking[0]])  # one that somebody asks for
        theirs = data.labels.ids[database] == unseen
        without = learned(database[~theirs])
        codes = np.empty((len(database), without.database_codes_.shape[1]), dtype=np.uint8)
        codes[~theirs] = without.database_codes_
        mine = asking[data.labels.ids[asking] == unseen]
        codes[theirs] = without.code_for([data.labels.names_of(unseen)])[0]
        figures["unseen_labelled"] = judged(without, mine, codes, database)
        codes[theirs] = without.encode(at(items, database[theirs]))
        figures["unseen_unlabelled"] = judged(without, mine, codes, database)
    device = {"device": str(part.device_), "commit": version_of_code()}
    return {**about(cell, data), "new": len(new), **{way: figures.get(way) for way in WAYS}, **device}


def show(config: ExperimentConfig, done: Done) -> Rendering:
    """MAP of each way at each length."""
    rows = []
    for way, words in WAYS.items():
        found = {bits: [r[way] for c, r in done if c.bits == bits and r[way] is not None] for bits in config.bits}
        if any(found.values()):
            rows.append([words, *(spread(figures) for figures in found.values())])
    headings = ["MAP", *(f"{bits} bits" for bits in config.bits)]
    notes = [seeds_in_words(done), f"One in {_SHARE} of the database is new; queries search the new items alone."]
    if len(rows) == len(WAYS):
        notes.append("For the class never seen, its own queries search the whole database.")
    return Rendering([Table("new-items", TITLE, headings, rows, notes)])
