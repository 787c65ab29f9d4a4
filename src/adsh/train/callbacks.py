"""Who follows a training run: TensorBoard where asked, a display where there is one."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

from ..errors import MissingExtraError
from .loop import Record


class Watcher(Protocol):
    """What `fit(callback=)` takes: called with each record, and told first what is about to be done."""

    def started(self, facts: dict[str, Any]) -> None:
        """`facts`: device, points, rows, bits, done (outer iterations before this start), and the recipe."""

    def __call__(self, record: Record) -> None:
        """After each outer iteration."""


class Watchers:
    """Several watchers as one."""

    def __init__(self, *watchers: Watcher) -> None:
        self._watchers = watchers

    def started(self, facts: dict[str, Any]) -> None:
        """Tells each."""
        for watcher in self._watchers:
            watcher.started(facts)

    def __call__(self, record: Record) -> None:
        """Tells each."""
        for watcher in self._watchers:
            watcher(record)

    def features(self, done: int, total: int) -> None:
        """Tells those who listen."""
        for watcher in self._watchers:
            if hasattr(watcher, "features"):
                watcher.features(done, total)

    def phase(self, text: str) -> None:
        """Tells those who listen."""
        for watcher in self._watchers:
            if hasattr(watcher, "phase"):
                watcher.phase(text)


class TensorBoard:
    """Loss, rows, rate and speed as TensorBoard's scalars."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise MissingExtraError("--tensorboard needs TensorBoard: pip install 'adsh[track]'") from None
        self._folder, self._open = folder, SummaryWriter
        self._writer: SummaryWriter | None = None

    def started(self, facts: dict[str, Any]) -> None:
        """Points after those done before are of the run that was killed, and purged."""
        self._writer = self._open(str(self._folder), purge_step=facts["done"] + 1)

    def __call__(self, record: Record) -> None:
        """One step."""
        assert self._writer is not None
        for name in {"loss", "rows", "lr", "items_per_second"} & set(record):
            self._writer.add_scalar(name, record[name], int(record["outer"]))

    def close(self) -> None:
        """Writes what is left."""
        if self._writer is not None:
            self._writer.close()
