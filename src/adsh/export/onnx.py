"""Export a saved model to ONNX, and compare the two before anything is written."""

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
from ..encoders.onnx import OnnxEncoder
from ..encoders.onnx_package import ABOUT, CODES, FAMILIARITY, FEATURES, INPUTS, MODEL, OUTPUTS, PREPARATION, describe
from ..errors import ExportError, FolderError, InputError
from ..evaluate.report import read_report, write_figures
from ..hamming.bits import bytes_for, unpack
from ..models.adsh import load
from ..models.fingerprint import identify
from ..models.info import shown_info
from ..models.protocol import HashModel
from ..models.storage_format import REPORT
from ..networks.traits import traits_of
from ..utils.files import check_writable, find_file, replacing
from .graph import OPSET, encoding_graph, to_onnx

FORMATS = ("onnx",)
TOLERANCE = 1e-3  # of the largest output; float32 alone makes differences of about 1e-6


@dataclass(frozen=True)
class Exported:
    """An exported model."""

    folder: Path
    facts: dict[str, Any]  # as in export.json
    bytes: int  # of the model file
    seconds: float


def check_out(out: Path, format: str) -> None:
    """Raise if a model cannot be exported to this folder."""
    if format not in FORMATS:
        raise InputError(f"--format {format} is unknown: choose {' or '.join(FORMATS)}")
    if out.is_dir() and any(out.iterdir()):
        raise FolderError(f"{out} is not empty: give a new or empty folder")
    check_writable(out, 1_000_000)


def export(folder: str | Path, out: str | Path, *, format: str = "onnx", network: nn.Module | None = None) -> Exported:
    """Export a saved model.

    onnxruntime runs the graph on examples; nothing is written if its results differ from the model's.

    Args:
        folder: The saved model.
        out: The folder to write; must be new or empty.
        format: "onnx".
        network: The module that the model was fitted with, if that was the user's own.

    Returns:
        What was written, and how long it took.

    Raises:
        InputError: The method's hash function cannot be exported.
        ExportError: The exported graph does not agree with the model.
    """
    started = time.perf_counter()
    out = Path(out)
    check_out(out, format)
    model: HashModel = load(folder, network=network, device="cpu")
    written, features = to_onnx(encoding_graph(model), model.input_shape_)
    check_writable(out, len(written) + 1_000_000)
    known = identify(Path(folder))
    facts = _facts(model, known.fingerprint, features)
    if known.lineage:
        facts["lineage"] = list(known.lineage)
    facts["model"] = shown_info(Path(folder))
    with replacing(out) as new:
        (new / MODEL).write_bytes(written)
        (new / ABOUT).write_text(describe(new / MODEL, facts), encoding="utf-8")
        facts["largest_difference"] = _check(model, OnnxEncoder(new))
        (new / ABOUT).write_text(describe(new / MODEL, facts), encoding="utf-8")
        if model.familiarity_ is not None:
            np.savez(new / FAMILIARITY, allow_pickle=False, **model.familiarity_.arrays())
        with suppress(InputError):  # it was not evaluated
            write_figures(read_report(find_file(Path(folder), REPORT)), new)
    return Exported(out, facts, len(written), time.perf_counter() - started)


def _facts(model: HashModel, fingerprint: str, features: int) -> dict[str, Any]:
    shape, bits = model.input_shape_, int(model.bits)
    takes_images = len(shape) == 3 and shape[0] == shape[1] and shape[2] == 3
    network = None
    if model.network_ is not None:
        spec = traits_of(model.network_).spec
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
        "pictures": {"size": shape[0], "steps": list(PREPARATION)} if takes_images else None,
        "mirror": model.flip_tta,  # inside the graph
        "classes": [str(name) for name in model.label_names_.get("database", ())],
        "opset": OPSET,
        "versions": {package: version(package) for package in ("torch", "onnx", "onnxruntime")},
    }


def _check(model: HashModel, encoder: OnnxEncoder) -> float:
    """Return how much the outputs of the two differ, relative to the largest output; raise if it is too much."""
    largest = 0.0
    for count in (1, 3):  # any number at once
        inputs = _examples(model, count)
        codes, outputs = model.encode(inputs), model.outputs(inputs)
        encoding = encoder.encode_inputs(inputs)
        scale = max(float(np.abs(outputs).max()), 1e-30)
        difference = float(np.abs(encoding.outputs - outputs).max()) / scale
        clear = np.abs(outputs) > TOLERANCE * scale
        differ = (unpack(encoding.codes, encoder.bits) != unpack(codes, encoder.bits)) & clear
        if not difference <= TOLERANCE or differ.any():
            raise ExportError(
                f"the exported model does not agree with the model: outputs differ by up to {difference:.1e} of the "
                f"largest, {int(differ.sum())} bits differ; nothing was written"
            )
        largest = max(largest, difference)
    return largest


def _examples(model: HashModel, count: int) -> NDArray[Any]:
    """Return random inputs: pixels, or features with the moments that the model was calibrated on."""
    rng, shape = np.random.default_rng(count), model.input_shape_
    if len(shape) == 3:
        return rng.integers(0, 256, (count, *shape), dtype=np.uint8)
    features = rng.standard_normal((count, *shape), dtype=np.float32)
    moments: Any = getattr(model.network_, "standardize", None)  # of a network on features; any module may be given
    return features if moments is None else np.asarray(moments.mean) + features / np.asarray(moments.scale)
