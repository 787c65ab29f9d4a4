"""`linear`: one linear layer on standardised features."""

from __future__ import annotations

from torch import Tensor, nn

from .standardize import Standardize


class Linear(nn.Module):
    """(b, d) features to (b, bits)."""

    def __init__(self, dimensions: int, bits: int) -> None:
        super().__init__()
        self.standardize = Standardize(dimensions)
        self.head = nn.Linear(dimensions, bits)

    def calibrate(self, sample: Tensor) -> None:
        """Set the standardisation from a sample of the features."""
        self.standardize.calibrate(sample)

    def forward(self, x: Tensor) -> Tensor:
        """Return F(x), (b, bits)."""
        out: Tensor = self.head(self.standardize(x))
        return out


def build(bits: int, input_shape: tuple[int, ...]) -> Linear:
    """Create `linear` for features of this many dimensions."""
    return Linear(input_shape[0], bits)
