"""One JSON line a request, under an id that the answer carries too; and what fails, with its trace."""

from __future__ import annotations

import logging
import os
import re
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import orjson
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..metrics import Metrics
from ..problems import FAILED, REQUEST_ID, Problem, send_problem

Write = Callable[[dict[str, Any]], None]

ROUTE = "adsh.route"  # in the scope of a request: what it is counted under, where no route of the framework is found

_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_GONE = 499  # what is logged of a request whose sender went away before it was answered
_LONGEST = 300  # characters of a path in the log


def write_line(values: dict[str, Any]) -> None:
    """One JSON object on standard error."""
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    sys.stderr.buffer.write(orjson.dumps({"time": f"{stamp}Z", **values}, default=str) + b"\n")
    sys.stderr.buffer.flush()


class JsonHandler(logging.Handler):
    """The lines of other libraries, in the same form."""

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        told: dict[str, Any] = {"level": record.levelname.lower(), "logger": record.name, "text": record.getMessage()}
        if record.exc_info:
            told["trace"] = "".join(traceback.format_exception(*record.exc_info))
        write_line(told)


def log_as_json() -> None:
    """What any library of this process logs or warns of is a line of the same form from now on."""
    logging.captureWarnings(True)
    warnings.filterwarnings("ignore", module=r"PIL\.")  # of what is odd in an upload: who sent it is told what matters
    logging.basicConfig(handlers=[JsonHandler()], level=logging.WARNING, force=True)


class RequestLog:
    """Gives a request an id, its answer headers; counts and logs it, and answers 500 for what nobody caught."""

    def __init__(
        self, app: ASGIApp, metrics: Metrics, write: Write | None, headers: Sequence[tuple[bytes, bytes]]
    ) -> None:
        self._app, self._metrics, self._write, self._headers = app, metrics, write, headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 0
        request_id = _given_id(scope) or os.urandom(8).hex()
        scope[REQUEST_ID] = request_id
        more = [(b"x-request-id", request_id.encode()), *self._headers]

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *more]
            await send(message)

        try:
            await self._app(scope, receive, answer)
        except ClientDisconnect:
            pass
        except Exception as problem:
            self._failed(request_id, problem)
            if not status:
                await send_problem(scope, answer, Problem(500, FAILED))
        finally:
            seconds, status = time.perf_counter() - started, status or _GONE
            path = scope.get(ROUTE) or getattr(scope.get("route"), "path_format", None) or "other"
            self._metrics.request(scope["method"], path, status, seconds)
            if self._write is not None:
                self._write(
                    {
                        "level": "info",
                        "id": request_id,
                        "method": scope["method"],
                        "path": scope["path"][:_LONGEST],
                        "status": status,
                        "ms": round(seconds * 1000, 2),
                    }
                )

    def _failed(self, request_id: str, problem: Exception) -> None:
        if self._write is not None:
            trace = "".join(traceback.format_exception(problem))
            self._write({"level": "error", "id": request_id, "text": str(problem), "trace": trace})


def _given_id(scope: Scope) -> str | None:
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            return value.decode() if _ID.fullmatch(value) else None
    return None
