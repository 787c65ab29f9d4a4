"""How good a ranking by Hamming distance is: metrics, a model's evaluation in three columns, its report. No torch."""

from . import metrics
from .baselines import Baseline, evaluate_baselines
from .columns import HASHED, LEARNED, NETWORK, NEW
from .evaluation import Evaluation, evaluate_codes, evaluate_codings, evaluate_model
from .report import compare_reports, read_report, write_report

__all__ = [
    "HASHED",
    "LEARNED",
    "NETWORK",
    "NEW",
    "Baseline",
    "Evaluation",
    "compare_reports",
    "evaluate_baselines",
    "evaluate_codes",
    "evaluate_codings",
    "evaluate_model",
    "metrics",
    "read_report",
    "write_report",
]
