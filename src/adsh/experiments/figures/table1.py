"""Table 1: MAP of all methods of the paper, each trained as in the paper."""

from __future__ import annotations

from ..cell import Cell
from ..comparison import difference_table
from ..experiment_config import ExperimentConfig
from ..map_table import map_table
from ..rendering import Rendering, Results

TITLE = "MAP comparison to baselines"
METHODS = (  # those of the paper, and stabilised variants of two of them
    "itq", "lin_lin", "fasth", "lfh", "lfh_decay", "sdh", "cosdish", "dsh", "dhn", "dpsh", "dpsh_batch", "adsh",
)  # fmt: skip


def cells(config: ExperimentConfig) -> list[Cell]:
    """Return a cell for each method, code length and seed."""
    return config.cells(METHODS)


def render(config: ExperimentConfig, results: Results) -> Rendering:
    """Return the table, with the paper's values next to ours, and the differences to ADSH."""
    notes = [
        "The baselines learn from the sampled training items, ADSH from the whole database. MAP is in expectation over "
        "the orders of tied items; the paper's is on CNN-F, ties in the order of its database. LFH-decay and "
        "DPSH-batch are not in it: LFH with shrinking steps, and DPSH's loss on the pairs within a batch."
    ]
    differences = difference_table("table1-differences", results, config.bits)
    return Rendering([map_table("table1", TITLE, results, config.bits, notes), *([differences] if differences else [])])
