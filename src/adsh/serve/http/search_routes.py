"""POST /v1/search and POST /v1/encode. JSON searches are answered by `fast_search` before they come here."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import orjson
from fastapi import APIRouter, Request, Response

from ..engine.problems import Problem
from ..engine.service import Service
from .bodies import ERRORS, FORM, JSON, NOT_FOUND, content_type, describe_body, json_field, read_form, read_json
from .schemas import (
    EXAMPLE_CODE,
    BatchAnswer,
    BatchRequest,
    EncodeAnswer,
    SearchAnswer,
    SearchFields,
    SearchRequest,
    parse_fields,
    parse_json,
)

_EXAMPLES = {
    "by code": {"code": EXAMPLE_CODE, "k": 10},
    "by key": {"key": "cat/1.jpg", "k": 20, "filter": {"class": {"in": ["cat", "dog"]}}},
    "others like an item": {"key": "cat/1.jpg", "include_self": False},
    "within a radius": {"code": EXAMPLE_CODE, "k": 100, "radius": 3},
}
_BATCHES = {"two": {"queries": [{"code": EXAMPLE_CODE}, {"key": "cat/1.jpg"}], "k": 5}}
_FIELDS = {
    "k": {"type": "integer", "minimum": 1, "default": 10, "description": "How many matches at most."},
    "radius": {"type": "integer", "minimum": 0, "description": "Only items within this Hamming distance."},
    "filter": {"type": "string", "description": 'JSON, such as {"class": "cat"}.'},
    "ranking": {
        "type": "string",
        "enum": ["hamming", "asymmetric"],
        "default": "hamming",
        "description": "What orders the matches; asymmetric compares the network's real-valued outputs.",
    },
    "rerank": {"type": "boolean", "description": "Whether ties are ordered by visual similarity."},
}


def routes(service: Service) -> APIRouter:
    """Return the routes that take an image or a code."""
    router = APIRouter(prefix="/v1", responses=ERRORS, tags=["search"])
    encoded = {"code": EXAMPLE_CODE, "bits": service.index.bits}
    match = {"key": "cat/1.jpg", "distance": 0, "metadata": {"class": "cat"}, "code": EXAMPLE_CODE}
    guess = {"label": "cat", "share": 0.9412, "items": 1800, "field": "class"}
    said = {"guess": guess, "nearest": None}
    found = {**encoded, "ranking": "hamming", "reranked": False, **said, "matches": [match]}
    outputs = [round(0.9 * (-1) ** bit, 1) for bit in range(service.index.bits)]

    @router.post(
        "/search",
        response_model=SearchAnswer,
        responses={**NOT_FOUND, **_answer_example(found)},
        openapi_extra=describe_body(SearchRequest, _EXAMPLES, _FIELDS, {"k": 5, "filter": '{"class": "cat"}'}),
    )
    async def search(request: Request) -> Response:
        """Find the items nearest to an image, a code or another item.

        JSON searches by `code` or `key`; a form searches by the image in its field `image`, with the same options.
        """
        if content_type(request, JSON, FORM) == JSON:
            answer = await answer_json(service, await read_json(request))
        else:
            form = await read_form(request)
            conditions = json_field(form, "filter")
            fields = parse_fields(SearchFields, {**form.fields, "filter": conditions})
            answer = await service.search_by_image(form.image, fields.options())
        return Response(answer, media_type=JSON)

    @router.post(
        "/search/batch",
        response_model=BatchAnswer,
        responses={**NOT_FOUND, **_answer_example({"answers": [found]})},
        openapi_extra=describe_body(BatchRequest, _BATCHES),
    )
    async def search_batch(request: Request) -> Response:
        """Search for several codes or items at once. All are answered, in their order, or none."""
        content_type(request, JSON)
        batch = parse_json(BatchRequest, await read_json(request))
        queries = [(query.code, query.key) for query in batch.queries]
        options = replace(batch.options(), include_self=batch.include_self)
        return Response(await service.search_many(queries, options), media_type=JSON)

    @router.post(
        "/encode",
        response_model=EncodeAnswer,
        responses=_answer_example({**encoded, "outputs": outputs}),
        openapi_extra=describe_body(None, fields={}),
    )
    async def encode(request: Request) -> Response:
        """Return the code of an image."""
        content_type(request, FORM)
        form = await read_form(request)
        if form.fields:
            raise Problem(422, f"{next(iter(form.fields))[:40]} is not known here: send the field image alone")
        image = await service.encode_image(form.image)
        answer = {"code": image.code.hex(), "bits": service.index.bits, "outputs": image.outputs.tolist()}
        return Response(orjson.dumps(answer), media_type=JSON)

    return router


async def answer_json(service: Service, body: bytes) -> bytes:
    """Answer a search by code or key, from one body of JSON to another."""
    request = parse_json(SearchRequest, body)
    if request.code is not None:
        return await service.search_by_code(request.code, request.options())
    return await service.search_by_key(request.key or "", request.options())


def _answer_example(example: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    """Return the description of an answer like this."""
    return {200: {"content": {JSON: {"example": example}}}}
