"""scikit-learn's protocol: X and y, transform, predict, score, and the tags that its tools read.

A model is used in `Pipeline`, `GridSearchCV` and `cross_val_score` as scikit-learn's own are. Nothing here imports
scikit-learn unless it asks for tags.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..data import ArrayDataset, adapt, open_table
from ..data.tables import column_names, is_table
from ..errors import InputError, NotFittedError
from ..hamming.bits import Codes, unpack
from ..labels import LabelSets, plain_labels
from ..utils.arrays import unique_rows
from .parameters import Parameters
from .registry import import_object

if TYPE_CHECKING:
    from sklearn.utils import Tags

_MAP = "adsh.evaluate.metrics:mean_average_precision"  # of a room above this one


class ScikitEstimator(Parameters):
    """What scikit-learn's tools call of a model, beside `fit`, `get_params` and `set_params`."""

    needs_labels: ClassVar[bool] = True  # whether `fit` does
    input_shape_: tuple[int, ...]

    if TYPE_CHECKING:  # of the classes below this one
        fit: Callable[..., Any]
        encode: Callable[[Any], Codes]
        _check_fitted: Callable[[], None]
        _label_sets: Callable[[], LabelSets | None]

        @property
        def database_codes_(self) -> Codes:
            """(n, bytes) packed codes of the database."""

    def transform(self, X: Any) -> NDArray[np.int8]:
        """Return (n, bits) the codes of X as +1/-1, one column a bit; `encode` gives the same bits packed."""
        self._check_table(X)
        return unpack(self.encode(X), self.bits)

    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> NDArray[np.int8]:
        """Return `fit(X, y).transform(X)`: what the hash function gives, where `database_codes_` has what was learned.

        Args:
            X: As for `fit`.
            y: Its labels.
            **fit_params: Further arguments of `fit`.

        Returns:
            (n, bits) of +1/-1.
        """
        fitted: ScikitEstimator = self.fit(X, y, **fit_params)
        return fitted.transform(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class that most of the nearest database items have, all at the smallest distance.

        Returns:
            (n,) classes or, where items have several labels, (n, L) 0 or 1 for each of `classes_`.
        """
        self._check_table(X)
        labels = self._known_labels()
        codes, position, _ = unique_rows(self.database_codes_)
        keep = ~labels.empty[labels.ids]
        found, count = np.unique(np.stack([position[keep], labels.ids[keep]], axis=1), axis=0, return_counts=True)
        chosen = _nearest_sets(self.encode(X), codes, found, count, labels.set_count)
        if _several(labels):
            return multi_hot(labels)[chosen]
        names = np.array([labels.names_of(k)[0] if len(labels.names_of(k)) else None for k in range(labels.set_count)])
        used = names[np.unique(labels.ids[keep])]
        return names[chosen].astype(np.array(used.tolist()).dtype)

    def score(self, X: Any, y: Any) -> float:
        """Return the mean average precision of X as queries, whose labels are y, of the items of the fit.

        Equal distances count as their expectation over all orders.
        """
        self._check_table(X)
        labels = self._known_labels()
        if y is None:
            raise InputError("score without labels: give y, the labels of X")
        y = plain_labels(y)
        mean: float = import_object(_MAP)(self.encode(X), self.database_codes_, y, labels, bits=self.bits)
        return mean

    @property
    def classes_(self) -> NDArray[Any]:
        """(L,) the labels of the database, in order."""
        labels = self._known_labels()
        names = labels.names
        if not _several(labels):
            used = labels.tags[labels.starts[:-1][(labels.sizes > 0) & ~labels.empty]]
            names = tuple(names[t] for t in np.unique(used))
        return np.array(names)

    @property
    def n_features_in_(self) -> int:
        """d of the features that the model was fitted on; there is none for images."""
        shape = vars(self).get("input_shape_", ())
        if len(shape) != 1:
            raise AttributeError("n_features_in_ is there after a fit on features")
        return int(shape[0])

    @property
    def n_bits_(self) -> int:
        """The columns that `transform` gives."""
        self._check_fitted()
        return self.bits

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the columns of `transform`: adsh0, adsh1, …"""
        self._check_fitted()
        name = type(self).__name__.lower()
        return np.array([f"{name}{k}" for k in range(self.bits)], dtype=object)

    @property
    def random_state(self) -> int:
        """scikit-learn's name of `seed`."""
        return self.seed

    @random_state.setter
    def random_state(self, value: int) -> None:
        self.seed = value

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "input_shape_")

    def __sklearn_tags__(self) -> Tags:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags, TransformerTags

        supervised = self.needs_labels
        return Tags(
            estimator_type="classifier" if supervised else None,  # folds then have the same share of each class
            target_tags=TargetTags(required=supervised, multi_output=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            classifier_tags=ClassifierTags(multi_label=True) if supervised else None,
            input_tags=InputTags(),
            requires_fit=True,
        )

    # For `fit` and `encode` ---------------------------------------------------------------------------

    def _given(self, Y: Any, labels: Any, X: Any, y: Any) -> tuple[Any, Any]:
        """Return the database and its labels, by whichever names `fit` was given them.

        Args:
            Y: The database.
            labels: Its labels.
            X: The database by scikit-learn's name.
            y: Its labels by scikit-learn's name.

        Returns:
            The database and its labels.
        """
        for ours, theirs, pair in ((Y, X, "Y and X"), (labels, y, "labels and y")):
            if ours is not None and theirs is not None:
                raise InputError(f"{pair} are two names of one argument: give one of them")
        items, labels = (X if Y is None else Y), (y if labels is None else labels)
        names = _feature_names(items)
        vars(self).pop("feature_names_in_", None)  # of an earlier fit
        if isinstance(labels, str) and is_table(items):  # the column of labels
            items, labels = open_table(items, label=labels, name="Y"), None
        elif is_table(items):
            items = open_table(items, label=None if labels is None else False, name="Y")
        if names is not None and isinstance(items, ArrayDataset) and items.items.shape[1] == len(names):
            self.feature_names_in_ = names
        return adapt(items, "Y"), plain_labels(labels)

    def _check_table(self, X: Any) -> None:
        """Raise where X is no table (n, d) of as many features as the model was fitted on, if it was on features."""
        self._check_fitted()
        names, known = _feature_names(X), vars(self).get("feature_names_in_")
        if names is not None and known is not None and list(names) != list(known):
            raise InputError(
                f"The feature names should match those that were passed during fit: {', '.join(known[:5])}, …, in this "
                "order"
            )
        shape = np.shape(X) if isinstance(X, np.ndarray | list | tuple) else ()
        if len(self.input_shape_) == 1 and len(shape) == 1 and np.asarray(X).dtype.kind in "biuf":
            raise InputError(f"X has shape {shape}. Reshape your data: one item is X[None], one feature is X[:, None]")

    def _known_labels(self) -> LabelSets:
        """Return the labels of the items of the fit; raise where the model does not have them."""
        self._check_fitted()
        labels = self._label_sets()
        if labels is None:
            raise InputError(
                f"this {type(self).__name__} does not know the labels of its items, as after a fit without labels, or "
                "of a method that was loaded: fit it with labels"
            )
        return labels


def _feature_names(X: Any) -> NDArray[Any] | None:
    """Return the names of a table's columns, where all are texts; None for anything else."""
    names = column_names(X) if is_table(X) else []
    return np.array(names, dtype=object) if names and all(isinstance(name, str) for name in names) else None


def not_fitted(message: str) -> NotFittedError:
    """Return the error to raise; where scikit-learn is in use, it is one of scikit-learn's too."""
    theirs = getattr(sys.modules.get("sklearn.exceptions"), "NotFittedError", None)
    if theirs is None:
        return NotFittedError(message)
    both: type[NotFittedError] = type("NotFittedError", (NotFittedError, theirs), {})
    return both(message)


def wrong_width(model: Parameters, what: str, given: int, fitted: int) -> InputError:
    """Return the error for items of another number of features, in scikit-learn's words.

    Args:
        model: The model.
        what: The argument.
        given: How many features its items have.
        fitted: How many those of the fit had.

    Returns:
        The error.
    """
    return InputError(
        f"{what} has {given} features, but {type(model).__name__} is expecting {fitted} features as input: give the "
        "same features as to fit"
    )


def multi_hot(labels: LabelSets) -> NDArray[np.int64]:
    """Return (K, L) the table of label sets, 1 where a set has a label."""
    table = np.zeros((labels.set_count, len(labels.names)), dtype=np.int64)
    table[np.repeat(np.arange(labels.set_count), np.diff(labels.starts)), labels.tags] = 1
    return table


def _several(labels: LabelSets) -> bool:
    """Return whether some items have several labels."""
    sizes = np.diff(labels.starts)[labels.sizes > 0]
    return bool(len(sizes)) and int(sizes.max()) > 1


def _nearest_sets(
    queries: Codes, codes: Codes, found: NDArray[np.int64], count: NDArray[np.int64], sets: int
) -> NDArray[np.int64]:
    """Return (n,) the commonest label set among the items nearest to each query; the first of equally common ones.

    Args:
        queries: (n, bytes) packed codes.
        codes: (R, bytes) the distinct codes of the database.
        found: (P, 2) the pairs of code and label set that occur.
        count: (P,) how often.
        sets: How many label sets there are.

    Returns:
        The numbers of label sets.
    """
    distinct, position, _ = unique_rows(queries)
    labelled = codes[found[:, 0]]  # (P, bytes)
    chosen = np.empty(len(distinct), dtype=np.int64)
    for at, code in enumerate(distinct):
        distance = np.bitwise_count(labelled ^ code).sum(axis=1, dtype=np.int64)
        nearest = np.flatnonzero(distance == distance.min())
        chosen[at] = np.bincount(found[nearest, 1], weights=count[nearest], minlength=sets).argmax()
    return chosen[position]
