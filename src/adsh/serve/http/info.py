"""GET /v1/info: what is served, how good it is, and what may be asked."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Response

from ... import __version__
from ...encoders.onnx_package import facts_of
from ...errors import AdshError
from ...evaluate.evaluation import COLUMNS, Evaluation
from ...evaluate.report import JSON as JSON_REPORT
from ...evaluate.report import read_report
from ...index import Item
from ...index.locate import MODEL
from ...models.fingerprint import model_fingerprint
from ...models.info import shown_info
from ...models.storage_format import REPORT, holds_model
from ..engine.search import without_paths
from ..engine.service import Service
from .bodies import ERRORS, JSON

_FRESH = 2.0  # seconds that an answer holds: counting distinct codes may take a while
_SAMPLE, _VALUES = 10_000, 200  # items looked at for fields, and values listed of one
_EXAMPLES = 12  # items to start a search from
_FIGURES = (
    "map_expected", "map_stable", "map_lowest", "map_highest", "ndcg", "distinct_codes", "ks", "precision", "recall",
    "radius_precision", "radius_recall",
)  # fmt: skip
_EXAMPLE = {
    "version": __version__, "bits": 48, "items": 59_000, "distinct_codes": 10, "search": "buckets", "vectors": True,
    "runtime": "torch", "images": True, "takes_images": True, "token": False,
    "model": {"method": "adsh", "network": "efficientnet_lite0", "input": "224 x 224 x 3", "points": 59_000},
    "fields": {"class": {"type": "text", "values": ["cat", "dog"], "all_values": True}},
    "examples": [{"key": "cat/1.jpg", "metadata": {"class": "cat"}}],
    "evaluations": [{"name": "adsh", "queries": 1000, "database": 59_000, "columns": {}}],
    "limits": {"max_k": 1000},
}  # fmt: skip


def routes(service: Service, *, token: bool) -> APIRouter:
    """The route."""
    router = APIRouter(prefix="/v1", responses=ERRORS, tags=["about"])
    told = {
        "version": __version__,
        "bits": service.index.bits,
        "runtime": service.runtime,
        "images": service.images is not None,
        "takes_images": service.coder.size > 0 or service.coder.vector_size > 0,
        "token": token,
        "model": _model(service),
        "evaluations": _evaluations(service),
        "limits": service.limits.to_json(),
    }
    about = _kept(lambda: json.dumps({**told, **_index(service)}).encode())

    @router.get("/info", responses={200: {"content": {JSON: {"example": _EXAMPLE}}}}, response_class=Response)
    async def info() -> Response:
        """What is served: the model, the index, the fields to filter by, the figures of its evaluation, the limits."""
        return Response(await service.read_slowly(about), media_type=JSON)

    return router


def _kept(make: Callable[[], bytes]) -> Callable[[], bytes]:
    """The same call, whose answer holds for a moment; one thread calls it."""
    made, at = b"", -_FRESH

    def kept() -> bytes:
        nonlocal made, at
        if time.monotonic() - at >= _FRESH:
            made, at = make(), time.monotonic()
        return made

    return kept


def _index(service: Service) -> dict[str, Any]:
    held = service.index.info()
    some = service.index.sample(_SAMPLE)
    return {
        "items": held["items"],
        "distinct_codes": held["distinct_codes"],
        "search": held["search"],
        "vectors": service.index.has_vectors,
        "fields": _fields(some, whole=len(some) == held["items"]),
        "examples": _examples(some),
    }


def _examples(items: Sequence[Item]) -> list[dict[str, Any]]:
    """A few of some items, spread over them."""
    spread = items[:: max(1, len(items) // _EXAMPLES)][:_EXAMPLES]
    return [{"key": item.key, "metadata": without_paths(item.metadata)} for item in spread]


def _fields(items: Sequence[Item], *, whole: bool) -> dict[str, Any]:
    """The names in the metadata of some items, or of the `whole` index, with what they hold."""
    values: dict[str, dict[Any, None]] = {}
    for item in items:
        for name, value in (item.metadata or {}).items():
            found = values.setdefault(name, {})
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, str | int | float | bool) and len(found) <= _VALUES:
                    found[one] = None
    told = {}
    for name, found in sorted(values.items()):
        if not found or any(isinstance(one, str) and os.path.isabs(one) for one in found):
            continue  # where things lie on this machine
        text = any(isinstance(one, str) for one in found)
        few = len(found) <= _VALUES
        listed = sorted(found, key=lambda one: (str(type(one)), one)) if few else []
        told[name] = {"type": "text" if text else "number", "values": listed, "all_values": few and whole}
    return told


def _homes(service: Service) -> list[Path]:
    """Folders that tell of the model: the one given and, for an export, those that the index lies in or notes."""
    note, around = service.index.get_note(MODEL), service.index.folder
    others = [] if around is None else [around.absolute().parent]
    others += [] if note is None else [Path(note)]
    same = [one for one in others if holds_model(one) and model_fingerprint(one) == service.coder.fingerprint]
    return [service.model, *same]


def _model(service: Service) -> dict[str, Any]:
    """What the model is, less where things lie on this machine."""
    for folder in _homes(service):
        for read in (shown_info, facts_of):  # of a model, of an export
            with suppress(AdshError):
                return read(folder)
    return {"bits": service.coder.bits}


def _evaluations(service: Service) -> list[dict[str, Any]]:
    for folder in _homes(service):
        for report in (folder / REPORT, folder / JSON_REPORT):  # of a model, of an export
            with suppress(AdshError):  # it was not judged
                return [_figures(evaluation) for evaluation in read_report(report)]
    return []


def _figures(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "name": evaluation.name,
        "bits": evaluation.bits,
        "queries": evaluation.queries,
        "database": evaluation.database,
        "columns": {
            name: {"title": COLUMNS.get(name, name), **{figure: getattr(column, figure) for figure in _FIGURES}}
            for name, column in evaluation.columns.items()
        },
    }
