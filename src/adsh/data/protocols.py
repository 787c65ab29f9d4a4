"""The splits that papers report on, by name, drawn from a seed.

A protocol reads only the labels and the seed, so a split can be drawn before any image is read; `check_overlap` finds
images that are among both queries and database, under whatever names.

    name      for        queries              validation   database                training
    holdout   anything   a tenth, <= 1,000 *  -            the others              -
    all       anything   -                    -            every item              -
    paper     CIFAR-10   1,000                1,000        the others (58,000)     500 a class of the database
    59k       CIFAR-10   100 a class          -            the others (59,000)     500 a class of the database
    54k       CIFAR-10   100 a class          -            the others (54,000)     500 a class, not in the database
    50k       CIFAR-10   the published test   -            the others (50,000)     500 a class of the database
    nuswide   NUS-WIDE   2,100                2,100        the others              10,500 of the database
    coco      MS-COCO    5,000 of the         -            all training images     10,000 of the database
                         validation images                 (82,081)
    coco17    coco17     1,000                -            the others              5,000 of the database
    8-per-class  classes  8 a class           -            the others              -
    published anything   the published test   -            the others              -

* of the labelled items: nothing is relevant to one without a label. `paper` means `nuswide` for a dataset of that
name. `training` is for the methods that learn from a sample; where it is empty, they learn from the database.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import InputError
from .dataset import Dataset
from .splits import Indices, Split

__all__ = ["PROTOCOLS", "Indices", "Split", "split"]

_HOLDOUT_SHARE, _HOLDOUT_MOST = 0.1, 1000  # queries of the protocol `holdout`


def split(dataset: Dataset, protocol: str = "holdout", seed: int = 0) -> Split:
    """Draw a split.

    Args:
        dataset: what to split.
        protocol: one of `PROTOCOLS`: holdout, all, paper, 59k, 54k, 50k, nuswide, coco, coco17, 8-per-class or
            published.
        seed: the same seed gives the same split.

    Returns:
        The indices of queries, database, training and validation items.

    Raises:
        InputError: there is no such protocol, or the dataset is too small for it.
    """
    if protocol == "paper" and dataset.name == "nuswide":
        protocol = "nuswide"
    if protocol not in PROTOCOLS:
        raise InputError(f"protocol={protocol!r}: choose {', '.join(PROTOCOLS)}")
    if seed < 0:
        raise InputError(f"seed={seed}: give 0 or more")
    return PROTOCOLS[protocol](_Draw(dataset, protocol, seed))


class _Draw:
    """The items not drawn yet, and the seed's generator.

    Args:
        dataset: what to split.
        protocol: its name, for the split and for errors.
        seed: of the generator.
    """

    def __init__(self, dataset: Dataset, protocol: str, seed: int) -> None:
        self.dataset, self.protocol, self.seed = dataset, protocol, seed
        self.rng = np.random.default_rng(seed)
        self.left = np.arange(len(dataset))

    def items(self, count: int) -> Indices:
        """Draw `count` items at random, and remove them from those left."""
        if count >= len(self.left):
            raise self.too_small(f"{count:,} of the {len(self.left):,} items left")
        return self.take(np.sort(self.rng.choice(self.left, count, replace=False)))

    def per_class(self, count: int, keep: bool = False) -> Indices:
        """Draw `count` items of each class at random; with `keep` they stay among those left."""
        labels = self.dataset.labels
        if labels is None or (np.diff(labels.starts) > 1).any():
            raise InputError(
                f"protocol={self.protocol!r} draws by class, and {self.dataset.name} has "
                f"{'no labels' if labels is None else 'several labels an item'}: choose holdout"
            )
        label_sets = labels.ids[self.left]
        drawn = []
        for number in np.flatnonzero((labels.sizes > 0) & ~labels.empty):
            members = self.left[label_sets == number]
            if count > len(members):
                name = labels.names_of(int(number))[0]
                raise self.too_small(f"{count:,} of the {len(members):,} items left of the class {name}")
            drawn.append(self.rng.choice(members, count, replace=False))
        found = np.sort(np.concatenate(drawn))
        return found if keep else self.take(found)

    def take(self, found: Indices) -> Indices:
        """Remove these items from those left, and return them."""
        self.left = np.setdiff1d(self.left, found, assume_unique=True)
        return found

    def sample_left(self, count: int) -> Indices:
        """Draw `count` of the items left at random; they stay among those left."""
        if count > len(self.left):
            raise self.too_small(f"{count:,} of the {len(self.left):,} items left")
        return np.sort(self.rng.choice(self.left, count, replace=False))

    def too_small(self, amount: str) -> InputError:
        """Return the error for a dataset that has too few items."""
        return InputError(
            f"protocol={self.protocol!r} draws {amount}: {self.dataset.name} is too small for it; choose holdout"
        )

    def split(self, queries: Indices, validation: Indices | None = None, training: Indices | None = None) -> Split:
        """Return the split whose database is the items left.

        Args:
            queries: their indices.
            validation, training: theirs; none unless given.

        Returns:
            The split.
        """
        none = np.empty(0, dtype=np.int64)
        return Split(
            self.protocol,
            self.seed,
            queries=queries,
            database=self.left,
            validation=none if validation is None else validation,
            training=none if training is None else training,
        )


def _all(draw: _Draw) -> Split:
    return draw.split(np.empty(0, dtype=np.int64))


def _holdout(draw: _Draw) -> Split:
    labels = draw.dataset.labels
    labelled = draw.left if labels is None else draw.left[~labels.empty[labels.ids]]  # nothing is relevant to others
    count = min(max(1, round(len(labelled) * _HOLDOUT_SHARE)), _HOLDOUT_MOST)
    return draw.split(draw.take(np.sort(labelled[draw.rng.permutation(len(labelled))[:count]])))


def _paper(draw: _Draw) -> Split:
    queries, validation = draw.items(1000), draw.items(1000)
    return draw.split(queries, validation, draw.per_class(500, keep=True))


def _59k(draw: _Draw) -> Split:
    queries = draw.per_class(100)
    return draw.split(queries, training=draw.per_class(500, keep=True))


def _54k(draw: _Draw) -> Split:
    queries = draw.per_class(100)
    return draw.split(queries, training=draw.per_class(500))


def _8_per_class(draw: _Draw) -> Split:
    return draw.split(draw.per_class(8))


def _published(draw: _Draw) -> Split:
    return draw.split(_test_part(draw))


def _test_part(draw: _Draw) -> Indices:
    """Remove the published test part from the items left, and return it."""
    start = draw.dataset.test_from
    if start is None:
        raise InputError(
            f"protocol={draw.protocol!r} takes the published test part as queries, and {draw.dataset.name} has none: "
            "choose holdout"
        )
    return draw.take(np.arange(start, len(draw.dataset)))


def _50k(draw: _Draw) -> Split:
    queries = _test_part(draw)
    return draw.split(queries, training=draw.per_class(500, keep=True))


def _nuswide(draw: _Draw) -> Split:
    queries, validation = draw.items(2100), draw.items(2100)
    return draw.split(queries, validation, draw.sample_left(10_500))


def _coco(draw: _Draw) -> Split:
    draw.left = _test_part(draw)  # the validation images; those that are no query are in no part of the split
    queries = draw.items(5000)
    draw.left = np.arange(draw.dataset.test_from or 0)
    return draw.split(queries, training=draw.sample_left(10_000))


def _coco17(draw: _Draw) -> Split:
    return draw.split(draw.items(1000), training=draw.sample_left(5000))


PROTOCOLS: dict[str, Callable[[_Draw], Split]] = {
    "holdout": _holdout,
    "all": _all,
    "paper": _paper,
    "59k": _59k,
    "54k": _54k,
    "50k": _50k,
    "nuswide": _nuswide,
    "coco": _coco,
    "coco17": _coco17,
    "8-per-class": _8_per_class,
    "published": _published,
}
