"""What a user does with an index every day, against plain sorting."""

import os
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest

import adsh
from adsh.hamming.bits import pack
from tests import forked
from tests.index.cases import answer, keys, random_codes
from tests.reference import hamming as plain


@pytest.fixture(params=[0, 7], ids=["scan", "buckets"])
def codes(request):
    return random_codes(600, distinct=request.param)


@pytest.fixture
def index(tmp_path):
    with adsh.open_index(tmp_path / "index", bits=48) as index:
        yield index


def expected(code, codes, k, names):
    far = plain.distances(code, codes, 48)
    best = plain.top(far, k)
    return [names[i] for i in best], far[best].tolist()


def test_the_nearest_are_found_with_keys_distances_and_metadata(index, codes):
    names = keys(600)
    assert index.add(names, codes, [{"number": i} for i in range(600)]) == 600
    for query, matches in zip(codes[:5], index.search(codes[:5], k=50), strict=True):
        assert answer(matches) == expected(query, codes, 50, names)
        assert [m["number"] for m in matches.metadata] == [names.index(key) for key in matches.keys]
    first = next(iter(index.search(codes[:1], k=1)[0]))
    assert first == (names[0], 0, {"number": 0})
    assert "item 0" in repr(matches) or len(repr(matches)) < 200


@pytest.mark.parametrize("compacted", [False, True])
def test_items_come_in_insertion_order_across_snapshot_and_later_adds(index, codes, compacted):
    names = keys(600)
    for start, stop in ((0, 300), (300, 500), (500, 540), (540, 600)):
        index.add(names[start:stop], codes[start:stop])
        if start == 0:
            index.compact()
        index.search(codes[:1])  # each add becomes a part of its own
    if compacted:
        index.compact()
    for query, matches in zip(codes[:10], index.search(codes[:10], k=77), strict=True):
        assert answer(matches) == expected(query, codes, 77, names)
    far = plain.distances(codes[3], codes, 48)
    for radius in (0, 2, 18, 48):
        matches = index.within(codes[3:4], radius=radius)[0]
        best = plain.within(far, radius)
        assert answer(matches) == ([names[i] for i in best], far[best].tolist())


def test_a_replaced_item_keeps_its_place_and_a_removed_one_comes_back_last(index):
    same = np.zeros((3, 6), dtype=np.uint8)
    index.add(["a", "b", "c"], same, [{"v": 1}] * 3)
    assert index.add(["a"], same[:1], [{"v": 2}]) == 0
    assert index.search(same[:1])[0].keys == ["a", "b", "c"]
    assert index.search(same[:1])[0].metadata[0] == {"v": 2}
    assert index.remove(["a", "nobody"]) == 1
    assert "a" not in index
    assert "b" in index
    assert index.add(["a"], same[:1]) == 1
    assert index.search(same[:1])[0].keys == ["b", "c", "a"]
    assert index.search(same[:1])[0].metadata == [{"v": 1}, {"v": 1}, None]
    index.compact()
    assert index.search(same[:1])[0].keys == ["b", "c", "a"]
    assert index.verify() == []


def test_what_was_added_and_removed_is_there_after_opening_again(tmp_path, codes):
    names = keys(600)
    with adsh.open_index(tmp_path / "i", bits=48) as index:
        index.add(names[:500], codes[:500])
        index.compact()
        index.add(names[500:], codes[500:])
        index.remove(names[10:20])
    kept = [i for i in range(600) if not 10 <= i < 20]
    with adsh.open_index(tmp_path / "i") as index:
        assert len(index) == 590
        assert index.bits == 48
        assert answer(index.search(codes[:1], k=200)[0]) == expected(
            codes[0], codes[kept], 200, [names[i] for i in kept]
        )
        assert [key for key, _, _ in index.items()] == [names[i] for i in kept]
        assert index.verify() == []


def test_k_larger_than_the_index_gives_everything_and_an_empty_one_nothing(index):
    assert index.search(random_codes(2), k=5)[1].keys == []
    assert index.within(random_codes(1), radius=5)[0].metadata == []
    assert index.search(np.zeros((0, 6), np.uint8)) == []
    index.add(["a", "b"], random_codes(2))
    assert len(index.search(random_codes(1), k=1000)[0]) == 2
    index.remove(["a", "b"])
    assert len(index) == 0
    assert index.search(random_codes(1))[0].keys == []
    index.compact()
    assert index.search(random_codes(1))[0].keys == []
    assert index.verify() == []
    assert index.info()["items"] == 0


def test_pages_put_together_are_the_whole(index, codes):
    index.add(keys(600), codes)
    index.compact()
    index.add(keys(50, 600), codes[:50])
    whole = index.search(codes[:1], k=650)[0].keys
    pages = [index.search(codes[:1], k=100, offset=start)[0].keys for start in range(0, 700, 100)]
    assert [key for page in pages for key in page] == whole
    near = index.within(codes[:1], radius=24)[0].keys
    pages = [index.within(codes[:1], radius=24, offset=at, limit=33)[0].keys for at in range(0, len(near) + 33, 33)]
    assert [key for page in pages for key in page] == near


@pytest.mark.parametrize(
    ("where", "right"),
    [
        ({"class": "cat"}, lambda m: m["class"] == "cat"),
        ({"year": {"ge": 2000, "lt": 2004}}, lambda m: 2000 <= m["year"] < 2004),
        ({"class": {"in": ["cat", "dog"]}, "year": {"gt": 2005}}, lambda m: m["class"] != "cow" and m["year"] > 2005),
        ({"class": {"ne": "cat"}}, lambda m: m["class"] != "cat"),
        ({"rare": True}, lambda m: m.get("rare") is True),
        ({"rare": 1}, lambda m: False),
        ({"year": {"le": "2000"}}, lambda m: False),
        ({"nothing": None}, lambda m: False),
    ],
)
def test_filters_are_exact_and_k_are_found_after_them(index, codes, where, right):
    metadata = [{"class": ["cat", "dog", "cow"][i % 3], "year": 1998 + i % 11} for i in range(600)]
    metadata[599]["rare"] = True
    index.add(keys(500), codes[:500], metadata[:500])
    index.compact()
    index.add(keys(100, 500), codes[500:], metadata[500:])
    index.add(["bare"], codes[:1])
    far = plain.distances(codes[0], codes, 48)
    best = [i for i in plain.top(far, 600) if right(metadata[i])]
    assert index.search(codes[:1], k=20, where=where)[0].keys == [f"item {i}" for i in best[:20]]
    near = [i for i in best if far[i] <= 20]
    assert index.within(codes[:1], radius=20, where=where)[0].keys == [f"item {i}" for i in near]


def test_one_handle_sees_the_commits_of_another_without_reopening(tmp_path):
    codes = random_codes(100)
    one, other = (adsh.open_index(tmp_path / "i", bits=48) for _ in range(2))
    one.add(keys(100), codes)
    assert len(other) == 100
    other.remove(keys(10))
    assert one.search(codes[:1], k=100)[0].keys[0] != "item 0"
    one.compact()
    assert len(other) == 90
    other.compact()
    one.add(keys(1), codes[:1])
    assert other.search(codes[:1], k=1)[0].keys == ["item 0"]
    assert other.verify() == one.verify() == []
    one.close()
    other.close()


def test_old_snapshots_are_removed(tmp_path):
    with adsh.open_index(tmp_path / "i", bits=48) as index:
        for start in (0, 10, 20):
            index.add(keys(10, start), random_codes(10))
            index.compact()
        assert len(list((tmp_path / "i").glob("*snapshot-*"))) == 1
        index.add(["more"], random_codes(1))
        for name in ("snapshot-000000000001-1.bin", ".snapshot-000000000002-1.bin.new", "snapshot-000000000099-1.bin"):
            (tmp_path / "i" / name).write_text("left by a killed process")
        index.compact()
        assert len(list((tmp_path / "i").glob("*snapshot-*"))) == 1
        assert index.verify() == []


def test_a_snapshot_that_another_process_writes_stays_whatever_the_clock_says(tmp_path):
    """A clock that is days ahead, of this process or of a file server, ages the files of others by days."""
    script = f"""
import time
from pathlib import Path
from adsh.index.embedded.view import writing_snapshot
with writing_snapshot(Path({str(tmp_path / "i")!r})):
    print("writing", flush=True)
    time.sleep(60)
"""
    with adsh.open_index(tmp_path / "i", bits=48) as index:
        index.add(keys(10), random_codes(10))
        other = tmp_path / "i/snapshot-000000000099-1.bin"
        other.write_text("not named by the database yet")
        os.utime(other, (time.time() - 7 * 86_400,) * 2)
        with forked.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
            process.stdout.readline()
            index.compact()
            assert other.exists()
            process.kill()
            process.wait()
        index.compact()
        assert not other.exists()


def test_a_snapshot_cut_short_under_a_reader_is_rebuilt_and_ends_no_process(tmp_path):
    codes = random_codes(3000)
    with adsh.open_index(tmp_path / "i", bits=48) as index:
        index.add(keys(3000), codes, [{"text": "x" * 100}] * 3000)
        index.compact()
        right = index.search(codes[:1], k=5)[0].keys
        snapshot = tmp_path / "i" / index.info()["snapshot"]
        os.truncate(snapshot, 4096)
        with pytest.warns(adsh.AdshWarning, match="it is rebuilt from index.db"):
            assert index.search(codes[:1], k=5)[0].keys == right
        assert [item.metadata for item in index.get(["item 2999"])] == [{"text": "x" * 100}]


def test_snapshots_are_written_as_the_index_grows(tmp_path, monkeypatch):
    from adsh.index.embedded import index as embedded

    monkeypatch.setattr(embedded, "_REWRITE_FROM", 40)
    codes = random_codes(500, distinct=9)
    with adsh.open_index(tmp_path / "i", bits=48) as index:
        for start in range(0, 500, 20):
            index.add(keys(20, start), codes[start : start + 20])
        info = index.info()
        assert info["snapshot"]
        assert info["items_after_snapshot"] <= 125
        assert answer(index.search(codes[:1], k=99)[0]) == expected(codes[0], codes, 99, keys(500))


@pytest.mark.parametrize("bits", [1, 12, 64, 100, 1024])
def test_codes_of_any_length_are_searched(tmp_path, bits):
    codes = random_codes(200, bits, distinct=50)
    with adsh.open_index(tmp_path / "i", bits=bits) as index:
        index.add(keys(200), codes)
        index.remove(["item 3"])
        far = plain.distances(codes[0], codes, bits)
        best = [i for i in plain.top(far, 200) if i != 3]
        assert index.search(codes[:1], k=200)[0].keys == [f"item {i}" for i in best]
        assert index.within(codes[:1], radius=1)[0].keys == [f"item {i}" for i in best if far[i] <= 1]


def test_info_says_what_there_is_and_how_it_is_searched(index):
    index.add(keys(100), random_codes(100, distinct=4))
    info = index.info()
    assert info["items"] == 100
    assert info["bits"] == 48
    assert info["distinct_codes"] == 4
    assert info["search"] == "buckets"
    assert info["radius_looked_up"] is None  # four are quicker compared than 49 looked up
    index.add(keys(1000), random_codes(1000))
    assert index.info()["search"].startswith("scan (")


def test_an_index_needs_no_torch(tmp_path):
    import subprocess
    import sys

    script = f"""
import sys
sys.modules["torch"] = None
import adsh, numpy as np
with adsh.open_index({str(tmp_path / "i")!r}, bits=8, model="a name") as index:
    index.add(["a"], np.zeros((1, 1), np.uint8))
    print(index.search(np.zeros((1, 1), np.uint8))[0].keys)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout.strip() == "['a']", done.stderr


def test_an_index_whose_last_metadata_or_vector_goes_is_still_whole(tmp_path):
    codes, features = np.array([[1], [2]], dtype=np.uint8), np.random.default_rng(0).normal(size=(300, 70))
    for name, extra in (("m", {"metadata": [{"class": "cat"}]}), ("v", {"vectors": features[:1]})):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", adsh.AdshWarning)  # one vector to decide by
            index = adsh.open_index(tmp_path / name, bits=8)
            index.add(["a"], codes[:1], **extra)
        index.add(["b"], codes[1:])
        index.compact()
        index.remove(["a"])
        assert index.verify() == []
        index.close()
        with adsh.open_index(tmp_path / name) as again:
            assert again.keys() == ["b"]


def test_another_handle_follows_an_index_that_is_emptied_and_compacted(tmp_path):
    codes = np.array([[1], [2]], dtype=np.uint8)
    with adsh.open_index(tmp_path / "i", bits=8) as one, adsh.open_index(tmp_path / "i") as other:
        one.add(["a", "b"], codes)
        assert len(other) == 2
        one.remove(["a", "b"])
        one.compact()
        one.add(["c"], codes[:1])
        assert other.search(codes[:1])[0].keys == ["c"]
        assert len(other) == 1


def test_distinct_codes_are_counted_among_those_that_are_there(tmp_path):
    with adsh.open_index(tmp_path / "i", bits=8) as index:
        index.add(["a", "b"], np.array([[1], [2]], dtype=np.uint8))
        assert index.info()["distinct_codes"] == 2
        index.remove(["a"])
        assert index.info()["distinct_codes"] == 1
        index.remove(["b"])
        assert index.info()["distinct_codes"] == 0


def test_every_call_on_a_closed_handle_is_refused(tmp_path):
    index = adsh.open_index(tmp_path / "i", bits=8)
    index.close()
    for ask in (lambda: index.get(["a"]), lambda: "a" in index, lambda: index.get_note("x"), lambda: len(index)):
        with pytest.raises(adsh.AdshError, match="closed"):
            ask()


def test_an_impossible_key_does_not_exist_and_odd_arguments_are_refused(tmp_path):
    codes = np.zeros((1, 1), dtype=np.uint8)
    with adsh.open_index(tmp_path / "i", bits=8) as index:
        assert "x" * 5000 not in index
        assert "a\0" not in index
        for odd in (None, 5, (key for key in "a")):
            with pytest.raises(adsh.AdshError, match="give a list of keys"):
                index.add(odd, codes)
        with pytest.raises(adsh.AdshError, match="metadata is of type"):
            index.add(["a"], codes, (one for one in [None]))
        with pytest.raises(adsh.AdshError, match="has no condition"):
            index.search(codes, where={"k": {}})
        index.add(["a", "b"], np.zeros((2, 1), dtype=np.uint8), [{"n": 1}, {"n": 2}])
        assert index.search(codes, where={"n": {"not_in": [2, "2"]}})[0].keys == ["a"]


def test_matches_have_their_codes(tmp_path):
    rng = np.random.default_rng(3)
    for bits, distinct in ((24, 5), (20, None), (130, 4)):
        table = pack(rng.normal(size=(distinct or 300, bits)))
        codes = table[rng.integers(0, len(table), 300)]
        keys = [f"k{at}" for at in range(300)]
        with adsh.open_index(tmp_path / f"{bits}", bits=bits) as index:
            index.add(keys[:250], codes[:250])
            index.compact()
            index.add(keys[250:], codes[250:], [{"at": at} for at in range(50)])  # a second part, in memory
            index.remove(["k3"])
            for found in (
                *index.search(codes[:3], 40),
                *index.within(codes[:2], 2),
                *index.search(codes[:1], 20, where={"at": {"lt": 10}}),
                *index.search(codes[:1], 5, where={"at": -1}),
            ):
                stored = index.get(found.keys)
                assert [row.tobytes() for row in found.codes] == [item.code for item in stored]


def test_a_sample_is_spread_over_the_index(tmp_path):
    codes = np.repeat(np.arange(4, dtype=np.uint8), 100)[:, None]
    with adsh.open_index(tmp_path / "index", bits=8) as index:
        assert index.sample(5) == []
        index.add([str(at) for at in range(400)], codes, [{"at": at} for at in range(400)])
        index.remove([str(at) for at in range(0, 400, 2)])
        some = index.sample(40)
        assert {item.code[0] for item in some} == {0, 1, 2, 3}
        assert 0 < len(some) <= 40
        assert all(int(item.key) == item.metadata["at"] and int(item.key) % 2 for item in some)
        assert len(index.sample(1000)) == 200
