"""`DeepBaseline`: what the deep methods that ADSH is compared with share.

Networks, presets, the training step, checkpoints and the model's folder are those of ADSH (`models.deep_hash`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial
from math import ceil
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor, nn

from .. import config
from ..data import Items, as_items
from ..data.fingerprint import fingerprint
from ..data.items import labels_of
from ..hamming.bits import DEFAULT_BITS, Codes
from ..labels import LabelSets
from ..learn import LearnedCodes
from ..models.deep_hash import DeepHash
from ..models.fitting import FitData, FitOptions
from ..train.callbacks import Callback
from ..train.state import Record
from .arrays import Indices
from .training_points import LossGradient, TrainingPoints
from .validation import check_labels, check_penalty, check_train

_SEEN = ("samples", "outer", "inner")  # values whose product is how many items a training sees


class DeepBaseline(DeepHash):
    """A network trained by a loss on batches, which then encodes all items.

    An outer iteration draws `samples` training points and passes over them `inner` times. Where there are fewer
    training points than the preset draws, there are more iterations: all methods see as many items as ADSH.

    Args:
        bits: Code length.
        use_full_database: Train on all of Y: the `_d` variants.
        whole: The older name of `use_full_database`.
        network: As of `ADSH`.
        network_options: Options of a network given by name.
        preset: As of `ADSH`.
        samples: Training points drawn in an outer iteration, in place of the preset's.
        outer: Outer iterations, in place of the preset's; then no more, however few the training points.
        inner: Epochs in each, in place of the preset's.
        batch_size: In place of the preset's.
        lr: The learning rate, in place of the preset's.
        recipe: Any other value of adsh.config.Recipe in place of the preset's.
        augment: As of `ADSH`.
        device: "auto", "cpu", "cuda", …
        seed: The same seed, data and machine give the same codes.
        progress: "auto" shows a line on a terminal; or True or False.
        random_state: scikit-learn's name of `seed`.
    """

    renamed: ClassVar[dict[str, str]] = {"random_state": "seed", "use_full_database": "whole"}
    weights: ClassVar[tuple[str, ...]] = ()  # names of options that must be above 0
    _labels: LabelSets | None = None  # of all items, until the method is saved and loaded
    passes_over_all: ClassVar[bool] = False  # an outer iteration draws all training points, and `outer` is the method's

    def __init__(  # noqa: PLR0913  # a public constructor
        self,
        bits: int = DEFAULT_BITS,
        *,
        use_full_database: bool | None = None,
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
        augment: Callable[[Tensor], Tensor] | None = None,
        device: str = "auto",
        seed: int = 0,
        progress: bool | str = "auto",
        random_state: int | None = None,
    ) -> None:
        self.bits, self.use_full_database = bits, bool(use_full_database) or whole
        self.network, self.network_options, self.preset = network, network_options, preset
        self.samples, self.outer, self.inner, self.batch_size, self.lr = samples, outer, inner, batch_size, lr
        self.recipe, self.augment, self.device, self.progress = recipe, augment, device, progress
        self.seed = seed if random_state is None else random_state

    def fit(  # noqa: PLR0913  # public, and its names stay
        self,
        Y: Any = None,
        labels: Any = None,
        *,
        X: Any = None,
        y: Any = None,
        train: Any = None,
        callback: Callback | Callable[[Record], None] | None = None,
        save_to: str | Path | None = None,
        checkpoints: str | Path | None = None,
        checkpoint_every: int | None = 1,
        resume: bool = False,
        overwrite: bool = False,
    ) -> Self:
        """Learn from the items of Y at the indices `train`, by default from all, and encode all of Y.

        Items without a label are not trained on.

        Args:
            Y: As for `ADSH.fit`.
            labels: As for `ADSH.fit`.
            X, y: scikit-learn's names of Y and labels.
            train: The indices of the items to train on; always all for the `_d` variants.
            callback: As for `ADSH.fit`.
            save_to: As for `ADSH.fit`.
            checkpoints: As for `ADSH.fit`.
            checkpoint_every: As for `ADSH.fit`.
            resume: As for `ADSH.fit`.
            overwrite: As for `ADSH.fit`.

        Returns:
            The method itself.
        """
        self._check_params()
        Y, labels = self._given(Y, labels, X, y)
        Y = self._images(Y)
        items, labels = as_items(Y, "Y"), labels_of(Y, labels)
        chosen = np.arange(len(items)) if self.use_full_database else check_train(train, len(items))
        known = check_labels(labels, len(items), chosen, self.name)
        self._check_options()
        table = self._table(known, chosen[~known.empty[known.ids[chosen]]])
        recipe = self._recipe(known, table.num_sampleable)
        self._warn_of_few(table.num_sampleable)
        data = fingerprint(items, known)
        self._names, self._labels = known.names, known
        options = FitOptions(callback, save_to, checkpoints, checkpoint_every, resume, overwrite)
        self._train(FitData(items, items, table, recipe, data, self._encoded_after(table, items)), options)
        return self

    def _recipe(self, labels: LabelSets | None, num_sampleable: int, fits: str = config.BITS) -> config.Recipe:
        """Return the values of the training run, with no fewer items seen than ADSH sees of the same database."""
        recipe = super()._recipe(labels, num_sampleable, fits)
        given = {name for name in _SEEN if getattr(self, name) is not None} | config.current_names(self.recipe or ())
        if self.passes_over_all and not (self.use_full_database or "samples" in given):
            return recipe.replace(samples=num_sampleable)
        if "outer" in self.values or labels is None or given & set(_SEEN):
            return recipe
        labelled = int((~labels.empty[labels.ids]).sum())
        ours = super()._recipe(labels, labelled, config.POSTERIOR)  # the head of ADSH on features, which sees the most
        seen = ours.outer * ours.inner * ours.samples
        return recipe.replace(outer=max(recipe.outer, ceil(seen / (recipe.inner * recipe.samples))))

    def _table(self, labels: LabelSets, members: Indices) -> TrainingPoints:
        return TrainingPoints(labels, members, self.bits, self._loss)

    @abstractmethod
    def _loss(self, table: TrainingPoints, outputs: Tensor, positions: Tensor) -> Tensor:
        """Return the mean loss of these outputs of the training points at these positions.

        Args:
            table: The training points.
            outputs: (b, c) the network's outputs, after the activation.
            positions: (b,) their positions among the training points.

        Returns:
            The mean over the pairs.
        """

    @abstractmethod
    def _gradient(self, table: TrainingPoints, outputs: Tensor, positions: Tensor) -> Tensor:
        """Return the gradient of a batch's loss with respect to its outputs.

        Args:
            table: The training points.
            outputs: As for `_loss`.
            positions: As for `_loss`.

        Returns:
            (b, c) the gradient.
        """

    def _check_options(self) -> None:
        """Raise where an option of this method is wrong: each is a weight."""
        for name in self.weights:
            check_penalty(getattr(self, name), name)

    def _make_gradient(self, table: TrainingPoints, omega: Indices, gamma: float, device: torch.device) -> LossGradient:
        positions = torch.as_tensor(np.searchsorted(table.members, omega), device=device)
        return LossGradient(partial(self._gradient, table), positions)

    def _encoded_after(self, table: TrainingPoints, items: Items) -> Indices:
        return np.arange(len(items))

    def _set_codes(self, table: TrainingPoints, codes: Codes | None) -> None:
        assert codes is not None
        self.code_table_ = LearnedCodes.of_codes(codes, self.bits)

    def _label_sets(self) -> LabelSets | None:
        return self._labels

    def _restore_labels(self, new_labels: Any, names: dict[str, Any]) -> None:
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
        """The label names of the "database"."""
        return {"database": self._names}
