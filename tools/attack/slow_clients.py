"""Slow and half-open clients: uploads that stop, heads byte by byte, answers that nobody reads."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Any

from . import _clients
from ._server import Server, create
from ._settings import Settings
from ._under_load import BEFORE_SECONDS, CLIENTS, MAX_MEMORY, compare, damage_after

_UPLOADS, _HEADS, _READERS = 250, 300, 100
_ROUND = 40.0  # seconds: longer than a request may take


def run(settings: Settings) -> dict[str, Any]:
    """Hold as many connections as the service allows, in rounds, while 32 clients search."""
    model, index = create(settings.folder)
    with (settings.folder / "log.jsonl").open("wb") as log, Server(model, index, log=log) as server:
        before, during, until = [], [], time.monotonic() + settings.seconds
        while not during or time.monotonic() + _ROUND < until:
            before.append(_clients.finish(_clients.start(server.port, CLIENTS, BEFORE_SECONDS)))
            clients = _clients.start(server.port, CLIENTS, _ROUND)
            attack = threading.Thread(target=_hold, args=(server.port, _ROUND))
            attack.start()
            during.append(_clients.finish(clients))
            attack.join()
        grown = server.peak_memory - server.start_memory
        took = server.stop(seconds=60)
    damage = damage_after(index, settings.folder / "log.jsonl")
    figures = compare(before, during)
    return {
        **figures,
        "held": figures["held"] and not any(damage.values()) and grown <= MAX_MEMORY,
        "connections": len(during) * (_UPLOADS + _HEADS + _READERS),
        "memory_grown_mib": grown >> 20,
        "stop_seconds": round(took, 2),
        **damage,
    }


def _hold(port: int, seconds: float) -> None:
    """Open connections of each kind, keep them busy for so long, and drop them."""
    until = time.monotonic() + seconds
    opened: list[socket.socket] = []
    for number in range(_UPLOADS + _HEADS + _READERS):
        with suppress(OSError):
            one = socket.create_connection(("127.0.0.1", port), timeout=5)
            opened.append(one)
            if number < _UPLOADS:
                _start_upload(one, number)
            elif number < _UPLOADS + _HEADS:
                one.sendall(b"GET /v1/info HTTP/1.1\r\nHost: localhost\r\nX: ")
            else:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
                one.sendall(b"GET /v1/info HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20)
    while time.monotonic() < until:
        for one in opened[_UPLOADS : _UPLOADS + _HEADS]:
            with suppress(OSError):
                one.sendall(b"x")
        time.sleep(1.0)
    for one in opened:
        one.close()


def _start_upload(one: socket.socket, number: int) -> None:
    """Send all but the last byte of the largest body: JSON or an image, in turn."""
    size = (16 << 20) - 10
    if number % 2:
        head = b"POST /v1/items HTTP/1.1\r\nContent-Type: application/json\r\n"
        start = b'{"items":['
    else:
        head = b"POST /v1/encode HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=x\r\n"
        start = b'--x\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n'
    one.sendall(head + b"Host: localhost\r\nContent-Length: %d\r\n\r\n" % size + start)
    one.sendall(b" " * (size - len(start) - 1))
