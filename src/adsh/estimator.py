"""ADSH, the front door: fit, encode, code_for, save, load."""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from . import config
from .checkpoints import Checkpoints, found
from .coding import encode, outputs, told_weights, try_out
from .data import Dataset, Items, as_items
from .data.augment import augmentation
from .data.feed import Feed
from .data.fingerprint import Fingerprint, fingerprint, of_similarity
from .device import DeviceChoice, choose_device, threads_for
from .errors import AdshWarning, InputError, NotFittedError
from .hamming.bits import Codes, check_bits
from .learn import CodeTable, LabelSets, LearnedCodes
from .learn.labels import check_columns
from .learn.learned_codes import NewLabels
from .learn.loop import Record, Standing, learn
from .model_folder import check_target, read, write
from .networks import create_network
from .progress import Progress


class ADSH:
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

    history_: list[Record]
    network_: nn.Module
    device_: DeviceChoice
    recipe_: config.Recipe
    code_table_: LearnedCodes
    input_shape_: tuple[int, ...]
    fitted_params_: dict[str, Any]  # as they were when fit was called
    fingerprint_: Fingerprint  # of the data of the fit
    _new_labels: NewLabels | None

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
        callback: Callable[[Record], None] | None = None,
        save_to: str | Path | None = None,
        checkpoints: str | Path | None = None,
        checkpoint_every: int = 1,
        resume: bool = False,
        overwrite: bool = False,
    ) -> ADSH:
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
        """
        progress = Progress(self.progress)
        bits = check_bits(self.bits)
        if isinstance(self.seed, bool) or not isinstance(self.seed, int | np.integer) or not 0 <= self.seed < 1 << 63:
            raise InputError(f"seed={self.seed!r}: give a whole number of at least 0, below 2^63")
        if labels is None and similarity is None and isinstance(Y, Dataset):
            labels = Y.labels
        if query_labels is None and similarity is None and isinstance(queries, Dataset):
            query_labels = queries.labels
        items = as_items(Y, "Y")
        asked = items if queries is None else as_items(queries, "queries")
        if asked.shape != items.shape:
            raise InputError(f"queries have items of shape {asked.shape}, but those of Y have {items.shape}")
        table = self._table(items, asked if queries is not None else None, labels, query_labels, similarity)
        recipe = self._recipe(table)
        choice = choose_device(self.device)
        data = self._fingerprint(items, asked if queries is not None else None, table, similarity)
        store = self._checkpoints(checkpoints, checkpoint_every, resume, overwrite, recipe, data)
        left_out = np.flatnonzero(table.row_numbers() == len(table.rows)) if table.points < len(items) else None
        if left_out is not None:
            items.read_through(left_out)  # they are coded after training: what cannot be read is told before it

        devices = [choice.device] if choice.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            torch.manual_seed(int(self.seed))
            network = self._network(bits, items.shape, recipe).to(choice.device)
            feed = Feed(asked, choice.device)
            try_out(network, feed, bits)
            if save_to is not None:
                check_target(Path(save_to), network, table.number_bytes(recipe.outer * recipe.samples))
            if store is not None:
                store.check_space(network, table.state_bytes(recipe.outer * recipe.samples))

            def at_start(standing: Standing) -> None:
                if store is not None and overwrite:
                    store.clear()
                if store is not None and resume:
                    store.restore(standing)
                kind = "images" if len(items.shape) == 3 else "items"
                facts = {
                    "device": str(choice), "items": kind, "points": len(items), "rows": len(table.rows), "bits": bits,
                    "done": len(standing.history), "recipe": asdict(recipe), "data": data,
                    "weights": told_weights(network),
                }  # fmt: skip
                progress.started(facts)
                tell = getattr(callback, "started", None)
                if tell:
                    tell(facts)

            def after_outer(standing: Standing) -> None:
                progress.outer(standing.history[-1])
                if callback:
                    callback(standing.history[-1])
                if store is not None:
                    store.save(standing)

            with threads_for(network, choice.device), feed:
                history = learn(
                    network,
                    feed,
                    table,
                    recipe,
                    device=choice.device,
                    seed=int(self.seed),
                    augment=augmentation(recipe, asked.shape),
                    resume=at_start,
                    after_outer=after_outer,
                )
            others = None if left_out is None else encode(network, items, choice.device, recipe, left_out)

        self.network_, self.device_, self.recipe_, self.history_ = network.eval(), choice, recipe, history
        self.input_shape_, self.fitted_params_, self.fingerprint_ = items.shape, self.get_params(), data
        self.code_table_ = LearnedCodes.of(table, others)
        self._new_labels = NewLabels.of(table, self.code_table_)
        if save_to is not None:
            self.save(save_to)
        return self

    def encode(self, X: Any) -> Codes:
        """(n, bytes) packed codes of new items, by the network: u = sign(F(x))."""
        items = self._new_items(X)
        return encode(self.network_, items, self.device_.device, self.recipe_, range(len(items)))

    def outputs(self, X: Any) -> NDArray[np.float32]:
        """(n, c) the network's real-valued outputs, tanh(F(x)), in -1 .. 1."""
        items = self._new_items(X)
        batches = outputs(self.network_, items, self.device_.device, self.recipe_, range(len(items)))
        return np.concatenate([batch.cpu().numpy() for batch in batches])

    @property
    def database_codes_(self) -> Codes:
        """(n, bytes) packed codes of the database: as learned, or by the network for points without a label."""
        self._check_fitted()
        return self.code_table_.codes()

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

    def save(self, folder: str | Path) -> None:
        """Writes the model into a folder, whole or not at all; an older model there is replaced."""
        self._check_fitted()
        write(self, Path(folder))

    # scikit-learn's protocol --------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor's arguments."""
        names = list(inspect.signature(type(self).__init__).parameters)[1:]
        return {name: getattr(self, name) for name in names}

    def set_params(self, **params: Any) -> ADSH:
        """Sets arguments of the constructor."""
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise InputError(f"ADSH has no parameter {name!r}: choose from {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        shown = [
            f"{name}={type(value).__name__}(…)" if isinstance(value, nn.Module) else f"{name}={value!r}"
            for name, value in self.get_params().items()
            if name != "bits" and (isinstance(value, nn.Module) or value != defaults[name].default)
        ]
        return f"ADSH({', '.join([repr(self.bits), *shown])})"

    # The parts of fit and encode ----------------------------------------------------------------------

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

    def _recipe(self, table: CodeTable) -> config.Recipe:
        given = {k: getattr(self, k) for k in ("gamma", "samples", "outer", "inner", "batch_size", "lr")}
        given = {**(self.recipe or {}), **{name: value for name, value in given.items() if value is not None}}
        sets = table.label_sets
        multi = sets is not None and int(np.diff(sets.starts).max()) > 1
        spec = getattr(self.network, "adsh_spec", None)
        name = self.network if isinstance(self.network, str) else spec["name"] if spec else "module"
        recipe = config.recipe(self.preset, name, multi_label=multi, **given)
        if self.samples is not None and self.samples > table.askers:
            warnings.warn(
                f"samples={self.samples} is more than the {table.askers} points to sample from: all of them are taken",
                AdshWarning,
                stacklevel=3,
            )
        gamma = 0.0 if table.separate_queries else recipe.gamma  # eq. (3) has no gamma term
        return replace(recipe, samples=min(recipe.samples, table.askers), gamma=gamma)

    def _fingerprint(self, items: Items, queries: Items | None, table: CodeTable, similarity: Any) -> Fingerprint:
        marks = fingerprint(items, table.label_sets)
        if queries is not None:
            marks |= fingerprint(queries, table.query_label_sets, "queries")
        return marks if similarity is None else marks | of_similarity(similarity)

    def _checkpoints(
        self,
        folder: str | Path | None,
        every: int,
        resume: bool,
        overwrite: bool,
        recipe: config.Recipe,
        data: Fingerprint,
    ) -> Checkpoints | None:
        if folder is None:
            if resume:
                raise InputError("resume=True without checkpoints: give the folder they are in")
            return None
        network = self.network if isinstance(self.network, str) else type(self.network).__qualname__
        chosen = {"bits": self.bits, "network": network, "seed": self.seed, "unlabelled": self.unlabelled}
        chosen |= {f"network {name}": value for name, value in (self.network_options or {}).items()}
        store = Checkpoints(Path(folder), every, {**chosen, **asdict(recipe)}, data)
        if not resume and not overwrite and found(store.folder):
            raise InputError(f"{folder} holds checkpoints of an earlier run: resume it, or give an empty folder")
        return store

    def _network(self, bits: int, shape: tuple[int, ...], recipe: config.Recipe) -> nn.Module:
        if isinstance(self.network, nn.Module):
            if self.network_options:
                raise InputError("network_options go with a network's name: set them on the module itself")
            return copy.deepcopy(self.network)
        options = {"size": recipe.size} if recipe.size and len(shape) == 3 else {}
        network = create_network(self.network, bits, shape, **{**options, **(self.network_options or {})})
        head = getattr(network, "head", None)
        if recipe.head_std is not None and isinstance(head, nn.Linear):
            nn.init.normal_(head.weight, std=recipe.head_std)
            nn.init.zeros_(head.bias)
        return network

    def _new_items(self, X: Any) -> Items:
        self._check_fitted()
        items = as_items(X, "X")
        if len(items.shape) != len(self.input_shape_) or items.shape[-1] != self.input_shape_[-1]:
            raise InputError(f"items of X have shape {items.shape}, but the model was fitted on {self.input_shape_}")
        return items

    def _check_fitted(self) -> None:
        if not hasattr(self, "code_table_"):
            raise NotFittedError("this ADSH is not fitted yet: call fit, or adsh.load a saved model")


def load(folder: str | Path, *, network: nn.Module | None = None, device: str | None = None) -> ADSH:
    """The model saved in `folder`; `network` is needed where it was fitted with a module of the user's own."""
    return read(Path(folder), network=network, device=device)


def _labels_for(items: Items, labels: Any, what: str, whose: str) -> LabelSets:
    sets = LabelSets.of(labels)
    if len(sets) != len(items):
        raise InputError(f"{what} are for {len(sets)} points, but {whose} has {len(items)}: give one label set a point")
    return sets
