"""A rendered experiment: its tables, its figures, and images of example queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..evaluate.examples import Case
from .cell import Cell, Record
from .tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Results = Sequence[tuple[Cell, Record]]


@dataclass(frozen=True)
class Rendering:
    """The tables and figures of one experiment.

    Attributes:
        tables: The tables, in order.
        figures: File name -> (caption, figure).
        cases: Method -> example queries with their nearest items.
        rows: The records to write, where they differ from the stored ones.
    """

    tables: list[Table] = field(default_factory=list)
    figures: dict[str, tuple[str, Figure]] = field(default_factory=dict)
    cases: dict[str, list[Case]] = field(default_factory=dict)
    rows: list[Record] | None = None
