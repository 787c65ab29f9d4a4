"""What an experiment shows: tables, figures, and pictures of cases."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..evaluate.examples import Case
from .tables import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Rendering:
    """Of one experiment. `figures` are name -> (caption, figure), `cases` name -> queries with what they found.

    `rows` are the records as they are shown, where that is not as they were kept.
    """

    tables: list[Table] = field(default_factory=list)
    figures: dict[str, tuple[str, Figure]] = field(default_factory=dict)
    cases: dict[str, list[Case]] = field(default_factory=dict)
    rows: list[dict[str, Any]] | None = None
