"""Routes of the collection as a whole: list, count and remove items by conditions on their metadata."""

from __future__ import annotations

import json
from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Query, Request, Response

from ..engine.problems import Problem
from ..engine.service import Service
from .bodies import ERRORS, JSON, content_type, describe_body, read_json
from .item_routes import item_values
from .json_limits import SMALL_BODY, check_values
from .schemas import Count, FilterRequest, ItemPage, Removed, parse_json

_EXAMPLES = {
    "a class": {"filter": {"class": "cat"}},
    "alternatives": {"filter": {"$or": [{"class": "cat"}, {"year": {"lt": 1990}}]}},
}
_MOST_LISTED = 1000


def routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/v1", responses=ERRORS, tags=["collection"])

    @router.get("/items", response_model=ItemPage)
    async def items(
        limit: Annotated[int, Query(ge=1, le=_MOST_LISTED, description="How many items at most.")] = 100,
        cursor: Annotated[str | None, Query(description="That of the page before.")] = None,
        filter: Annotated[str | None, Query(description='Conditions as JSON, such as {"class": "cat"}.')] = None,
    ) -> Response:
        """List items, in alphabetical order of their keys; each item that stays is listed once."""
        page = await service.page(limit, cursor, _conditions(filter))
        answer = {"items": [item_values(item) for item in page.items], "cursor": page.cursor}
        return Response(orjson.dumps(answer), media_type=JSON)

    @router.post("/count", response_model=Count, openapi_extra=describe_body(FilterRequest, _EXAMPLES))
    async def count(request: Request) -> Response:
        """Count the items that meet conditions."""
        content_type(request, JSON)
        where = parse_json(FilterRequest, await read_json(request)).filter
        return Response(orjson.dumps({"items": await service.count(where)}), media_type=JSON)

    @router.post("/remove", response_model=Removed, openapi_extra=describe_body(FilterRequest, _EXAMPLES))
    async def remove(request: Request) -> Response:
        """Remove all items that meet conditions. Durable when answered."""
        content_type(request, JSON)
        where = parse_json(FilterRequest, await read_json(request)).filter
        return Response(orjson.dumps({"removed": await service.remove_where(where)}), media_type=JSON)

    return router


def _conditions(text: str | None) -> dict[str, Any] | None:
    """Return the conditions in the address of a request."""
    if not text:
        return None
    check_values(text.encode("utf-8", "replace"), SMALL_BODY.max_values)
    try:
        where = json.loads(text)
    except (ValueError, RecursionError):
        where = None
    if not isinstance(where, dict):
        raise Problem(422, 'filter is not an object of JSON: give conditions, such as {"class": "cat"}')
    return where
