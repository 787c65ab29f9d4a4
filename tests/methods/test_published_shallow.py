"""Whole trainings of the methods on features against plain transcriptions of their published updates."""

from __future__ import annotations

import numpy as np
import pytest

from adsh.labels import LabelSets
from adsh.methods import create, fasth
from adsh.methods.arrays import signs_of
from adsh.methods.lfh import initial_factors
from adsh.methods.solvers.hinge import fit_hinge
from adsh.methods.solvers.ridge import moments, principal_axes
from adsh.train.callbacks import CallbackList

from ..reference import shallow_methods as reference
from .quality import similarity

POINTS, WIDTH, BITS = 33, 7, 6
ONE_LABEL = np.eye(4, dtype=int)[np.random.default_rng(0).integers(0, 4, POINTS)]
SEVERAL = (np.random.default_rng(1).random((POINTS, 5)) < 0.3).astype(int) | np.eye(5, dtype=int)[[0, 1, 2] * 11]
X = np.random.default_rng(2).standard_normal((POINTS, WIDTH)).astype(np.float32) + ONE_LABEL.argmax(axis=1)[:, None]
both_kinds = pytest.mark.parametrize("hot", [ONE_LABEL, SEVERAL], ids=["one label", "several labels"])


class Recorder:
    """A generator that keeps what it drew, by the name of the distribution."""

    def __init__(self) -> None:
        self._rng, self.drawn = np.random.default_rng(3), dict[str, list[np.ndarray]]()

    def __getattr__(self, name):
        def draw(*args, **options):
            found = getattr(self._rng, name)(*args, **options)
            self.drawn.setdefault(name, []).append(np.array(found))
            return found

        return draw


def learn(method, hot=None):
    """Return the codes that a method learns from X, and what it drew."""
    rng = Recorder()
    method.history_, method._callbacks, method._before = [], CallbackList(lambda _: None), 0.0
    codes = method._learn_codes(X, None if hot is None else LabelSets.of(hot), rng)
    return codes, rng.drawn


def test_itq():
    codes, drawn = learn(create("itq", bits=4, rounds=50))
    orthogonal, upper = np.linalg.qr(drawn["standard_normal"][0])
    centred = X - X.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T.astype(float) @ centred)
    axes = vectors[:, ::-1][:, :4]
    axes = axes * np.sign((axes * principal_axes(X, 4)[1]).sum(axis=0))  # of either sign
    np.testing.assert_array_equal(codes, reference.itq(X, axes, orthogonal * np.sign(np.diag(upper)), 50))


@both_kinds
@pytest.mark.parametrize("name", ["lfh", "lfh_decay"])
def test_lfh(name, hot):
    method = create(name, bits=BITS, rounds=20)
    codes, drawn = learn(method, hot)
    start = initial_factors(X, BITS, np.random.default_rng(3))
    expected = reference.lfh(start, similarity(hot), drawn["choice"][1:], 30.0, 0.0 if name == "lfh" else 0.5)
    np.testing.assert_array_equal(codes, expected)
    assert (codes != signs_of(start)).mean() > 0.1  # it has moved


@both_kinds
def test_sdh(hot):
    method = create("sdh", bits=BITS, anchors=12, hash_weight=0.1)
    codes, drawn = learn(method, hot)
    Phi = reference.kernel(X, X[np.sort(drawn["choice"][0])])
    start = signs_of(drawn["standard_normal"][0]).astype(float)
    expected, P = reference.sdh(Phi, hot, start, 5, 0.1)
    np.testing.assert_array_equal(codes, expected)
    np.testing.assert_allclose(method._kernel.outputs(X), Phi @ P, atol=1e-4)


@both_kinds
def test_cosdish(hot):
    codes, drawn = learn(create("cosdish", bits=BITS), hot)
    start = signs_of(drawn["standard_normal"][0]).astype(float)
    expected = reference.cosdish(similarity(hot), start, [np.sort(omega) for omega in drawn["choice"]], 3)
    np.testing.assert_array_equal(codes, expected)


def standardized():
    mean, scale = moments(X)
    return np.c_[(X - mean) / scale, np.ones(POINTS)].astype(float)


def bit_of(Z, w):
    return np.array([reference.sign(z @ w) for z in Z])


def hinge(Z, bit, weights, start):
    """The weighted squared hinge, as `fit_hinge` minimizes it: tested by itself."""
    return fit_hinge(*(side.astype(np.float32) for side in (Z, bit, weights, start)), 0.01).astype(float)


@both_kinds
def test_lin_lin(hot):
    codes, drawn = learn(create("lin_lin", bits=4, rounds=2, block=25), hot)
    Z, S, draws = standardized(), similarity(hot), iter(drawn["choice"][2:])  # the first two are of the history
    W, R, theta = np.zeros((4, WIDTH + 1)), drawn["standard_normal"][0].T.astype(float) / np.sqrt(WIDTH + 1), 0.0
    for turn in range(2):
        for k in range(4):
            query, database = next(draws), next(draws)
            others = [bit for bit in range(4) if bit != k] if turn else list(range(k))
            U, V = (reference.signs(Z[side] @ w[others].T) for side, w in ((query, W), (database, R)))
            M = reference.gain_matrix(S[np.ix_(query, database)], U @ V.T, theta)
            for _ in range(2):
                W[k] = reference.fit_side(Z[query], M, bit_of(Z[database], R[k]), W[k], hinge)
                R[k] = reference.fit_side(Z[database], M.T, bit_of(Z[query], W[k]), R[k], hinge)
        query, database = next(draws), next(draws)
        U, V = reference.signs(Z[query] @ W.T), reference.signs(Z[database] @ R.T)
        theta = reference.threshold(S[np.ix_(query, database)], U @ V.T, 4, theta)
    np.testing.assert_array_equal(codes, reference.signs(Z @ R.T))


@both_kinds
def test_lin_v(hot):
    """The database's bits are free: v = sign(M'u), point by point."""
    method = create("lin_v", bits=4, rounds=2, block=25)
    codes, drawn = learn(method, hot)
    Z, S, draws = standardized(), similarity(hot), iter(drawn["choice"][1:])
    kinds = LabelSets.of(hot).ids
    order = list(dict.fromkeys(kinds.tolist()))
    start = signs_of(drawn["standard_normal"][0]).astype(float)
    V = np.array([start[order.index(kind)] for kind in kinds.tolist()])
    W, theta = np.zeros((4, WIDTH + 1)), 0.0
    for turn in range(2):
        for k in range(4):
            query = next(draws)
            others = [bit for bit in range(4) if bit != k] if turn else list(range(k))
            U = reference.signs(Z[query] @ W[others].T)
            M = reference.gain_matrix(S[query], U @ V[:, others].T, theta)
            for _ in range(2):
                W[k] = reference.fit_side(Z[query], M, V[:, k], W[k], hinge)
                pull = M.T @ bit_of(Z[query], W[k])
                V[:, k] = [old if abs(x) < 1e-6 else reference.sign(x) for old, x in zip(V[:, k], pull, strict=True)]
        query = next(draws)
        theta = reference.threshold(S[query], reference.signs(Z[query] @ W.T) @ V.T, 4, theta)
    np.testing.assert_array_equal(codes, V)
    np.testing.assert_allclose(method._linear.outputs(X), Z @ W.T, atol=1e-4)


@both_kinds
def test_fasth(hot, monkeypatch):
    """Every cut is the best of all values of its block, by enumeration, given the bits as the trees predict them."""
    cuts = []

    def cut(self, bit, pairs, a):
        after = cut_block(self, bit, pairs, a)
        cuts.append((self.members, after, pairs))
        return after

    cut_block = fasth.Block.cut
    monkeypatch.setattr(fasth.Block, "cut", cut)
    few = np.arange(POINTS) % 4 == 0  # nine points: blocks that can be enumerated
    monkeypatch.setitem(globals(), "X", X[few])
    codes, drawn = learn(create("fasth", bits=4, neighbours=3, hash_function="ridge", penalty=0.5), hot[few])
    blocks = len(drawn["permutation"][0])
    assert len(cuts) == 4 * 2 * blocks
    for number, (members, bit, pairs) in enumerate(cuts):
        ends = np.stack([pairs.i, pairs.j], axis=1)
        np.testing.assert_array_equal(pairs.similar, similarity(hot[few])[pairs.i, pairs.j] > 0)
        found, least = reference.fasth_block(bit, members, ends, pairs.similar, codes[:, : number // (2 * blocks)], 4)
        assert found == pytest.approx(least)
