"""Send hostile requests to a service while 32 innocent clients search, and compare with what they had before."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import adsh

from . import _clients
from ._server import Server, create
from ._settings import Settings

CLIENTS, BEFORE_SECONDS, ATTACKERS = 32, 10.0, 8
MAX_MEMORY, MIN_RATE, MAX_LATENCY = 1 << 30, 0.5, 10.0  # over the start; of the rate; times the usual p99
Draw = Callable[[random.Random], bytes]  # returns a request as it is sent


def attack(settings: Settings, draw: Draw, *flags: str) -> dict[str, Any]:
    """Attack a service with drawn requests for as long and as often as the settings allow.

    Args:
        settings: The bounds.
        draw: Returns the next hostile request.
        flags: Of `adsh serve`.

    Returns:
        The figures, and whether it held.
    """
    model, index = create(settings.folder)
    with (settings.folder / "log.jsonl").open("wb") as log, Server(model, index, *flags, log=log) as server:
        usual = _clients.finish(_clients.start(server.port, CLIENTS, BEFORE_SECONDS))
        context = multiprocessing.get_context("spawn")
        stop, results = context.Event(), context.Queue()
        sender = context.Process(target=_send, args=(server.port, settings, draw, stop, results))
        sender.start()
        rounds, until = [], time.monotonic() + settings.seconds
        while sender.is_alive() and time.monotonic() < until:
            rounds.append(_clients.finish(_clients.start(server.port, CLIENTS, min(30.0, settings.seconds))))
        stop.set()
        sent = results.get(timeout=180)
        sender.join()
        alive = server.process.poll() is None
        took = server.stop(seconds=60)
        grown = server.peak_memory - server.start_memory
    with adsh.open_index(index) as opened:
        problems = opened.verify()
    failures = [line for line in (settings.folder / "log.jsonl").read_text().splitlines() if '"level":"error"' in line]
    rate = min(one["per_second"] for one in rounds) / usual["per_second"]
    slowest = max(one["max_ms"] for one in rounds)
    refused = sum(count for one in rounds for name, count in one["answers"].items() if name != "200")
    return {
        "held": alive
        and not problems
        and not failures
        and not refused
        and grown <= MAX_MEMORY
        and rate >= MIN_RATE
        and slowest <= MAX_LATENCY * usual["p99_ms"],
        "sent": sent,
        "usual": usual,
        "worst_rate": round(rate, 3),
        "slowest_ms": slowest,
        "slowest_by_usual_p99": round(slowest / usual["p99_ms"], 2),
        "during": rounds,
        "memory_start_mib": server.start_memory >> 20,
        "memory_grown_mib": grown >> 20,
        "stop_seconds": round(took, 2),
        "innocent_not_answered": refused,
        "failures": failures[:3],
        "index_problems": problems,
    }


def _send(port: int, settings: Settings, draw: Draw, stop: Any, results: Any) -> None:
    os.nice(10)  # the attacker's own work should not take the service's time
    results.put(asyncio.run(_send_all(port, settings, draw, stop)))


async def _send_all(port: int, settings: Settings, draw: Draw, stop: Any) -> dict[str, Any]:
    answers: Counter[str] = Counter()
    sent = 0
    until = time.monotonic() + settings.seconds

    async def one(number: int) -> None:
        nonlocal sent
        rng = random.Random(settings.seed * 1000 + number)
        while sent < settings.count and time.monotonic() < until and not stop.is_set():
            sent += 1
            answers[await exchange(port, draw(rng))] += 1

    started = time.monotonic()
    await asyncio.gather(*map(one, range(ATTACKERS)))
    return {"requests": sent, "seconds": round(time.monotonic() - started, 1), "answers": dict(answers)}


async def exchange(port: int, request: bytes, timeout: float = 90.0) -> str:
    """Send a request on a connection of its own; return the status, or what happened instead."""
    try:
        async with asyncio.timeout(timeout):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                writer.write(request)
                status = await reader.read(12)
                return status[9:12].decode("latin-1") or "closed"
            finally:
                writer.transport.abort()
    except (OSError, TimeoutError) as problem:
        return type(problem).__name__
