"""The data that the cells of a folder were measured on, stored with them so that no others are mixed in."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..data.fingerprint import of_labels
from ..errors import FolderError, InputError, first_line
from ..utils.files import digest, replacing_file
from .cell import Cell
from .experiment_config import FEATURE_NETWORKS, ExperimentConfig, protocol_of
from .experiment_data import MULTI_LABEL_K, ExperimentData

FILE = "measured_on.json"

_DIGESTS = ("labels", "features")

DataFacts = dict[str, Any]


def describe_data(config: ExperimentConfig, cells: Iterable[Cell], data: ExperimentData | None = None) -> DataFacts:
    """Describe the data that cells are measured on.

    Args:
        config: The configuration of the experiment.
        cells: The cells; without any that takes features, the features are left out.
        data: The opened data, where there is any: then its labels and the cut-off of MAP are described as well.

    Returns:
        Data set, protocol, and what else is known: k, number of items, digests of labels and features.
    """
    facts: DataFacts = {"dataset": Path(config.dataset).name, "protocol": protocol_of(config)}
    if data is not None:
        facts |= {"k": data.k, "items": len(data.labels), "labels": of_labels(data.labels)}
    elif config.k is not None:
        facts["k"] = config.k
    if any(cell.option("network") in (None, *FEATURE_NETWORKS) for cell in cells):
        path = Path(config.features).expanduser() if config.features is not None else None
        if path is None:
            facts["features"] = None
        elif path.is_file():
            facts["features"] = digest(path)
    return facts


def check_same_data(out: Path, facts: DataFacts) -> None:
    """Raise InputError if the cells of a folder were measured on other data."""
    stored = _read(out / FILE)
    default_ks = (None, min(MULTI_LABEL_K, stored.get("items", MULTI_LABEL_K)))
    if "k" not in facts and stored.get("k") not in default_ks:
        facts = facts | {"k": None}
    for name, value in facts.items():
        if name in stored and stored[name] != value:
            old, new = (f"no {name}" if one is None else _describe(name, one) for one in (stored[name], value))
            new = "these" if old == new else new  # two digests would say nothing
            raise InputError(f"{out} holds cells of {old}, not of {new}: name another folder with --out")


def store_facts(out: Path, facts: DataFacts) -> None:
    """Add to what is stored about the data of a folder's cells."""
    stored = _read(out / FILE)
    if stored | facts != stored:
        with replacing_file(out / FILE) as file:
            file.write((json.dumps(stored | facts) + "\n").encode())


def _describe(name: str, value: Any) -> str:
    return f"other {name}" if name in _DIGESTS else f"{name} {value}"


def _read(path: Path) -> DataFacts:
    if not path.exists():
        return {}
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as problem:
        raise FolderError(f"{path} cannot be read ({first_line(problem)}): remove it, and run again") from None
