"""What the cells of a folder were measured on, written beside them, so that nothing else is mixed in."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import FolderError, InputError, first_line
from ..files import replacing_file
from .cell import Cell
from .setting import MANY_LABELS, ON_FEATURES, Data, Setting, protocol_of

FILE = "measured_on.json"
_DIGESTS = ("labels", "features")

Facts = dict[str, Any]


def facts(setting: Setting, cells: Iterable[Cell], data: Data | None = None) -> Facts:
    """What is known of the data that these cells are measured on; more where they are open."""
    found: Facts = {"dataset": Path(setting.dataset).name, "protocol": protocol_of(setting)}
    if data is not None:
        ids = data.labels.ids.astype("<i8").tobytes()
        found |= {"k": data.k, "items": len(data.labels), "labels": hashlib.sha256(ids).hexdigest()[:16]}
    elif setting.k is not None:
        found["k"] = setting.k
    if any(cell.option("network") in (None, *ON_FEATURES) for cell in cells):  # others need no features at hand
        path = Path(setting.features).expanduser() if setting.features is not None else None
        if path is None:
            found["features"] = None
        elif path.is_file():
            with path.open("rb") as file:
                found["features"] = hashlib.file_digest(file, "sha256").hexdigest()[:16]
    return found


def check_same(out: Path, now: Facts) -> None:
    """Refuses a folder whose cells were measured on something else."""
    before = _read(out / FILE)
    usual = (None, min(MANY_LABELS, before.get("items", MANY_LABELS)))
    if "k" not in now and before.get("k") not in usual:
        now = now | {"k": None}
    for name, value in now.items():
        if name in before and before[name] != value:
            held, given = (f"{name} {one}" if one is not None else f"no {name}" for one in (before[name], value))
            if name in _DIGESTS and None not in (before[name], value):
                held, given = f"other {name}", "these"
            raise InputError(f"{out} holds cells of {held}, not of {given}: name another folder with --out")


def write_down(out: Path, now: Facts) -> None:
    """Adds to what is known of the folder's cells."""
    before = _read(out / FILE)
    if before | now != before:
        with replacing_file(out / FILE) as file:
            file.write((json.dumps(before | now) + "\n").encode())


def _read(path: Path) -> Facts:
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as problem:
        raise FolderError(f"{path} cannot be read ({first_line(problem)}): remove it, and run again") from None
