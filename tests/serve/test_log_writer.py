"""Lines of the log: never waited for, counted where they are dropped, and harmless on a terminal."""

from __future__ import annotations

import json
import os

import pytest

from adsh.serve.middleware.log_writer import LogWriter


@pytest.fixture
def pipe():
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    yield reader, writer
    os.close(reader)
    os.close(writer)


def read_all(reader: int, write: LogWriter) -> list[dict]:
    data = b""
    for _ in range(1000):
        try:
            data += os.read(reader, 1 << 20)
        except BlockingIOError:
            break
        with write._lock:
            write._write()
    return [json.loads(line) for line in data.splitlines()]


def test_lines_wait_for_the_reader_and_the_rest_is_dropped_and_counted(pipe):
    reader, writer = pipe
    write = LogWriter(writer)
    for at in range(20_000):
        write({"at": at, "text": "x" * 100})
    assert write.dropped > 1000
    write_again = read_all(reader, write)
    numbers = [line["at"] for line in write_again if "at" in line]
    assert numbers == list(range(len(numbers)))
    assert len(numbers) + write.dropped == 20_000
    assert write_again[-1]["text"] == f"{write.dropped:,} lines of the log were dropped"
    write({"at": "later"})
    assert read_all(reader, write)[-1]["at"] == "later"


def test_a_line_longer_than_a_pipe_is_written_whole(pipe):
    reader, writer = pipe
    write = LogWriter(writer)
    write({"trace": "y" * 300_000})
    assert read_all(reader, write)[0]["trace"] == "y" * 300_000


def test_a_reader_that_was_closed_stops_nothing():
    reader, writer = os.pipe()
    os.close(reader)
    write = LogWriter(writer)
    for _ in range(10):
        write({"text": "nobody"})
    os.close(writer)


def test_lines_hold_no_secret_and_nothing_a_terminal_acts_on(pipe):
    reader, writer = pipe
    LogWriter(writer, secrets=["s3cret"])({"text": "postgresql://me:s3cret@host", "path": "/\x1b[2J\x9b2J\x7f é"})
    data = os.read(reader, 1 << 16)
    assert b"s3cret" not in data
    assert not any((byte < 32 and byte != 10) or byte == 127 for byte in data)
    assert b"\xc2\x9b" not in data
    assert json.loads(data)["path"] == "/\x1b[2J\x9b2J\x7f é"


@pytest.mark.parametrize("secret", ['a"b\\c', "0"])
def test_a_secret_is_replaced_in_texts_alone_whatever_its_characters(pipe, secret):
    reader, writer = pipe
    nested = [{"k0": f"at {secret}", "n": 100}]
    LogWriter(writer, secrets=[secret])({"text": f"<{secret}>", "quoted": repr(secret), "ms": 20.5, "nested": nested})
    line = json.loads(os.read(reader, 1 << 16))
    assert (line["text"], line["quoted"], line["ms"]) == ("<…>", "'…'", 20.5)
    assert line["nested"] == [{"k0": "at …", "n": 100}]
    assert "…" not in line["time"]


def test_the_token_is_among_the_secrets_of_the_log(monkeypatch, tmp_path):
    from adsh.serve import run

    class Stop(Exception):
        pass

    def write(secrets):
        seen.extend(secrets)
        raise Stop

    seen: list[str] = []
    monkeypatch.setattr(run, "LogWriter", write)
    with pytest.raises(Stop):
        run.serve(None, run.Settings(tmp_path, "postgresql://me:pass@host/db", token="t0ken"), None)
    assert seen == ["pass", "t0ken"]
