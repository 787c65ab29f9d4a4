"""POST /v1/search with JSON, answered before the framework looks at it.

The route in `search_routes` gives the same answer and describes it; finding and wrapping that route takes longer than
the search itself.
"""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from ..engine.service import Service
from ..middleware.logs import ROUTE
from ..problems import as_problem, send_answer, send_problem
from ..schemas import SearchRequest, checked
from .bodies import JSON

PATH = "/v1/search"


class QuickSearch:
    """Answers searches by code and key, and lets everything else through."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http" or scope["path"] != PATH or scope["method"] != "POST" or not _is_json(scope):
            await self._app(scope, receive, send)
            return
        scope[ROUTE] = PATH
        try:
            body, more = b"", True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return
                body += message.get("body", b"")
                more = message.get("more_body", False)
            answer = await self._service.by_code(checked(SearchRequest, body))
        except Exception as problem:
            told = as_problem(problem)
            if told is None:
                raise
            await send_problem(scope, send, told)
        else:
            await send_answer(send, 200, answer)


def _is_json(scope: Scope) -> bool:
    kinds = [value for name, value in scope["headers"] if name == b"content-type"]
    return len(kinds) == 1 and kinds[0].partition(b";")[0].strip().lower() == JSON.encode()
