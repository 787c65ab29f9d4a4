"""The paper's tables and figures, and some it has not, each from one command: `adsh reproduce table1`.

An experiment names its cells and shows the records of those that are done; `run.reproduce` does the rest.
"""

from __future__ import annotations

from .cell import Cell
from .experiment_config import ExperimentConfig
from .run import EXPERIMENTS, Outcome, reproduce

__all__ = ["EXPERIMENTS", "Cell", "ExperimentConfig", "Outcome", "reproduce"]
