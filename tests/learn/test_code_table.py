"""The table of distinct rows against the dense algorithm of the paper, bit for bit."""

import numpy as np
import pytest
import scipy.sparse
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from adsh import LabelSets
from adsh.errors import InputError
from adsh.learn import CodeTable

from ..reference import paper
from .cases import KINDS, draw, labelled, outputs


def follow(table, hot, *, m, gamma, rng, outer=20, epochs=1, signed=False, saturated=False):
    """Runs the table and the reference side by side, comparing V after every update."""
    part = np.flatnonzero(hot.sum(axis=1))  # unlabelled points take no part
    position = np.cumsum(hot.sum(axis=1) > 0) - 1
    V = np.zeros((len(part), table.bits))
    for w in range(outer):
        omega = draw(table, m, rng)
        S = table.target * paper.weighted(paper.similarity(hot[omega], hot[part]))
        for _ in range(epochs):
            np.testing.assert_allclose(table.gram(), V.T @ V, rtol=1e-12)
            np.testing.assert_allclose(table.similarity_sums(omega), S @ V, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(table.similarity_squares(omega), (S**2).sum(axis=1), rtol=1e-12)
            assert np.array_equal(table.codes_of(omega), V[position[omega]])
            U = outputs(len(omega), table.bits, rng, saturated)
            J = table.update(omega, U, gamma, signed=signed)
            V = paper.update_codes(V, U, S, position[omega], gamma, signed=signed)
            assert np.array_equal(table.dense()[part], V), f"differs in outer iteration {w + 1}"
    np.testing.assert_allclose(J, paper.objective(U, V, S, position[omega], gamma), rtol=1e-9)
    without = np.setdiff1d(np.arange(len(hot)), part)
    assert not table.dense()[without].any()
    assert table.rows.count.sum() == len(part)


@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_grouped_equals_dense_over_20_outer_iterations(kind, epochs):
    rng = np.random.default_rng(KINDS.index(kind))
    labels, hot = labelled(kind, 90, 5, rng)
    follow(CodeTable(labels, 16), hot, m=25, gamma=200.0, rng=rng, epochs=epochs)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_softer_target_is_a_smaller_S(kind, signed):
    rng = np.random.default_rng(5)
    labels, hot = labelled(kind, 70, 5, rng)
    table = CodeTable(labels, 20)
    table.target = 0.7
    follow(table, hot, m=25, gamma=200.0, rng=rng, signed=signed)


@given(
    kind=st.sampled_from(KINDS),
    n=st.integers(3, 60),
    bits=st.integers(1, 40),
    tags=st.integers(2, 8),
    density=st.floats(0.05, 0.8),
    share=st.floats(0.05, 1.0),
    gamma=st.sampled_from([0.0, 0.01, 200.0, 1e4]),
    signed=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=80)
def test_grouped_equals_dense_for_any_size_and_density(kind, n, bits, tags, density, share, gamma, signed, seed):
    rng = np.random.default_rng(seed)
    labels, hot = labelled(kind, n, tags, rng, density)
    m = max(1, round(share * n))
    follow(CodeTable(labels, bits), hot, m=m, gamma=gamma, rng=rng, outer=4, signed=signed)


@pytest.mark.parametrize("kind", KINDS)
def test_grouped_equals_dense_with_saturated_outputs(kind):
    """r makes S sum to zero, so the argument of the sign is 0 up to rounding again and again."""
    rng = np.random.default_rng(7)
    labels, hot = labelled(kind, 60, 4, rng)
    follow(CodeTable(labels, 12), hot, m=20, gamma=0.0, rng=rng, saturated=True)


@pytest.mark.parametrize("single", [False, True])
def test_unlabelled_points_may_be_taken_as_similar_to_nothing(single):
    rng = np.random.default_rng(3)
    labels, hot = labelled("some-unlabelled", 50, 4, rng, density=0.2)
    if single:
        labels = rng.integers(-1, 4, 50)
        hot = np.eye(5, dtype=int)[labels, :4]  # -1 is none of them
    assert (hot.sum(axis=1) == 0).any()
    table = CodeTable(labels, 10, unlabelled="dissimilar")
    V = np.zeros((50, 10))
    for _ in range(20):
        omega, U = draw(table, 15, rng), outputs(15, 10, rng)
        S = paper.weighted(paper.similarity(hot[omega], hot))
        table.update(omega, U, 200.0)
        V = paper.update_codes(V, U, S, omega, 200.0)
        assert np.array_equal(table.dense(), V)


def test_separate_queries_follow_eq_3():
    rng = np.random.default_rng(4)
    labels, hot = labelled("multi-label", 70, 5, rng)
    query_labels, query_hot = labelled("multi-label", 40, 5, rng)
    table = CodeTable(labels, 12, queries=query_labels)
    V = np.zeros((70, 12))
    for _ in range(20):
        omega, U = draw(table, 15, rng), outputs(15, 12, rng)
        S = paper.weighted(paper.similarity(query_hot[omega], hot))
        np.testing.assert_allclose(table.similarity_sums(omega), S @ V, rtol=1e-9, atol=1e-9)
        J = table.update(omega, U, 0.0)
        V = paper.update_codes(V, U, S, None, 0.0)
        assert np.array_equal(table.dense(), V)
    np.testing.assert_allclose(J, paper.objective(U, V, S, None, 0.0), rtol=1e-9)
    with pytest.raises(InputError, match="no gamma term"):
        table.update(omega, U, 200.0)


@pytest.mark.parametrize("form", ["dense", "sparse", "tensor"])
@pytest.mark.parametrize("separate", [False, True])
def test_a_given_similarity_follows_the_dense_algorithm(form, separate, monkeypatch):
    monkeypatch.setattr("adsh.learn.similarity._BLOCK", 200)  # several blocks of rows
    rng = np.random.default_rng(5)
    _, hot = labelled("multi-label", 45, 5, rng)
    _, query_hot = labelled("multi-label", 30, 5, rng)
    whole = paper.similarity(query_hot if separate else hot, hot)
    forms = {
        "dense": whole.astype(np.int8),
        "sparse": scipy.sparse.coo_array(whole > 0).astype(np.int8),
        "tensor": torch.tensor(whole, requires_grad=True),
    }
    table = CodeTable.from_similarity(forms[form], 9, separate_queries=separate)
    assert table.rows.count.dtype == np.int64
    V, gamma = np.zeros((45, 9)), 0.0 if separate else 50.0
    for _ in range(20):
        omega, U = draw(table, 12, rng), outputs(12, 9, rng)
        S = paper.weighted(whole[omega])
        np.testing.assert_allclose(table.similarity_sums(omega), S @ V, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(table.similarity_squares(omega), (S**2).sum(axis=1), rtol=1e-12)
        J = table.update(omega, U, gamma)
        V = paper.update_codes(V, U, S, None if separate else omega, gamma)
        assert np.array_equal(table.dense(), V)
    np.testing.assert_allclose(J, paper.objective(U, V, S, None if separate else omega, gamma), rtol=1e-9)


@given(
    kind=st.sampled_from(KINDS[:3]),
    n=st.integers(3, 40),
    bits=st.integers(1, 24),
    gamma=st.sampled_from([0.0, 1.0, 200.0]),
    saturated=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_sweep_from_any_codes_never_raises_the_objective(kind, n, bits, gamma, saturated, seed):
    rng = np.random.default_rng(seed)
    labels, hot = labelled(kind, n, 4, rng)
    V = rng.choice([-1, 1], size=(n, bits))
    table = CodeTable(labels, bits, start=V)
    assert np.array_equal(table.dense(), V)
    omega = draw(table, max(1, n // 3), rng)
    S = paper.weighted(paper.similarity(hot[omega], hot))
    U = outputs(len(omega), bits, rng, saturated)
    before = paper.objective(U, V, S, omega, gamma)
    table.update(omega, U, gamma)
    after = paper.objective(U, table.dense(), S, omega, gamma)
    assert after <= before * (1 + 1e-12) + 1e-9


def test_rows_outside_the_sample_stay_merged_and_memory_does_not_grow_with_n():
    rng = np.random.default_rng(0)
    labels = (np.arange(20_000) % 10).astype(np.uint8)
    table = CodeTable(labels, 24)
    assert len(table.rows) == 10
    centres = rng.choice([-1.0, 1.0], size=(10, 24))
    for w in range(5):
        omega = draw(table, 100, rng)
        table.update(omega, np.tanh(2 * centres[labels[omega]] + rng.normal(size=(100, 24))), 200.0)
        assert len(table.rows) <= 10 + 100 * (w + 1)
    assert table.rows.count.sum() == 20_000
    codes = table.dense()
    assert len(np.unique(np.column_stack([labels, codes]), axis=0)) == len(table.rows)
    kept = {**vars(table), **vars(table._rows)}
    own = {name: value.nbytes for name, value in kept.items() if isinstance(value, np.ndarray)}
    assert sum(size for name, size in own.items() if name not in ("ids", "_query_ids")) < 100_000


@pytest.mark.parametrize(("labelled_share", "m"), [(1.0, 50), (0.5, 50), (0.5, 480), (0.01, 8), (0.5, 1)])
def test_omega_is_drawn_without_replacement_from_the_labelled_alone(labelled_share, m):
    rng = np.random.default_rng(0)
    labels = np.where(rng.random(1000) < labelled_share, np.arange(1000) % 2, -1)
    labels[:2] = 0, 1
    table = CodeTable(labels, 8)
    assert table.num_sampleable == (labels >= 0).sum()
    m = min(m, table.num_sampleable)
    seen = np.zeros(1000)
    for _ in range(40):
        omega = table.draw(m, rng)
        assert len(np.unique(omega)) == len(omega) == m
        assert (labels[omega] >= 0).all()
        seen[omega] += 1
    mean, expected = seen[labels >= 0].mean(), 40 * m / table.num_sampleable
    assert mean == pytest.approx(expected)
    assert seen[labels >= 0].std() < 2 * np.sqrt(expected) + 1e-9  # no point is favoured
    with pytest.raises(InputError, match="points can be sampled"):
        table.draw(table.num_sampleable + 1, rng)


def test_many_label_sets_go_through_blocks_with_the_same_result(monkeypatch):
    rng = np.random.default_rng(1)
    labels, hot = labelled("multi-label", 80, 6, rng)
    monkeypatch.setattr("adsh.learn.similarity._BLOCK", 50)  # A is never held whole
    table = CodeTable(labels, 8)
    follow(table, hot, m=20, gamma=10.0, rng=rng, outer=5)
    assert table._similarity._cached is None


def test_label_sets_by_id_equal_their_multi_hot_labels():
    rng = np.random.default_rng(2)
    sets = np.array([[1, 0, 0], [0, 1, 1], [0, 0, 1], [1, 1, 0]])  # the last is never used
    ids = rng.integers(0, 3, 60).astype(np.uint16)
    by_id, plain = CodeTable(LabelSets(ids, sets), 8), CodeTable(sets[ids], 8)
    for _ in range(5):
        omega, U = rng.choice(60, 12, replace=False), outputs(12, 8, rng)
        assert by_id.update(omega, U, 5.0) == pytest.approx(plain.update(omega, U, 5.0))
        assert np.array_equal(by_id.dense(), plain.dense())
    assert len(by_id.rows) == len(plain.rows)


def test_a_sampled_point_whose_argument_gamma_makes_zero_keeps_its_bit_where_its_row_does_not():
    """One bit: Q of its class is 10, and 2 gamma u_j is 10 as well."""
    labels, omega = np.repeat([0, 1], 5), np.array([0, 1, 2, 5, 6, 7])
    U = np.array([[1.0], [-1.0], [-1.0], [1.0], [1.0], [-1.0]])
    S = paper.weighted(np.where(labels[omega][:, None] == labels, 1.0, -1.0))
    Q = -2 * S.T @ U
    gamma = Q[0, 0] / 2
    assert gamma > 0
    start = np.ones((10, 1), dtype=int)
    table = CodeTable(labels, 1, start=start)
    table.update(omega, U, gamma)
    assert np.array_equal(table.dense(), paper.update_codes(start, U, S, omega, gamma))
    assert table.dense()[:5, 0].tolist() == [1, -1, -1, -1, -1]


def test_a_sample_similar_to_everything_has_a_ratio_of_zero():
    table = CodeTable([["a", "b"], ["a"], ["b"]], 4)
    U = outputs(1, 4, np.random.default_rng(0))
    J = table.update([0], U, 1.0)
    assert table.last_update.ratio == 0
    assert np.array_equal(table.dense(), paper.update_codes(np.zeros((3, 4)), U, np.ones((1, 3)), np.array([0]), 1.0))
    np.testing.assert_allclose(J, paper.objective(U, table.dense(), np.ones((1, 3)), [0], 1.0), rtol=1e-9)


def test_the_sign_of_an_output_of_zero_is_plus_one():
    rng = np.random.default_rng(13)
    labels, hot = labelled("single-label", 30, 3, rng)
    table, V = CodeTable(labels, 6), np.zeros((30, 6))
    for _ in range(4):
        omega, U = draw(table, 8, rng), np.round(outputs(8, 6, rng))
        assert (U == 0).any()
        table.update(omega, U, 1.0, signed=True)
        V = paper.update_codes(V, U, paper.weighted(paper.similarity(hot[omega], hot)), omega, 1.0, signed=True)
        assert np.array_equal(table.dense(), V)


def test_few_labelled_points_are_found_in_all_blocks(monkeypatch):
    monkeypatch.setattr("adsh.learn.code_table._BLOCK", 100)
    labels = np.full(1000, -1)
    labels[[3, 250, 251, 999]] = 0, 1, 0, 1
    table = CodeTable(labels, 8)
    assert sorted(table.draw(4, np.random.default_rng(0)).tolist()) == [3, 250, 251, 999]


def test_codes_are_never_zero_once_updated():
    table = CodeTable([0, 1, 0, 1], 6)
    assert not table.dense().any()
    assert table.rows.codes.dtype == np.int8
    table.update([0, 1], np.zeros((2, 6)), 0.0)  # every argument of the sign is 0
    assert (table.dense() == 1).all()


@pytest.mark.parametrize(
    ("omega", "shape", "said"),
    [
        ([0, 0], (2, 4), "twice"),
        ([0, 9], (2, 4), "omega holds 9, but there are 4"),
        ([0, 4], (2, 4), "omega holds 4, but there are 4"),
        ([-1, 2], (2, 4), "omega holds -1"),
        ([], (0, 4), "indices"),
        ([0, 1], (2, 5), r"\(2, 5\).*\(2, 4\)"),
        ([3], (1, 4), "without a label"),
    ],
)
def test_a_sample_that_cannot_be_used_is_refused(omega, shape, said):
    table = CodeTable([0, 1, 0, -1], 4)
    with pytest.raises(InputError, match=said):
        table.update(np.array(omega, dtype=int), np.zeros(shape), 1.0)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ([3, 3, 3], "no dissimilar pair"),
        ([1, -1, 1], "no dissimilar pair"),
        ([["a", "b"], ["b", "c"], ["a", "c"]], "no dissimilar pair"),
        ([-1, -1], "no point has a label"),
    ],
)
def test_labels_with_nothing_to_learn_from_are_refused(labels, said):
    with pytest.raises(InputError, match=said):
        CodeTable(labels, 8)


def test_queries_may_be_of_one_class_or_of_classes_the_database_lacks_but_not_all_without_a_label():
    rng = np.random.default_rng(12)
    labels, query_labels = np.arange(12) % 3, np.array([0, 0, 7, 0])
    for queries in (query_labels[:2], query_labels):
        table, m = CodeTable(labels, 6, queries=queries), len(queries)
        V, U = np.zeros((12, 6)), outputs(m, 6, rng)
        S = paper.weighted(np.where(queries[:, None] == labels, 1.0, -1.0))
        J = table.update(np.arange(m), U, 0.0)
        V = paper.update_codes(V, U, S, None, 0.0)
        assert np.array_equal(table.dense(), V)
        np.testing.assert_allclose(J, paper.objective(U, V, S, None, 0.0), rtol=1e-9)
    with pytest.raises(InputError, match="no point has a label"):
        CodeTable(labels, 6, queries=[-1, -1])


@pytest.mark.parametrize(("classes", "dtype"), [(255, np.uint8), (256, np.uint16)])
def test_row_numbers_have_a_number_for_points_without_a_row(classes, dtype):
    table = CodeTable(np.arange(-1, classes), 4)
    table.update([1, 2], np.ones((2, 4)), 0.0)
    assert table.row_numbers().dtype == dtype
    assert table.row_numbers()[0] == len(table.rows) == classes
    assert table.dense().dtype == np.int8
    assert table.dense()[0].tolist() == [0] * 4
    assert table.dense()[1:].all()


@pytest.mark.parametrize(
    ("S", "said"),
    [
        (np.ones((3, 4)), "3 x 4: without separate queries it is n x n"),
        (np.array([[1, 0], [0, 1]]), "holds 0.*2 \\* S - 1"),
        (np.array([[1.0, np.nan], [1, 1]]), "holds nan"),
        (np.ones((3, 3)), "every pair of the similarity matrix is similar"),
        (-np.ones((3, 3)), "every pair of the similarity matrix is dissimilar"),
        (scipy.sparse.csr_array(np.array([[1, -1], [-1, 1]])), "stores -1"),
        (scipy.sparse.csr_array(np.array([[1, 3], [0, 1]])), "stores 3"),
        (np.ones(4), "shape"),
    ],
)
def test_a_similarity_matrix_that_cannot_be_used_is_refused(S, said):
    with pytest.raises(InputError, match=said):
        CodeTable.from_similarity(S, 8)


def test_queries_that_share_no_label_with_the_database_are_refused():
    with pytest.raises(InputError, match="no query shares a label.*use the same label names"):
        CodeTable([0, 1], 8, queries=[10, 11])
    with pytest.raises(InputError, match="some labels are int .0. and others str .'a'."):
        CodeTable(["a", "b"], 8, queries=[0, 1])


def test_entries_stored_in_parts_are_added_up_and_the_pairs_of_all_blocks_counted(monkeypatch):
    monkeypatch.setattr("adsh.learn.similarity._BLOCK", 4)  # two rows
    halves = scipy.sparse.csr_array((np.full(4, 0.5), [0, 0, 1, 1], [0, 2, 4]), shape=(2, 2))
    assert CodeTable.from_similarity(halves, 8)._similarity.similar_pairs == 2
    assert CodeTable.from_similarity(np.array([[1, -1], [1, 1]]), 8)._similarity.similar_pairs == 3
    equal_last_block = np.array([[1, -1, 1, 1], [1, 1, 1, 1], [-1, -1, -1, -1]])
    assert CodeTable.from_similarity(equal_last_block, 8, separate_queries=True).points == 4


def test_codes_to_start_from_are_for_labelled_points_alone_and_checked():
    rng = np.random.default_rng(11)
    labels, start = [2, -1, 0, 1, -1, 0], rng.choice([-1, 1], size=(6, 8))
    table = CodeTable(labels, 8, start=start)
    assert np.array_equal(table.dense(), np.where(np.array(labels)[:, None] < 0, 0, start))
    assert table.rows.count.dtype == np.int64
    for wrong in (start[:5], start[:, :7], np.where(start > 0, 0, start)):
        with pytest.raises(InputError, match=r"start has shape.*give \(6, 8\) codes of \+1 and -1"):
            CodeTable(labels, 8, start=wrong)


def test_a_given_sparse_matrix_is_left_as_it_was():
    S = scipy.sparse.csr_array((np.ones(3), [1, 0, 1], [0, 2, 3]), shape=(2, 2))
    S.has_canonical_format = False
    CodeTable.from_similarity(S, 8)
    assert S.indices.tolist() == [1, 0, 1]


def test_a_message_names_three_labels_and_says_where_there_are_more():
    with pytest.raises(InputError, match=r"\(labels: 10, 11, 12; in the database, labels: 0, 1, 2, …\)"):
        CodeTable([0, 1, 2, 3], 8, queries=[10, 11, 12])
