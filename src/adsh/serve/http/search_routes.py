"""POST /v1/search and POST /v1/encode."""

from __future__ import annotations

from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from ..engine.service import Service
from ..problems import Problem
from ..schemas import EXAMPLE_CODE, EncodeAnswer, SearchAnswer, SearchRequest, Wanted, checked, checked_fields
from .bodies import ERRORS, FORM, JSON, NOT_FOUND, described, json_field, kind_of, read_form

_EXAMPLES = {
    "by code": {"code": EXAMPLE_CODE, "k": 10},
    "by key": {"key": "cat/1.jpg", "k": 20, "filter": {"class": {"in": ["cat", "dog"]}}},
    "within a radius": {"code": EXAMPLE_CODE, "k": 100, "radius": 3},
}
_FIELDS = {
    "k": {"type": "integer", "minimum": 1, "default": 10, "description": "How many matches at most."},
    "radius": {"type": "integer", "minimum": 0, "description": "Only matches within this Hamming distance."},
    "filter": {"type": "string", "description": 'JSON, such as {"class": "cat"}.'},
    "ranking": {
        "type": "string",
        "enum": ["hamming", "asymmetric"],
        "default": "hamming",
        "description": "What orders the matches; asymmetric compares the network's real-valued outputs.",
    },
    "rerank": {"type": "boolean", "description": "Whether equal distances are ordered by what things look like."},
}


def routes(service: Service) -> APIRouter:
    """The routes that a picture or a code is sent to."""
    router = APIRouter(prefix="/v1", responses=ERRORS, tags=["search"])
    coded = {"code": EXAMPLE_CODE, "bits": service.index.bits}
    match = {"key": "cat/1.jpg", "distance": 0, "metadata": {"class": "cat"}, "code": EXAMPLE_CODE}
    found = {**coded, "ranking": "hamming", "reranked": False, "matches": [match]}
    outputs = [round(0.9 * (-1) ** at, 1) for at in range(service.index.bits)]

    @router.post(
        "/search",
        response_model=SearchAnswer,
        responses={**NOT_FOUND, **_answered(found)},
        openapi_extra=described(SearchRequest, _EXAMPLES, _FIELDS, {"k": 5, "filter": '{"class": "cat"}'}),
    )
    async def search(request: Request) -> Response:
        """Find what is nearest to a picture, a code or an item.

        JSON asks by `code` or `key`; a form asks by picture, in its field `image`, with the same options beside it.
        """
        if kind_of(request, JSON, FORM) == JSON:
            answer = await service.by_code(checked(SearchRequest, await request.body()))
        else:
            form = await read_form(request)
            conditions = json_field(form, "filter")
            asked = checked_fields(Wanted, {**form.fields, "filter": conditions})
            answer = await service.by_image(form.image, asked)
        return Response(answer, media_type=JSON)

    @router.post(
        "/encode",
        response_model=EncodeAnswer,
        responses=_answered({**coded, "outputs": outputs}),
        openapi_extra=described(None, fields={}),
    )
    async def encode(request: Request) -> Response:
        """The code of a picture."""
        kind_of(request, FORM)
        form = await read_form(request)
        if form.fields:
            raise Problem(422, f"{next(iter(form.fields))[:40]} is not known here: send the field image alone")
        seen = await service.pictures(form.image)
        told = {"code": seen.code.hex(), "bits": service.index.bits, "outputs": seen.outputs.tolist()}
        return Response(orjson.dumps(told), media_type=JSON)

    return router


def _answered(example: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    """The description of an answer like this."""
    return {200: {"content": {JSON: {"example": example}}}}
