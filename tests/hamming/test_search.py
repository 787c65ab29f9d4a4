"""Every layout of codes against unpacking, counting and sorting."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsh.hamming import query as query_module
from adsh.hamming import radius_lookup as ball
from adsh.hamming import scan
from adsh.hamming.bits import as_words, pack
from adsh.hamming.buckets import Buckets
from adsh.hamming.distances import CodeColumns
from adsh.hamming.hits import Hits, kth_smallest
from adsh.hamming.layout import choose_layout, compact_type
from adsh.hamming.query import code_queries, output_queries
from adsh.hamming.scan import Scan
from tests.reference import hamming as plain


def codes_of(rng, n, bits, distinct):
    table = pack(rng.choice([-1, 1], size=(distinct or n, bits)))
    return table[rng.integers(0, distinct, n)] if distinct else table


def laid_out(codes, gaps=3):
    """The layout chosen for these codes, and the original number of each position."""
    layout, order = choose_layout(as_words(codes), np.arange(len(codes), dtype=np.uint32) * gaps)
    return layout, np.arange(len(codes)) if order is None else order


def in_order(layout, hits):
    at = hits.indices()
    order = np.lexsort((layout.insertion_order[at], hits.distances))
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


@given(
    st.sampled_from([2, 3, 6, 30]),  # distinct codes
    st.sampled_from([5, 12, 70]),  # bits: of 5, most distances tie
    st.integers(1, 60) | st.sampled_from([199, 200, 250]),
    st.integers(0, 1 << 30),
)
def test_buckets_at_equal_distances_give_their_items_in_the_order_of_insertion(distinct, bits, k, seed):
    """Fewer than the nearest bucket holds, or fewer than there are buckets, or many buckets' worth."""
    rng = np.random.default_rng(seed)
    codes = codes_of(rng, 200, bits, distinct)
    layout, number = laid_out(codes)
    assert isinstance(layout, Buckets)
    queries = np.concatenate([codes_of(rng, 4, bits, 0), codes[:2]])
    outputs = rng.integers(-2, 3, size=(2, bits)) / 2
    for query in code_queries(queries, bits) + output_queries(outputs, bits):
        far = query.distances(as_words(codes))
        best = plain.top(far, k)
        hits = layout.top(query, k)
        assert number[hits.indices()].tolist() == best.tolist()
        assert hits.distances.tolist() == far[best].tolist()


@pytest.mark.parametrize("distinct", [0, 40])
@pytest.mark.parametrize("radius", [0, 1, 2])
def test_small_radii_are_looked_up_and_give_the_same(distinct, radius, monkeypatch):
    rng = np.random.default_rng(0)
    codes = codes_of(rng, 2000, 12, distinct)
    layout, number = laid_out(codes)
    queries = code_queries(codes[:200], 12)
    monkeypatch.setattr(ball, "_LOOK_UP", 0)
    monkeypatch.setattr(type(queries[0]), "distances", None)  # a scan would fail
    for code, query in zip(codes, queries, strict=False):
        far = plain.distances(code, codes, 12)
        positions, distances = in_order(layout, layout.ball(query, radius))
        assert number[positions].tolist() == plain.within(far, radius).tolist()
        assert distances.tolist() == np.sort(far[far <= radius]).tolist()


def test_looking_up_is_chosen_for_few_probes_among_many_codes_only():
    within_1 = 1 + 48  # codes
    assert ball.lookup_is_cheaper(48, 1, within_1 * ball._LOOK_UP)
    assert not ball.lookup_is_cheaper(48, 1, within_1 * ball._LOOK_UP - 1)
    assert ball.lookup_is_cheaper(64, 1, 10_000_000)
    assert not ball.lookup_is_cheaper(65, 1, 10_000_000)
    assert ball.lookup_is_cheaper(48, 1, 10_000_000)
    assert not ball.lookup_is_cheaper(48, 4, 10_000_000)
    assert not ball.lookup_is_cheaper(48, 1, 10)
    assert not ball.lookup_is_cheaper(128, 1, 10_000_000)
    assert ball.largest_radius(48, 10_000_000) == 2
    assert ball.largest_radius(48, 10) == -1
    assert ball.largest_radius(3, 10_000_000) == 3
    assert ball.largest_radius(128, 10_000_000) == -1


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
    words = choose_layout(as_words(codes), np.arange(50, dtype=np.uint32))[0].item_words()
    both = zip(code_queries(pack(signs), 20), output_queries(signs, 20), strict=True)
    assert all((one.distances(words) == other.distances(words)).all() for one, other in both)


def test_the_layout_is_chosen_from_the_codes():
    rng = np.random.default_rng(0)
    assert isinstance(laid_out(codes_of(rng, 1000, 64, 0))[0], Scan)
    assert isinstance(laid_out(codes_of(rng, 1000, 64, 10))[0], Buckets)
    assert isinstance(laid_out(codes_of(rng, 1000, 200, 10))[0], Buckets)
    codes = codes_of(rng, 10, 64, 0)
    assert isinstance(laid_out(np.repeat(codes, 2, axis=0))[0], Buckets)  # two items a code
    assert isinstance(laid_out(np.repeat(codes, 2, axis=0)[1:])[0], Scan)


def test_four_bytes_hold_numbers_below_2_to_the_32():
    assert compact_type((1 << 32) - 1) == np.uint32
    assert compact_type(1 << 32) == np.uint64


def test_none_are_nearest_where_there_are_none():
    queries = code_queries(np.zeros((2, 2), np.uint8), 16)
    layout = Scan(np.zeros((0, 1), np.uint64), np.zeros(0, np.uint32), np.zeros(0, np.uint32))
    assert [len(hits.indices()) + len(hits.distances) for hits in layout.top_many(queries, 3)] == [0, 0]
    assert [len(hits.indices()) for hits in layout.top_many(output_queries(np.ones((1, 16)), 16), 3)] == [0]


@pytest.mark.parametrize("bits", [12, 64, 200])
@pytest.mark.parametrize("room", [1, 7, 100])
def test_distances_by_column_are_those_of_unpacking(bits, room):
    rng = np.random.default_rng(0)
    codes = codes_of(rng, 60, bits, 0)
    columns = CodeColumns(codes)
    assert len(columns) == len(columns.scratch()) == 60
    out = np.empty(40, dtype=columns.distance_type)
    columns.distances(as_words(codes[:1])[0], 15, out, np.empty(room, dtype=np.uint64))
    assert out.tolist() == plain.distances(codes[0], codes, bits)[15:55].tolist()
    assert out.dtype == np.uint8
    assert CodeColumns(np.zeros((1, 31), np.uint8)).distance_type == np.uint8
    assert CodeColumns(np.zeros((1, 32), np.uint8)).distance_type == np.uint16


@pytest.mark.parametrize("bits", [48, 64, 100])
@pytest.mark.parametrize("engine", ["faiss", "numpy"])
def test_both_engines_of_the_scan_keep_the_order_of_insertion(bits, engine, monkeypatch):
    if engine == "faiss":
        pytest.importorskip("faiss")
        monkeypatch.setattr(scan, "first_k", None)  # NumPy would fail
    else:
        monkeypatch.setattr(scan, "faiss_module", lambda: None)
    monkeypatch.setattr(scan, "_AT_A_TIME", 2048)
    rng = np.random.default_rng(0)
    codes = codes_of(rng, 6000, bits, 0)  # three blocks of the scan
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
            assert hits.distances.dtype.kind in "ui"


def test_no_ranges_hold_no_positions():
    assert scan.ranges(np.zeros(0, np.uint32), np.zeros(0, np.uint32)).tolist() == []
    assert scan.ranges(np.array([7, 2, 5]), np.array([2, 0, 3])).tolist() == [7, 8, 5, 6, 7]


@given(st.lists(st.integers(0, 64), min_size=1, max_size=50), st.data())
def test_the_kth_smallest_is_that_of_a_sort(values, data):
    k = data.draw(st.integers(1, len(values)))
    assert kth_smallest(np.array(values, dtype=np.uint8), k) == sorted(values)[k - 1]
    assert kth_smallest(np.array(values, dtype=float), k) == sorted(values)[k - 1]


def test_the_kth_smallest_of_many_real_distances_is_that_of_a_sort():
    values = np.random.default_rng(0).random(3000)
    for k in (1, 2, 3, 40, 1500, 2999, 3000):
        assert kth_smallest(values, k) == np.sort(values)[k - 1]


@given(cases)
def test_items_are_found_by_code_and_place_and_others_are_not(case):
    n, bits, distinct, seed = case
    rng = np.random.default_rng(seed)
    codes = codes_of(rng, n, bits, distinct)
    layout, _ = laid_out(codes)
    words, insertion_order = layout.item_words(), layout.insertion_order
    some = rng.integers(0, n, 5)
    assert layout.find(words[some], insertion_order[some]).tolist() == some.tolist()
    assert layout.find(words[some], insertion_order[some] + 1).tolist() == []
    assert layout.find(words[some] ^ np.uint64(1), insertion_order[some]).tolist() == []


@given(cases, st.integers(1, 20))
def test_several_queries_are_answered_each_as_alone(case, k):
    n, bits, distinct, seed = case
    rng = np.random.default_rng(seed)
    codes = codes_of(rng, n, bits, distinct)
    layout, _ = laid_out(codes)
    outputs = rng.integers(-8, 9, size=(3, bits)) / 8
    outputs[1] = outputs[0] / 2  # the same code, other distances
    for queries in (code_queries(pack(outputs), bits), output_queries(outputs, bits)):
        requested = [queries[i] for i in (0, 1, 2, 0)]
        for hits, query in zip(layout.top_many(requested, min(k, n)), requested, strict=True):
            alone = layout.top(query, min(k, n))
            assert hits.indices().tolist() == alone.indices().tolist()
            assert hits.distances.tolist() == alone.distances.tolist()


@given(cases)
def test_the_codes_at_some_positions_are_those_of_the_items_there(case):
    n, bits, distinct, seed = case
    rng = np.random.default_rng(seed)
    codes = codes_of(rng, n, bits, distinct)
    layout, number = laid_out(codes)
    assert np.array_equal(layout.item_words(), as_words(codes[number]))
    some = rng.integers(0, n, 7)
    assert np.array_equal(layout.words_at(some), layout.item_words()[some])


@pytest.mark.parametrize("positions", [slice(5, 9), np.array([7, 2, 9, 4])])
def test_the_first_of_some_hits_are_the_nearest(positions):
    hits = Hits(positions, np.array([0, 1, 1, 3]))
    for k in range(1, 7):
        first = hits.first(k)
        assert first.indices().tolist() == hits.indices()[:k].tolist()
        assert first.distances.tolist() == hits.distances[:k].tolist()


@given(st.lists(st.integers(0, 20), min_size=1, max_size=30), st.lists(st.integers(0, 21), max_size=10))
def test_looking_up_through_an_order_is_a_binary_search_of_the_sorted_values(values, targets):
    values, targets = np.array(values), np.array(targets, dtype=np.int64)
    order = np.argsort(values, kind="stable")
    for after, side in ((False, "left"), (True, "right")):
        got = scan._bisect(values, order, targets, after=after)
        assert got.tolist() == np.searchsorted(values[order], targets, side=side).tolist()


@pytest.mark.parametrize(("bits", "size"), [(1, 1), (64, 1), (65, 1), (192, 1), (256, 2), (1024, 2)])
def test_hamming_distances_are_small_unsigned_numbers(bits, size):
    codes = pack(np.stack([-np.ones(bits), np.ones(bits)]))
    far = code_queries(codes[:1], bits)[0].distances(as_words(codes))
    assert far.tolist() == [0, bits]
    assert (far.dtype.kind, far.dtype.itemsize) == ("u", size)


def test_codes_that_share_their_first_word_are_distinguished():
    signs = np.ones((3, 100))
    signs[1, 99] = signs[2, 70] = -1
    codes = pack(signs)[[0, 1, 1, 0, 0, 1]]
    layout, number = laid_out(codes)
    assert isinstance(layout, Buckets)
    assert np.array_equal(layout.item_words(), as_words(codes[number]))
    assert layout.find(layout.item_words(), layout.insertion_order).tolist() == list(range(6))
    other = np.repeat(as_words(pack(signs[2:])), 6, axis=0)
    assert layout.find(other, layout.insertion_order).dtype == np.int64
    assert layout.find(other, layout.insertion_order).tolist() == []


@pytest.mark.parametrize("bits", [12, 100])
def test_distances_are_the_same_block_by_block(bits, monkeypatch):
    codes = codes_of(np.random.default_rng(0), 170, bits, 0)
    monkeypatch.setattr(query_module, "_AT_A_TIME", 50)
    far = code_queries(codes[3:4], bits)[0].distances(as_words(codes))
    assert far.tolist() == plain.distances(codes[3], codes, bits).tolist()
