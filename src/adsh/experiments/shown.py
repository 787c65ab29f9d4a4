"""What an experiment shows: tables, figures, and pictures of cases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..evaluate.cases import Case
from .tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Shown:
    """Of one experiment. `figures` are name -> (caption, figure), `cases` name -> queries with what they found."""

    tables: list[Table] = field(default_factory=list)
    figures: dict[str, tuple[str, Figure]] = field(default_factory=dict)
    cases: dict[str, list[Case]] = field(default_factory=dict)
