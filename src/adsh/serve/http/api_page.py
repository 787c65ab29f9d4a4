"""Render /docs, a page with every route, its parameters and answers, that loads nothing from other servers.

It is built from the OpenAPI description that /openapi.json returns.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any


def page(described: dict[str, Any]) -> str:
    """Return an OpenAPI description as HTML."""
    schemas = described["components"]["schemas"]
    routes = [
        (path, method, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    ]
    sections = [*(_route(path, method, operation) for path, method, operation in routes), _answers(routes)]
    sections += [
        f"<h2>{_text(name)}</h2>{_fields(schema)}" for name, schema in sorted(schemas.items()) if "properties" in schema
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>adsh: the API</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="app.css">'
        f'</head><body class="api"><main><h1>adsh {_text(described["info"]["version"])}: the API</h1><p>'
        '<a href="./">The page</a> · <a href="openapi.json">this description for programs</a> (OpenAPI)</p>'
        f"{''.join(sections)}</main></body></html>\n"
    )


def _route(path: str, method: str, operation: dict[str, Any]) -> str:
    parts = [f"<h2>{method.upper()} {_text(path)}</h2><p>{_text(operation.get('description', ''))}</p>"]
    parts += ["<p>Needs the header <code>Authorization: Bearer TOKEN</code>.</p>"] * ("security" in operation)
    for parameter in operation.get("parameters", ()):
        name, where = _text(parameter["name"]), parameter["in"]
        parts.append(f"<p><code>{name}</code> in the {where}: {_kind(parameter['schema'])}</p>")
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        schema = content["schema"]
        parts.append(f"<p>Takes <code>{_text(kind)}</code>{'' if 'properties' in schema else ': ' + _kind(schema)}</p>")
        parts += [_fields(schema)] * ("properties" in schema)
        for example in (content.get("examples") or {"": {"value": content.get("example")}}).values():
            if example.get("value") is not None:
                parts.append(f"<pre>{_text(json.dumps(example['value'], ensure_ascii=False))}</pre>")
    return "".join([*parts, f"<p>Answers {', '.join(operation['responses'])}.</p>"])


def _answers(routes: list[tuple[str, str, dict[str, Any]]]) -> str:
    """Return a table of what each status means, the same for all routes."""
    meanings = {
        status: answer["description"] for _, _, operation in routes for status, answer in operation["responses"].items()
    }
    rows = "".join(f"<tr><td>{status}</td><td>{_text(meanings[status])}</td></tr>" for status in sorted(meanings))
    return f"<h2>Answers</h2><table><tr><th>status</th><th>when</th></tr>{rows}</table>"


def _fields(schema: dict[str, Any]) -> str:
    required = schema.get("required", ())
    rows = "".join(
        f"<tr><td><code>{_text(name)}</code>{' (required)' * (name in required)}</td><td>{_kind(field)}</td>"
        f"<td>{_text(field.get('description', ''))}</td></tr>"
        for name, field in schema["properties"].items()
    )
    return f"<p>{_text(schema.get('description', ''))}</p><table>{rows}</table>"


def _kind(schema: dict[str, Any]) -> str:
    """Return the type of a value, in a word or two."""
    if "$ref" in schema:
        return _text(schema["$ref"].rpartition("/")[2])
    choices = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if choices:
        return " or ".join(_kind(choice) for choice in choices)
    if schema.get("type") == "array":
        return f"a list of {_kind(schema.get('items', {}))}"
    known = schema.get("format") or schema.get("type") or "anything"
    bounds = [f"{sign} {schema[name]:g}" for name, sign in (("minimum", "≥"), ("maximum", "≤")) if name in schema]
    return _text(", ".join([str(schema.get("const", known)), *bounds]))


def _text(value: object) -> str:
    return escape(" ".join(str(value).split()))
