"""Read the bodies of requests, JSON or a form with an image, and describe them for OpenAPI."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson
from pydantic import BaseModel
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.types import Receive

from ..engine.problems import Problem, too_large
from .json_limits import SMALL_BODY, ArrivingValues, JsonLimits, has_more_values
from .schemas import ErrorAnswer

JSON, FORM = "application/json", "multipart/form-data"
_MAX_DEPTH = 64  # of JSON in a form; pydantic has a limit of its own
_MAX_FIELD_BYTES = 1 << 17  # of a text next to the image

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": text}
    for status, text in {
        401: "The token is missing or wrong.",
        403: "The service has no token, and the request came through a proxy or from a page of another site.",
        405: "This address does not support the method.",
        408: "The request was sent too slowly.",
        413: "The request is too large.",
        415: "The body has an unsupported content type.",
        421: "The service has no token, and the Host header names another machine.",
        422: "A value in the request is invalid.",
        429: "Too many requests are waiting: try again after Retry-After seconds.",
        431: "The headers are too large.",
        500: "An internal error: the server's log has the details, under the request's id.",
        503: "The index cannot be used at present, the server is stopping, or too many connections are open.",
        504: "The request took too long.",
        507: "The server's disk is full: nothing was stored.",
    }.items()
}
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": ErrorAnswer, "description": "There is no such item."}}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the descriptions of these statuses."""
    return {status: ERRORS[status] for status in statuses}


class Form(NamedTuple):
    """An image, and the text fields next to it."""

    image: bytes
    fields: dict[str, str]


def content_type(request: Request, *allowed: str) -> str:
    """Return the content type of the body; raise a Problem where it is not allowed."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in allowed:
        raise Problem(415, f"the body has the content type {kind[:40] or 'none'}: send {' or '.join(allowed)}")
    return kind


async def read_json(request: Request) -> bytes:
    """Return the JSON of a search or a single item, which is short."""
    return await read_body(request.receive)


async def read_body(receive: Receive, limits: JsonLimits = SMALL_BODY) -> bytes:
    """Return a body of JSON, and stop reading one that is too large or holds too many values."""
    pieces, size, more, values = [], 0, True, ArrivingValues(limits.max_values)
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        pieces.append(message.get("body", b""))
        size += len(pieces[-1])
        if size > limits.max_bytes:
            raise too_large(limits.max_bytes)
        more = message.get("more_body", False)
        if more:  # the whole is counted when it is parsed
            await values.check(pieces)
    return b"".join(pieces)


async def read_form(request: Request) -> Form:
    """Read a form with one image in the field `image`."""
    try:
        async with request.form(max_files=1, max_fields=16, max_part_size=_MAX_FIELD_BYTES) as form:
            image = form.get("image")
            if not isinstance(image, UploadFile):
                state = "a text" if isinstance(image, str) else "missing"
                raise Problem(422, f"the field image is {state}: send the image file in it")
            fields: dict[str, str] = {}
            for name, value in form.multi_items():
                if isinstance(value, str) and value != "":
                    if name in fields:
                        raise Problem(422, f"the field {name[:40]} is given twice: give it once")
                    fields[name] = value
            return Form(await image.read(), fields)
    except HTTPException as problem:  # from the parser, for an incomplete form
        raise Problem(422, f"the form cannot be read ({problem.detail}): send multipart/form-data") from None
    except (UnicodeError, LookupError):
        raise Problem(422, "a field of the form is not text in the charset it names: send UTF-8") from None


def json_field(form: Form, name: str) -> Any:
    """Remove a field from a form and parse it as JSON; None where there is none."""
    text = form.fields.pop(name, None)
    if text is None:
        return None
    if has_more_values(text.encode(), SMALL_BODY.max_values):
        raise Problem(422, f"{name} holds more than {SMALL_BODY.max_values:,} values: give fewer")
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as problem:
        raise Problem(422, f"{name} is not JSON ({problem}): give an object") from None
    if _is_deeper(value, _MAX_DEPTH):
        raise Problem(422, f"{name} has more than {_MAX_DEPTH} levels of brackets: give a flatter object")
    return value


def _is_deeper(value: Any, levels: int) -> bool:
    """Return whether JSON has more than `levels` levels of objects and lists."""
    layer = [value]
    for _ in range(levels + 1):
        layer = [
            child
            for parent in layer
            if isinstance(parent, dict | list)
            for child in (parent.values() if isinstance(parent, dict) else parent)
        ]
    return any(isinstance(child, dict | list) for child in layer)


def describe_body(
    model: type[BaseModel] | None,
    examples: dict[str, Any] | None = None,
    fields: dict[str, Any] | None = None,
    form_example: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the OpenAPI description of a body that is JSON, or a form with an image.

    Args:
        model: The schema of the JSON; None where only a form is accepted.
        examples: Examples of the JSON by name.
        fields: Schemas of the form's fields next to the image; None where only JSON is accepted.
        form_example: Values of these fields.

    Returns:
        What a route takes as `openapi_extra`.
    """
    content: dict[str, Any] = {}
    if model is not None:
        content[JSON] = {"schema": _inline(model.model_json_schema())}
        if examples:
            content[JSON]["examples"] = {name: {"value": value} for name, value in examples.items()}
    if fields is not None:
        image = {"type": "string", "format": "binary", "description": "An image file."}
        schema = {"type": "object", "required": ["image"], "properties": {"image": image, **fields}}
        content[FORM] = {"schema": schema, "example": {"image": "(the bytes of cat.jpg)", **(form_example or {})}}
    return {"requestBody": {"required": True, "content": content}}


def _inline(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema with each reference replaced by its definition."""
    definitions = schema.pop("$defs", {})

    def resolve(value: Any) -> Any:
        if isinstance(value, dict):
            if "$ref" in value:
                return resolve(definitions[value["$ref"].rpartition("/")[2]])
            return {name: resolve(child) for name, child in value.items()}
        return [resolve(child) for child in value] if isinstance(value, list) else value

    inlined: dict[str, Any] = resolve(schema)
    return inlined
