"""A last layer that scores label sets, of labels that may come together.

    score of set k  =  sum of the scores of its labels  +  b_k

Under the softmax over the label sets that occur, labels need not be independent given the item: b_k knows which ones
come together, and how often.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear


class LabelSetScores(nn.Linear):
    """(b, d) to the scores of label sets, (b, sets); a linear layer of label scores, and which labels each set has.

    Args:
        dimensions: of the inputs, d.
        labels: the number of labels, L.
        sets: the number of label sets, K.
    """

    members: Tensor  # (K, L) 1 where a set has a label
    set_bias: Tensor  # (K,)

    def __init__(self, dimensions: int, labels: int, sets: int) -> None:
        super().__init__(dimensions, labels)
        self.register_buffer("members", torch.zeros(sets, labels))
        self.set_bias = nn.Parameter(torch.zeros(sets))

    def set_label_sets(self, members: Tensor, count: Tensor) -> None:
        """Set which labels each label set has; at first it is as probable as it is frequent.

        Args:
            members: (K, L) 1 where a set has a label.
            count: (K,) points of each label set.
        """
        with torch.no_grad():
            self.members.copy_(members)
            self.set_bias.copy_(count.log() - count.sum().log())

    @property
    def set_weights(self) -> Tensor:
        """(K, d) what an input is multiplied by for the score of each label set."""
        return self.members @ self.weight

    def forward(self, input: Tensor) -> Tensor:  # its name in torch
        """Return (b, K) the scores of label sets."""
        return linear(super().forward(input), self.members, self.set_bias)
