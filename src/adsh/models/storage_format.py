"""The formats of a saved model: the files of each, and whether a folder holds a whole one. Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import __version__
from ..errors import FolderError
from ..utils.files import digest, find_whole
from ..utils.reading import check_regular, read_json

CONFIG = "config.json"  # of both formats
WEIGHTS, CODES, ROW_NUMBERS, CARD = "model.safetensors", "codes.safetensors", "row_numbers.npy", "README.md"
REPLAY = "replay.safetensors"  # items kept for updates
FAMILIARITY = "familiarity.safetensors"  # what says how familiar an item looks
ARRAYS = "arrays.safetensors"
RUN, SPLIT, LOG, CHECKPOINTS, TENSORBOARD, REPORT, INDEX, FEATURES = (
    "run.toml", "split.npz", "log.jsonl", "checkpoints", "tensorboard", "report", "index", "features.npy",
)  # fmt: skip
ITEMS, UPDATES, UPDATING = "items.npz", "updates.jsonl", "updating"
RUN_FILES = (  # what a training run leaves next to the model: see runs.run_dir
    RUN, SPLIT, LOG, CHECKPOINTS, TENSORBOARD, REPORT, INDEX, ITEMS, UPDATES, UPDATING,
    FEATURES, f".{FEATURES}.part", f".{FEATURES}.json", "features.about.json",
)  # fmt: skip


@dataclass(frozen=True)
class StorageFormat:
    """How the models of one family lie in a folder."""

    name: str  # `format` of config.json
    version_key: str  # of config.json
    version: int  # the newest that this code reads
    files: tuple[str, ...]  # next to config.json
    digested: tuple[str, ...]  # files whose size and SHA-256 config.json holds
    restore: str  # "module:function" that builds the model from the folder and its config
    optional: tuple[str, ...] = ()  # files that some models have; config.json holds their digests


NETWORK_FORMAT = StorageFormat(  # ADSH and the deep methods; people edit their model cards, so those have no digest
    "adsh-model", "format_version", 1, files=(WEIGHTS, CODES, ROW_NUMBERS, CARD),
    digested=(WEIGHTS, CODES, ROW_NUMBERS), restore="adsh.models.network_state:restore", optional=(REPLAY, FAMILIARITY),
)  # fmt: skip
FUNCTION_FORMAT = StorageFormat(  # the methods on features
    "adsh-method", "version", 1, files=(ARRAYS,), digested=(), restore="adsh.methods.state:restore",
)  # fmt: skip
FORMATS = {each.name: each for each in (NETWORK_FORMAT, FUNCTION_FORMAT)}


def format_of(folder: Path) -> StorageFormat | None:
    """Return the format of the model saved in the folder; None where there is none."""
    try:
        config = read_json(find_whole(folder) / CONFIG)
    except (OSError, ValueError):
        return None
    return FORMATS.get(str(config.get("format"))) if isinstance(config, dict) else None


def holds_model(folder: Path) -> bool:
    """Return whether a model was saved in the folder."""
    return format_of(folder) is not None


def check_no_other_files(folder: Path) -> None:
    """Raise where the folder holds files of something else, and no model."""
    others = folder.is_dir() and any(path.name not in RUN_FILES for path in folder.iterdir())
    if others and not holds_model(folder):
        raise FolderError(f"{folder} holds other files and no adsh model: save to a new or empty folder")


def read_config(folder: Path) -> tuple[StorageFormat, dict[str, Any]]:
    """Return the format and config.json of a folder, once its version is known and its files are whole."""
    if not folder.is_dir():
        raise FolderError(f"{folder} is not a folder: give one that a model was saved in")
    config = _parse_config(folder)
    storage_format = FORMATS.get(str(config.get("format"))) if isinstance(config, dict) else None
    if storage_format is None:
        raise FolderError(f"{folder / CONFIG} is not an adsh model's: give a folder that a model was saved in")
    _check_version(folder, config.get(storage_format.version_key), storage_format.version)
    listed = config.get("files")
    present = [name for name in storage_format.optional if isinstance(listed, dict) and name in listed]
    for name in (*storage_format.digested, *present):
        problem = _file_problem(folder / name, config)
        if problem:
            raise FolderError(f"{folder / name} {problem}: save or copy the model again")
    return storage_format, config


def _parse_config(folder: Path) -> Any:
    try:
        return read_json(folder / CONFIG)
    except FileNotFoundError:
        if (folder / RUN).exists():
            reason = f"holds a run that is not finished: adsh train --resume --out {folder} continues it"
        elif (folder / "export.json").exists():
            reason = "is an export, which adsh serve takes: give the model itself here"
        else:
            reason = f"has no {CONFIG}: give a folder that a model was saved in"
        raise FolderError(f"{folder} {reason}") from None
    except (ValueError, OSError) as problem:
        raise FolderError(f"{folder / CONFIG} cannot be read ({problem}): save or copy the model again") from None


def _check_version(folder: Path, version: Any, newest: int) -> None:
    """Raise unless this release reads the version.

    Args:
        folder: The model's folder, for the error.
        version: As config.json has it.
        newest: The newest version that is read.
    """
    if not isinstance(version, int) or not 1 <= version <= newest:
        advice = "upgrade adsh" if isinstance(version, int) and version > newest else "save the model again"
        raise FolderError(
            f"{folder} has format version {version!r}, and adsh {__version__} reads 1 to {newest}: {advice}"
        )


def _file_problem(path: Path, config: dict[str, Any]) -> str:
    """Say what is wrong with a file, by its size and digest in config.json; empty for nothing."""
    try:
        check_regular(path)
        expected = config["files"][path.name]
        size, right_size, right_digest = path.stat().st_size, int(expected["bytes"]), str(expected["sha256"])
        if size != right_size:
            return f"has {size} bytes, not {right_size}"
        return "" if digest(path) == right_digest else "is damaged, its digest is another"
    except FileNotFoundError:
        return "is missing"
    except (KeyError, TypeError, ValueError):
        return f"is not described in {CONFIG}"
    except OSError as problem:
        return f"cannot be read ({problem.strerror or problem})"
