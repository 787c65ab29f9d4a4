"""Codes for classes, far apart, and near for similar classes.

For more classes than bits, eq. (9) gives many classes one code. Here codes are chosen for their distances first, and
then assigned to classes:

    separated_codes    K codes, each as far as possible from those before it
    assign_codes       which class gets which: maximises sum_kl A_kl v_k.v_l, A_kl how similar the classes k and l are

A query that falls between two classes is then near to both in Hamming distance.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .similarity import Floats, Indices

Signs = NDArray[np.int8]  # +1/-1

_POOL = 4  # candidates for each code
_SMALLEST_POOL, _ALL_BITS = 4096, 12  # up to so many bits, all codes are candidates
_NEIGHBOURS = 16  # classes that a class is compared with, and codes that it may take
_PASSES = 20  # over the classes, at most
_PARTNERS = 64  # classes that a class may exchange its code with, of those tried in one pass
_LEAST_GAIN = 1e-6  # more than rounding
_SHARPNESS = 10.0  # of the likeness: exp(10 cos)
_BLOCK = 1 << 24  # entries of a K x K matrix in memory at a time


def separated_codes(count: int, bits: int, rng: np.random.Generator) -> Signs:
    """Return (K, c) codes of +1/-1, chosen greedily: each the farthest from those before it among random candidates.

    Beyond 2^c classes codes repeat, each as often as the others.
    """
    if bits <= _ALL_BITS:
        pool = unpacked(np.arange(1 << bits), bits)[rng.permutation(1 << bits)]
    else:
        pool = np.where(rng.integers(2, size=(max(_SMALLEST_POOL, _POOL * count), bits)) == 1, 1, -1)
    candidates = pool.astype(np.float32)
    nearest = np.full(len(candidates), -np.inf, dtype=np.float32)  # the largest inner product with a chosen code
    chosen = np.empty(min(count, len(candidates)), dtype=np.int64)
    at = 0
    for number in range(len(chosen)):
        chosen[number] = at
        np.maximum(nearest, candidates @ candidates[at], out=nearest)
        nearest[at] = np.inf
        at = int(nearest.argmin())
    return np.resize(candidates[chosen], (count, bits)).astype(np.int8)


def unpacked(numbers: Indices, bits: int) -> Signs:
    """Return (n, c) the binary digits of numbers as +1/-1."""
    ones: Signs = (2 * (numbers[:, None] >> np.arange(bits) & 1) - 1).astype(np.int8)
    return ones


def assign_codes(codes: Signs, weights: NDArray[np.float32], rng: np.random.Generator) -> Signs:
    """Return (K, c) the codes in the order of the classes, such that similar classes get near codes.

    A local search: each class in turn exchanges its code with the class for which the sum of A_kl v_k.v_l rises most,
    of all classes or, where there are many, of those whose codes are near those of classes similar to it. An exchange
    costs the same for any number of classes.

    Args:
        codes: (K, c) +1/-1, in any order.
        weights: (K, d) what tells the classes apart: those of a classifier's last layer.
        rng: for the order in which classes are tried.
    """
    count = len(codes)
    if count < 3:
        return codes
    V = codes.astype(np.float32)
    similar, likeness = _similar_classes(weights)  # (K, M) the most similar classes, and how similar
    near = _largest_products(V)[0]  # (K, M) the codes nearest to each code
    code_of, class_of = np.arange(count), np.arange(count)
    idle = 0  # classes since the last exchange
    for k in np.concatenate([rng.permutation(count) for _ in range(_PASSES)]):
        if count <= _PARTNERS:
            partners = np.arange(count)
        else:
            partners = class_of[rng.choice(near[code_of[similar[k]]].ravel(), _PARTNERS)]
        own, theirs = V[code_of[k]], V[code_of[partners]]  # (c,), (J, c)
        around = V[code_of[similar[k]]]  # (M, c)
        pulls = np.where(
            similar[k] == partners[:, None], 0.0, likeness[k]
        )  # (J, M): the pair itself stays as far apart
        gain = (pulls * (theirs @ around.T - around @ own)).sum(axis=1)
        pulls = np.where(similar[partners] == k, 0.0, likeness[partners])
        change = V[code_of[similar[partners]]] @ own - np.einsum("jmc,jc->jm", V[code_of[similar[partners]]], theirs)
        gain += (pulls * change).sum(axis=1)
        best = int(gain.argmax())
        if gain[best] <= _LEAST_GAIN:
            idle += 1
            if idle >= 2 * count:
                break
            continue
        idle, other = 0, partners[best]
        code_of[k], code_of[other] = code_of[other], code_of[k]
        class_of[code_of[k]], class_of[code_of[other]] = k, other
    return codes[code_of]


def _similar_classes(weights: NDArray[np.float32]) -> tuple[Indices, Floats]:
    """Return (K, M) the classes whose weights point most nearly the same way, and exp(10 cos) of each."""
    directions = weights - weights.mean(axis=0)
    directions /= np.maximum(np.linalg.norm(directions, axis=1, keepdims=True), 1e-12)
    similar, cosines = _largest_products(directions)
    return similar, np.exp(_SHARPNESS * cosines.astype(np.float64))


def _largest_products(vectors: NDArray[np.float32]) -> tuple[Indices, NDArray[np.float32]]:
    """Return (K, M) which other vectors have the largest inner products with each, and the products."""
    count = len(vectors)
    most = min(_NEIGHBOURS, count - 1)
    found, products = np.empty((count, most), dtype=np.int64), np.empty((count, most), dtype=np.float32)
    step = max(1, _BLOCK // count)
    for start in range(0, count, step):
        block = vectors[start : start + step] @ vectors.T
        block[np.arange(len(block)), np.arange(start, start + len(block))] = -np.inf
        top = np.argpartition(-block, most - 1, axis=1)[:, :most]
        found[start : start + step], products[start : start + step] = top, np.take_along_axis(block, top, axis=1)
    return found, products
