"""One line that keeps up with training, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from ..errors import InputError


class Progress:
    """Writes to standard error what was chosen and how far training is; silent unless it is a terminal."""

    def __init__(self, wanted: bool | str = "auto", stream: TextIO | None = None) -> None:
        if wanted not in (True, False, "auto"):
            raise InputError(f'progress={wanted!r}: give "auto", True or False')
        self._stream = stream or sys.stderr
        self._shown = self._stream.isatty() if wanted == "auto" else bool(wanted)
        self._animated = self._stream.isatty()

    def started(self, facts: Mapping[str, Any]) -> None:
        """What is about to be done."""
        self._done, self._total, self._started = facts["done"], facts["recipe"]["outer"], time.monotonic()
        self._say(f"device {facts['device']}")
        if facts["weights"]:
            self._say(facts["weights"])
        self._say(f"{facts['points']:,} points, {facts['rows']:,} rows, {facts['bits']} bits")
        if self._done:
            self._say(f"going on after outer iteration {self._done} of {self._total}")

    def __call__(self, record: Mapping[str, float]) -> None:
        """Where training is after an outer iteration, or a round."""
        if not self._shown:
            return
        done = int(record["outer"])
        left = time_left(self._started, done - self._done, self._total - self._done)
        line = f"adsh: iteration {done}/{self._total}  {in_words(record, 'items')}  {left} left"
        if self._animated:
            print(f"\r{line}\033[K", end="\n" if done == self._total else "", file=self._stream, flush=True)
        else:
            print(line, file=self._stream, flush=True)

    def features(self, done: int, total: int) -> None:
        """How many items a frozen network has seen."""
        if self._shown and self._animated:
            print(
                f"\radsh: features {done:,}/{total:,}\033[K", end="\n" * (done == total), file=self._stream, flush=True
            )

    def phase(self, text: str) -> None:
        """What is done after the last iteration."""
        self._say(text)

    def _say(self, text: str) -> None:
        if self._shown:
            print(f"adsh: {text}", file=self._stream, flush=True)


def time_left(started: float, done: int, total: int) -> str:
    """In minutes and seconds, at the pace so far; `started` is of time.monotonic."""
    left = int((time.monotonic() - started) / done * (total - done))
    return f"{left // 60}:{left % 60:02d}"


def in_words(record: Mapping[str, float], unit: str) -> str:
    """How an iteration went: what its record holds of loss, rows and speed."""
    parts = [f"loss {record['loss']:.4f}"]
    if "rows" in record:
        parts += [f"{int(record['rows']):,} rows", f"{record['items_per_second']:,.0f} {unit}/s"]
    return "  ".join(parts)


def told_both(one: Callable[[int, int], None], other: Callable[[int, int], None] | None) -> Callable[[int, int], None]:
    """Tells one, and another where there is one, how much of how much is done."""

    def tell(done: int, total: int) -> None:
        one(done, total)
        if other is not None:
            other(done, total)

    return tell
