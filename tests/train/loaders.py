"""Loaders for tests of the training loop."""

import numpy as np
import torch


class InMemory:
    """A loader of tensors in memory that checks how it is called."""

    def __init__(self, points, on_device=False):
        self.points, self.on_device = points, on_device

    def __call__(self, indices):
        assert isinstance(indices, torch.Tensor if self.on_device else np.ndarray)
        return self.points[indices]

    def epoch(self, batches):
        return map(self, batches)
