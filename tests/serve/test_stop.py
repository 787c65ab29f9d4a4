"""SIGTERM ends the process within --stop-seconds, whatever it is doing, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from pathlib import Path

import pytest

from adsh.client import Client, ServiceError

from .conftest import Process, png

STUCK = """
import ctypes, sys, threading, time
from adsh.serve.engine.service import Service
real = Service.check_index_file
def stuck(self):
    real(self)
    {how}
Service.check_index_file = stuck
from adsh.cli import main
main()
"""
HOW = {
    "a thread that sleeps": "time.sleep(1000)",
    "one that holds the interpreter's lock": "ctypes.PyDLL(None).sleep(1000)",
}


def children(pid: int) -> list[int]:
    texts = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]  # of each thread
    return [int(word) for text in texts for word in text.split()]


@pytest.mark.parametrize("how", HOW)
def test_a_stop_keeps_its_bound_though_work_is_stuck(artifacts, tmp_path, how):
    program = ("-c", STUCK.format(how=HOW[how]))
    server = Process(artifacts.model, artifacts.index, "--stop-seconds", 2, log=tmp_path / "log.jsonl", program=program)
    with Client(server.url, timeout=30) as client:
        while not client.info():
            time.sleep(0.1)
    request = b"PUT /v1/items/a HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    request += b'Content-Length: 17\r\n\r\n{"code":"a1b2c3"}'
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        if "lock" in how:  # the signal first: a handler in Python runs only where the lock is free
            server.process.send_signal(signal.SIGTERM)
            started = time.monotonic()
        connection.sendall(request)
        if "lock" not in how:
            time.sleep(0.5)
            server.process.send_signal(signal.SIGTERM)
            started = time.monotonic()
        with server.process:
            server.process.wait(30)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("forced", [False, True])
def test_a_server_that_stopped_does_not_end_its_caller_later(monkeypatch, forced):
    """But a forced exit waits for no thread, and Python itself waits for those that are stuck."""
    from adsh.serve import run

    clocks = []
    monkeypatch.setattr(run.faulthandler, "dump_traceback_later", lambda *_, **__: clocks.append("set"))
    monkeypatch.setattr(run.faulthandler, "cancel_dump_traceback_later", lambda: clocks.append("cancelled"))

    def stopped(server, sockets=None):
        server.handle_exit(signal.SIGTERM, None)
        server.force_exit = forced
        raise KeyboardInterrupt  # the signal again, as uvicorn does at its end

    monkeypatch.setattr(run.uvicorn.Server, "run", stopped)
    server = run._Server(run.uvicorn.Config(None), 600, print)
    with pytest.raises(KeyboardInterrupt):
        server.run()
    timers = [one for one in threading.enumerate() if getattr(one, "function", None) == server._give_up]
    for one in timers:
        one.join(0 if forced else 5)
    left = sum(one.is_alive() for one in timers)
    server._cancel_end()
    assert left == forced
    assert clocks[: 2 - forced] == ["set", "cancelled"][: 2 - forced]


def test_a_killed_service_leaves_no_worker_behind(artifacts, tmp_path):
    server = Process(artifacts.model, artifacts.index, log=tmp_path / "log.jsonl")
    with Client(server.url) as client:
        client.encode(png())
    workers = children(server.process.pid)
    assert workers
    server.process.kill()
    with server.process:
        server.process.wait(20)
    until = time.monotonic() + 20
    while any(Path(f"/proc/{pid}/stat").exists() and _runs(pid) for pid in workers):
        assert time.monotonic() < until
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def test_a_log_that_nobody_reads_stops_nothing(artifacts, tmp_path):
    """A full pipe stopped the event loop at its first line."""
    fifo = tmp_path / "log"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    server = Process(artifacts.model, artifacts.index, "--stop-seconds", 20, log=fifo)
    answered, problems = [], []

    def ask():
        with Client(server.url, timeout=10) as client:
            for _ in range(500):
                try:
                    client.search(code="000000", k=1)
                    answered.append(1)
                except ServiceError as problem:
                    problems.append(problem)
                    return

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(answered), problems) == (1000, [])
    server.process.send_signal(signal.SIGTERM)
    with server.process:
        assert server.process.wait(30) == 0
    os.close(reader)
