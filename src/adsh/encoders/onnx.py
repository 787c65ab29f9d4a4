"""Encode images or features with a model exported to ONNX. Needs only onnxruntime, NumPy and Pillow.

Images are decoded and resized as everywhere in this package, so their codes equal those of the model itself;
`adsh export` compared the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ..data.images.decode import as_pixels
from ..data.images.resized import resize_image
from ..data.reader_pool import in_order, worker_count
from ..errors import FolderError, InputError, MissingExtraError, first_line
from ..hamming.bits import bytes_for
from .base import Encoding
from .onnx_package import ABOUT, FEATURES, INPUTS, OUTPUTS, About, read, read_familiarity
from .onnx_package import CODES as CODES_OUTPUT

_BATCH = 32  # items that go through the network at once: activations of large images fill a small machine's memory


class OnnxEncoder:
    """Encode images, or features, with the model in a folder that `adsh export` wrote.

    Several threads may call it at once.

    Args:
        folder: The exported model.
        threads: How many threads decode images and run one batch; one a core by default.

    Attributes:
        bits: Length of a code.
        fingerprint: Identifies the model, as an index stores it.
        lineage: The fingerprints of the models that it descends from, oldest first.
        vector_size: Width of the vectors; 0 for none.
        size: The side that images are resized to; 0 where they are taken as they are.
        classes: Names of the classes that the model was trained on.
        familiarity: How familiar an item looks; None where the model did not know.
    """

    def __init__(self, folder: str | Path, threads: int | None = None) -> None:
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise InputError(f"threads={threads!r}: give a whole number of at least 1, or None for one a core")
        path, self.about = read(Path(folder))
        self._threads = worker_count(threads)
        self._session: Any = _session(path, self._threads)
        _check_graph(self._session, self.about, path)
        self.bits, self.fingerprint, self.lineage = self.about.bits, self.about.fingerprint, self.about.lineage
        self.vector_size, self.classes = self.about.vector_size, self.about.classes
        self.familiarity = read_familiarity(Path(folder))
        self.size = self.about.size or 0

    def encode(self, images: Sequence[Image.Image]) -> Encoding:
        """Return the codes of images of any size; paths and the bytes of image files are accepted too."""
        shape = _image_shape(self.about)
        inputs = np.empty((len(images), *shape), dtype=np.uint8)
        pixels = in_order(lambda image: self._pixels(image, shape), images, self._threads if len(images) > 1 else 0)
        for row, image in enumerate(pixels):
            inputs[row] = image
        return self.encode_inputs(inputs)

    def encode_features(self, features: Any) -> Encoding:
        """Return the codes of (n, d) features, for a model that was fitted on features."""
        shape, array = self.about.shape, np.asarray(features)
        if len(shape) != 1:
            raise InputError(f"the model takes {' x '.join(map(str, shape))} images, not features: call encode")
        if array.ndim != 2 or array.shape[1:] != shape or array.dtype.kind not in "biuf":
            raise InputError(
                f"features have shape {array.shape} and type {array.dtype}: the model takes numbers (n, {shape[0]})"
            )
        inputs = np.ascontiguousarray(array, dtype=np.float32)
        if not np.isfinite(inputs).all():
            raise InputError("features hold NaN, infinity or a value beyond float32: clean or scale them")
        return self.encode_inputs(inputs)

    def code_for(self, labels: Sequence[str]) -> bytes | None:
        """Return None: an export has no codes of labels."""
        return None

    def close(self) -> None:
        """Free the model; nothing can be encoded afterwards."""
        self._session = None

    def _pixels(self, image: Any, shape: tuple[int, ...]) -> NDArray[np.uint8]:
        pixels = as_pixels(image)
        if self.about.size is not None:
            return resize_image(pixels, self.about.size)
        if pixels.shape != shape:
            raise InputError(
                f"an image has {pixels.shape[0]} x {pixels.shape[1]} pixels, but the model was fitted on "
                f"{shape[0]} x {shape[1]}: give that size"
            )
        return pixels

    def encode_inputs(self, inputs: NDArray[Any]) -> Encoding:
        """Return the codes of inputs of the graph: resized images, or features."""
        session = self._session
        if session is None:
            raise InputError("this encoder is closed: create another")
        names = [CODES_OUTPUT, OUTPUTS, *[FEATURES] * bool(self.vector_size)]
        batches = [
            session.run(names, {INPUTS: inputs[start : start + _BATCH]}) for start in range(0, len(inputs), _BATCH)
        ]
        if not batches:
            widths = ((bytes_for(self.bits), np.uint8), (self.bits, np.float32), (self.vector_size, np.float32))
            batches = [[np.empty((0, width), dtype=kind) for width, kind in widths[: len(names)]]]
        codes, outputs, *features = (np.concatenate(parts) for parts in zip(*batches, strict=True))
        vectors = features[0] if features else None
        compared = inputs if len(self.about.shape) == 1 else vectors
        familiar = None if self.familiarity is None or compared is None else self.familiarity(compared)
        return Encoding(codes, outputs, vectors, familiar)

    # The former names of these methods.
    code, code_features, code_inputs = encode, encode_features, encode_inputs


OnnxCoder = OnnxEncoder
"""The former name of `OnnxEncoder`."""


def _image_shape(about: About) -> tuple[int, ...]:
    if len(about.shape) != 3:
        raise InputError(f"the model takes {about.shape[0]} features an item, not images: call encode_features")
    if about.shape[2] != 3:
        raise InputError("the model takes images of one channel, and image files have three: train it on RGB images")
    return about.shape


def _check_graph(session: Any, about: About, path: Path) -> None:
    """Raise unless the graph takes and returns what export.json says.

    Args:
        session: The loaded graph.
        about: What export.json says.
        path: The model file, for the error.
    """
    octets, floats = "tensor(uint8)", "tensor(float)"
    expected = {
        INPUTS: (octets if len(about.shape) == 3 else floats, about.shape),
        OUTPUTS: (floats, (about.bits,)),
        CODES_OUTPUT: (octets, (bytes_for(about.bits),)),
    }
    if about.vector_size:
        expected[FEATURES] = (floats, (about.vector_size,))
    found = {node.name: (node.type, tuple(node.shape[1:])) for node in (*session.get_inputs(), *session.get_outputs())}
    for name, (kind, shape) in expected.items():
        if found.get(name) != (kind, shape):
            has = "none" if name not in found else f"{found[name][0]} of shape {found[name][1]}"
            raise FolderError(
                f"{path} has {has} as {name}, but {ABOUT} says {kind} of shape {shape}: export or copy the model again"
            )


def _session(path: Path, threads: int) -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise MissingExtraError("encoding with an ONNX model needs onnxruntime: pip install onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # cores are shared with decoding
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as problem:  # of classes of its own, one a kind of trouble
        raise FolderError(f"onnxruntime cannot load {path} ({first_line(problem)}): upgrade onnxruntime") from None
