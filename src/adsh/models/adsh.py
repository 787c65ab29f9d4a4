"""ADSH, the front door: fit, encode, code_for, save, load."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import nn

from ..config import FROZEN_PREFIX
from ..data import Dataset, Items, as_items
from ..data.fingerprint import Fingerprint, fingerprint, of_similarity
from ..errors import InputError
from ..hamming.bits import Codes
from ..labels import check_columns
from ..learn import CodeTable, LabelSets, LearnedCodes
from ..learn.learned_codes import NewLabels
from ..learn.objective import ObjectiveTerms
from ..train.callbacks import Callback
from ..train.state import BatchGradient, Record
from .deep_hash import DeepModel, Indices
from .fitting import FitData, FitOptions
from .registry import register_model
from .storage import read_model


class ADSH(DeepModel):
    """Learns a binary code for every database point, and a network that codes any new one.

    bits        code length, 1 to 1024
    network     "linear" or "mlp" for features, "tiny", "efficientnet_lite0", "alexnet", … for images (see
                adsh.networks), or any torch.nn.Module `bits` wide (a copy of it is trained)
    network_options
                options of a network given by name: {"weights": "alexnet.pth"}, {"size": 160}
    preset      "modern", "fast", "paper", "authors-matlab" or "authors-pytorch": see adsh.config
    gamma, samples, outer, inner, batch_size, lr
                values in place of the preset's: gamma, m, T_out, T_in of the paper
    recipe      any other value of adsh.config.Recipe in place of the preset's: {"ema": 0.995, "flip": True}
    unlabelled  "network": database points without a label take no part in learning and are coded by the
                network afterwards; "dissimilar": they take part, similar to nothing
    device      "auto", "cpu", "cuda", …
    seed        the same seed, data and machine give the same codes
    progress    "auto" shows a line on a terminal; True or False

    After `fit`: database_codes_ and code_table_, the table of distinct rows behind them (`rows`, `row_numbers`,
    `dense()`); history_, network_, device_, and recipe_, the values used.
    """

    name = "adsh"
    codes_labels = True

    def __init__(
        self,
        bits: int,
        *,
        network: str | nn.Module = "mlp",
        network_options: dict[str, Any] | None = None,
        preset: str = "modern",
        gamma: float | None = None,
        samples: int | None = None,
        outer: int | None = None,
        inner: int | None = None,
        batch_size: int | None = None,
        lr: float | None = None,
        recipe: dict[str, Any] | None = None,
        unlabelled: str = "network",
        device: str = "auto",
        seed: int = 0,
        progress: bool | str = "auto",
    ) -> None:
        self.bits = bits
        self.network = network
        self.network_options = network_options
        self.preset = preset
        self.gamma = gamma
        self.samples = samples
        self.outer = outer
        self.inner = inner
        self.batch_size = batch_size
        self.lr = lr
        self.recipe = recipe
        self.unlabelled = unlabelled
        self.device = device
        self.seed = seed
        self.progress = progress

    def fit(
        self,
        Y: Any,
        labels: Any = None,
        *,
        queries: Any = None,
        query_labels: Any = None,
        similarity: Any = None,
        callback: Callback | Callable[[Record], None] | None = None,
        save_to: str | Path | None = None,
        checkpoints: str | Path | None = None,
        checkpoint_every: int = 1,
        resume: bool = False,
        overwrite: bool = False,
        features: str | Path | None = None,
    ) -> Self:
        """Learns the codes of the database Y and the network.

        Y is features (n, d), uint8 images (n, H, W, 3), or a sequence of such items that is read by index; an
        `adsh.data` dataset brings its labels along.
        Labels are (n,) integers or strings, an (n, L) multi-hot array, a collection of tags a point, or
        `LabelSets`; -1, None, "" and an empty collection mean that the point has no label.

        With `labels`, or an n x n `similarity`, queries are sampled from Y (eq. 4). With separate `queries`
        and their `query_labels`, or an m x n `similarity`, eq. (3) is solved. `callback` gets the record of
        each outer iteration; where it has a method `started`, that gets the facts of the run first.
        `save_to` is checked before training starts, and written after it.

        `checkpoints` is a folder that keeps the last two standings, written every `checkpoint_every` outer
        iterations. With `resume`, training goes on from the last whole one, to the same codes and weights as if it
        had never stopped; one of another configuration or of other data is refused. With `overwrite`, those of an
        earlier run are forgotten once this one starts.

        Inside a process group of torch.distributed its processes share the work: all call `fit` alike, and each ends
        with the whole model. The first alone writes, and calls `callback`. With `recipe={"parts": 4}`, on a CPU, it is
        the same bit for bit in 1, 2 and 4 processes.

        `features` is a .npy that keeps what a network "frozen:NAME" sees of the items: an interrupted fit goes on with
        it. Without it they are in memory.
        """
        self._check_params()
        if labels is None and similarity is None and isinstance(Y, Dataset):
            labels = Y.labels
        if query_labels is None and similarity is None and isinstance(queries, Dataset):
            query_labels = queries.labels
        items = as_items(Y, "Y")
        asked = items if queries is None else as_items(queries, "queries")
        if asked.shape != items.shape:
            raise InputError(f"queries have items of shape {asked.shape}, but those of Y have {items.shape}")
        table = self._table(items, asked if queries is not None else None, labels, query_labels, similarity)
        recipe = self._recipe(table.label_sets, table.num_sampleable)
        recipe = recipe.replace(gamma=0.0 if table.separate_queries else recipe.gamma)  # eq. (3) has no gamma term
        table.target = recipe.target(self.bits)
        data = self._fingerprint(items, asked if queries is not None else None, table, similarity)
        options = FitOptions(callback, save_to, checkpoints, checkpoint_every, resume, overwrite, features)
        self._train(FitData(items, asked, table, recipe, data, self._coded_later(table, items)), options)
        return self

    @property
    def caches_features(self) -> bool:
        """Whether `fit` takes features=: with a network "frozen:NAME"."""
        return isinstance(self.network, str) and self.network.startswith(FROZEN_PREFIX)

    @property
    def known_labels(self) -> tuple[Hashable, ...]:
        """Every label that the database had; none after a fit on a given similarity."""
        self._check_fitted()
        return () if self._new_labels is None else tuple(self._new_labels.database.names)

    def code_for(self, labels: Any) -> Codes:
        """(n, bytes) codes for new labelled items without their images.

        A label set of the database gives its commonest code. A new one gives the fixed point of eq. (9): the
        code that training would settle on, near those that share its labels and far from the rest. A label
        that the database never had is similar to nothing.
        """
        self._check_fitted()
        if self._new_labels is None:
            raise InputError("this model was fitted on a given similarity, not on labels: code new items with encode()")
        sets = LabelSets.of(labels)
        check_columns(labels, "labels", len(self._new_labels.database.names), "the database has")
        return self._new_labels.codes(sets)

    def _table(self, items: Items, queries: Items | None, labels: Any, query_labels: Any, similarity: Any) -> CodeTable:
        n = len(items)
        if (labels is None) == (similarity is None):
            both = labels is not None
            raise InputError("give either labels or similarity" + (", not both" if both else ": fit(Y, labels)"))
        if (query_labels is not None) and (queries is None or similarity is not None):
            raise InputError("query_labels go with queries and labels: give all three")
        if similarity is not None:
            asked = n if queries is None else len(queries)
            if isinstance(similarity, list | tuple):
                try:
                    similarity = np.asarray(similarity)
                except ValueError:
                    raise InputError("similarity is a list of rows of unlike lengths: give a matrix") from None
            shape = np.shape(similarity)
            if tuple(shape) != (asked, n):
                wanted = f"{asked} x {n} (queries x database)" if queries is not None else f"{n} x {n}"
                raise InputError(f"similarity has shape {tuple(shape)}, but these items need {wanted}")
            return CodeTable.from_similarity(similarity, self.bits, separate_queries=queries is not None)
        database = _labels_for(items, labels, "labels", "Y")
        asking = None
        if queries is not None:
            if query_labels is None:
                raise InputError("queries without query_labels: give the queries' labels too")
            asking = _labels_for(queries, query_labels, "query_labels", "queries")
            check_columns(query_labels, "query_labels", len(database.names), "the database has")
        return CodeTable(database, self.bits, queries=asking, unlabelled=self.unlabelled)

    def _fingerprint(self, items: Items, queries: Items | None, table: CodeTable, similarity: Any) -> Fingerprint:
        marks = fingerprint(items, table.label_sets)
        if queries is not None:
            marks |= fingerprint(queries, table.query_label_sets, "queries")
        return marks if similarity is None else marks | of_similarity(similarity)

    def _make_gradient(self, table: CodeTable, omega: Indices, gamma: float, device: torch.device) -> BatchGradient:
        return ObjectiveTerms.of(table, omega, gamma, device)

    def _coded_later(self, table: CodeTable, items: Items) -> Indices | None:
        if table.points == len(items):
            return None
        return np.flatnonzero(table.row_numbers() == len(table.rows))

    def _keep(self, table: CodeTable, coded: Codes | None) -> None:
        self.code_table_ = LearnedCodes.of(table, coded)
        self._new_labels = NewLabels.of(table, self.code_table_)

    def _restore(self, new_labels: NewLabels | None, names: dict[str, Any]) -> None:
        self._new_labels = new_labels

    @property
    def label_names_(self) -> dict[str, tuple[Any, ...]]:
        """What the labels of each side are called; none after a fit on a given similarity."""
        new = self._new_labels
        return {} if new is None else {"database": new.database.names, "queries": new.queries.names}


register_model(ADSH.name, ADSH)


def load(folder: str | Path, *, network: nn.Module | None = None, device: str | None = None) -> Any:
    """The model saved in `folder`, ADSH or another method.

    `network` is needed where it was fitted with a module of the user's own.
    """
    return read_model(Path(folder), network=network, device=device)


def _labels_for(items: Items, labels: Any, what: str, whose: str) -> LabelSets:
    sets = LabelSets.of(labels)
    if len(sets) != len(items):
        raise InputError(f"{what} are for {len(sets)} points, but {whose} has {len(items)}: give one label set a point")
    return sets
