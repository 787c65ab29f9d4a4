"""Parse the JSON of many items: a small body in this process, a large one in a worker, next to the event loop."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from starlette.types import Receive

from ...errors import InputError
from ..engine.problems import Problem
from ..engine.search_queue import parse_hex
from ..engine.service import Service
from .bodies import read_body
from .json_limits import batch_limits
from .schemas import ItemsRequest, parse_json

_SMALL = 1 << 16  # bytes that this process parses itself


class Batch(NamedTuple):
    """Items to store: their keys, packed codes, and metadata as JSON, empty for none."""

    keys: list[str]
    codes: bytes
    texts: list[str]

    def metadata(self) -> list[dict[str, Any] | None]:
        """Return the metadata of each item."""
        return [json.loads(text) if text else None for text in self.texts]


async def read_batch(service: Service, receive: Receive) -> Batch:
    """Return the items of a body; raise a Problem that says in one sentence what is wrong with it."""
    max_body, max_items = service.limits.max_body, service.limits.max_items
    options = {"bits": service.index.bits, "max_bytes": max_body, "max_items": max_items}
    body = await read_body(receive, batch_limits(max_body, max_items))
    if len(body) <= _SMALL:
        return _parse(options, body)
    header, payload = await service.parse("items", options, body)
    if "status" in header:
        raise Problem(header["status"], header["detail"])
    texts = payload.decode()
    ends = header["ends"]
    return Batch(
        header["keys"],
        bytes.fromhex(header["codes"]),
        [texts[start:end] for start, end in zip([0, *ends], ends, strict=False)],
    )


def parse_batch(options: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
    """Parse a body as a worker does, and return what `read_batch` makes a `Batch` of."""
    try:
        batch = _parse(options, body)
    except Problem as problem:
        return {"status": problem.status, "detail": problem.detail}, b""
    except InputError as problem:
        return {"status": 422, "detail": str(problem)}, b""
    ends, end = [], 0
    for text in batch.texts:
        end += len(text)
        ends.append(end)
    return {"keys": batch.keys, "codes": batch.codes.hex(), "ends": ends}, "".join(batch.texts).encode()


def _parse(options: dict[str, Any], body: bytes) -> Batch:
    limits = batch_limits(options["max_bytes"], options["max_items"])
    items = parse_json(ItemsRequest, body, limits).items
    if len(items) > limits.max_items:
        raise Problem(422, f"{len(items):,} items: send at most {limits.max_items:,} at a time")
    codes = b"".join(parse_hex(item.code, options["bits"]) for item in items)
    texts = ["" if item.metadata is None else json.dumps(item.metadata) for item in items]
    return Batch([item.key for item in items], codes, texts)
