"""Check what an index is given before anything is written: one line for each way it can be wrong."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..hamming.bits import Codes, as_array, as_codes, check_codes
from ..hamming.query import Query, code_queries, output_queries

LONGEST_KEY = 4096  # bytes: the longest path of a file
LONGEST_METADATA = 1 << 16  # bytes of JSON


class Batch(NamedTuple):
    """Items to store, checked."""

    keys: list[bytes]  # UTF-8
    codes: Codes  # (n, bytes)
    metadata: list[bytes] | None  # JSON, empty for an item without any; None if no item has any
    generations: list[int | None] | None = None  # of the model whose network gave the code; None if none did

    @property
    def by_network(self) -> list[tuple[int, int]]:
        """The position and the model's generation of each item with a code by the network."""
        return [(at, number) for at, number in enumerate(self.generations or ()) if number is not None]


def check_items(
    keys: object, codes: Any, metadata: Sequence[Any] | None, bits: int, longest_key: int = LONGEST_KEY
) -> Batch:
    """Check what is to be stored.

    Args:
        keys: a sequence of texts.
        codes: packed codes, one per key.
        metadata: a dictionary or None per key; None if no item has any.
        bits: the length of the codes.
        longest_key: how many bytes a key may take.

    Returns:
        The items as they are stored.
    """
    encoded = check_keys(keys, longest_key)
    packed = check_codes(codes, bits)
    check_count("codes", len(packed), len(encoded))
    return Batch(encoded, packed, metadata_texts(metadata, len(encoded)))


def check_by_network(by_network: Any, count: int, generation: int) -> list[int | None] | None:
    """Return the generation of the model for each item with a code by its network, and None for others.

    Args:
        by_network: True or False for all items, or one of them for each; or what `Index.networks` returned.
        count: how many items there are.
        generation: of the model.

    Returns:
        One value per item; None if the network gave no code.
    """
    if isinstance(by_network, list) and any(type(one) is int for one in by_network):
        check_count("values of by_network", len(by_network), count)
        return by_network
    flags = np.asarray([bool(one) for one in by_network] if isinstance(by_network, list) else by_network)
    if flags.dtype != np.bool_ or flags.ndim > 1:
        raise InputError(f"by_network={by_network!r:.60}: give True or False, or one of them for each item")
    if flags.ndim:
        check_count("values of by_network", len(flags), count)
    if not flags.any():
        return None
    return [generation if flag else None for flag in np.broadcast_to(flags, count).tolist()]


def check_queries(codes: Any, ranking: str, bits: int) -> list[Query]:
    """Return the queries of packed codes or, with the asymmetric ranking, of a network's outputs.

    Args:
        codes: packed codes (q, bytes), or outputs (q, bits).
        ranking: "hamming" or "asymmetric".
        bits: the length of the codes.

    Returns:
        One query for each row.
    """
    if ranking == "hamming":
        return code_queries(check_codes(as_codes(codes), bits), bits)
    if ranking == "asymmetric":
        return output_queries(check_outputs(codes, bits), bits)
    raise InputError(f'ranking={ranking!r}: choose "hamming" or "asymmetric"')


def check_given(vectors: Any) -> None:
    """Raise if there are no vectors to re-rank by."""
    if vectors is None:
        raise InputError("rerank=True orders by vectors: give those of the queries as vectors=")


def check_keys(keys: object, longest: int = LONGEST_KEY) -> list[bytes]:
    """Return the keys in UTF-8; raise if one is no text, too long or given twice."""
    if isinstance(keys, str | bytes):
        raise InputError(f"keys={keys[:40]!r} is one text: give a list of keys")
    if not isinstance(keys, Sequence | np.ndarray):
        raise InputError(f"keys are of type {type(keys).__name__}: give a list of keys")
    encoded = [_check_key(number, key, longest) for number, key in enumerate(keys)]
    if len(set(encoded)) < len(encoded):
        seen: set[bytes] = set()
        for number, key in enumerate(encoded):
            if key in seen:
                raise InputError(f"key {key.decode()[:80]!r} is given twice, again as number {number}: give it once")
            seen.add(key)
    return encoded


def _check_key(number: int, key: object, longest: int) -> bytes:
    if not isinstance(key, str):
        raise InputError(f"key {number} is {key!r} of type {type(key).__name__}: keys are texts; give str(key)")
    if not key or "\0" in key:
        raise InputError(f"key {number} is {key[:40]!r}: a key has at least one character, and no NUL")
    try:
        encoded = key.encode()
    except UnicodeEncodeError:
        raise InputError(f"key {number}, {key[:40]!r}, is no Unicode text: keys are stored as UTF-8") from None
    if len(encoded) > longest:
        raise InputError(
            f"key {number}, {key[:40]!r}…, takes {len(encoded)} bytes, and at most {longest} are allowed: "
            "shorten it, and put the rest in the metadata"
        )
    return encoded


def check_count(what: str, count: int, keys: int) -> None:
    """Raise unless there are as many of `what` as keys.

    Args:
        what: what there must be one of for each key.
        count: how many there are.
        keys: how many keys there are.
    """
    if count != keys:
        raise InputError(f"{keys} keys but {count} {what}: give one of each for an item")


def metadata_texts(metadata: Sequence[Any] | None, keys: int) -> list[bytes] | None:
    """Return each item's metadata as JSON, empty for None; None if no item has any."""
    if metadata is None:
        return None
    if isinstance(metadata, dict | str):
        raise InputError(f"metadata is one {type(metadata).__name__}: give a list with a dictionary or None per item")
    if not isinstance(metadata, Sequence):
        raise InputError(
            f"metadata is of type {type(metadata).__name__}: give a list with a dictionary or None per item"
        )
    check_count("metadata", len(metadata), keys)
    return [_metadata_text(number, one) for number, one in enumerate(metadata)]


def _metadata_text(number: int, metadata: object) -> bytes:
    if metadata is None:
        return b""
    if not isinstance(metadata, dict) or not all(isinstance(name, str) for name in metadata):
        raise InputError(f"metadata {number} is {metadata!r:.80}: give a dictionary with texts as names, or None")
    try:
        text = json.dumps(metadata, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as problem:
        raise InputError(
            f"metadata {number} is not JSON ({problem}): use numbers, texts, lists, dictionaries"
        ) from None
    if len(text) > LONGEST_METADATA:
        raise InputError(
            f"metadata {number} takes {len(text)} bytes, and at most {LONGEST_METADATA} are allowed: "
            "store less with an item, or store where to find the rest"
        )
    return text


def check_features(vectors: Any, width: int | None, count: int) -> NDArray[np.float32]:
    """Check features.

    Args:
        vectors: an array or tensor (count, width).
        width: how many numbers a row must have; None for any.
        count: how many rows are expected.

    Returns:
        Finite numbers (count, width).
    """
    array = as_array(vectors)
    if array.ndim != 2 or array.dtype.kind not in "fiu":
        raise InputError(
            f"vectors have type {array.dtype} and shape {array.shape}: give numbers of shape (n, dimensions)"
        )
    check_count("vectors", len(array), count)
    if width is not None and array.shape[1] != width:
        raise InputError(
            f"vectors have {array.shape[1]} numbers a row, but this index was started with {width}: "
            "give features of the same network"
        )
    array = array.astype(np.float32)
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise InputError(f"vectors have a number that is not finite in row {row}: check the network's input")
    return array


def check_outputs(outputs: Any, bits: int) -> NDArray[np.float64]:
    """Return the real-valued outputs (q, bits) of a network, checked."""
    array = as_array(outputs)
    if array.ndim != 2 or array.dtype.kind != "f" or array.shape[1] != bits:
        raise InputError(
            f'ranking="asymmetric" was given {array.dtype} of shape {array.shape}, but compares real-valued outputs of '
            f"shape (n, {bits}): pass model.outputs(X)"
        )
    if not np.isfinite(array).all():
        raise InputError("outputs have a number that is not finite: check the network's input")
    return array.astype(np.float64)


def check_number(name: str, value: object, least: int) -> int:
    """Return a whole number of at least `least`; raise if it is none.

    Args:
        name: of the parameter, for the error.
        value: what was given.
        least: the smallest number allowed.

    Returns:
        The number as an int.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name}={value!r}: give a whole number of at least {least}")
    return int(value)
