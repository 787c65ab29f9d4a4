"""A saved model written for other runtimes, and checked there before it takes its place."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from .. import __version__
from ..encoders.onnx import OnnxCoder
from ..encoders.onnx_package import ABOUT, CODES, FEATURES, INPUTS, MODEL, OUTPUTS, PREPARATION, describe
from ..errors import ExportError, FolderError, InputError
from ..evaluate.report import read_report, write_figures
from ..hamming.bits import bytes_for, unpack
from ..models.adsh import load
from ..models.fingerprint import model_fingerprint
from ..models.info import shown_info
from ..models.protocol import HashModel
from ..models.storage_format import REPORT
from ..utils.files import check_writable, find_file, replacing
from .graph import OPSET, coding_of, to_onnx

FORMATS = ("onnx",)
TOLERANCE = 1e-3  # of the largest output; float32 alone makes differences of about 1e-6


@dataclass(frozen=True)
class Exported:
    """What was written."""

    folder: Path
    facts: dict[str, Any]  # as in export.json
    bytes: int  # of the model file
    seconds: float


def check_out(out: Path, format: str) -> None:
    """Raises where a model could not be exported to this folder."""
    if format not in FORMATS:
        raise InputError(f"--format {format}: choose {' or '.join(FORMATS)}")
    if out.is_dir() and any(out.iterdir()):
        raise FolderError(f"{out} holds files already: give a new or empty folder")
    check_writable(out, 1_000_000)


def export(folder: str | Path, out: str | Path, *, format: str = "onnx", network: nn.Module | None = None) -> Exported:
    """Writes the model of a folder to `out`; `network` is needed where it was fitted with a module of the user's own.

    The graph is run by onnxruntime beside the model itself, and nothing is written where the two differ.
    """
    started = time.perf_counter()
    out = Path(out)
    check_out(out, format)
    model: HashModel = load(folder, network=network, device="cpu")
    written, features = to_onnx(coding_of(model), model.input_shape_)
    check_writable(out, len(written) + 1_000_000)
    facts = _facts(model, model_fingerprint(Path(folder)), features)
    facts["model"] = shown_info(Path(folder))
    with replacing(out) as new:
        (new / MODEL).write_bytes(written)
        (new / ABOUT).write_text(describe(new / MODEL, facts), encoding="utf-8")
        facts["largest_difference"] = _check(model, OnnxCoder(new))
        (new / ABOUT).write_text(describe(new / MODEL, facts), encoding="utf-8")
        with suppress(InputError):  # it was not judged
            write_figures(read_report(find_file(Path(folder), REPORT)), new)
    return Exported(out, facts, len(written), time.perf_counter() - started)


def _facts(model: HashModel, fingerprint: str, features: int) -> dict[str, Any]:
    shape, bits = model.input_shape_, int(model.bits)
    of_pictures = len(shape) == 3 and shape[0] == shape[1] and shape[2] == 3
    network = None
    if model.network_ is not None:
        spec: Any = getattr(model.network_, "adsh_spec", None)
        network = spec["name"] if spec else type(model.network_).__qualname__
    return {
        "adsh_version": __version__,
        "method": model.name,
        "network": network,
        "bits": bits,
        "fingerprint": fingerprint,
        "input": {
            "name": INPUTS,
            "type": "uint8" if len(shape) == 3 else "float32",
            "shape": ["n", *shape],  # channels last
        },
        "outputs": {
            OUTPUTS: {"type": "float32", "shape": ["n", bits]},
            CODES: {"type": "uint8", "shape": ["n", bytes_for(bits)]},
            **({FEATURES: {"type": "float32", "shape": ["n", features]}} if features else {}),
        },
        "vector_size": features,
        "pictures": {"size": shape[0], "steps": list(PREPARATION)} if of_pictures else None,
        "mirror": model.flip_tta,  # inside the graph
        "classes": [str(name) for name in model.label_names_.get("database", ())],
        "opset": OPSET,
        "versions": {package: version(package) for package in ("torch", "onnx", "onnxruntime")},
    }


def _check(model: HashModel, coder: OnnxCoder) -> float:
    """The largest difference between the outputs of the two, relative to the largest output; one too large raises."""
    worst = 0.0
    for count in (1, 3):  # any number at once
        inputs = _examples(model, count)
        codes, outputs = model.encode(inputs), model.outputs(inputs)
        coded = coder.code_inputs(inputs)
        scale = max(float(np.abs(outputs).max()), 1e-30)
        difference = float(np.abs(coded.outputs - outputs).max()) / scale
        clear = np.abs(outputs) > TOLERANCE * scale
        differ = (unpack(coded.codes, coder.bits) != unpack(codes, coder.bits)) & clear
        if not difference <= TOLERANCE or differ.any():
            raise ExportError(
                f"the exported model does not agree with the model: outputs differ by up to {difference:.1e} of the "
                f"largest, {int(differ.sum())} bits differ; nothing was written"
            )
        worst = max(worst, difference)
    return worst


def _examples(model: HashModel, count: int) -> NDArray[Any]:
    """Inputs to compare with: any pixels, or features like those that the model was calibrated on."""
    rng, shape = np.random.default_rng(count), model.input_shape_
    if len(shape) == 3:
        return rng.integers(0, 256, (count, *shape), dtype=np.uint8)
    drawn = rng.standard_normal((count, *shape), dtype=np.float32)
    known: Any = getattr(model.network_, "standardize", None)
    return drawn if known is None else np.asarray(known.mean) + drawn / np.asarray(known.scale)
