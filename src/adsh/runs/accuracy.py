"""The accuracy of a run's model, written into its model card once it was evaluated on its own split."""

from __future__ import annotations

from pathlib import Path

from ..evaluate import Evaluation
from ..evaluate.class_section import markdown_table
from ..evaluate.columns import COLUMNS
from ..evaluate.comparison_section import baseline_notes, comparison
from ..evaluate.report import HEADINGS, cross_fit_notes, table
from ..models.card import with_accuracy
from ..models.storage_format import CARD
from ..utils.files import replacing_file

_SHOWN = ("database", "MAP", "95 %", "over classes", "chance")


def write_accuracy(folder: Path, evaluation: Evaluation) -> None:
    """Write the figures of an evaluation into the model card of a folder; those of an earlier one are replaced.

    A model without a card, such as that of a method on features, stays as it is.
    """
    path = folder / CARD
    if not path.is_file():
        return
    card = with_accuracy(path.read_text(encoding="utf-8"), accuracy(evaluation))
    with replacing_file(path) as file:
        file.write(card.encode())


def accuracy(evaluation: Evaluation) -> str:
    """Return the figures of an evaluation in Markdown: every column, and the baselines on the same features."""
    over = "all items" if evaluation.k is None else f"the first {evaluation.k:,} items"
    about = evaluation.about
    split = f", protocol {about['protocol']}, seed {about['split_seed']}" if "protocol" in about else ""
    cells = [dict(zip(HEADINGS, row, strict=True)) for row in table([evaluation])]
    lines = [
        f"{evaluation.queries:,} queries that were not in training, {evaluation.database:,} database items{split}; MAP "
        f"over {over}, with its 95 % interval by bootstrap over the queries, its mean over classes, and that of a "
        f"random order. *{COLUMNS['new']}* were not in training either: each query, searched among the others.",
        "",
        *markdown_table(_SHOWN, [[row[name] for name in _SHOWN] for row in cells]),
    ]
    lines += [line for note in cross_fit_notes([evaluation]) for line in ("", note)]
    headings, compared = comparison([evaluation])
    if compared:
        lines += ["", "Next to baselines on the same features, which rank without codes:", ""]
        lines += markdown_table(headings, compared)
    lines += [line for note in baseline_notes([evaluation]) for line in ("", note)]
    return "\n".join(lines)
