"""Every mistake gets one line that says what was given, what was expected and what to do; nothing is written."""

import json
import math
import sqlite3
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import adsh
from adsh.errors import BusyError, FolderError, InputError
from adsh.index.embedded.database import DATABASE
from tests.index.cases import keys, random_codes
from tests.index.kills import ROOT


@pytest.fixture
def index(tmp_path):
    with adsh.open_index(tmp_path / "index", bits=48) as index:
        index.add(["a", "b"], random_codes(2))
        yield index


def one_line(problem):
    assert "\n" not in str(problem.value)
    return str(problem.value)


@pytest.mark.parametrize(
    ("names", "codes", "metadata", "said"),
    [
        (["x"], random_codes(1, 64), None, "8 bytes a row, but bits=48 needs 6"),
        (["x"], np.zeros((1, 6)), None, "packed codes are uint8"),
        (["x", "y"], random_codes(1), None, "2 keys but 1 codes"),
        (["x", "y", "x"], random_codes(3), None, "'x' is given twice, again as number 2"),
        (["x", ""], random_codes(2), None, "key 1 is ''"),
        (["x\0y"], random_codes(1), None, "no NUL"),
        (["k" * 10_000], random_codes(1), None, "10000 bytes, and at most 4096"),
        (["\ud800"], random_codes(1), None, "UTF-8"),
        ([7], random_codes(1), None, "7 of type int"),
        ("x", random_codes(1), None, "one text"),
        (["x"], random_codes(1), [{"a": math.nan}], "not JSON"),
        (["x"], random_codes(1), [{"a": {1, 2}}], "not JSON"),
        (["x"], random_codes(1), [{1: 2}], "texts as names"),
        (["x"], random_codes(1), ["text"], "give a dictionary"),
        (["x"], random_codes(1), {"a": 1}, "one dict"),
        (["x"], random_codes(1), [{}, {}], "1 keys but 2 metadata"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_nothing_of_it_is_stored(index, names, codes, metadata, said):
    with pytest.raises(InputError) as problem:
        index.add(names, codes, metadata)
    assert said in one_line(problem)
    assert len(index) == 2
    assert index.verify() == []


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda i: i.search(random_codes(1, 40)), "5 bytes a row"),
        (lambda i: i.search(random_codes(1), k=0), "k=0"),
        (lambda i: i.search(random_codes(1), k=2.5), "k=2.5"),
        (lambda i: i.search(random_codes(1), offset=-1), "offset=-1"),
        (lambda i: i.within(random_codes(1), radius=-1), "radius=-1"),
        (lambda i: i.within(random_codes(1), radius=1, limit=0), "limit=0"),
        (lambda i: i.search(random_codes(1), where="cat"), "give a dictionary"),
        (lambda i: i.search(random_codes(1), where={"a": {"like": 1}}), "'like' of 'a' is not a comparison"),
        (lambda i: i.search(random_codes(1), where={"a": {"in": "cat"}}), "takes a list"),
        (lambda i: i.search(random_codes(1), ranking="cosine"), '"hamming" or "asymmetric"'),
        (lambda i: i.search(random_codes(1), ranking="asymmetric"), "model.outputs(X)"),
        (lambda i: i.search(np.full((1, 48), np.nan), ranking="asymmetric"), "not finite"),
        (lambda i: i.search(random_codes(1), rerank=True), "give those of the queries"),
        (lambda i: i.search(random_codes(1), rerank=True, vectors=np.zeros((1, 4))), "holds no vectors"),
        (lambda i: i.remove("a"), "one text"),
        (lambda i: i.add(["x"], random_codes(1), vectors=np.zeros(4)), "shape (n, dimensions)"),
        (lambda i: i.add(["x"], random_codes(1), vectors=np.full((1, 4), np.inf)), "not finite"),
    ],
)
def test_invalid_queries_are_refused(index, call, said):
    with pytest.raises(InputError) as problem:
        call(index)
    assert said in one_line(problem)
    assert len(index) == 2


def test_vectors_of_another_width_are_refused_and_few_first_ones_are_warned_of(index):
    with pytest.warns(adsh.AdshWarning, match="only 2"):
        index.add(["a", "b"], random_codes(2), vectors=np.eye(2, 5))
    with pytest.raises(InputError, match="4 numbers a row, but this index was started with 5"):
        index.add(["c"], random_codes(1), vectors=np.ones((1, 4)))
    assert index.search(random_codes(1), vectors=np.ones((1, 5)), rerank=True)[0].keys
    assert index.verify() == []


def test_codes_of_another_length_or_model_are_refused(tmp_path):
    adsh.open_index(tmp_path / "i", bits=48, model="one").close()
    with pytest.raises(InputError, match="bits=32, but .* codes of 48 bits"):
        adsh.open_index(tmp_path / "i", bits=32)
    with pytest.raises(InputError, match="model one, not of other"):
        adsh.open_index(tmp_path / "i", model="other")
    with adsh.open_index(tmp_path / "i", model="one") as index:
        assert index.model == "one"
    with adsh.open_index(tmp_path / "j", bits=48) as index:
        index.add(["a"], random_codes(1))
    with pytest.raises(InputError, match="1 codes of a model that was not recorded"):
        adsh.open_index(tmp_path / "j", model="one")


def test_a_model_is_known_by_its_folder_or_itself(tmp_path, blobs):
    model = adsh.ADSH(16, outer=1, device="cpu").fit(*blobs)
    model.save(tmp_path / "model")
    with adsh.open_index(tmp_path / "i", bits=16, model=model) as index:
        index.add(keys(300), model.database_codes_)
    with adsh.open_index(tmp_path / "i", model=tmp_path / "model") as index:
        assert len(index) == 300
        assert index.search(model.outputs(blobs[0][:2]), k=3, ranking="asymmetric")[0].keys
    adsh.open_index(tmp_path / "i", model=adsh.load(tmp_path / "model")).close()
    other = adsh.ADSH(16, outer=1, device="cpu", seed=1).fit(*blobs)
    with pytest.raises(InputError, match="codes of two models"):
        adsh.open_index(tmp_path / "i", model=other)
    for wrong in (tmp_path, adsh.ADSH(16), ""):
        with pytest.raises(InputError, match="model="):
            adsh.open_index(tmp_path / "i", model=wrong)


def test_places_that_hold_no_index_are_refused(tmp_path):
    with pytest.raises(InputError, match="give bits= to create one"):
        adsh.open_index(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()
    (tmp_path / "file").write_text("x")
    with pytest.raises(FolderError, match="is a file"):
        adsh.open_index(tmp_path / "file", bits=8)
    with pytest.raises(FolderError, match="holds other files"):
        adsh.open_index(tmp_path, bits=8)
    with pytest.raises(InputError, match="ftp://"):
        adsh.open_index("ftp://there", bits=8)
    with pytest.raises(InputError, match="bits=0"):
        adsh.open_index(tmp_path / "new", bits=0)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / DATABASE).write_bytes(b"not a database at all" * 100)
    with pytest.raises(FolderError, match="damaged"):
        adsh.open_index(tmp_path / "other", bits=8)


def test_an_index_of_a_newer_format_is_refused_with_both_numbers(tmp_path):
    with adsh.open_index(tmp_path / "i", bits=48) as index, index._store.writing():
        header = json.loads(index._store.fact("about"))
        index._store.set_fact("about", json.dumps({**header, "format_version": 2, "more": 1}).encode())
    with pytest.raises(FolderError, match="format version 2, and adsh .* reads 1 to 1: upgrade adsh"):
        adsh.open_index(tmp_path / "i")


def test_a_second_writer_waits_and_then_gets_an_error(tmp_path):
    with (
        adsh.open_index(tmp_path / "i", bits=48) as first,
        adsh.open_index(tmp_path / "i", timeout=0.2) as second,
    ):
        with first._store.writing(), pytest.raises(BusyError, match="being written by another process") as problem:
            second.add(["a"], random_codes(1))
        one_line(problem)
        assert len(second) == 0  # reading never waits
        second.add(["a"], random_codes(1))
        assert len(first) == 1


def test_an_add_that_fills_the_disk_leaves_the_index_as_it_was(tmp_path):
    """A limit on the size of files stands in for a full disk: both fail in the middle of a write."""
    script = textwrap.dedent(f"""
        import resource, signal, sys
        import adsh
        from tests.index.cases import keys, random_codes
        index = adsh.open_index({str(tmp_path / "i")!r}, bits=48)
        index.add(keys(1000), random_codes(1000))
        resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
        try:
            index.add(keys(50_000, 1000), random_codes(50_000))
        except adsh.AdshError as problem:
            print(problem)
        assert len(index) == 1000
        assert index.search(random_codes(1000)[5:6], k=1)[0].keys == ["item 5"]
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert index.verify() == []
        index.add(keys(10, 1000), random_codes(10))
    """)
    run = [sys.executable, "-c", script]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "nothing of this call was written" in done.stdout
    assert len(done.stdout.splitlines()) == 1
    with adsh.open_index(tmp_path / "i") as index:
        assert len(index) == 1010
        assert index.verify() == []


def test_a_database_at_its_largest_says_that_no_space_is_left(index):
    pages = index._store._db.execute("PRAGMA page_count").fetchone()[0]
    index._store._db.execute(f"PRAGMA max_page_count={pages + 5}")
    with pytest.raises(FolderError, match="no space is left"):
        index.add(keys(10_000), random_codes(10_000))
    assert len(index) == 2
    assert index.verify() == []


def test_a_snapshot_that_cannot_be_written_gives_a_warning_and_nothing_is_lost(index, monkeypatch):
    from adsh.index.embedded import index as embedded
    from adsh.index.embedded import view

    def full(path, arrays):
        raise FolderError("no space")

    monkeypatch.setattr(view, "write_snapshot", full)
    monkeypatch.setattr(embedded, "_REWRITE_FROM", 5)
    with pytest.warns(adsh.AdshWarning, match="no new snapshot was written: no space"):
        index.add(keys(20), random_codes(20))
    assert len(index) == 22


def test_a_closed_handle_says_so_and_closing_twice_does_nothing(tmp_path):
    index = adsh.open_index(tmp_path / "i", bits=48)
    index.close()
    index.close()
    for call in (lambda: len(index), lambda: index.add(["a"], random_codes(1)), lambda: index.search(random_codes(1))):
        with pytest.raises(InputError, match="is closed: open the index again"):
            call()


def test_sqlite_is_new_enough():
    assert sqlite3.sqlite_version_info >= (3, 38)  # json_each is built in from there on
