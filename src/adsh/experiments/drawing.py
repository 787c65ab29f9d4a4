"""Draw figures as in the paper: a panel per code length, a line per method, one legend. Needs the extra `plot`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..evaluate.plots import COLORS, INK, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curve = tuple[Sequence[float], Sequence[float]]
Series = Mapping[str, Mapping[Any, float]]  # method -> x -> y
Panel = tuple[str, Series, str, str, str]  # title, lines, x label, y label, logarithmic axes

_MARKERS = "os^Dv<>Phx*+"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_MAX_TICKS = 6  # x values that can all be labelled
_HIGHLIGHTED = "ADSH"  # drawn on top of the others, in a thicker line


def panels(curves: Mapping[int, Mapping[str, Curve]], x: str, y: str, *, markers: bool = False) -> Figure:
    """Draw a panel for each code length, with a curve for each method.

    Args:
        curves: Code length -> method -> curve.
        x: The label of the x axis.
        y: The label of the y axis.
        markers: Mark the points of the curves.

    Returns:
        The figure.
    """
    with style():
        figure, grid = _canvas(len(curves))
        for axes, (bits, methods) in zip(grid, curves.items(), strict=True):
            for number, (name, (xs, ys)) in enumerate(methods.items()):
                axes.plot(xs, ys, **_line_style(name, number, markers=markers))
            axes.set(title=f"{bits} bits", xlabel=x, ylabel=y)
        _legend(figure, grid)
    return figure


def lines(series: Series, x: str, y: str, **axes_options: Any) -> Figure:
    """Draw one panel with a line for each method.

    Args:
        series: The lines.
        x: The label of the x axis.
        y: The label of the y axis.
        **axes_options: Options of `draw_lines`.

    Returns:
        The figure.
    """
    with style():
        figure, (axes,) = _canvas(1)
        draw_lines(axes, series, x, y, **axes_options)
        _legend(figure, [axes])
    return figure


def side_by_side(parts: Sequence[Panel]) -> Figure:
    """Draw several panels; if all have the same y label, they have the same scale."""
    with style():
        figure, grid = _canvas(len(parts))
        for axes, (title, series, x, y, log) in zip(grid, parts, strict=True):
            draw_lines(axes, series, x, y, log=log)
            axes.set_title(title)
        if len({y for *_, y, _ in parts}) == 1:
            limits = [axes.get_ylim() for axes in grid]
            for axes in grid:
                axes.set_ylim(min(low for low, _ in limits), max(high for _, high in limits))
        _legend(figure, grid)
    return figure


def draw_lines(
    axes: Axes,
    series: Series,
    x: str,
    y: str,
    *,
    log: str = "",
    from_zero: bool = False,
) -> None:
    """Draw the lines of one panel.

    Args:
        axes: The axes to draw into.
        series: The lines.
        x: The label of the x axis.
        y: The label of the y axis.
        log: The logarithmic axes: `x`, `y` or `xy`.
        from_zero: Let a linear y axis start at zero.
    """
    for number, (name, points) in enumerate(series.items()):
        axes.plot(list(points), list(points.values()), **_line_style(name, number, markers=True))
    axes.set(xlabel=x, ylabel=y)
    for axis, name, scale, limits in (
        (axes.xaxis, "x", axes.set_xscale, axes.get_xlim), (axes.yaxis, "y", axes.set_yscale, axes.get_ylim)
    ):  # fmt: skip
        if name in log:
            scale("log")
            low, high = limits()
            axis.set_major_formatter(_power)
            axis.set_minor_formatter(_two_or_five if high < 100 * low else lambda value, _: "")
    if "y" not in log and from_zero:
        axes.set_ylim(0, 1.1 * axes.get_ylim()[1])
    ticks = sorted({point for points in series.values() for point in points})
    if "x" not in log and len(ticks) <= _MAX_TICKS:
        axes.set_xticks(ticks)


def _power(value: float, _: float) -> str:
    """Return the label of a power of ten on a logarithmic axis."""
    return f"{value:,g}" if 1e-3 <= value <= 1e4 else "10" + str(round(math.log10(value))).translate(_SUPERSCRIPTS)


def _two_or_five(value: float, _: float) -> str:
    """Return the label of a tick between powers of ten, on an axis that spans few of them."""
    return f"{value:,g}" if f"{value:e}"[0] in "25" else ""


def ranges(rows: Mapping[str, tuple[float, float, float, float]], x: str) -> Figure:
    """Draw a bar per row from (lowest, expected, stable, highest), with a mark at the second and third value."""
    with style():
        figure, (axes,) = _canvas(1, height=0.9 + 0.32 * max(len(rows), 3))
        for row, (lowest, expected, stable, highest) in enumerate(rows.values()):
            axes.plot([lowest, highest], [row, row], color=COLORS[0], linewidth=5, alpha=0.35, solid_capstyle="butt")
            axes.plot(expected, row, "o", color=COLORS[0], label="expected" if not row else None)
            axes.plot(stable, row, "x", color=COLORS[3], label="stable" if not row else None)
        axes.set_yticks(range(len(rows)), list(rows))
        axes.invert_yaxis()
        axes.set(xlabel=x)
        _legend(figure, [axes])
    return figure


def _line_style(name: str, number: int, *, markers: bool) -> dict[str, Any]:
    """Return the options of a line.

    Args:
        name: The method.
        number: The place of the line among the others, which determines its colour and marker.
        markers: Mark its points.

    Returns:
        Options of `Axes.plot`.
    """
    highlighted = name.startswith(_HIGHLIGHTED)
    line: dict[str, Any] = {
        "label": name,
        "color": INK if highlighted else COLORS[number % len(COLORS)],
        "zorder": 3 if highlighted else 2,
    }
    solid = number < len(COLORS) or highlighted
    line |= {"linewidth": 2.4 if highlighted else 1.3, "linestyle": "-" if solid else "--"}
    return line | ({"marker": _MARKERS[number % len(_MARKERS)], "markersize": 3.5} if markers else {})


def _canvas(count: int, height: float = 3.1) -> tuple[Figure, list[Any]]:
    from matplotlib.figure import Figure

    columns = min(count, 2)
    rows = -(-count // columns)
    figure = Figure(figsize=(5.6 if count == 1 else 4.4 * columns, height * rows + 0.3))
    grid = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axes in grid[count:]:
        axes.remove()
    return figure, grid[:count]


def _legend(figure: Figure, grid: Sequence[Axes]) -> None:
    """Add one legend for all panels, below them."""
    entries: dict[str, Any] = {}
    for axes in grid:
        handles, labels = axes.get_legend_handles_labels()
        entries.update(zip(labels, handles, strict=True))
    if not entries:
        return
    width, height = figure.get_size_inches()
    fitting = int(width / (0.6 + 0.075 * max(map(len, entries))))  # inches of a line sample, and of a character
    columns = max(1, min(len(entries), fitting, 5))
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=columns)
    figure.set_size_inches(width, height + 0.22 * -(-len(entries) // columns))
