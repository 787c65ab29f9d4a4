"""Answer POST /v1/search with JSON before the framework sees the request.

The route in `search_routes` returns the same answer and describes it; the framework's routing takes longer than the
search itself.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from ..engine.problems import as_problem
from ..engine.service import Service
from ..middleware.logs import ROUTE
from ..middleware.responses import send_json, send_problem
from .bodies import JSON, read_body
from .search_routes import answer_json

PATH = "/v1/search"


class FastSearch:
    """Answer searches by code and key, and pass everything else on."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a search, or pass the request on.

        Args:
            scope: What ASGI says of the request.
            receive: Returns the next message of its body.
            send: Sends a message of the answer.
        """
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "POST" or not _is_json(scope):
            await self._app(scope, receive, send)
            return
        scope[ROUTE] = PATH
        try:
            answer = await answer_json(self._service, await read_body(receive))
        except Exception as problem:
            known = as_problem(problem)
            if known is None:
                raise
            await send_problem(scope, send, known)
        else:
            await send_json(send, 200, answer)


def _is_json(scope: Scope) -> bool:
    kinds = [value for name, value in scope["headers"] if name == b"content-type"]
    return len(kinds) == 1 and kinds[0].partition(b";")[0].strip().lower() == JSON.encode()
