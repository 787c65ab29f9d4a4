"""The figures of a report, for one evaluation or several overlaid. Needs the extra `plot`.

Colour tells evaluations apart, the line tells columns apart: solid for learned codes, dashed for the network's.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import MissingExtraError
from .evaluation import COLUMNS, LEARNED, Column, Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#010203"  # text and axes; the page replaces it by the reader's text colour
COLOURS = ("#2f7ed8", "#e08214", "#1a9e77", "#d6448c", "#7d6bd0", "#a6761d", "#5aa9c7", "#888888")
SIMILAR, DISSIMILAR = COLOURS[2], COLOURS[3]

_WIDTHS = {"-": 2.8, "--": 1.3}  # both are seen where they coincide

_STYLE: Any = {
    "axes.edgecolor": INK, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK,
    "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "grid.color": "#808080",
    "grid.alpha": 0.25, "grid.linewidth": 0.6, "axes.axisbelow": True, "axes.linewidth": 0.7,
    "font.size": 10, "axes.titlesize": 10.5, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "legend.frameon": False, "legend.fontsize": 9, "legend.handlelength": 3.2,
    "lines.linewidth": 1.8, "lines.markersize": 4,
    "figure.facecolor": "none", "axes.facecolor": "none", "savefig.facecolor": "none",
    "text.parse_math": False, "svg.fonttype": "none", "svg.hashsalt": "adsh", "figure.constrained_layout.use": True,
}  # fmt: skip


def figures(evaluations: Sequence[Evaluation]) -> dict[str, tuple[str, Figure]]:
    """Every figure these evaluations have the figures for: name -> (caption, figure)."""
    made: dict[str, tuple[str, Figure]] = {}
    with style():
        for name, caption, draw in _FIGURES:
            figure = draw(evaluations)
            if figure is not None:
                made[name] = (caption, figure)
    return made


def map_by_bits(evaluations: Sequence[Evaluation]) -> Figure | None:
    """MAP against code length, a line for each group of evaluations that differ in length only."""
    groups: dict[str, list[Evaluation]] = {}
    for evaluation in evaluations:
        groups.setdefault(_without_bits(evaluation), []).append(evaluation)
    lengths = sorted({evaluation.bits for evaluation in evaluations})
    if len(lengths) < 2:
        return None
    figure, (axes,) = _canvas(1)
    for (name, group), colour in zip(groups.items(), _colours(len(groups)), strict=True):
        for column in COLUMNS:
            points: dict[int, list[float]] = {}
            for evaluation in group:
                if column in evaluation.columns:
                    points.setdefault(evaluation.bits, []).append(evaluation.columns[column].map_expected)
            if points:
                bits = sorted(points)
                means = [float(np.mean(points[b])) for b in bits]
                axes.plot(bits, means, "o-" if column == LEARNED else "o--", color=colour, label=f"{name}, {column}")
    axes.set(xlabel="bits", ylabel="MAP", xticks=lengths)
    _legend(axes)
    return figure


def precision_at_k(evaluations: Sequence[Evaluation]) -> Figure | None:
    """Share of relevant items among the first k."""
    figure, (axes,) = _canvas(1)
    for label, colour, line, column, _ in _series(evaluations):
        axes.plot(column.ks, column.precision, line, color=colour, label=label, linewidth=_WIDTHS[line])
    axes.set(xlabel="items returned, k", ylabel="precision")
    _legend(axes)
    return figure


def precision_recall(evaluations: Sequence[Evaluation]) -> Figure | None:
    """Hash look-up: a point for each Hamming radius."""
    figure, (axes,) = _canvas(1)
    for label, colour, line, column, _ in _series(evaluations):
        points = (column.radius_recall, column.radius_precision)
        axes.plot(*points, "o" + line, color=colour, label=label, markersize=3, linewidth=_WIDTHS[line])
    axes.set(xlabel="recall", ylabel="precision", xlim=(-0.02, 1.02), ylim=(-0.02, 1.04))
    _legend(axes)
    return figure


def hamming_histograms(evaluations: Sequence[Evaluation]) -> Figure | None:
    """How far apart similar and dissimilar pairs are, each as a share of its own kind."""
    series = list(_series(evaluations))
    overlaid = len(evaluations) > 1
    columns = [name for name in COLUMNS if any(name in evaluation.columns for evaluation in evaluations)]
    figure, panels = _canvas(len(columns))
    for name, axes in zip(columns, panels, strict=True):
        for _, colour, _, column, (evaluation, column_name) in series:
            if column_name != name:
                continue
            far = np.arange(evaluation.bits + 1) / (evaluation.bits if overlaid else 1)
            for kind, pairs, own in (
                ("similar", column.similar_pairs, SIMILAR),
                ("dissimilar", column.dissimilar_pairs, DISSIMILAR),
            ):
                share = np.array(pairs) / max(sum(pairs), 1)
                if overlaid:
                    dash = "-" if kind == "similar" else ":"
                    axes.plot(far, share, dash, color=colour, label=f"{evaluation.name}, {kind}")
                else:
                    axes.bar(far, share, width=0.9, color=own, alpha=0.65, label=kind)
        distance = "Hamming distance / bits" if overlaid else "Hamming distance"
        axes.set(title=COLUMNS[name], xlabel=distance, ylabel="share of pairs")
        axes.set_ylim(top=1.25 * axes.get_ylim()[1])  # room for the legend above the curves
        _legend(axes)
    return figure


def bit_balance(evaluations: Sequence[Evaluation]) -> Figure | None:
    """Share of +1 of each bit: a half is balanced."""
    figure, (axes,) = _canvas(1)
    for label, colour, line, column, _ in _series(evaluations):
        axes.plot(
            range(1, len(column.balance) + 1), column.balance, "o" + line, color=colour, label=label, markersize=3
        )
    axes.axhline(0.5, color="#808080", linewidth=0.8)
    axes.set(xlabel="bit", ylabel="share of +1", ylim=(-0.03, 1.03))
    _legend(axes)
    return figure


def bit_correlation(evaluations: Sequence[Evaluation]) -> Figure | None:
    """Correlation between bits over the database, a panel a coding; at most twelve."""
    series = list(_series(evaluations))[:12]
    figure, panels = _canvas(len(series), square=True)
    for (label, _, _, column, _), axes in zip(series, panels, strict=True):
        edges = (0.5, len(column.balance) + 0.5)  # bits are numbered from 1, as in the other figures
        extent = (*edges, *reversed(edges))
        image = axes.imshow(column.correlation, cmap="RdBu_r", vmin=-1, vmax=1, interpolation="nearest", extent=extent)
        axes.set_title(label)
        axes.grid(visible=False)
        axes.set(xlabel="bit", ylabel="bit")
    figure.colorbar(image, ax=list(panels), shrink=0.7, label="correlation").outline.set_visible(False)
    return figure


def items_returned(evaluations: Sequence[Evaluation]) -> Figure | None:
    """Hash look-up: how many items a query gets back within each radius."""
    figure, (axes,) = _canvas(1)
    for label, colour, line, column, _ in _series(evaluations):
        returned = column.radius_returned
        axes.plot(range(len(returned)), returned, line, color=colour, label=label, linewidth=_WIDTHS[line])
    axes.set(xlabel="Hamming radius", ylabel="items returned")
    axes.set_ylim(bottom=0)
    _legend(axes)
    return figure


def loss_by_iteration(evaluations: Sequence[Evaluation]) -> Figure | None:
    """The objective after each outer iteration."""
    return _by_iteration(evaluations, "loss", "loss a pair, J / (m n)")


def rows_by_iteration(evaluations: Sequence[Evaluation]) -> Figure | None:
    """Distinct rows of the code table after each outer iteration."""
    return _by_iteration(evaluations, "rows", "rows of the code table")


def _by_iteration(evaluations: Sequence[Evaluation], key: str, words: str) -> Figure | None:
    trained = [evaluation for evaluation in evaluations if evaluation.history and key in evaluation.history[-1]]
    if not trained:
        return None
    figure, (axes,) = _canvas(1)
    for evaluation, colour in zip(trained, _colours(len(trained)), strict=True):
        steps = [record["outer"] for record in evaluation.history]
        values = [record[key] for record in evaluation.history]
        axes.plot(steps, values, "o-" if len(steps) == 1 else "-", color=colour, label=evaluation.name)
    axes.set(xlabel="outer iteration", ylabel=words)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_ylim(bottom=0)
    if len(trained) > 1:
        _legend(axes)
    return figure


_FIGURES: tuple[tuple[str, str, Callable[[Sequence[Evaluation]], Any]], ...] = (
    ("map_by_bits", "Mean average precision by code length, in expectation over ties.", map_by_bits),
    ("precision_at_k", "Precision among the first k items returned, in expectation over ties.", precision_at_k),
    (
        "precision_recall",
        "Hash look-up: precision and recall at each Hamming radius, from 0 on the left. An empty look-up counts 0.",
        precision_recall,
    ),
    ("returned", "Hash look-up: items that a query gets back within each Hamming radius, on average.", items_returned),
    ("balance", "How often each bit is +1 over the database.", bit_balance),
    ("loss", "Training: the objective after each outer iteration.", loss_by_iteration),
    ("rows", "Training: how few distinct rows hold the codes of the whole database.", rows_by_iteration),
    ("hamming", "Hamming distances between queries and similar or dissimilar items.", hamming_histograms),
    (
        "correlation",
        "Correlation between the bits over the database (of the first twelve codings, where there are more).",
        bit_correlation,
    ),
)


def _series(evaluations: Sequence[Evaluation]) -> Iterator[tuple[str, str, str, Column, tuple[Evaluation, str]]]:
    """(label, colour, line, column, (evaluation, column's name)) of each column of each evaluation."""
    for evaluation, colour in zip(evaluations, _colours(len(evaluations)), strict=True):
        for name, column in evaluation.columns.items():
            alone = len(evaluations) == 1
            label = COLUMNS[name] if alone else f"{evaluation.name}, {name}"
            shade = colour if not alone or name == LEARNED else COLOURS[1]
            yield label, shade, "-" if name == LEARNED else "--", column, (evaluation, name)


def _without_bits(evaluation: Evaluation) -> str:
    return evaluation.name.replace(f", {evaluation.bits} bits", "").replace(f" {evaluation.bits} bits", "")


def _colours(count: int) -> list[str]:
    return [COLOURS[i % len(COLOURS)] for i in range(count)]


def _legend(axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) <= 2:
        axes.legend(handles, labels)
        return
    across = 2 if max(map(len, labels)) <= 30 else 1  # below the figure rather than over the lines
    axes.legend(handles, labels, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=across)
    figure = axes.get_figure(root=True)
    if figure is not None and axes is figure.get_axes()[0]:  # once a figure: room for the rows of the legend
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height + 0.21 * -(-len(labels) // across))


def _canvas(panels: int, *, square: bool = False) -> tuple[Figure, list[Any]]:
    from matplotlib.figure import Figure

    across = min(panels, 3 if square else 2)
    down = -(-panels // across)
    size = (3.6 * across + 0.8, 3.4 * down) if square else (5.0 * across, 3.3 * down)
    figure = Figure(figsize=size)
    grid = figure.subplots(down, across, squeeze=False).ravel().tolist()
    for axes in grid[panels:]:
        axes.remove()
    return figure, grid[:panels]


def style() -> Any:
    """How figures look, as a context; an error that says what to install where there is no matplotlib."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise MissingExtraError("figures need matplotlib, the extra plot: pip install matplotlib") from None
    return matplotlib.rc_context(_STYLE)


def as_svg(figure: Figure) -> str:
    """The figure as an <svg> element for a page: it scales, and its ink is the page's text colour."""
    buffer = io.StringIO()
    with style():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(r'<svg[^>]*?viewBox="([^"]+)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true">', svg, count=1)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", svg)  # the same in every figure of a page


def as_png(figure: Figure) -> bytes:
    """The figure on white, for Markdown and for slides."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format="png", dpi=150, facecolor="white")
    return buffer.getvalue()
