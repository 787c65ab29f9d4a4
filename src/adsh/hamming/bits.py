"""Pack codes of +1/-1 into bytes, and unpack them: the only place where this is defined.

A packed code is uint8 in `numpy.packbits` order: the first bit is the highest of the first byte, 1 stands
for +1, and the bits that pad the last byte are 0. Any length from 1 to MAX_BITS.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..utils.arrays import as_words as as_words
from ..utils.arrays import unique_rows

MAX_BITS = 1024

DEFAULT_BITS = 48  # of a code, where nobody says how many

Codes = NDArray[np.uint8]

distinct = unique_rows  # the name in the reference of earlier versions


def check_bits(bits: object) -> int:
    """Return `bits` as an int; raise InputError if it is no code length."""
    if isinstance(bits, bool) or not isinstance(bits, int | np.integer) or not 1 <= bits <= MAX_BITS:
        raise InputError(f"bits={bits!r}: a code length is a whole number from 1 to {MAX_BITS}")
    return int(bits)


def bytes_for(bits: int) -> int:
    """Return how many bytes a packed code of this length takes."""
    return (bits + 7) // 8


def pack(signs: NDArray[Any]) -> Codes:
    """Pack (n, c) of +1/-1, or of real-valued outputs, into codes; 0 counts as +1."""
    return np.packbits(signs >= 0, axis=-1)


def unpack(codes: Codes, bits: int) -> NDArray[np.int8]:
    """Unpack codes to (n, bits) int8 of +1/-1."""
    ones = np.unpackbits(codes, axis=-1, count=bits).view(np.int8)
    return 2 * ones - 1  # int8 throughout


def as_octets(words: NDArray[np.uint64], bits: int) -> Codes:
    """Return the packed codes that `as_words` was given."""
    return np.ascontiguousarray(words).view(np.uint8).reshape(len(words), 8 * words.shape[1])[:, : bytes_for(bits)]


def as_array(values: Any) -> NDArray[Any]:
    """Return an array, a list or a torch tensor as an array; torch itself is not imported here."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def as_codes(codes: Any, what: str = "codes") -> Codes:
    """Return packed codes of any length as an array; raise InputError if they are no packed codes."""
    array = as_array(codes)
    if array.dtype != np.uint8 or array.ndim != 2:
        raise InputError(
            f"{what} have type {array.dtype} and shape {array.shape}: packed codes are uint8 of shape "
            "(n, bytes); pack +1/-1 with adsh.hamming.bits.pack"
        )
    return array


def check_codes(codes: Any, bits: int, what: str = "codes") -> Codes:
    """Return packed codes of this length as an array.

    Args:
        codes: an array or tensor.
        bits: the length of the codes.
        what: their name in messages.

    Returns:
        uint8 array (n, ceil(bits / 8)).

    Raises:
        InputError: they have another type, shape or length, or a 1 among the padding bits.
    """
    array = as_codes(codes, what)
    if array.shape[1] != bytes_for(bits):
        raise InputError(
            f"{what} have {array.shape[1]} bytes a row, but bits={bits} needs {bytes_for(bits)}: "
            f"pass bits={array.shape[1] * 8}, or encode with a {bits}-bit model"
        )
    padding = bytes_for(bits) * 8 - bits
    if padding and (array[:, -1] & ((1 << padding) - 1)).any():
        row = int(np.flatnonzero(array[:, -1] & ((1 << padding) - 1))[0])
        raise InputError(
            f"{what} have a 1 among the {padding} padding bits of row {row}, but bits={bits} uses only {bits} of "
            f"{bytes_for(bits) * 8} bits: pass the bits they were packed with"
        )
    return array


def number_rows(words: NDArray[np.uint64]) -> tuple[int, NDArray[np.int64]]:
    """Return how many distinct rows there are, and each row's number among them, in lexicographic order."""
    count, numbers = 1, np.zeros(len(words), dtype=np.int64)
    for column in words.T:
        column_count, column_numbers = _number(column)
        if count == 1:
            count, numbers = column_count, column_numbers
        else:  # both factors are at most n: their product fits an int64 up to 3e9 rows
            count, numbers = _number(numbers * column_count + column_numbers)
    return count, numbers


def _number(values: NDArray[Any]) -> tuple[int, NDArray[np.int64]]:
    """How many distinct values there are, and each one's number among them, ascending."""
    order = np.argsort(values)
    ordered = values[order]
    steps = np.cumsum(ordered[1:] != ordered[:-1])
    numbers = np.zeros(len(values), dtype=np.int64)
    numbers[order[1:]] = steps
    return int(steps[-1] + 1 if len(steps) else len(values)), numbers
