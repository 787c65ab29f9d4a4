"""Answers of searches as JSON, without the paths that adsh wrote into metadata."""

from __future__ import annotations

import json
from typing import Any

import orjson

from ...errors import InputError
from ...index import Index
from ...index.filters import OR
from ...search.guess import Guess
from ...search.searcher import Answer, SearchPlan
from ...utils.redaction import is_absolute_path, redact_paths

_PATH_FIELDS = ("file", "root", "source")  # of the metadata that adsh itself writes
_EQUALITIES = frozenset(("eq", "ne", "in", "not_in"))
_QUOTED = tuple(f'"{name}"' for name in _PATH_FIELDS)


def answer_json(index: Index, plan: SearchPlan, answer: Answer) -> bytes:
    """Return the answer to a search of one query.

    Args:
        index: What was searched.
        plan: The search.
        answer: What it found.
    """
    matches, guess = answer.matches, answer.guess
    codes = matches.codes
    if codes is None:  # an index that does not return codes with the matches
        items = index.get(matches.keys)
        hex_codes = ["" if item is None else item.code.hex() for item in items]
    else:
        digits, width = codes.tobytes().hex(), 2 * codes.shape[1]
        hex_codes = [digits[start : start + width] for start in range(0, len(digits), width)]
    rows = zip(matches.keys, matches.distances.tolist(), matches.metadata_texts(), hex_codes, strict=True)
    return orjson.dumps(
        {
            "code": plan.codes.tobytes().hex(),
            "bits": index.bits,
            "ranking": plan.options.ranking,
            "reranked": plan.vectors is not None,
            "guess": None if guess is None else _guess_json(guess),
            "nearest": answer.nearest,
            "familiarity": None if answer.familiarity is None else round(answer.familiarity, 4),
            "matches": [
                {"key": key, "distance": distance, "metadata": _metadata_of_text(text), "code": code}
                for key, distance, text, code in rows
            ],
        },
    )


def _guess_json(guess: Guess) -> dict[str, Any]:
    label = orjson.Fragment(json.dumps(guess.label))  # orjson refuses a name of a file that is not UTF-8
    return {**guess._asdict(), "label": label, "share": round(guess.share, 4)}


def redact_metadata(metadata: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return an item's metadata without the paths that adsh wrote into it."""
    return None if metadata is None else redact_paths(metadata, _PATH_FIELDS)


def check_filter(where: dict[str, Any]) -> None:
    """Refuse conditions that would tell of a path which `redact_metadata` leaves out.

    Raises:
        InputError: A field that may hold a path is compared with one, or by its order.
    """
    alternatives = where.get(OR)
    for alternative in alternatives if isinstance(alternatives, list) else ():
        if isinstance(alternative, dict):  # anything else is refused as a filter
            check_filter(alternative)
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
