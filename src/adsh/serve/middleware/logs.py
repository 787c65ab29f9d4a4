"""Log one JSON line for each request, under an id that the answer carries too, and failures with their trace."""

from __future__ import annotations

import logging
import os
import re
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..engine.metrics import Metrics
from ..engine.problems import Problem
from .responses import REQUEST_ID, send_problem

Write = Callable[[dict[str, Any]], None]

ROUTE = "adsh.route"  # in the scope of a request: the name it is counted under, if the framework has no route for it

_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_FAILED = "the server failed on this request; its log has the details, under the request's id"
_DISCONNECTED = 499  # logged for a request whose client left before it was answered
_MAX_PATH = 300  # characters of a path in the log


class JsonHandler(logging.Handler):
    """Write the log of other libraries in the same form.

    Args:
        write: Takes the values of a line.
    """

    def __init__(self, write: Write) -> None:
        super().__init__()
        self._write = write

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line."""
        values: dict[str, Any] = {"level": record.levelname.lower(), "logger": record.name, "text": record.getMessage()}
        if record.exc_info:
            values["trace"] = "".join(traceback.format_exception(*record.exc_info))
        self._write(values)


def log_as_json(write: Write) -> None:
    """Write what any library logs or warns of in the same form from now on."""
    logging.captureWarnings(True)
    warnings.filterwarnings("ignore", module=r"PIL\.")  # about oddities of uploads: the answer says what matters
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # likewise, of every broken form
    logging.basicConfig(handlers=[JsonHandler(write)], level=logging.WARNING, force=True)


class RequestLog:
    """Give each request an id and its answer headers; count and log it; answer 500 for uncaught errors.

    Args:
        app: What handles the request.
        metrics: The counters.
        write: Takes the values of a line of the log; None for no log.
        headers: Added to every answer.
    """

    def __init__(
        self, app: ASGIApp, metrics: Metrics, write: Write | None, headers: Sequence[tuple[bytes, bytes]]
    ) -> None:
        self._app, self._metrics, self._write, self._headers = app, metrics, write, headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, and log it when it is answered.

        Args:
            scope: What ASGI says of the request.
            receive: Returns the next message of its body.
            send: Sends a message of the answer.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0
        request_id = _given_id(scope) or os.urandom(8).hex()
        scope[REQUEST_ID] = request_id
        extra = [(b"x-request-id", request_id.encode()), *self._headers]

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *extra]
            await send(message)

        try:
            await self._app(scope, receive, answer)
        except ClientDisconnect:
            pass
        except Exception as problem:
            self._log_failure(request_id, problem)
            if not status:
                await send_problem(scope, answer, Problem(500, _FAILED))
        finally:
            seconds, status = time.perf_counter() - started, status or _DISCONNECTED
            path = scope.get(ROUTE) or getattr(scope.get("route"), "path_format", None) or "other"
            self._metrics.request(scope["method"], path, status, seconds)
            if self._write is not None:
                self._write(
                    {
                        "level": "info",
                        "id": request_id,
                        "method": scope["method"],
                        "path": scope["path"][:_MAX_PATH],
                        "status": status,
                        "ms": round(seconds * 1000, 2),
                    }
                )

    def _log_failure(self, request_id: str, problem: Exception) -> None:
        if self._write is not None:
            trace = "".join(traceback.format_exception(problem))
            self._write({"level": "error", "id": request_id, "text": str(problem), "trace": trace})


def _given_id(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            return value.decode() if _ID.fullmatch(value) else None
    return None
