"""Eqs. (3) and (4) for a mini-batch of queries, in the Gram form: the cost does not depend on n.

With G = V'V (c x c) and P = SV (m x c),

    sum_ij (u_i.v_j - c S_ij)^2  =  sum_i [ u_i'G u_i - 2c u_i.P_i + c^2 sum_j S_ij^2 ]

and eq. (4) adds gamma sum_i |v_i - u_i|^2. G, P and the squares are computed in float64 by the code table
and divided by n here, where float32 takes over; the loss is J / (b n) for b queries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .code_table import CodeTable


@dataclass(frozen=True)
class ObjectiveTerms:
    """What the objective needs of V and S for the sampled queries, divided by n."""

    bits: int
    gram: Tensor  # (c, c)  V'V / n
    sums: Tensor  # (m, c)  SV / n
    squares: Tensor  # (m,)    sum_j S_ij^2 / n
    codes: Tensor | None  # (m, c)  V of the sampled points, for the gamma term; None in eq. (3)
    gamma: float  # gamma / n

    @classmethod
    def of(
        cls,
        table: CodeTable,
        omega: Any,
        gamma: float,
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
    ) -> ObjectiveTerms:
        """Return the terms for these queries, at the table's present codes.

        Args:
            table: V.
            omega: (m,) the sampled queries.
            gamma: weight of |v_i - u_i|^2.
            device: where to put the terms.
            dtype: their type.
        """

        def tensor(values: Any) -> Tensor:
            return torch.as_tensor(values).to(device=device, dtype=dtype)

        def expand(values: Any, member: Any) -> Tensor:  # on the device: few rows for many queries
            return tensor(values)[torch.as_tensor(member, device=device)]

        n = table.points
        sums, member = table.similarity_sums_by_set(omega)
        return cls(
            bits=table.bits,
            gram=tensor(table.gram() / n),
            sums=expand(sums / n, member),
            squares=tensor(table.similarity_squares(omega) / n),
            codes=None if table.separate_queries else expand(table.rows.codes, table.rows_of(omega)),
            gamma=gamma / n,
        )

    def __getitem__(self, positions: Tensor) -> ObjectiveTerms:
        """Return the terms of some of the queries."""
        codes = None if self.codes is None else self.codes[positions]
        return ObjectiveTerms(self.bits, self.gram, self.sums[positions], self.squares[positions], codes, self.gamma)

    def __call__(self, outputs: Tensor) -> Tensor:
        """Return the gradient of `loss` at these outputs."""
        return gradient(outputs, self)


Terms = ObjectiveTerms  # its earlier name


def loss(outputs: Tensor, terms: ObjectiveTerms) -> Tensor:
    """Return J / (b n) for outputs (b, c)."""
    c = terms.bits
    pairs = ((outputs @ terms.gram - 2 * c * terms.sums) * outputs).sum(dim=1) + c * c * terms.squares
    if terms.codes is not None:
        pairs = pairs + terms.gamma * ((terms.codes - outputs) ** 2).sum(dim=1)
    return pairs.mean()


def gradient(outputs: Tensor, terms: ObjectiveTerms) -> Tensor:
    """Return (b, c) the gradient of `loss` by the outputs: eq. (5) without its (1 - u^2), divided by b n.

    The gamma term carries the factor of the objective itself; the 2 inside the paper's braces is one too many.
    """
    pull = outputs @ terms.gram - terms.bits * terms.sums
    if terms.codes is not None:
        pull = pull + terms.gamma * (outputs - terms.codes)
    return pull * (2 / len(outputs))
