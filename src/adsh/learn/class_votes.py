"""The codes of label sets, and how much each label set counts in each bit, learned together from posteriors.

    bit b of x  =  sign( sum_k p_k(x) w_kb v_kb ),   p the posterior of the label sets, v in (-1, 1), w > 0

The code of label set k is the sign of v_k, and that of an item of which the network is sure. Where all weights w were
equal, the code of x would be that of the least expected distance to the code of its true label set: between two of them
it would jump from one code to the other where they are equally likely. Where they differ, the bits change sides one
after the other on the way, and the Hamming distance says how far an item has gone.

Both are learned by stochastic gradient descent such that near codes belong to items that probably share a label: among
the items of a mini-batch, and between these and the label sets of the database. No item is read, only posteriors.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from .class_codes import Signs

Votes = NDArray[np.float32]  # (K, c) w_kb v_kb

MOST = 4096  # label sets whose codes are learned
_WIDEST = 1.5  # standard deviation of log w, at most, where the weights are random
_STEPS, _BATCH, _RATE = 600, 256, 0.03
_LAST = 100  # steps whose mean loss is that of the whole
_STEEPNESS = (1.0, 3.0)  # of the tanh in place of the sign, in the first step and in the last


@dataclass(frozen=True)
class Goal:
    """What codes are learned for."""

    similar: Tensor  # (K, K) 1 where two label sets share a label
    count: Tensor  # (K,) what each label set counts for in the database
    contrast: float  # of the inner products of two codes, as shares of c
    database: float  # the weight of the pairs of an item and a label set of the database; that of two items is the rest
    softer: float  # what scores are divided by, where the network is too sure of items that it was trained on


def random_votes(codes: Signs, rng: np.random.Generator) -> Votes:
    """Return w_kb v_kb with log-normal weights, the more unequal the more bits there are for a class.

    With few bits for each class none can be spared for grades.
    """
    spread = min(_WIDEST, (codes.shape[1] / len(codes)) ** 0.5)
    logs = spread * rng.standard_normal(codes.shape)
    return _scaled((np.exp(logs) * codes).astype(np.float32))


def learned_votes(
    start: Votes, scores: Tensor, goal: Goal, seed: int, known: NDArray[np.bool_] | None = None
) -> tuple[Votes, float]:
    """Learn codes and weights together, and return w_kb v_kb, and the loss at the end.

    The loss is a listwise cross-entropy: the softmax of the codes' inner products should be as the probabilities that
    the two share a label.

    Args:
        start: (K, c) of v, before tanh; where they are known, the votes themselves.
        scores: (m, K) of items that the network was trained on.
        goal: what codes are learned for.
        seed: for the mini-batches.
        known: (K,) label sets that keep their votes, of an earlier fit; None for none.
    """
    generator = Generator().manual_seed(seed)
    posteriors = (scores.detach().float().cpu() / goal.softer).softmax(dim=1)  # (m, K)
    shares = posteriors @ goal.similar  # (m, K) how probably each item shares a label with each label set
    latent = torch.tensor(start, dtype=torch.float32, requires_grad=True)  # (K, c)
    logs = torch.tensor(_first_logs(start, known), requires_grad=True)
    kept = torch.zeros(len(start), 1, dtype=torch.bool) if known is None else torch.as_tensor(known)[:, None]
    votes_kept = torch.as_tensor(start, dtype=torch.float32)
    optimizer = torch.optim.Adam([latent, logs], lr=_RATE)
    size = min(_BATCH, len(posteriors))
    losses = []
    for step in range(_STEPS):
        left = 1 - step / _STEPS
        optimizer.param_groups[0]["lr"] = _RATE * left
        steepness = _STEEPNESS[0] * left + _STEEPNESS[1] * (1 - left)
        drawn = torch.randint(len(posteriors), (size,), generator=generator)
        P = posteriors[drawn]  # (b, K)
        V = torch.where(kept, votes_kept.sign(), torch.tanh(steepness * latent))
        weights = torch.where(kept, votes_kept.abs(), logs.exp())
        U = torch.tanh(2 * steepness * (P @ (weights * V)) / (P @ weights))  # (b, c)
        loss = _loss(P, shares[drawn], U, V, goal)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        optimizer.step()
        losses.append(loss.detach())
    with torch.no_grad():
        learned = logs.exp() * torch.tanh(_STEEPNESS[1] * latent)
        votes = _scaled(torch.where(kept, votes_kept, learned).numpy())
    return votes, float(torch.stack(losses[-_LAST:]).mean())


def distinct_votes(votes: Votes, known: NDArray[np.bool_] | None = None) -> Votes:
    """Return the votes with no code shared, while there are 2^c: the least certain bits of a shared one are flipped.

    Args:
        votes: (K, c) to change.
        known: (K,) those that must stay as they are; None for none.
    """
    votes = votes.copy()
    if len(votes) > 2 ** votes.shape[1]:
        return votes
    known = np.zeros(len(votes), dtype=bool) if known is None else known
    seen = {(vote > 0).tobytes() for vote in votes[known]}
    for vote in (votes[k] for k in np.flatnonzero(~known)):
        for flipped in _by_certainty(np.abs(vote)):
            code = vote > 0
            code[flipped] ^= True
            if code.tobytes() not in seen:
                break
        vote[flipped] *= -1
        seen.add(code.tobytes())
    return votes


def _first_logs(start: Votes, known: NDArray[np.bool_] | None) -> Votes:
    """Return (K, c) log w to start from: 0, or what the known ones have of each bit on average."""
    if known is None or not known.any():
        return np.zeros_like(start, dtype=np.float32)
    usual = np.log(np.maximum(np.abs(start[known]), 1e-6)).mean(axis=0)
    return np.broadcast_to(usual, start.shape).astype(np.float32)


def _by_certainty(certainty: NDArray[np.float32]) -> Iterator[list[int]]:
    """Yield the sets of bits, none first, then by the sum of how certain they are."""
    order = np.argsort(certainty, kind="stable").tolist()
    waiting: list[tuple[float, list[int]]] = [(0.0, [])]  # of the sum, and places in `order`
    while waiting:
        total, places = heapq.heappop(waiting)
        yield [order[place] for place in places]
        following = places[-1] + 1 if places else 0
        if following < len(order):
            more = float(certainty[order[following]])
            heapq.heappush(waiting, (total + more, [*places, following]))
            if places:  # the next place instead of the last
                heapq.heappush(waiting, (total + more - float(certainty[order[places[-1]]]), [*places[:-1], following]))


def _loss(P: Tensor, shares: Tensor, U: Tensor, V: Tensor, goal: Goal) -> Tensor:
    """Return the cross-entropy of both kinds of pairs.

    Args:
        P: (b, K) posteriors of a mini-batch.
        shares: (b, K) how probably its items share a label with each label set.
        U: (b, c) their codes, with tanh in place of the sign.
        V: (K, c) those of the label sets.
        goal: what codes are learned for.
    """
    scale = goal.contrast / U.shape[1]
    loss = torch.zeros(())
    if goal.database > 0:
        near = (scale * U @ V.T + goal.count.log()).log_softmax(dim=1)
        loss = loss + goal.database * _cross_entropy(shares * goal.count, near)
    if goal.database < 1:
        others = ~torch.eye(len(P), dtype=torch.bool)
        near = (scale * U @ U.T).masked_fill(~others, -torch.inf).log_softmax(dim=1).masked_fill(~others, 0.0)
        loss = loss + (1 - goal.database) * _cross_entropy(shares @ P.T * others, near)
    return loss


def _cross_entropy(weights: Tensor, log_shares: Tensor) -> Tensor:
    """Return the mean over the rows; the weights need not sum to 1."""
    expected = weights / weights.sum(dim=1, keepdim=True).clamp(min=1e-12)
    return -(expected * log_shares).sum(dim=1).mean()


def _scaled(votes: Votes) -> Votes:
    """Return the votes with 1 as the largest weight of each bit, which changes no bit."""
    scaled: Votes = votes / np.abs(votes).max(axis=0)
    return scaled
