"""Files that were changed behind the index's back: an error or the right answer, never a wrong one or a crash."""

import random
import shutil
import struct
from contextlib import suppress

import numpy as np
import pytest

import adsh
from adsh.errors import FolderError
from adsh.index.embedded.database import COMMITS, DATABASE
from adsh.index.embedded.snapshot import SnapshotDamaged, read_snapshot, write_snapshot
from adsh.index.rows import Rows, checksums
from adsh.index.text_column import TextColumn
from tests.index.cases import keys, random_codes
from tests.index.damage import killed_index, opened_contents

FLIPS = 60  # of each file


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return killed_index(tmp_path_factory.mktemp("small"))


def test_the_copy_of_a_killed_index_opens(small, tmp_path):
    shutil.copytree(small[0], tmp_path / "i")
    assert opened_contents(tmp_path / "i") == small[1]


@pytest.mark.parametrize("name", [DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", "snapshot", COMMITS, "closed"])
def test_any_flipped_byte_gives_an_error_or_the_right_answer(small, tmp_path, name):
    killed, right = small
    if name == "closed":  # without a log beside it, the database is all there is
        killed, name = killed.with_name("index"), DATABASE
    path = next(
        path for path in killed.iterdir() if path.name.startswith(name) and (name != DATABASE or path.name == name)
    )
    data = path.read_bytes()
    draw = random.Random(name)
    at = draw.sample(range(len(data)), min(FLIPS, len(data)))
    at = sorted({*at, *range(0, min(len(data), 100), 4)})
    outcomes = {"error": 0, "right": 0}
    for number in at:
        folder = tmp_path / "i"
        shutil.copytree(killed, folder)
        changed = bytearray(data)
        changed[number] ^= draw.randrange(1, 256)
        (folder / path.name).write_bytes(changed)
        try:
            assert opened_contents(folder) == right, number
            outcomes["right"] += 1
        except adsh.AdshError as problem:
            outcomes["error"] += len(str(problem).splitlines())  # each has one line
        shutil.rmtree(folder)
    assert sum(outcomes.values()) == len(at)
    if name == f"{DATABASE}-wal":
        assert outcomes["error"] > len(at) // 2  # lost commits are noticed


@pytest.mark.parametrize("name", [DATABASE, f"{DATABASE}-wal", "snapshot"])
@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.999])
def test_a_file_cut_short_or_missing_gives_an_error_or_the_right_answer(small, tmp_path, name, keep):
    shutil.copytree(small[0], tmp_path / "i")
    path = next(
        p for p in (tmp_path / "i").iterdir() if p.name.startswith(name) and (name != DATABASE or p.name == name)
    )
    data = path.read_bytes()
    path.write_bytes(data[: int(keep * len(data)) if keep < 1 else keep])
    with suppress(adsh.AdshError):
        assert opened_contents(tmp_path / "i") == small[1]


def test_a_damaged_snapshot_is_rebuilt_from_the_database(small, tmp_path):
    shutil.copytree(small[0], tmp_path / "i")
    path = next((tmp_path / "i").glob("snapshot-*"))
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.warns(adsh.AdshWarning, match="rebuilt from index.db"):
        adsh.open_index(tmp_path / "i").close()
    assert opened_contents(tmp_path / "i") == small[1]
    with adsh.open_index(tmp_path / "i") as index:
        assert index.info()["items_after_snapshot"] == 0
        next((tmp_path / "i").glob("snapshot-*")).unlink()
        assert "cannot be read" in index.verify()[0]


def test_large_files_are_checked_by_verify_and_where_they_are_read(tmp_path, monkeypatch):
    from adsh.index.embedded import index as embedded

    monkeypatch.setattr(embedded, "_CHECKED_IN_FULL", 0)
    codes = random_codes(200, distinct=5)
    with adsh.open_index(tmp_path / "i", bits=48) as index:
        index.add(keys(200), codes)
        index.compact()
    database = tmp_path / "i" / DATABASE
    data = database.read_bytes()
    record = data.index(b"item 77" + struct.pack("<q", 78))  # the key, then the place, of one row
    changed = bytearray(data)
    changed[record + 7 + 16] ^= 1  # a bit of its code
    database.write_bytes(changed)
    with adsh.open_index(tmp_path / "i") as index:
        assert len(index.search(codes[77:78], k=200)[0]) == 200  # from the snapshot, which is whole
        assert "'item 77' fails its checksum" in index.verify()[0]
        with pytest.raises(FolderError, match="'item 77' fails its checksum"):
            index.add(["item 77"], codes[:1])
    next((tmp_path / "i").glob("snapshot-*")).unlink()
    with pytest.warns(adsh.AdshWarning), pytest.raises(FolderError, match="'item 77' fails its checksum"):
        adsh.open_index(tmp_path / "i")


def test_a_checksum_changes_with_any_byte_and_with_what_a_byte_belongs_to():
    def check(number=1, place=2, code=b"abcdef", key=b"key", metadata=b"{}", vector=(1, 2)):
        rows = Rows(
            np.array([place]),
            np.frombuffer(code, np.uint8)[None],
            TextColumn.of([key]),
            TextColumn.of([metadata]),
            np.array([vector], dtype=np.int8),
        )
        return int(checksums(np.array([number]), rows)[0])

    others = [
        check(number=2), check(place=1), check(code=b"abcdeg"), check(code=b"bacdef"), check(key=b"kez"),
        check(key=b"key{", metadata=b"}"), check(metadata=b""), check(metadata=b"key", key=b"{}"),
        check(vector=(2, 1)), check(vector=(-1, 2)), check(key=b"yek"), check(),
    ]  # fmt: skip
    assert len(set(others)) == len(others)
    assert check() == others[-1]


def test_the_checksums_of_many_rows_are_those_of_each(tmp_path):
    rng = np.random.default_rng(0)
    texts = [bytes(rng.integers(1, 256, rng.integers(1, 600), dtype=np.uint8)) for _ in range(50)]
    rows = Rows(np.arange(50), random_codes(50), TextColumn.of(texts), TextColumn.of(texts[::-1]), None)
    numbers = rng.integers(0, 1 << 40, 50)
    each = [int(checksums(numbers[i : i + 1], rows.take(np.array([i])))[0]) for i in range(50)]
    assert checksums(numbers, rows).tolist() == each


def test_a_snapshot_of_several_blocks_is_read_back_and_checked(tmp_path, monkeypatch):
    from adsh.index.embedded import snapshot

    monkeypatch.setattr(snapshot, "_BLOCK", 100)
    arrays = {"a": np.arange(1000, dtype=np.uint32), "b": np.zeros((0, 3), np.uint8), "c": random_codes(77)}
    write_snapshot(tmp_path / "s.bin", arrays)
    read, _ = read_snapshot(tmp_path / "s.bin")
    assert all(np.array_equal(read[name], array) and read[name].dtype == array.dtype for name, array in arrays.items())
    data = bytearray((tmp_path / "s.bin").read_bytes())
    data[-50] ^= 4
    (tmp_path / "t.bin").write_bytes(data)
    with pytest.raises(SnapshotDamaged):
        read_snapshot(tmp_path / "t.bin")


def test_a_snapshot_in_use_is_replaced_and_never_changed(tmp_path):
    """The system ends a process that reads what is missing of a mapped file: nobody else may shorten it."""
    with adsh.open_index(tmp_path / "i", bits=24) as index:
        index.add(keys(2000), random_codes(2000, 24))
        index.compact()
        (snapshot,) = (tmp_path / "i").glob("snapshot-*.bin")
        whole = snapshot.read_bytes()
        with snapshot.open("rb") as mapped, adsh.open_index(tmp_path / "i") as other:
            other.remove(keys(1900))
            other.compact()
            index.compact()
            assert not snapshot.exists()
            assert mapped.read() == whole
