"""What the cells of a folder were measured on, written beside them, so that nothing else is mixed in."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..data.fingerprint import of_labels
from ..errors import FolderError, InputError, first_line
from ..utils.files import digest, replacing_file
from .cell import Cell
from .experiment_config import MANY_LABELS, ON_FEATURES, ExperimentConfig, ExperimentData, protocol_of

FILE = "measured_on.json"
_DIGESTS = ("labels", "features")

Facts = dict[str, Any]


def facts(config: ExperimentConfig, cells: Iterable[Cell], data: ExperimentData | None = None) -> Facts:
    """What is known of the data that these cells are measured on; more where they are open."""
    found: Facts = {"dataset": Path(config.dataset).name, "protocol": protocol_of(config)}
    if data is not None:
        found |= {"k": data.k, "items": len(data.labels), "labels": of_labels(data.labels)}
    elif config.k is not None:
        found["k"] = config.k
    if any(cell.option("network") in (None, *ON_FEATURES) for cell in cells):  # others need no features at hand
        path = Path(config.features).expanduser() if config.features is not None else None
        if path is None:
            found["features"] = None
        elif path.is_file():
            found["features"] = digest(path)
    return found


def check_same(out: Path, now: Facts) -> None:
    """Refuses a folder whose cells were measured on something else."""
    before = _read(out / FILE)
    usual = (None, min(MANY_LABELS, before.get("items", MANY_LABELS)))
    if "k" not in now and before.get("k") not in usual:
        now = now | {"k": None}
    for name, value in now.items():
        if name in before and before[name] != value:
            held, given = (f"no {name}" if one is None else _said(name, one) for one in (before[name], value))
            given = "these" if held == given else given  # two digests say no more
            raise InputError(f"{out} holds cells of {held}, not of {given}: name another folder with --out")


def write_down(out: Path, now: Facts) -> None:
    """Adds to what is known of the folder's cells."""
    before = _read(out / FILE)
    if before | now != before:
        with replacing_file(out / FILE) as file:
            file.write((json.dumps(before | now) + "\n").encode())


def _said(name: str, value: Any) -> str:
    return f"other {name}" if name in _DIGESTS else f"{name} {value}"


def _read(path: Path) -> Facts:
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as problem:
        raise FolderError(f"{path} cannot be read ({first_line(problem)}): remove it, and run again") from None
