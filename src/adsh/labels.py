"""Labels of every kind that a user may have, as ids into a small table of label sets.

Two points are similar if their sets share a tag. A point's set may hold one tag (a class), several
(multi-label) or none (unlabelled). Learning reads only the number of a point's set, so labels cost one or two
bytes a point, however many points there are.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from math import ceil, log2
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from .errors import InputError
from .utils.arrays import unique_rows

Ids = NDArray[np.integer[Any]]
_BLOCK = 1 << 22  # ids counted at a time, since bincount copies them to int64


class LabelSets:
    """The label set of each point.

    Args:
        ids: (n,) of any integer type, the number of each point's set.
        sets: a (K, L) multi-hot table, or K collections of tags.
    """

    ids: Ids  # (n,)      the label set of each point
    starts: NDArray[np.int64]  # (K + 1,)  tags[starts[k]:starts[k + 1]] are set k's, ascending
    tags: NDArray[np.int64]
    names: tuple[Hashable, ...]  # (L,)      the user's name of each tag
    sizes: NDArray[np.int64]  # (K,)      points that have each set

    def __init__(self, ids: Any, sets: Any) -> None:
        if isinstance(sets, np.ndarray) or hasattr(sets, "detach"):
            table = _multi_hot(_to_numpy(sets), "sets")
            rows, columns = np.nonzero(table)
            self.starts = _starts(np.bincount(rows, minlength=len(table)))
            self.tags, self.names = columns.astype(np.int64), tuple(range(table.shape[1]))
        else:
            collections = _tag_sets(sets, "sets")
            self.names = _sorted_names({tag for tags in collections for tag in tags})
            number = {name: i for i, name in enumerate(self.names)}
            self.starts = _starts([len(tags) for tags in collections])
            self.tags = np.array([t for tags in collections for t in sorted(number[tag] for tag in tags)], np.int64)
        self.ids = _checked_ids(_to_numpy(ids))
        self.sizes = _count(self.ids, len(self.starts) - 1)

    @classmethod
    def of(cls, labels: Any) -> LabelSets:
        """Return labels of any kind as LabelSets: integers, strings, a multi-hot array, lists of tags, or LabelSets.

        -1, None, "" or an empty collection means that a point has no label.

        Raises:
            InputError: these are no labels, or labels of several kinds.
        """
        if isinstance(labels, cls):
            return labels
        if not (isinstance(labels, np.ndarray) or hasattr(labels, "detach")):
            labels = _from_sequence(labels)
            if isinstance(labels, cls):
                return labels
        array = _to_numpy(labels)
        if array.ndim == 2:
            return _from_multi_hot(cls, _multi_hot(array, "labels"))
        if array.ndim != 1:
            raise InputError(f"labels have shape {array.shape}: give (n,) classes or an (n, L) multi-hot array")
        if not len(array):
            raise InputError("labels are empty: give one label a point")
        if array.dtype.kind in "iu":
            return _from_integers(cls, array)
        if array.dtype.kind in "UT":
            return _from_strings(cls, array)
        if array.dtype.kind == "O":
            return cls.of(list(array))
        raise InputError(
            f"labels are of type {array.dtype}: give integers, strings, a multi-hot array or lists of tags"
        )

    @classmethod
    def table(cls, starts: Any, tags: Any, names: Iterable[Hashable]) -> LabelSets:
        """Return label sets without points: set k holds tags[starts[k]:starts[k + 1]].

        Args:
            starts: (K + 1,).
            tags: the tags of all sets, one set after the other.
            names: the name of each tag.

        Returns:
            The label sets, without ids.
        """
        return _build(cls, np.empty(0, dtype=np.uint8), np.asarray(starts), np.asarray(tags), names)

    def __len__(self) -> int:
        return len(self.ids)

    @overload
    def __getitem__(self, index: int) -> tuple[Hashable, ...]: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | NDArray[Any]) -> LabelSets: ...
    def __getitem__(self, index: int | slice | Sequence[int] | NDArray[Any]) -> tuple[Hashable, ...] | LabelSets:
        """Return the names of one point's labels; of several points, given as NumPy takes them, their `LabelSets`."""
        if isinstance(index, int | np.integer):
            return self.names_of(int(self.ids[index]))
        chosen = index if isinstance(index, slice) else np.asarray(index, dtype=None if len(index) else np.int64)
        if not isinstance(chosen, slice) and chosen.ndim != 1:
            raise InputError(f"labels are indexed by an array of shape {chosen.shape}: give one index, a slice or (n,)")
        return self.take(chosen)

    def __repr__(self) -> str:
        return f"LabelSets({len(self):,} points, {self.set_count:,} sets of {len(self.names):,} tags)"

    @property
    def set_count(self) -> int:
        """K, the number of sets in the table, used or not."""
        return len(self.sizes)

    @property
    def empty(self) -> NDArray[np.bool_]:
        """(K,) where a set holds no tag: its points are unlabelled."""
        is_empty: NDArray[np.bool_] = np.diff(self.starts) == 0
        return is_empty

    def take(self, indices: Any) -> LabelSets:
        """Return the labels of these points, in this order, with the same table of sets."""
        return _build(type(self), self.ids[indices], self.starts, self.tags, self.names)

    def with_names(self, names: Sequence[Hashable]) -> LabelSets:
        """Return the same labels with tag t named names[t]; nothing of size n is copied."""
        if len(names) != len(self.names):
            raise InputError(f"{len(names)} names are given for {len(self.names)} tags: give one for each tag")
        return _build(type(self), self.ids, self.starts, self.tags, names, self.sizes)

    def with_ids(self, ids: Ids) -> LabelSets:
        """Return this table of sets for other points, given the number of each point's set."""
        return _build(type(self), _checked_ids(_to_numpy(ids)), self.starts, self.tags, self.names)

    called, over = with_names, with_ids  # their earlier names

    def names_of(self, label_set: int) -> tuple[Hashable, ...]:
        """Return the user's names of one set's tags."""
        return tuple(self.names[t] for t in self.tags[self.starts[label_set] : self.starts[label_set + 1]])

    def holders(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return `starts` and `sets`, the table by tag: tag t is in the sets sets[starts[t]:starts[t + 1]]."""
        order = np.argsort(self.tags, kind="stable")
        sets = np.repeat(np.arange(self.set_count), np.diff(self.starts))[order]
        return _starts(np.bincount(self.tags, minlength=len(self.names))), sets

    def tags_in(self, names: Sequence[Hashable]) -> NDArray[np.int64]:
        """Return `tags` renumbered as positions among other names; a tag that is not among them is -1."""
        kinds, others = {type(name) for name in self.names}, {type(name) for name in names}
        if kinds and others and not kinds & others and {str, int} <= kinds | others:
            name, other = self.names[0], names[0]
            raise InputError(
                f"some labels are {type(name).__name__} ({name!r}) and others {type(other).__name__} ({other!r}): "
                "name them in the same way"
            )
        position = {name: i for i, name in enumerate(names)}
        renumber = np.array([position.get(name, -1) for name in self.names], dtype=np.int64)
        return renumber[self.tags]


def plain_labels(labels: Any) -> Any:
    """Return labels as `LabelSets.of` takes them: class numbers that a table holds as floats become integers.

    A column with a missing value is one of floats, so NaN means that an item has no label.
    """
    if hasattr(labels, "to_numpy") and not isinstance(labels, LabelSets):  # a column of a table
        labels = labels.to_numpy()
    elif hasattr(labels, "__array__") and not hasattr(labels, "__getitem__"):
        labels = np.asarray(labels)
    if not isinstance(labels, np.ndarray) or labels.ndim != 1 or labels.dtype.kind != "f":
        return labels
    missing = np.isnan(labels)
    if np.isinf(labels).any() or (labels[~missing] % 1).any():
        raise InputError("Unknown label type: continuous. Labels are classes: give integers or strings")
    return np.where(missing, -1, labels).astype(np.int64)


def _build(
    cls: type[LabelSets],
    ids: Ids,
    starts: NDArray[np.int64],
    tags: NDArray[np.int64],
    names: Iterable[Hashable],
    sizes: NDArray[np.int64] | None = None,
) -> LabelSets:
    """Build a LabelSets from its attributes.

    Args:
        cls: the class to build.
        ids, starts, tags, names: its attributes.
        sizes: how many points have each set; counted unless given.

    Returns:
        The label sets.
    """
    labels = cls.__new__(cls)
    labels.ids, labels.starts, labels.tags, labels.names = ids, starts, tags, tuple(names)
    labels.sizes = _count(ids, len(starts) - 1) if sizes is None else sizes
    return labels


def _from_integers(cls: type[LabelSets], labels: Ids) -> LabelSets:
    """Return label sets of classes by number. Where they are 0..K-1, the array itself becomes the ids."""
    low, high = int(labels.min()), int(labels.max())
    if low < -1:
        raise InputError(f"labels hold {low}: give classes from 0, and -1 for no label")
    ids: Ids
    if high - low >= 1 << 20:  # sparse numbers: sort them
        values, ids = np.unique(labels, return_inverse=True)
        counts = np.bincount(ids)
    else:
        ids = labels if low == 0 else in_blocks(labels, lambda block: block - low, smallest_unsigned(high - low + 1))
        counts = _count(ids, high - low + 1)
        used = np.flatnonzero(counts)
        if len(used) < len(counts):  # numbers that no point has
            number: NDArray[Any] = np.zeros(len(counts), dtype=smallest_unsigned(len(used)))
            number[used] = np.arange(len(used))
            ids = in_blocks(ids, lambda block: number[block], number.dtype)
        values, counts = used + low, counts[used]
    return _one_tag_a_set(cls, ids, values.tolist(), unlabelled=low == -1, sizes=counts)


def in_blocks(ids: Ids, change: Callable[[Ids], Ids], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Apply `change` block by block, so that its intermediate arrays are never of size n.

    Args:
        ids: (n,).
        change: returns as many values as it is given ids.
        dtype: of the result.

    Returns:
        Array (n,) of the changed values.
    """
    changed = np.empty(len(ids), dtype=dtype)
    for start in range(0, len(ids), _BLOCK):
        changed[start : start + _BLOCK] = change(ids[start : start + _BLOCK])
    return changed


def _from_strings(cls: type[LabelSets], labels: NDArray[Any]) -> LabelSets:
    names, ids = np.unique(labels, return_inverse=True)
    small = ids.astype(smallest_unsigned(len(names)))
    return _one_tag_a_set(cls, small, names.tolist(), unlabelled=names[0] == "")


def _one_tag_a_set(
    cls: type[LabelSets], ids: Ids, names: list[Any], *, unlabelled: bool, sizes: NDArray[np.int64] | None = None
) -> LabelSets:
    """Build label sets of one tag each: set k holds names[k].

    Args:
        cls: the class to build.
        ids: (n,), the number of each point's set.
        names: of the sets.
        unlabelled: whether the first set is the empty one.
        sizes: as of `_build`.

    Returns:
        The label sets.
    """
    starts = np.maximum(np.arange(len(names) + 1) - int(unlabelled), 0)
    return _build(cls, ids, starts, np.arange(starts[-1]), names[int(unlabelled) :], sizes)


def _from_multi_hot(cls: type[LabelSets], labels: NDArray[np.bool_]) -> LabelSets:
    packed, ids, counts = unique_rows(np.packbits(labels, axis=1))
    table = np.unpackbits(packed, axis=1, count=labels.shape[1])
    rows, columns = np.nonzero(table)
    starts = _starts(np.bincount(rows, minlength=len(table)))
    small = ids.astype(smallest_unsigned(len(table)))
    return _build(cls, small, starts, columns, range(labels.shape[1]), counts)


def _from_sequence(labels: Any) -> Any:
    """Return a list of classes as an array, or a list of collections of tags as LabelSets."""
    if isinstance(labels, str) or not hasattr(labels, "__iter__"):
        raise InputError(f"labels are {labels!r}: give one label a point, in a list or an array")
    items = list(labels)
    if not items:
        raise InputError("labels are empty: give one label a point")
    if all(item is None or isinstance(item, str) for item in items):
        return np.array([item or "" for item in items])
    if all(item is None or (isinstance(item, int | np.integer) and not isinstance(item, bool)) for item in items):
        return np.array([-1 if item is None else item for item in items])
    number: dict[frozenset[Hashable], int] = {}
    ids = [number.setdefault(tags, len(number)) for tags in _tag_sets(items, "labels", single=False)]
    return LabelSets(np.array(ids, dtype=smallest_unsigned(len(number))), list(number))


def _tag_sets(items: Any, what: str, *, single: bool = True) -> list[frozenset[Hashable]]:
    """Return each item as a set of tags.

    Args:
        items: tags or collections of tags; None for no tag.
        what: what errors call them.
        single: whether a string or an integer is a set of one.

    Returns:
        One set for each item.
    """
    sets: list[frozenset[Hashable]] = []
    for item in items:
        if item is None:
            sets.append(frozenset())
        elif single and isinstance(item, str | int | np.integer):
            sets.append(frozenset([item]))
        elif not isinstance(item, list | tuple | set | frozenset):
            kinds = "all integers, all strings, or " if not single else ""
            raise InputError(f"{what} hold {item!r}: give {kinds}a collection of tags each")
        # [0, 1, 0] as tags would be the set {0, 1}: it may be a multi-hot row, so it is refused.
        elif len(item) > len(set(item)) and set(item) <= {0, 1}:
            raise InputError(f"{what} are lists that look multi-hot: pass numpy.array({what}) for multi-hot rows")
        else:
            sets.append(frozenset(item))
    return sets


def _multi_hot(table: NDArray[Any], what: str) -> NDArray[np.bool_]:
    if table.ndim != 2 or not table.shape[1] or table.dtype.kind not in "biuf":
        raise InputError(f"{what} have shape {table.shape} and type {table.dtype}: multi-hot is (n, L) of 0 and 1")
    hot = table.astype(bool)
    if table.dtype.kind != "b" and not np.array_equal(hot, table):
        if table.shape[1] == 1:
            raise InputError(f"{what} have shape {table.shape}: pass {what}.ravel() for classes by number")
        odd = table[hot != table].flat[0]
        raise InputError(f"{what} hold {odd}: give 0 and 1 only (multi-hot), or a (n,) array of class numbers")
    return hot


def _checked_ids(ids: NDArray[Any]) -> Ids:
    if ids.ndim != 1 or ids.dtype.kind not in "iu":
        raise InputError(
            f"ids have shape {ids.shape} and type {ids.dtype}: give (n,) integers, the number of each point's set"
        )
    return ids


def _count(ids: Ids, sets: int) -> NDArray[np.int64]:
    """Return how many points have each set. Reads the ids in blocks, and copies nothing of size n."""
    counts = np.zeros(sets, dtype=np.int64)
    for start in range(0, len(ids), _BLOCK):
        block = ids[start : start + _BLOCK]
        if block.min() < 0 or block.max() >= sets:
            odd = block[(block < 0) | (block >= sets)][0]
            raise InputError(f"ids hold {odd}, but the table has {sets} sets, numbered 0 to {sets - 1}")
        counts += np.bincount(block, minlength=sets)
    return counts


def check_columns(labels: Any, what: str, columns: int, whose: str) -> None:
    """Raise unless multi-hot labels have as many columns as others, since columns are the names of labels.

    Args:
        labels: of any kind; other than multi-hot ones pass.
        what: what the error calls them.
        columns: how many they must have.
        whose: what has these columns, with its verb.
    """
    if getattr(labels, "ndim", 1) == 2 and labels.shape[1] != columns:
        raise InputError(
            f"{what} are multi-hot of {labels.shape[1]} columns, but {whose} {columns}: use the same columns"
        )


def smallest_unsigned(values: int) -> np.dtype[Any]:
    """Return the smallest unsigned type that holds 0 .. values - 1."""
    return np.min_scalar_type(max(values - 1, 0))


def _starts(lengths: Any) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def _sorted_names(names: set[Hashable]) -> tuple[Hashable, ...]:
    plain = [name.item() if isinstance(name, np.generic) else name for name in names]
    for name in plain:
        if not isinstance(name, str | int):
            raise InputError(f"a tag is {name!r}: tags are strings or integers")
    return tuple(sorted(set(plain), key=lambda name: (type(name).__name__, name)))


def _to_numpy(values: Any) -> NDArray[Any]:
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def advised_bits(classes: int) -> int:
    """Return a code length that tells so many classes apart with room for their likeness; a multiple of 8.

    Four bits for each doubling of the classes. Half as many again, or twice as many, gain .007 of MAP on Caltech-101
    and .013 on CUB-200, and .013 and .027 on new items: results/benchmarks/many_classes.jsonl.
    """
    return max(16, 8 * ceil(4 * log2(max(classes, 2)) / 8))
