"""Table 2: MAP of the methods that learn the codes of the database directly, and of a classifier."""

from __future__ import annotations

from ..cell import Cell
from ..comparison import difference_table
from ..experiment_config import ExperimentConfig
from ..map_table import map_table
from ..rendering import Rendering, Results

TITLE = "MAP comparison to baselines which learn the codes of the database directly"
METHODS = ("lin_v", "lfh_d", "lfh_decay_d", "sdh_d", "cosdish_d", "classifier_d", "adsh")


def cells(config: ExperimentConfig) -> list[Cell]:
    """Return a cell for each method, code length and seed."""
    return config.cells(METHODS)


def render(config: ExperimentConfig, results: Results) -> Rendering:
    """Return the table, with the paper's values next to ours, and the differences to ADSH."""
    notes = [
        "All learn from the whole database. With one code a class the learned codes are classification by another "
        "name: the classifier, which gives each item the code of its class, is what they must be told apart from."
    ]
    differences = difference_table("table2-differences", results, config.bits)
    return Rendering([map_table("table2", TITLE, results, config.bits, notes), *([differences] if differences else [])])
