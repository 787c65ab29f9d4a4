"""The expected values are the means over every order of the ties, which the reference really walks through."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adsh import metrics
from adsh.evaluate import ties
from tests.evaluate.cases import at_distances, small_rankings
from tests.reference import metrics as plain

BITS = 3
DIVISORS = ["retrieved", "min"]


def ranking_of(case, **options):
    distances, grades = case
    return metrics.Ranking(*at_distances(distances, BITS), relevance=np.array([grades]), bits=BITS, **options)


@pytest.mark.parametrize("divisor", DIVISORS)
@given(case=small_rankings(), k=st.none() | st.integers(1, 9))
@settings(max_examples=150)
def test_average_precision_is_the_mean_over_all_orders(case, k, divisor):
    want = plain.mean_over_orders(lambda ranked: plain.average_precision(ranked, k, divisor), *case)
    assert ranking_of(case).mean_average_precision(k=k, divisor=divisor) == pytest.approx(want, abs=1e-13)


@pytest.mark.parametrize("divisor", DIVISORS)
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_every_ranking_of_up_to_five_items_over_two_distances(n, divisor):
    """Exhaustive: all distances, all relevances, all k."""
    for number in range(4**n):
        distances = [number >> (2 * i) & 1 for i in range(n)]
        grades = [number >> (2 * i + 1) & 1 for i in range(n)]
        if distances != sorted(distances):  # the order of the database does not matter here
            continue
        orders = list(plain.every_order(distances, grades))
        ranking = ranking_of((distances, grades))
        for k in [None, *range(1, n + 2)]:
            values = [plain.average_precision(ranked, k, divisor) for ranked in orders]
            assert ranking.mean_average_precision(k=k, divisor=divisor) == pytest.approx(np.mean(values), abs=1e-13)
            bounds = ranking.average_precision_bounds(k=k, divisor=divisor)
            assert bounds == pytest.approx((min(values), max(values)), abs=1e-13)


@pytest.mark.parametrize("divisor", DIVISORS)
@given(case=small_rankings(), k=st.none() | st.integers(1, 9))
@settings(max_examples=150)
def test_the_bounds_are_the_lowest_and_highest_over_all_orders(case, k, divisor):
    values = [plain.average_precision(ranked, k, divisor) for ranked in plain.every_order(*case)]
    got = ranking_of(case).average_precision_bounds(k=k, divisor=divisor)
    assert got == pytest.approx((min(values), max(values)), abs=1e-13)


@given(case=small_rankings(highest=3), k=st.integers(1, 9), gain=st.sampled_from(["exponential", "linear"]))
@settings(max_examples=100)
def test_precision_recall_and_ndcg_are_means_over_all_orders(case, k, gain):
    ranking = ranking_of(case)
    precision = plain.mean_over_orders(lambda ranked: plain.precision(ranked, k), *case)
    recall = plain.mean_over_orders(lambda ranked: plain.recall(ranked, k), *case)
    ndcg = plain.mean_over_orders(lambda ranked: plain.ndcg(ranked, k, gain), *case)
    assert ranking.precision_at([k])[0] == pytest.approx(precision, abs=1e-13)
    assert ranking.recall_at([k])[0] == pytest.approx(recall, abs=1e-13)
    assert ranking.ndcg_at(k, gain=gain) == pytest.approx(ndcg, abs=1e-13)


@given(
    st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), min_size=1, max_size=5),
    st.integers(1, 300),
)
def test_a_large_cut_tie_agrees_with_the_hypergeometric_sum_written_out(sizes, k):
    """E[AP at k] summed over the number of relevant items above the cut, its probability by binomials."""
    from math import comb

    total = np.array([[a + b for a, b in sizes]])
    relevant = np.array([[a for a, _ in sizes]])
    k = min(k, max(1, int(total.sum())))
    above = found = 0
    value, summed = 0.0, 0.0
    for n, r in zip(total[0].tolist(), relevant[0].tolist(), strict=True):
        m = min(n, k - above)
        if m < n:
            value = 0.0
            for x in range(max(0, m - (n - r)), min(m, r) + 1):
                inside = expected_sum(above, found, m, x)
                chance = comb(r, x) * comb(n - r, m - x) / comb(n, m)
                value += chance * (summed + inside) / (found + x) if found + x else 0.0
            break
        summed += expected_sum(above, found, n, r)
        above, found = above + n, found + r
        value = summed / found if found else 0.0
        if above == k:
            break
    assert ties.average_precision(total, relevant, k, "retrieved")[0] == pytest.approx(value, abs=1e-12)


def expected_sum(above, found, n, r):
    """Place by place."""
    return sum(
        r / n * (found + 1 + ((t - 1) * (r - 1) / (n - 1) if n > 1 else 0)) / (above + t) for t in range(1, n + 1)
    )


def test_a_huge_cut_tie_agrees_with_exact_arithmetic():
    """k = 5000 inside a tie of 20,000: the probabilities left out far from the mode do not show."""
    from fractions import Fraction
    from math import comb

    above, found, n, r, k = 300, 120, 20_000, 7_000, 5_000
    m = k - above
    total, relevant = np.array([[above, n]]), np.array([[found, r]])
    before = expected_sum(0, 0, above, found)
    gap = sum(Fraction(1, above + t) for t in range(1, m + 1))
    gap, rest = float(gap), float(m - (above + 1) * gap)
    all_ways, value = comb(n, m), 0.0
    for x in range(1200, 2200):  # 14 standard deviations on either side of 1645
        inside = x / m * ((found + 1) * gap + (x - 1) / (m - 1) * rest)
        value += float(Fraction(comb(r, x) * comb(n - r, m - x), all_ways)) * (before + inside) / (found + x)
    assert ties.average_precision(total, relevant, k, "retrieved")[0] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize("start", [0, 1, 7, 15, 16, 17, 1000, 10_000_000, 10**12])
def test_differences_of_harmonic_numbers_keep_their_digits(start):
    for length in (0, 1, 2, 5, 40, 3000):
        want = math.fsum(1 / (start + t) for t in range(1, length + 1))
        got = ties._harmonic_gap(np.array([float(start)]), np.array([float(length)]))[0]
        assert got == pytest.approx(want, rel=3e-15, abs=0)


def test_a_pair_at_the_end_of_ten_million_items_keeps_its_digits():
    """Where H(a + 2) - H(a) from a table of sums would be off in the eighth digit."""
    a = 10_000_000
    total, relevant = np.array([[a, 2]]), np.array([[0, 2]])
    want = (1 / (a + 1) + 2 / (a + 2)) / 2
    assert ties.average_precision(total, relevant, None, "retrieved")[0] == pytest.approx(want, rel=1e-8)
