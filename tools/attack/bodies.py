"""Hostile bodies of JSON and forms: floods of values, unknown fields, depth, numbers, cuts, and bytes at random."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from ._settings import Settings
from ._under_load import attack

_CODE = b'"code":"a1b2c3"'


def run(settings: Settings) -> dict[str, Any]:
    """Send them while 32 clients search."""
    return attack(settings, draw)


def draw(rng: random.Random) -> bytes:
    """Return the next request."""
    kind = rng.choice(_KINDS)
    size = int(2 ** rng.uniform(1, 11))  # how many of what it holds many of
    if rng.random() < 0.004:  # and few that are as large as can be
        size = 1 << 20
    method, path, content_type, body = kind(rng, size)
    if rng.random() < 0.3:
        body = _mutated(rng, body)
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: {content_type}\r\n"
    if rng.random() < 0.05 and len(body) < 1 << 16:
        pieces = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
        return f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + pieces
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


Drawn = tuple[str, str, str, bytes]


def _json(path: str, body: bytes, method: str = "POST") -> Drawn:
    return method, path, "application/json", body


def _items(rng: random.Random, size: int) -> Drawn:
    one = rng.choice([b"{}", b"[]", b"1", b'{"key":"a"}', b'{"a":1,"b":[]}', b'{"key":"a","code":"zz"}', b"null"])
    return _json("/v1/items", b'{"items":[' + b",".join([one] * size) + b"]}")


def _fields(rng: random.Random, size: int) -> Drawn:
    names = b",".join(b'"f%d":%d' % (at, at) for at in range(size))
    path = rng.choice(["/v1/items", "/v1/search"])
    return _json(path, b"{" + names + b"}")


def _filter(rng: random.Random, size: int) -> Drawn:
    conditions = rng.choice(
        [
            b'{"class":{"in":[' + b",".join([b"1"] * size) + b"]}}",
            b"{" + b",".join(b'"f%d":{"ge":%d}' % (at, at) for at in range(size)) + b"}",
            b'{"class":"' + b"x" * (12 * size) + b'"}',
            b'{"class":{"' + b"eq" * size + b'":1}}',
        ]
    )
    return _json("/v1/search", b"{" + _CODE + b',"filter":' + conditions + b"}")


def _deep(rng: random.Random, size: int) -> Drawn:
    opening, closing = rng.choice([(b"[", b"]"), (b'{"a":', b"}")])
    return _json("/v1/search", b"{" + _CODE + b',"filter":{"a":' + opening * size + b"1" + closing * size + b"}}")


def _numbers(rng: random.Random, size: int) -> Drawn:
    number = rng.choice([b"9" * size, b"1e" + b"9" * size, b"-" + b"1" * size, b"0." + b"1" * size, b"NaN", b"1e999"])
    return _json("/v1/search", b"{" + _CODE + b',"k":' + number + b"}")


def _texts(rng: random.Random, size: int) -> Drawn:
    text = rng.choice([b"\\u0000", b"\\ud800", b'\\"', b"\\\\", b"\xff", b"\xed\xa0\x80", b",", b"{", b"\\x"]) * size
    path, body = rng.choice(
        [
            ("/v1/search", b'{"key":"' + text + b'"}'),
            ("/v1/items", b'{"items":[{"key":"a","code":"a1b2c3","metadata":{"a":"' + text + b'"}}]}'),
        ]
    )
    return _json(path, body)


def _item(rng: random.Random, size: int) -> Drawn:
    metadata = json.dumps({f"f{at}": [at] * 3 for at in range(size)}).encode()
    return _json(f"/v1/items/hostile{rng.randrange(50)}", b'{"code":"zz","metadata":' + metadata + b"}", "PUT")


def _own(rng: random.Random, size: int) -> Drawn:
    leave_out = rng.choice([b"false", b"true", b"0", b'"false"', b"null", b"[" * size + b"]" * size])
    more = rng.choice([b'"radius":0', b'"radius":%d' % size, b'"k":%d' % size, b'"radius":-1', b'"rerank":%d' % size])
    return _json(
        "/v1/search", b'{"key":"key/%d","include_self":' % rng.randrange(25_000) + leave_out + b"," + more + b"}"
    )


def _labels(rng: random.Random, size: int) -> Drawn:
    many = b"[" + b",".join(b"%d" % at for at in range(size)) + b"]"
    label = rng.choice([many, b'"' + b"x" * size + b'"', b"9" * size, b'{"a":1}', b'["\\u0000",true,1e308]'])
    body = b'{"code":"%06x","metadata":{"class":' % rng.getrandbits(24) + label + b"}}"
    return _json(f"/v1/items/labels{rng.randrange(20)}", body, "PUT")


def _batch(rng: random.Random, size: int) -> Drawn:
    metadata = b'{"text":"' + b"x" * min(size, 2000) + b'"}'  # to store more is no malformed request
    items = (b'{"key":"batch%d","code":"%06x","metadata":%s}' % (at, at, metadata) for at in range(min(size, 100)))
    return _json("/v1/items", b'{"items":[' + b",".join(items) + b"]}")


def _form(rng: random.Random, size: int) -> Drawn:
    part = rng.choice(
        [
            b'--x\r\nContent-Disposition: form-data; name="filter"\r\n\r\n[' + b"1," * size + b"1]\r\n",
            b'--x\r\nContent-Disposition: form-data; name="k"\r\n\r\n1\r\n' * size,
            b"--x\r\n" + b"A: b\r\n" * size,
            b'--x\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n' + b"\r\n--" * size,
        ]
    )
    return "POST", "/v1/search", "multipart/form-data; boundary=x", part + b"--x--\r\n"


_KINDS: list[Callable[[random.Random, int], Drawn]] = [
    _items, _fields, _filter, _deep, _numbers, _texts, _item, _own, _labels, _batch, _form,
]  # fmt: skip


def _mutated(rng: random.Random, body: bytes) -> bytes:
    """Return a body that is cut, or has some bytes replaced or repeated."""
    at = rng.randrange(len(body))
    match rng.randrange(3):
        case 0:
            return body[: at + 1]
        case 1:
            return body[:at] + rng.randbytes(rng.randrange(1, 9)) + body[at + 1 :]
        case _:
            return body[:at] + body[at : at + 64] * rng.randrange(2, 5) + body[at:]
