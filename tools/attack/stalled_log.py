"""A reader of the service's log that stops reading: searches, and a stop, go on as before."""

from __future__ import annotations

import os
from typing import Any

from . import _clients
from ._server import Server, create
from ._settings import Settings
from ._under_load import BEFORE_SECONDS, CLIENTS, compare

_STOP = 20.0  # seconds


def run(settings: Settings) -> dict[str, Any]:
    """Compare 32 clients with a log in a file and with one in a pipe that nobody reads."""
    model, index = create(settings.folder)
    with (settings.folder / "log.jsonl").open("wb") as log, Server(model, index, log=log) as server:
        usual = _clients.finish(_clients.start(server.port, CLIENTS, BEFORE_SECONDS))
    reader, writer = os.pipe()
    try:
        with Server(model, index, "--stop-seconds", str(_STOP), log=writer) as server:
            during = _clients.finish(_clients.start(server.port, CLIENTS, min(30.0, settings.seconds)))
            took = server.stop(seconds=60)
    finally:
        os.close(reader)
        os.close(writer)
    figures = compare([usual], [during])
    return {**figures, "held": figures["held"] and took <= _STOP, "stop_seconds": round(took, 2)}
