"""config.json of a saved model: what the folder is, and whether it is whole. Needs no torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import FolderError
from ..utils.files import digest, find_whole

FORMAT, FORMAT_VERSION = "adsh-model", 1
METHOD_FORMAT = "adsh-method"  # of methods without a network: see methods.saved
CONFIG, WEIGHTS, CODES, ROW_NUMBERS, CARD = (
    "config.json", "model.safetensors", "codes.safetensors", "row_numbers.npy", "README.md",
)  # fmt: skip
ARRAYS = "arrays.safetensors"  # of a method without a network
RUN, SPLIT, LOG, CHECKPOINTS, TENSORBOARD, REPORT, INDEX, FEATURES = (
    "run.toml", "split.npz", "log.jsonl", "checkpoints", "tensorboard", "report", "index", "features.npy",
)  # fmt: skip
BESIDE_THE_MODEL = (  # what a run leaves: see run_folder
    RUN, SPLIT, LOG, CHECKPOINTS, TENSORBOARD, REPORT, INDEX,
    FEATURES, f".{FEATURES}.part", f".{FEATURES}.json", "features.about.json",
)  # fmt: skip


def holds_model(folder: Path) -> bool:
    """Whether a model was saved there."""
    return kind_of(folder) in (FORMAT, METHOD_FORMAT)


def kind_of(folder: Path) -> str | None:
    """The format of what was saved there; None where nothing was."""
    try:
        config = json.loads((find_whole(folder) / CONFIG).read_text(encoding="utf-8"))
        return str(config.get("format")) if isinstance(config, dict) else None
    except (OSError, ValueError):
        return None


def check_others(folder: Path) -> None:
    """Raises where the folder holds files of somebody else's, and no model."""
    others = folder.is_dir() and any(path.name not in BESIDE_THE_MODEL for path in folder.iterdir())
    if others and not holds_model(folder):
        raise FolderError(f"{folder} holds other files and no adsh model: save to a new or empty folder")


def forget(folder: Path, *names: str) -> None:
    """Removes the files of a model of the other kind, once another has taken its place."""
    for name in names:
        (folder / name).unlink(missing_ok=True)


def checked_config(folder: Path) -> dict[str, Any]:
    """config.json, once it and the files it names are known to be whole and of a version this code reads."""
    if not folder.is_dir():
        raise FolderError(f"{folder} is not a folder: give one that a model was saved in")
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    except FileNotFoundError:
        if (folder / RUN).exists():
            raise FolderError(
                f"{folder} holds a run that is not finished: adsh train --resume --out {folder} goes on with it"
            ) from None
        if (folder / "export.json").exists():
            raise FolderError(f"{folder} is an export, which adsh serve takes: give the model itself here") from None
        raise FolderError(f"{folder} has no {CONFIG}: give a folder that a model was saved in") from None
    except (ValueError, OSError) as problem:
        raise FolderError(f"{folder / CONFIG} cannot be read ({problem}): save or copy the model again") from None
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise FolderError(f"{folder / CONFIG} is not an adsh model's: give a folder that a model was saved in")
    version = config.get("format_version")
    if not isinstance(version, int) or not 1 <= version <= FORMAT_VERSION:
        advice = "upgrade adsh" if isinstance(version, int) and version > FORMAT_VERSION else "save the model again"
        raise FolderError(
            f"{folder} has format version {version!r}, and adsh {__version__} reads 1 to {FORMAT_VERSION}: {advice}"
        )
    for name in (WEIGHTS, CODES, ROW_NUMBERS):
        path = folder / name
        try:
            expected = config["files"][name]
            size, wanted, right = path.stat().st_size, int(expected["bytes"]), str(expected["sha256"])
            found = f"has {size} bytes, not {wanted}" if size != wanted else ""
            if not found and digest(path) != right:
                found = "is damaged, its digest is another"
        except FileNotFoundError:
            found = "is missing"
        except (KeyError, TypeError, ValueError):
            found = f"is not described in {CONFIG}"
        except OSError as problem:
            found = f"cannot be read ({problem.strerror})"
        if found:
            raise FolderError(f"{path} {found}: save or copy the model again")
    return config
