"""Innocent clients in a process of their own: keep-alive searches by code, image or with a filter, timed.

python -m tools.attack._clients PORT GROUP CLIENTS SECONDS        prints one JSON object
"""

from __future__ import annotations

import asyncio
import io
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

_TIMEOUT = 120.0
_JSON = "application/json"
_FILTERS: list[Callable[[random.Random], dict[str, Any]]] = [
    lambda draw: {"class": f"c{draw.randrange(10)}"},
    lambda draw: {"class": {"in": [f"c{draw.randrange(10)}", f"c{draw.randrange(10)}"]}},
    lambda draw: {"class": {"ge": f"c{draw.randrange(10)}"}},
    lambda draw: {"year": {"ge": draw.randrange(1950, 2020)}},
]


def start(port: int, clients: int, seconds: float, group: str = "code") -> subprocess.Popen[str]:
    """Start clients.

    Args:
        port: Of the service.
        clients: How many.
        seconds: How long they search.
        group: What they search by: "code", "image", or by code with a "filter".
    """
    words = [sys.executable, "-m", "tools.attack._clients", str(port), group, str(clients), str(seconds)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str], seconds: float = 600.0) -> dict[str, Any]:
    """Return what they measured."""
    text, _ = process.communicate(timeout=seconds)
    figures: dict[str, Any] = json.loads(text)
    return figures


def draw_request(group: str, draw: random.Random) -> bytes:
    """Return a search as it is sent."""
    kind = _JSON
    if group == "image":
        kind, image = "multipart/form-data; boundary=x", draw.choice(_images())
        body = b'--x\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n' + image + b"\r\n--x--\r\n"
    else:
        search: dict[str, Any] = {"code": f"{draw.getrandbits(24):06x}", "k": 10}
        if group == "filter":
            search["filter"] = draw.choice(_FILTERS)(draw)
        body = json.dumps(search).encode()
    head = f"POST /v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@cache
def _images() -> list[bytes]:
    """Return small images such as people send."""
    from PIL import Image

    files = []
    for number, kind in enumerate(("JPEG", "PNG", "WEBP", "JPEG")):
        file = io.BytesIO()
        Image.effect_noise((120, 90), 20 + 20 * number).convert("RGB").save(file, kind)
        files.append(file.getvalue())
    return files


async def _one(port: int, draw: Callable[[], bytes], until: float, times: list[float], answers: Counter[str]) -> None:
    while time.monotonic() < until:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            while time.monotonic() < until:
                request = draw()
                started = time.monotonic()
                writer.write(request)
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


async def _all(port: int, group: str, clients: int, seconds: float) -> dict[str, Any]:
    times: list[float] = []
    answers: Counter[str] = Counter()
    rng = random.Random(port)
    draw_request(group, rng)  # what it imports takes no time of the first searches
    started = time.monotonic()
    one = (_one(port, lambda: draw_request(group, rng), started + seconds, times, answers) for _ in range(clients))
    await asyncio.gather(*one)
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
    print(json.dumps(asyncio.run(_all(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), float(sys.argv[4])))))
