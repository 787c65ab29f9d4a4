"""All ways of counting give the counts of a plain double loop."""

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adsh.evaluate import counters, counting
from adsh.evaluate.counters import ByCode, ByItem
from adsh.evaluate.counting import count
from adsh.evaluate.metrics import mean_average_precision
from adsh.evaluate.pairing import Pairing
from adsh.evaluate.relevance import GivenGrades, SharedLabels
from adsh.hamming.bits import as_words, number_rows, pack
from adsh.labels import LabelSets
from tests.reference import metrics as plain


def case(seed, bits, n=45, q=6, codes=4, tags=5):
    rng = np.random.default_rng(seed)
    database = rng.choice([-1, 1], size=(codes, bits))[rng.integers(0, codes, n)]
    queries = rng.choice([-1, 1], size=(q, bits))
    hot = rng.random((n + q, tags)) < 0.4
    sets = [np.flatnonzero(row).tolist() for row in hot]
    grades = plain.shared(sets[:q], sets[q:])
    want = np.zeros((q, grades.max() + 1 if grades.max() else 2, bits + 1), dtype=int)
    for i, row in enumerate(plain.hamming(queries, database)):
        for j, distance in enumerate(row):
            want[i, grades[i, j], distance] += 1
    relevance = SharedLabels(LabelSets.of(hot[:q]), LabelSets.of(hot[q:]))
    return Pairing.of(pack(queries), pack(database), relevance, bits), want


def by(way, pairing, grades):
    out = np.zeros((len(pairing.query_codes), grades, pairing.bits + 1), dtype=np.int64)
    way(pairing, grades).count(slice(None), out)
    return out[pairing.places]


def by_code(pairing, grades):
    return ByCode(pairing, grades, *number_rows(as_words(pairing.database_codes)))


def on_torch(pairing, grades):
    from adsh.evaluate.torch_counter import OnDevice

    return OnDevice(pairing, grades, "cpu")


@pytest.mark.parametrize("way", [by_code, ByItem, on_torch])
@given(seed=st.integers(0, 10_000), bits=st.sampled_from([1, 8, 12, 48, 64, 65, 127, 128, 255, 256, 300, 1024]))
@settings(max_examples=40, deadline=None)  # the first example may import torch
def test_every_way_of_counting_equals_a_double_loop(way, seed, bits):
    pairing, want = case(seed, bits)
    highest = pairing.relevance.highest
    graded = by(way, pairing, highest + 1)
    assert np.array_equal(graded[:, : want.shape[1]], want)
    assert not graded[:, want.shape[1] :].any()
    binary = by(way, pairing, 2)
    assert np.array_equal(binary, np.stack([want[:, 0], want[:, 1:].sum(axis=1)], axis=1))


def test_items_are_counted_over_many_blocks_and_threads(monkeypatch):
    """Odd block lengths leave a key over when keys are counted in pairs."""
    pairing, want = case(0, 16, n=301, q=33, codes=301)
    monkeypatch.setattr(counters, "_ITEMS", 37)
    monkeypatch.setattr(counters, "_ROWS", 3)
    monkeypatch.setattr(counters, "_QUERIES", 4)
    monkeypatch.setattr(counting, "_THREADS_FROM", 1)
    got = count(pairing, graded=True, threads=3)[pairing.places]
    assert np.array_equal(got[:, : want.shape[1]], want)


def test_counts_too_large_for_two_in_one_float_are_kept_apart(monkeypatch):
    monkeypatch.setattr(counters, "_SHIFT", 3)
    pairing, want = case(3, 12)
    assert np.array_equal(by(by_code, pairing, 2)[:, 0], want[:, 0])


@pytest.mark.parametrize(("codes", "kind"), [(4, ByCode), (4000, ByItem)])
def test_the_cheaper_way_is_chosen(codes, kind):
    rng = np.random.default_rng(0)
    database = pack(rng.choice([-1, 1], size=(codes, 48)))[np.arange(4000) % codes]
    queries = pack(rng.choice([-1, 1], size=(100, 48)))
    relevance = SharedLabels(LabelSets.of(np.arange(100) % 10), LabelSets.of(np.arange(4000) % 10))
    pairing = Pairing.of(queries, database, relevance, 48)
    assert isinstance(counting._counter(pairing, 2, "cpu"), kind)


def test_a_given_matrix_is_counted_by_item():
    rng = np.random.default_rng(0)
    codes = np.zeros((50, 2), dtype=np.uint8)
    pairing = Pairing.of(codes, codes, GivenGrades(rng.random((50, 50)) < 0.5, 50, 50), 16)
    assert isinstance(counting._counter(pairing, 2, "cpu"), ByItem)


@given(st.integers(0, 10_000), st.integers(1, 3))
def test_rows_are_numbered_in_lexicographic_order(seed, words):
    rows = np.random.default_rng(seed).integers(0, 3, size=(20, words)).astype(np.uint64)
    number, numbers = number_rows(rows)
    want, inverse = np.unique(rows, axis=0, return_inverse=True)
    assert number == len(want)
    assert np.array_equal(numbers, inverse.ravel())


def test_counts_are_the_same_with_and_without_torch_loaded(monkeypatch):
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 256, size=(2000, 6), dtype=np.uint8)
    labels = rng.integers(0, 5, 2000)
    given = (codes[:40], codes, labels[:40], labels)
    with_torch = mean_average_precision(*given, bits=48, device="cpu")
    monkeypatch.delitem(sys.modules, "torch")
    assert mean_average_precision(*given, bits=48, device="cpu") == with_torch
