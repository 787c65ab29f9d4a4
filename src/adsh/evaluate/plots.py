"""The figures of a report, for one evaluation or several overlaid. Needs the extra `plot`.

Each evaluation has a color; the line style is that of the column: solid for learned codes, dashed for the network's.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import MissingExtraError
from .columns import COLUMNS, LEARNED, NEW, Column
from .evaluation import Evaluation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#010203"  # text and axes; the page replaces it by the text color of the reader
COLORS = ("#2f7ed8", "#e08214", "#1a9e77", "#d6448c", "#7d6bd0", "#a6761d", "#5aa9c7", "#888888")
SIMILAR, DISSIMILAR = COLORS[2], COLORS[3]

_LINES = {LEARNED: "-", NEW: ":"}  # others are dashed
_WIDTHS = {"-": 2.8, "--": 1.3, ":": 1.6}  # so that all are visible where they coincide

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
    """Return caption and figure by name: every figure that these evaluations have the values for."""
    drawn: dict[str, tuple[str, Figure]] = {}
    with style():
        for name, caption, draw in _FIGURES:
            figure = draw(evaluations)
            if figure is not None:
                drawn[name] = (caption, figure)
    return drawn


def map_by_bits(evaluations: Sequence[Evaluation]) -> Figure | None:
    """Draw MAP against code length, a line for each group of evaluations that differ in length only."""
    groups: dict[str, list[Evaluation]] = {}
    for evaluation in evaluations:
        groups.setdefault(_without_bits(evaluation), []).append(evaluation)
    lengths = sorted({evaluation.bits for evaluation in evaluations})
    if len(lengths) < 2:
        return None
    figure, (axes,) = _canvas(1)
    for (name, group), color in zip(groups.items(), _colors(len(groups)), strict=True):
        for column in COLUMNS:
            points: dict[int, list[float]] = {}
            for evaluation in group:
                if column in evaluation.columns:
                    points.setdefault(evaluation.bits, []).append(evaluation.columns[column].map_expected)
            if points:
                bits = sorted(points)
                means = [float(np.mean(points[b])) for b in bits]
                axes.plot(bits, means, "o" + _LINES.get(column, "--"), color=color, label=f"{name}, {column}")
    axes.set(xlabel="bits", ylabel="MAP", xticks=lengths)
    _legend(axes)
    return figure


def precision_at_k(evaluations: Sequence[Evaluation]) -> Figure | None:
    """Draw the share of relevant items among the first k."""
    figure, (axes,) = _canvas(1)
    for label, color, line, column, _ in _over_the_database(evaluations):
        axes.plot(column.ks, column.precision, line, color=color, label=label, linewidth=_WIDTHS[line])
    axes.set(xlabel="items returned, k", ylabel="precision")
    _legend(axes)
    return figure


def precision_recall(evaluations: Sequence[Evaluation]) -> Figure | None:
    """Draw precision and recall of hash look-ups, a point for each Hamming radius."""
    figure, (axes,) = _canvas(1)
    for label, color, line, column, _ in _series(evaluations):
        points = (column.radius_recall, column.radius_precision)
        axes.plot(*points, "o" + line, color=color, label=label, markersize=3, linewidth=_WIDTHS[line])
    axes.set(xlabel="recall", ylabel="precision", xlim=(-0.02, 1.02), ylim=(-0.02, 1.04))
    _legend(axes)
    return figure


def hamming_histograms(evaluations: Sequence[Evaluation]) -> Figure | None:
    """Draw the distances of similar and of dissimilar pairs, each as a share of its own kind."""
    series = list(_series(evaluations))
    overlaid = len(evaluations) > 1
    columns = [name for name in COLUMNS if any(name in evaluation.columns for evaluation in evaluations)]
    figure, panels = _canvas(len(columns))
    for name, axes in zip(columns, panels, strict=True):
        for _, color, _, column, (evaluation, column_name) in series:
            if column_name != name:
                continue
            distances = np.arange(evaluation.bits + 1) / (evaluation.bits if overlaid else 1)
            for kind, pairs, own in (
                ("similar", column.similar_pairs, SIMILAR),
                ("dissimilar", column.dissimilar_pairs, DISSIMILAR),
            ):
                share = np.array(pairs) / max(sum(pairs), 1)
                if overlaid:
                    dash = "-" if kind == "similar" else ":"
                    axes.plot(distances, share, dash, color=color, label=f"{evaluation.name}, {kind}")
                else:
                    axes.bar(distances, share, width=0.9, color=own, alpha=0.65, label=kind)
        distance = "Hamming distance / bits" if overlaid else "Hamming distance"
        axes.set(title=COLUMNS[name], xlabel=distance, ylabel="share of pairs")
        axes.set_ylim(top=1.25 * axes.get_ylim()[1])  # room for the legend above the curves
        _legend(axes)
    return figure


def bit_balance(evaluations: Sequence[Evaluation]) -> Figure | None:
    """Draw the share of +1 of each bit: a half is balanced."""
    figure, (axes,) = _canvas(1)
    for label, color, line, column, _ in _series(evaluations):
        axes.plot(range(1, len(column.balance) + 1), column.balance, "o" + line, color=color, label=label, markersize=3)
    axes.axhline(0.5, color="#808080", linewidth=0.8)
    axes.set(xlabel="bit", ylabel="share of +1", ylim=(-0.03, 1.03))
    _legend(axes)
    return figure


def bit_correlation(evaluations: Sequence[Evaluation]) -> Figure | None:
    """Draw the correlation between bits over the database, a panel for each coding; at most twelve."""
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
    """Draw how many items a hash look-up returns within each radius."""
    figure, (axes,) = _canvas(1)
    for label, color, line, column, _ in _over_the_database(evaluations):
        returned = column.radius_returned
        axes.plot(range(len(returned)), returned, line, color=color, label=label, linewidth=_WIDTHS[line])
    axes.set(xlabel="Hamming radius", ylabel="items returned")
    axes.set_ylim(bottom=0)
    _legend(axes)
    return figure


def loss_by_iteration(evaluations: Sequence[Evaluation]) -> Figure | None:
    """Draw the objective after each outer iteration."""
    return _by_iteration(evaluations, "loss", "loss a pair, J / (m n)")


def rows_by_iteration(evaluations: Sequence[Evaluation]) -> Figure | None:
    """Draw the distinct rows of the code table after each outer iteration."""
    return _by_iteration(evaluations, "rows", "rows of the code table")


def _by_iteration(evaluations: Sequence[Evaluation], key: str, words: str) -> Figure | None:
    trained = [evaluation for evaluation in evaluations if evaluation.history and key in evaluation.history[-1]]
    if not trained:
        return None
    figure, (axes,) = _canvas(1)
    for evaluation, color in zip(trained, _colors(len(trained)), strict=True):
        steps = [record["outer"] for record in evaluation.history]
        values = [record[key] for record in evaluation.history]
        axes.plot(steps, values, "o-" if len(steps) == 1 else "-", color=color, label=evaluation.name)
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


_Series = tuple[str, str, str, Column, tuple[Evaluation, str]]


def _series(evaluations: Sequence[Evaluation]) -> Iterator[_Series]:
    """Yield (label, color, line, column, (evaluation, column's name)) for each column of each evaluation."""
    for evaluation, color in zip(evaluations, _colors(len(evaluations)), strict=True):
        for name, column in evaluation.columns.items():
            single = len(evaluations) == 1
            label = COLUMNS[name] if single else f"{evaluation.name}, {name}"
            shade = color if not single or name == LEARNED else COLORS[2 if name == NEW else 1]
            yield label, shade, _LINES.get(name, "--"), column, (evaluation, name)


def _over_the_database(evaluations: Sequence[Evaluation]) -> Iterator[_Series]:
    """Yield `_series` without new items: there are fewer of them, so their numbers of items cannot be compared."""
    return (series for series in _series(evaluations) if series[-1][1] != NEW)


def _without_bits(evaluation: Evaluation) -> str:
    return evaluation.name.replace(f", {evaluation.bits} bits", "").replace(f" {evaluation.bits} bits", "")


def _colors(count: int) -> list[str]:
    return [COLORS[i % len(COLORS)] for i in range(count)]


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
    """Return the style of the figures, as a context; raise an error that says what to install without matplotlib."""
    try:
        import matplotlib
    except ModuleNotFoundError:
        raise MissingExtraError("figures need matplotlib, the extra plot: pip install matplotlib") from None
    return matplotlib.rc_context(_STYLE)


def as_svg(figure: Figure) -> str:
    """Return the figure as an <svg> element for a page: it scales, and its ink is the text color of the page."""
    buffer = io.StringIO()
    with style():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :].replace(INK, "currentColor")
    svg = re.sub(r'<svg[^>]*?viewBox="([^"]+)"[^>]*>', r'<svg viewBox="\1" aria-hidden="true">', svg, count=1)
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    return re.sub(r' id="[A-Za-z0-9.]+_\d+"', "", svg)  # the same in every figure of a page


def as_png(figure: Figure) -> bytes:
    """Return the figure as a PNG on white, for Markdown and for slides."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format="png", dpi=150, facecolor="white")
    return buffer.getvalue()
