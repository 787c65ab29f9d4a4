"""Several processes at once, and processes that end in the middle."""

import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import adsh
from adsh.errors import FolderError
from adsh.index.embedded import index as embedded
from tests import forked
from tests.index.cases import keys, random_codes
from tests.index.kills import ROOT, acknowledged, kill_once

READER = textwrap.dedent("""
    import sys, adsh
    from tests.index.killed_writer import code
    index = adsh.open_index(sys.argv[1])
    query = code(1)[None]
    seen = searches = 0
    while seen < 120:
        n = len(index)
        found = index.search(query, k=10_000)[0]
        held = len(found)
        assert held % 20 == 0, f"a torn commit: {held} items"
        assert held >= seen, "items went away"
        assert (found.distances[1:] >= found.distances[:-1]).all()
        for key, metadata in zip(found.keys, found.metadata):
            assert key == f"key {metadata['v']}"
        assert sorted(m["v"] for m in found.metadata) == list(range(held))
        seen, searches = held // 20, searches + 1
    print(searches)
""")


@pytest.mark.parametrize("times", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_kills_lose_nothing_that_was_acknowledged(tmp_path, times):
    assert sum(kill_once(tmp_path / "index", seed) for seed in range(times)) > times


def test_the_log_of_a_killed_writer_is_read_as_meant():
    lines = ["{}", '{"add": {"a": 1, "b": 2}}', '"done"', '{"remove": ["a"]}', '"done"', '{"add": {"c": 3}}', '{"ad']
    assert acknowledged(lines) == ({"b": 2}, {"add": {"c": 3}}, 2)


def test_two_processes_read_whole_commits_while_one_writes(tmp_path):
    from tests.index.killed_writer import code

    with adsh.open_index(tmp_path / "i", bits=48) as index:
        readers = [
            forked.Popen(
                [sys.executable, "-c", READER, tmp_path / "i"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
            for _ in range(2)
        ]
        for start in range(0, 120 * 20, 20):
            numbers = range(start, start + 20)
            codes = [code(number) for number in numbers]
            index.add([f"key {v}" for v in numbers], np.stack(codes), [{"v": v} for v in numbers])
            if start % 500 == 0:
                index.compact()
        for reader in readers:
            out, err = reader.communicate(timeout=120)
            assert reader.returncode == 0, err.decode()
            assert int(out) >= 1


def test_writers_in_several_processes_take_turns(tmp_path):
    script = textwrap.dedent("""
        import sys, adsh
        from tests.index.cases import random_codes
        with adsh.open_index(sys.argv[1], bits=48) as index:
            for number in range(40):
                index.add([f"{sys.argv[2]} {number}", "shared"], random_codes(2, seed=number))
                if number % 13 == 5:
                    index.compact()
    """)
    writers = [
        forked.Popen([sys.executable, "-c", script, tmp_path / "i", name], cwd=ROOT, stderr=subprocess.PIPE)
        for name in "ab"
    ]
    for writer in writers:
        assert writer.wait(timeout=120) == 0, writer.stderr.read().decode()
        writer.stderr.close()
    with adsh.open_index(tmp_path / "i") as index:
        assert len(index) == 81
        assert index.verify() == []


def test_one_handle_serves_several_threads(tmp_path):
    codes = random_codes(400, distinct=6)
    problems = []

    def read():
        try:
            for _ in range(100):
                found = index.search(codes[:3], k=50)
                assert all(len(matches) == 50 for matches in found)
        except Exception as problem:
            problems.append(problem)

    def write(name):
        try:
            for number in range(20):
                index.add([f"{name} {number}"], codes[:1])
                if number % 7 == 0:
                    index.compact()
        except Exception as problem:
            problems.append(problem)

    with adsh.open_index(tmp_path / "i", bits=48) as index:
        index.add(keys(100), codes[:100])
        threads = [threading.Thread(target=read) for _ in range(3)]
        threads += [threading.Thread(target=write, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        for start in range(100, 400, 10):
            index.add(keys(10, start), codes[start : start + 10])
            index.remove(keys(1, start))
        index.compact()
        for thread in threads:
            thread.join()
        assert problems == []
        assert len(index) == 400 - 30 + 40
        assert index.verify() == []


def test_a_snapshot_replaced_by_another_while_all_is_read_is_no_damage(tmp_path, monkeypatch):
    read = embedded.read_snapshot
    with adsh.open_index(tmp_path / "i", bits=16) as index, adsh.open_index(tmp_path / "i") as other:
        other.add(keys(30), random_codes(30, 16))
        other.compact()

        def replaced(path):
            other.add(["one more"], random_codes(1, 16))
            other.compact()  # unlinks the snapshot that is about to be read
            return read(path)

        monkeypatch.setattr(embedded, "read_snapshot", replaced)
        assert index.verify() == []


def test_an_index_that_another_process_is_creating_is_not_taken_for_other_files(tmp_path):
    """Its file of commits comes first: found by two creators at once."""
    (tmp_path / "i").mkdir()
    (tmp_path / "i/commits").write_bytes(b"")
    with adsh.open_index(tmp_path / "i", bits=48) as index:
        assert len(index) == 0
    (tmp_path / "other").mkdir()
    (tmp_path / "other/notes.txt").write_text("mine")
    with pytest.raises(FolderError, match="holds other files"):
        adsh.open_index(tmp_path / "other", bits=48)
