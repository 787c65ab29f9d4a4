"""The paper: similarity, the code table, the objective and Algorithm 1. Pure, no files.

What is exported here needs no torch; `objective` and `loop` do, and are imported where they are used.
"""

from ..labels import LabelSets
from .code_table import CodeTable
from .learned_codes import LearnedCodes
from .rows import Rows

__all__ = ["CodeTable", "LabelSets", "LearnedCodes", "Rows"]
