"""What a saved model is, read without loading it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .files import find_whole
from .model_config import checked_config
from .run_folder import RunFolder


def model_info(folder: Path) -> dict[str, Any]:
    """Facts for a person: sizes, network, training, and the run behind it."""
    config = checked_config(find_whole(folder))
    params, recipe, history = config["params"], config["recipe"], config["history"]
    names = config["labels"].get("database", ())
    some = ", ".join(str(name) for name in names[:10]) + (", …" if len(names) > 10 else "")
    total = sum(file["bytes"] for file in config["files"].values())
    told: dict[str, Any] = {
        "model": str(folder),
        "bits": params["bits"],
        "network": params["network"],
        "input": " x ".join(str(side) for side in config["input_shape"]),
        "points": config["points"],
        "distinct_rows": config["rows"],
        "labels": f"{len(names)}: {some}" if names else "none: learned from a given similarity",
        "preset": params["preset"],
        "seed": params["seed"],
        "training": f"{len(history)} outer iterations of {recipe['samples']:,} points x {recipe['inner']}, "
        f"batch {recipe['batch_size']}, lr {recipe['lr']:g}, gamma {recipe['gamma']:g}",
        "loss": round(history[-1]["loss"], 6),
        "seconds": round(sum(record["seconds"] for record in history), 2),
        "trained_on": config["trained_on"],
        "bytes": total,
        "adsh_version": config["adsh_version"],
    }
    run = RunFolder(folder)
    trained = run.read_run().get("train", {})
    if trained:
        told["source"] = trained["source"]
        told["protocol"] = f"{trained.get('protocol')}, split seed {trained.get('split_seed')}"
    return told
