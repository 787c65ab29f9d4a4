"""A cell: one method at one code length with one seed. It is what is trained, judged and kept, and never done twice."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Options = tuple[tuple[str, Any], ...]

NAMES = {
    "adsh": "ADSH", "itq": "ITQ", "lsh": "LSH", "lin_lin": "Lin:Lin", "lin_v": "Lin:V", "lfh": "LFH", "fasth": "FastH",
    "sdh": "SDH", "cosdish": "COSDISH", "dsh": "DSH", "dhn": "DHN", "dpsh": "DPSH", "classifier": "classifier",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """What is measured: `options` go to the method, `points` limits what it learns from."""

    method: str
    bits: int
    seed: int  # of the split, and of the training
    options: Options = ()
    points: int | None = None  # of the database; None for what the protocol says
    measure: str = "judged"  # the name of a measurement
    asking: str = "queries"  # or validation, to choose by

    @property
    def name(self) -> str:
        """A name for a file, of its own for each cell."""
        parts = [self.method, f"{self.bits}bits", f"seed{self.seed}"]
        parts += [f"{key}={value}" for key, value in shown_options(self) if value is not None]
        parts += [f"points={self.points}"] * (self.points is not None)
        parts += [part for part, usual in ((self.measure, "judged"), (self.asking, "queries")) if part != usual]
        return re.sub(r"[^A-Za-z0-9._=-]", "+", ",".join(parts).replace(",", "-"))

    def option(self, name: str) -> Any:
        """The value of an option, or None."""
        return dict(self.options).get(name)

    @property
    def called(self) -> str:
        """As a paper would call it: COSDISH-D."""
        return called(self.method)


def shown_options(cell: Cell) -> Options:
    """Its options as others may read them: a file by its name, wherever it lies."""
    return tuple((key, Path(value).name if key == "weights" else value) for key, value in cell.options)


def called(method: str) -> str:
    """A method as a paper would call it."""
    plain = method.removesuffix("_d")
    return NAMES[plain] + "-D" * (plain != method)
