"""Codes that are held, beside codes that are learned: as in the dense algorithm with the held ones put back."""

import numpy as np
import pytest

from adsh import LabelSets
from adsh.hamming.bits import unpack
from adsh.learn import CodeTable, LearnedCodes
from adsh.learn.growing_table import GrowingTable
from adsh.learn.rows import Rows

from ..reference import paper
from .cases import labelled, outputs


def grown(hot, old, bits, rng, at_hand):
    """A table whose first `old` points have codes, with the labels twice: once for them, once for the others."""
    names = [tuple(np.flatnonzero(row)) for row in np.unique(hot, axis=0)]
    number = {name: k for k, name in enumerate(names)}
    ids = np.array([number[tuple(np.flatnonzero(row))] for row in hot])
    ids[old:] += len(names)
    codes = rng.choice([-1, 1], (len(hot), bits)).astype(np.int8)
    labels = LabelSets(ids, [*names, *names])
    table = GrowingTable(labels, bits, at_hand)
    table.start_from(Rows(ids, codes, np.ones(len(ids), dtype=np.int64)), np.arange(len(ids)), fixed_sets=len(names))
    return table, codes.astype(float)


@pytest.mark.parametrize("kind", ["single-label", "multi-label", "all-distinct"])
@pytest.mark.parametrize("gamma", [0.0, 200.0])
def test_new_codes_are_those_of_the_dense_update_and_old_ones_keep_every_bit(kind, gamma):
    rng = np.random.default_rng(8)
    _, hot = labelled(kind, 80, 5, rng, 0.4)
    hot[hot.sum(axis=1) == 0, 0] = 1
    old, at_hand = 50, np.sort(rng.choice(80, 60, replace=False))
    table, V = grown(hot, old, 14, rng, at_hand)
    before = V.copy()
    assert np.array_equal(table.dense(), V)
    for _ in range(12):
        omega = table.draw(25, rng)
        assert np.isin(omega, at_hand).all()
        S = paper.weighted(paper.similarity(hot[omega], hot))
        U = outputs(25, 14, rng)
        np.testing.assert_allclose(table.gram(), V.T @ V)
        np.testing.assert_allclose(table.similarity_sums(omega), S @ V, rtol=1e-9, atol=1e-9)
        J = table.update(omega, U, gamma)
        V = paper.update_codes(V, U, S, omega, gamma)
        V[:old] = before[:old]
        assert np.array_equal(table.dense(), V)
        np.testing.assert_allclose(J, paper.objective(U, V, S, omega, gamma), rtol=1e-9)
    assert np.array_equal(table.dense()[:old], before[:old])
    assert not np.array_equal(table.dense()[old:], before[old:])


def test_few_of_some_classes_and_many_of_others_are_drawn_equally_often():
    labels = np.repeat([0, 1, 2], [200, 10, 90])
    table = GrowingTable(LabelSets.of(labels), 8, np.arange(300))
    drawn = labels[table.draw(60, np.random.default_rng(0))]
    assert np.bincount(drawn).tolist() == [25, 10, 25]
    assert len(set(drawn[:10])) > 1  # mixed


def test_a_table_goes_on_from_learned_codes_of_several_rows_a_label_set():
    rng = np.random.default_rng(1)
    labels = np.arange(60) % 3
    table = CodeTable(labels, 10)
    for _ in range(5):
        omega = table.draw(20, rng)
        table.update(omega, outputs(20, 10, rng), 200.0)
    learned = LearnedCodes.of(table)
    assert len(learned.count) > 3
    again = GrowingTable(LabelSets.of(labels), 10, np.arange(60))
    rows = Rows(learned.label_set, unpack(learned.packed, 10), learned.count)
    again.start_from(rows, learned.row_numbers.astype(np.int64), fixed_sets=3)
    assert np.array_equal(again.dense(), learned.dense())
    assert again.rows.count.sum() == 60
