"""A model as one ONNX graph, from items as the library takes them to packed codes.

The names of attributes here become names in the graph, which are part of the file format.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from ..data.loader import as_inputs
from ..encoders.onnx_package import CODES, FEATURES, INPUTS, OUTPUTS
from ..errors import AdshError, InputError, MissingExtraError, first_line
from ..methods.solvers.kernel import Kernel
from ..methods.solvers.ridge import Linear
from ..models.inference import capture_features
from ..models.protocol import HashModel
from ..networks.class_lookup import split_scores

OPSET = 18  # the first that resizes with antialiasing


class NetworkOutputs(nn.Module):
    """The network's outputs tanh(F(x)) and, where it has a last linear layer, the inputs of that layer.

    With `mirror`, an image and its mirror image go through the network as one batch.
    """

    def __init__(self, network: nn.Module, mirror: bool) -> None:
        super().__init__()
        self.network, self.mirror = network, mirror

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Return (n, c) outputs and (n, d) features."""
        x = as_inputs(inputs)
        if self.mirror:
            x = torch.cat([x, x.flip(-1)])
        scores, decide = split_scores(self.network)
        with capture_features(self.network) as seen:
            found = (scores(x), *seen)
        if self.mirror:
            found = tuple(values.reshape(2, -1, values.shape[1]).mean(0) for values in found)
        return torch.tanh(decide(found[0])), *found[1:]


class LinearOutputs(nn.Module):
    """`methods.solvers.ridge.Linear` in torch."""

    weights: Tensor
    offset: Tensor

    def __init__(self, function: Linear) -> None:
        super().__init__()
        self.register_buffer("weights", torch.from_numpy(function.weights))
        self.register_buffer("offset", torch.from_numpy(function.offset))

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Return (n, c) outputs."""
        return (inputs.flatten(1).float() @ self.weights + self.offset,)


class KernelOutputs(nn.Module):
    """`methods.solvers.kernel.Kernel` in torch."""

    centre: Tensor
    anchors: Tensor
    weights: Tensor
    offset: Tensor

    def __init__(self, function: Kernel) -> None:
        super().__init__()
        arrays = {name: torch.from_numpy(array) for name, array in function.arrays().items()}
        centre = arrays["anchors"].mean(0)
        self.register_buffer("centre", centre)
        self.register_buffer("anchors", arrays["anchors"] - centre)
        self.register_buffer("weights", arrays["weights"])
        self.register_buffer("offset", arrays.get("offset", torch.zeros(arrays["weights"].shape[1])))
        self.spread = float(arrays["spread"])

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Return (n, c) outputs."""
        x = inputs.flatten(1).float() - self.centre
        squares = x.square().sum(1, keepdim=True) - 2 * x @ self.anchors.T + self.anchors.square().sum(1)
        return (torch.exp(squares.clamp(min=0) * (-0.5 / self.spread**2)) @ self.weights + self.offset,)


_FUNCTIONS: dict[str, Any] = {Linear.kind: LinearOutputs, Kernel.kind: KernelOutputs}


class EncodingGraph(nn.Module):
    """Outputs and packed codes: `hamming.bits.pack` in torch."""

    places: Tensor

    def __init__(self, outputs: nn.Module, bits: int) -> None:
        super().__init__()
        self.outputs, self.padding = outputs, -bits % 8
        self.register_buffer("places", 2.0 ** torch.arange(7, -1, -1))
        self.eval()

    def forward(self, inputs: Tensor) -> tuple[Tensor, ...]:
        """Return (n, c) outputs, (n, bytes) codes and (n, d) features."""
        outputs, *features = self.outputs(inputs)
        ones = nn.functional.pad((outputs >= 0).float(), (0, self.padding))
        codes = (ones.reshape(-1, ones.shape[1] // 8, 8) * self.places).sum(-1)  # at most 255: exact in float32
        return outputs, codes.to(torch.uint8), *features


def encoding_graph(model: HashModel) -> EncodingGraph:
    """Return all that a fitted model, on the CPU, does to encode an item, as a module."""
    if model.network_ is not None:
        return EncodingGraph(NetworkOutputs(model.network_, model.flip_tta), model.bits)
    function = model.hash_
    if function.kind in _FUNCTIONS:
        return EncodingGraph(_FUNCTIONS[function.kind](function), model.bits)
    raise InputError(
        f"{model.name} encodes with {function.kind}, which cannot be exported: choose a method with a network, a "
        "linear function or a kernel"
    )


def to_onnx(graph: EncodingGraph, shape: tuple[int, ...]) -> tuple[bytes, int]:
    """Return the ONNX file for batches of items of this shape, and the number of features; 0 for none."""
    for package in ("onnx", "onnxscript"):
        try:
            import_module(package)
        except ImportError:
            raise MissingExtraError(f"exporting needs {package}: pip install 'adsh[export]'") from None
    kind = torch.uint8 if len(shape) == 3 else torch.float32
    example = torch.zeros((2, *shape), dtype=kind)
    with torch.no_grad(), _quiet():
        results = graph(example)
        names = [OUTPUTS, CODES, FEATURES][: len(results)]
        try:
            program: Any = torch.onnx.export(
                graph, (example,), dynamo=True, verbose=False, opset_version=OPSET, external_data=False,
                input_names=[INPUTS], output_names=names, dynamic_shapes={"inputs": {0: torch.export.Dim("n")}},
            )  # fmt: skip
        except AdshError:
            raise
        except Exception as problem:  # the exporter raises errors of any class for a user's own module
            raise InputError(
                f"torch cannot export this network to ONNX ({first_line(problem)}): make its forward plain tensor "
                "operations"
            ) from None
    proto = program.model_proto
    for part in (proto, proto.graph, *proto.graph.node, *proto.graph.value_info, *proto.graph.initializer):
        del part.metadata_props[:]  # stack traces with the paths of this machine
    return bytes(proto.SerializeToString()), int(results[2].shape[1]) if len(results) > 2 else 0


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide the exporter's log and warnings about itself."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            warnings.simplefilter("ignore", DeprecationWarning)
            yield
    finally:
        logger.setLevel(level)
