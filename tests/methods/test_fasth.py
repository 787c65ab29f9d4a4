from __future__ import annotations

import builtins

import numpy as np
import pytest

from adsh.errors import InputError, MissingExtraError
from adsh.labels import LabelSets
from adsh.methods import create
from adsh.methods.fasth import Block, Pairs, margin_loss, members_by_label
from adsh.methods.solvers.graph_cut import minimize_energy

from .quality import all_signs, mean_average_precision, similarity


def energy(signs, h, i, j, a):
    """E(b)."""
    return int(a[signs[i] != signs[j]].sum() - h[signs > 0].sum())


def cost(bit, pairs, a) -> int:
    """What the bit loses over all pairs."""
    return int(a[bit[pairs.i] != bit[pairs.j]].sum())


def a_case(multi: bool, seed: int):
    """Nine points with labels, all their pairs, and couplings at random distances of 6-bit codes so far."""
    rng = np.random.default_rng(seed)
    hot = np.eye(3, dtype=int)[np.arange(9) % 3]
    if multi:
        hot[rng.integers(9, size=3), rng.integers(3, size=3)] = 1
    labels = LabelSets.of(hot)
    i, j = np.triu_indices(9, 1)
    pairs = Pairs(i, j, similarity(hot)[i, j] > 0)
    values, distance = margin_loss(6), rng.integers(0, 6, len(i))
    kind = pairs.similar.astype(int)
    return labels, pairs, values[kind, distance + 1] - values[kind, distance], rng


@pytest.mark.parametrize("seed", range(5))
def test_a_cut_is_the_least_of_all_signs(seed):
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(7, 1)
    h, a = rng.integers(-9, 10, 7), rng.integers(0, 4, len(i))
    best = min(energy(signs, h, i, j, a) for signs in all_signs(7))
    assert energy(minimize_energy(h, i, j, a), h, i, j, a) == best


def test_capacities_beyond_32_bits_are_scaled():
    h, one = np.array([2**40, -(2**39), 3]), np.array([2**41])
    np.testing.assert_array_equal(minimize_energy(h, np.array([0]), np.array([1]), one)[:2], [1, 1])


@pytest.mark.parametrize("multi", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_each_block_s_cut_with_the_others_fixed_is_the_best_of_all(multi, seed):
    labels, pairs, a, rng = a_case(multi, seed)
    bit = np.where(rng.random(9) < 0.5, 1, -1).astype(np.int8)
    for members in members_by_label(labels):
        block = Block.of(members, pairs)
        after = block.cut(bit, pairs, a)
        tried = []
        for signs in all_signs(len(members)):
            other = bit.copy()
            other[members] = signs
            tried.append(cost(other, pairs, a))
        assert cost(after, pairs, a) == min(tried) <= cost(bit, pairs, a)
        rest = np.setdiff1d(np.arange(9), members)
        np.testing.assert_array_equal(after[rest], bit[rest])
        bit = after


def test_only_similar_pairs_are_inside_a_block_and_none_of_them_gains_by_parting():
    labels, pairs, a, _ = a_case(True, 0)
    for members in members_by_label(labels):
        inside = Block.of(members, pairs).inside
        assert pairs.similar[inside].all()
        assert (a[inside] > 0).all()
    assert (a[~pairs.similar] <= 0).all()


def test_the_loss_is_a_squared_hinge_with_a_margin_of_half_the_code():
    d = np.arange(7)
    np.testing.assert_array_equal(margin_loss(5) / 4, [np.maximum(2.5 - d, 0) ** 2, d**2])


def test_pairs_are_drawn_by_label():
    hot = np.eye(4, dtype=int)[np.arange(400) % 4]
    hot[::7, 0] = 1
    pairs = Pairs.draw(LabelSets.of(hot), 10, np.random.default_rng(0))
    truth = similarity(hot) > 0
    np.testing.assert_array_equal(pairs.similar, truth[pairs.i, pairs.j])
    assert (pairs.i < pairs.j).all()
    assert len(np.unique(pairs.i * 400 + pairs.j)) == len(pairs.i) <= 400 * 20
    for kind in (True, False):
        of_each = np.bincount(np.concatenate([pairs.i, pairs.j])[np.tile(pairs.similar == kind, 2)], minlength=400)
        assert of_each.min() >= 8  # each draws ten, itself and some twice among them


def test_digits(digits):
    method = create("fasth", bits=12).fit(digits.database, digits.labels)
    assert mean_average_precision(method, digits) >= 0.6
    values = [record["loss"] for record in method.history_]
    assert len(values) == 13
    assert values[-1] < 0.1 * values[0]


def test_the_next_bit_mends_what_the_trees_predict_wrong(blobs):
    """With stumps that err, later bits see the errors: the loss of the predicted codes still falls."""
    method = create("fasth", bits=8, trees=3, depth=1).fit(*blobs)
    values = [record["loss"] for record in method.history_]
    assert values[-1] < values[len(values) // 2] < values[0]


@pytest.mark.parametrize(("option", "value"), [("neighbours", 0), ("sweeps", 0), ("trees", 0), ("hash_function", "x")])
def test_wrong_options_are_refused(blobs, option, value):
    with pytest.raises(InputError, match=f"{option}={value!r}"):
        create("fasth", bits=4, **{option: value}).fit(*blobs)


@pytest.mark.parametrize("missing", ["scipy", "lightgbm"])
def test_a_missing_extra_is_answered_with_the_command_that_installs_it(blobs, monkeypatch, missing):
    real = builtins.__import__

    def without(name, *rest, **more):
        if name.split(".")[0] == missing:
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match=r"pip install 'adsh\[baselines\]'"):
        create("fasth", bits=4).fit(*blobs)
