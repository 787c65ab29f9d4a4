"""Training that survives: the whole standing after an outer iteration in one file, and going on from it.

    checkpoint-000012.safetensors   the network, the optimizer's state and the code table as tensors; in its
                                    header the history, what was being run on what, and a digest

A file is written beside and renamed, so under its name it is whole; the last two are kept.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ..config import Recipe
from ..data.fingerprint import Fingerprint, differences
from ..errors import FolderError, InputError, first_line
from ..utils.files import replacing_file
from ..utils.tensors import as_bytes, on_cpu
from .distributed import World
from .loop import Record, Standing

FORMAT, FORMAT_VERSION = "adsh-checkpoint", 1
KEPT = 2
_FREE = ("compile",)  # how steps are taken, not which
_PATTERN = "checkpoint-{:06}.safetensors"


class Checkpoints:
    """Checkpoints of one run in one folder. `configuration` and `data` say which run it is."""

    def __init__(self, folder: Path, every: int, configuration: Mapping[str, Any], data: Fingerprint) -> None:
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise InputError(f"checkpoint_every={every!r}: give a whole number of outer iterations, at least 1")
        self.folder, self.every = folder, every
        self._configuration = {name: str(value) for name, value in configuration.items()}
        self._data = data

    def save(self, standing: Standing) -> Path | None:
        """Writes one, where this outer iteration is one of those asked for, and forgets all but the last two."""
        done = len(standing.history)
        if done % self.every:
            return None
        tensors = _tensors(standing)
        header = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "configuration": self._configuration,
            "data": self._data,
            "history": standing.history,
            "digest": _digest(tensors),
        }
        path = self.folder / _PATTERN.format(done)
        try:
            with replacing_file(path) as file:
                file.write(as_bytes(tensors, metadata={"adsh": json.dumps(header)}))
        except FolderError as problem:
            raise FolderError(f"{problem}; those before it are kept: put that right, and resume") from None
        for old in found(self.folder)[KEPT:]:
            with suppress(OSError):
                old.unlink()
        return path

    def restore(self, standing: Standing, world: World = World()) -> Path | None:  # noqa: B008  # frozen
        """Puts the last whole checkpoint in place; None where there is none. Refuses one of another run.

        The first process reads it for all.
        """
        last = world.from_first(self._last)
        if last is None:
            return None
        path, history, tensors = last
        _put_back(standing, tensors)
        standing.history[:] = history
        return path

    def _last(self) -> tuple[Path, list[Record], dict[str, Tensor]] | None:
        damaged = []
        for path in found(self.folder):
            try:
                header, tensors = _read(path)
            except (OSError, SafetensorError, ValueError, KeyError, TypeError) as problem:
                damaged.append(f"{path.name} ({first_line(problem)})")
                continue
            self._check_same(path, header)
            return path, header["history"], tensors
        if damaged:
            raise FolderError(f"no checkpoint in {self.folder} is whole: {', '.join(damaged)}; train without resuming")
        return None

    def clear(self) -> None:
        """Removes those of an earlier run."""
        for path in found(self.folder):
            path.unlink()

    def check_space(self, network: nn.Module, table_bytes: int) -> None:
        """Raises where the disk cannot hold those kept and the one being written.

        A standing is the weights, perhaps averaged too, twice as much of the optimizer's, and the code table.
        """
        weights = sum(t.numel() * t.element_size() for t in network.state_dict().values())
        standing_bytes = 4 * weights + table_bytes
        beside = next(parent for parent in (self.folder, *self.folder.resolve().parents) if parent.exists())
        here = sum(path.stat().st_size for path in found(self.folder))
        needed, free = (KEPT + 1) * standing_bytes - here, shutil.disk_usage(beside).free
        if free < needed:
            raise FolderError(
                f"not enough space for checkpoints in {self.folder}: {needed / 1e6:,.0f} MB are needed and "
                f"{free / 1e6:,.0f} MB free; free some, or train without checkpoints"
            )

    def _check_same(self, path: Path, header: dict[str, Any]) -> None:
        data = differences(self._data, header["data"])
        # values that a recipe did not have then are as they were before there was a choice
        before = {name: str(value) for name, value in asdict(Recipe()).items()}
        free = {name: value for name, value in self._configuration.items() if name in _FREE}
        other = data + differences(self._configuration, {**before, **header["configuration"], **free})
        if other:
            kind = "was made with other data" if data else "is of another configuration"
            raise InputError(f"{path} {kind}: {'; '.join(other)}. Resume with the same, or train anew elsewhere")


def found(folder: Path) -> list[Path]:
    """The checkpoints there, newest first."""
    return sorted(folder.glob("checkpoint-*.safetensors"), reverse=True)


def _tensors(standing: Standing) -> dict[str, Tensor]:
    tensors = {f"network.{name}": tensor for name, tensor in standing.network.state_dict().items()}
    if standing.average is not None:
        tensors |= {f"average.{name}": tensor for name, tensor in standing.average.state_dict().items()}
    for number, state in standing.optimizer.state_dict()["state"].items():
        named = {f"optimizer.{number}.{name}": value for name, value in state.items()}
        tensors |= {name: value for name, value in named.items() if isinstance(value, Tensor)}
    tensors |= {f"table.{name}": torch.from_numpy(array) for name, array in standing.table.state().items()}
    return on_cpu(tensors)


def _put_back(standing: Standing, tensors: dict[str, Tensor]) -> None:
    parts: dict[str, dict[str, Tensor]] = {"network": {}, "average": {}, "optimizer": {}, "table": {}}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts[part][rest] = tensor
    standing.network.load_state_dict(parts["network"])
    if standing.average is not None:
        standing.average.load_state_dict(parts["average"])
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in parts["optimizer"].items():
        number, _, rest = name.partition(".")
        state.setdefault(int(number), {})[rest] = tensor
    groups = standing.optimizer.state_dict()["param_groups"]
    standing.optimizer.load_state_dict({"state": state, "param_groups": groups})
    standing.table.restore({name: tensor.numpy() for name, tensor in parts["table"].items()})


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    with safe_open(path, framework="pt") as file:
        header = json.loads((file.metadata() or {})["adsh"])
        if header["format"] != FORMAT or header["format_version"] > FORMAT_VERSION:
            raise ValueError("written by a newer adsh, or not by adsh")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a mapping
    if _digest(tensors) != header["digest"]:
        raise ValueError("damaged, its digest is another")
    return header, tensors


def _digest(tensors: dict[str, Tensor]) -> str:
    digest = blake2b(digest_size=16)
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
