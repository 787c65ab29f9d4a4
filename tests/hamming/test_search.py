"""Every layout of codes against unpacking, counting and sorting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsh.hamming import ball, scan
from adsh.hamming.arrange import arrange
from adsh.hamming.bits import as_words, pack
from adsh.hamming.buckets import Buckets
from adsh.hamming.hits import kth_smallest
from adsh.hamming.query import code_queries, output_queries
from adsh.hamming.scan import Scan
from tests.reference import hamming as plain


def codes_of(rng, n, bits, distinct):
    table = pack(rng.choice([-1, 1], size=(distinct or n, bits)))
    return table[rng.integers(0, distinct, n)] if distinct else table


def laid_out(codes, gaps=3):
    """The layout chosen for these codes, and the original number of each position."""
    layout, order = arrange(as_words(codes), np.arange(len(codes), dtype=np.uint32) * gaps)
    return layout, np.arange(len(codes)) if order is None else order


def in_order(layout, hits):
    at = hits.indices()
    order = np.lexsort((layout.places[at], hits.distances))
    return at[order], hits.distances[order]


cases = st.tuples(
    st.integers(1, 300),  # items
    st.sampled_from([1, 7, 12, 48, 64, 65, 128, 200]),  # bits
    st.sampled_from([0, 1, 2, 10]),  # distinct codes; 0: as they come
    st.integers(0, 1 << 30),  # seed
)


@given(cases, st.integers(1, 400))
def test_the_nearest_k_are_those_of_a_full_sort_and_ties_keep_the_order_of_insertion(case, k):
    n, bits, distinct, seed = case
    rng = np.random.default_rng(seed)
    codes, queries = codes_of(rng, n, bits, distinct), codes_of(rng, 3, bits, 0)
    layout, number = laid_out(codes)
    queries[0] = codes[0]
    for code, query in zip(queries, code_queries(queries, bits), strict=True):
        far = plain.distances(code, codes, bits)
        best = plain.top(far, k)
        hits = layout.top(query, min(k, n))
        assert number[hits.indices()].tolist() == best.tolist()
        assert hits.distances.tolist() == far[best].tolist()


@given(cases, st.integers(0, 12))
def test_a_ball_holds_what_a_full_count_finds(case, radius):
    n, bits, distinct, seed = case
    rng = np.random.default_rng(seed)
    codes = codes_of(rng, n, bits, distinct)
    layout, number = laid_out(codes)
    far = plain.distances(codes[0], codes, bits)
    positions, distances = in_order(layout, layout.ball(code_queries(codes[:1], bits)[0], radius))
    best = plain.within(far, radius)
    assert number[positions].tolist() == best.tolist()
    assert distances.tolist() == far[best].tolist()


@pytest.mark.parametrize("distinct", [0, 40])
@pytest.mark.parametrize("radius", [0, 1, 2])
def test_small_radii_are_looked_up_and_give_the_same(distinct, radius, monkeypatch):
    rng = np.random.default_rng(0)
    codes = codes_of(rng, 2000, 12, distinct)
    layout, number = laid_out(codes)
    query = code_queries(codes[:1], 12)[0]
    monkeypatch.setattr(ball, "_LOOK_UP", 0)
    monkeypatch.setattr(type(query), "distances", None)  # a scan would fail
    positions, _ = in_order(layout, layout.ball(query, radius))
    assert number[positions].tolist() == plain.within(plain.distances(codes[0], codes, 12), radius).tolist()


def test_looking_up_is_chosen_for_few_probes_among_many_codes_only():
    assert ball.pays(48, 1, 10_000_000)
    assert not ball.pays(48, 4, 10_000_000)
    assert not ball.pays(48, 1, 10)
    assert not ball.pays(128, 1, 10_000_000)
    assert ball.largest_radius(48, 10_000_000) == 2
    assert ball.largest_radius(48, 10) == -1
    assert ball.largest_radius(3, 10_000_000) == 3


@given(cases, st.integers(1, 50))
def test_the_asymmetric_ranking_is_that_of_inner_products(case, k):
    n, bits, distinct, seed = case
    rng = np.random.default_rng(seed)
    codes = codes_of(rng, n, bits, distinct)
    outputs = rng.integers(-8, 9, size=(2, bits)) / 8  # sums without rounding: ties are ties on both sides
    layout, number = laid_out(codes)
    for output, query in zip(outputs, output_queries(outputs, bits), strict=True):
        far = plain.asymmetric(output, codes, bits)
        best = plain.top(far, k)
        hits = layout.top(query, min(k, n))
        assert number[hits.indices()].tolist() == best.tolist()
        assert hits.distances.tolist() == far[best].tolist()


def test_the_asymmetric_distance_of_a_code_to_codes_is_the_hamming_distance():
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], size=(5, 20))
    codes = codes_of(rng, 50, 20, 0)
    words = arrange(as_words(codes), np.arange(50, dtype=np.uint32))[0].item_words()
    both = zip(code_queries(pack(signs), 20), output_queries(signs, 20), strict=True)
    assert all((one.distances(words) == other.distances(words)).all() for one, other in both)


def test_the_layout_is_chosen_from_the_codes():
    rng = np.random.default_rng(0)
    assert isinstance(laid_out(codes_of(rng, 1000, 64, 0))[0], Scan)
    assert isinstance(laid_out(codes_of(rng, 1000, 64, 10))[0], Buckets)
    assert isinstance(laid_out(codes_of(rng, 1000, 200, 10))[0], Buckets)


@pytest.mark.parametrize("bits", [48, 64, 100])
@pytest.mark.parametrize("engine", ["faiss", "numpy"])
def test_both_engines_of_the_scan_keep_the_order_of_insertion(bits, engine, monkeypatch):
    if engine == "faiss":
        pytest.importorskip("faiss")
        monkeypatch.setattr(scan, "first_k", None)  # NumPy would fail
    else:
        monkeypatch.setattr(scan, "faiss_module", lambda: None)
    rng = np.random.default_rng(0)
    codes = codes_of(rng, 150_000, bits, 0)  # three blocks of the scan
    codes[:, 3:] = codes[0, 3:]  # many ties
    codes[:, 2] = np.arange(len(codes)) % 256
    queries = codes[rng.integers(0, len(codes), 4)]
    layout = Scan(as_words(codes), np.arange(len(codes)), np.zeros(0))
    for k in (1, 100, 3000):
        for code, hits in zip(queries, layout.top_many(code_queries(queries, bits), k), strict=True):
            far = plain.distances(code, codes, bits)
            best = plain.top(far, k)
            assert hits.indices().tolist() == best.tolist()
            assert hits.distances.tolist() == far[best].tolist()


@given(st.lists(st.integers(0, 64), min_size=1, max_size=50), st.data())
def test_the_kth_smallest_is_that_of_a_sort(values, data):
    k = data.draw(st.integers(1, len(values)))
    assert kth_smallest(np.array(values, dtype=np.uint8), k) == sorted(values)[k - 1]
    assert kth_smallest(np.array(values, dtype=float), k) == sorted(values)[k - 1]


@given(cases)
def test_items_are_found_by_code_and_place_and_others_are_not(case):
    n, bits, distinct, seed = case
    rng = np.random.default_rng(seed)
    codes = codes_of(rng, n, bits, distinct)
    layout, _ = laid_out(codes)
    words, places = layout.item_words(), layout.places
    some = rng.integers(0, n, 5)
    assert layout.find(words[some], places[some]).tolist() == some.tolist()
    assert layout.find(words[some], places[some] + 1).tolist() == []
    assert layout.find(words[some] ^ np.uint64(1), places[some]).tolist() == []
