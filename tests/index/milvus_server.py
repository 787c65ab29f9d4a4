"""A real Milvus for tests: milvus-lite 2.5.1, listening on a port of this machine.

Its program is started directly: the wheel's Python part needs a setuptools of years ago.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

from tests.index.postgres_server import free_port


def missing() -> str | None:
    """Why no server can be started here."""
    for module in ("pymilvus", "milvus_lite"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed: pip install -e '.[milvus-test]'"
    return None


class Server:
    """One server in a folder of its own; stopped with its folder removed."""

    def __init__(self) -> None:
        found = importlib.util.find_spec("milvus_lite")
        assert found is not None
        assert found.origin is not None
        self._programs = Path(found.origin).parent / "lib"
        self.folder = Path(tempfile.mkdtemp(prefix="adsh-milvus-"))
        self.port = free_port()
        self.start()

    def uri(self, query: str = "") -> str:
        """Where it listens."""
        return f"milvus+http://127.0.0.1:{self.port}{'?' * bool(query)}{query}"

    def start(self) -> None:
        """Starts it, and returns when it answers."""
        from pymilvus.client import grpc_handler

        # the client sleeps half a second after each index it makes, and every test makes two
        grpc_handler.time = SimpleNamespace(sleep=lambda seconds: time.sleep(seconds / 50), time=time.time)
        address = f"127.0.0.1:{self.port}"
        command = [str(self._programs / "milvus"), str(self.folder / "test.db"), address, "ERROR"]
        libraries = {**os.environ, "LD_LIBRARY_PATH": str(self._programs)}
        with open(self.folder / "log", "a") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, env=libraries)
        until = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=5).close()
                return
            except OSError:
                if time.monotonic() > until or self._process.poll() is not None:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.1)

    def kill(self) -> None:
        """Ends it at once."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Ends it and removes its folder."""
        self.kill()
        shutil.rmtree(self.folder)
