"""What goes wrong with a request, as an answer: a status, one sentence, and the request's id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
from starlette.types import Scope

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


def body_of(detail: str, scope: Scope) -> bytes:
    """The JSON of such an answer."""
    told: dict[str, Any] = {"detail": detail, "request_id": scope.get(REQUEST_ID)}
    return orjson.dumps(told)
