"""Send answers without the framework: JSON, and problems with the request's id."""

from __future__ import annotations

from collections.abc import Mapping

import orjson
from starlette.types import Scope, Send

from ..engine.problems import Problem

REQUEST_ID = "adsh.id"  # in the scope of a request


async def send_json(send: Send, status: int, body: bytes, headers: Mapping[str, str] | None = None) -> None:
    """Send a body of JSON.

    Args:
        send: The ASGI channel.
        status: The HTTP status.
        body: The JSON.
        headers: Further headers by name.
    """
    pairs = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    pairs += [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
    await send({"type": "http.response.start", "status": status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


async def send_problem(scope: Scope, send: Send, problem: Problem) -> None:
    """Answer a request with a problem.

    Args:
        scope: The request's ASGI scope, which has its id.
        send: The ASGI channel.
        problem: What went wrong.
    """
    await send_json(send, problem.status, problem_body(problem.detail, scope), problem.headers)


def problem_body(detail: str, scope: Scope) -> bytes:
    """Return the JSON of a problem."""
    return orjson.dumps({"detail": detail, "request_id": scope.get(REQUEST_ID)})
