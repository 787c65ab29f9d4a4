"""The tables and figures of the paper, and some more, each by one command: `adsh reproduce table1`.

A module of `figures` lists the cells of an experiment and renders their results; `run.reproduce` does the rest.
"""

from __future__ import annotations

from .cell import Cell
from .experiment_config import ExperimentConfig, Setting
from .run import EXPERIMENTS, Outcome, reproduce

__all__ = ["EXPERIMENTS", "Cell", "ExperimentConfig", "Outcome", "Setting", "reproduce"]
