"""What a person sees: facts in aligned lines, tables, a bar on a terminal; or JSON for programs."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from ..utils.progress import in_words

_QUIET = 30.0  # seconds between plain lines where there is no terminal


class Stopped(Exception):
    """Ctrl-C, or a request to stop; what it says is how to go on."""


def say(text: str) -> None:
    """One line on standard error."""
    print(f"adsh: {text}", file=sys.stderr, flush=True)


def as_json(values: Mapping[str, Any]) -> None:
    """One JSON object on standard output."""
    print(json.dumps(values, indent=1, ensure_ascii=False, default=str))


def facts(values: Mapping[str, Any]) -> None:
    """Name and value, a line each."""
    width = max(len(name) for name in values)
    for name, value in values.items():
        print(f"{name:<{width}}  {value}")


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Columns as wide as they need; those of figures to the right."""
    widths = [max(len(row[i]) for row in (headings, *rows)) for i in range(len(headings))]
    right = [all(row[i][:1].isdigit() for row in rows) for i in range(len(headings))]
    for row in (headings, *rows):
        cells = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)]
        print("  ".join(cells).rstrip())


def read_in_words(read: Mapping[str, Any]) -> str:
    """What the reading of images found, on one line."""
    bad, copies = len(read["unreadable"]), len(read["copies_left_out"])
    parts = [f"{read['items']:,}", *[f"{bad:,} of them cannot be read and are left out"] * bool(bad)]
    parts += [f"{copies:,} copies of queries are left out"] * bool(copies)
    parts += [f"{read['duplicates']:,} duplicates in the database"] * bool(read["duplicates"])
    return f"{', '.join(parts)}; {read['kept']}"


def list_bad(read: Mapping[str, Any]) -> None:
    """Every file that cannot be read, a line each."""
    for one in read.get("unreadable", ()):
        print(f"  {one['key']}: {one['reason']}")


class ReadingBar:
    """Items done as a bar on a terminal; elsewhere a plain line now and then."""

    def __init__(self, doing: str = "reading") -> None:
        self._doing = doing
        self._bar: Any = None
        self._said = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """So many are done."""
        if sys.stderr.isatty() and self._bar is None:
            self._bar = bar(self._doing + " {task.completed:,}/{task.total:,}")
            self._bar.start()
            self._task = self._bar.add_task("", total=total)
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total)
        elif time.monotonic() - self._said > _QUIET:
            self._said = time.monotonic()
            say(f"{self._doing} {done:,}/{total:,}")
        if total and done >= total:
            self.close()

    def close(self) -> None:
        """Leaves the bar as it stands."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class TrainingBar:
    """Outer iterations as a bar on a terminal, after one of images read; elsewhere a plain line now and then."""

    def __init__(self) -> None:
        self.done = self.total = 0
        self._bar: Any = None
        self._said = time.monotonic()
        self.reading, self.on_features = ReadingBar(), ReadingBar("features")

    def on_start(self, facts: dict[str, Any]) -> None:
        """Shows what was chosen, and the bar."""
        self.done, self.total = facts["done"], facts["recipe"]["outer"]
        self._unit = facts["items"]
        if not sys.stderr.isatty():
            return
        say(f"device {facts['device']}")
        if facts["weights"]:
            say(facts["weights"])
        say(f"{facts['points']:,} {self._unit}, {facts['rows']:,} label sets, {facts['bits']} bits")
        if self.done:
            say(f"going on after outer iteration {self.done} of {self.total}")
        self._bar = bar("iteration {task.completed}/{task.total}", "{task.fields[text]}")
        self._bar.start()
        self._task = self._bar.add_task("", total=self.total, completed=self.done, text="")

    def on_iteration(self, record: Mapping[str, float]) -> None:
        """One iteration more."""
        self.done = int(record["outer"])
        text = in_words(record, self._unit)
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, text=text)
        elif time.monotonic() - self._said > _QUIET:
            self._said = time.monotonic()
            say(f"iteration {self.done}/{self.total}  {text}")

    def on_phase(self, text: str) -> None:
        """What is done after the last iteration."""
        if self._bar is not None:
            self._bar.update(self._task, text=text)
        elif sys.stderr.isatty():
            say(text)

    def close(self) -> None:
        """Leaves the bar as it stands."""
        self.reading.close()
        self.on_features.close()
        if self._bar is not None:
            self._bar.stop()


def bar(*texts: str) -> Any:
    """A rich bar on standard error, with the time left."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = [TextColumn(texts[0]), BarColumn(20), *(TextColumn(text) for text in texts[1:]), TimeRemainingColumn()]
    return Progress(*columns, TextColumn("left"), console=Console(stderr=True))
