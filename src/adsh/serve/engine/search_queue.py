"""Run the searches of many requests in few calls of the index, and return the answers as JSON.

Plain searches by code take microseconds and share one queue. Those with a radius, outputs or vectors may take long, and
those with a filter as well: each have a queue of their own, so that they delay only each other, and each may take a
part of the time that a request has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import orjson

from ...errors import InputError
from ...hamming.bits import bytes_for
from ...index import Matches
from ...index.deadline import time_limit
from ...search.searcher import Searcher, SearchPlan
from ...utils.redaction import is_absolute_path, redact_paths
from .batcher import Batcher
from .limits import Limits

_MAX_BATCH = 256  # plain searches in one call
_SHARE = 4  # a slow search may take this part of a request's time: those that wait behind it still get theirs
_PATH_FIELDS = ("file", "root", "source")  # of the metadata that adsh itself writes

_EQUALITIES = frozenset(("eq", "ne", "in", "not_in"))
_QUOTED = tuple(f'"{name}"' for name in _PATH_FIELDS)


class SearchQueue:
    """Run searches of one query each; `await search_queue(plan)` returns the answer as JSON.

    Args:
        searcher: Searches the index.
        limits: How many searches may wait.
        on_batch: Called with the size of each batch of plain searches.
    """

    def __init__(self, searcher: Searcher, limits: Limits, on_batch: Callable[[int], None] | None = None) -> None:
        self._searcher, self._index = searcher, searcher.index
        self.plain: Batcher[SearchPlan, bytes] = Batcher(
            self._run_plain, what="searches", max_batch=_MAX_BATCH, capacity=limits.max_searches, on_batch=on_batch
        )
        self._seconds = limits.max_seconds / _SHARE
        self.slow: Batcher[SearchPlan, bytes] = Batcher(
            self._run_slow, what="searches with a radius or image", max_batch=1, capacity=limits.max_queue
        )
        self.filtered: Batcher[SearchPlan, bytes] = Batcher(
            self._run_slow, what="searches with a filter", max_batch=1, capacity=limits.max_queue
        )

    async def __call__(self, plan: SearchPlan) -> bytes:
        """Run a search and return the answer as JSON."""
        if plan.is_plain:
            return await self.plain(plan)
        return await (self.slow if plan.options.where is None else self.filtered)(plan)

    async def close(self) -> None:
        """Return when everything accepted is answered."""
        await self.plain.close()
        await self.slow.close()
        await self.filtered.close()

    def _run_plain(self, plans: list[SearchPlan]) -> list[bytes]:
        answers: list[bytes] = [b""] * len(plans)
        for k in {plan.options.k for plan in plans}:
            positions = [position for position, plan in enumerate(plans) if plan.options.k == k]
            codes = np.concatenate([plans[position].codes for position in positions])
            for position, matches in zip(positions, self._index.search(codes, k), strict=True):
                answers[position] = self._answer(plans[position], matches)
        return answers

    def _run_slow(self, plans: list[SearchPlan]) -> Sequence[bytes]:
        with time_limit(self._seconds):
            return [self._answer(plan, self._searcher.run(plan)[0]) for plan in plans]

    def _answer(self, plan: SearchPlan, matches: Matches) -> bytes:
        codes = matches.codes
        if codes is None:  # an index that does not return codes with the matches
            items = self._index.get(matches.keys)
            hex_codes = ["" if item is None else item.code.hex() for item in items]
        else:
            digits, width = codes.tobytes().hex(), 2 * codes.shape[1]
            hex_codes = [digits[start : start + width] for start in range(0, len(digits), width)]
        rows = zip(matches.keys, matches.distances.tolist(), matches.metadata_texts(), hex_codes, strict=True)
        return orjson.dumps(
            {
                "code": plan.codes.tobytes().hex(),
                "bits": self._index.bits,
                "ranking": plan.options.ranking,
                "reranked": plan.vectors is not None,
                "matches": [
                    {"key": key, "distance": distance, "metadata": _metadata_of_text(text), "code": code}
                    for key, distance, text, code in rows
                ],
            },
        )


def redact_metadata(metadata: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return an item's metadata without the paths that adsh wrote into it."""
    return None if metadata is None else redact_paths(metadata, _PATH_FIELDS)


def check_filter(where: dict[str, Any]) -> None:
    """Refuse conditions that would tell of a path which `redact_metadata` leaves out.

    Raises:
        InputError: A field that may hold a path is compared with one, or by its order.
    """
    for name in _PATH_FIELDS:
        if name not in where:
            continue
        condition = where[name]
        tests = condition if isinstance(condition, dict) else {"eq": condition}
        values = [one for value in tests.values() for one in (value if isinstance(value, list) else [value])]
        if not _EQUALITIES.issuperset(tests) or any(map(is_absolute_path, values)):
            raise InputError(
                f"filter on {name}: absolute paths on the server are hidden; use eq, ne, in or not_in with other values"
            )


def metadata_json(metadata: dict[str, Any] | None) -> Any:
    """Return an item's metadata for an answer, without paths."""
    if metadata is None:
        return None
    return orjson.Fragment(json.dumps(redact_metadata(metadata)))  # orjson has no integers beyond 64 bits


def _metadata_of_text(text: str) -> Any:
    """Return stored JSON for an answer: copied as it is, unless it may hold a path."""
    if not text:
        return None
    for name in _QUOTED:
        if name in text:
            return metadata_json(json.loads(text))
    return orjson.Fragment(text)


def parse_hex(text: str, bits: int) -> bytes:
    """Return the packed code of hexadecimal digits.

    Raises:
        InputError: The digits are not those of a code of `bits` bits.
    """
    width = bytes_for(bits)
    try:
        code = bytes.fromhex(text)
    except ValueError:
        code = b""
    if len(code) != width or len(text) != 2 * width:
        raise InputError(
            f"code={text[:40]!r} has {len(text)} characters, but {bits} bits are {2 * width} hexadecimal digits: give "
            "the code as /v1/encode returns it"
        )
    if code[-1] & ((1 << (8 * width - bits)) - 1):
        raise InputError(
            f"code={text[:40]!r} has a 1 after its {bits} bits: the bits that fill the last byte must be 0"
        )
    return code
