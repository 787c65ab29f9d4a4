"""Metrics of retrieval by Hamming distance: `adsh.evaluate.metrics` under its short name."""

from .evaluate.metrics import *  # noqa: F403  # a re-export: its `__all__` says which names
