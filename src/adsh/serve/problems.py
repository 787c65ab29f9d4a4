"""What goes wrong with a request, as an answer: a status, one sentence, and the request's id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.types import Scope, Send

from ..errors import BusyError, InputError, first_line

REQUEST_ID = "adsh.id"  # in the scope of a request
FAILED = "the server failed on this request; its log says why, under the request's id"


class Problem(Exception):
    """A request that is answered with this status and sentence."""

    def __init__(self, status: int, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.headers = status, detail, dict(headers or {})


def too_busy(what: str, most: int) -> Problem:
    """There is no room for one more."""
    return Problem(429, f"{most:,} {what} are waiting already: try again in a second", {"Retry-After": "1"})


def as_problem(problem: Exception) -> Problem | None:
    """What an error of the library is to who asked; None for one that is nobody's business but ours."""
    if isinstance(problem, Problem):
        return problem
    if isinstance(problem, InputError):
        return Problem(422, first_line(problem))
    if isinstance(problem, BusyError):
        return Problem(503, "another process keeps writing to the index: try again", {"Retry-After": "5"})
    return None


async def send_answer(send: Send, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
    """Sends JSON."""
    pairs = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    pairs += [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


async def send_problem(scope: Scope, send: Send, problem: Problem) -> None:
    """Answers with a problem."""
    await send_answer(send, problem.status, body_of(problem.detail, scope), problem.headers)


def body_of(detail: str, scope: Scope) -> bytes:
    """The JSON of such an answer."""
    told: dict[str, Any] = {"detail": detail, "request_id": scope.get(REQUEST_ID)}
    return orjson.dumps(told)
