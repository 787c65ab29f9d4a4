"""Checkpoints: the whole state of training after an outer iteration in one file, and resuming from it.

    checkpoint-000012.safetensors   the network, the optimizer's state and the code table as tensors; in its
                                    header the history, the configuration, the data and a digest

A file is written under another name and renamed, so it is always complete; the last two are kept.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from ..config import RETIRED, Recipe
from ..data.fingerprint import Fingerprint, differences
from ..errors import FolderError, InputError, first_line
from ..utils.files import replacing_file
from ..utils.tensors import as_bytes, on_cpu
from .distributed import ProcessGroup
from .state import Record, TrainState

FORMAT, FORMAT_VERSION = "adsh-checkpoint", 1
KEPT = 2
LONG, PAUSE = 120.0, 30.0  # seconds: a training run that gets checkpoints unasked, and those between two of them
_IGNORED = ("compile",)  # may differ when resuming: how steps are computed, not which
_PATTERN = "checkpoint-{:06}.safetensors"


class Checkpoints:
    """The checkpoints of one run in one folder.

    Args:
        folder: Where they are.
        every: Outer iterations between two; None for one every half minute, where the run is expected to take long.
        configuration: Identifies the run, together with `data`.
        data: The marks of the data.
        outer: Outer iterations of the whole run.
    """

    def __init__(
        self,
        folder: Path,
        every: int | None,
        configuration: Mapping[str, Any],
        data: Fingerprint,
        outer: int = 0,
    ) -> None:
        if every is not None and (isinstance(every, bool) or not isinstance(every, int) or every < 1):
            raise InputError(f"checkpoint_every={every!r}: give a whole number of outer iterations, at least 1")
        self.folder, self.every, self._outer = folder, every, outer
        self._written = time.monotonic()  # the last one, where they are written by time
        self._configuration = {name: str(value) for name, value in configuration.items()}
        self._data = data

    def save(self, state: TrainState) -> Path | None:
        """Write a checkpoint if one is due after this outer iteration, and delete all but the last two."""
        done = len(state.history)
        if not self._is_due(state.history):
            return None
        tensors = _tensors(state)
        header = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "configuration": self._configuration,
            "data": self._data,
            "history": state.history,
            "digest": _digest(tensors),
        }
        path = self.folder / _PATTERN.format(done)
        try:
            with replacing_file(path) as file:
                file.write(as_bytes(tensors, metadata={"adsh": json.dumps(header)}))
        except FolderError as problem:
            raise FolderError(f"{problem}; earlier checkpoints are kept: fix that, and resume") from None
        for old in found(self.folder)[KEPT:]:
            with suppress(OSError):
                old.unlink()
        return path

    def _is_due(self, history: list[Record]) -> bool:
        """Return whether to write a checkpoint after this iteration."""
        if self.every is not None:
            return len(history) % self.every == 0
        expected = self._outer * sum(record["seconds"] for record in history) / len(history)
        if expected < LONG or time.monotonic() - self._written < PAUSE:
            return False
        self._written = time.monotonic()
        return True

    def restore(self, state: TrainState, group: ProcessGroup = ProcessGroup()) -> Path | None:  # noqa: B008  # frozen
        """Put the last undamaged checkpoint in place, which rank 0 reads for all processes.

        Returns:
            Its path, or None where there is no checkpoint.

        Raises:
            InputError: it is of another configuration or other data.
        """
        last = group.broadcast_from_rank0(self._last)
        if last is None:
            return None
        path, history, tensors = last
        _restore_tensors(state, tensors)
        state.history[:] = history
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
            raise FolderError(
                f"every checkpoint in {self.folder} is damaged: {', '.join(damaged)}; train without resuming"
            )
        return None

    def clear(self) -> None:
        """Delete the checkpoints of an earlier run."""
        for path in found(self.folder):
            path.unlink()

    def check_space(self, network: nn.Module, table_bytes: int) -> None:
        """Raise where the disk cannot hold the checkpoints that are kept and the one being written.

        A state is the weights, their averages, twice as much of the optimizer's, and the code table.
        """
        weights = sum(t.numel() * t.element_size() for t in network.state_dict().values())
        state_bytes = 4 * weights + table_bytes
        existing = next(parent for parent in (self.folder, *self.folder.resolve().parents) if parent.exists())
        replaced = sum(path.stat().st_size for path in found(self.folder))
        needed, free = (KEPT + 1) * state_bytes - replaced, shutil.disk_usage(existing).free
        if free < needed:
            raise FolderError(
                f"not enough space for checkpoints in {self.folder}: {needed / 1e6:,.0f} MB are needed and "
                f"{free / 1e6:,.0f} MB free; free some, or train without checkpoints"
            )

    def _check_same(self, path: Path, header: dict[str, Any]) -> None:
        data = differences(self._data, header["data"])
        # values that recipes did not have when it was written are at their defaults
        defaults = {name: str(value) for name, value in Recipe().saved().items()}
        written = {name: value for name, value in header["configuration"].items() if name not in RETIRED}
        ignored = {name: value for name, value in self._configuration.items() if name in _IGNORED}
        other = data + differences(self._configuration, {**defaults, **written, **ignored})
        if other:
            kind = "is of other data" if data else "is of another configuration"
            raise InputError(f"{path} {kind}: {'; '.join(other)}. Resume with the same, or train in another folder")


def found(folder: Path) -> list[Path]:
    """Return the checkpoints in a folder, newest first."""
    return sorted(folder.glob("checkpoint-*.safetensors"), reverse=True)


def started_configuration(folder: Path) -> dict[str, str] | None:
    """Return the configuration of the run whose checkpoints a folder holds; None where none can be read."""
    for path in found(folder):
        with suppress(OSError, SafetensorError, ValueError, KeyError, TypeError):
            with safe_open(path, framework="pt") as file:
                configuration: dict[str, str] = json.loads((file.metadata() or {})["adsh"])["configuration"]
            return configuration
    return None


def _tensors(state: TrainState) -> dict[str, Tensor]:
    tensors = {f"network.{name}": tensor for name, tensor in state.network.state_dict().items()}
    if state.average is not None:
        tensors |= {f"average.{name}": tensor for name, tensor in state.average.state_dict().items()}
    for number, values in state.optimizer.state_dict()["state"].items():
        named = {f"optimizer.{number}.{name}": value for name, value in values.items()}
        tensors |= {name: value for name, value in named.items() if isinstance(value, Tensor)}
    tensors |= {f"table.{name}": torch.from_numpy(array) for name, array in state.table.state().items()}
    return on_cpu(tensors)


def _restore_tensors(state: TrainState, tensors: dict[str, Tensor]) -> None:
    by_owner: dict[str, dict[str, Tensor]] = {"network": {}, "average": {}, "optimizer": {}, "table": {}}
    for name, tensor in tensors.items():
        owner, _, rest = name.partition(".")
        by_owner[owner][rest] = tensor
    state.network.load_state_dict(by_owner["network"])
    if state.average is not None:
        state.average.load_state_dict(by_owner["average"])
    by_parameter: dict[int, dict[str, Tensor]] = {}
    for name, tensor in by_owner["optimizer"].items():
        number, _, rest = name.partition(".")
        by_parameter.setdefault(int(number), {})[rest] = tensor
    groups = state.optimizer.state_dict()["param_groups"]
    state.optimizer.load_state_dict({"state": by_parameter, "param_groups": groups})
    state.table.restore({name: tensor.numpy() for name, tensor in by_owner["table"].items()})


def _read(path: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    with safe_open(path, framework="pt") as file:
        header = json.loads((file.metadata() or {})["adsh"])
        if header["format"] != FORMAT or header["format_version"] > FORMAT_VERSION:
            raise ValueError("written by a newer adsh, or not by adsh")
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a mapping
    if _digest(tensors) != header["digest"]:
        raise ValueError("damaged: its digest does not match")
    return header, tensors


def _digest(tensors: dict[str, Tensor]) -> str:
    digest = blake2b(digest_size=16)
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
