"""ADSH, Asymmetric Deep Supervised Hashing (Jiang and Li, 2018): fit, encode, code_for, save; and `load`."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..config import BITS, FROZEN_PREFIX, POSTERIOR, Recipe
from ..data import Items, adapt, as_items
from ..data.fingerprint import Fingerprint, fingerprint, of_similarity
from ..data.items import labels_of
from ..errors import InputError
from ..hamming.bits import DEFAULT_BITS, Codes
from ..labels import check_columns
from ..learn import CodeTable, LabelSets, LearnedCodes
from ..learn.changes import Changes
from ..learn.class_table import ClassGradient, ClassTable
from ..learn.class_votes import MOST
from ..learn.head_choice import choose_head
from ..learn.learned_codes import NewLabels
from ..learn.objective import ObjectiveTerms
from ..networks.frozen import Frozen
from ..networks.label_set_scores import LabelSetScores
from ..networks.posterior import Posterior
from ..networks.traits import traits_of
from ..train.callbacks import Callback
from ..train.checkpoint import started_configuration
from ..train.state import Activation, BatchGradient, Loader, Record
from .deep_hash import DeepHash, Indices
from .familiarity import measure_familiarity
from .fit_inputs import build_table, class_sizes
from .fitting import FitData, FitOptions
from .hub import download, is_hub_name
from .posterior_head import give_codes
from .protocol import familiarity_of
from .registry import register_model
from .storage import read_model
from .update import choose_replay, update


class ADSH(DeepHash):
    """Learn a binary code for every database point, and a network that encodes any new one.

    After `fit`: `database_codes_` and `code_table_`, the table of distinct rows behind them (`rows`, `row_numbers`,
    `dense()`); `history_`, `network_`, `device_`, and `recipe_`, the values used.

    Args:
        bits: Code length, 1 to 1024.
        network: "linear" or "mlp" for features, "tiny", "efficientnet_lite0", "alexnet", … for images (see
            adsh.networks), or any torch.nn.Module with `bits` outputs, of which a copy is trained.
        network_options: Options of a network given by name: {"weights": "alexnet.pth"}, {"size": 160}.
        preset: "modern", "fast", "paper", "authors-matlab" or "authors-pytorch": see adsh.config.
        gamma: gamma of the paper, in place of the preset's.
        samples: m of the paper, the points sampled in an outer iteration, in place of the preset's.
        outer: T_out of the paper, the outer iterations, in place of the preset's.
        inner: T_in of the paper, the epochs in each, in place of the preset's.
        batch_size: In place of the preset's.
        lr: The learning rate, in place of the preset's.
        recipe: Any other value of adsh.config.Recipe in place of the preset's: {"ema_decay": 0.995, "flip": True}.
        augment: Your own augmentation: a function of a batch of images (n, channels, H, W) in 0 .. 1, called after the
            recipe's. It is not saved with the model.
        unlabelled: "network": database points without a label are left out of training, and encoded by the network
            afterwards; "dissimilar": they take part, similar to nothing.
        device: "auto", "cpu", "cuda", …
        seed: The same seed, data and machine give the same codes.
        progress: "auto" shows a line on a terminal; or True or False.
        keep: Items of each label to keep beside the model, so that `update` does not forget them; 0 for none. They are
            saved with the model: images, or features where it takes features.
        random_state: scikit-learn's name of `seed`.
    """

    name = "adsh"
    codes_labels = True

    def __init__(  # noqa: PLR0913  # a public constructor
        self,
        bits: int = DEFAULT_BITS,
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
        augment: Callable[[Tensor], Tensor] | None = None,
        unlabelled: str = "network",
        device: str = "auto",
        seed: int = 0,
        progress: bool | str = "auto",
        keep: int = 100,
        random_state: int | None = None,
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
        self.augment = augment
        self.unlabelled = unlabelled
        self.device = device
        self.seed = seed if random_state is None else random_state
        self.progress = progress
        self.keep = keep

    def fit(  # noqa: PLR0913  # public, and its names stay
        self,
        Y: Any = None,
        labels: Any = None,
        *,
        X: Any = None,
        y: Any = None,
        queries: Any = None,
        query_labels: Any = None,
        similarity: Any = None,
        callback: Callback | Callable[[Record], None] | None = None,
        save_to: str | Path | None = None,
        checkpoints: str | Path | None = None,
        checkpoint_every: int | None = 1,
        resume: bool = False,
        overwrite: bool = False,
        features: str | Path | None = None,
    ) -> Self:
        """Learn the codes of the database Y, and the network.

        With `labels`, or an n x n `similarity`, queries are sampled from Y (eq. 4). With separate `queries` and their
        `query_labels`, or an m x n `similarity`, eq. (3) is solved.

        In a process group of torch.distributed the processes share the work: all call `fit` with the same arguments,
        and each ends with the full model. Rank 0 alone writes, and calls `callback`. On a CPU, with
        `recipe={"deterministic_shards": 4}`, the result is bit for bit the same in 1, 2 and 4 processes.

        Args:
            Y: Features (n, d), uint8 images (n, H, W, 3), or a sequence of such items that is read by index; an
                `adsh.data` dataset brings its labels along.
            labels: (n,) integers or strings, an (n, L) multi-hot array, a collection of tags per point, or `LabelSets`;
                -1, None, "" and an empty collection mean that a point has no label.
            X, y: scikit-learn's names of Y and labels.
            queries: Separate query items, as Y.
            query_labels: Their labels, as `labels`.
            similarity: A matrix in place of labels: above 0 for similar pairs.
            callback: A function of the record of each outer iteration, or an `adsh.train.callbacks.Callback`.
            save_to: A folder to save the model to; checked before training starts.
            checkpoints: A folder that keeps the last two checkpoints.
            checkpoint_every: How many outer iterations lie between two checkpoints; None for one every half minute,
                where training is expected to take over two minutes.
            resume: Continue from the last complete checkpoint, to the same codes and weights as without the
                interruption. Checkpoints of another configuration or other data are refused.
            overwrite: Delete the checkpoints of an earlier run once this one starts.
            features: A .npy file for what a network "frozen:NAME" computes of the items, so that an interrupted fit
                continues with it; in memory by default.

        Returns:
            The model itself.
        """
        self._check_params()
        Y, labels = self._given(Y, labels, X, y)
        Y, queries = self._images(Y), self._images(adapt(queries, "queries"))
        if similarity is None:
            labels, query_labels = labels_of(Y, labels), labels_of(queries, query_labels)
        items = as_items(Y, "Y")
        query_items = items if queries is None else as_items(queries, "queries")
        if query_items.shape != items.shape:
            raise InputError(f"queries have items of shape {query_items.shape}, but those of Y have {items.shape}")
        table = build_table(
            items, query_items if queries is not None else None, labels, query_labels, similarity, self.bits,
            self.unlabelled,
        )  # fmt: skip
        sizes = class_sizes(table) if isinstance(self.network, str) else None
        given = [*(self.recipe or {}), *(["gamma"] if self.gamma is not None else [])]
        fits, why = (BITS, "") if sizes is None else choose_head(self.bits, sizes, str(self.network), given)
        started = started_configuration(Path(checkpoints)) if resume and checkpoints is not None else None
        if started is not None:  # an earlier version may have chosen another head
            fits, why = started.get("head", BITS), "the run began with it"
        recipe = self._recipe(table.label_sets, table.num_sampleable, fits)
        self._warn_of_few(table.num_sampleable)
        if recipe.head == POSTERIOR and (sizes is None or (sizes.several and sizes.count > MOST)):
            raise InputError(
                f"head='posterior' needs labels, a network given by its name and, where items have several labels, at "
                f"most {MOST:,} label sets: leave it out"
            )
        chosen = f"a posterior head, since {why}" if recipe.head == fits == POSTERIOR else None
        recipe = recipe.replace(gamma=0.0 if table.separate_queries else recipe.gamma)  # eq. (3) has no gamma term
        table.target = recipe.target(self.bits)
        learned: CodeTable | ClassTable = ClassTable(table, int(self.seed)) if recipe.head == POSTERIOR else table
        data = self._fingerprint(items, query_items if queries is not None else None, table, similarity)
        options = FitOptions(callback, save_to, checkpoints, checkpoint_every, resume, overwrite, features)
        after = self._encoded_after(table, items)
        self.lineage_ = ()
        self._train(FitData(items, query_items, learned, recipe, data, after, chosen), options)
        return self

    def update(  # noqa: PLR0913  # public, and its names are those of `fit`
        self,
        Y: Any = None,
        labels: Any = None,
        *,
        changes: Changes | None = None,
        old: Any = None,
        outer: int | None = None,
        callback: Callback | Callable[[Record], None] | None = None,
        save_to: str | Path | None = None,
        checkpoints: str | Path | None = None,
        checkpoint_every: int | None = 1,
        resume: bool = False,
        overwrite: bool = False,
        features: str | Path | None = None,
    ) -> Self:
        """Learn codes of new items and of those whose labels change, and let the network follow; other codes stay.

        The database then has the items that stay, in their order, and the new ones after them. Codes of items whose
        labels did not change keep every bit, so an index of them stays as it is.

        Args:
            Y: New items, as for `fit`; None for none.
            labels: Their labels, of known classes or of new ones, in the form that `fit` was given.
            changes: Other labels, other names of classes, and items to remove.
            old: The items of the database before, in their order, for the network to learn from; by default the few
                that the model kept (`keep`).
            outer: Outer iterations; by default half of those of a fit.
            callback, save_to, checkpoints, checkpoint_every, resume, overwrite, features: As for `fit`. To resume, call
                `update` of the same model with the same arguments.

        Returns:
            The model itself. Where training fails, it is as it was.
        """
        self._check_fitted()
        options = FitOptions(callback, None, checkpoints, checkpoint_every, resume, overwrite, features)
        Y = self._images(adapt(Y, "Y"))
        update(self, Y, labels, Changes() if changes is None else changes, old, outer, options)
        if save_to is not None:
            self.save(save_to)
        return self

    def familiarity(self, X: Any) -> NDArray[np.float64]:
        """Return (n,) how familiar items look: the share of items of known classes that look no more familiar.

        Of items of known classes, 1 in 100 has less than .01. Features are compared with those of the known classes
        (`learn.familiarity`): the network is sure of items of classes that it never saw.
        """
        self._check_fitted()
        if self.familiarity_ is None:
            raise InputError("this model does not know what is familiar: fit one on labels, a few items of each class")
        features = None if len(self.input_shape_) == 1 else self.encode_with_features(X)[1]
        found = familiarity_of(self, X, features)
        assert found is not None
        return found

    @property
    def caches_features(self) -> bool:
        """Whether `fit` takes features=: with a network "frozen:NAME"."""
        return isinstance(self.network, str) and self.network.startswith(FROZEN_PREFIX)

    @property
    def known_labels(self) -> tuple[Hashable, ...]:
        """Every label of the database; none after a fit on a similarity matrix."""
        self._check_fitted()
        return () if self._new_labels is None else tuple(self._new_labels.database.names)

    @property
    def database_labels_(self) -> LabelSets:
        """The labels of each item of the database; the empty set where it has none."""
        self._check_fitted()
        if self._new_labels is None:
            raise InputError("this model was fitted on a similarity matrix: its items have no labels")
        return self.code_table_.labels(self._new_labels.database)

    def code_for(self, labels: Any) -> Codes:
        """Return (n, bytes) codes for new labelled items, without their images.

        A label set of the database gets the code that most of its items have; eq. (9) is not solved again, so it is no
        fixed point where training had not converged. A new one gets the fixed point of eq. (9): the code that training
        would converge to, near those that share its labels and far from the others. A label that the database does not
        have is similar to nothing.
        """
        self._check_fitted()
        if self._new_labels is None:
            raise InputError(
                "this model was fitted on a similarity matrix, not on labels: encode new items with encode()"
            )
        sets = LabelSets.of(labels)
        check_columns(labels, "labels", len(self._new_labels.database.names), "the database has")
        return self._new_labels.codes(sets)

    def _after_fit(self, data: FitData, features: NDArray[np.float32] | None) -> None:
        """Choose the items to keep for updates, and measure what is familiar."""
        table = data.table.learned if isinstance(data.table, ClassTable) else data.table
        assert isinstance(table, CodeTable)
        self.replay_ = self.familiarity_ = None
        if table.label_sets is not None and not table.separate_queries:
            items = data.items if features is None else as_items(features)
            self.replay_ = choose_replay(self, items, table.label_sets, np.arange(len(items)))
            self.familiarity_ = measure_familiarity(self, items, table.label_sets, np.arange(len(items)))

    def _fingerprint(self, items: Items, queries: Items | None, table: CodeTable, similarity: Any) -> Fingerprint:
        marks = fingerprint(items, table.label_sets)
        if queries is not None:
            marks |= fingerprint(queries, table.query_label_sets, "queries")
        return marks if similarity is None else marks | of_similarity(similarity)

    def _make_gradient(
        self, table: CodeTable | ClassTable, omega: Indices, gamma: float, device: torch.device
    ) -> BatchGradient:
        if isinstance(table, ClassTable):
            return ClassGradient.of(table, omega, device)
        return ObjectiveTerms.of(table, omega, gamma, device)

    def _head_options(self, recipe: Recipe, table: Any) -> dict[str, Any]:
        if recipe.head != POSTERIOR:
            return {}
        if not table.several_labels:
            return {"classes": table.bits}
        return {"classes": len(table.learned.label_sets.names), "label_sets": table.bits}

    def _network(self, bits: int, shape: tuple[int, ...], recipe: Recipe, table: Any) -> nn.Module:
        network = super()._network(bits, shape, recipe, table)
        head = traits_of(network.top if isinstance(network, Frozen) else network).head
        if isinstance(head, LabelSetScores):
            head.set_label_sets(torch.as_tensor(table.members()), torch.as_tensor(table.rows.count))
        return network

    def _activation(self, recipe: Recipe) -> Activation:
        return nn.Identity() if recipe.head == POSTERIOR else torch.tanh

    def _finish(self, network: nn.Module, table: CodeTable | ClassTable, loader: Loader) -> None:
        if isinstance(table, ClassTable):
            assert isinstance(network, Posterior)
            give_codes(network, table, loader, int(self.seed))

    def _build_network(self, name: str, shape: Sequence[int], options: dict[str, Any], width: int) -> nn.Module:
        return super()._build_network(name, shape, options, self.bits)  # a posterior head is wider in training alone

    def _encoded_after(self, table: CodeTable, items: Items) -> Indices | None:
        if table.points == len(items):
            return None
        return np.flatnonzero(table.row_numbers() == len(table.rows))

    def _set_codes(self, table: CodeTable | ClassTable, codes: Codes | None) -> None:
        table = table.learned if isinstance(table, ClassTable) else table
        self.code_table_ = LearnedCodes.of(table, codes)
        self._new_labels = NewLabels.of(table, self.code_table_)

    def _label_sets(self) -> LabelSets | None:
        return None if self._new_labels is None else self.database_labels_

    def _restore_labels(self, new_labels: NewLabels | None, names: dict[str, Any]) -> None:
        self._new_labels = new_labels

    @property
    def label_names_(self) -> dict[str, tuple[Any, ...]]:
        """The label names of the "database" and the "queries"; empty after a fit on a similarity matrix."""
        new = self._new_labels
        return {} if new is None else {"database": new.database.names, "queries": new.queries.names}


register_model(ADSH.name, ADSH)


def load(
    folder: str | Path,
    *,
    network: nn.Module | None = None,
    device: str | None = None,
    revision: str | None = None,
    cache: str | Path | None = None,
    offline: bool = False,
) -> Any:
    """Return the model saved in a folder or on a hub, ADSH or another method.

    Args:
        folder: Where a model was saved; or owner/name on a hub, for which huggingface_hub is needed.
        network: The user's own module that it was fitted with, where it was.
        device: Where to put its network; by default where it was trained.
        revision: On a hub, a branch, tag or commit.
        cache: Where models of a hub are kept; huggingface_hub's folder unless given.
        offline: Take a model of a hub from the cache alone.

    Returns:
        The fitted model.
    """
    if is_hub_name(folder):
        folder = download(str(folder), revision, cache, offline=offline)
    elif revision is not None:
        raise InputError(f"revision={revision!r} goes with owner/name on a hub, and {folder} is a folder: leave it out")
    return read_model(Path(folder), network=network, device=device)
