"""Whole trainings of the deep methods against plain transcriptions of their published updates."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from adsh.labels import LabelSets
from adsh.methods import create
from adsh.networks.class_lookup import Lookup
from adsh.train.loop import learn

from ..reference import deep_methods as reference
from .quality import similarity

POINTS, WIDTH, BITS, BATCH, OUTER, INNER = 23, 6, 5, 8, 12, 2
ONE_LABEL = np.eye(4, dtype=int)[np.random.default_rng(0).integers(0, 4, POINTS)]
SEVERAL = (np.random.default_rng(1).random((POINTS, 4)) < 0.4).astype(int) | np.eye(4, dtype=int)[[0] * POINTS]
METHODS = {
    "dpsh": {"eta": 3.0}, "dpsh_batch": {"eta": 3.0}, "dhn": {"quantisation": 0.2}, "dsh": {"regulariser": 0.1},
    "classifier": {"smoothing": 0.1},
}  # fmt: skip


@pytest.mark.parametrize("hot", [ONE_LABEL, SEVERAL], ids=["one label", "several labels"])
@pytest.mark.parametrize("name", METHODS)
def test_a_training_is_that_of_the_published_update(name, hot):
    """12 iterations of two epochs with SGD, weight decay and rates that fall, equal up to the float32 of outputs."""
    method = create(name, bits=BITS, recipe={
        "optimizer": "sgd", "weight_decay": 0.01, "schedule": "tenth", "drop_interval": 4, "warmup": 0.0,
        "ema_decay": 0.0, "bf16": False, "compile": False, "head_lr": 1.0,
    }, samples=POINTS, outer=OUTER, inner=INNER, batch_size=BATCH, lr=0.3, preset="paper", **METHODS[name])  # fmt: skip
    labels = LabelSets.of(hot)
    table = method._table(labels, np.arange(POINTS))
    X = np.random.default_rng(2).standard_normal((POINTS, WIDTH))
    linear = torch.nn.Linear(WIDTH, table.bits).double()
    start = [parameter.detach().numpy().copy() for parameter in linear.parameters()]
    network = Lookup(linear, table.bits, BITS) if name == "classifier" else linear
    batches: list[np.ndarray] = []

    def items(indices):
        if linear.training:  # not the last look at whether all is finite
            batches.append(np.asarray(indices))
        return torch.from_numpy(X[np.asarray(indices)])

    history = learn(
        network, items, table, method._recipe(labels, POINTS), device=torch.device("cpu"),
        make_gradient=method._make_gradient, activation=method._activation(method._recipe(labels, POINTS)),
    )  # fmt: skip
    rates = [0.3 * 0.1 ** (max(step // (3 * INNER) - 1, 0) // 4) for step in range(OUTER * INNER * 3)]
    assert [record["lr"] for record in history] == pytest.approx(rates[3 * INNER - 1 :: 3 * INNER])
    assert [len(batch) for batch in batches[:3]] == [8, 8, 7]
    gradient = _reference(name, hot, labels, METHODS[name])
    W, bias = reference.train(*start, X, batches, gradient, rates, 0.01, tanh=name == "dhn")
    assert not np.allclose(W, start[0], atol=1e-2)  # it has moved
    np.testing.assert_allclose(linear.weight.detach().numpy(), W, atol=1e-6)
    np.testing.assert_allclose(linear.bias.detach().numpy(), bias, atol=1e-6)


def _reference(name, hot, labels, options):
    """The transcription's gradient for this case, with its own memory."""
    S, (weight,) = (similarity(hot) > 0).astype(float), options.values()
    if name == "dpsh":
        buffer = np.zeros((POINTS, BITS))
        return lambda u, batch: reference.dpsh(u, batch, buffer, S, weight)
    if name == "dpsh_batch":
        return lambda u, batch: reference.dpsh_batch(u, batch, POINTS, S, weight)
    if name == "classifier":
        rows = [tuple(row) for row in hot]
        numbers = {row: int(labels.ids[rows.index(row)]) for row in dict.fromkeys(rows)}
        order = sorted(numbers.values())
        classes = np.array([order.index(numbers[row]) for row in rows])
        return lambda u, batch: reference.softmax(u, batch, classes, weight)
    return lambda u, batch: {"dhn": reference.dhn, "dsh": reference.dsh}[name](u, batch, S, weight)
