"""The rules of search, which `adsh search` and the service share."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import adsh
from adsh.errors import AdshWarning, InputError
from adsh.search.searcher import EncodedQueries, Searcher, SearchOptions, join_some

BITS, ITEMS = 16, 300


@pytest.fixture
def vectors():
    return np.random.default_rng(1).normal(size=(ITEMS, 8)).astype(np.float32)


@pytest.fixture
def codes():
    return np.random.default_rng(0).integers(0, 4, size=(ITEMS, 2), dtype=np.uint8)  # few codes, so many ties


def metadata():
    return [{"class": ("cat", "dog")[number % 2], "tags": ["small", str(number % 3)]} for number in range(ITEMS)]


@pytest.fixture
def index(tmp_path, codes, vectors):
    with adsh.open_index(tmp_path / "index", bits=BITS) as opened:
        opened.add([str(number) for number in range(ITEMS)], codes, metadata(), vectors=vectors)
        yield opened


@pytest.fixture
def index_without_vectors(tmp_path, codes):
    with adsh.open_index(tmp_path / "bare", bits=BITS) as opened:
        opened.add([str(number) for number in range(ITEMS)], codes)
        yield opened


def keys(found):
    return [matches.keys for matches in found]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ranking": "cosine"}, 'choose "hamming" or "asymmetric"'),
        ({"radius": 2, "ranking": "asymmetric"}, "a radius counts bits"),
        ({"radius": 2, "rerank": True}, "a radius counts bits"),
    ],
)
def test_options_that_exclude_each_other_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        SearchOptions(**options)


def test_ties_are_ordered_by_vectors_unless_that_is_switched_off(index, codes, vectors):
    searcher, queries = Searcher(index), EncodedQueries(codes[:3], vectors=vectors[:3])
    by_vectors = keys(index.search(codes[:3], 20, vectors=vectors[:3], rerank=True))
    in_order = keys(index.search(codes[:3], 20))
    assert by_vectors != in_order
    assert keys(searcher.search(queries, SearchOptions(20))) == by_vectors
    assert keys(searcher.search(queries, SearchOptions(20, rerank=True))) == by_vectors
    assert keys(searcher.search(queries, SearchOptions(20, rerank=False))) == in_order
    assert keys(searcher.search(EncodedQueries(codes[:3]), SearchOptions(20))) == in_order


def test_rerank_is_refused_without_vectors_of_the_query_or_of_the_index(index, index_without_vectors, codes, vectors):
    with pytest.raises(InputError, match="no vector to order ties by: search by image or key"):
        Searcher(index).plan(EncodedQueries(codes[:1]), SearchOptions(rerank=True))
    queries = EncodedQueries(codes[:1], vectors=vectors[:1])
    with pytest.raises(InputError, match="the index holds no vectors"):
        Searcher(index_without_vectors).plan(queries, SearchOptions(rerank=True))
    assert Searcher(index_without_vectors).plan(queries, SearchOptions()).vectors is None


def test_asymmetric_ranking_compares_outputs_and_needs_them(index, codes, vectors):
    outputs = np.random.default_rng(2).normal(size=(2, BITS)).astype(np.float32)
    options = SearchOptions(5, ranking="asymmetric")
    found = Searcher(index).search(EncodedQueries(codes[:2], outputs, vectors[:2]), options)
    assert keys(found) == keys(index.search(outputs, 5, ranking="asymmetric"))
    with pytest.raises(InputError, match="real-valued outputs: search by image"):
        Searcher(index).plan(EncodedQueries(codes[:2]), options)


def test_a_radius_limits_the_distance_and_k_the_number(index, codes):
    found = Searcher(index).search(EncodedQueries(codes[:2]), SearchOptions(7, radius=1))
    assert keys(found) == keys(index.within(codes[:2], 1, limit=7))


def test_only_searches_by_codes_alone_are_plain(index, codes, vectors):
    searcher, by_code = Searcher(index), EncodedQueries(codes[:1])
    assert searcher.plan(by_code, SearchOptions(5)).is_plain
    assert not searcher.plan(by_code, SearchOptions(5, radius=3)).is_plain
    assert not searcher.plan(by_code, SearchOptions(5, where={"class": "cat"})).is_plain
    assert not searcher.plan(EncodedQueries(codes[:1], vectors=vectors[:1]), SearchOptions(5)).is_plain


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"clas": "cat"}, "no sampled item has the field 'clas': the fields are class, tags"),
        ({"class": "catt"}, "no sampled item has class=catt: its values are cat, dog"),
        ({"tags": {"in": ["large", "huge"]}}, "no sampled item has tags=huge: its values are 0, 1, 2, small"),
        ({"tags": {"all": ["small", {"eq": "big"}]}}, "no sampled item has tags=big: its values are 0, 1, 2, small"),
    ],
)
def test_a_filter_that_matches_nothing_is_explained(index, codes, where, message):
    with pytest.warns(AdshWarning, match=message):
        assert keys(Searcher(index).search(EncodedQueries(codes[:1]), SearchOptions(where=where))) == [[]]


def test_a_filter_of_known_values_is_not_warned_of(index, codes):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options = SearchOptions(where={"class": "cat", "tags": {"ne": "small"}})  # each value is known
        assert keys(Searcher(index).search(EncodedQueries(codes[:1]), options)) == [[]]


def test_names_are_listed_in_order_and_only_a_few():
    assert join_some(["b", "a"]) == "a, b"
    assert join_some(str(number) for number in range(9)) == "0, 1, 2, 3, 4, 5, 6, 7, …"
    assert join_some([]) == "none"
