"""Put the items of a source into an index: with the codes that a model learned, or encoded by its network or labels."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..data import Dataset
from ..data.images.decode import SUFFIXES
from ..data.images.files import ImageFiles
from ..data.match_input import resize_for_model
from ..data.prepare import prepare
from ..data.sources.registry import open_source
from ..errors import AdshWarning, InputError
from ..hamming.bits import Codes
from ..index import Index
from ..labels import LabelSets
from ..models.protocol import HashModel, ItemEncoder
from .index_model import open_for_model
from .item_metadata import OWN_FIELDS, describe_item, location_of
from .searcher import join_some

_BLOCK = 512  # items of one durable add; the vectors of the first block decide how all are compressed

Vectors = NDArray[np.float32] | None
Progress = Callable[[int, int], None]  # items done, of how many
Unreadable = list[tuple[str, str]]  # keys and reasons


@dataclass(frozen=True)
class IngestResult:
    """How many items an ingestion added, replaced and skipped."""

    added: int
    replaced: int
    skipped: int  # already in the index, and left as they are
    unreadable: Unreadable
    seconds: float
    by_label: int = 0  # of those added or replaced, items with the codes of their labels

    def __add__(self, other: IngestResult) -> IngestResult:
        return IngestResult(*(left + right for left, right in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True)
class IndexSource:
    """An opened source, with how to open it again: each item's metadata says that."""

    name: str
    root: str | None
    dataset: Dataset

    @classmethod
    def open(cls, name: str, root: str | None = None, labels: str | None = None) -> IndexSource:
        """Open a source; paths become absolute, so that they hold from anywhere.

        Args:
            name: A source, or one image file.
            root: Where the files of a named source are.
            labels: A .npy file of labels, for a source of arrays.

        Returns:
            The opened source.
        """
        path = Path(name)
        if path.is_file() and path.suffix.lower() in SUFFIXES:
            return cls(_absolute(name), None, ImageFiles(path.parent, [path.name], None, name=name))
        dataset = open_source(name, root=root, labels=labels)
        return cls(_absolute(name), None if root is None else _absolute(root), dataset)


@dataclass(frozen=True)
class IngestOptions:
    """How to ingest items.

    Attributes:
        by_label: Encode items by their labels, as training would (True), or by the network (False). None does the first
            for items whose labels were all trained, and the second for others.
        vectors: Store feature vectors too; None for as the index has it.
        reencode: Encode and replace items that are in the index already.
        prefix: What the keys start with.
        skip_bad: Leave out files that cannot be read, and list them.
        workers: Threads that read files.
    """

    by_label: bool | None = None
    vectors: bool | None = True
    reencode: bool = False
    prefix: str = ""
    skip_bad: bool = False
    workers: int | None = None


class _Block(NamedTuple):
    """Encoded items, ready to be added."""

    items: Dataset  # those that could be read
    codes: Codes
    vectors: Vectors
    unreadable: Unreadable
    by_label: int = 0  # items that got codes of their labels
    by_network: NDArray[np.bool_] | bool = True  # items whose codes the network gave


def build_index(
    location: str,
    folder: Path,
    model: HashModel,
    source: IndexSource,
    *,
    vectors: bool = True,
    progress: Progress | None = None,
) -> IngestResult:
    """Index the database that a model was trained on, with the codes it learned; or complete such an index.

    Args:
        location: Where the index is, or is to be created.
        folder: The model's folder.
        model: The same model, loaded.
        source: Its database, in the order of training.
        vectors: Store feature vectors too; every item is read for that.
        progress: Called with the number of items done, and of all items.

    Returns:
        How many items were added, replaced, skipped and left out.
    """
    database, codes = source.dataset, model.database_codes_
    unlabelled = _coded_by_network(model, database)
    with open_for_model(location, folder) as index:
        vectors = vectors and index.keeps_vectors
        known_features = model.frozen_features  # of a frozen network that was just trained

        def encode_block(indices: NDArray[np.int64]) -> _Block:
            items = database.subset(indices)
            features = None
            if vectors:
                features = model.encode_with_features(items)[1] if known_features is None else known_features[indices]
            return _Block(items, codes[indices], features, [], by_network=unlabelled[indices])

        return _ingest_blocks(index, source, encode_block, IngestOptions(), progress)


def ingest(
    index: Index,
    model: ItemEncoder,
    source: IndexSource,
    options: IngestOptions | None = None,
    progress: Progress | None = None,
) -> IngestResult:
    """Encode new items and add them to an index; items with known keys are skipped unless `reencode` is set.

    Items with labels that were trained get the codes of those, which are as good as those of training, and the others
    what the network makes of them; `options` can ask for one of the two.

    Every block is durable before the next begins, so an interrupted call continues where it stopped when repeated.

    Args:
        index: The index to add to.
        model: The model that its codes are of.
        source: The items.
        options: How to encode and store them.
        progress: Called with the number of items done, and of all items.

    Returns:
        How many items were added, replaced, skipped and left out.
    """
    options = options or IngestOptions()
    dataset = source.dataset
    vectors = (index.has_vectors if options.vectors is None else options.vectors) and index.keeps_vectors
    by_label = _encoded_by_label(model, source, options.by_label)
    resized = resize_for_model(dataset, model.input_shape_, options.workers)
    _warn_of_new_classes(model, dataset)

    def encode_block(indices: NDArray[np.int64]) -> _Block:
        items, labelled = resized.subset(indices), by_label[indices]
        if labelled.all() and not vectors:  # no image needs to be read
            return _Block(items, _codes_of_labels(model, items), None, [], len(items), False)
        unreadable: Unreadable = []
        if resized.image_size is not None:  # read the block once, and report all of its unreadable files together
            prepared = prepare(
                dataset.subset(indices), resized.image_size, skip_bad=options.skip_bad, least=0, workers=options.workers
            )
            items, unreadable, labelled = prepared.usable(), prepared.bad, labelled[prepared.readable]
            if not len(items):
                return _Block(items, np.empty((0, 0), dtype=np.uint8), None, unreadable)
        codes, features = model.encode_with_features(items)
        if labelled.any():
            codes[labelled] = _codes_of_labels(model, items.subset(np.flatnonzero(labelled)))
        return _Block(items, codes, features if vectors else None, unreadable, int(labelled.sum()), ~labelled)

    return _ingest_blocks(index, source, encode_block, options, progress)


def _ingest_blocks(
    index: Index,
    source: IndexSource,
    encode_block: Callable[[NDArray[np.int64]], _Block],
    options: IngestOptions,
    progress: Progress | None,
) -> IngestResult:
    """Encode and add the items block by block, all but those that are in the index already.

    Args:
        index: The index to add to.
        source: The items.
        encode_block: Encodes the items at these indices of the source.
        options: How to store them.
        progress: As of `ingest`.

    Returns:
        What `ingest` returns.
    """
    started, added, replaced, skipped, by_label = time.perf_counter(), 0, 0, 0, 0
    dataset, prefix = source.dataset, options.prefix
    count, was_empty = len(dataset), len(index) == 0
    _warn_of_own_columns(dataset)
    unreadable: Unreadable = []
    for start in range(0, count, _BLOCK):
        indices = np.arange(start, min(start + _BLOCK, count))
        keys = [prefix + key for key in dataset.keys[start : start + _BLOCK]]
        metadata = {
            key: describe_item(dataset, position, source.name, source.root)
            for key, position in zip(keys, indices.tolist(), strict=True)
        }
        stored = index.get(keys)
        if not options.reencode:
            for item in stored:
                if item is not None and location_of(item.metadata) != location_of(metadata[item.key]):
                    raise InputError(
                        f"the index has the key {item.key!r} for {location_of(item.metadata)}: give --prefix TEXT, so "
                        f"that the items of {source.name} get keys of their own; or --reencode, if it has moved"
                    )
        missing = np.array([options.reencode or item is None for item in stored])
        skipped += int((~missing).sum())
        if missing.any():
            block = encode_block(indices[missing])
            unreadable += block.unreadable
            by_label += block.by_label
            new_keys = [prefix + key for key in block.items.keys[: len(block.items)]]
            with warnings.catch_warnings():
                if count < _BLOCK and was_empty:  # there are no more items to fit the compression of vectors on
                    warnings.simplefilter("ignore", AdshWarning)
                block_metadata = [metadata[key] for key in new_keys]
                new = 0
                if new_keys:
                    new = index.add(
                        new_keys, block.codes, block_metadata, vectors=block.vectors, by_network=block.by_network
                    )
            added, replaced = added + new, replaced + len(new_keys) - new
        if progress:
            progress(int(indices[-1]) + 1, count)
    return IngestResult(added, replaced, skipped, unreadable, time.perf_counter() - started, by_label)


def _coded_by_network(model: HashModel, database: Dataset) -> NDArray[np.bool_]:
    """Return which items of the database got their codes from the network: those without a label, where it can."""
    if not model.codes_labels or database.labels is None:
        return np.full(len(database), not model.codes_labels)
    chosen: NDArray[np.bool_] = database.labels.empty[database.labels.ids]
    return chosen


def _encoded_by_label(model: ItemEncoder, source: IndexSource, requested: bool | None) -> NDArray[np.bool_]:
    """Return which items get the codes of their labels.

    Args:
        model: Knows labels, or none.
        source: The items.
        requested: `IngestOptions.by_label`.

    Returns:
        (n,) True for items by their labels, False for those by the network.
    """
    labels, count = source.dataset.labels, len(source.dataset)
    if requested and (labels is None or not model.codes_labels):
        reason = f"{source.name} has no labels" if labels is None else "this method has no codes for labels"
        raise InputError(f"{reason}: let the network encode the items, without --by-label")
    if requested is not None or labels is None or not model.codes_labels:
        return np.full(count, bool(requested))
    known = set(model.known_labels)
    of_sets = [bool(names) and known.issuperset(names) for names in map(labels.names_of, range(labels.set_count))]
    chosen: NDArray[np.bool_] = np.array(of_sets, dtype=bool)[labels.ids]
    return chosen


def _warn_of_new_classes(model: ItemEncoder, dataset: Dataset) -> None:
    """Warn when items have classes that the model was not trained on."""
    known = {str(name) for name in model.known_labels}
    new = [] if dataset.labels is None else [str(name) for name in dataset.labels.names if str(name) not in known]
    if known and new:
        warnings.warn(
            f"the model was not trained on {join_some(new)}: the codes of such items are poor. Vectors in the index, "
            "which order ties by default, find more of them; train again with them for codes of their own",
            AdshWarning,
            stacklevel=3,
        )


def _warn_of_own_columns(dataset: Dataset) -> None:
    """Warn of columns that are called as fields that mean something else."""
    hidden = [name for name in OWN_FIELDS if name in dataset.locate(0)[0].columns]
    if hidden:
        warnings.warn(
            f"the column {join_some(hidden)} is not stored as metadata, as items have a field of that name: rename it",
            AdshWarning,
            stacklevel=3,
        )


def _codes_of_labels(model: ItemEncoder, items: Dataset) -> Codes:
    assert items.labels is not None
    unlabelled = np.flatnonzero(items.labels.empty[items.labels.ids])
    if len(unlabelled):
        key = items.keys[int(unlabelled[0])]
        raise InputError(f"{key} has no label: let the network encode such items, without --by-label")
    return model.code_for(LabelSets.of(items.labels))


def _absolute(path: str) -> str:
    """Return the absolute path of what exists; a name stays as it is."""
    return str(Path(path).absolute()) if Path(path).exists() else path
