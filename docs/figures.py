"""Draw the figures of the docs: the architecture, codes settling in a real run, and the terminal.

`make screenshots` runs it; it takes some ten seconds.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from html import escape
from io import StringIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from adsh.config import recipe
from adsh.data import open_source
from adsh.learn import CodeTable
from adsh.networks import create_network
from adsh.train.loop import learn

IMAGES = Path(__file__).parent / "images"
INK, QUIET, LINE = "#1f2430", "#5b6275", "#9aa3b8"
BLUE, GREEN, SAND = "#e3eaff", "#dff3e6", "#fff3d6"


def main() -> None:
    """All of them."""
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / "architecture.svg").write_text(architecture(), encoding="utf-8")
    settling(IMAGES / "settling.png")
    (IMAGES / "terminal.svg").write_text(terminal(), encoding="utf-8")
    for name in ("architecture.svg", "settling.png", "terminal.svg"):
        print(f"docs/images/{name}: {(IMAGES / name).stat().st_size // 1024} KiB")


# The architecture -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Box:
    """A box with a title and lines of text."""

    x: int
    y: int
    title: str
    lines: tuple[str, ...]
    colour: str
    width: int = 190
    height: int = 84

    def svg(self) -> str:
        """Return the box as SVG."""
        middle = self.x + self.width / 2
        top = self.y + self.height / 2 - 9 * len(self.lines)
        parts = [
            f'<rect x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}" rx="8" '
            f'fill="{self.colour}" stroke="{LINE}"/>',
            f'<text x="{middle}" y="{top + 5}" class="title">{escape(self.title)}</text>',
        ]
        parts += [
            f'<text x="{middle}" y="{top + 24 + 17 * at}" class="line">{escape(line)}</text>'
            for at, line in enumerate(self.lines)
        ]
        return "\n".join(parts)


def architecture() -> str:
    """How ADSH trains, and how its codes are searched, as SVG."""
    boxes = [
        Box(20, 62, "Labels", ("of the whole database,", "n items"), SAND),
        Box(20, 186, "Images", ("of the sample Omega,", "m items, drawn anew"), SAND),
        Box(300, 62, "Code table V", ("distinct (label set, code)", "eq. (9), bit by bit"), BLUE, width=210),
        Box(300, 186, "Network F", ("U = tanh(F(y)) of Omega", "eq. (5), batch by batch"), GREEN, width=210),
        Box(640, 62, "Learned codes", ("a few bytes per item,", "about one per label set"), BLUE, width=220),
        Box(640, 186, "Trained network", ("encodes queries and", "new images"), GREEN, width=220),
        Box(20, 356, "Query", ("a new image",), SAND, height=70),
        Box(250, 356, "Network F", ("sign(F(x))",), GREEN, width=150, height=70),
        Box(450, 356, "Distinct codes", ("count bits that differ",), BLUE, width=180, height=70),
        Box(680, 356, "Nearest items", ("exact, in order",), SAND, width=180, height=70),
    ]
    arrows = [
        (210, 104, 300, 104),
        (210, 228, 300, 228),
        (510, 104, 640, 104),
        (510, 228, 640, 228),
        (210, 391, 250, 391),
        (400, 391, 450, 391),
        (630, 391, 680, 391),
    ]
    lines = "\n".join(f'<path d="M{a} {b} L{c - 3} {d}" class="arrow"/>' for a, b, c, d in arrows)
    between = (
        '<path d="M380 146 L380 183" class="arrow"/><path d="M430 186 L430 149" class="arrow"/>'
        '<text x="372" y="170" class="note end">V’V, SV</text><text x="438" y="170" class="note start">U</text>'
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 880 446" role="img"
 font-family="system-ui, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif">
<title>How ADSH trains and searches</title>
<style>
.title {{ font-size: 15px; font-weight: 600; fill: {INK}; text-anchor: middle }}
.line {{ font-size: 12.5px; fill: {QUIET}; text-anchor: middle }}
.head {{ font-size: 13px; font-weight: 600; fill: {QUIET}; letter-spacing: .06em }}
.note {{ font-size: 12px; fill: {QUIET} }} .end {{ text-anchor: end }} .start {{ text-anchor: start }}
.arrow {{ stroke: {QUIET}; stroke-width: 1.6; fill: none; marker-end: url(#tip) }}
</style>
<defs><marker id="tip" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0 L8 4 L0 8 z" fill="{QUIET}"/></marker></defs>
<rect width="880" height="446" rx="10" fill="#fff"/>
<text x="20" y="38" class="head">TRAINING, in turn, T_out times</text>
<text x="20" y="334" class="head">SEARCH</text>
<path d="M20 302 L860 302" stroke="{LINE}" stroke-dasharray="3 5"/>
{chr(10).join(box.svg() for box in boxes)}
{lines}
{between}
</svg>
"""


# Codes settling ---------------------------------------------------------------------------------------

BITS, OUTER, SAMPLES, SHOWN = 24, 30, 200, (1, 2, 3, 5, 10, 20, 30)


def digits_run() -> tuple[NDArray[Any], list[NDArray[np.int8]], list[dict[str, float]]]:
    """The digits' labels, their codes after each outer iteration of a real run, and its history."""
    digits = open_source("digits")
    pixels = torch.as_tensor(np.stack([np.asarray(digits[at]) for at in range(len(digits))]), dtype=torch.float32)
    pixels = pixels.reshape(len(digits), -1)
    assert digits.labels is not None
    labels = np.asarray(digits.labels.ids)
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = create_network("mlp", BITS, (pixels.shape[1],))
    network.calibrate(pixels)  # type: ignore[operator]  # an mlp has it
    codes: list[NDArray[np.int8]] = []
    history = learn(
        network,
        lambda indices: pixels[torch.as_tensor(indices)],
        CodeTable(labels, BITS),
        recipe("modern", "mlp", outer=OUTER, samples=SAMPLES),
        device=torch.device("cpu"),
        after_outer=lambda state: codes.append(state.table.dense().copy()),  # type: ignore[attr-defined]  # a CodeTable
    )
    return labels, codes, history


def settling(to: Path) -> None:
    """Codes of some digits after several iterations, above how many bits changed in each."""
    labels, codes, history = digits_run()
    each = 24
    shown = np.concatenate([np.flatnonzero(labels == digit)[:each] for digit in range(10)])
    mpl.rcParams.update({"font.size": 9, "axes.edgecolor": LINE, "text.color": INK, "axes.labelcolor": QUIET})
    figure = Figure(figsize=(9.2, 6.4), dpi=110, layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=[2.3, 1])
    above, below = parts
    colours = mpl.colors.ListedColormap(["#f1f3f8", "#3949ab"])
    for at, (panel, outer) in enumerate(zip(above.subplots(1, len(SHOWN)), SHOWN, strict=True)):
        panel.imshow(codes[outer - 1][shown], aspect="auto", cmap=colours, vmin=-1, vmax=1, interpolation="nearest")
        panel.set_title(f"after {outer}" if at else "after 1 iteration", fontsize=9, color=INK)
        panel.set_xticks([])
        panel.set_yticks(np.arange(10) * each + each / 2, [str(digit) for digit in range(10)] if at == 0 else [])
        panel.tick_params(length=0, colors=QUIET)
        panel.hlines(np.arange(1, 10) * each - 0.5, -0.5, BITS - 0.5, color="#fff", linewidth=1.4)
    above.supxlabel(f"{BITS} bits", fontsize=9, color=QUIET)
    above.supylabel("240 digits, by class", fontsize=9, color=QUIET)
    left, right = below.subplots(1, 2)
    changed = [100 * float((a != b).mean()) for a, b in pairwise(codes)]
    left.plot(range(2, OUTER + 1), changed, color="#3949ab", linewidth=1.8)
    left.set_ylabel("% of all bits that changed")
    right.plot(range(1, OUTER + 1), [one["loss"] for one in history], color="#2e7d52", linewidth=1.8)
    right.set_ylabel("objective, a pair")
    for panel in (left, right):
        panel.set_xlabel("outer iteration")
        panel.set_ylim(bottom=0)
        panel.set_xlim(1, OUTER)
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(colors=QUIET)
        panel.grid(axis="y", color="#e6e9f2", linewidth=0.8)
    figure.savefig(to, metadata={"Software": None})


# The terminal -----------------------------------------------------------------------------------------

THEME = TerminalTheme(
    (27, 31, 42), (226, 230, 240),
    [(27, 31, 42), (240, 113, 120), (150, 210, 140), (240, 200, 120), (130, 170, 255), (199, 146, 234),
     (137, 221, 255), (226, 230, 240)],
)  # fmt: skip


def terminal() -> str:
    """What `adsh demo` prints, as SVG."""
    console = Console(record=True, width=86, file=StringIO(), force_terminal=True)
    with tempfile.TemporaryDirectory() as folder:
        for command in ("adsh demo",):
            said = _output(command, Path(folder))
            console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            console.print(Text(said))
    svg = console.export_svg(title="adsh", theme=THEME, unique_id="adsh")
    # no fonts from elsewhere: whatever the reader has that is monospaced
    svg = re.sub(r"@font-face\s*{[^}]*}", "", svg)
    return re.sub(r"Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono", svg)


def _output(command: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command.split()],
        cwd=folder, check=True, capture_output=True, text=True, env={**os.environ, "COLUMNS": "84"},
    )  # fmt: skip
    return done.stdout


if __name__ == "__main__":
    main()
