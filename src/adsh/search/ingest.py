"""Items of a source in an index: as a model learned them, coded by its network, or by their labels; and found again.

An item's metadata says its class and leads back to its picture: {"class": "cat", "file": "/photos/cat/1.jpg"}, or, for
an item of an array, the source and its number there.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import astuple, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import Dataset, ResizedDataset
from ..data.dataset import Subset
from ..data.images.decode import SUFFIXES, decode
from ..data.images.files import ImageFiles
from ..data.match_input import resize_for_model
from ..data.prepare import CachedImages, prepare
from ..data.sources.registry import open_source
from ..errors import AdshWarning, InputError
from ..hamming.bits import Codes, pack
from ..index import Index, Matches, open_index
from ..index.locate import MODEL, check_model, inside
from ..learn import LabelSets
from ..models.adsh import load
from ..models.fingerprint import model_fingerprint
from ..models.info import model_info
from ..models.protocol import HashModel
from ..models.storage_format import holds_model
from ..runs.evaluate import Judged

_BLOCK = 512  # items of one durable add; those of the first decide how vectors are shortened

Vectors = NDArray[np.float32] | None
Report = Callable[[int, int], None]  # items done, of how many


@dataclass(frozen=True)
class Put:
    """What was put into an index."""

    new: int
    replaced: int
    already: int  # were there, and left as they are
    unreadable: list[tuple[str, str]]  # key and reason
    seconds: float

    def __add__(self, more: Put) -> Put:
        return Put(*(mine + yours for mine, yours in zip(astuple(self), astuple(more), strict=True)))


@dataclass(frozen=True)
class Source:
    """A source as it was asked for, opened."""

    name: str
    root: str | None
    dataset: Dataset

    @classmethod
    def of(cls, name: str, root: str | None = None, labels: str | None = None) -> Source:
        """Opens it; paths are kept absolute, so that they hold from anywhere."""
        path = Path(name)
        if path.is_file() and path.suffix.lower() in SUFFIXES:  # one picture
            return cls(_absolute(name), None, ImageFiles(path.parent, [path.name], None, name=name))
        opened = open_source(name, root=root, labels=labels)
        return cls(_absolute(name), None if root is None else _absolute(root), opened)


def make(
    folder: Path,
    location: str,
    judged: Judged,
    source: str,
    root: str | None = None,
    *,
    vectors: bool = True,
    report: Report | None = None,
) -> Put:
    """An index of the database that the model in `folder` learned, with the codes it learned; or the rest of one."""
    model, database = judged.model, judged.database
    codes = model.database_codes_
    with open_for(location, folder) as index:
        vectors = vectors and index.keeps_vectors
        seen = model.frozen_features  # of a frozen network that was just trained

        def coded(indices: NDArray[np.int64]) -> tuple[Dataset, Codes, Vectors, list[tuple[str, str]]]:
            some = database.subset(indices)
            features = None if not vectors else model.encode_with_features(some)[1] if seen is None else seen[indices]
            return some, codes[indices], features, []

        return _put(index, len(database), database, Source(source, root, database), coded, report=report)


def add(
    index: Index,
    model: HashModel,
    source: Source,
    *,
    by_label: bool = False,
    vectors: bool = True,
    again: bool = False,
    prefix: str = "",
    skip_bad: bool = False,
    workers: int | None = None,
    report: Report | None = None,
) -> Put:
    """New items: coded by the network or, with `by_label`, by what they are called. Those there already are left.

    Every block is durable when the next begins, so an interrupted call goes on where it stopped when repeated.
    """
    whole = source.dataset
    vectors = vectors and index.keeps_vectors
    if by_label and (whole.labels is None or not model.codes_labels):
        what = f"{source.name} has no labels" if whole.labels is None else "this method has no codes for labels"
        raise InputError(f"{what}: let the network code the items, without --by-label")
    fitted = resize_for_model(whole, model.input_shape_, workers)
    _check_classes(model, whole)

    def coded(indices: NDArray[np.int64]) -> tuple[Dataset, Codes, Vectors, list[tuple[str, str]]]:
        some = fitted.subset(indices)
        bad: list[tuple[str, str]] = []
        if by_label and not vectors:  # nothing needs to be looked at
            return some, _by_label(model, some), None, bad
        if isinstance(fitted, ResizedDataset):  # read once, all of the block, and what cannot be is told together
            block = whole.subset(indices)
            prepared = prepare(block, fitted.size, skip_bad=skip_bad, least=0, workers=workers)
            some, bad = prepared.usable(), prepared.bad
            if not len(some):
                return some, np.empty((0, 0), dtype=np.uint8), None, bad
        codes, features = model.encode_with_features(some)
        return some, _by_label(model, some) if by_label else codes, features if vectors else None, bad

    return _put(index, len(whole), whole, source, coded, again=again, prefix=prefix, report=report)


def _check_classes(model: HashModel, whole: Dataset) -> None:
    """Warns of classes that the model was never told of."""
    known = {str(name) for name in model.known_labels}
    new = [] if whole.labels is None else [str(name) for name in whole.labels.names if str(name) not in known]
    if known and new:
        warnings.warn(
            f"the model was not trained on {_some(new)}: such items are coded poorly; train again with them",
            AdshWarning,
            stacklevel=3,
        )


def open_for(location: str, model: Path) -> Index:
    """The index at this place for the codes of the model in this folder, made where it is missing."""
    index = open_index(inside(location), bits=model_info(model)["bits"], model=model)
    if index.get_note(MODEL) is None:
        index.set_note(MODEL, str(model.absolute()))
    return index


def model_of(index: Index, given: Path | None, device: str | None) -> HashModel:
    """The model that codes for this index: the one given, the one it lies in, or the one it was made with."""
    at = index.get_note(MODEL) if given is None else str(given)
    around = None if index.folder is None else index.folder.absolute().parent
    if given is None and around is not None and holds_model(around) and model_fingerprint(around) == index.model:
        at = str(around)  # they may have been moved together
    if at is None or not Path(at).exists():
        state = (
            "does not say which model its codes are of"
            if at is None
            else f"was made with the model in {at}, which is not there"
        )
        raise InputError(f"the index {state}: give --model FOLDER")
    check_model(index, model_fingerprint(Path(at)), at, "give --model FOLDER, or another index")
    model: HashModel = load(at, device=device)
    return model


def find(
    index: Index,
    model: HashModel,
    queries: Dataset,
    *,
    k: int = 10,
    radius: int | None = None,
    where: dict[str, Any] | None = None,
    ranking: str = "hamming",
    rerank: bool | None = None,
) -> list[Matches]:
    """What is nearest to each query item. Ties are ordered by features where the index has them, unless told not to."""
    if ranking not in ("hamming", "asymmetric"):
        raise InputError(f'ranking={ranking!r}: choose "hamming" or "asymmetric"')
    if radius is not None and (ranking != "hamming" or rerank):
        raise InputError("a radius counts bits: leave out --ranking asymmetric and --rerank")
    if rerank and not index.has_vectors:
        raise InputError("the index holds no vectors to order ties by: build it with them, or leave --rerank out")
    fitted = resize_for_model(queries, model.input_shape_)
    if ranking == "asymmetric":
        if not model.has_bounded_outputs:
            raise InputError("this method has no real-valued outputs: use --ranking hamming")
        outputs = model.outputs(fitted)
        codes, found = pack(outputs), index.search(outputs, k, where=where, ranking="asymmetric")
    else:
        codes, features = model.encode_with_features(fitted)
        if radius is not None:
            found = index.within(codes, radius, where=where, limit=k)
        else:
            ordered = rerank is not False and features is not None and index.has_vectors
            found = index.search(codes, k, where=where, vectors=features if ordered else None, rerank=ordered)
    if where and not any(map(len, found)):
        _check_where(index, codes, where)
    return found


def _check_where(index: Index, codes: Codes, where: dict[str, Any]) -> None:
    """Warns of a field or a value that no item looked at has: a slip of the keyboard finds nothing, like an answer."""
    nearby = [metadata for near in index.search(codes, 100) for metadata in near.metadata]
    known: dict[str, set[str]] = {}  # what is said, by field
    for metadata in [*nearby, *(item.metadata for item in index.sample(1000))]:
        for name, value in (metadata or {}).items():
            known.setdefault(name, set()).update(map(str, value if isinstance(value, list) else [value]))
    for name, condition in where.items():
        if name not in known:
            text = f"no item was seen with a field {name!r}: there are {_some(known)}"
        else:
            tests = condition if isinstance(condition, dict) else {"eq": condition}
            wanted = {str(value) for value in (*tests.get("in", ()), *([tests["eq"]] if "eq" in tests else ()))}
            if not wanted or wanted & known[name]:
                continue
            text = f"no item was seen with {name}={min(wanted)}: there are {_some(known[name])}"
        warnings.warn(text, AdshWarning, stacklevel=3)


def _some(names: Iterable[str], most: int = 8) -> str:
    """The first few, in order."""
    listed = sorted(names)
    return ", ".join([*listed[:most], "…"] if len(listed) > most else listed) or "none"


def picture(metadata: dict[str, Any] | None) -> NDArray[np.uint8] | None:
    """The image that an item's metadata leads back to; None where there is none, or it is gone."""
    told = metadata or {}
    try:
        if isinstance(told.get("file"), str):
            return decode(told["file"])
        if isinstance(told.get("source"), str) and isinstance(told.get("at"), int):
            item = _opened(told["source"], told.get("root"))[told["at"]]
            return item if item.ndim == 3 else None
    except (OSError, InputError, IndexError, TypeError):  # a user's own metadata may say anything
        pass
    return None


@cache
def _opened(name: str, root: str | None) -> Dataset:
    return open_source(name, root=root)


def _put(
    index: Index,
    count: int,
    whole: Dataset,
    source: Source,
    coded: Callable[[NDArray[np.int64]], tuple[Dataset, Codes, Vectors, list[tuple[str, str]]]],
    *,
    again: bool = False,
    prefix: str = "",
    report: Report | None = None,
) -> Put:
    started, new, replaced, already = time.perf_counter(), 0, 0, 0
    was_empty = len(index) == 0
    unreadable: list[tuple[str, str]] = []
    for start in range(0, count, _BLOCK):
        indices = np.arange(start, min(start + _BLOCK, count))
        keys = [prefix + key for key in whole.keys[start : start + _BLOCK]]
        about = [_metadata(whole, at, source) for at in indices.tolist()]
        there = index.get(keys)
        for item, mine in zip(there, about, strict=True):
            if item is not None and not again and _place(item.metadata) != _place(mine):
                raise InputError(
                    f"the key {item.key!r} is in the index for {_place(item.metadata)}: give --prefix TEXT, so that "
                    f"the items of {source.name} have keys of their own; or --again, if it has moved"
                )
        todo = np.array([again or item is None for item in there])
        already += int((~todo).sum())
        if todo.any():
            some, codes, vectors, bad = coded(indices[todo])
            unreadable += bad
            by_key = dict(zip(keys, about, strict=True))
            named = [prefix + key for key in some.keys[: len(some)]]
            with warnings.catch_warnings():
                if count < _BLOCK and was_empty:  # there are no more to decide by
                    warnings.simplefilter("ignore", AdshWarning)
                added = index.add(named, codes, [by_key[key] for key in named], vectors=vectors) if named else 0
            new, replaced = new + added, replaced + len(named) - added
        if report:
            report(int(indices[-1]) + 1, count)
    return Put(new, replaced, already, unreadable, time.perf_counter() - started)


def _by_label(model: HashModel, some: Dataset) -> Codes:
    assert some.labels is not None
    bare = np.flatnonzero(some.labels.empty[some.labels.ids])
    if len(bare):
        raise InputError(f"{some.keys[int(bare[0])]} has no label: let the network code such items, without --by-label")
    return model.code_for(LabelSets.of(some.labels))


def _metadata(dataset: Dataset, at: int, source: Source) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if dataset.labels is not None:
        names = [str(name) for name in dataset.labels.names_of(int(dataset.labels.ids[at]))]
        if names:
            told["class"] = names[0] if len(names) == 1 else names
    base, index = _origin(dataset, at)
    if isinstance(base, ImageFiles):
        return told | {"file": str(base.path(index).absolute())}
    return told | {"source": source.name, "at": index} | ({"root": source.root} if source.root else {})


def _origin(dataset: Dataset, at: int) -> tuple[Dataset, int]:
    """The source behind views of it, and the item's number there."""
    if isinstance(dataset, Subset):
        return _origin(dataset.whole, int(dataset.indices[at]))
    if isinstance(dataset, ResizedDataset):
        return _origin(dataset.whole, at)
    if isinstance(dataset, CachedImages):
        return _origin(dataset.source, at)
    return dataset, at


def _absolute(path: str) -> str:
    """A path that holds from anywhere; a name stays one."""
    return str(Path(path).absolute()) if Path(path).exists() else path


def _place(metadata: dict[str, Any] | None) -> str:
    told = metadata or {}
    return str(told.get("file") or f"{told.get('source')} {told.get('at')}")
