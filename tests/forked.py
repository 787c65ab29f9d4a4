"""Python processes that start at once: forked from one that has imported everything.

`Popen` is `subprocess.Popen` for `[sys.executable, "-m", MODULE, …]` and `[sys.executable, "-c", PROGRAM, …]`: the
process is a real one, with its own pid, pipes, folder, environment and exit status, but torch, which takes seconds to
import, is there already. One server a test process is started when the first is requested. A process that starts others
in the same way (`adsh train --processes 2`) forks them as well, from itself.

With ADSH_TEST_FORK=0 real processes are started: for `make coverage`, and where a difference is suspected.
"""

from __future__ import annotations

import atexit
import inspect
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
import traceback
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PRELOADED = (
    *("torch", "torch._dynamo", "torch.distributed", "numpy", "PIL.Image", "safetensors.torch", "rich.console"),
    *("adsh", "adsh.cli", "adsh.runs.train", "adsh.train.distributed", "adsh.serve.run", "adsh.serve.http.app"),
    *("uvicorn", "uvloop", "httptools", "matplotlib.backends.backend_svg", "sklearn.datasets", "onnxruntime", "orjson"),
)
_NONE = -1  # subprocess's word for "as in the one that starts it"
cpu_seconds: list[float] = []  # of the forked processes that have ended
_EXECUTE = inspect.signature(subprocess.Popen._execute_child)
_PIPES = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")


def _arguments(popen: subprocess.Popen[Any], values: tuple[Any, ...]) -> dict[str, Any]:
    """The arguments of `Popen._execute_child` by name."""
    return _EXECUTE.bind(popen, *values).arguments


def _order(given: dict[str, Any]) -> dict[str, Any] | None:
    """What a forked process has to do; None where it has to be a real one."""
    words = [os.fspath(word) for word in given["args"]] if not isinstance(given["args"], str) else []
    unbuffered = words[1:2] == ["-u"]
    if unbuffered:
        del words[1]
    if len(words) < 3 or words[0] != sys.executable or words[1] not in ("-m", "-c") or given["shell"]:
        return None
    return {
        "words": words[1:],
        "unbuffered": unbuffered,
        "cwd": os.fspath(given["cwd"] or os.getcwd()),
        "env": dict(os.environ if given["env"] is None else given["env"]),
        "new_session": bool(given["start_new_session"]),
    }


class Popen(subprocess.Popen[Any]):
    """A process forked by the server, which also waits for it."""

    _forked = False

    def _execute_child(self, *values: Any) -> None:
        given = _arguments(self, values)
        order = _order(given) if os.environ.get("ADSH_TEST_FORK") != "0" else None
        if order is None:
            super()._execute_child(*values)
            return
        streams = [given["p2cread"], given["c2pwrite"], given["errwrite"]]
        files = [own if stream == _NONE else stream for own, stream in enumerate(streams)]
        try:
            self.pid = _server().ask(order, files)["pid"]
            self._forked = self._child_created = True
        finally:
            self._close_pipe_fds(*(given[name] for name in _PIPES))

    def _internal_poll(self, _deadstate: Any = None, *others: Any) -> int | None:
        if not self._forked:
            return super()._internal_poll(_deadstate, *others)
        if self.returncode is None:
            self._try_wait(os.WNOHANG)
        return self.returncode

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if not self._forked:
            return super()._try_wait(wait_flags)
        while True:
            answer = _server().ask({"wait": self.pid})
            status = answer["status"]
            if status is not None:
                cpu_seconds.append(answer["cpu"])
                self.returncode = os.waitstatus_to_exitcode(status)
                return self.pid, status
            if wait_flags & os.WNOHANG:
                return 0, 0
            threading.Event().wait(0.01)


def run(arguments: list[Any], **options: Any) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run` by `Popen`."""
    if options.pop("capture_output", False):
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    timeout, check = options.pop("timeout", None), options.pop("check", False)
    with Popen(arguments, **options) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except BaseException:
            process.kill()
            raise
    ended = subprocess.CompletedProcess(process.args, process.returncode, out, err)
    if check:
        ended.check_returncode()
    return ended


class _Server:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"from tests.forked import _serve; _serve({other.fileno()})"],
            cwd=ROOT, pass_fds=[other.fileno()], stdin=subprocess.DEVNULL,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"},
        )  # fmt: skip
        other.close()
        atexit.register(self.close)

    def ask(self, order: dict[str, Any], files: list[int] | None = None) -> dict[str, Any]:
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(order).encode()], files or [])
            answer: dict[str, Any] = json.loads(self._socket.recv(1 << 16))
        return answer

    def close(self) -> None:
        self._socket.close()
        self._process.wait()


_started: _Server | None = None
_starting = threading.Lock()


def _server() -> _Server:
    global _started
    with _starting:
        if _started is None:
            _started = _Server()
        return _started


def _serve(number: int) -> None:
    """Fork a process for each order that comes, until the other end is closed."""
    line = socket.socket(fileno=number)
    for name in PRELOADED:
        if find_spec(name.partition(".")[0]) is not None:
            import_module(name)
    import torch

    torch.set_num_threads(1)
    while True:
        message, files, _, _ = socket.recv_fds(line, 1 << 20, 3)
        if not message:
            return
        order = json.loads(message)
        if "wait" in order:
            pid, status, usage = os.wait4(order["wait"], os.WNOHANG)
            answer = {"status": status if pid else None, "cpu": usage.ru_utime + usage.ru_stime}
            line.send(json.dumps(answer).encode())
            continue
        pid = os.fork()
        if pid == 0:
            line.close()
            _become(order, files)
        for file in files:
            os.close(file)
        line.send(json.dumps({"pid": pid}).encode())


def _become(order: dict[str, Any], files: list[int]) -> None:
    """Turn a fresh fork into the process that was requested; never returns."""
    status = 1
    try:
        if order["new_session"]:
            os.setsid()
        # By way of numbers that none of them has: one may be where another one goes.
        high = [os.dup(file) for file in files]
        for at, file in enumerate(high):
            os.dup2(file, at)
        os.closerange(3, 4096)
        os.chdir(order["cwd"])
        os.environ.clear()
        os.environ.update(order["env"])
        for signum in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
            signal.signal(signum, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115  # likewise
        sys.stdout = sys.__stdout__ = _text(1, order["unbuffered"])
        sys.stderr = sys.__stderr__ = _text(2, order["unbuffered"])
        subprocess.Popen = _Nested
        status = _run(order["words"])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _text(number: int, unbuffered: bool) -> io.TextIOWrapper:
    errors = "strict" if number == 1 else "backslashreplace"
    by_line = number == 2 or os.isatty(number)
    file = open(number, "wb", closefd=False)  # noqa: SIM115  # for as long as the process lives
    return io.TextIOWrapper(file, errors=errors, line_buffering=by_line, write_through=unbuffered)


def _run(words: list[str]) -> int:
    """Run `-m MODULE …` or `-c PROGRAM …`; the exit status."""
    flag, program, *more = words
    try:
        if flag == "-m":
            sys.argv, sys.path[0] = [program, *more], os.getcwd()
            runpy.run_module(program, run_name="__main__", alter_sys=True)
        else:
            sys.argv, sys.path[0] = ["-c", *more], ""
            exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        threading._shutdown()  # as at the end of every process: waits for its threads
    return 0


class _Nested(subprocess.Popen[Any]):
    """A process that a forked one starts: a fork of that, and so a child of it."""

    def _execute_child(self, *values: Any) -> None:
        given = _arguments(self, values)
        order = _order(given)
        if order is None:
            super()._execute_child(*values)
            return
        streams = [given["p2cread"], given["c2pwrite"], given["errwrite"]]
        files = [own if stream == _NONE else stream for own, stream in enumerate(streams)]
        sys.stdout.flush()
        sys.stderr.flush()
        try:
            self.pid = os.fork()
            if self.pid == 0:
                _become(order, files)
            self._child_created = True
        finally:
            self._close_pipe_fds(*(given[name] for name in _PIPES))
