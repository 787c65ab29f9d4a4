"""Searches of many requests in few calls of the index, and their answers as JSON.

Plain searches by code take microseconds and go together in one lane; those with a filter, a radius, outputs or vectors
may take long, and go in another, so that they hold up only each other.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from ...errors import InputError
from ...index import Index, Matches
from ...index.matches import StoredVectors
from ..limits import Limits
from .batcher import Batcher

_TOGETHER = 256  # plain searches in one call
_PATHS = ("file", "root", "source")  # metadata that adsh itself writes, which tells where things lie on this machine

_QUOTED = tuple(f'"{name}"' for name in _PATHS)


class Search(NamedTuple):
    """One search, checked."""

    code: bytes
    k: int
    radius: int | None = None
    where: dict[str, Any] | None = None
    outputs: NDArray[np.float32] | None = None  # ranked by them, where given
    vector: NDArray[np.float32] | StoredVectors | None = None  # ties are ordered by it, where given

    @property
    def plain(self) -> bool:
        """Whether it is a matter of microseconds."""
        return self.radius is None and self.where is None and self.outputs is None and self.vector is None


class Searching:
    """`await searching(search)` gives the answer as JSON."""

    def __init__(self, index: Index, limits: Limits, on_batch: Callable[[int], None] | None = None) -> None:
        self._index = index
        self.plain: Batcher[Search, bytes] = Batcher(
            self._plain, what="searches", most=_TOGETHER, room=limits.max_searches, on_batch=on_batch
        )
        self.others: Batcher[Search, bytes] = Batcher(
            self._others, what="searches with a filter, radius or image", most=1, room=limits.max_queue
        )

    async def __call__(self, search: Search) -> bytes:
        """The answer as JSON."""
        return await (self.plain if search.plain else self.others)(search)

    async def close(self) -> None:
        """Ends when everything taken is answered."""
        await self.plain.close()
        await self.others.close()

    def _plain(self, searches: list[Search]) -> list[bytes]:
        answers: list[bytes] = [b""] * len(searches)
        for k in {search.k for search in searches}:
            mine = [at for at, search in enumerate(searches) if search.k == k]
            codes = np.frombuffer(b"".join(searches[at].code for at in mine), dtype=np.uint8).reshape(len(mine), -1)
            for at, matches in zip(mine, self._index.search(codes, k), strict=True):
                answers[at] = self._answer(searches[at], matches)
        return answers

    def _others(self, searches: list[Search]) -> Sequence[bytes]:
        return [self._answer(search, self._found(search)) for search in searches]

    def _found(self, search: Search) -> Matches:
        code, k, radius, where, outputs, vector = search
        codes = np.frombuffer(code, dtype=np.uint8)[None]
        if radius is not None:
            return self._index.within(codes, radius, where=where, limit=k)[0]
        if outputs is not None:
            return self._index.search(outputs[None], k, where=where, ranking="asymmetric")[0]
        vectors = vector[None] if isinstance(vector, np.ndarray) else vector
        return self._index.search(codes, k, where=where, vectors=vectors, rerank=vector is not None)[0]

    def _answer(self, search: Search, matches: Matches) -> bytes:
        codes = matches.codes
        if codes is None:  # an index that does not tell them with the matches
            items = self._index.get(matches.keys)
            hexes = ["" if item is None else item.code.hex() for item in items]
        else:
            digits, width = codes.tobytes().hex(), 2 * codes.shape[1]
            hexes = [digits[at : at + width] for at in range(0, len(digits), width)]
        found = zip(matches.keys, matches.distances.tolist(), matches.metadata_texts(), hexes, strict=True)
        return orjson.dumps(
            {
                "code": search.code.hex(),
                "bits": self._index.bits,
                "ranking": "hamming" if search.outputs is None else "asymmetric",
                "reranked": search.vector is not None,
                "matches": [
                    {"key": key, "distance": distance, "metadata": _shown_text(text), "code": code}
                    for key, distance, text, code in found
                ],
            },
        )


def _shown_text(text: str) -> Any:
    """The same for metadata as it is stored: JSON that goes as it is into the answer, unless a path may be in it."""
    if not text:
        return None
    for name in _QUOTED:
        if name in text:
            return shown(json.loads(text))
    return orjson.Fragment(text)


def shown(metadata: dict[str, Any] | None) -> Any:
    """The same, as a part of an answer."""
    if metadata is None:
        return None
    return orjson.Fragment(json.dumps(without_paths(metadata)))  # orjson itself has no whole numbers beyond 64 bits


def without_paths(metadata: dict[str, Any] | None) -> dict[str, Any] | None:
    """Metadata less what adsh wrote into it of this machine's folders."""
    if metadata is None:
        return None
    return {
        name: value
        for name, value in metadata.items()
        if not (name in _PATHS and isinstance(value, str) and os.path.isabs(value))
    }


def from_hex(text: str, bits: int) -> bytes:
    """A packed code of this length, or one line that says what is wrong with it."""
    width = (bits + 7) // 8
    try:
        code = bytes.fromhex(text)
    except ValueError:
        code = b""
    if len(code) != width or len(text) != 2 * width:
        raise InputError(
            f"code={text[:40]!r} has {len(text)} characters, but {bits} bits are {2 * width} hexadecimal digits: give "
            "the code as /v1/encode gives it"
        )
    if code[-1] & ((1 << (8 * width - bits)) - 1):
        raise InputError(f"code={text[:40]!r} has a 1 after its {bits} bits: the bits that fill the last byte are 0")
    return code
