"""Table 1: MAP of every method of the paper, each trained as the paper trains it."""

from __future__ import annotations

from ..cell import Cell
from ..experiment_config import ExperimentConfig
from ..rendering import Rendering
from ..summaries import Done, map_table

TITLE = "MAP comparison to baselines"
METHODS = ("itq", "lin_lin", "fasth", "lfh", "sdh", "cosdish", "dsh", "dhn", "dpsh", "adsh")


def cells(config: ExperimentConfig) -> list[Cell]:
    """All methods at every length."""
    return config.cells(METHODS)


def show(config: ExperimentConfig, done: Done) -> Rendering:
    """The table, the paper's figures beside."""
    notes = [
        "The baselines learn from the sampled training items, ADSH from the whole database. MAP is in expectation over "
        "the orders of tied items; the paper's is on CNN-F, ties in the order of its database."
    ]
    return Rendering([map_table("table1", TITLE, done, config.bits, notes)])
