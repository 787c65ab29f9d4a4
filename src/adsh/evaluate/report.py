"""Write evaluations as JSON, Markdown and one self-contained HTML page, and read them back to compare several."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import AdshWarning, FolderError, InputError, MissingExtraError, first_line
from ..utils.files import check_writable
from ..utils.redaction import redact_paths
from . import plots
from .class_section import class_markdown, markdown_table
from .columns import COLUMNS
from .comparison_section import TITLE as COMPARISON
from .comparison_section import WORDS as COMPARISON_WORDS
from .comparison_section import baseline_notes, comparison
from .evaluation import Evaluation
from .in_words import headline, worst_confusions
from .page import page

FORMAT, FORMAT_VERSION = "adsh-report", 1
JSON, MARKDOWN, HTML = "report.json", "report.md", "report.html"

HEADINGS = (
    "model", "bits", "database", "MAP", "95 %", "over classes", "chance", "stable", "tie range", "NDCG", "P@100",
    "distinct codes",
)  # fmt: skip


def write_report(
    evaluations: Evaluation | Sequence[Evaluation], folder: str | Path, *, title: str | None = None
) -> Path:
    """Write the report of one evaluation, or of several overlaid.

    Without matplotlib the report has no figures, and a warning says how to get them.

    Args:
        evaluations: one, or several.
        folder: where report.json, report.md, report.html and figures/ go.
        title: of the report; the name of the evaluation unless given.

    Returns:
        The path of report.html.
    """
    evaluations = [evaluations] if isinstance(evaluations, Evaluation) else _distinct_names(evaluations)
    if not evaluations:
        raise InputError("there is no evaluation to report: give at least one")
    folder = Path(folder)
    check_writable(folder, 20_000_000)
    title = title or (evaluations[0].name if len(evaluations) == 1 else f"{len(evaluations)} models compared")
    try:
        figures = plots.figures(evaluations)
    except MissingExtraError as missing:
        warnings.warn(f"the report has no figures: {missing}", AdshWarning, stacklevel=2)
        figures = {}
    rows = table(evaluations)
    text = _as_json(title, evaluations)
    try:
        (folder / "figures").mkdir(parents=True, exist_ok=True)
        for name, (_, figure) in figures.items():
            (folder / "figures" / f"{name}.png").write_bytes(plots.as_png(figure))
        drawn = {name: (caption, plots.as_svg(figure)) for name, (caption, figure) in figures.items()}
        captions = {name: caption for name, (caption, _) in figures.items()}
        (folder / MARKDOWN).write_text(_markdown(title, evaluations, rows, captions), encoding="utf-8")
        html = page(title, evaluations, (HEADINGS, rows), drawn, cross_fit_notes(evaluations))
        (folder / HTML).write_text(html, encoding="utf-8")
        (folder / JSON).write_text(text, encoding="utf-8")
    except OSError as problem:
        raise FolderError(f"cannot write the report to {folder}: {problem.strerror or problem}") from None
    return folder / HTML


def write_figures(evaluations: Sequence[Evaluation], folder: Path) -> None:
    """Write report.json alone, for `read_report`: without cases and their images, and without paths of this machine."""
    bare = [replace(one, cases={}, history=[], about=redact_paths(one.about)) for one in evaluations]
    (folder / JSON).write_text(_as_json(", ".join(one.name for one in bare), bare), encoding="utf-8")


def _as_json(title: str, evaluations: Sequence[Evaluation]) -> str:
    saved: dict[str, Any] = {"format": FORMAT, "format_version": FORMAT_VERSION, "title": title}
    saved["evaluations"] = [_plain(evaluation.to_json()) for evaluation in evaluations]
    return json.dumps(saved, indent=1, allow_nan=False) + "\n"


def read_report(folder: str | Path) -> list[Evaluation]:
    """Return the evaluations of a report."""
    path = Path(folder) / JSON if Path(folder).is_dir() else Path(folder)
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or first_line(problem)
        raise InputError(f"{path} cannot be read as a report ({reason}): give a folder with a {JSON}") from None
    version = saved.get("format_version") if isinstance(saved, dict) else None
    if isinstance(version, int) and version > FORMAT_VERSION:
        raise InputError(f"{path} has format version {version}, newer than this adsh reads: upgrade adsh")
    complete = isinstance(version, int) and isinstance(saved.get("evaluations"), list)
    if not complete or saved.get("format") != FORMAT:
        raise InputError(f"{path} is not a complete report of adsh: give a folder with a {JSON}")
    return [Evaluation.from_json(evaluation) for evaluation in saved["evaluations"]]


def compare_reports(reports: Sequence[str | Path], folder: str | Path, *, title: str | None = None) -> Path:
    """Write one report of all the evaluations of several, overlaid in the same figures and in one table.

    Args:
        reports: folders of reports, or their report.json.
        folder: where the new report goes.
        title: of the new report.

    Returns:
        The path of its page.
    """
    evaluations = [evaluation for report in reports for evaluation in read_report(report)]
    return write_report(evaluations, folder, title=title)


def table(evaluations: Sequence[Evaluation]) -> list[tuple[str, ...]]:
    """Return a row for each column of each evaluation."""
    rows: list[tuple[str, ...]] = []
    for evaluation in evaluations:
        for name, column in evaluation.columns.items():
            at_100 = _share(column.precision[column.ks.index(100)]) if 100 in column.ks else "–"
            rows.append(
                (
                    evaluation.name,
                    str(evaluation.bits),
                    COLUMNS[name],
                    _share(column.map_expected),
                    "–" if column.map_interval is None else "{:.3f} to {:.3f}".format(*column.map_interval),
                    "–" if column.map_classes is None else _share(column.map_classes),
                    "–" if column.chance is None else _share(column.chance),
                    _share(column.map_stable),
                    f"{_share(column.map_lowest)} to {_share(column.map_highest)}",
                    _share(column.ndcg),
                    at_100,
                    f"{column.distinct_codes:,}",
                )
            )
        rows += _cross_fit_rows(evaluation)
    return rows


def _cross_fit_rows(evaluation: Evaluation) -> list[tuple[str, ...]]:
    """Return a row for each column of the folds; it has no more than MAP."""
    found = evaluation.cross_fit
    if found is None:
        return []
    rows = []
    for name, column in found.columns.items():
        figures = (
            _share(column.map_expected), "{:.3f} to {:.3f}".format(*column.map_interval), _share(column.map_classes),
            _share(column.chance),
        )  # fmt: skip
        row = (evaluation.name, str(evaluation.bits), f"{COLUMNS[name]}, {found.folds} folds", *figures)
        rows.append((*row, *["–"] * (len(HEADINGS) - len(row))))
    return rows


def cross_fit_notes(evaluations: Sequence[Evaluation]) -> list[str]:
    """Return a sentence for each evaluation that was cross-fitted, or could have been."""
    notes = []
    for evaluation in evaluations:
        found, of = evaluation.cross_fit, f" ({evaluation.name})" * (len(evaluations) > 1)
        if found is not None:
            notes.append(
                f"Folds{of}: the held-out part is small, so {found.folds} further fits each left out a fold, whose "
                f"items were the queries, and new: {found.queries:,} queries against {found.database:,} items each, "
                f"{found.seconds:,.1f} s."
            )
        elif evaluation.cross_fit_missing:
            notes.append(f"The held-out part is small, and not cross-fitted{of}: {evaluation.cross_fit_missing}.")
    return notes


def _distinct_names(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """Return the evaluations with distinct names: where some are equal, bits, seed or a number is added."""
    names = [evaluation.name for evaluation in evaluations]
    by_bits = [f", {evaluation.bits} bits" for evaluation in evaluations]
    by_seed = [f", seed {evaluation.about.get('seed')}" for evaluation in evaluations]
    for marks in (by_bits, by_seed):
        marked = set(zip(names, marks, strict=True))
        variants = Counter(name for name, _ in marked)  # how many marks each name comes with
        names = [name + mark if variants[name] > 1 else name for name, mark in zip(names, marks, strict=True)]
    seen: Counter[str] = Counter()
    renamed = []
    for name, evaluation in zip(names, evaluations, strict=True):
        seen[name] += 1
        renamed.append(replace(evaluation, name=f"{name} ({seen[name]})" if names.count(name) > 1 else name))
    return renamed


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: NumPy's numbers as Python's, None for NaN, and other objects as text."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def _share(value: float) -> str:
    return f"{value:.4f}"


def _markdown(
    title: str, evaluations: Sequence[Evaluation], rows: list[tuple[str, ...]], captions: dict[str, str]
) -> str:
    lines = [f"# {title}", ""]
    if len(evaluations) == 1:
        lines += [
            line for said in (headline(evaluations[0]), worst_confusions(evaluations[0])) if said for line in (said, "")
        ]
    lines += [_row(HEADINGS), _row(["---"] * len(HEADINGS)), *(_row(row) for row in rows), ""]
    for evaluation in evaluations:
        about = ", ".join(f"{key} {value}" for key, value in evaluation.about.items())
        over = "all items" if evaluation.k is None else f"the first {evaluation.k:,}, divisor {evaluation.divisor}"
        lines.append(
            f"- **{evaluation.name}**: {evaluation.queries:,} queries, {evaluation.database:,} database items, "
            f"MAP and NDCG over {over}; {evaluation.without_relevant:,} queries have no relevant item and count 0. "
            f"{about}"
        )
    lines.append("")
    lines += [line for note in cross_fit_notes(evaluations) for line in (note, "")]
    headings, compared = comparison(evaluations)
    if compared:
        lines += [f"## {COMPARISON}", "", COMPARISON_WORDS, "", *markdown_table(headings, compared), ""]
    lines += [line for note in baseline_notes(evaluations) for line in (note, "")]
    if len(evaluations) == 1:
        lines += class_markdown(evaluations[0])
    for name, caption in captions.items():
        lines += [f"![{caption}](figures/{name}.png)", "", f"*{caption}*", ""]
    return "\n".join(lines)


def _row(cells: Sequence[Any]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
