"""Not in the paper: the learned codes of the database against codes of the same items by the hash function."""

from __future__ import annotations

from .. import drawing
from ..experiment_config import ExperimentConfig
from ..rendering import Rendering, Results
from ..summaries import describe_seeds, format_mean, group_by_label, mean, values
from ..tables import Table
from . import table2

TITLE = "Codes as learned, and codes by the hash function"

cells = table2.cells


def render(config: ExperimentConfig, results: Results) -> Rendering:
    """Return MAP of every method with a labelled database, and with one that has no labels."""
    rows = []
    series: dict[str, dict[str, dict[int, float]]] = {"learned": {}, "hashed": {}}
    for name, group in group_by_label(results).items():
        row = [name]
        for bits in config.bits:
            both = [values(group, key, bits=bits) for key in ("map_expected", "map_network")]
            row += [format_mean(numbers) for numbers in both]
            for kind, numbers in zip(series, both, strict=True):
                if numbers:
                    series[kind].setdefault(name, {})[bits] = mean(numbers)
        rows.append(row)
    headings = ["method", *(text for bits in config.bits for text in (f"{bits} bits, learned", "hashed"))]
    notes = [
        describe_seeds(results),
        "Learned: a database whose labels are known, which is ADSH's setting. Hashed: the same items coded as queries "
        "are, as where nobody labelled them. Only the second compares with methods that have no learned codes.",
    ]
    panels = [
        ("codes as learned", series["learned"], "bits", "MAP", ""),
        ("codes by the hash function", series["hashed"], "bits", "MAP", ""),
    ]
    caption = "MAP against the code length: the database's codes as learned, and by the hash function."
    table = Table("columns", TITLE, headings, rows, notes)
    return Rendering([table], {"columns": (caption, drawing.side_by_side(panels))})
