"""What the deep methods share with each other: training on sampled or all points, the network's codes for all items.

Networks, presets, the training step, checkpoints and the model's folder are those of ADSH (`deep_model`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from ..data import Dataset, Items, as_items
from ..data.fingerprint import fingerprint
from ..hamming.bits import Codes
from ..labels import LabelSets
from ..learn import LearnedCodes
from ..models.deep_hash import DeepModel
from ..models.fitting import FitData, FitOptions
from ..train.callbacks import Callback
from ..train.state import Record
from .arrays import Indices
from .training_points import LossGradient, TrainingPoints
from .validation import check_labels, check_penalty, check_train


class Networked(DeepModel):
    """A network trained by a loss on batches. With `whole` (the -D variants) all of Y takes part, whatever `train` is.

    The parameters are those of ADSH, less gamma and `unlabelled`. An outer iteration draws `samples` training points
    and passes over them `inner` times, so a preset means as many items seen as for ADSH.
    """

    renamed = {"use_full_database": "whole"}  # noqa: RUF012  # of the class for good
    weights: ClassVar[tuple[str, ...]] = ()  # options that are numbers above 0

    def __init__(
        self,
        bits: int,
        *,
        use_full_database: bool = False,
        whole: bool = False,
        network: str | nn.Module = "mlp",
        network_options: dict[str, Any] | None = None,
        preset: str = "modern",
        samples: int | None = None,
        outer: int | None = None,
        inner: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        recipe: dict[str, Any] | None = None,
        device: str = "auto",
        seed: int = 0,
        progress: bool | str = "auto",
    ) -> None:
        self.bits, self.use_full_database = bits, use_full_database or whole
        self.network, self.network_options, self.preset = network, network_options, preset
        self.samples, self.outer, self.inner, self.batch_size, self.lr = samples, outer, inner, batch_size, lr
        self.recipe, self.device, self.seed, self.progress = recipe, device, seed, progress

    def fit(
        self,
        Y: Any,
        labels: Any = None,
        *,
        train: Any = None,
        callback: Callback | Callable[[Record], None] | None = None,
        save_to: str | Path | None = None,
        checkpoints: str | Path | None = None,
        checkpoint_every: int = 1,
        resume: bool = False,
        overwrite: bool = False,
    ) -> Self:
        """Learns from the items of Y at the indices `train`, by default from all with a label, and codes all of Y.

        Items without a label take no part, and are coded by the network as all others. The rest is as for ADSH's fit.
        """
        self._check_params()
        if labels is None and isinstance(Y, Dataset):
            labels = Y.labels
        items = as_items(Y, "Y")
        chosen = np.arange(len(items)) if self.use_full_database else check_train(train, len(items))
        known = check_labels(labels, len(items), chosen, self.name)
        self._check_options()
        table = self._table(known, chosen[~known.empty[known.ids[chosen]]])
        recipe = self._recipe(known, table.num_sampleable)
        data = fingerprint(items, known)
        self._names = known.names
        options = FitOptions(callback, save_to, checkpoints, checkpoint_every, resume, overwrite)
        self._train(FitData(items, items, table, recipe, data, self._coded_later(table, items)), options)
        return self

    def _table(self, labels: LabelSets, members: Indices) -> TrainingPoints:
        return TrainingPoints(labels, members, self.bits, self._loss)

    @abstractmethod
    def _loss(self, table: TrainingPoints, outputs: Tensor, positions: Tensor) -> Tensor:
        """The mean loss of these outputs of the training points at these positions."""

    @abstractmethod
    def _gradient(self, table: TrainingPoints, outputs: Tensor, positions: Tensor) -> Tensor:
        """(b, c) the gradient of a batch's loss by its outputs."""

    def _check_options(self) -> None:
        """Raises where an option of this method is wrong: each is a weight."""
        for name in self.weights:
            check_penalty(getattr(self, name), name)

    def _make_gradient(self, table: TrainingPoints, omega: Indices, gamma: float, device: torch.device) -> LossGradient:
        positions = torch.as_tensor(np.searchsorted(table.members, omega), device=device)
        return LossGradient(partial(self._gradient, table), positions)

    def _coded_later(self, table: TrainingPoints, items: Items) -> Indices:
        return np.arange(len(items))

    def _keep(self, table: TrainingPoints, coded: Codes | None) -> None:
        assert coded is not None
        self.code_table_ = LearnedCodes.of_codes(coded, self.bits)

    def _restore(self, new_labels: Any, names: dict[str, Any]) -> None:
        self._names = tuple(names["database"])

    @property
    def whole(self) -> bool:
        """The older name of `use_full_database`, under which it is saved."""
        return self.use_full_database

    @whole.setter
    def whole(self, value: bool) -> None:
        self.use_full_database = value

    @property
    def label_names_(self) -> dict[str, tuple[Any, ...]]:
        """What the labels are called."""
        return {"database": self._names}
