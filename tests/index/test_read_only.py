"""An index where nothing can be written: searched as ever, and nothing is created."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

import adsh
from adsh.errors import FolderError
from tests.index.cases import keys, random_codes

NOBODY = 65534
CODES = random_codes(200)


@pytest.fixture
def folder():
    """An index in a folder that others may enter, as pytest's own are not."""
    above = Path(tempfile.mkdtemp(prefix="adsh-read-only-"))
    above.chmod(0o755)
    with adsh.open_index(above / "i", bits=48) as index:
        index.add(keys(200), CODES, [{"number": i} for i in range(200)])
        index.compact()
    yield above / "i"
    above.chmod(0o755)
    (above / "i").chmod(0o755)
    shutil.rmtree(above)


def read_only(folder, on=True):
    for path in folder.iterdir():
        path.chmod(0o444 if on else 0o644)
    folder.chmod(0o555 if on else 0o755)


def as_nobody(call):
    """Run a call in a process that may not write, and return the error it ends with; None if it succeeds."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        said = "ended"
        try:
            if os.geteuid() == 0:
                os.setgroups([])
                os.setuid(NOBODY)
            call()
            said = ""
        except BaseException as problem:
            said = f"{type(problem).__name__}: {problem}"
        finally:
            os.write(writing, said.encode())
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said or None


def search(folder):
    with adsh.open_index(folder) as index:
        assert index.search(CODES[7:8], k=1)[0].keys == ["item 7"]
        assert index.search(CODES[7:8], k=1, where={"number": 9})[0].keys == ["item 9"]
        assert index.get(["item 3"])[0].metadata == {"number": 3}
        assert index.verify() == []
        assert len(index) == 200
        assert index.info()["items"] == 200


@pytest.mark.parametrize("commits", [True, False], ids=["with its counter", "without its counter"])
def test_an_index_is_searched_without_writing_anything(folder, commits):
    if not commits:
        (folder / "commits").unlink()
    read_only(folder)
    before = {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.iterdir()}
    assert as_nobody(lambda: search(folder)) is None
    assert {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in folder.iterdir()} == before


def test_what_was_added_after_the_snapshot_is_found(folder):
    with adsh.open_index(folder) as index:
        index.add(["late"], CODES[:1])
    read_only(folder)

    def late():
        with adsh.open_index(folder) as index:
            assert index.search(CODES[:1], k=2)[0].keys == ["item 0", "late"]

    assert as_nobody(late) is None


def test_a_change_is_refused_in_one_line(folder):
    read_only(folder)

    def add():
        with (
            adsh.open_index(folder) as index,
            pytest.raises(FolderError, match="read-only; it can be searched") as said,
        ):
            index.add(["new"], CODES[:1])
        assert "\n" not in str(said.value)

    assert as_nobody(add) is None


def test_what_others_write_meanwhile_is_noticed(folder):
    """By one who may write, on another machine or mount."""
    read_only(folder)
    here, there = os.pipe(), os.pipe()

    def reader():
        with adsh.open_index(folder) as index:
            assert len(index) == 200
            os.write(here[1], b".")
            os.read(there[0], 1)
            assert len(index) == 201
            assert "new" in index

    child = os.fork()
    if not child:
        os._exit(0 if as_nobody(reader) is None else 1)
    os.close(here[1])  # so that a reader that fails is not waited for
    os.read(here[0], 1)
    read_only(folder, on=False)
    with adsh.open_index(folder) as index:
        index.add(["new"], CODES[:1])
    os.write(there[1], b".")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_log_that_was_never_merged_is_not_passed_over(folder):
    with adsh.open_index(folder) as index:
        index.add(["in the log"], CODES[:1])
        copy = folder.with_name("copy")
        shutil.copytree(folder, copy, ignore=shutil.ignore_patterns("*-shm"))
    assert (copy / "index.db-wal").stat().st_size
    read_only(copy)
    said = as_nobody(lambda: adsh.open_index(copy).close())
    copy.chmod(0o755)
    assert "write-ahead log that was not merged: open the index once where it can be written" in said
