"""Facts about a saved model, read without loading it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..errors import FolderError, first_line
from ..utils.files import find_file, find_whole, read_toml
from ..utils.redaction import redact_paths
from .storage_format import ARRAYS, FUNCTION_FORMAT, RUN, read_config


def model_info(folder: Path) -> dict[str, Any]:
    """Return facts for people: sizes, network, training, and the run behind it."""
    storage_format, config = read_config(find_whole(folder))
    try:
        facts = _method_info(folder, config) if storage_format is FUNCTION_FORMAT else _network_info(folder, config)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as problem:
        reason = f"{type(problem).__name__}: {first_line(problem)}"
        raise FolderError(f"{folder} is not a whole adsh model ({reason}): save or copy it again") from None
    return _with_run(folder, facts)


def _network_info(folder: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a model with a network."""
    params, recipe, history = config["params"], config["recipe"], config["history"]
    names = config["labels"].get("database", ())
    shown = ", ".join(str(name) for name in names[:10]) + (", …" if len(names) > 10 else "")
    total = sum(file["bytes"] for file in config["files"].values())
    return {
        "model": str(folder),
        "method": config.get("method", "adsh") + "_d" * bool(params.get("whole")),
        "bits": params["bits"],
        "network": params["network"],
        "input": " x ".join(str(side) for side in config["input_shape"]),
        "points": config["points"],
        "distinct_rows": config["rows"],
        "labels": f"{len(names)}: {shown}" if names else "none: learned from a given similarity",
        "preset": params["preset"],
        "seed": params["seed"],
        "training": f"{len(history)} outer iterations of {recipe['samples']:,} points x {recipe['inner']}, "
        f"batch {recipe['batch_size']}, lr {recipe['lr']:g}"
        + (f", gamma {recipe['gamma']:g}" if "gamma" in params else ""),
        "loss": round(history[-1]["loss"], 6),
        "seconds": round(sum(record["seconds"] for record in history), 2),
        "trained_on": config["trained_on"],
        "bytes": total,
        "adsh_version": config["adsh_version"],
    }


def shown_info(folder: Path) -> dict[str, Any]:
    """Return the facts for others: without paths of this machine."""
    facts = model_info(folder)
    facts.pop("model")
    return redact_paths(facts)


def _method_info(folder: Path, config: dict[str, Any]) -> dict[str, Any]:
    """Return the facts of a method on features."""
    options, history = config["options"], config["history"]
    return {
        "model": str(folder),
        "method": config["method"],
        "bits": config["bits"],
        "input": " x ".join(str(side) for side in config["input_shape"]),
        "points": config["points"],
        "options": ", ".join(f"{name} {value}" for name, value in options.items()),
        "training": f"{int(history[-1]['outer'])} rounds" if history else "no rounds",
        **({"loss": round(history[-1]["loss"], 6)} if history else {}),
        "seconds": round(sum(config["seconds"].values()), 2),
        "bytes": sum(path.stat().st_size for path in find_whole(folder).glob(ARRAYS)),
        "adsh_version": config["adsh_version"],
    }


def _with_run(folder: Path, facts: dict[str, Any]) -> dict[str, Any]:
    path = find_file(folder, RUN)
    trained = read_toml(path).get("train", {}) if path.exists() else {}
    if trained:
        facts["source"] = trained["source"]
        facts["protocol"] = f"{trained.get('protocol')}, split seed {trained.get('split_seed')}"
    return facts
