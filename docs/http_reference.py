"""The service's routes as Markdown, read from the description that the service itself gives at /openapi.json."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path
from typing import Any, cast

import adsh
from adsh.encoders.base import Encoder
from adsh.serve.engine.limits import Limits
from adsh.serve.engine.service import Service
from adsh.serve.http.app import create_app

BITS = 24


class _NoEncoder:
    """Stands in for the model: nothing is encoded here."""

    bits, fingerprint, vector_size, size = BITS, "", 0, 8


def description() -> dict[str, Any]:
    """The OpenAPI description of a service with a token."""
    with tempfile.TemporaryDirectory() as folder, adsh.open_index(Path(folder) / "index", bits=BITS) as index:
        service = Service(cast(Encoder, _NoEncoder()), index, Limits(), model=Path(folder))
        return create_app(service, token="t").openapi()


def markdown() -> str:
    """A table of routes, then each with what it takes and answers, then the errors and the fields of all bodies."""
    schema_document = description()
    routes = [(path, method, one) for path, some in schema_document["paths"].items() for method, one in some.items()]
    table = ["| route | what |", "| --- | --- |"]
    table += [f"| `{m.upper()} {p}` | {_line(one['description']).split('. ')[0].rstrip('.')} |" for p, m, one in routes]
    errors = {
        status: _line(answer["description"])
        for _, _, one in routes
        for status, answer in one["responses"].items()
        if status >= "4"
    }
    meant = ["## Errors", "All have the same body, [ErrorAnswer](#erroranswer).", "| status | when |\n| --- | --- |"]
    meant[-1] += "".join(f"\n| {status} | {errors[status]} |" for status in sorted(errors))
    parts = ["\n".join(table), *(_route(p, m, one) for p, m, one in routes), *meant, "## Bodies"]
    for name, schema in sorted(schema_document["components"]["schemas"].items()):
        if schema.get("properties"):
            parts.append(f"### {name}\n\n{_line(schema.get('description', ''))}\n\n{_fields(schema)}")
    return "\n\n".join(parts)


def _route(path: str, method: str, one: dict[str, Any]) -> str:
    parts = [f"## {method.upper()} {path}", _line(one["description"])]
    parts += [f"`{p['name']}` in the {p['in']}: {_kind(p['schema'])}." for p in one.get("parameters", ())]
    for kind, content in one.get("requestBody", {}).get("content", {}).items():
        schema = content["schema"]
        parts.append(f"Takes `{kind}`" + (":" if schema.get("properties") else f", {_kind(schema)}."))
        parts += [_fields(schema)] if schema.get("properties") else []
    good = [
        " ".join([status, *(_kind(c.get("schema", {})) or f"`{k}`" for k, c in answer.get("content", {}).items())])
        for status, answer in one["responses"].items()
        if status < "4"
    ]
    bad = sorted(status for status in one["responses"] if status >= "4")
    errors = f" Errors: {', '.join(bad)}." if bad else ""
    return "\n\n".join([*parts, f"Answers {', '.join(good)}.{errors}"])


def _fields(schema: dict[str, Any]) -> str:
    required = schema.get("required", ())
    rows = ["| field | kind | default | what |", "| --- | --- | --- | --- |"]
    for name, field in schema["properties"].items():
        default = "required" if name in required else f"`{field['default']}`" if "default" in field else ""
        rows.append(f"| `{name}` | {_kind(field)} | {default} | {_line(field.get('description', ''))} |")
    return "\n".join(rows)


def _kind(schema: dict[str, Any]) -> str:
    """A type in words; another body by its name, as a link."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{re.sub(r'[^a-z0-9]+', '-', name.lower())})"
    if "anyOf" in schema:
        return " or ".join(_kind(one) for one in schema["anyOf"])
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {})) or 'anything'}"
    if schema.get("enum"):
        return ", ".join(f"`{value}`" for value in schema["enum"])
    if schema.get("contentMediaType") or schema.get("format") == "binary":
        return "a file"
    limits = [f"{word} {schema[key]:g}" for key, word in _LIMITS.items() if key in schema]
    return " ".join([str(schema.get("type", "")), *limits]).replace("null", "none").strip()


_LIMITS = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "maxLength": "of a length up to"}


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("<", "\\<")
