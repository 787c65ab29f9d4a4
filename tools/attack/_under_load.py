"""Send hostile requests to a service while innocent clients search, and compare with what they had before."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import adsh

from . import _clients
from ._server import Server, create
from ._settings import Settings

CLIENTS, BEFORE_SECONDS, ATTACKERS = 32, 10.0, 8
OTHERS = {"image": 4, "filter": 8}  # clients beside them that search by image, and with a filter
MAX_MEMORY, MIN_RATE, MAX_LATENCY = 1 << 30, 0.5, 10.0  # over the start; of the rate; times the usual p99
_ROUND = 10.0  # seconds without the attack, and then with it: what else the machine does slows both
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
        context = multiprocessing.get_context("spawn")
        attacking, stop, results = context.Event(), context.Event(), context.Queue()
        sender = context.Process(target=_send, args=(server.port, settings, draw, (attacking, stop), results))
        sender.start()
        before, during, until = [], [], time.monotonic() + settings.seconds
        while sender.is_alive() and (not during or time.monotonic() < until):
            before.append(_round(server.port))
            attacking.set()
            during.append(_round(server.port))
            attacking.clear()
            time.sleep(0.5)  # until what was sent is answered
        stop.set()
        sent = results.get(timeout=180)
        sender.join()
        alive = server.process.poll() is None
        took = server.stop(seconds=60)
        grown = server.peak_memory - server.start_memory
    damage = damage_after(index, settings.folder / "log.jsonl")
    code, *others = (compare([one[group] for one in before], [one[group] for one in during]) for group in before[0])
    held = all(group["held"] for group in (code, *others))
    held = held and alive and not any(damage.values()) and grown <= MAX_MEMORY
    return {
        **code,
        "others": dict(zip(OTHERS, others, strict=True)),
        "held": held,
        "requested": settings.count,
        "complete": sent["requests"] >= settings.count,  # otherwise held for as many as were sent
        "sent": sent,
        "memory_start_mib": server.start_memory >> 20,
        "memory_grown_mib": grown >> 20,
        "stop_seconds": round(took, 2),
        **damage,
        "rounds": [[one, other] for one, other in zip(before, during, strict=True)],
    }


def _round(port: int) -> dict[str, dict[str, Any]]:
    """Return what all groups of innocent clients measure side by side."""
    started = {
        group: _clients.start(port, clients, _ROUND, group) for group, clients in {"code": CLIENTS, **OTHERS}.items()
    }
    return {group: _clients.finish(process) for group, process in started.items()}


def damage_after(index: Path, log: Path) -> dict[str, list[str]]:
    """Return the first failures in a service's log, and what is wrong with its index; nothing if all is well."""
    failures = [line for line in log.read_text().splitlines() if '"level":"error"' in line]
    with adsh.open_index(index) as opened:
        return {"failures": failures[:3], "index_problems": opened.verify()}


def compare(before: list[dict[str, Any]], during: list[dict[str, Any]]) -> dict[str, Any]:
    """Compare what innocent clients measured without and with an attack.

    Args:
        before: The rounds without.
        during: The rounds with.

    Returns:
        The figures, and under "held" whether all were answered, none after ten times the usual p99, at half the rate.
    """
    usual, rate = _mean(before, "per_second"), _mean(during, "per_second")
    p99, slowest = _mean(before, "p99_ms"), max(one["max_ms"] for one in during)
    turns = list(zip(during, before, strict=True))
    refused = sum(count for one in during for name, count in one["answers"].items() if name != "200")
    return {
        "held": rate >= MIN_RATE * usual and slowest <= MAX_LATENCY * p99 and not refused,
        "usual_per_second": usual,
        "attacked_per_second": rate,
        "rate": round(rate / usual, 3),
        "worst_turn": round(min(one["per_second"] / other["per_second"] for one, other in turns), 3),
        "usual_p99_ms": p99,
        "usual_slowest_ms": max(one["max_ms"] for one in before),
        "attacked_p99_ms": _mean(during, "p99_ms"),
        "attacked_slowest_ms": slowest,
        "slowest_by_usual_p99": round(slowest / p99, 2),
        "innocent_answers": sum(one["answers"].get("200", 0) for one in during),
        "innocent_not_answered": refused,
    }


def _mean(rounds: list[dict[str, Any]], name: str) -> float:
    return round(sum(one[name] for one in rounds) / len(rounds), 2)


def _send(port: int, settings: Settings, draw: Draw, events: tuple[Any, Any], results: Any) -> None:
    os.nice(10)  # the attacker's own work should not take the service's time
    draw(random.Random(0))  # nor what it prepares once
    results.put(asyncio.run(_send_all(port, settings, draw, events)))


async def _send_all(port: int, settings: Settings, draw: Draw, events: tuple[Any, Any]) -> dict[str, Any]:
    answers: Counter[str] = Counter()
    sent = 0
    attacking, stop = events

    async def one(number: int) -> None:
        nonlocal sent
        rng = random.Random(settings.seed * 1000 + number)
        while sent < settings.count and not stop.is_set():
            if not attacking.is_set():
                await asyncio.sleep(0.05)
                continue
            sent += 1
            answers[await exchange(port, draw(rng))] += 1

    await asyncio.gather(*map(one, range(ATTACKERS)))
    return {"requests": sent, "answers": dict(answers)}


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
