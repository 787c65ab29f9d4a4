"""What the cells of a folder were measured on, written beside them, so that nothing else is mixed in."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ..errors import FolderError, InputError, first_line
from ..files import replacing_file
from .setting import ON_FEATURES, Setting, protocol_of

FILE = "measured_on.json"
_FLAGS = {"dataset": "--dataset", "protocol": "--protocol", "k": "-k", "features": "--features"}


def check_same(out: Path, setting: Setting) -> None:
    """Refuses a folder with cells of something else. What is said here for the first time is written down."""
    path = out / FILE
    now = {"dataset": Path(setting.dataset).name, "protocol": protocol_of(setting), "k": setting.k}
    if setting.features is None and setting.network in ON_FEATURES:
        now["features"] = None  # the items are features themselves
    elif (digest := _digest(setting.features)) is not None:  # networks may be run where the features are not at hand
        now["features"] = digest
    before: dict[str, Any] = {}
    if path.exists():
        try:
            before = dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError) as problem:
            raise FolderError(f"{path} cannot be read ({first_line(problem)}): remove it, and run again") from None
    for name, value in now.items():
        if name in before and before[name] != value:
            held, given = (
                f"no {_FLAGS[name]}" if one is None else f"{_FLAGS[name]} {one}" for one in (before[name], value)
            )
            raise InputError(f"{out} holds cells of {held}, not of {given}: name another folder with --out")
    if before | now != before:
        with replacing_file(path) as file:
            file.write((json.dumps(before | now) + "\n").encode())


def _digest(features: str | None) -> str | None:
    """Of the file's bytes, the same wherever it lies; None where there is none."""
    path = Path(features).expanduser() if features is not None else None
    if path is None or not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]
