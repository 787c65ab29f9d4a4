"""Features of every item by a network, in memory or in a file that grows as it goes and survives a kill.

Until the file NAME.npy is complete, its rows lie in .NAME.npy.part, and .NAME.npy.json says how many of them are done
and what they are of: another network or other data are refused.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from ..data import Items
from ..data.fingerprint import Fingerprint, differences
from ..data.images.cache import create_npy
from ..data.loader import DeviceLoader
from ..errors import FolderError, InputError
from ..networks.traits import traits_of
from ..utils.device import DeviceChoice, threads_for
from ..utils.files import replacing_file
from .distributed import ProcessGroup

_BATCH = 256
_MARK_SECONDS = 5.0  # between two writes of the number of rows done


def features_once(
    network: nn.Module,
    items: Items,
    choice: DeviceChoice,
    *,
    path: Path | None = None,
    data: Fingerprint | None = None,
    group: ProcessGroup = ProcessGroup(),  # noqa: B008  # frozen
    on_done: Callable[[int, int], None] | None = None,
) -> NDArray[np.float32]:
    """Return (n, d) the network's features of every item, computed once.

    Args:
        network: Has `features` and `feature_size`.
        items: The items, as the network takes them.
        choice: Where to compute.
        path: A file to keep them in, which a later run resumes or reuses; None keeps them in memory. Where several
            processes share the work, each holds all features in memory, and there is no file.
        data: The fingerprint of the items; a file of other features is replaced.
        group: The processes that share the work.
        on_done: Called with the number of items done, and of all.
    """
    shape = (len(items), int(network.feature_size))  # type: ignore[arg-type]  # not a tensor
    if path is None or not group.is_single:
        features = np.empty(shape, dtype=np.float32)
        own = group.share(len(items))
        batches = feature_batches(network, group.shard_slices(len(items)))
        compute_features(network, items, choice, features.__setitem__, batches, on_done)
        gathered: NDArray[np.float32] = group.gather(torch.from_numpy(features[own]), len(items)).numpy()
        return gathered
    about = {
        **weights_fingerprint(network),
        **(data or {}),
        **({"parts": str(group.shards)} if group.shards > 1 else {}),
    }
    try:
        file = FeatureFile(path, shape, about, overwrite=False)
    except InputError:
        path.unlink(missing_ok=True)
        file = FeatureFile(path, shape, about, overwrite=True)
    batches = [batch for batch in feature_batches(network, group.shard_slices(len(items))) if batch[-1] >= file.done]
    compute_features(network, items, choice, file.write, batches, on_done)
    file.finish()
    mapped: NDArray[np.float32] = np.load(path, mmap_mode="r", allow_pickle=False)
    return mapped


def forget(path: Path) -> None:
    """Delete the file that `features_once` kept, and what it started."""
    for file in (path, *_unfinished(path), sidecar(path, "about", ".json")):
        file.unlink(missing_ok=True)


def compute_features(
    network: nn.Module,
    items: Items,
    choice: DeviceChoice,
    write: Callable[[NDArray[Any], NDArray[Any]], None],
    batches: Sequence[NDArray[Any]],
    on_done: Callable[[int, int], None] | None,
) -> None:
    """Compute the features of these batches in turn.

    Args:
        network: Has `features`; it is put into evaluation mode.
        items: All items.
        choice: Where to compute.
        write: Called with the indices of a batch, and its features.
        batches: The indices of each batch: see `feature_batches`.
        on_done: Called with the number of items done, and of all.
    """
    network.eval()
    with torch.inference_mode(), threads_for(network, choice.device), DeviceLoader(items, choice.device) as feed:
        for indices, inputs in zip(batches, feed.epoch(batches), strict=True):
            write(indices, network.features(inputs).float().cpu().numpy())  # type: ignore[operator]  # a method
            if on_done is not None:
                on_done(int(indices[-1]) + 1, len(items))


def feature_batches(network: nn.Module, shares: Iterable[slice], batch: int | None = None) -> list[NDArray[Any]]:
    """Return the indices of each batch; no batch crosses the end of a share."""
    size = batch or traits_of(network).evaluation_batch or _BATCH
    starts = ((at, min(at + size, share.stop)) for share in shares for at in range(share.start, share.stop, size))
    return [np.arange(at, end) for at, end in starts]


class FeatureFile:
    """A file of features that grows batch by batch; a run that was killed is resumed.

    Args:
        out: The name the file gets once it is complete.
        shape: (items, features).
        about: What the features are of; a file of anything else is refused.
        overwrite: Start anew, whatever is there.
    """

    def __init__(self, out: Path, shape: tuple[int, int], about: Fingerprint, overwrite: bool) -> None:
        self.shape, self._out, self._about = shape, out, about
        self._part, self._mark = _unfinished(out)
        self._description = sidecar(out, "about", ".json")
        self.done, self._marked = 0, time.monotonic()
        self._rows: NDArray[Any] | None = None
        if overwrite:
            for path in (self._mark, self._part):
                path.unlink(missing_ok=True)
        elif out.exists():
            self._check(_read(self._description), f"{out} holds")
            self.done = shape[0]
            return
        else:
            progress = _read(self._mark)
            if progress is not None and self._part.exists():
                self._check(progress, f"{self._part} was started with")
                self._rows = np.load(self._part, mmap_mode="r+", allow_pickle=False)
                self.done = int(progress["done"])
                return
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            self._rows = create_npy(self._part, np.float32, shape)
        except OSError as problem:
            raise FolderError(f"cannot write {out} ({problem.strerror}): give another --out") from None
        self._write_mark()

    def write(self, indices: NDArray[Any], rows: NDArray[Any]) -> None:
        """Write these rows; every few seconds also how many are done, after they are on the disk."""
        assert self._rows is not None
        self._rows[indices] = rows
        self.done = int(indices[-1]) + 1
        if time.monotonic() - self._marked > _MARK_SECONDS:
            self._write_mark()

    @property
    def is_complete(self) -> bool:
        """Whether the file has its final name already."""
        return self._rows is None

    def finish(self) -> None:
        """Give the file its final name; what belongs next to it must be there before."""
        if self.is_complete:
            return
        self._write_mark()
        with replacing_file(self._description) as file:
            file.write(json.dumps({"about": self._about}, indent=1).encode())
        self._part.replace(self._out)
        self._mark.unlink()

    def _write_mark(self) -> None:
        if isinstance(self._rows, np.memmap):
            self._rows.flush()
        with replacing_file(self._mark) as file:
            file.write(json.dumps({"about": self._about, "done": self.done}).encode())
        self._marked = time.monotonic()

    def _check(self, description: dict[str, Any] | None, what: str) -> None:
        unknown = ["nothing says of what data"]
        different = differences(self._about, description.get("about", {})) if description else unknown
        if different:
            raise InputError(f"{what} other features: {'; '.join(different)}. Give another --out, or --overwrite")


def _unfinished(path: Path) -> tuple[Path, Path]:
    """Return the files of an unfinished run: the rows so far, and how many are done."""
    return path.with_name(f".{path.name}.part"), path.with_name(f".{path.name}.json")


def sidecar(path: Path, what: str, suffix: str = ".npy") -> Path:
    """Return features.labels.npy for features.npy and `what="labels"`."""
    return path.with_name(f"{path.stem}.{what}{suffix}")


def weights_fingerprint(network: nn.Module) -> Fingerprint:
    """Return a digest of all weights but those of the last layer, and how images are preprocessed."""
    digest = blake2b(digest_size=16)
    for name, tensor in network.state_dict().items():
        if not name.startswith(("head.", "top.", "backbone.head.")):
            digest.update(name.encode() + tensor.cpu().numpy().tobytes())
    return {"weights": digest.hexdigest(), "images": repr(traits_of(network).preprocess)}


def _read(path: Path) -> dict[str, Any] | None:
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return description if isinstance(description, dict) and isinstance(description.get("about"), dict) else None
