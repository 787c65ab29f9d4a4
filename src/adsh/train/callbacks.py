"""What follows a training run: a plain function, TensorBoard, the run's log, a progress display."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ..errors import MissingExtraError
from .state import Record


@runtime_checkable
class Callback(Protocol):
    """Follows a training run; methods that are not overridden do nothing.

    `fit(callback=)` also takes a plain function of the record of each iteration.
    """

    def on_start(self, facts: dict[str, Any]) -> None:
        """Called once before training.

        Args:
            facts: device, points, rows, bits, done (outer iterations before this start), recipe and data.
        """
        return

    def on_iteration(self, record: Record) -> None:
        """Called after each outer iteration with its figures."""
        return

    def on_features(self, done: int, total: int) -> None:
        """Called while the features of a frozen network are computed."""
        return

    def on_phase(self, text: str) -> None:
        """Called when something else than an iteration begins, such as encoding the database."""
        return


class FunctionCallback(Callback):
    """A plain function as a callback; an object's methods `started`, `features` and `phase` are called too."""

    def __init__(self, function: Callable[[Record], None]) -> None:
        self._function = function

    def on_start(self, facts: dict[str, Any]) -> None:
        """Call its `started`."""
        self._call("started", facts)

    def on_iteration(self, record: Record) -> None:
        """Call the function."""
        self._function(record)

    def on_features(self, done: int, total: int) -> None:
        """Call its `features`."""
        self._call("features", done, total)

    def on_phase(self, text: str) -> None:
        """Call its `phase`."""
        self._call("phase", text)

    def _call(self, name: str, *values: Any) -> None:
        method = getattr(self._function, name, None)
        if method is not None:
            method(*values)


class CallbackList(Callback):
    """Several callbacks as one, called in order."""

    def __init__(self, *callbacks: Callback | Callable[[Record], None] | None) -> None:
        self._callbacks = [as_callback(each) for each in callbacks if each is not None]

    def on_start(self, facts: dict[str, Any]) -> None:
        """Call each."""
        for each in self._callbacks:
            each.on_start(facts)

    def on_iteration(self, record: Record) -> None:
        """Call each."""
        for each in self._callbacks:
            each.on_iteration(record)

    def on_features(self, done: int, total: int) -> None:
        """Call each."""
        for each in self._callbacks:
            each.on_features(done, total)

    def on_phase(self, text: str) -> None:
        """Call each."""
        for each in self._callbacks:
            each.on_phase(text)


def as_callback(callback: Callback | Callable[[Record], None]) -> Callback:
    """Return a callback, from one or from a plain function."""
    return callback if isinstance(callback, Callback) else FunctionCallback(callback)


class TensorBoard(Callback):
    """Writes loss, rows, learning rate and speed as TensorBoard's scalars."""

    def __init__(self, folder: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:
            raise MissingExtraError("--tensorboard needs TensorBoard: pip install 'adsh[track]'") from None
        self._folder, self._open = folder, SummaryWriter
        self._writer: SummaryWriter | None = None

    def on_start(self, facts: dict[str, Any]) -> None:
        """Open the files; points beyond the iterations done are of a run that was killed, and purged."""
        self._writer = self._open(str(self._folder), purge_step=facts["done"] + 1)

    def on_iteration(self, record: Record) -> None:
        """Write one point a scalar."""
        assert self._writer is not None
        for name in {"loss", "rows", "lr", "items_per_second"} & set(record):
            self._writer.add_scalar(name, record[name], int(record["outer"]))

    def close(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            self._writer.close()
