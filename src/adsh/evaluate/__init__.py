"""How good a ranking by Hamming distance is. Needs no torch."""

from . import metrics

__all__ = ["metrics"]
