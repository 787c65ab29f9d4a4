"""The published updates of the methods on features, written out plainly in NumPy loops: the oracle of `methods`.

ITQ       Gong, Lazebnik (2011), section 3: B = sign(V R), and R by orthogonal Procrustes
LFH       Zhang, Zhang, Li, Guo (2014), the stochastic learning of section 3.4
SDH       Shen, Shen, Liu, Tao Shen (2015), the F-, G- and B-steps of section 2, with the constant of their program
COSDISH   Kang, Li, Zhou (2016), with r of the sampled columns and the residual of earlier bits, as in their program
Lin:V     Neyshabur et al. (2013), section 5: bit by bit, the other bits fixed; Lin:Lin the same on both sides
FastH     Lin et al. (2014), eqs. (8) to (12): the loss of a new bit given the earlier ones

S is in full, n x n, 0 and 1. What a method draws at random is given. Float64.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np


def sign(x: float) -> float:
    """+1 for 0, as the codes have it."""
    return 1.0 if x >= 0 else -1.0


def signs(values: np.ndarray) -> np.ndarray:
    return np.array([[sign(x) for x in row] for row in values])


def itq(X: np.ndarray, axes: np.ndarray, R: np.ndarray, rounds: int) -> np.ndarray:
    """Return the codes, from the principal axes and the first rotation."""
    V = (X - X.mean(axis=0)) @ axes
    for _ in range(rounds):
        S, _, S_hat = np.linalg.svd(signs(V @ R).T @ V)  # B'V = S Omega S_hat'
        R = S_hat.T @ S.T
    return signs(V @ R)


def lfh(U: np.ndarray, S: np.ndarray, samples: Sequence[np.ndarray], beta: float, decay: float) -> np.ndarray:
    """Return the codes; `samples` are the columns of each round, and decay 0 takes full steps."""
    for t, omega in enumerate(samples):
        c, moved = U.shape[1], U.copy()
        H = -c / beta * np.eye(c)
        for j in omega:
            H = H - np.outer(U[j], U[j]) / 8
        for i in [i for i in range(len(U)) if i not in omega]:
            gradient = -c / beta * U[i]
            for j in omega:
                a = 1 / (1 + math.exp(-(U[i] @ U[j]) / 2))
                gradient = gradient + (S[i, j] - a) * U[j]
            moved[i] = U[i] - np.linalg.inv(H) @ gradient / (1 + decay * t)
        U = moved
    return signs(U)


def kernel(X: np.ndarray, anchors: np.ndarray) -> np.ndarray:
    """Radial basis functions of the median distance, and a constant."""
    distances = np.array([[math.dist(x, a) for a in anchors] for x in X])
    width = np.median(distances[distances > 1e-6])
    return np.c_[np.exp(-(distances**2) / (2 * width**2)), np.ones(len(X))]


def ridge(A: np.ndarray, B: np.ndarray, penalty: float) -> np.ndarray:
    return np.linalg.inv(A.T @ A + penalty * np.eye(A.shape[1])) @ A.T @ B


def sdh(Phi: np.ndarray, Y: np.ndarray, B: np.ndarray, rounds: int, nu: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes and P, with lambda 1 and delta .01; ten sweeps of discrete cyclic coordinate descent a round."""
    for _ in range(rounds):
        W = ridge(B, Y, 1.0)
        Q = Y @ W.T + nu * Phi @ ridge(Phi, B, 0.01)
        B = B.copy()
        for _ in range(10):
            for k in range(B.shape[1]):
                others = [bit for bit in range(B.shape[1]) if bit != k]
                for i in range(len(B)):
                    B[i, k] = sign(Q[i, k] - B[i, others] @ W[others] @ W[k])
    return B, ridge(Phi, B, 0.01)


def binary_quadratic(Q: np.ndarray, p: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return signs b of large b'Q b + p'b: the better of what single flips reach from `start` and from a clustering.

    A sign fixed at +1 makes p a row of Q; the clustering is that of the best centre: the signs of its row.
    """
    m = len(p) + 1
    A = np.block([[np.zeros((1, 1)), p[None] / 2], [p[:, None] / 2, Q]])
    A[range(m), range(m)] = 0

    def value(b: np.ndarray) -> float:
        return b @ A @ b

    clusters = [np.array([1.0 if i == j else sign(A[j, i]) for i in range(m)]) for j in range(m)]

    def flipped(b: np.ndarray) -> np.ndarray:
        while True:
            others = [np.where(np.arange(m) == i, -b, b) for i in range(m)]
            best = max(others, key=value)
            if value(best) <= value(b) + 1e-9 * np.abs(A).sum():
                return b
            b = best

    one, other = flipped(np.r_[1.0, start]), flipped(max(clusters, key=value))
    found = other if value(other) > value(one) + 1e-9 * np.abs(A).sum() else one
    return found[1:] * found[0]


def cosdish(S: np.ndarray, B: np.ndarray, samples: Sequence[np.ndarray], alternations: int) -> np.ndarray:
    """Return the codes of the round with the least |c S - B B'|^2, where S has -r of all pairs."""
    n, c = B.shape
    full = np.where(S > 0, 1, -S.sum() / (n * n - S.sum()))
    best, least = B, ((c * full - B @ B.T) ** 2).sum()
    for omega in samples:
        columns = S[:, omega]
        r = columns.sum() / (columns.size - columns.sum())
        columns = np.where(columns > 0, 1, -r)
        gamma = [i for i in range(n) if i not in omega]
        for _ in range(alternations):
            new = B.copy()
            for k in range(c):
                rest = c * columns.copy()  # what the bits before k left
                for earlier in range(k):
                    rest[omega] -= np.outer(new[omega, earlier], new[omega, earlier])
                    rest[gamma] -= np.outer(B[gamma, earlier], new[omega, earlier])
                new[omega, k] = binary_quadratic(rest[omega], rest[gamma].T @ B[gamma, k], B[omega, k])
            for i in gamma:
                for k in range(c):
                    pull = columns[i] @ new[omega, k]
                    new[i, k] = B[i, k] if abs(pull) < 1e-9 else sign(pull)
            B = new
        objective = ((c * full - B @ B.T) ** 2).sum()
        if objective < least - 1e-9:
            best, least = B, objective
    return best


def pair_loss(s: float, y: float, theta: float) -> float:
    """Of Lin:Lin and Lin:V: .7 for similar pairs and .3 for others, and the root of the logistic loss."""
    return (0.7 if s > 0 else 0.3) * math.sqrt(math.log(1 + math.exp(-s * (y - theta))))


def gain_matrix(S: np.ndarray, Y: np.ndarray, theta: float) -> np.ndarray:
    """M_ij = loss(S_ij, Y_ij - 1) - loss(S_ij, Y_ij + 1), with S of 0 and 1, Y the inner products of the other bits."""
    return np.array([
        [pair_loss(2 * s - 1, y - 1, theta) - pair_loss(2 * s - 1, y + 1, theta) for s, y in zip(*rows, strict=True)]
        for rows in zip(S, Y, strict=True)
    ])  # fmt: skip


Fit = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # points, bit, weights, start -> w


def fit_side(Z: np.ndarray, M: np.ndarray, bit: np.ndarray, w: np.ndarray, fit: Fit) -> np.ndarray:
    """Predict sign(M v) with weights |M v| by a linear function; keep the old one where that agrees better."""
    pull = M @ bit
    new = fit(Z, np.array([sign(x) for x in pull]), np.abs(pull), w)
    agreement = [sum(sign(z @ side) * x for z, x in zip(Z, pull, strict=True)) for side in (new, w)]
    return new if agreement[0] >= agreement[1] else w


def threshold(S: np.ndarray, Y: np.ndarray, bits: int, theta: float) -> float:
    """The theta of least loss among the current one and the multiples of 1/2 from -c to c."""
    choices = [theta, *(k / 2 for k in range(-2 * bits, 2 * bits + 1))]
    losses = [
        sum(pair_loss(2 * s - 1, y, choice) for s, y in zip(S.ravel(), Y.ravel(), strict=True)) for choice in choices
    ]
    return choices[int(np.argmin(np.round(losses, 9)))]


def fasth_loss(similar: bool, distance: int, bits: int) -> float:
    """The squared hinge on the Hamming distance, with a margin of c / 2."""
    return distance**2 if similar else max(0.0, bits / 2 - distance) ** 2


def fasth_block(
    bit: np.ndarray, members: np.ndarray, pairs: np.ndarray, similar: np.ndarray, before: np.ndarray, bits: int
) -> tuple[float, float]:
    """Return the loss of all pairs with a new bit, and the least over all values of it among the members.

    Args:
        bit: (n,) the new bit.
        members: The points of the block.
        pairs: (p, 2) the sampled pairs.
        similar: (p,) whether each is similar.
        before: (n, k) the bits before it.
        bits: The code length.
    """
    distances = [int((before[i] != before[j]).sum()) for i, j in pairs]

    def total(values: np.ndarray) -> float:
        return sum(
            fasth_loss(s, d + int(values[i] != values[j]), bits)
            for (i, j), s, d in zip(pairs, similar, distances, strict=True)
        )

    least = math.inf
    for choice in itertools.product((-1, 1), repeat=len(members)):
        other = bit.copy()
        other[members] = choice
        least = min(least, total(other))
    return total(bit), least
