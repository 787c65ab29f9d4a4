"""/docs: every route with what it takes and answers, as a page that loads nothing from elsewhere.

Made from the description of the API that /openapi.json gives; programs read that.
"""

from __future__ import annotations

import json
from html import escape
from typing import Any


def page(described: dict[str, Any]) -> str:
    """The description as HTML."""
    schemas = described["components"]["schemas"]
    routes = [(path, method, one) for path, some in described["paths"].items() for method, one in some.items()]
    parts = [*(_route(path, method, one) for path, method, one in routes), _answers(routes)]
    parts += [f"<h2>{_text(name)}</h2>{_fields(one)}" for name, one in sorted(schemas.items()) if "properties" in one]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>adsh: the API</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="stylesheet" href="app.css">'
        f'</head><body class="api"><main><h1>adsh {_text(described["info"]["version"])}: the API</h1><p>'
        '<a href="./">The page</a> · <a href="openapi.json">this description for programs</a> (OpenAPI)</p>'
        f"{''.join(parts)}</main></body></html>\n"
    )


def _route(path: str, method: str, one: dict[str, Any]) -> str:
    told = [f"<h2>{method.upper()} {_text(path)}</h2><p>{_text(one.get('description', ''))}</p>"]
    told += ["<p>Needs the header <code>Authorization: Bearer TOKEN</code>.</p>"] * ("security" in one)
    for given in one.get("parameters", ()):
        told.append(f"<p><code>{_text(given['name'])}</code> in the {given['in']}: {_kind(given['schema'])}</p>")
    for kind, content in one.get("requestBody", {}).get("content", {}).items():
        schema = content["schema"]
        told.append(f"<p>Takes <code>{_text(kind)}</code>{'' if 'properties' in schema else ': ' + _kind(schema)}</p>")
        told += [_fields(schema)] * ("properties" in schema)
        for example in (content.get("examples") or {"": {"value": content.get("example")}}).values():
            if example.get("value") is not None:
                told.append(f"<pre>{_text(json.dumps(example['value'], ensure_ascii=False))}</pre>")
    return "".join([*told, f"<p>Answers {', '.join(one['responses'])}.</p>"])


def _answers(routes: list[tuple[str, str, dict[str, Any]]]) -> str:
    """What each status means; the same for all routes."""
    meant = {status: answer["description"] for _, _, one in routes for status, answer in one["responses"].items()}
    rows = "".join(f"<tr><td>{status}</td><td>{_text(meant[status])}</td></tr>" for status in sorted(meant))
    return f"<h2>Answers</h2><table><tr><th>status</th><th>when</th></tr>{rows}</table>"


def _fields(schema: dict[str, Any]) -> str:
    needed = schema.get("required", ())
    rows = "".join(
        f"<tr><td><code>{_text(name)}</code>{' (needed)' * (name in needed)}</td><td>{_kind(field)}</td>"
        f"<td>{_text(field.get('description', ''))}</td></tr>"
        for name, field in schema["properties"].items()
    )
    return f"<p>{_text(schema.get('description', ''))}</p><table>{rows}</table>"


def _kind(schema: dict[str, Any]) -> str:
    """What may stand there, in a word or two."""
    if "$ref" in schema:
        return _text(schema["$ref"].rpartition("/")[2])
    either = schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf")
    if either:
        return " or ".join(_kind(one) for one in either)
    if schema.get("type") == "array":
        return f"a list of {_kind(schema.get('items', {}))}"
    known = schema.get("format") or schema.get("type") or "anything"
    bounds = [f"{sign} {schema[name]:g}" for name, sign in (("minimum", "≥"), ("maximum", "≤")) if name in schema]
    return _text(", ".join([str(schema.get("const", known)), *bounds]))


def _text(value: object) -> str:
    return escape(" ".join(str(value).split()))
