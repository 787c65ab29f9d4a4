"""What each update of a run changed, by key: one line of updates.jsonl an update. Indexes of the run follow these."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import FolderError, InputError, first_line
from ..models.storage_format import UPDATES
from ..utils.files import find_file, replacing_file
from ..utils.reading import parse_json


@dataclass(frozen=True)
class UpdateRecord:
    """What one update changed."""

    before: str
    """The fingerprint of the model before."""
    after: str
    """The fingerprint of the model after."""
    added: list[str]
    """Keys of the new items."""
    changed: list[str]
    """Keys of items whose labels, names of labels or codes changed."""
    removed: list[str]
    """Keys of the items that were removed."""
    rename: dict[str, str | None]
    """Other names of labels; None for a label that was removed."""


def read_updates(folder: Path) -> list[UpdateRecord]:
    """Return the updates of a run, oldest first."""
    path = find_file(folder, UPDATES)
    if not path.exists():
        return []
    try:
        return [UpdateRecord(**parse_json(line)) for line in path.read_bytes().splitlines() if line.strip()]
    except (ValueError, TypeError) as problem:
        raise FolderError(f"{path} is damaged ({first_line(problem)}): copy the run's folder again") from None


def write_updates(path: Path, updates: list[UpdateRecord]) -> None:
    """Write updates.jsonl, completely or not at all."""
    with replacing_file(path) as file:
        file.write("".join(json.dumps(asdict(each)) + "\n" for each in updates).encode())


def updates_since(folder: Path, fingerprint: str) -> list[UpdateRecord]:
    """Return the updates that lead from the model with this fingerprint to the one in the folder, oldest first."""
    updates = read_updates(folder)
    starts = [number for number, each in enumerate(updates) if each.before == fingerprint]
    if not starts:
        raise InputError(
            f"{folder} does not say what changed since the model {fingerprint[:12]}: build a new index with adsh index "
            f"build NEW --model {folder}"
        )
    return updates[starts[-1] :]


def renamed(names: list[Any], rename: dict[str, str | None]) -> list[str]:
    """Return names of labels under their new names, each once; without those that were removed."""
    now = (rename.get(str(name), str(name)) for name in names)
    return list(dict.fromkeys(name for name in now if name is not None))
