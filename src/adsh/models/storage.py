"""A model as a folder: written whole or not at all, and checked when it is read.

Every format has a config.json; `storage_format` describes the rest of the files as data. What goes into them is the
model's own: `network_state` for a model with a network, `methods.state` for a method on features. No pickle anywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from ..errors import AdshError, FolderError, first_line
from ..utils.files import check_writable, digest, find_whole, replacing
from .registry import import_object
from .storage_format import CONFIG, FORMATS, StorageFormat, check_no_other_files, read_config

if TYPE_CHECKING:
    from torch import nn

    from .protocol import HashModel

_DAMAGE = (  # what reading the files of a damaged model may raise
    *(KeyError, IndexError, TypeError, ValueError, AttributeError, ArithmeticError),
    *(OSError, EOFError, RuntimeError, SafetensorError),
)
FileWriter = Callable[[Path], Any]  # writes one file, at the path it is given


def check_target(folder: Path, needed_bytes: int) -> None:
    """Raise where a model of this size could not be saved to the folder."""
    folder = folder.resolve()
    check_no_other_files(folder)
    check_writable(folder, needed_bytes)


def write_model(
    folder: Path, storage_format: StorageFormat, config: dict[str, Any], files: Mapping[str, FileWriter]
) -> None:
    """Write a model's folder, whole or not at all; a model of any format that was there is replaced.

    Args:
        folder: Where to save; `check_target` has accepted it.
        storage_format: The format to write.
        config: What config.json says, without the digests of the files.
        files: What writes each file of the format, by file name.
    """
    with replacing(folder) as new:
        for name, write in files.items():
            write(new / name)
        if storage_format.digested:
            listed = sorted({*storage_format.digested, *storage_format.optional} & set(files))
            config = config | {"files": {name: _describe(new / name) for name in listed}}
        text = json.dumps(config, indent=1, ensure_ascii=False, default=lambda value: value.item())
        (new / CONFIG).write_text(text + "\n", encoding="utf-8")
    for other in FORMATS.values():
        for name in {*other.files, *other.optional} - set(files):  # of the model that was replaced
            (folder / name).unlink(missing_ok=True)


def read_model(folder: Path, *, network: nn.Module | None = None, device: str | None = None) -> HashModel:
    """Return the model saved in the folder, whichever format it has.

    Args:
        folder: Where a model was saved.
        network: The user's own module that it was fitted with, where it was.
        device: Where to put its network; by default where it was trained.

    Returns:
        The fitted model.

    Raises:
        FolderError: There is no model, or one that is damaged or of a newer version.
    """
    folder = find_whole(folder)
    storage_format, config = read_config(folder)
    try:
        model: HashModel = import_object(storage_format.restore)(folder, config, network=network, device=device)
    except AdshError:
        raise
    except _DAMAGE as problem:
        reason = f"{type(problem).__name__}: {first_line(problem)}"
        raise FolderError(f"{folder} is not a whole adsh model ({reason}): save or copy it again") from None
    return model


def _describe(path: Path) -> dict[str, Any]:
    """Return the size and SHA-256 of a file, as config.json holds them."""
    return {"bytes": path.stat().st_size, "sha256": digest(path)}
