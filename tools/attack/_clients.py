"""Innocent clients in a process of their own: keep-alive searches by code, timed.

python -m tools.attack._clients PORT CLIENTS SECONDS        prints one JSON object
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
import time
from collections import Counter
from typing import Any

_TIMEOUT = 120.0


def start(port: int, clients: int, seconds: float) -> subprocess.Popen[str]:
    """Start so many clients for so long."""
    words = [sys.executable, "-m", "tools.attack._clients", str(port), str(clients), str(seconds)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str], seconds: float = 600.0) -> dict[str, Any]:
    """Return what they measured."""
    text, _ = process.communicate(timeout=seconds)
    figures: dict[str, Any] = json.loads(text)
    return figures


async def _one(port: int, until: float, times: list[float], answers: Counter[str]) -> None:
    draw = random.Random(port)
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            while time.monotonic() < until:
                body = b'{"code":"%06x","k":10}' % draw.getrandbits(24)
                head = b"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                started = time.monotonic()
                writer.write(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
                async with asyncio.timeout(_TIMEOUT):
                    answer = await reader.readuntil(b"\r\n\r\n")
                    at = answer.index(b"content-length: ") + 16
                    await reader.readexactly(int(answer[at : answer.index(b"\r", at)]))
                times.append(time.monotonic() - started)
                answers[answer[9:12].decode()] += 1
                if b"connection: close" in answer:
                    break
            writer.close()
        except (OSError, asyncio.IncompleteReadError, TimeoutError) as problem:
            answers[type(problem).__name__] += 1
            await asyncio.sleep(0.1)


async def _all(port: int, clients: int, seconds: float) -> dict[str, Any]:
    times: list[float] = []
    answers: Counter[str] = Counter()
    started = time.monotonic()
    await asyncio.gather(*(_one(port, started + seconds, times, answers) for _ in range(clients)))
    times.sort()
    return {
        "clients": clients,
        "answers": dict(answers),
        "per_second": round(len(times) / (time.monotonic() - started), 1),
        "p50_ms": _percentile(times, 0.5),
        "p99_ms": _percentile(times, 0.99),
        "max_ms": _percentile(times, 1.0),
    }


def _percentile(times: list[float], part: float) -> float:
    return round(1000 * times[min(len(times) - 1, int(part * len(times)))], 2) if times else float("inf")


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_all(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))))
