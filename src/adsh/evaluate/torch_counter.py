"""Counting items by grade and distance with torch, for a GPU: a matrix product and a histogram a block."""

from __future__ import annotations

import numpy as np
import torch

from ..errors import InputError, first_line
from ..hamming.bits import unpack
from .counters import Tally, queries_at_a_time
from .pairing import Pairing

_PAIRS = 1 << 24  # pairs of a query and an item in memory at a time


class OnDevice:
    """Counts over all items on a torch device. Sums of +1 and -1 up to 1024 are exact in any precision torch uses.

    Args:
        pairing: queries and database.
        grades: how many grades are counted; higher ones count as the last.
        device: by its torch name.
    """

    threaded = False

    def __init__(self, pairing: Pairing, grades: int, device: str) -> None:
        self._pairing, self._grades, self.step = pairing, grades, queries_at_a_time(pairing)
        try:
            self._device = torch.device(device)
            self._database = self._to_device(unpack(pairing.database_codes, pairing.bits))  # (n, c) int8
        except (RuntimeError, AssertionError) as problem:
            raise InputError(f"device={device!r} cannot be used ({first_line(problem)}): pass device='cpu'") from None
        self._item_kinds = self._to_device(pairing.relevance.item_kinds.astype(np.int64))

    def count(self, block: slice, out: Tally) -> None:
        """Fill `out` for these queries."""
        bits, relevance = self._pairing.bits, self._pairing.relevance
        queries = self._to_device(unpack(self._pairing.query_codes[block], bits)).float()  # (q, c)
        rows, row_of = np.unique(self._pairing.query_kinds[block], return_inverse=True)
        grades = self._to_device(np.minimum(relevance.grades(rows), self._grades - 1).astype(np.int16))
        row = self._to_device(row_of)
        cells = out[0].size
        first_cell = cells * torch.arange(len(queries), device=self._device)[:, None]
        counts = torch.zeros(out.size, dtype=torch.int64, device=self._device)
        step = max(1, _PAIRS // len(queries))
        for start in range(0, len(self._database), step):
            block_items = slice(start, start + step)
            distances = ((bits - queries @ self._database[block_items].float().T) / 2).long()  # (q, step)
            offsets = grades[row[:, None], self._item_kinds[block_items]].long() * (bits + 1)
            counts += torch.bincount((first_cell + offsets + distances).ravel(), minlength=len(counts))
        out[:] = counts.reshape(out.shape).cpu().numpy()

    def _to_device(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)
