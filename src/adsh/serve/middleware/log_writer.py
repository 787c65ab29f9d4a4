"""Write the lines of the log without ever waiting for their reader: a pipe that nobody reads would stop the service.

Lines that cannot be written at once are kept, up to a limit; more are dropped and counted, and a line says how many.
"""

from __future__ import annotations

import json
import os
import re
import select
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import Any

import orjson

from ...utils.urls import without_secrets

_PIECE = 4096  # bytes that fit into any pipe that is ready to be written to
_KEPT = 1 << 20  # bytes of lines that wait for the reader
_CONTROL = re.compile(rb"\x7f|\xc2[\x80-\x9f]")  # what a terminal may act on; JSON escapes the others


class LogWriter:
    """Writes JSON objects to a file, one a line.

    Args:
        number: The file's number; standard error by default.
        secrets: Texts that are replaced in every value that is a text, also where they occur quoted.
    """

    def __init__(self, number: int = 2, secrets: Iterable[str] = ()) -> None:
        self._number, self._secrets = number, _with_quoted(secrets)
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes, self._unreported = 0, 0
        self._lock = threading.Lock()
        self.dropped = 0
        self._poll: Any = None
        if hasattr(select, "poll"):  # not on Windows
            self._poll = select.poll()
            self._poll.register(number, select.POLLOUT)

    def __call__(self, values: dict[str, Any]) -> None:
        """Write one line, or keep it until the reader takes more."""
        line = self._line(values)
        with self._lock:
            self._keep(line)
            self._write()

    def _line(self, values: dict[str, Any]) -> bytes:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
        if self._secrets:
            values = {name: self._redacted(value) for name, value in values.items()}
        line = orjson.dumps({"time": f"{stamp}Z", **values}, default=str)
        return _CONTROL.sub(lambda found: b"\\u%04x" % ord(found[0].decode()), line) + b"\n"

    def _redacted(self, value: Any) -> Any:
        """Return a value without secrets in its texts; keys, numbers and the structure stay."""
        if value is None or isinstance(value, (bool, int, float)):
            return value
        if isinstance(value, dict):
            return {name: self._redacted(one) for name, one in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._redacted(one) for one in value]
        return without_secrets(str(value), self._secrets)

    def _keep(self, line: bytes) -> None:
        if self._waiting_bytes + len(line) > _KEPT:
            self.dropped += 1
            self._unreported += 1
            return
        self._waiting.extend(line[at : at + _PIECE] for at in range(0, len(line), _PIECE))
        self._waiting_bytes += len(line)

    def _write(self) -> None:
        while self._waiting and self._is_ready():
            piece = self._waiting.popleft()
            try:
                written = os.write(self._number, piece)
            except BlockingIOError:
                written = 0
            except OSError:  # the reader was closed: nobody can be told
                written = len(piece)
            self._waiting_bytes -= written
            if written < len(piece):
                self._waiting.appendleft(piece[written:])
                return
            if not self._waiting and self._unreported:
                count, self._unreported = self._unreported, 0
                self._keep(self._line({"level": "warning", "text": f"{count:,} lines of the log were dropped"}))

    def _is_ready(self) -> bool:
        return self._poll is None or bool(self._poll.poll(0))


def _with_quoted(secrets: Iterable[str]) -> list[str]:
    """Return the secrets, and as Python and JSON write them in quotes, the longest first."""
    forms = {form for one in secrets for form in (one, repr(one)[1:-1], json.dumps(one)[1:-1])}
    return sorted(forms - {""}, key=len, reverse=True)
