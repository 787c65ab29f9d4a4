"""Counting items by grade and distance with torch, for a GPU: a matrix product and a histogram a block."""

from __future__ import annotations

import numpy as np
import torch

from ..errors import InputError
from ..hamming.bits import Codes, unpack
from .counters import Kinds, Tally
from .relevance import Relevance

_PAIRS = 1 << 24  # pairs of a query and an item held at a time


class OnDevice:
    """Counts over all items on a torch device. Sums of +1 and -1 up to 1024 are exact in any precision torch uses."""

    def __init__(self, database: Codes, relevance: Relevance, bits: int, grades: int, device: str) -> None:
        try:
            self._device = torch.device(device)
            self._database = self._to_device(unpack(database, bits))  # (n, c) int8
        except (RuntimeError, AssertionError) as problem:
            reason = str(problem).splitlines()[0]
            raise InputError(f"device={device!r} cannot be used ({reason}): pass device='cpu'") from problem
        self._item_kinds = self._to_device(relevance.item_kinds.astype(np.int64))
        self._relevance, self._bits, self._grades = relevance, bits, grades

    def count(self, codes: Codes, kinds: Kinds, out: Tally) -> None:
        """Fills `out` for these queries."""
        rows, row_of = np.unique(kinds, return_inverse=True)
        grades = self._to_device(np.minimum(self._relevance.grades(rows), self._grades - 1).astype(np.int16))
        row = self._to_device(row_of)
        queries = self._to_device(unpack(codes, self._bits)).float()  # (q, c)
        cells = self._grades * (self._bits + 1)
        first_cell = cells * torch.arange(len(codes), device=self._device)[:, None]
        counts = torch.zeros(len(codes) * cells, dtype=torch.int64, device=self._device)
        step = max(1, _PAIRS // len(codes))
        for start in range(0, len(self._database), step):
            part = slice(start, start + step)
            products = queries @ self._database[part].float().T  # (q, step)
            distances = ((self._bits - products) / 2).long()
            offsets = grades[row[:, None], self._item_kinds[part]].long() * (self._bits + 1)
            counts += torch.bincount((first_cell + offsets + distances).ravel(), minlength=len(counts))
        out[:] = counts.reshape(out.shape).cpu().numpy()

    def _to_device(self, array: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)
