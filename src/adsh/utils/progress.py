"""Progress on standard error: a bar on a terminal, plain lines elsewhere. Python and the CLI share it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, TextIO

from ..errors import InputError
from .printable import printable

OnProgress = Callable[[int, int], None]  # called with how many are done, and of how many

LINE_SECONDS = 30.0  # between two plain lines of a command, where there is no terminal
_BAR_WIDTH = 20


def say(text: str, stream: TextIO | None = None) -> None:
    """Print one line on standard error, or on another stream; above a bar that is shown there."""
    print(f"adsh: {printable(text)}", file=stream or sys.stderr, flush=True)


class ProgressLine:
    """How many of how many are done: a bar on a terminal, drawn by rich; plain lines elsewhere and without rich.

    Args:
        label: What is counted, such as "reading".
        every: Seconds between two plain lines where there is no terminal; None for no lines.
        shown: False shows nothing anywhere.
        stream: Standard error by default.
    """

    def __init__(
        self,
        label: str = "reading",
        *,
        every: float | None = LINE_SECONDS,
        shown: bool = True,
        stream: TextIO | None = None,
    ) -> None:
        self._label, self._every, self._shown, self._stream = label, every, shown, stream
        self._bar: Any = None
        self._written = time.monotonic()
        self._started: float | None = None  # until the first call: other work may come before it
        self._resumed = 0

    def restart(self, done: int = 0) -> None:
        """Measure the time left from now on, when `done` are done."""
        self._started, self._resumed = time.monotonic(), done

    def __call__(self, done: int, total: int, text: str = "") -> None:
        """Show how many are done.

        Args:
            done: How many are done.
            total: Of how many.
            text: Shown after the numbers.
        """
        if not self._shown:
            return
        if self._started is None:
            self.restart(done)
        assert self._started is not None
        if self._bar is None and is_terminal(self._stream):
            self._open(total)
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, text=text)
            if total and done >= total:
                self.close()
        elif self._every is not None and time.monotonic() - self._written >= self._every:
            self._written = time.monotonic()
            parts = [f"{self._label} {done:,}/{total:,}", text]
            if self._resumed < done < total:
                parts.append(f"{time_left(self._started, done - self._resumed, total - self._resumed)} left")
            say("  ".join(filter(None, parts)), self._stream)

    def close(self) -> None:
        """Leave the bar as it is, so that what follows starts on a new line."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    def _open(self, total: int) -> None:
        """Show a bar; without rich, which training does not need, leave it to plain lines."""
        try:
            from rich.console import Console
            from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
            from rich.progress import Progress as Bar
        except ImportError:
            return
        columns = [
            TextColumn(self._label + " {task.completed:,}/{task.total:,}"),
            BarColumn(_BAR_WIDTH),
            TextColumn("{task.fields[text]}"),
            TimeRemainingColumn(),
            TextColumn("left"),
        ]
        self._bar = Bar(*columns, console=Console(file=self._stream or sys.stderr))
        self._bar.start()
        self._task = self._bar.add_task("", total=total, completed=self._resumed, text="")


def is_terminal(stream: TextIO | None = None) -> bool:
    """Return whether a stream, standard error by default, is a terminal."""
    return (stream or sys.stderr).isatty()


class Progress:
    """A callback of `fit` that shows what was chosen and how far training is.

    Args:
        progress: "auto" shows it on a terminal only, True always, False never.
        every: With "auto", the seconds between two plain lines where there is no terminal; None for no lines.
        stream: Standard error by default.
    """

    def __init__(
        self, progress: bool | str = "auto", *, every: float | None = None, stream: TextIO | None = None
    ) -> None:
        if progress not in (True, False, "auto"):
            raise InputError(f'progress={progress!r}: give "auto", True or False')
        self._stream = stream
        self._says = is_terminal(stream) if progress == "auto" else bool(progress)
        options: dict[str, Any] = {
            "every": every if progress == "auto" else 0.0,
            "shown": progress is not False,
            "stream": self._stream,
        }
        self._iterations = ProgressLine("iteration", **options)
        self.reading, self.indexing = ProgressLine("reading", **options), ProgressLine("indexing", **options)
        self.folds = ProgressLine("folds", **options)
        self.on_features = ProgressLine("features", **options)
        self.done = self.total = 0

    @classmethod
    def of(cls, progress: bool | str | Progress) -> Progress:
        """Return a progress display as it is, or the one that "auto", True or False stands for."""
        return progress if isinstance(progress, Progress) else cls(progress)

    def on_start(self, facts: Mapping[str, Any]) -> None:
        """Show what is about to be done."""
        self.reading.close()
        self.on_features.close()
        self.done, self.total, self._unit = facts["done"], facts["recipe"]["outer"], facts["items"]
        self._iterations.restart(self.done)
        self._say(f"device {facts['device']}")
        if facts["weights"]:
            self._say(facts["weights"])
        self._say(f"{facts['points']:,} {self._unit}, {facts['rows']:,} label sets, {facts['bits']} bits")
        if "chosen" in facts:
            self._say(facts["chosen"])
        if self.done:
            self._say(f"resuming after outer iteration {self.done} of {self.total}")

    def on_iteration(self, record: Mapping[str, float]) -> None:
        """Show an outer iteration, or a round of a method."""
        self.done = int(record["outer"])
        text = f"loss {record['loss']:.4f}"
        if "rows" in record:
            text += f"  {int(record['rows']):,} rows  {record['items_per_second']:,.0f} {self._unit}/s"
        self._iterations(self.done, self.total, text)

    def on_phase(self, text: str) -> None:
        """Show what is done after the last iteration."""
        self._say(text)

    def close(self) -> None:
        """End every line that is open."""
        for line in (self.reading, self.on_features, self._iterations, self.folds, self.indexing):
            line.close()

    def _say(self, text: str) -> None:
        if self._says:
            say(text, self._stream)


def time_left(started: float, done: int, total: int) -> str:
    """Return the time left in minutes and seconds, at the pace so far.

    Args:
        started: When the work started, by time.monotonic.
        done: How much of it is done; above 0.
        total: How much there is.

    Returns:
        Such as 2:05.
    """
    left = int((time.monotonic() - started) / done * (total - done))
    return f"{left // 60}:{left % 60:02d}"
