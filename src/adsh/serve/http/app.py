"""The app: routes, the page, and what every request goes through, put together."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Match, Route
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from ... import __version__
from ...errors import BusyError, InputError
from ...hamming.bits import bytes_for
from ..engine.service import Service
from ..metrics import CONTENT_TYPE
from ..middleware.logs import ROUTE, RequestLog, Write
from ..middleware.security import SECURITY_HEADERS, Guard
from ..problems import Problem, as_problem, body_of
from ..schemas import CODE_PATTERN, EXAMPLE_CODE
from . import api_page, info, item_routes, search_routes
from .bodies import errors
from .fast_search import QuickSearch

STATIC = Path(__file__).parents[1] / "static"
_READ = {"GET", "HEAD"}


def create_app(
    service: Service,
    *,
    token: str | None = None,
    cors: Sequence[str] = (),
    only_local: bool = True,
    write: Write | None = None,
) -> FastAPI:
    """The service as an ASGI app; `write` takes the lines of its log. It closes the service when it ends."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await service.close()

    app = FastAPI(
        title="adsh",
        version=__version__,
        summary="Search images by short binary codes.",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's page loads its program from elsewhere: see api_page
        redoc_url=None,
        redirect_slashes=False,
    )
    _health(app, service)
    routers = search_routes.routes(service), item_routes.routes(service), info.routes(service, token=bool(token))
    for router in routers:
        app.include_router(router)
    _describe(app, service.index.bits, token)
    app.mount("/", _Page([*app.routes, *(route for router in routers for route in router.routes)]), name="page")
    _answers(app)
    # the last one added is the first to see a request
    app.add_middleware(QuickSearch, service=service)
    app.add_middleware(Guard, limits=service.limits, token=token, only_local=only_local)
    if cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(cors),
            allow_methods=["GET", "POST", "PUT", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
            expose_headers=["X-Request-ID", "Retry-After"],
        )
    app.add_middleware(RequestLog, metrics=service.metrics, write=write, headers=SECURITY_HEADERS)
    return app


class _Page(StaticFiles):
    """The page's files; browsers ask each time whether they are still the same."""

    def __init__(self, api: Sequence[BaseRoute]) -> None:
        super().__init__(directory=STATIC, html=True)
        self._api, self._files = api, {".", *(path.name for path in STATIC.iterdir())}

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """One file."""
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response

    async def get_response(self, path: str, scope: Scope) -> Response:
        """A file, or one line where there is none."""
        scope[ROUTE] = "/"  # all counted as one
        # Everything that no route took comes here: also what is there, under another method.
        at = [route for route in self._api if isinstance(route, Route) and route.matches(scope)[0] is Match.PARTIAL]
        allowed = {method for route in at for method in route.methods or ()}
        if not allowed and scope["method"] not in _READ and path in self._files:
            allowed = _READ
        if allowed:
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(allowed))})
        if scope["method"] not in _READ:
            raise HTTPException(404)
        return await super().get_response(path, scope)


def _health(app: FastAPI, service: Service) -> None:
    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz", tags=["about"], response_class=Response)
    async def healthz() -> Response:
        """The process answers."""
        return Response("ok\n", media_type="text/plain")

    @app.head("/readyz", include_in_schema=False)
    @app.get("/readyz", tags=["about"], response_class=Response, responses=errors(403, 421, 429, 500, 503, 504))
    async def readyz() -> Response:
        """The index can be read, and is where it was."""
        service.check_place()
        await service.read(lambda: len(service.index))
        return Response("ready\n", media_type="text/plain")

    @app.get("/metrics", tags=["about"], response_class=Response, responses=errors(401, 403, 421, 429, 500, 503, 504))
    async def metrics() -> Response:
        """Counters, in Prometheus' text form."""
        return Response(await service.read(service.metrics.text), headers={"Content-Type": CONTENT_TYPE})


def _answers(app: FastAPI) -> None:
    """Errors as answers of one form."""

    def told(request: Request, status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
        return Response(body_of(detail, request.scope), status, headers, "application/json")

    async def known(request: Request, problem: Exception) -> Response:
        answer = as_problem(problem)
        assert answer is not None
        return told(request, answer.status, answer.detail, answer.headers)

    for kind in (Problem, InputError, BusyError):
        app.add_exception_handler(kind, known)

    @app.exception_handler(RequestValidationError)
    async def _(request: Request, problem: RequestValidationError) -> Response:
        first = problem.errors()[0]
        return told(request, 422, f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def _(request: Request, problem: HTTPException) -> Response:
        texts = {404: "there is nothing at this address: see /docs", 405: "this address has no such method: see /docs"}
        detail = texts.get(problem.status_code, str(problem.detail))
        return told(request, problem.status_code, detail, dict(problem.headers or {}))


def _describe(app: FastAPI, bits: int, token: str | None) -> None:
    """The API described, at /openapi.json and /docs: with codes of the length that they have here, and the token."""
    made = app.openapi
    width = bytes_for(bits)
    example = bytes.fromhex(EXAMPLE_CODE * width)[: width - 1] + b"\0"

    @cache
    def openapi() -> dict[str, Any]:
        text = json.dumps(made()).replace(CODE_PATTERN, f"^[0-9a-fA-F]{{{2 * width}}}$")
        described: dict[str, Any] = json.loads(text.replace(EXAMPLE_CODE, example.hex()))
        if token is not None:
            described["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            for path, methods in described["paths"].items():
                for operation in methods.values():
                    if path.startswith("/v1") or path == "/metrics":
                        operation["security"] = [{"token": []}]
        return described

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to change it

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(api_page.page(openapi()), media_type="text/html")
