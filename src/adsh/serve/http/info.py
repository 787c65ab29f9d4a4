"""GET /v1/info: the model, the index, the results of its evaluation, and the limits of requests."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
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
from ...utils.redaction import is_absolute_path
from ..engine.answers import redact_metadata
from ..engine.service import Service
from .bodies import ERRORS, JSON

_CACHE_SECONDS = 2.0  # that an answer is valid: counting distinct codes may take a while
_SAMPLE, _VALUES = 10_000, 200  # items sampled for fields, and values listed of one
_EXAMPLES = 12  # items to start a search from
_FIELDS, _NAME, _VALUE = 100, 100, 200  # fields listed, and characters of a name and of a value
_EXAMPLE_BYTES = 4096  # of an example's metadata
_FIELD_BYTES = 1 << 18  # of all listed values together
_FIGURES = (
    "map_expected", "map_stable", "map_lowest", "map_highest", "ndcg", "distinct_codes", "ks", "precision", "recall",
    "radius_precision", "radius_recall",
)  # fmt: skip
_EXAMPLE = {
    "version": __version__, "bits": 48, "items": 59_000, "distinct_codes": 10, "search": "buckets", "vectors": True,
    "runtime": "torch", "images": True, "takes_images": True, "token": False,
    "corrections": True,
    "model": {"method": "adsh", "network": "efficientnet_lite0", "input": "224 x 224 x 3", "points": 59_000},
    "fields": {"class": {"type": "text", "values": ["cat", "dog"], "all_values": True}},
    "fields_truncated": False,
    "examples": [{"key": "cat/1.jpg", "metadata": {"class": "cat"}}],
    "evaluations": [{"name": "adsh", "queries": 1000, "database": 59_000, "columns": {}}],
    "limits": {"max_k": 1000},
}  # fmt: skip


def routes(service: Service, *, token: bool) -> APIRouter:
    """Return the route."""
    router = APIRouter(prefix="/v1", responses=ERRORS, tags=["about"])
    constant = {
        "version": __version__,
        "bits": service.index.bits,
        "runtime": service.runtime,
        "images": service.images is not None,
        "takes_images": service.encoder.size > 0 or service.encoder.vector_size > 0,
        "token": token,
        "corrections": not service.index.read_only,
        "limits": service.limits.to_json(),
    }

    @lru_cache(maxsize=1)
    def of_model(_: str) -> dict[str, Any]:
        return {"model": _model_facts(service), "evaluations": _evaluations(service)}

    def build() -> bytes:
        return json.dumps({**constant, **of_model(service.encoder.fingerprint), **_index_facts(service)}).encode()

    answer = _cached(build)

    @router.get("/info", responses={200: {"content": {JSON: {"example": _EXAMPLE}}}}, response_class=Response)
    async def info() -> Response:
        """Describe the model, the index, the fields to filter by, the results of its evaluation, and the limits."""
        return Response(await service.read_slowly(answer), media_type=JSON)

    return router


def _cached(build: Callable[[], bytes]) -> Callable[[], bytes]:
    """Return the same call, whose result is reused for a moment; one thread calls it."""
    result, built_at = b"", -_CACHE_SECONDS

    def cached() -> bytes:
        nonlocal result, built_at
        if time.monotonic() - built_at >= _CACHE_SECONDS:
            result, built_at = build(), time.monotonic()
        return result

    return cached


def _index_facts(service: Service) -> dict[str, Any]:
    info = service.index.info()
    sample = service.index.sample(_SAMPLE)
    return {
        "items": info["items"],
        "distinct_codes": info["distinct_codes"],
        "search": info["search"],
        "vectors": service.index.has_vectors,
        **_fields(sample, is_complete=len(sample) == info["items"]),
        "examples": _examples(sample),
    }


def _examples(items: Sequence[Item]) -> list[dict[str, Any]]:
    """Return a few items, evenly spaced."""
    chosen = items[:: max(1, len(items) // _EXAMPLES)][:_EXAMPLES]
    return [{"key": item.key, "metadata": _short(redact_metadata(item.metadata))} for item in chosen]


def _short(metadata: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return metadata that is not too long to be listed; None for others."""
    return metadata if len(json.dumps(metadata)) <= _EXAMPLE_BYTES else None


def _fields(items: Sequence[Item], *, is_complete: bool) -> dict[str, Any]:
    """Return the fields in the metadata of sampled items, with types and values, for a form of filters.

    Args:
        items: The sample.
        is_complete: Whether it is the complete index.

    Returns:
        "fields" by name, and "fields_truncated", whether some fields or values are left out for their number or length.
    """
    values, truncated = _sampled_values(items)
    fields: dict[str, Any] = {}
    size = 0
    for name, found in sorted(values.items()):
        if not found or any(map(is_absolute_path, found)):
            continue
        is_text = any(isinstance(value, str) for value in found)
        is_short = len(found) <= _VALUES and all(len(value) <= _VALUE for value in found if isinstance(value, str))
        length = sum(len(str(value)) for value in found) if is_short else 0
        if size + length > _FIELD_BYTES:
            is_short, length = False, 0
        size += length
        truncated |= not is_short
        listed = sorted(found, key=lambda value: (str(type(value)), value)) if is_short else []
        fields[name] = {
            "type": "text" if is_text else "number",
            "values": listed,
            "all_values": is_short and is_complete,
        }
    return {"fields": fields, "fields_truncated": truncated}


def _sampled_values(items: Sequence[Item]) -> tuple[dict[str, dict[Any, None]], bool]:
    """Return the values of each field, one more than are listed, and whether there are more fields than these."""
    values: dict[str, dict[Any, None]] = {}
    truncated = False
    for item in items:
        for name, value in (item.metadata or {}).items():
            if name not in values and (len(values) == _FIELDS or len(name) > _NAME):
                truncated = True
                continue
            found = values.setdefault(name, {})
            for element in value if isinstance(value, list) else [value]:
                if isinstance(element, str | int | float | bool) and len(found) <= _VALUES:
                    found[element] = None
    return values, truncated


def _model_folders(service: Service) -> list[Path]:
    """Return the folders that describe the model: the one given and, for an export, those that the index names."""
    index, note = service.index, service.index.get_note(MODEL)
    others = [] if index.folder is None else [index.folder.absolute().parent]
    others += [] if note is None else [Path(note)]
    fingerprint = service.encoder.fingerprint
    return [service.model, *(path for path in others if holds_model(path) and model_fingerprint(path) == fingerprint)]


def _model_facts(service: Service) -> dict[str, Any]:
    """Return facts of the model, without paths."""
    for folder in _model_folders(service):
        for read in (shown_info, facts_of):  # of a model, of an export
            with suppress(AdshError):
                return read(folder)
    return {"bits": service.encoder.bits}


def _evaluations(service: Service) -> list[dict[str, Any]]:
    for folder in _model_folders(service):
        for report in (folder / REPORT, folder / JSON_REPORT):  # of a model, of an export
            with suppress(AdshError):  # it was not evaluated
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
