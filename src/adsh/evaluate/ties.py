"""Metrics of a ranking with ties, from counts by distance: exact, without an order and without sorting.

Items at one distance are tied. Every function takes `total` and `relevant`, (queries, distances) items and
relevant items at each distance, and gives one value a query: its expectation where all orders inside each
tie are equally likely (McSherry and Najork, "Computing information retrieval performance measures
efficiently in the presence of tied scores", 2008), or its bounds over all of them.

A tie of n items, r of them relevant, comes after `above` items, `found` of them relevant.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]
Divisor = Literal["retrieved", "min"]

_EXACT = 16  # harmonic numbers up to here come from a table, those above from a series good to 1e-16
_HARMONIC = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, _EXACT + 1))])
_BLOCK = 1 << 20  # probabilities in memory at a time


def average_precision(total: Counts, relevant: Counts, k: int | None, divisor: Divisor) -> Floats:
    """Return the expected average precision of the first k; 0 for a query without any relevant item.

    Args:
        total: (queries, distances) items.
        relevant: (queries, distances) relevant items.
        k: None for the whole ranking.
        divisor: what the sum of precisions is divided by: "retrieved", the relevant items among the first k, which is
            random where k cuts a tie; or "min", the smaller of k and all relevant items.

    Returns:
        Array (queries,).
    """
    ties = _Ties(total, relevant, k)
    sums, has_relevant = np.zeros_like(ties.n), ties.r > 0
    sums[has_relevant] = _expected_sum(
        *(part[has_relevant] for part in (ties.above, ties.found, ties.n, ties.r, ties.taken))
    )
    summed = sums.sum(axis=1)
    if k is None or divisor == "min":
        return _ratio(summed, np.minimum(ties.k, ties.all_relevant))
    found = np.where(ties.taken == ties.n, ties.r, 0.0).sum(axis=1)
    values = _ratio(summed, found)
    rows, columns = np.nonzero((ties.taken > 0) & (ties.taken < ties.n) & (ties.r > 0))  # at most one a row
    if len(rows):
        before = summed[rows] - sums[rows, columns]
        cut = [part[rows, columns] for part in (ties.above, ties.n, ties.r, ties.taken)]
        values[rows] = _expected_ratio(before, found[rows], *cut)
    return values


def average_precision_bounds(total: Counts, relevant: Counts, k: int | None, divisor: Divisor) -> tuple[Floats, Floats]:
    """Return the lowest and the highest average precision over all orders inside the ties.

    Args:
        total, relevant, k, divisor: as of `average_precision`.

    Returns:
        Two arrays (queries,): the lowest values and the highest.
    """
    ties = _Ties(total, relevant, k)
    fewest = np.maximum(0.0, ties.taken - (ties.n - ties.r))  # relevant items of a tie among its first `taken`
    most = np.minimum(ties.taken, ties.r)
    low = _sum_when_last(ties.above, ties.found, ties.taken, fewest)
    high = _sum_when_first(ties.above, ties.found, most)
    if k is None or divisor == "min":
        bound = np.minimum(ties.k, ties.all_relevant)
        return _ratio(low.sum(axis=1), bound), _ratio(high.sum(axis=1), bound)

    # How many relevant items of the cut tie come above the cut moves the divisor too. Both sums are convex in
    # that number, so both ratios fall and then rise: the highest is at an end, the lowest found by bisection.
    # Only the cut tie, at most one a query, has a choice: fewest < most. Where none has, any tie will do.
    cut = np.argmax(most - fewest, axis=1)[:, None]
    above, found, taken, fewest_cut, most_cut, low_cut, high_cut = (
        np.take_along_axis(part, cut, axis=1)[:, 0]
        for part in (ties.above, ties.found, ties.taken, fewest, most, low, high)
    )
    low_rest, high_rest, rest = low.sum(axis=1) - low_cut, high.sum(axis=1) - high_cut, most.sum(axis=1) - most_cut

    def lowest(x: Floats) -> Floats:
        return _ratio(low_rest + _sum_when_last(above, found, taken, x), rest + x)

    def highest(x: Floats) -> Floats:
        return _ratio(high_rest + _sum_when_first(above, found, x), rest + x)

    left, right = fewest_cut, most_cut
    while (left < right).any():
        middle = (left + right) // 2
        rises = (lowest(np.minimum(middle + 1, most_cut)) >= lowest(middle)) & (rest + middle > 0)
        left, right = np.where(rises, left, np.minimum(middle + 1, right)), np.where(rises, middle, right)
    return np.minimum(lowest(fewest_cut), lowest(left)), np.maximum(highest(fewest_cut), highest(most_cut))


def relevant_in_first(total: Counts, relevant: Counts, k: int) -> Floats:
    """Return the expected number of relevant items among the first k.

    Args:
        total: (queries, distances) items.
        relevant: (queries, distances) relevant items.
        k: how many items count.

    Returns:
        Array (queries,).
    """
    ties = _Ties(total, relevant, k)
    hits: Floats = (ties.r * ties.taken / np.maximum(ties.n, 1)).sum(axis=1)
    return hits


def dcg(total: Counts, gains: Floats, k: int) -> Floats:
    """Return the expected discounted cumulative gain of the first k.

    Args:
        total: (queries, distances) items.
        gains: (queries, distances), the summed gains of the items at each distance.
        k: how many items count.

    Returns:
        Array (queries,).
    """
    ends = np.cumsum(total, axis=1)
    places = np.minimum(np.concatenate([np.zeros_like(ends[:, :1]), ends], axis=1), k)
    sums: Floats = (gains / np.maximum(total, 1) * np.diff(discounts(k)[places], axis=1)).sum(axis=1)
    return sums


def discounts(k: int) -> Floats:
    """Return (k + 1,), the sums of the first 0, 1, ... k discounts, 1 / log2(1 + place)."""
    return np.concatenate([[0.0], np.cumsum(1.0 / np.log2(np.arange(2, k + 2)))])


class _Ties:
    """Every tie of every query as floats, and how many of its items are among the first k.

    Args:
        total: (queries, distances) items.
        relevant: (queries, distances) relevant items.
        k: None for the whole ranking.
    """

    def __init__(self, total: Counts, relevant: Counts, k: int | None) -> None:
        self.n, self.r = total.astype(np.float64), relevant.astype(np.float64)  # (queries, distances)
        self.above = np.cumsum(self.n, axis=1) - self.n
        self.found = np.cumsum(self.r, axis=1) - self.r
        self.all_relevant = self.r.sum(axis=1)
        self.k = float(self.n[0].sum() if k is None else k)
        self.taken = self.n if k is None else np.clip(k - self.above, 0.0, self.n)


def _expected_sum(above: Floats, found: Floats, n: Floats, r: Floats, taken: Floats) -> Floats:
    """Return the expected sum of precisions at the relevant items among the first `taken` of a tie.

    Place t holds a relevant item with probability r/n, and then (t-1)(r-1)/(n-1) relevant ones are expected
    before it in the tie: sum_t r/n (found + 1 + (t-1)(r-1)/(n-1)) / (above + t), summed in closed form.

    Args:
        above: items before each tie.
        found: relevant items before it.
        n: items of the tie.
        r: relevant items of the tie.
        taken: items of the tie among the first k.

    Returns:
        One sum for each tie.
    """
    gap = _harmonic_gap(above, taken)
    others = (r - 1) / np.maximum(n - 1, 1) * (taken - (above + 1) * gap)
    sums: Floats = r / np.maximum(n, 1) * ((found + 1) * gap + others)
    return sums


def _expected_ratio(before: Floats, found: Floats, above: Floats, n: Floats, r: Floats, m: Floats) -> Floats:
    """Return E[(before + sum of precisions in the first m of the tie) / (found + x)], x of those m being relevant.

    Given x, the m places are like a tie of m with x relevant.

    Args:
        before: (q,), the sum of precisions before the tie.
        found, above, n, r: (q,), as of `_expected_sum`.
        m: (q,), items of the tie among the first k.

    Returns:
        Array (q,).
    """
    values = np.empty(len(m))
    step = max(1, int(_BLOCK // (2 * _reach(m.max()) + 1)))
    for start in range(0, len(m), step):
        part = slice(start, start + step)
        b, f, a, m_ = (column[part, None] for column in (before, found, above, m))
        x, chance = _hypergeometric(n[part, None], r[part, None], m_)
        values[part] = (chance * _ratio(b + _expected_sum(a, f, m_, x, m_), f + x)).sum(axis=1)
    return values


def _hypergeometric(n: Floats, r: Floats, m: Floats) -> tuple[Floats, Floats]:
    """Return the distribution of how many of m items drawn from n are among the r relevant ones.

    Probabilities come by their ratios from the mode outwards.

    Args:
        n: (q, 1) items.
        r: (q, 1) relevant ones among them.
        m: (q, 1) items drawn.

    Returns:
        Two arrays (q, values): the numbers of relevant items drawn, and their probabilities.
    """
    low, high = np.maximum(0.0, m - (n - r)), np.minimum(m, r)
    mode = np.clip(np.floor((m + 1) * (r + 1) / (n + 2)), low, high)
    width = int(np.minimum(high - low, _reach(m)).max())
    x = np.clip(mode + np.arange(-width, width + 1, dtype=np.float64), low, high)  # beyond them the ratios are 0
    up, down = x[:, width:-1], x[:, 1 : width + 1]
    rising = (r - up) * (m - up) / ((up + 1) * (n - r - m + up + 1))  # P(x + 1) / P(x)
    falling = down * (n - r - m + down) / ((r - down + 1) * (m - down + 1))  # P(x - 1) / P(x)
    downwards = np.cumprod(falling[:, ::-1], axis=1)[:, ::-1]
    weights = np.concatenate([downwards, np.ones_like(mode), np.cumprod(rising, axis=1)], axis=1)
    return x, weights / weights.sum(axis=1, keepdims=True)


def _reach(m: Any) -> Any:
    """Return how far from the mode to look: by Hoeffding's bound, all beyond has a probability below 1e-18."""
    return np.ceil(np.sqrt(21 * m)) + 2


def _sum_when_first(above: Floats, found: Floats, x: Floats) -> Floats:
    """Return sum_i (found + i) / (above + i), i = 1..x: x relevant items come first in their tie.

    Args:
        above: items before the tie.
        found: relevant items before it.
        x: relevant items of the tie that count.

    Returns:
        One sum for each tie.
    """
    return x + (found - above) * _harmonic_gap(above, x)


def _sum_when_last(above: Floats, found: Floats, taken: Floats, x: Floats) -> Floats:
    """Return the sum of precisions for x relevant items that come last among the `taken` of their tie.

    Args:
        above, found, x: as of `_sum_when_first`.
        taken: items of the tie among the first k.

    Returns:
        One sum for each tie.
    """
    return _sum_when_first(above + taken - x, found, x)


def _harmonic_gap(start: Floats, length: Floats) -> Floats:
    """Return H(start + length) - H(start), to a relative 1e-15 however long `start` is; H(x) = 1 + 1/2 + ... + 1/x."""
    end = start + length
    exact = _HARMONIC[np.minimum(end, _EXACT).astype(np.intp)] - _HARMONIC[np.minimum(start, _EXACT).astype(np.intp)]
    low, high = np.maximum(start, _EXACT) + 0.5, np.maximum(end, _EXACT) + 0.5
    gap: Floats = exact + (np.log1p((high - low) / low) + (_harmonic_tail(high) - _harmonic_tail(low)))
    return gap


def _harmonic_tail(y: Floats) -> Floats:
    """Return H(y - 1/2) - ln(y) - Euler's constant."""
    z = 1 / (y * y)
    tail: Floats = z * (1 / 24 - z * (7 / 960 - z * (31 / 8064 - z * (127 / 30720 - z * (511 / 67584)))))
    return tail


def _ratio(values: Floats, by: Floats) -> Floats:
    """Return values / by, 0 where `by` is 0."""
    ratio: Floats = np.divide(values, by, out=np.zeros(np.broadcast(values, by).shape), where=by > 0)
    return ratio
