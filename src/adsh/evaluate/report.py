"""Evaluations as JSON, Markdown and one self-contained HTML page, from which several can be compared."""

from __future__ import annotations

import json
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import AdshWarning, FolderError, InputError, MissingExtraError, first_line
from ..files import check_writable
from . import plots
from .evaluation import COLUMNS, Evaluation
from .page import page

FORMAT, FORMAT_VERSION = "adsh-report", 1
JSON, MARKDOWN, HTML = "report.json", "report.md", "report.html"

_HEADINGS = ("model", "bits", "database", "MAP", "stable", "tie range", "NDCG", "P@100", "distinct codes")


def write_report(
    evaluations: Evaluation | Sequence[Evaluation], folder: str | Path, *, title: str | None = None
) -> Path:
    """Writes the report of one evaluation, or of several overlaid, and gives the path of its page.

    Without matplotlib the report has no figures, and a warning says how to get them.
    """
    evaluations = [evaluations] if isinstance(evaluations, Evaluation) else _told_apart(evaluations)
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
    saved = {"format": FORMAT, "format_version": FORMAT_VERSION, "title": title}
    try:
        (folder / "figures").mkdir(parents=True, exist_ok=True)
        for name, (_, figure) in figures.items():
            (folder / "figures" / f"{name}.png").write_bytes(plots.as_png(figure))
        drawn = {name: (caption, plots.as_svg(figure)) for name, (caption, figure) in figures.items()}
        captions = {name: caption for name, (caption, _) in figures.items()}
        (folder / MARKDOWN).write_text(_markdown(title, evaluations, rows, captions), encoding="utf-8")
        (folder / HTML).write_text(page(title, evaluations, (_HEADINGS, rows), drawn), encoding="utf-8")
        everything = {**saved, "evaluations": [evaluation.to_json() for evaluation in evaluations]}
        (folder / JSON).write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
    except OSError as problem:
        raise FolderError(f"cannot write the report to {folder}: {problem.strerror or problem}") from None
    return folder / HTML


def read_report(folder: str | Path) -> list[Evaluation]:
    """The evaluations of a report that was written before."""
    path = Path(folder) / JSON if Path(folder).is_dir() else Path(folder)
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or first_line(problem)
        raise InputError(f"{path} cannot be read as a report ({reason}): give a folder with a {JSON}") from None
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise InputError(f"{path} is not a report of adsh: give a folder with a {JSON}")
    if saved["format_version"] > FORMAT_VERSION:
        raise InputError(
            f"{path} has format version {saved['format_version']}, newer than this adsh reads: upgrade adsh"
        )
    return [Evaluation.from_json(evaluation) for evaluation in saved["evaluations"]]


def compare_reports(reports: Sequence[str | Path], folder: str | Path, *, title: str | None = None) -> Path:
    """One report of all the evaluations of several, overlaid in the same figures and one table."""
    evaluations = [evaluation for report in reports for evaluation in read_report(report)]
    return write_report(evaluations, folder, title=title)


def table(evaluations: Sequence[Evaluation]) -> list[tuple[str, ...]]:
    """A row for each column of each evaluation."""
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
                    _share(column.map_stable),
                    f"{_share(column.map_lowest)} to {_share(column.map_highest)}",
                    _share(column.ndcg),
                    at_100,
                    f"{column.distinct_codes:,}",
                )
            )
    return rows


def _told_apart(evaluations: Sequence[Evaluation]) -> list[Evaluation]:
    """The evaluations, those of one name with their seed or a number behind it."""
    names = Counter(evaluation.name for evaluation in evaluations)
    seeds = Counter((evaluation.name, evaluation.about.get("seed")) for evaluation in evaluations)
    seen: Counter[str] = Counter()
    apart = []
    for evaluation in evaluations:
        name, seed = evaluation.name, evaluation.about.get("seed")
        seen[name] += 1
        if names[name] > 1:
            mark = f", seed {seed}" if seed is not None and seeds[name, seed] == 1 else f" ({seen[name]})"
            evaluation = replace(evaluation, name=name + mark)
        apart.append(evaluation)
    return apart


def _share(value: float) -> str:
    return f"{value:.4f}"


def _markdown(
    title: str, evaluations: Sequence[Evaluation], rows: list[tuple[str, ...]], captions: dict[str, str]
) -> str:
    lines = [f"# {title}", ""]
    lines += [_row(_HEADINGS), _row(["---"] * len(_HEADINGS)), *(_row(row) for row in rows), ""]
    for evaluation in evaluations:
        about = ", ".join(f"{key} {value}" for key, value in evaluation.about.items())
        over = "all items" if evaluation.k is None else f"the first {evaluation.k:,}, divisor {evaluation.divisor}"
        lines.append(
            f"- **{evaluation.name}**: {evaluation.queries:,} queries, {evaluation.database:,} database items, "
            f"MAP and NDCG over {over}; {evaluation.without_relevant:,} queries have no relevant item and count 0. "
            f"{about}"
        )
    lines.append("")
    for name, caption in captions.items():
        lines += [f"![{caption}](figures/{name}.png)", "", f"*{caption}*", ""]
    return "\n".join(lines)


def _row(cells: Sequence[Any]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
