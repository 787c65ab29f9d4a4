"""Features of a whole source by a network, in a file that grows as it goes and is gone on with after a kill.

    features.npy            (n, d) float32, to be memory-mapped
    features.labels.npy     (n,) class numbers, -1 for none, or (n, L) multi-hot
    features.classes.npy    what the labels are called
    features.keys.npy       what each item is called in its source
    features.about.json     network, weights and data

`open_source("features.npy")` takes them all. Until it is whole, the first lies in .features.npy.part, and
.features.npy.json tells how far it is and of what it is: another network or other data are refused.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ..data import Dataset, Items, as_items
from ..data.fingerprint import Fingerprint, differences, fingerprint
from ..data.images.cache import create_npy
from ..data.loader import Feed
from ..errors import FolderError, InputError
from ..labels import LabelSets
from ..networks import create_network
from ..utils.device import DeviceChoice, choose_device, threads_for
from ..utils.files import check_parent, replacing_file
from .distributed import World

DEFAULT = "efficientnet_lite0"

_BATCH = 256
_MARKED = 5.0  # seconds between two marks of how far it is


@dataclass(frozen=True)
class Made:
    """What a run gave."""

    path: Path
    shape: tuple[int, int]
    before: int  # items that an earlier run had done
    seconds: float
    device: DeviceChoice


def check_out(path: Path) -> None:
    """Raises where features could not be written there."""
    if path.suffix != ".npy":
        raise InputError(f"--out {path}: give a name that ends in .npy")
    check_parent(path)


def make_features(
    dataset: Dataset,
    out: Path,
    *,
    network: str = DEFAULT,
    weights: str | None = "auto",
    batch: int | None = None,
    device: str = "auto",
    overwrite: bool = False,
    on_done: Callable[[int, int], None] | None = None,
) -> Made:
    """Writes what the network's last layer sees of each image, in evaluation mode.

    dataset    images of one size: see `made_ready`
    weights    "auto" for what the network starts from, "pretrained", the path of a file, or None for random ones
    """
    check_out(out)
    if batch is not None and batch < 1:
        raise InputError(f"batch={batch}: give 1 or more")
    choice, items = choose_device(device), as_items(dataset, "the source")
    maker = _network(network, items.shape, weights).to(choice.device).eval()
    about = {"network": network, **_of_weights(maker), **fingerprint(items, dataset.labels)}
    file = _Growing(out, (len(items), int(maker.feature_size)), about, overwrite)  # type: ignore[arg-type]  # not a tensor
    before, started = file.done, time.perf_counter()
    batches = _batches(maker, [slice(before, len(items))], batch)
    _compute(maker, items, choice, file.write, batches, on_done)
    file.finish(dataset)
    return Made(out, file.shape, before, time.perf_counter() - started, choice)


def features_once(
    network: nn.Module,
    items: Items,
    choice: DeviceChoice,
    *,
    path: Path | None = None,
    data: Fingerprint | None = None,
    world: World = World(),  # noqa: B008  # frozen
    on_done: Callable[[int, int], None] | None = None,
) -> NDArray[np.float32]:
    """(n, d) what a network's `features` gives of every item: in memory, or in a file that is gone on with.

    `data` is the fingerprint of the items; a file of other features is written anew. Where several processes share
    the work, each holds all of them in memory afterwards, and there is no file.
    """
    shape = (len(items), int(network.feature_size))  # type: ignore[arg-type]  # not a tensor
    if path is None or not world.alone:
        features = np.empty(shape, dtype=np.float32)
        mine = world.share(len(items))
        batches = _batches(network, world.shares(len(items)))
        _compute(network, items, choice, features.__setitem__, batches, on_done)
        gathered: NDArray[np.float32] = world.gather(torch.from_numpy(features[mine]), len(items)).numpy()
        return gathered
    about = {**_of_weights(network), **(data or {}), **({"parts": str(world.parts)} if world.parts > 1 else {})}
    try:
        file = _Growing(path, shape, about, overwrite=False)
    except InputError:
        path.unlink(missing_ok=True)
        file = _Growing(path, shape, about, overwrite=True)
    batches = [some for some in _batches(network, world.shares(len(items))) if some[-1] >= file.done]
    _compute(network, items, choice, file.write, batches, on_done)
    file.finish()
    kept: NDArray[np.float32] = np.load(path, mmap_mode="r", allow_pickle=False)
    return kept


def forget(path: Path) -> None:
    """Removes the file that `features_once` kept, and what it began."""
    for one in (path, *_begun(path), _about(path)):
        one.unlink(missing_ok=True)


def _compute(
    network: nn.Module,
    items: Items,
    choice: DeviceChoice,
    write: Callable[[NDArray[Any], NDArray[Any]], None],
    indices: Sequence[NDArray[Any]],
    on_done: Callable[[int, int], None] | None,
) -> None:
    """Features of the items of these batches, in turn."""
    network.eval()
    with torch.inference_mode(), threads_for(network, choice.device), Feed(items, choice.device) as feed:
        for some, inputs in zip(indices, feed.epoch(indices), strict=True):
            write(some, network.features(inputs).float().cpu().numpy())  # type: ignore[operator]  # a method
            if on_done is not None:
                on_done(int(some[-1]) + 1, len(items))


def _batches(network: nn.Module, shares: Iterable[slice], batch: int | None = None) -> list[NDArray[Any]]:
    """The numbers of the items of each batch, none of which goes beyond a share."""
    size = batch or int(getattr(network, "evaluation_batch", _BATCH))
    starts = ((at, min(at + size, share.stop)) for share in shares for at in range(share.start, share.stop, size))
    return [np.arange(at, end) for at, end in starts]


class _Growing:
    """The file, how far it is, and what it is of."""

    def __init__(self, out: Path, shape: tuple[int, int], about: Fingerprint, overwrite: bool) -> None:
        self.shape, self._out, self._about = shape, out, about
        self._part, self._mark = _begun(out)
        self._described = _about(out)
        self.done, self._marked = 0, time.monotonic()
        self._rows: NDArray[Any] | None = None
        if overwrite:
            for path in (self._mark, self._part):
                path.unlink(missing_ok=True)
        elif out.exists():
            self._check(_read(self._described), f"{out} holds")
            self.done = shape[0]
            return
        else:
            begun = _read(self._mark)
            if begun is not None and self._part.exists():
                self._check(begun, f"{self._part} was begun with")
                self._rows = np.load(self._part, mmap_mode="r+", allow_pickle=False)
                self.done = int(begun["done"])
                return
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            self._rows = create_npy(self._part, np.float32, shape)
        except OSError as problem:
            raise FolderError(f"cannot write {out} ({problem.strerror}): give another --out") from None
        self._write_mark()

    def write(self, indices: NDArray[Any], rows: NDArray[Any]) -> None:
        """These rows; now and then how far it is, after the rows are on the disk."""
        assert self._rows is not None
        self._rows[indices] = rows
        self.done = int(indices[-1]) + 1
        if time.monotonic() - self._marked > _MARKED:
            self._write_mark()

    def finish(self, dataset: Dataset | None = None) -> None:
        """The file gets its name, once everything beside it is there: the dataset's labels and keys, where given."""
        if self._rows is None:
            return
        self._write_mark()
        if dataset is not None:
            self._write_beside(dataset)
        with replacing_file(self._described) as file:
            file.write(json.dumps({"about": self._about}, indent=1).encode())
        self._part.replace(self._out)
        self._mark.unlink()

    def _write_beside(self, dataset: Dataset) -> None:
        for what in ("labels", "classes"):  # of other features that were here before
            beside(self._out, what).unlink(missing_ok=True)
        if dataset.labels is not None:
            _save(beside(self._out, "labels"), plain_labels(dataset.labels))
            _save(beside(self._out, "classes"), np.array([str(name) for name in dataset.labels.names]))
        _save(beside(self._out, "keys"), np.array(dataset.keys[:]))

    def _write_mark(self) -> None:
        if isinstance(self._rows, np.memmap):
            self._rows.flush()
        with replacing_file(self._mark) as file:
            file.write(json.dumps({"about": self._about, "done": self.done}).encode())
        self._marked = time.monotonic()

    def _check(self, held: dict[str, Any] | None, what: str) -> None:
        other = differences(self._about, (held or {}).get("about", {})) if held else ["nobody knows what of"]
        if other:
            raise InputError(f"{what} other features: {'; '.join(other)}. Give another --out, or --overwrite")


def _begun(path: Path) -> tuple[Path, Path]:
    """What an unfinished run leaves: the features so far, and how far it is."""
    return path.with_name(f".{path.name}.part"), path.with_name(f".{path.name}.json")


def _about(path: Path) -> Path:
    return beside(path, "about").with_suffix(".json")


def beside(path: Path, what: str) -> Path:
    """features.labels.npy for features.npy."""
    return path.with_name(f"{path.stem}.{what}.npy")


def plain_labels(labels: LabelSets) -> NDArray[Any]:
    """(n,) the number of each item's class, -1 for none; or (n, L) multi-hot where an item has several."""
    counts = np.diff(labels.starts)
    if counts.max(initial=0) <= 1:
        classes = np.full(labels.set_count, -1, dtype=np.int32)
        classes[counts == 1] = labels.tags
        return classes[labels.ids]
    table = np.zeros((labels.set_count, len(labels.names)), dtype=np.uint8)
    table[np.repeat(np.arange(labels.set_count), counts), labels.tags] = 1
    return table[labels.ids]


def _network(name: str, shape: tuple[int, ...], weights: str | None) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # random weights are the same when it goes on
        network = create_network(name, 1, shape, **({} if weights == "auto" else {"weights": weights}))
    if len(shape) != 3 or not hasattr(network, "features"):
        raise InputError(f"network {name!r} makes no features of items of shape {shape}: give images, and a network")
    return network


def _of_weights(network: nn.Module) -> Fingerprint:
    """A digest of all but the last layer, and what is done to images first."""
    digest = blake2b(digest_size=16)
    for name, tensor in network.state_dict().items():
        if not name.startswith(("head.", "top.", "backbone.head.")):
            digest.update(name.encode() + tensor.cpu().numpy().tobytes())
    return {"weights": digest.hexdigest(), "images": repr(getattr(network, "preprocess", None))}


def _read(path: Path) -> dict[str, Any] | None:
    try:
        held = json.loads(path.read_text(encoding="utf-8"))
        return held if isinstance(held, dict) and isinstance(held.get("about"), dict) else None
    except (OSError, ValueError):
        return None


def _save(path: Path, array: NDArray[Any]) -> None:
    with replacing_file(path) as file:
        np.save(file, array, allow_pickle=False)
