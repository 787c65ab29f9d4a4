"""Table 2: MAP of the methods that learn the codes of the database directly, and of a classifier."""

from __future__ import annotations

from ..cell import Cell
from ..experiment_config import ExperimentConfig
from ..rendering import Rendering, Results
from ..summaries import map_table

TITLE = "MAP comparison to baselines which learn the codes of the database directly"
METHODS = ("lin_v", "lfh_d", "lfh_decay_d", "sdh_d", "cosdish_d", "classifier_d", "adsh")


def cells(config: ExperimentConfig) -> list[Cell]:
    """Return a cell for each method, code length and seed."""
    return config.cells(METHODS)


def render(config: ExperimentConfig, results: Results) -> Rendering:
    """Return the table, with the paper's values next to ours."""
    notes = [
        "All learn from the whole database. With one code a class the learned codes are classification by another "
        "name: the classifier, which gives each item the code of its class, is what they must be told apart from."
    ]
    return Rendering([map_table("table2", TITLE, results, config.bits, notes)])
