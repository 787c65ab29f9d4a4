"""`classifier`, `classifier_d`: a softmax classifier, and a fixed code for each class: the control for ADSH.

    loss = cross-entropy of the label sets, smoothed;  code of x = code of the most probable label set

Where all points of a class share one code, retrieval against the learned codes amounts to classification. This baseline
does only that: each label set of the training points has a fixed code, far from the others. `classifier_d` trains on
the full database and gives its labelled items the codes of their own label sets. With several labels per item, the
classes are the label sets of the training points, so a query gets one of those.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from ..config import Recipe
from ..errors import InputError
from ..hamming.bits import DEFAULT_BITS, Codes, pack
from ..labels import LabelSets
from ..learn import LearnedCodes
from ..networks.class_lookup import Lookup
from .arrays import Indices, Signs, first_occurrences, signs_of
from .deep_baseline import DeepBaseline
from .training_points import TrainingPoints

_NUM_CANDIDATES = 512  # for each label's code


class Classifier(DeepBaseline):
    """A network with an output for each label set of the training points.

    Args:
        bits: Code length.
        smoothing: How much of the target is spread evenly over all classes.
        **shared: As of `DeepBaseline`.
    """

    name = "classifier"
    activation = staticmethod(nn.Identity())

    def __init__(self, bits: int = DEFAULT_BITS, *, smoothing: float = 0.0, **shared: Any) -> None:
        super().__init__(bits, **shared)
        self.smoothing = smoothing

    def _check_options(self) -> None:
        if isinstance(self.smoothing, bool) or not 0 <= self.smoothing < 1:
            raise InputError(f"smoothing={self.smoothing!r}: give a share of at least 0, below 1")

    def _table(self, labels: LabelSets, members: Indices) -> TrainingPoints:
        self._sets = np.sort(first_occurrences(labels.ids[members].astype(np.int64)))  # the classes
        return TrainingPoints(labels, members, len(self._sets), self._loss)

    def _classes(self, table: TrainingPoints, positions: Tensor) -> Tensor:
        """Return (b,) the class of each training point, as the index of an output."""
        if table.classes is None or table.classes.device != positions.device:
            table.classes = torch.as_tensor(np.searchsorted(self._sets, table.label_sets.ids), device=positions.device)
        return table.classes[positions]

    def _loss(self, table: TrainingPoints, outputs: Tensor, positions: Tensor) -> Tensor:
        return cross_entropy(outputs, self._classes(table, positions), label_smoothing=self.smoothing)

    def _gradient(self, table: TrainingPoints, outputs: Tensor, positions: Tensor) -> Tensor:
        missing = outputs.softmax(dim=1) - self.smoothing / outputs.shape[1]
        rows = torch.arange(len(outputs), device=outputs.device)
        missing[rows, self._classes(table, positions)] -= 1 - self.smoothing
        return missing / len(outputs)

    def _network(self, bits: int, shape: tuple[int, ...], recipe: Recipe, table: Any) -> nn.Module:
        network = super()._network(bits, shape, recipe, table)
        if not isinstance(network, Lookup):
            network = Lookup(network, len(self._sets), bits)
        codes = spread_codes(table.label_sets, self.bits, np.random.default_rng(self.seed))
        network.codes.copy_(torch.as_tensor(codes[self._sets]))
        return network

    def _build_network(self, name: str, shape: Sequence[int], options: dict[str, Any], width: int) -> nn.Module:
        network = super()._build_network(name, shape, options, width)
        lookup = Lookup(network, width, self.bits)
        lookup.adsh_spec = network.adsh_spec
        return lookup

    def _wrap_module(self, network: nn.Module, width: int) -> nn.Module:
        return Lookup(network, width, self.bits)

    def _output_width(self, tensors: dict[str, Tensor]) -> int:
        return len(tensors["codes"])

    def _set_codes(self, table: TrainingPoints, codes: Codes | None) -> None:
        assert codes is not None
        if self.use_full_database:  # every item with a label is a training point
            assert isinstance(self.network_, Lookup)
            by_class = pack(self.network_.codes.cpu().numpy())
            codes[table.members] = by_class[np.searchsorted(self._sets, table.label_sets.ids)]
        self.code_table_ = LearnedCodes.of_codes(codes, self.bits)


def spread_codes(labels: LabelSets, bits: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """Return a code for each label set: its label's, or the majority over its labels; the first decides ties.

    Labels get codes one after the other: of random candidates, the one farthest from the codes so far.

    Args:
        labels: The label sets.
        bits: The code length.
        rng: For the candidates.

    Returns:
        (K, c) the codes, +1/-1.
    """
    of_labels = np.empty((0, bits), dtype=np.float32)
    for _ in labels.names:
        candidates: Signs = signs_of(rng.standard_normal((_NUM_CANDIDATES, bits), dtype=np.float32))
        nearest = (candidates @ of_labels.T).max(axis=1, initial=-bits)  # inner products: the larger, the nearer
        of_labels = np.concatenate([of_labels, candidates[[np.argmin(nearest)]]]).astype(np.float32)
    codes = np.ones((labels.set_count, bits), dtype=np.float32)
    for number, (start, end) in enumerate(zip(labels.starts[:-1], labels.starts[1:], strict=True)):
        if end > start:
            label_codes = of_labels[labels.tags[start:end]]
            codes[number] = signs_of(label_codes.sum(axis=0), signs_of(label_codes[0]))
    return codes


def build(bits: int, **options: Any) -> Classifier:
    """Build `classifier`, or `classifier_d` with `use_full_database`."""
    return Classifier(bits, **options)
