"""Not in the paper: the learned codes of the database against codes of the same items by the hash function."""

from __future__ import annotations

from .. import drawing
from ..experiment_config import ExperimentConfig
from ..rendering import Rendering, Results
from ..summaries import NEW_ITEMS, describe_seeds, format_mean, group_by_label, have_new_items, mean, values
from ..tables import Table
from . import table2

TITLE = "Codes as learned, and codes by the hash function"

cells = table2.cells


def render(config: ExperimentConfig, results: Results) -> Rendering:
    """Return MAP of every method with a labelled database, and with one that has no labels."""
    rows = []
    keys = {"learned": "map_expected", "hashed": "map_network"}
    keys |= {"new": "map_new"} if have_new_items(results) else {}
    series: dict[str, dict[str, dict[int, float]]] = {kind: {} for kind in keys}
    for name, group in group_by_label(results).items():
        row = [name]
        for bits in config.bits:
            scores = [values(group, key, bits=bits) for key in keys.values()]
            row += [format_mean(numbers) for numbers in scores]
            for kind, numbers in zip(series, scores, strict=True):
                if numbers:
                    series[kind].setdefault(name, {})[bits] = mean(numbers)
        rows.append(row)
    more = list(keys)[1:]
    headings = ["method", *(text for bits in config.bits for text in (f"{bits} bits, learned", *more))]
    notes = [
        describe_seeds(results),
        "Learned: a database whose labels are known, which is ADSH's setting. Hashed: the same items coded as queries "
        "are, which training has seen. Only the second compares with methods that have no learned codes.",
        *[NEW_ITEMS] * ("new" in keys),
    ]
    titles = {"learned": "codes as learned", "hashed": "codes by the hash function", "new": "new items"}
    panels = [(titles[kind], series[kind], "bits", "MAP", "") for kind in keys]
    and_new = ", and of new items" * ("new" in keys)
    caption = f"MAP against the code length: the database's codes as learned, and by the hash function{and_new}."
    table = Table("columns", TITLE, headings, rows, notes)
    return Rendering([table], {"columns": (caption, drawing.side_by_side(panels))})
