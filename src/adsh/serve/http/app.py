"""The ASGI app: routes, the page and the middleware, put together."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, nullcontext
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
from ...errors import AdshError, BusyError, FolderError, InputError, ServerError
from ...hamming.bits import bytes_for
from ..engine.metrics import CONTENT_TYPE
from ..engine.problems import Problem, as_problem
from ..engine.reload import ModelReloader
from ..engine.service import Service
from ..middleware.logs import ROUTE, RequestLog, Write
from ..middleware.refusals import PacedRefusals
from ..middleware.responses import problem_body
from ..middleware.security import SECURITY_HEADERS, Guard
from . import api_page, collection_routes, correction_routes, info, item_routes, search_routes
from .bodies import errors
from .fast_search import FastSearch
from .schemas import CODE_PATTERN, EXAMPLE_CODE, Reloaded

STATIC = Path(__file__).parents[1] / "static"
_READ_METHODS = {"GET", "HEAD"}


def create_app(
    service: Service,
    *,
    token: str | None = None,
    cors: Sequence[str] = (),
    only_local: bool = True,
    write: Write | None = None,
    reloader: ModelReloader | None = None,
) -> FastAPI:
    """Return the service as an ASGI app, which closes the service when it ends.

    Args:
        service: The model and the index.
        token: What requests must carry; None for no token.
        cors: Origins whose pages may call the service.
        only_local: Without a token, answer only requests for names of this machine.
        write: Takes the lines of the log; None for no log.
        reloader: Picks up newer models; None to stay with the one that was opened.

    Returns:
        The app, for uvicorn or another ASGI server.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with nullcontext() if reloader is None else reloader.watching():
            yield
        await service.close()

    app = FastAPI(
        title="adsh",
        version=__version__,
        summary="Search images by short binary codes.",
        lifespan=lifespan,
        docs_url=None,  # FastAPI's page loads scripts from other servers: see api_page
        redoc_url=None,
        redirect_slashes=False,
    )
    _add_health_routes(app, service)
    if reloader is not None:
        _add_reload_route(app, service, reloader)
    routers = (
        *(module.routes(service) for module in (search_routes, collection_routes, correction_routes, item_routes)),
        info.routes(service, token=bool(token)),
    )
    for router in routers:
        app.include_router(router)
    _add_api_description(app, service.index.bits, token)
    app.mount("/", _Page([*app.routes, *(route for router in routers for route in router.routes)]), name="page")
    _add_error_handlers(app)
    # the last one added sees a request first
    app.add_middleware(FastSearch, service=service)
    app.add_middleware(Guard, limits=service.limits, token=token, only_local=only_local, cors=cors)
    if cors:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(cors),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
            expose_headers=["X-Request-ID", "Retry-After"],
        )
    app.add_middleware(PacedRefusals)
    app.add_middleware(RequestLog, metrics=service.metrics, write=write, headers=SECURITY_HEADERS)
    return app


class _Page(StaticFiles):
    """The page's files; browsers check each time whether they have changed."""

    def __init__(self, api: Sequence[BaseRoute]) -> None:
        super().__init__(directory=STATIC, html=True)
        self._api, self._files = api, {".", *(path.name for path in STATIC.iterdir())}

    def file_response(self, *args: Any, **kwargs: Any) -> Response:
        """Return one file."""
        response = super().file_response(*args, **kwargs)
        response.headers["Cache-Control"] = "no-cache"
        return response

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file, or raise where there is none."""
        scope[ROUTE] = "/"  # all counted under one name
        # Requests that match no route come here, also those of a route under another method.
        partial = [
            route for route in self._api if isinstance(route, Route) and route.matches(scope)[0] is Match.PARTIAL
        ]
        allowed = {method for route in partial for method in route.methods or ()}
        if not allowed and scope["method"] not in _READ_METHODS and path in self._files:
            allowed = _READ_METHODS
        if allowed:
            raise HTTPException(405, headers={"Allow": ", ".join(sorted(allowed))})
        if scope["method"] not in _READ_METHODS:
            raise HTTPException(404)
        return await super().get_response(path, scope)


def _add_health_routes(app: FastAPI, service: Service) -> None:
    @app.head("/healthz", include_in_schema=False)
    @app.get("/healthz", tags=["about"], response_class=Response)
    async def healthz() -> Response:
        """Answer that the process is alive."""
        return Response("ok\n", media_type="text/plain")

    @app.head("/readyz", include_in_schema=False)
    @app.get("/readyz", tags=["about"], response_class=Response, responses=errors(403, 421, 429, 500, 503, 504))
    async def readyz() -> Response:
        """Answer whether the index can be read, and is the one that was opened."""
        await service.read(service.check_index_file)
        await service.read(lambda: len(service.index))
        return Response("ready\n", media_type="text/plain")

    @app.get("/metrics", tags=["about"], response_class=Response, responses=errors(401, 403, 421, 429, 500, 503, 504))
    async def metrics() -> Response:
        """Return the metrics in Prometheus' text format."""
        return Response(await service.read(service.metrics.text), headers={"Content-Type": CONTENT_TYPE})


def _add_reload_route(app: FastAPI, service: Service, reloader: ModelReloader) -> None:
    @app.post(
        "/v1/reload", tags=["about"], response_model=Reloaded, responses=errors(401, 403, 421, 422, 429, 500, 503)
    )
    async def reload() -> Response:
        """Load the model's folder again: a newer version of the model answers from now on, without a gap.

        The service does so by itself within a second or two of `adsh update`.
        """
        try:
            changed = await reloader.reload()
        except AdshError as problem:
            raise Problem(422, f"the model was not replaced: {problem}") from None
        answer = {"model": service.encoder.fingerprint, "changed": changed}
        return Response(json.dumps(answer), media_type="application/json")


def _add_error_handlers(app: FastAPI) -> None:
    """Answer all errors in one form."""

    def answer(request: Request, status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
        return Response(problem_body(detail, request.scope), status, headers, "application/json")

    async def known(request: Request, problem: Exception) -> Response:
        known_problem = as_problem(problem)
        if known_problem is None:
            raise problem
        return answer(request, known_problem.status, known_problem.detail, known_problem.headers)

    for kind in (Problem, InputError, BusyError, ServerError, FolderError, OSError, sqlite3.Error):
        app.add_exception_handler(kind, known)

    @app.exception_handler(RequestValidationError)
    async def _(request: Request, problem: RequestValidationError) -> Response:
        first = problem.errors()[0]
        return answer(request, 422, f"{'.'.join(map(str, first['loc'][1:]))}: {first['msg']}")

    @app.exception_handler(HTTPException)
    async def _(request: Request, problem: HTTPException) -> Response:
        texts = {
            404: "there is nothing at this address: see /docs",
            405: "this address does not support the method: see /docs",
        }
        detail = texts.get(problem.status_code, str(problem.detail))
        return answer(request, problem.status_code, detail, dict(problem.headers or {}))


def _add_api_description(app: FastAPI, bits: int, token: str | None) -> None:
    """Describe the API at /openapi.json and /docs, with codes of the length that they have here, and the token.

    Args:
        app: With all routes added.
        bits: The code length.
        token: What requests must carry; None for no token.
    """
    default_openapi = app.openapi
    width = bytes_for(bits)
    example = bytes.fromhex(EXAMPLE_CODE * width)[: width - 1] + b"\0"

    @cache
    def openapi() -> dict[str, Any]:
        text = json.dumps(default_openapi()).replace(CODE_PATTERN, f"^[0-9a-fA-F]{{{2 * width}}}$")
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
