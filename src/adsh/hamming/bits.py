"""The only home of packing: codes of +1/-1 to and from bytes.

A packed code is uint8, `numpy.packbits` order: the first bit is the highest of the first byte, 1 stands
for +1, and the bits that pad the last byte are 0. Any length from 1 to MAX_BITS.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

MAX_BITS = 1024

Codes = NDArray[np.uint8]


def check_bits(bits: object) -> int:
    """`bits` as an int, or an error that says what a code length may be."""
    if isinstance(bits, bool) or not isinstance(bits, int | np.integer) or not 1 <= bits <= MAX_BITS:
        raise InputError(f"bits={bits!r}: a code length is a whole number from 1 to {MAX_BITS}")
    return int(bits)


def bytes_for(bits: int) -> int:
    """How many bytes a packed code of this length takes."""
    return (bits + 7) // 8


def pack(signs: NDArray[Any]) -> Codes:
    """(n, c) of +1/-1, or of real outputs, to packed codes; 0 counts as +1."""
    return np.packbits(signs >= 0, axis=-1)


def unpack(codes: Codes, bits: int) -> NDArray[np.int8]:
    """Packed codes to (n, bits) int8 of +1/-1."""
    ones = np.unpackbits(codes, axis=-1, count=bits).view(np.int8)
    return 2 * ones - 1  # int8 throughout


def as_words(codes: Codes) -> NDArray[np.uint64]:
    """Packed codes as (n, words) uint64, zero-padded; equal codes have equal words."""
    n, width = codes.shape
    words = -(-width // 8)
    if width == words * 8:
        return np.ascontiguousarray(codes).view(np.uint64)
    padded = np.zeros((n, words * 8), dtype=np.uint8)
    padded[:, :width] = codes
    return padded.view(np.uint64)


def distinct(codes: Codes) -> tuple[Codes, NDArray[np.intp], NDArray[np.int64]]:
    """The distinct codes, the position of each row among them, and how often each occurs."""
    words = as_words(codes)
    key = words[:, 0] if words.shape[1] == 1 else words.view([("", np.uint64)] * words.shape[1]).ravel()
    _, first, inverse, counts = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    return codes[first], inverse.ravel(), counts
