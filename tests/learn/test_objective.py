"""The Gram form against the paper's double sum."""

import numpy as np
import pytest
import torch

from adsh.learn import CodeTable
from adsh.learn.objective import ObjectiveTerms, gradient, loss

from ..reference import paper
from .cases import draw, labelled, outputs


def double_sum(u, V, S, codes, gamma, block=1_000_000):
    """J by its definition, pair by pair, and its gradient by autograd; V in blocks so that n may be large."""
    c, value = V.shape[1], 0.0
    for start in range(0, len(V), block):
        v, s = V[start : start + block].to(u.dtype), S[:, start : start + block].to(u.dtype)
        J = ((u @ v.T - c * s) ** 2).sum()
        J.backward()
        value += float(J.detach())
    if codes is not None:
        J = gamma * ((codes - u) ** 2).sum()
        J.backward()
        value += float(J.detach())
    return value, u.grad


def relative(got, expected):
    return float((got.double() - expected).norm() / expected.norm())


@pytest.mark.parametrize("separate", [False, True])
def test_loss_and_gradient_equal_the_double_sum_in_float64(separate):
    rng = np.random.default_rng(0)
    labels, hot = labelled("multi-label", 120, 6, rng)
    query_labels, query_hot = labelled("multi-label", 50, 6, rng) if separate else (None, hot)
    gamma = 0.0 if separate else 200.0
    table = CodeTable(labels, 24, queries=query_labels)
    omega = draw(table, 30, rng)
    table.update(omega, outputs(30, 24, rng), gamma)
    U = outputs(30, 24, rng)
    S = paper.weighted(paper.similarity(query_hot[omega], hot))
    V = torch.tensor(table.dense(), dtype=torch.float64)

    terms = ObjectiveTerms.of(table, omega, gamma, dtype=torch.float64)
    u = torch.tensor(U, requires_grad=True)
    codes = None if separate else V[omega]
    value, expected = double_sum(u, V, torch.tensor(S), codes, gamma)
    assert value == pytest.approx(paper.objective(U, table.dense(), S, None if separate else omega, gamma), rel=1e-9)
    scale = len(U) * table.points
    assert float(loss(torch.tensor(U), terms)) * scale == pytest.approx(value, rel=1e-9)
    assert relative(gradient(torch.tensor(U), terms) * scale, expected) < 1e-9

    free = torch.tensor(U, requires_grad=True)
    loss(free, terms).backward()
    assert relative(free.grad * scale, expected) < 1e-9


@pytest.mark.parametrize("n", [2_000_000, pytest.param(10_000_000, marks=pytest.mark.slow)])
def test_the_gradient_in_float32_holds_for_millions_of_points(n):
    rng = np.random.default_rng(1)
    bits, m = 12, 6
    labels = rng.integers(0, 10, n).astype(np.uint8)
    table = CodeTable(labels, bits)
    centres = rng.choice([-1.0, 1.0], size=(10, bits))
    sample = rng.choice(n, 2000, replace=False)
    table.update(sample, np.tanh(centres[labels[sample]] + rng.normal(size=(2000, bits))), 200.0)

    omega = rng.choice(n, m, replace=False)
    U = torch.tensor(outputs(m, bits, rng), dtype=torch.float32)
    got = gradient(U, ObjectiveTerms.of(table, omega, 200.0)) * m * float(n)

    similar = torch.tensor(labels[omega][:, None] == labels)
    r = float(similar.sum()) / float((~similar).sum())
    S = torch.where(similar, 1.0, -r)
    V = torch.tensor(table.dense())
    u = U.double().requires_grad_()
    _, expected = double_sum(u, V, S, V[omega].double(), 200.0)
    assert relative(got, expected) < 1e-4


def test_a_part_of_the_queries_has_the_terms_of_its_own():
    rng = np.random.default_rng(2)
    table = CodeTable(np.arange(40) % 4, 8)
    omega = draw(table, 10, rng)
    table.update(omega, outputs(10, 8, rng), 1.0)
    terms, part = ObjectiveTerms.of(table, omega, 1.0), torch.tensor([3, 7])
    U = torch.tensor(outputs(10, 8, rng), dtype=torch.float32)
    whole = gradient(U, terms)[part] * 10
    assert torch.allclose(gradient(U[part], terms[part]) * 2, whole, atol=1e-5)


def test_terms_are_the_gradient_of_the_loss():
    rng = np.random.default_rng(4)
    table = CodeTable(np.arange(20) % 3, 6)
    terms = ObjectiveTerms.of(table, draw(table, 7, rng), 2.0, dtype=torch.float64)
    U = torch.tensor(outputs(7, 6, rng), requires_grad=True)
    loss(U, terms).backward()
    assert torch.allclose(terms(U.detach()), U.grad)


def test_eq_3_has_no_codes_of_queries():
    rng = np.random.default_rng(3)
    table = CodeTable(np.arange(40) % 4, 8, queries=np.arange(12) % 4)
    omega = draw(table, 10, rng)
    table.update(omega, outputs(10, 8, rng), 0.0)
    terms, part = ObjectiveTerms.of(table, omega, 0.0), torch.tensor([3, 7])
    assert terms.codes is None
    assert terms[part].codes is None
    assert torch.equal(terms[part].sums, terms.sums[part])
