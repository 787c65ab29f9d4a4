"""A cell: one method at one code length with one seed, the unit that is trained, evaluated and stored."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..utils.earlier_names import accepts_earlier

Options = tuple[tuple[str, Any], ...]
Record = dict[str, Any]  # what a cell gave: plain values that can be written as JSON

_DISPLAY_NAMES = {
    "adsh": "ADSH", "itq": "ITQ", "lsh": "LSH", "lin_lin": "Lin:Lin", "lin_v": "Lin:V", "lfh": "LFH",
    "lfh_decay": "LFH-decay", "fasth": "FastH", "sdh": "SDH", "cosdish": "COSDISH", "dsh": "DSH", "dhn": "DHN",
    "dpsh": "DPSH", "dpsh_batch": "DPSH-batch", "classifier": "classifier",
}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """One measurement of a method.

    Attributes:
        method: `adsh` or the name of a baseline.
        bits: The code length.
        seed: The seed of the split and of the training.
        options: Options of the method, sorted by name.
        points: How many database items to train on; None for as many as the protocol says.
        measure: The name of the measurement, see `runner`.
        query_split: Which items are queries: `queries`, or `validation` in a grid search.
    """

    method: str
    bits: int
    seed: int
    options: Options = ()
    points: int | None = None
    measure: str = "evaluation"
    query_split: str = "queries"

    @property
    def name(self) -> str:
        """The key of the cell's record, which is also a valid file name."""
        parts = [self.method, f"{self.bits}bits", f"seed{self.seed}"]
        parts += [f"{key}={value}" for key, value in public_options(self) if value is not None]
        parts += [f"points={self.points}"] * (self.points is not None)
        defaults = ((self.measure, "evaluation"), (self.query_split, "queries"))
        parts += [part for part, default in defaults if part != default]
        return re.sub(r"[^A-Za-z0-9._=-]", "+", ",".join(parts).replace(",", "-"))

    def option(self, name: str) -> Any:
        """Return the value of an option, or None."""
        return dict(self.options).get(name)

    @property
    def display_name(self) -> str:
        """The method as the paper writes it: COSDISH-D."""
        return display_name(self.method)

    called = display_name  # its earlier name

    @property
    def asking(self) -> str:
        """The earlier name of `query_split`."""
        return self.query_split


Cell.__init__ = accepts_earlier(asking="query_split")(Cell.__init__)  # type: ignore[method-assign]  # the same signature


def public_options(cell: Cell) -> Options:
    """Return the cell's options without local paths: a weight file is given by its name alone."""
    return tuple((key, Path(value).name if key == "weights" else value) for key, value in cell.options)


def display_name(method: str) -> str:
    """Return the name of a method as the paper writes it."""
    base = method.removesuffix("_d")
    return _DISPLAY_NAMES[base] + "-D" * (base != method)
