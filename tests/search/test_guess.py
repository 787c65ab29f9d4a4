"""The guess of what a query shows: a vote of all items, the nearer counting more."""

from __future__ import annotations

import math

import numpy as np
import pytest

import adsh
from adsh.search import guess
from adsh.search.guess import Guesser
from adsh.search.searcher import EncodedQueries, Searcher, SearchOptions

BITS = 16


@pytest.fixture
def index(tmp_path):
    with adsh.open_index(tmp_path / "index", bits=BITS) as opened:
        yield opened


def add(index, items):
    """Add items given as (key, code, metadata), the code as a number."""
    codes = np.array([list(code.to_bytes(2, "big")) for _, code, _ in items], np.uint8)
    index.add([key for key, _, _ in items], codes, [metadata for _, _, metadata in items])


def code(number):
    return np.array([list(number.to_bytes(2, "big"))], np.uint8)


def test_the_share_is_that_of_a_plain_sum_over_all_items(index):
    rng = np.random.default_rng(0)
    items = [(str(at), int(rng.integers(1 << BITS)), {"class": "abc"[at % 3]}) for at in range(200)]
    add(index, items)
    for query in rng.integers(1 << BITS, size=20).tolist():
        votes = dict.fromkeys("abc", 0.0)
        for _, number, metadata in items:
            votes[metadata["class"]] += math.exp(-16 * (number ^ query).bit_count() / BITS)
        best = max(votes, key=votes.get)
        found = Guesser(index)(code(query))
        assert (found.label, found.items, found.field) == (best, 200, "class")
        assert found.share == pytest.approx(votes[best] / sum(votes.values()))


def test_a_query_between_two_classes_is_less_sure_though_its_nearest_are_of_one(index):
    """Where a class shares one code, the ten nearest are of one class wherever the query is."""
    add(
        index,
        [(f"{label}{at}", number, {"class": label}) for label, number in (("a", 0), ("b", 0xFFFF)) for at in range(20)],
    )
    shares = []
    for query in (0x0000, 0x000F, 0x007F):
        found = Guesser(index)(code(query))
        assert found.label == "a"
        shares.append(found.share)
    assert shares == pytest.approx([1 / (1 + math.exp(-nearer)) for nearer in (16, 8, 2)])  # bits nearer to a


def test_a_query_does_not_vote_for_itself(index):
    add(index, [("own", 0, {"class": "odd"}), *((str(at), 3, {"class": "even"}) for at in range(3))])
    guesser = Guesser(index)
    assert guesser(code(0)).label == "odd"
    assert guesser(code(0), "own")[:3] == ("even", 1.0, 3)
    assert guesser(code(0), "no item").label == "odd"


def test_several_labels_each_get_a_vote_and_items_without_one_count_as_others(index):
    add(
        index,
        [("1", 0, {"labels": ["sea", "boat"]}), ("2", 0, {"labels": ["sea", "sea"]}), ("3", 0, {}), ("4", 0, None)],
    )
    assert Guesser(index)(code(0)) == ("sea", 0.5, 4, "labels")


def test_there_is_no_guess_without_labels(index):
    assert Guesser(index)(code(0)) is None
    add(index, [("1", 0, {"year": 1999}), ("2", 0, {"class": None}), ("3", 0, {"class": ""}), ("4", 0, {"class": {}})])
    assert Guesser(index)(code(0)) is None


def test_only_the_last_item_with_a_label_is_the_query_itself(index):
    add(index, [("own", 0, {"class": "a"}), ("other", 0, {"year": 1})])
    assert Guesser(index)(code(0), "own") is None


def test_a_large_index_is_sampled_evenly_and_again_after_a_while(index, monkeypatch):
    monkeypatch.setattr(guess, "_SAMPLE", 50)
    add(index, [(f"{at:04}", at * 64, {"class": "low" if at < 250 else "high"}) for at in range(1000)])
    guesser = Guesser(index)
    found = guesser(code(999 * 64))
    assert (found.label, found.items) == ("high", 50)
    index.remove(index.keys())
    assert guesser(code(0)) is not None
    monkeypatch.setattr(guess, "_SECONDS", 0.0)
    assert guesser(code(0)) is None


def test_a_large_index_that_cannot_be_sampled_evenly_gives_no_guess(index, monkeypatch):
    monkeypatch.setattr(guess, "_SAMPLE", 5)
    monkeypatch.setattr(index, "folder", None)  # as on a server
    add(index, [(str(at), at, {"class": "a"}) for at in range(4)])
    assert Guesser(index)(code(0)).items == 4
    add(index, [("5", 5, {"class": "b"})])
    assert Guesser(index)(code(0)) is None


def test_an_index_on_a_server_with_few_codes_is_no_even_sample(index, monkeypatch):
    monkeypatch.setattr(guess, "_SAMPLE", 100)
    monkeypatch.setattr(index, "folder", None)
    monkeypatch.setattr(type(index), "sample", lambda index, count: list(index.items())[:20])  # one code has the others
    add(index, [(str(at), 0 if at < 480 else at, {"class": "a"}) for at in range(500)])
    assert Guesser(index)(code(0)) is None


def test_an_item_votes_for_few_short_labels(index):
    lists = [{"class": list(range(at, at + 9000))} for at in range(100)]
    add(index, [(str(at), at, metadata) for at, metadata in enumerate(lists)])
    guesser = Guesser(index)
    assert guesser(code(0)).label == "31"  # of each item the first 32
    assert len(guesser._votes._voter) <= 32 * 100
    index.remove(index.keys())
    add(index, [("long", 0, {"class": "x" * 60_000}), ("short", 255, {"class": "y"})])
    assert Guesser(index)(code(0)).label == "y"


def test_an_answer_has_a_guess_unless_conditions_would_contradict_it(index):
    add(index, [(str(at), at, {"class": "a" if at < 4 else "b"}) for at in range(8)])
    searcher, queries = Searcher(index), EncodedQueries(code(0))
    for options in (SearchOptions(1), SearchOptions(8), SearchOptions(3, radius=0)):
        [answer] = searcher.answer(searcher.plan(queries, options))
        assert answer.guess == Guesser(index)(code(0))
    [answer] = searcher.answer(searcher.plan(queries, SearchOptions(3, where={"class": "b"})))
    assert answer.guess is None
    assert len(answer.matches) == 3


def test_an_item_is_left_out_of_its_own_matches(index):
    add(index, [(str(at), at // 4, {"class": "a", "at": at}) for at in range(40)])
    searcher, queries = Searcher(index), EncodedQueries(code(0), keys=["2"])
    with_self = searcher.search(queries, SearchOptions(40))[0].keys
    for k in (1, 3, 39, 50):
        for more in ({}, {"radius": 16}):
            [found] = searcher.search(queries, SearchOptions(k, include_self=False, **more))
            assert found.keys == [key for key in with_self if key != "2"][:k]
            assert [item["at"] for item in found.metadata] == [int(key) for key in found.keys]
            assert [index.get([key])[0].code for key in found.keys] == [one.tobytes() for one in found.codes]
            assert found.distances.tolist() == [(int(key) // 4).bit_count() for key in found.keys]


def test_where_a_radius_finds_nothing_the_answer_has_the_nearest_distance(index):
    add(index, [("own", 0, {"class": "a"}), ("near", 0x0003, {"class": "a"}), ("far", 0x00FF, {"class": "b"})])
    searcher, queries = Searcher(index), EncodedQueries(code(0), keys=["own"])

    def nearest(options, of=queries):
        [answer] = searcher.answer(searcher.plan(of, options))
        return len(answer.matches), answer.nearest

    assert nearest(SearchOptions(radius=0)) == (1, None)
    assert nearest(SearchOptions(radius=0, include_self=False)) == (0, 2)
    assert nearest(SearchOptions(radius=0, include_self=False, where={"class": "b"})) == (0, 8)
    assert nearest(SearchOptions(radius=0, where={"class": "c"})) == (0, None)
    assert nearest(SearchOptions(where={"class": "c"})) == (0, None)
    assert nearest(SearchOptions(radius=1), EncodedQueries(code(0xFF00))) == (0, 8)
