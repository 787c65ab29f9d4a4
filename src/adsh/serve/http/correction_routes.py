"""Routes of corrections: say what items are, take that back, list what is open."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
from fastapi import APIRouter, Path, Request, Response

from ...index.corrections import Correction, Corrections
from ..engine.problems import Problem
from ..engine.service import Service
from .bodies import ERRORS, JSON, content_type, describe_body, read_json
from .schemas import CorrectionAnswer, CorrectionRequest, OpenCorrections, parse_json

_EXAMPLES = {
    "a label": {"items": [{"key": "cat/1.jpg", "labels": ["lynx"]}], "who": "Kim"},
    "wrong": {"items": [{"key": "cat/1.jpg", "wrong": True}]},
}
_LARGEST = 1 << 53


def routes(service: Service) -> APIRouter:
    """Return the routes."""
    router = APIRouter(prefix="/v1", responses=ERRORS, tags=["corrections"])

    def kept() -> Corrections:
        return Corrections(service.index, service.encoder.code_for)

    @router.get("/corrections", response_model=OpenCorrections)
    async def corrections() -> Response:
        """List the corrections that no update of the model has used yet, oldest first."""
        found = await service.read_slowly(lambda: kept().open())
        return _json({"corrections": [_values(each) for each in found]})

    @router.post(
        "/corrections",
        response_model=CorrectionAnswer,
        openapi_extra=describe_body(CorrectionRequest, _EXAMPLES),
    )
    async def correct(request: Request) -> Response:
        """Correct the labels of items, all of them or none. Applied and durable when answered.

        Items get the code of their labels where the model has one, and keep theirs where not: `code_changed` says so.
        """
        content_type(request, JSON)
        given = parse_json(CorrectionRequest, await read_json(request))
        labels = {item.key: item.labels for item in given.items}
        if len(labels) < len(given.items):
            raise Problem(422, "an item is named twice: give each once")
        return _json(_values(await service.write(lambda: kept().add(labels, given.who))))

    @router.delete("/corrections/{number}", response_model=CorrectionAnswer)
    async def undo(number: Annotated[int, Path(ge=1, le=_LARGEST)]) -> Response:
        """Undo a correction: its items get the labels and codes back that they had."""
        return _json(_values(await service.write(lambda: kept().undo(number))))

    return router


def _values(correction: Correction) -> dict[str, Any]:
    """Return a correction for an answer."""
    items = [
        {"key": item.key, "before": item.before, "labels": item.labels, "code_changed": item.code_changed}
        for item in correction.items
    ]
    return {"number": correction.number, "who": correction.who, "when": correction.when, "items": items}


def _json(values: dict[str, Any]) -> Response:
    return Response(orjson.dumps(values), media_type=JSON)
