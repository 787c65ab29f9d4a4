"""Table 1: MAP of every method of the paper, each trained as the paper trains it."""

from __future__ import annotations

from .cell import Cell
from .setting import Setting
from .shown import Shown
from .summaries import Done, map_table

TITLE = "MAP comparison to baselines"
METHODS = ("itq", "lin_lin", "fasth", "lfh", "sdh", "cosdish", "dsh", "dhn", "dpsh", "adsh")


def cells(setting: Setting) -> list[Cell]:
    """All methods at every length."""
    return setting.cells(METHODS)


def show(setting: Setting, done: Done) -> Shown:
    """The table, the paper's figures beside."""
    notes = [
        "The baselines learn from the sampled training items, ADSH from the whole database. MAP is in expectation over "
        "the orders of tied items; the paper's is on CNN-F, ties in the order of its database."
    ]
    return Shown([map_table("table1", TITLE, done, setting.bits, notes)])
