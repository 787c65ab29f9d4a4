"""Pick up a model that was updated while the service runs, without a gap in its answers.

The new model is loaded next to the one that answers, checked against the index, and takes over between two batches.
It is looked for where the model's folder changes, at SIGHUP, and when a request says so.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from ...encoders.base import Encoder
from ...encoders.onnx_package import ABOUT
from ...errors import AdshError, InputError
from ...index.locate import check_model
from ...models.fingerprint import ModelId
from ...models.storage_format import CONFIG
from ...utils.files import find_file
from .service import Service

_EVERY = 1.0  # seconds between two looks at the model's folder
_Stamp = tuple[int, int, int]


class ModelReloader:
    """Replaces the encoder of a service.

    Args:
        service: The service.
        model: The model's folder.
        open_model: Loads the model in the service's folder.
        report: Called with what happened, for the log.
    """

    def __init__(
        self,
        service: Service,
        model: Path,
        open_model: Callable[[], Encoder],
        report: Callable[[str, str], None] | None = None,
    ) -> None:
        self._service, self._model, self._open, self._report = service, model, open_model, report
        self._lock = asyncio.Lock()
        self._stamp = _stamp(model)
        self._requested = False

    def request(self) -> None:
        """Look for a new model soon; may be called from a signal handler."""
        self._requested = True

    async def reload(self) -> bool:
        """Load the model again, and return whether it is another than before.

        Raises:
            AdshError: The folder holds no whole model, or one whose codes the index cannot be compared with. The
                service goes on with the model it has.
        """
        async with self._lock:
            loop = asyncio.get_running_loop()
            stamp = _stamp(self._model)
            encoder = await loop.run_in_executor(None, self._open_checked)
            self._stamp = stamp
            changed = encoder.fingerprint != self._service.encoder.fingerprint
            if changed:
                self._service.replace_encoder(encoder)
                self._say("info", f"answers with the model {encoder.fingerprint[:12]} from now on")
            return changed

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Look for a new model while the block lasts."""
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_EVERY)
            if not self._requested and _stamp(self._model) in (self._stamp, None):
                continue
            self._requested, seen = False, _stamp(self._model)
            try:
                await self.reload()
            except (AdshError, OSError) as problem:
                self._stamp = seen  # which is not tried again until it changes
                self._say("error", f"the model was not replaced: {problem}")

    def _open_checked(self) -> Encoder:
        """Load the model, and raise unless it can take over."""
        service, encoder = self._service, self._open()
        service.index.refresh()
        known = ModelId(encoder.fingerprint, encoder.lineage)
        check_model(service.index, known, self._model, "give the model that the index was built with")
        if (encoder.bits, encoder.size) != (service.encoder.bits, service.encoder.size):
            raise InputError(
                f"the model in {self._model} takes images of {encoder.size} pixels for {encoder.bits} bits, and the "
                f"one before {service.encoder.size} for {service.encoder.bits}: start the service again"
            )
        return encoder

    def _say(self, level: str, text: str) -> None:
        if self._report is not None:
            self._report(level, text)


def _stamp(model: Path) -> _Stamp | None:
    """Return what changes when a model is saved again; None while there is none."""
    for name in (CONFIG, ABOUT):
        with suppress(OSError):
            found = os.stat(find_file(model, name))
            return found.st_ino, found.st_mtime_ns, found.st_size
    return None
