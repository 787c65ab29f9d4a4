"""Figures drawn like the paper's: a panel a code length, a line a method, one legend. Needs the extra `plot`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..evaluate.plots import COLOURS, INK, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Curve = tuple[Sequence[float], Sequence[float]]
Part = tuple[str, Mapping[str, Mapping[Any, float]], str, str, str]  # title, lines, x, y, axes that are logarithmic

_MARKS = "os^Dv<>Phx*+"
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_FEW = 6  # places on an axis that can all be named
_OURS = "ADSH"  # drawn over the others, in a stronger line


def panels(curves: Mapping[int, Mapping[str, Curve]], x: str, y: str, *, marked: bool = False) -> Figure:
    """A panel for each code length, a curve in it for each method."""
    with style():
        figure, grid = _canvas(len(curves))
        for axes, (bits, of_each) in zip(grid, curves.items(), strict=True):
            for number, (name, (across, up)) in enumerate(of_each.items()):
                axes.plot(across, up, **_line(name, number, marked=marked))
            axes.set(title=f"{bits} bits", xlabel=x, ylabel=y)
        _legend(figure, grid)
    return figure


def lines(series: Mapping[str, Mapping[Any, float]], x: str, y: str, **axes_options: Any) -> Figure:
    """One panel, a line for each method; the options of `draw_lines`."""
    with style():
        figure, (axes,) = _canvas(1)
        draw_lines(axes, series, x, y, **axes_options)
        _legend(figure, [axes])
    return figure


def side_by_side(parts: Sequence[Part]) -> Figure:
    """Panels, each with lines of its own; where all show one figure, on one scale."""
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
    series: Mapping[str, Mapping[Any, float]],
    x: str,
    y: str,
    *,
    log: str = "",
    from_zero: bool = False,
) -> None:
    """The lines of one panel; `log` names the axes that are logarithmic, and where x are few, all are marked."""
    for number, (name, points) in enumerate(series.items()):
        axes.plot(list(points), list(points.values()), **_line(name, number, marked=True))
    axes.set(xlabel=x, ylabel=y)
    for axis, name, scale, limits in (
        (axes.xaxis, "x", axes.set_xscale, axes.get_xlim), (axes.yaxis, "y", axes.set_yscale, axes.get_ylim)
    ):  # fmt: skip
        if name in log:
            scale("log")
            least, most = limits()
            axis.set_major_formatter(_power)
            axis.set_minor_formatter(_two_or_five if most < 100 * least else lambda value, _: "")
    if "y" not in log and from_zero:
        axes.set_ylim(0, 1.1 * axes.get_ylim()[1])
    measured = sorted({place for points in series.values() for place in points})
    if "x" not in log and len(measured) <= _FEW:
        axes.set_xticks(measured)


def _power(value: float, _: float) -> str:
    """A power of ten on a logarithmic axis."""
    return f"{value:,g}" if 1e-3 <= value <= 1e4 else "10" + str(round(math.log10(value))).translate(_RAISED)


def _two_or_five(value: float, _: float) -> str:
    """What is between the powers of an axis that has few of them."""
    return f"{value:,g}" if f"{value:e}"[0] in "25" else ""


def ranges(rows: Mapping[str, tuple[float, float, float, float]], x: str) -> Figure:
    """A bar from the lowest to the highest for each row, with marks at the expectation and at the stable order."""
    with style():
        figure, (axes,) = _canvas(1, height=0.9 + 0.32 * max(len(rows), 3))
        for place, (lowest, expected, stable, highest) in enumerate(rows.values()):
            axes.plot(
                [lowest, highest], [place, place], color=COLOURS[0], linewidth=5, alpha=0.35, solid_capstyle="butt"
            )
            axes.plot(expected, place, "o", color=COLOURS[0], label="expected" if not place else None)
            axes.plot(stable, place, "x", color=COLOURS[3], label="stable" if not place else None)
        axes.set_yticks(range(len(rows)), list(rows))
        axes.invert_yaxis()
        axes.set(xlabel=x)
        _legend(figure, [axes])
    return figure


def _line(name: str, number: int, *, marked: bool) -> dict[str, Any]:
    ours = name.startswith(_OURS)
    line: dict[str, Any] = {
        "label": name,
        "color": INK if ours else COLOURS[number % len(COLOURS)],
        "zorder": 3 if ours else 2,
    }
    line |= {"linewidth": 2.4 if ours else 1.3, "linestyle": "-" if number < len(COLOURS) or ours else "--"}
    return line | ({"marker": _MARKS[number % len(_MARKS)], "markersize": 3.5} if marked else {})


def _canvas(count: int, height: float = 3.1) -> tuple[Figure, list[Any]]:
    from matplotlib.figure import Figure

    across = min(count, 2)
    down = -(-count // across)
    figure = Figure(figsize=(5.6 if count == 1 else 4.4 * across, height * down + 0.3))
    grid = figure.subplots(down, across, squeeze=False).ravel().tolist()
    for axes in grid[count:]:
        axes.remove()
    return figure, grid[:count]


def _legend(figure: Figure, grid: Sequence[Axes]) -> None:
    """One for all panels, below them."""
    found: dict[str, Any] = {}
    for axes in grid:
        handles, labels = axes.get_legend_handles_labels()
        found.update(zip(labels, handles, strict=True))
    if not found:
        return
    width, height = figure.get_size_inches()
    room = int(width / (0.6 + 0.075 * max(map(len, found))))  # inches of a line's sample, and of a letter
    across = max(1, min(len(found), room, 5))
    figure.legend(list(found.values()), list(found), loc="outside lower center", ncols=across)
    figure.set_size_inches(width, height + 0.22 * -(-len(found) // across))
