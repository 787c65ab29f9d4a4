"""Bodies of requests: JSON, or a form with a picture; and how both are described."""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson
from pydantic import BaseModel
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request

from ..problems import Problem
from ..schemas import ErrorAnswer

JSON, FORM = "application/json", "multipart/form-data"
_DEEPEST = 64  # levels of JSON in a form; pydantic has a limit of its own
_LONGEST_FIELD = 1 << 17  # bytes of a text beside the picture

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorAnswer, "description": text}
    for status, text in {
        401: "The token is missing or wrong.",
        403: "Without a token: a proxy passed it on.",
        405: "This address has no such method.",
        408: "The request came too slowly.",
        413: "The request is too large.",
        415: "The body is of another kind.",
        421: "Without a token: it was asked under a name of another machine.",
        422: "Something in the request cannot be used as given.",
        429: "Too many are waiting: try again after Retry-After seconds.",
        431: "The headers are too large.",
        500: "A failure of the server's own: its log says why, under the request's id.",
        503: "The index is busy, the server is stopping, or too many connections are open: try again.",
        504: "It took too long.",
    }.items()
}
NOT_FOUND: dict[int | str, dict[str, Any]] = {404: {"model": ErrorAnswer, "description": "There is no such item."}}


def errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The descriptions of these."""
    return {status: ERRORS[status] for status in statuses}


class Form(NamedTuple):
    """A picture, and the texts beside it."""

    image: bytes
    fields: dict[str, str]


def kind_of(request: Request, *allowed: str) -> str:
    """What the body is, among what it may be."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in allowed:
        raise Problem(415, f"the body is of type {kind[:40] or 'nothing'}: send {' or '.join(allowed)}")
    return kind


async def read_form(request: Request) -> Form:
    """A form with one picture in the field `image`."""
    try:
        async with request.form(max_files=1, max_fields=16, max_part_size=_LONGEST_FIELD) as form:
            image = form.get("image")
            if not isinstance(image, UploadFile):
                given = "a text" if isinstance(image, str) else "missing"
                raise Problem(422, f"the field image is {given}: send the picture's file in it")
            fields: dict[str, str] = {}
            for name, value in form.multi_items():
                if isinstance(value, str) and value != "":
                    if name in fields:
                        raise Problem(422, f"the field {name[:40]} is given twice: give it once")
                    fields[name] = value
            return Form(await image.read(), fields)
    except HTTPException as problem:  # what the parser says of a form that is not whole
        raise Problem(422, f"the form cannot be read ({problem.detail}): send multipart/form-data") from None
    except (UnicodeError, LookupError):
        raise Problem(422, "a field of the form is no text in the charset it names: send UTF-8") from None


def json_field(form: Form, name: str) -> Any:
    """A field that holds JSON; None where there is none."""
    text = form.fields.pop(name, None)
    if text is None:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as problem:
        raise Problem(422, f"{name} is not JSON ({problem}): give an object") from None
    if _deeper(value, _DEEPEST):
        raise Problem(422, f"{name} has more than {_DEEPEST} levels of brackets: give a flatter object")
    return value


def _deeper(value: Any, levels: int) -> bool:
    """Whether JSON has more levels of objects and lists than so many."""
    layer = [value]
    for _ in range(levels + 1):
        layer = [
            one
            for held in layer
            if isinstance(held, dict | list)
            for one in (held.values() if isinstance(held, dict) else held)
        ]
    return any(isinstance(one, dict | list) for one in layer)


def described(
    model: type[BaseModel] | None,
    examples: dict[str, Any] | None = None,
    fields: dict[str, Any] | None = None,
    form_example: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The description of a body that is JSON of this model, or a form with a picture and these fields beside it."""
    content: dict[str, Any] = {}
    if model is not None:
        content[JSON] = {"schema": _inlined(model.model_json_schema())}
        if examples:
            content[JSON]["examples"] = {name: {"value": value} for name, value in examples.items()}
    if fields is not None:
        picture = {"type": "string", "format": "binary", "description": "A picture's file."}
        schema = {"type": "object", "required": ["image"], "properties": {"image": picture, **fields}}
        content[FORM] = {"schema": schema, "example": {"image": "(the bytes of cat.jpg)", **(form_example or {})}}
    return {"requestBody": {"required": True, "content": content}}


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with its definitions put where they are referred to."""
    definitions = schema.pop("$defs", {})

    def put(value: Any) -> Any:
        if isinstance(value, dict):
            if "$ref" in value:
                return put(definitions[value["$ref"].rpartition("/")[2]])
            return {name: put(one) for name, one in value.items()}
        return [put(one) for one in value] if isinstance(value, list) else value

    inlined: dict[str, Any] = put(schema)
    return inlined
