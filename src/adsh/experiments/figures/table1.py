"""Table 1: MAP of all methods of the paper, each trained as in the paper."""

from __future__ import annotations

from ..cell import Cell
from ..experiment_config import ExperimentConfig
from ..rendering import Rendering, Results
from ..summaries import map_table

TITLE = "MAP comparison to baselines"
METHODS = ("itq", "lin_lin", "fasth", "lfh", "lfh_decay", "sdh", "cosdish", "dsh", "dhn", "dpsh", "adsh")


def cells(config: ExperimentConfig) -> list[Cell]:
    """Return a cell for each method, code length and seed."""
    return config.cells(METHODS)


def render(config: ExperimentConfig, results: Results) -> Rendering:
    """Return the table, with the paper's values next to ours."""
    notes = [
        "The baselines learn from the sampled training items, ADSH from the whole database. MAP is in expectation over "
        "the orders of tied items; the paper's is on CNN-F, ties in the order of its database."
    ]
    return Rendering([map_table("table1", TITLE, results, config.bits, notes)])
