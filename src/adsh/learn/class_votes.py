"""How much each class counts in each bit of a code, so that codes between classes have grades.

    bit b of x  =  sign( sum_k p_k(x) w_kb v_kb ),   p the posterior of the classes, v their codes, w > 0

Where all weights w are equal, that is the code of the least expected distance to the code of the true class: between
two classes it jumps from one code to the other where they are equally likely, and an item of which the network is half
sure is found as if it were sure. Where they differ from bit to bit, the bits change sides one after the other on the
way from class to class, and the Hamming distance says how far an item has gone. A sure item has the code of its class.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from .class_codes import Signs

_WIDEST = 1.5  # standard deviation of log w, at most
_STEPS, _BATCH, _RATE = 600, 256, 0.03
_SOFTER = 1.5  # what scores of items that the network was trained on are divided by: it is too sure of them
_CONTRAST = 4.0  # of the inner products of two codes, as shares of c
_STEEPNESS = (1.0, 3.0)  # of the tanh in place of the sign, in the first step and in the last


def random_votes(codes: Signs, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return (K, c) w_kb v_kb with log-normal weights, the more unequal the more bits there are for a class.

    With few bits for each class none can be spared for grades.
    """
    classes, bits = codes.shape
    logs = rng.standard_normal((classes, bits)) * min(_WIDEST, (bits / classes) ** 0.5)
    return _scaled((np.exp(logs) * codes).astype(np.float32))


def fitted_votes(votes: NDArray[np.float32], scores: Tensor, seed: int) -> NDArray[np.float32]:
    """Return votes with weights for which near codes belong to items that probably share their class.

    Stochastic gradient descent on the listwise cross-entropy between the softmax of the codes' inner products and the
    probabilities p_i.p_j that two items share their class, both among the items of a mini-batch.

    Args:
        votes: (K, c) to start from.
        scores: (m, K) of items that the network was trained on.
        seed: for the mini-batches.

    Returns:
        (K, c) votes with the signs of those given.
    """
    generator = Generator().manual_seed(seed)
    signs, start = torch.as_tensor(np.sign(votes)), torch.as_tensor(np.log(np.abs(votes)))
    posteriors = (scores.detach().float().cpu() / _SOFTER).softmax(dim=1)  # (m, K)
    logs, log_steepness = start.clone().requires_grad_(), torch.full((), 0.5, requires_grad=True)
    optimizer = torch.optim.Adam([logs, log_steepness], lr=_RATE)
    size, bits = min(_BATCH, len(posteriors)), signs.shape[1]
    others = ~torch.eye(size, dtype=torch.bool)
    for step in range(_STEPS):
        left = 1 - step / _STEPS
        optimizer.param_groups[0]["lr"] = _RATE * left
        P = posteriors[torch.randint(len(posteriors), (size,), generator=generator)]  # (b, K)
        weights = logs.exp()
        steepness = log_steepness.exp() * (_STEEPNESS[0] * left + _STEEPNESS[1] * (1 - left))
        U = torch.tanh(steepness * (P @ (weights * signs)) / (P @ weights))  # (b, c)
        near = (_CONTRAST / bits * U @ U.T).masked_fill(~others, -torch.inf).log_softmax(dim=1)
        same = P @ P.T * others
        loss = -(same * near.masked_fill(~others, 0.0)).sum() / same.sum()
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimizer.step()
    return _scaled((logs.detach().exp() * signs).numpy())


def _scaled(votes: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the votes with 1 as the largest weight of each bit, which changes no bit."""
    scaled: NDArray[np.float32] = votes / np.abs(votes).max(axis=0)
    return scaled
