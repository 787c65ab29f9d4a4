"""What a collection is expected to have, the same in every kind of index: listing, counting, changes in place."""

import json
import warnings

import numpy as np
import pytest

import adsh
from adsh.errors import InputError
from adsh.index.collection import ItemChange
from adsh.models.fingerprint import ModelId

BITS = 16
CATS = {"class": "cat"}


@pytest.fixture
def index(place):
    """Thirty items: ten cats, ten dogs of several years, ten without metadata."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, (30, 2), dtype=np.uint8)
    cats, dogs = ({"class": "cat", "n": i} for i in range(10)), ({"class": "dog", "year": 1980 + i} for i in range(10))
    with adsh.open_index(place.location, bits=BITS) as opened:
        vectors = rng.standard_normal((30, 70)) if place.vectors else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", adsh.AdshWarning)  # few vectors to fit the compression on
            opened.add([f"k{i:02}" for i in range(30)], codes, [*cats, *dogs, *[None] * 10], vectors=vectors)
        yield opened


def listed(index, count, where=None):
    keys, cursor = [], None
    while True:
        page = index.page(count, cursor, where)
        assert len(page.items) <= count
        keys += [item.key for item in page.items]
        if page.cursor is None:
            return keys
        cursor = page.cursor


@pytest.mark.parametrize("count", [1, 7, 30, 100])
def test_a_listing_has_every_item_once(index, count):
    assert listed(index, count) == [f"k{i:02}" for i in range(30)]
    assert listed(index, count, CATS) == [f"k{i:02}" for i in range(10)]
    assert listed(index, count, {"class": "bird"}) == []


def test_a_listing_goes_on_while_items_come_and_go(index):
    first = index.page(10)
    index.remove(["k03", "k15"])
    index.add(["k99"], np.zeros((1, 2), np.uint8))
    rest = []
    cursor = first.cursor
    while cursor is not None:
        page = index.page(10, cursor)
        rest += [item.key for item in page.items]
        cursor = page.cursor
    assert rest == [*(f"k{i:02}" for i in range(10, 30) if i != 15), "k99"]


@pytest.mark.parametrize(
    ("where", "count"),
    [
        (None, 30),
        (CATS, 10),
        ({"$or": [CATS, {"year": {"ge": 1988}}]}, 12),
        ({"$or": [CATS, {"class": {"in": ["dog", "bird"]}}], "year": {"lt": 1983}}, 3),
        ({"$or": [{"$or": [{"n": 1}, {"n": 2}]}, {"year": 1989}]}, 3),
        ({"class": {"not_in": ["cat"]}}, 10),
    ],
)
def test_alternatives_and_counts(index, where, count):
    assert index.count(where) == count
    if where is not None:
        code = np.zeros((1, 2), np.uint8)
        assert len(index.search(code, k=30, where=where)[0]) == count
        assert len(index.within(code, BITS, where=where)[0]) == count
        assert len(index.search(code, k=30, where=where)[0]) == count  # with what the first search kept


def test_items_that_meet_a_filter_are_removed(index):
    assert index.remove_where({"$or": [CATS, {"year": {"ge": 1985}}]}) == 15
    assert listed(index, 50) == [f"k{i:02}" for i in [*range(10, 15), *range(20, 30)]]
    assert index.remove_where(CATS) == 0
    with pytest.raises(InputError, match="is met by every item"):
        index.remove_where({})
    assert index.verify() == []


def test_metadata_is_changed_in_place(index, place):
    before = {item.key: item for item in index.items()}
    order = index.keys()
    vectors = index.stored_vectors(order) if place.vectors else None
    assert index.change_metadata(["k01", "k25", "missing"], {"class": "lynx", "n": None, "seen": [1, "two"]}) == 2
    now = {item.key: item for item in index.items()}
    assert now["k01"].metadata == {"class": "lynx", "seen": [1, "two"]}
    assert now["k25"].metadata == {"class": "lynx", "seen": [1, "two"]}
    assert {key: item for key, item in now.items() if key not in ("k01", "k25")} == {
        key: item for key, item in before.items() if key not in ("k01", "k25")
    }
    assert now["k01"].code == before["k01"].code
    assert index.keys() == order
    if vectors is not None:
        assert np.array_equal(index.stored_vectors(order).small, vectors.small)
    assert index.count({"class": "lynx"}) == 2
    assert index.change_metadata(["k25"], {"class": None, "seen": None}) == 1
    assert index.get(["k25"])[0].metadata is None
    assert index.verify() == []


def test_codes_change_in_one_call_or_not_at_all(index):
    code = bytes([1, 2])
    index.change(["k01", "k02"], lambda item: ItemChange(item.metadata, code) if item.key == "k01" else None)
    assert [item.code == code for item in index.get(["k01", "k02"])] == [True, False]
    assert index.search(np.frombuffer(code, np.uint8)[None], k=1)[0].distances[0] == 0
    before = index.get(["k05", "k06"])

    def fails(item):
        if item.key == "k06":
            raise KeyError("k06")
        return ItemChange({"half": True}, code)

    with pytest.raises(KeyError):
        index.change(["k05", "k06"], fails)
    with pytest.raises(InputError):
        index.change(["k05"], lambda item: ItemChange({"bad": float("nan")}, None))
    assert index.get(["k05", "k06"]) == before


def test_codes_by_a_network_are_known_and_outdated_after_an_update(place):
    codes = np.arange(12, dtype=np.uint8).reshape(6, 2)
    keys = [f"k{i}" for i in range(6)]
    with adsh.open_index(place.location, bits=BITS, model="first") as index:
        index.add(keys, codes, by_network=[True, True, True, False, False, False])
        assert index.networks(keys) == [0, 0, 0, None, None, None]
        assert index.outdated() == []
        index.accept_model(ModelId("second", ("first",)))
        assert (index.model, index.lineage) == ("second", ("first",))
        assert index.outdated() == ["k0", "k1", "k2"]
        assert index.outdated("k0", 1) == ["k1"]
        index.add(["k0", "k9"], codes[:2], by_network=True)
        index.add(["k1"], codes[:1])
        index.change_metadata(["k2"], {"a": 1})
        assert index.networks(["k0", "k1", "k2", "k9"]) == [1, None, 0, 1]
        assert index.outdated() == ["k2"]
        index.remove(["k2"])
        assert index.outdated() == []
        index.compact()
        assert index.networks(["k0", "k9"]) == [1, 1]
        assert "generation" not in json.dumps([item.metadata for item in index.items()])
        for wrong in (ModelId("other"), ModelId("other", ("elsewhere",))):
            with pytest.raises(InputError, match="two models cannot be compared"):
                index.accept_model(wrong)
        with pytest.raises(InputError, match="use the newer model"):
            index.accept_model("first")
        with pytest.raises(InputError, match="by_network"):
            index.add(["x"], codes[:1], by_network="yes")
    with adsh.open_index(place.location, model=ModelId("third", ("first", "second"))) as index:
        assert index.model == "second"  # opened for codes that can be compared, and not changed by that
    with pytest.raises(InputError, match="use the newer model"):
        adsh.open_index(place.location, model="first")


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ({"$or": []}, "takes a list of filters"),
        ({"$or": {"a": 1}}, "takes a list of filters"),
        ({"$or": [{}]}, "has no condition"),
        ({"$or": ["a"]}, "give a dictionary"),
    ],
)
def test_alternatives_that_are_none_are_refused(index, where, words):
    with pytest.raises(InputError, match=words):
        index.count(where)
    deep = CATS
    for _ in range(20):
        deep = {"$or": [deep]}
    with pytest.raises(InputError, match="nested deeper"):
        index.count(deep)
