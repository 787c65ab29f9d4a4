"""Writers of one index in PostgreSQL at every default isolation level: no place twice, no item skipped."""

from __future__ import annotations

import threading
import time
from typing import Any

from tests.index import postgres_server
from tests.index.cases import keys, random_codes

import adsh

from ._settings import Settings

_LEVELS = ("read committed", "repeatable read", "serializable")
_WRITERS, _ADDS, _ITEMS = 4, 25, 20


def run(settings: Settings) -> dict[str, Any]:
    """Fill an index by four writers at each level in turn, until the count of items or the time is reached."""
    if postgres_server.missing():
        return {"held": False, "error": postgres_server.missing()}
    until = time.monotonic() + settings.seconds
    figures = dict.fromkeys(_LEVELS, 0)
    server = postgres_server.Server("max_connections=50")
    try:
        number = 0
        while time.monotonic() < until and sum(figures.values()) < settings.count:
            level = _LEVELS[number % len(_LEVELS)]
            option = "-c%20default_transaction_isolation%3D" + level.replace(" ", "%5C%20")
            figures[level] += _fill(f"{server.uri(query=f'table=t{number}')}&options={option}")
            number += 1
    finally:
        server.stop()
    return {"held": True, "items": sum(figures.values()), "duplicate places": 0, "items skipped": 0, **figures}


def _fill(location: str) -> int:
    total = _WRITERS * _ADDS * _ITEMS
    names, codes = keys(total), random_codes(total)
    adsh.open_index(location, bits=48).close()
    problems: list[Exception] = []

    def write(first: int) -> None:
        try:
            with adsh.open_index(location, timeout=120) as index:
                for start in range(first, first + _ADDS * _ITEMS, _ITEMS):
                    index.add(names[start : start + _ITEMS], codes[start : start + _ITEMS])
        except Exception as problem:
            problems.append(problem)

    writers = [threading.Thread(target=write, args=(number * _ADDS * _ITEMS,)) for number in range(_WRITERS)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert problems == [], problems
    with adsh.open_index(location) as index:
        assert index.verify() == []
        assert sum(map(len, index.batches(97))) == total
    return total
