"""`classifier`, `classifier_d`: softmax, and the code of the predicted class looked up: ADSH must be compared with it.

Where all points of a class get one code, retrieval against the learned codes is classification by another name. Here it
is just that: each label set of the training points has a code, far from the others, and an item gets the code of the
set that the network finds most probable. `classifier_d` learns from the whole database and gives its labelled items the
codes of their own sets. With several labels an item, the classes are the label sets seen in training, so that a query
is given one of those.
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
from ..hamming.bits import Codes, pack
from ..labels import LabelSets
from ..learn import LearnedCodes
from ..networks.class_lookup import Lookup
from .arrays import Indices, Signs, first_occurrences, signs_of
from .deep_baseline import Networked
from .training_points import TrainingPoints

_TRIED = 512  # candidates for each label's code


class Classifier(Networked):
    """A network with an output for each label set of the training points."""

    name = "classifier"
    activation = staticmethod(nn.Identity())

    def _table(self, labels: LabelSets, members: Indices) -> TrainingPoints:
        self._sets = np.sort(first_occurrences(labels.ids[members].astype(np.int64)))  # those there are to tell apart
        return TrainingPoints(labels, members, len(self._sets), self._loss)

    def _classes(self, table: TrainingPoints, positions: Tensor) -> Tensor:
        """(b,) the class of each training point, an output's number."""
        if table.classes is None or table.classes.device != positions.device:
            table.classes = torch.as_tensor(np.searchsorted(self._sets, table.label_sets.ids), device=positions.device)
        return table.classes[positions]

    def _loss(self, table: TrainingPoints, outputs: Tensor, positions: Tensor) -> Tensor:
        return cross_entropy(outputs, self._classes(table, positions))

    def _gradient(self, table: TrainingPoints, outputs: Tensor, positions: Tensor) -> Tensor:
        missing = outputs.softmax(dim=1)
        missing[torch.arange(len(outputs), device=outputs.device), self._classes(table, positions)] -= 1
        return missing / len(outputs)

    def _network(self, bits: int, shape: tuple[int, ...], recipe: Recipe, table: Any) -> nn.Module:
        network = super()._network(bits, shape, recipe, table)
        if not isinstance(network, Lookup):
            network = Lookup(network, len(self._sets), bits)
        codes = far_apart(table.label_sets, self.bits, np.random.default_rng(self.seed))
        network.codes.copy_(torch.as_tensor(codes[self._sets]))
        return network

    def _built(self, name: str, shape: Sequence[int], options: dict[str, Any], width: int) -> nn.Module:
        network = super()._built(name, shape, options, width)
        lookup = Lookup(network, width, self.bits)
        lookup.adsh_spec = network.adsh_spec
        return lookup

    def _around(self, network: nn.Module, width: int) -> nn.Module:
        return Lookup(network, width, self.bits)

    def _width(self, tensors: dict[str, Tensor]) -> int:
        return len(tensors["codes"])

    def _keep(self, table: TrainingPoints, coded: Codes | None) -> None:
        assert coded is not None
        if self.use_full_database:  # all that have a label took part
            assert isinstance(self.network_, Lookup)
            by_class = pack(self.network_.codes.cpu().numpy())
            coded[table.members] = by_class[np.searchsorted(self._sets, table.label_sets.ids)]
        self.code_table_ = LearnedCodes.of_codes(coded, self.bits)


def far_apart(labels: LabelSets, bits: int, rng: np.random.Generator) -> NDArray[np.float32]:
    """(K, c) a code for each label set: its label's, or the majority over its labels, the first deciding ties.

    Labels get codes one after the other, each the farthest from those before of some drawn at random.
    """
    of_labels = np.empty((0, bits), dtype=np.float32)
    for _ in labels.names:
        tried: Signs = signs_of(rng.standard_normal((_TRIED, bits), dtype=np.float32))
        nearest = (tried @ of_labels.T).max(axis=1, initial=-bits)  # inner products: the larger, the nearer
        of_labels = np.concatenate([of_labels, tried[[np.argmin(nearest)]]]).astype(np.float32)
    codes = np.ones((labels.set_count, bits), dtype=np.float32)
    for number, (start, end) in enumerate(zip(labels.starts[:-1], labels.starts[1:], strict=True)):
        if end > start:
            held = of_labels[labels.tags[start:end]]
            codes[number] = signs_of(held.sum(axis=0), signs_of(held[0]))
    return codes


def build(bits: int, **options: Any) -> Classifier:
    """Build `classifier`, or `classifier_d` with `use_full_database`."""
    return Classifier(bits, **options)
