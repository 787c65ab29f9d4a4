"""Beyond the paper: the learned codes of the database beside codes that the hash function gives the same items."""

from __future__ import annotations

from .. import drawing
from ..experiment_config import ExperimentConfig
from ..rendering import Rendering
from ..summaries import Done, mean, rows_of, seeds_in_words, spread, values
from ..tables import Table
from . import table2

TITLE = "Codes as learned, and codes by the hash function"

cells = table2.cells


def show(config: ExperimentConfig, done: Done) -> Rendering:
    """Both columns of every method: a labelled database, and one that nobody labelled."""
    rows = []
    series: dict[str, dict[str, dict[int, float]]] = {"learned": {}, "hashed": {}}
    for name, group in rows_of(done).items():
        cells = [name]
        for bits in config.bits:
            both = [values(group, key, bits=bits) for key in ("map_expected", "map_network")]
            cells += [spread(figures) for figures in both]
            for kind, figures in zip(series, both, strict=True):
                if figures:
                    series[kind].setdefault(name, {})[bits] = mean(figures)
        rows.append(cells)
    headings = ["method", *(text for bits in config.bits for text in (f"{bits} bits, learned", "hashed"))]
    notes = [
        seeds_in_words(done),
        "Learned: a database whose labels are known, which is ADSH's setting. Hashed: the same items coded as queries "
        "are, as where nobody labelled them. Only the second compares with methods that have no learned codes.",
    ]
    parts = [
        ("codes as learned", series["learned"], "bits", "MAP", ""),
        ("codes by the hash function", series["hashed"], "bits", "MAP", ""),
    ]
    caption = "MAP against the code length: the database's codes as learned, and by the hash function."
    table = Table("columns", TITLE, headings, rows, notes)
    return Rendering([table], {"columns": (caption, drawing.side_by_side(parts))})
