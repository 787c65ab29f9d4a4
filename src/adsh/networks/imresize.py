"""Bicubic resizing as MATLAB's imresize does it, which the authors' program calls.

An output is a weighted mean of the inputs near it, by Keys' cubic with a = -1/2. Where the image shrinks, the cubic is
stretched by as much. Beyond its edge the image is mirrored; torch's bicubic repeats the edge and has a = -3/4. Values
are not clipped: the authors resize images of type single.
"""

from __future__ import annotations

from functools import lru_cache
from math import ceil

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

_REACH = 2.0  # of the cubic, to each side


def imresize(x: Tensor, size: int) -> Tensor:
    """Resize images (b, channels, H, W) to (b, channels, size, size)."""
    height, width = x.shape[-2:]
    rows, columns = (_weights(side, size).to(x) for side in (height, width))
    return rows @ x @ columns.T


@lru_cache(8)
def _weights(before: int, after: int) -> Tensor:
    """Return (after, before), the weight of each pixel of a line in each pixel of the resized line."""
    scale = after / before
    stretch = min(scale, 1.0)
    centers = (np.arange(after) + 0.5) / scale - 0.5
    first = np.floor(centers - _REACH / stretch).astype(int)
    at = first[:, None] + np.arange(ceil(2 * _REACH / stretch) + 2)
    weights = _cubic(stretch * (centers[:, None] - at))
    weights /= weights.sum(axis=1, keepdims=True)
    mirrored = np.mod(at, 2 * before)
    mirrored = np.where(mirrored < before, mirrored, 2 * before - 1 - mirrored)
    matrix = np.zeros((after, before))
    np.add.at(matrix, (np.arange(after)[:, None], mirrored), weights)
    return torch.from_numpy(matrix)


def _cubic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return Keys' cubic of a = -1/2."""
    x = np.abs(x)
    near, far = 1.5 * x**3 - 2.5 * x**2 + 1, -0.5 * x**3 + 2.5 * x**2 - 4 * x + 2
    return np.where(x <= 1, near, np.where(x < _REACH, far, 0.0))
