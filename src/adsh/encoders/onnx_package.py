"""The folder of a model exported to ONNX, and the JSON that says how to use it. Needs no torch.

model.onnx    `inputs` to `outputs`, `codes` and, where the model has them, `features`
export.json   bits, the model's fingerprint, how to prepare images, names of the classes, size and digest; facts
report.json   the results of the model's evaluation, if it was evaluated
familiarity.npz  what says how familiar an image looks, if the model knows
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import FolderError, first_line
from ..utils.files import digest, find_whole
from ..utils.reading import read_json

if TYPE_CHECKING:
    from ..learn.familiarity import Familiarity

FORMAT, FORMAT_VERSION = "adsh-onnx", 1
MODEL, ABOUT, FAMILIARITY = "model.onnx", "export.json", "familiarity.npz"
INPUTS, OUTPUTS, CODES, FEATURES = "inputs", "outputs", "codes", "features"
PREPARATION = (  # of images, for authors of other clients: data.images does it here
    "EXIF orientation applied",
    "transparency laid over white",
    "RGB of 8 bits a channel",
    "resized with Pillow's bilinear filter to `size` at the shorter side, size * longer // shorter at the other",
    "the middle size x size cut out",
)


@dataclass(frozen=True)
class About:
    """The part of export.json that encoding needs."""

    bits: int
    fingerprint: str
    shape: tuple[int, ...]  # of an input: (d,) float32, or (H, W, channels) uint8
    size: int | None  # the side that images are resized to; None where inputs are not images of any size
    vector_size: int  # 0 where there are no features
    classes: tuple[str, ...]
    lineage: tuple[str, ...] = ()  # fingerprints of the models that it descends from, oldest first
    has_bounded_outputs: bool = True  # whether outputs lie in -1 .. 1, as those of a network do


def describe(model: Path, facts: dict[str, Any]) -> str:
    """Return the text of export.json for a model file and facts of the model."""
    file = {"bytes": model.stat().st_size, "sha256": digest(model)}
    record = {"format": FORMAT, "format_version": FORMAT_VERSION, **facts, "files": {model.name: file}}
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def read(folder: Path) -> tuple[Path, About]:
    """Return the model file of an export and its description, after checking that the file is intact."""
    folder = find_whole(folder)
    again = "export or copy the model again"
    try:
        record = read_json(folder / ABOUT)
        if record["format"] != FORMAT or record["format_version"] != FORMAT_VERSION:
            found = f"{record['format']} {record['format_version']}"
            raise FolderError(f"{folder / ABOUT} is of format {found}, not {FORMAT} {FORMAT_VERSION}: {again}")
        path, file = folder / MODEL, record["files"][MODEL]
        if path.stat().st_size != file["bytes"] or digest(path) != file["sha256"]:
            raise FolderError(f"{path} is damaged (its digest differs): {again}")
        from ..hamming.bits import check_bits  # here: `adsh --help` needs no NumPy

        about = About(
            bits=check_bits(record["bits"]),
            fingerprint=str(record["fingerprint"]),
            shape=tuple(int(side) for side in record["input"]["shape"][1:]),
            size=None if record["pictures"] is None else int(record["pictures"]["size"]),
            vector_size=int(record["vector_size"]),
            classes=tuple(str(name) for name in record["classes"]),
            lineage=tuple(map(str, record.get("lineage", ()))),
            has_bounded_outputs=record.get("network") is not None,
        )
    except FolderError:
        raise
    except FileNotFoundError as problem:
        missing = Path(str(problem.filename)).name
        raise FolderError(f"{folder} has no {missing}: give a folder that adsh export wrote") from None
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise FolderError(f"{folder / ABOUT} cannot be read ({type(problem).__name__}: {problem}): {again}") from None
    return path, about


def is_export(folder: Path) -> bool:
    """Return whether `adsh export` wrote this folder."""
    return (find_whole(folder) / ABOUT).is_file()


def facts_of(folder: Path) -> dict[str, Any]:
    """Return facts of the model of an export, for people.

    Raises:
        FolderError: The folder is not an export.
    """
    path = find_whole(folder) / ABOUT
    try:
        record = read_json(path)
        facts = record.get("model") or {name: record[name] for name in ("method", "bits", "network") if record[name]}
        return dict(facts)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise FolderError(f"{path} cannot be read ({first_line(problem)}): export or copy the model again") from None


def read_familiarity(folder: Path) -> Familiarity | None:
    """Return what says how familiar items look; None where the model did not know."""
    path = find_whole(folder) / FAMILIARITY
    if not path.exists():
        return None
    from ..data.npz import Npz  # here: `adsh --help` needs no NumPy
    from ..learn.familiarity import Familiarity

    try:
        return Familiarity.load(dict(Npz(path)))
    except (KeyError, ValueError) as problem:
        raise FolderError(f"{path} is damaged ({first_line(problem)}): export or copy the model again") from None
