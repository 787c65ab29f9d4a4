"""Run the searches of many requests in few calls of the index, and return the answers as JSON.

Plain searches by code take microseconds and share one queue. Those with a radius, outputs or vectors may take long and
have a queue of their own, and so have those with a filter: see `filter_lanes`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...errors import InputError
from ...hamming.bits import bytes_for
from ...index.deadline import time_limit
from ...search.searcher import Searcher, SearchPlan
from .answers import answer_json
from .batcher import Batcher
from .filter_lanes import FilterLanes
from .limits import Limits

_MAX_BATCH = 256  # plain searches in one call
_SHARE = 4  # a slow search may take this part of a request's time: those that wait behind it still get theirs


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
        self.filtered = FilterLanes(searcher, limits.max_queue, self._seconds)

    def start(self) -> None:
        """Start the processes of searches with a filter."""
        self.filtered.start()

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
        for count in {plan.count for plan in plans}:
            positions = [position for position, plan in enumerate(plans) if plan.count == count]
            codes = np.concatenate([plans[position].codes for position in positions])
            for position, found in zip(positions, self._index.search(codes, count), strict=True):
                plan = plans[position]
                answers[position] = answer_json(self._index, plan, self._searcher.complete(plan, 0, found))
        return answers

    def _run_slow(self, plans: list[SearchPlan]) -> Sequence[bytes]:
        with time_limit(self._seconds):
            return [answer_json(self._index, plan, self._searcher.answer(plan)[0]) for plan in plans]


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
