"""The folder of a run: the model, and next to it all that says how it was trained.

run.toml       the whole run: its settings, the values used, the data and the machine
split.npz      queries and database, as indices into the source as opened, unreadable items included
items.npz      the key of each database item, and where it came from: see runs.database
log.jsonl      one JSON object per event, as it happens
updates.jsonl  what each update changed, for indexes that follow: see runs.update_record
updating/      an update that is not finished
checkpoints/   where --checkpoint-every is given or training takes long; without the flag, until it is finished
config.json …  the model, once it is trained: see models/storage
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..data.protocols import Split
from ..errors import FolderError
from ..models.storage_format import CHECKPOINTS, LOG, RUN, SPLIT, TENSORBOARD, UPDATES, UPDATING, holds_model
from ..utils.files import find_file, read_toml, recover, replacing_file
from ..utils.reading import parse_json


class RunFolder:
    """Reads and writes the files next to the model."""

    def __init__(self, folder: Path) -> None:
        self.path = folder

    @property
    def checkpoints(self) -> Path:
        """The folder of this run's checkpoints."""
        return self.path / CHECKPOINTS

    def recover(self) -> None:
        """Finish a save of the model that a crash interrupted."""
        recover(self.path)

    def clear(self) -> None:
        """Delete the log and checkpoints of an earlier run; its model stays until the new one replaces it."""
        for name in (CHECKPOINTS, TENSORBOARD, UPDATING):
            shutil.rmtree(self.path / name, ignore_errors=True)
        for name in (LOG, UPDATES):
            (self.path / name).unlink(missing_ok=True)

    def remove_checkpoints(self) -> None:
        """Delete the checkpoints of this run."""
        shutil.rmtree(self.path / CHECKPOINTS, ignore_errors=True)

    def write_run(self, tables: Mapping[str, Mapping[str, Any]]) -> None:
        """Write run.toml; values that are None are left out, and a table among the values is one of its own."""
        text = "# Written by adsh. Run it again: adsh train --config run.toml --out FOLDER\n"
        text += "".join(_table(name, values) for name, values in tables.items())
        with replacing_file(self.path / RUN) as file:
            file.write(text.encode())

    def read_run(self) -> dict[str, Any]:
        """Return run.toml, or {} where there is none."""
        path = find_file(self.path, RUN)
        return read_toml(path) if path.exists() else {}

    def write_split(self, split: Split) -> None:
        """Write split.npz."""
        split.save(self.path / SPLIT)

    def read_split(self) -> Split | None:
        """Return the split of the run, or None where there is none."""
        path = find_file(self.path, SPLIT)
        return Split.load(path) if path.exists() else None

    def log(self, event: str, **values: Any) -> None:
        """Append an event to log.jsonl."""
        line = {"event": event, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **values}
        try:
            with (self.path / LOG).open("ab") as file:
                file.write(json.dumps(line).encode() + b"\n")
        except OSError as problem:
            raise FolderError(f"cannot write {self.path / LOG}: {problem.strerror}") from None

    def mend_log(self, done: int) -> None:
        """Delete events after `done` outer iterations, which a resumed run writes again, and a half-written line."""
        path = self.path / LOG
        if path.exists():
            lines = [line for line, event in _events(path) if event.get("outer", 0) <= done]
            with replacing_file(path) as file:
                file.write(b"".join(line + b"\n" for line in lines))

    @property
    def finished(self) -> bool:
        """Whether the model is of this run, and not one that an unfinished run is to replace."""
        path = find_file(self.path, LOG)
        events = _events(path) if path.exists() else []
        return holds_model(self.path) and bool(events) and events[-1][1].get("event") == "saved"


def _events(path: Path) -> list[tuple[bytes, dict[str, Any]]]:
    """Return the complete lines of a log, and their events."""
    found = []
    for line in path.read_bytes().split(b"\n"):
        with suppress(ValueError):
            event = parse_json(line)
            if isinstance(event, dict):
                found.append((line, event))
    return found


def _table(name: str, values: Mapping[str, Any]) -> str:
    """Return a TOML table, and those inside it, as text."""
    plain = {key: value for key, value in values.items() if not isinstance(value, Mapping) and value is not None}
    text = f"\n[{name}]\n" if plain or not values else ""
    text += "".join(f"{_key(key)} = {_value(value)}\n" for key, value in plain.items())
    inner = {key: value for key, value in values.items() if isinstance(value, Mapping)}
    return text + "".join(_table(f"{name}.{_key(key)}", value) for key, value in inner.items())


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else _value(key)


def _value(value: Any) -> str:
    """Return a TOML value: strings, numbers, booleans and lists are written as in JSON."""
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, float) and value == int(value):
        return f"{value:.1f}"
    return json.dumps(value)
