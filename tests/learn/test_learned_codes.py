"""The codes that are kept, against the dense table; codes of new label sets, against eq. (9) written out."""

import numpy as np
import pytest

from adsh import LabelSets
from adsh.errors import InputError
from adsh.hamming.bits import pack, unpack
from adsh.learn import CodeTable, LearnedCodes
from adsh.learn.last_update import LastUpdate
from adsh.learn.learned_codes import NO_SET, NewLabels

from ..reference import paper
from .cases import draw, labelled, outputs


def trained(kind, n=40, bits=9, seed=0, rounds=3, **given):
    rng = np.random.default_rng(seed)
    labels, hot = labelled(kind, n, 4, rng, 0.25)
    table = CodeTable(labels, bits, **given)
    for _ in range(rounds):
        omega = draw(table, 12, rng)
        U = outputs(len(omega), bits, rng)
        table.update(omega, U, 20.0)
    return table, hot, omega, U


def check_counts(learned, n):
    assert len(learned) == n
    assert learned.count.tolist() == np.bincount(learned.row_numbers, minlength=len(learned.packed)).tolist()
    assert learned.row_numbers.dtype == np.uint8
    assert np.array_equal(unpack(learned.codes(), learned.bits), learned.dense())
    assert len(learned.rows) == len(learned.rows.codes) == len(learned.packed)


def test_the_codes_kept_are_those_of_the_table():
    table, hot, *_ = trained("multi-label")
    learned = LearnedCodes.of(table)
    check_counts(learned, 40)
    assert np.array_equal(learned.dense(), table.dense())
    of_each = learned.label_set[learned.row_numbers]
    names = [set(table.label_sets.names_of(int(s))) for s in of_each]
    assert names == [set(np.flatnonzero(row)) for row in hot]


def test_points_without_a_label_take_the_codes_of_the_network():
    table, hot, *_ = trained("some-unlabelled")
    without = hot.sum(axis=1) == 0
    given = pack(np.random.default_rng(1).choice([-1, 1], size=(3, 9)))[np.arange(without.sum()) % 3]
    learned = LearnedCodes.of(table, given)
    check_counts(learned, 40)
    assert without.sum() > 3  # some share a code, and so a row
    assert np.array_equal(learned.codes()[without], given)
    assert np.array_equal(learned.dense()[~without], table.dense()[~without])
    assert ((learned.label_set[learned.row_numbers] == NO_SET) == without).all()
    assert len(learned.rows) == len(table.rows) + 3
    none = LearnedCodes.of(trained("multi-label")[0], given[:0])
    assert (none.label_set != NO_SET).all()


def test_row_numbers_take_two_bytes_from_257_rows_on():
    table = CodeTable(np.repeat([*range(10), -1], [1] * 10 + [250]), 16)
    table.update([0, 1], np.array([[1.0], [-1.0]]) * np.ones(16), 0.0)
    others = np.stack([np.arange(250), np.zeros(250)], axis=1).astype(np.uint8)
    for codes, size in ((others, 2), (others[np.arange(250) // 2], 1)):
        kept = LearnedCodes.of(table, codes)
        assert np.array_equal(kept.codes()[10:], codes)
        assert kept.row_numbers.itemsize == size


def test_the_points_of_a_given_similarity_share_rows_where_their_codes_are_equal():
    rng = np.random.default_rng(2)
    classes = np.arange(300) % 3
    table = CodeTable.from_similarity(np.where(classes[:, None] == classes, 1, -1), 9)
    table.update(np.arange(6), np.sign(rng.normal(size=(3, 9)))[classes[:6]], 0.0)
    learned = LearnedCodes.of(table)
    check_counts(learned, 300)
    assert np.array_equal(learned.dense(), table.dense())
    assert len(learned.rows) == len(np.unique(table.dense(), axis=0)) < 300
    assert (learned.label_set == NO_SET).all()


def test_codes_alone_are_kept_as_they_are():
    codes = pack(np.random.default_rng(0).choice([-1, 1], size=(5, 20)))[[0, 3, 3, 1, 0, 0]]
    learned = LearnedCodes.of_codes(codes, 20)
    check_counts(learned, 6)
    assert np.array_equal(learned.codes(), codes)
    assert len(learned.rows) == 3
    assert learned.bits == 20


def test_a_known_label_set_gets_its_commonest_code():
    table, hot, *_ = trained("single-label", n=60, rounds=6)
    learned = LearnedCodes.of(table)
    new = NewLabels.of(table, learned)
    codes = unpack(new.codes(LabelSets.of([3, 0, 2, 3])), 9)
    dense, classes = table.dense(), hot.argmax(axis=1)
    for got, expected in zip(codes, [3, 0, 2, 3], strict=True):
        rows, often = np.unique(dense[classes == expected], axis=0, return_counts=True)
        assert often[(rows == got).all(axis=1)] == often.max()


@pytest.mark.parametrize("target", [1.0, 0.4])
@pytest.mark.parametrize("separate", [False, True])
def test_a_new_label_set_gets_the_code_that_eq_9_comes_to_rest_at(separate, target):
    rng = np.random.default_rng(4)
    _, hot = labelled("multi-label", 40, 5, rng)
    query_labels, query_hot = labelled("multi-label", 30, 5, rng) if separate else (None, hot)
    hot[:, 3] = hot[:, 4] = hot[:, 3] | hot[:, 4]  # {4} without 3 is new
    table = CodeTable(hot, 12, queries=query_labels)
    table.target = target
    omega = draw(table, 15, rng)
    U = outputs(15, 12, rng)
    table.update(omega, U, 0.0 if separate else 5.0)
    new = NewLabels.of(table, LearnedCodes.of(table))
    query_tags = [[4], [0, 1, 2, 3, 4], [2, 4], [4], [1, 4]]
    query_tags_hot = np.array([[int(tag in tags) for tag in range(5)] for tags in query_tags])
    known = {tuple(row) for row in hot}
    assert all(tuple(row) not in known for row in query_tags_hot[[0, 2, 4]])

    similar = paper.similarity(query_hot[omega], hot) > 0
    r = similar.sum() / (~similar).sum()
    S = target * np.where(paper.similarity(query_hot[omega], query_tags_hot) > 0, 1.0, -r)
    V, before = np.zeros((5, 12)), None
    while before is None or not np.array_equal(V, before):
        before, V = V, paper.update_codes(V, U, S, None, 0.0)
    got = unpack(new.codes(LabelSets.of(query_tags)), 12)
    for row in (0, 2, 3, 4):
        assert got[row].tolist() == V[row].tolist()


def test_a_point_without_a_label_has_no_code_of_its_own():
    table, *_ = trained("single-label")
    new = NewLabels.of(table, LearnedCodes.of(table))
    with pytest.raises(InputError, match="item 2 has no label"):
        new.codes(LabelSets.of([0, 1, None, 1, None]))
    with pytest.raises(InputError, match="item 0 has no label"):
        new.codes(LabelSets.of([None, 1]))
    table_of_sets = LabelSets(np.array([0, 0]), [[1], []])  # an empty set that nobody has
    assert len(new.codes(table_of_sets)) == 2


def test_codes_for_new_labels_need_labels_and_an_update():
    table = CodeTable([0, 1, 0], 8)
    assert NewLabels.of(table, LearnedCodes.of_codes(np.zeros((3, 1), np.uint8), 8)) is None
    given = CodeTable.from_similarity(np.array([[1, -1], [-1, 1]]), 8)
    given.update([0, 1], np.ones((2, 8)), 0.0)
    assert NewLabels.of(given, LearnedCodes.of(given)) is None


def test_the_commonest_code_of_a_label_set_counts_its_points():
    table = LabelSets.table([0, 1, 2, 3], [0, 1, 0], ["a", "b"])  # sets 0 and 2 are the same
    packed = np.array([[1], [2], [3], [2]], dtype=np.uint8)
    learned = LearnedCodes(8, np.array([0, 0, 1, 2]), packed, np.array([5, 3, 1, 4]), np.zeros(13, np.uint8))
    last = LastUpdate(np.eye(8), np.array([0]), np.ones((1, 8)), 0.5, 1)
    assert NewLabels(learned, table, table, last).codes(LabelSets.of(["a", "b"])).tolist() == [[2], [3]]
