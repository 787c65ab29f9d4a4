"""The exported graph gives what the model gives: every network, every method that can be exported, any batch."""

from __future__ import annotations

import os
import re
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

import adsh
from adsh.config import Recipe
from adsh.data import as_items
from adsh.encoders.onnx import OnnxEncoder
from adsh.errors import ExportError, FolderError, InputError
from adsh.export.graph import EncodingGraph, NetworkOutputs, to_onnx
from adsh.export.onnx import export
from adsh.hamming.bits import pack, unpack
from adsh.models.fingerprint import model_fingerprint
from adsh.models.inference import capture_features, outputs
from adsh.networks import NETWORKS, create_network

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

BITS = 20  # not a multiple of 8: the padding is tried too
CPU = torch.device("cpu")
RANDOM = {"weights": None}
WHOLE = ("resnet18", "efficientnet_lite0")  # the others repeat their parts, or are small
# the side of the images given, and options: smaller than usual, resized up, down and not at all
CASES: dict[str, tuple[int, dict[str, object]]] = {
    "tiny": (21, {}),
    "dsh_net": (40, {}),
    "cnn_f": (64, {"size": 96}),
    "alexnet": (64, {"size": 80, "enlarge": "bicubic"}),
    "vgg11": (32, {"size": 32}),
    "resnet18": (64, {"size": 48}),
    "resnet50": (32, {"size": 33}),
    "efficientnet_lite0": (80, {"size": 64, **RANDOM}),
    "frozen:dsh_net": (32, {"hidden": 64}),
}


def inputs_of(shape: tuple[int, ...], count: int) -> np.ndarray:
    rng = np.random.default_rng(count)
    if len(shape) == 1:
        return rng.normal(size=(count, *shape)).astype(np.float32)
    return rng.integers(0, 256, (count, *shape), dtype=np.uint8)


def lightened(network: nn.Module) -> nn.Module:
    """Layers of 4,096 units made 32 wide, and what repeats a block of the same shape left out: the operators are the
    same, and neither half a gigabyte of weights nor a minute of tracing is spent. $ADSH_WHOLE_NETWORKS leaves all."""
    if os.environ.get("ADSH_WHOLE_NETWORKS"):
        return network
    for module in list(network.modules()):
        for name, layer in list(module.named_children()):
            if isinstance(layer, nn.Linear) and 4096 in (layer.in_features, layer.out_features):
                sides = (32 if side == 4096 else side for side in (layer.in_features, layer.out_features))
                setattr(module, name, nn.Linear(*sides))
            elif re.fullmatch(r"layer\d", name):  # of a ResNet
                setattr(module, name, layer[:2])
            elif name == "blocks":  # of an EfficientNet-Lite
                kept = [
                    block for before, block in pairwise([None, *layer]) if not (before and before.adds and block.adds)
                ]
                setattr(module, name, nn.Sequential(*kept))
    return network


def check_parity(network: nn.Module, shape: tuple[int, ...], mirror: bool) -> None:
    """The graph beside `coding.outputs`, in batches of 1 and 3."""
    written, width = to_onnx(EncodingGraph(NetworkOutputs(network.eval(), mirror), BITS), shape)
    session = onnxruntime.InferenceSession(written, providers=["CPUExecutionProvider"])
    for count in (1, 3):
        given = inputs_of(shape, count)
        recipe = Recipe(mirror=mirror)
        with capture_features(network) as seen:
            expected = torch.cat(list(outputs(network, as_items(given), CPU, recipe, range(count)))).numpy()
        found, codes, features = session.run(["outputs", "codes", "features"], {"inputs": given})
        scale = np.abs(expected).max()
        assert scale > 0
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-4 * scale)
        assert np.array_equal(codes, pack(found))
        clear = np.abs(expected) > 1e-4 * scale
        assert np.array_equal(unpack(codes, BITS)[clear], np.sign(expected)[clear])
        vectors = torch.stack(seen).mean(0).numpy()
        assert features.shape == vectors.shape == (count, width)
        np.testing.assert_allclose(features, vectors, rtol=0, atol=1e-4 * np.abs(vectors).max())


def test_every_kind_of_network_has_a_case():
    kinds = {name.rstrip("0123456789") for name in CASES}  # larger ones have more of the same layers
    assert {name.rstrip("0123456789") for name in NETWORKS if name not in ("linear", "mlp")} <= kinds


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        *(pytest.param(n, False, marks=pytest.mark.slow if n in ("vgg11", "resnet50", "cnn_f") else ()) for n in CASES),
        *(pytest.param(n, True, marks=pytest.mark.slow) for n in WHOLE),
    ],
)
def test_a_network_of_images_is_exported_with_its_resizing_and_mirror_images(name, whole):
    side, options = CASES[name]
    torch.manual_seed(0)
    network = create_network(name, BITS, (side, side, 3), **options)
    check_parity(network if whole else lightened(network), (side, side, 3), mirror=True)


def test_a_network_is_exported_without_mirror_images_and_for_images_that_are_not_square():
    torch.manual_seed(0)
    check_parity(create_network("dsh_net", BITS, (24, 40, 3)), (24, 40, 3), mirror=False)


@pytest.mark.parametrize("name", ["linear", "mlp"])
def test_a_network_of_features_is_exported_with_its_standardisation(name):
    torch.manual_seed(0)
    network = create_network(name, BITS, (12,))
    network.calibrate(torch.randn(100, 12) * 7 + 30)
    check_parity(network, (12,), mirror=False)


def test_a_network_of_timm_is_exported():
    try:
        import timm  # noqa: F401  # only whether it imports matters
    except Exception as problem:
        pytest.skip(f"timm does not import here: {problem}")
    network = create_network("timm:resnet10t", BITS, (32, 32, 3), size=64, **RANDOM)
    check_parity(network, (32, 32, 3), mirror=True)


@pytest.mark.parametrize("name", ["adsh", "classifier", "dsh", "dhn", "dpsh"])
def test_a_saved_model_with_a_network_keeps_its_codes(name, blobs, tmp_path):
    features, labels = blobs
    options = {"network": "linear", "outer": 1, "samples": 100, "progress": False}
    model = adsh.ADSH(BITS, **options) if name == "adsh" else adsh.methods.create(name, bits=BITS, **options)
    model.fit(features, labels, save_to=tmp_path / "model")
    written = export(tmp_path / "model", tmp_path / "onnx")
    encoder = OnnxEncoder(tmp_path / "onnx", threads=1)
    encoding = encoder.encode_features(features)
    clear = np.abs(model.outputs(features)) > 1e-4
    differ = unpack(encoding.codes, BITS) != unpack(model.encode(features), BITS)
    assert not (differ & clear).any()
    np.testing.assert_allclose(encoding.vectors, model.codes_and_features(features)[1], atol=1e-4)
    assert encoder.fingerprint == model_fingerprint(tmp_path / "model")
    assert encoder.classes == ("0", "1", "2")
    assert written.facts["method"] == name


@pytest.mark.parametrize(("name", "options"), [("lsh", {}), ("itq", {}), ("sdh", {"anchors": 50})])
def test_a_method_of_a_linear_function_or_a_kernel_keeps_its_codes(name, options, blobs, tmp_path):
    features, labels = blobs
    model = adsh.methods.create(name, bits=8, progress=False, **options)
    model.fit(features, labels, save_to=tmp_path / "model")
    export(tmp_path / "model", tmp_path / "onnx")
    encoder = OnnxEncoder(tmp_path / "onnx", threads=1)
    encoding = encoder.encode_features(features)
    real = model.hash_.outputs(features.astype(np.float32))
    clear = np.abs(real) > 1e-4 * np.abs(real).max()
    assert np.array_equal(unpack(encoding.codes, 8)[clear], np.sign(real)[clear])
    assert encoding.vectors is None
    assert encoder.vector_size == 0


def test_trees_are_refused_with_what_can_be_exported(blobs, tmp_path):
    features, labels = blobs
    model = adsh.methods.create("fasth", bits=4, progress=False)
    model.fit(features, labels, save_to=tmp_path / "model")
    with pytest.raises(InputError, match="fasth encodes with trees, which cannot be exported: choose a method with a"):
        export(tmp_path / "model", tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


@pytest.fixture
def saved(blobs, tmp_path):
    features, labels = blobs
    adsh.ADSH(8, network="linear", outer=1, progress=False).fit(features, labels, save_to=tmp_path / "model")
    return tmp_path / "model"


def test_a_graph_that_does_not_agree_is_not_written(saved, tmp_path, monkeypatch):
    real = adsh.ADSH.outputs
    monkeypatch.setattr(adsh.ADSH, "outputs", lambda self, X: real(self, X) + np.float32(0.01))
    with pytest.raises(ExportError, match="does not agree with the model: outputs differ by up to .*nothing was writ"):
        export(saved, tmp_path / "onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_a_module_of_ones_own_is_exported_where_it_is_given(blobs, tmp_path):
    features, labels = blobs
    module = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
    adsh.ADSH(8, network=module, outer=1, progress=False).fit(features, labels, save_to=tmp_path / "model")
    with pytest.raises(FolderError, match="your own module"):
        export(tmp_path / "model", tmp_path / "onnx")
    export(tmp_path / "model", tmp_path / "onnx", network=module)
    assert OnnxEncoder(tmp_path / "onnx", threads=1).encode_features(features).vectors is None


def test_a_damaged_or_foreign_folder_is_refused(saved, tmp_path):
    export(saved, tmp_path / "onnx")
    path = tmp_path / "onnx" / "model.onnx"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(FolderError, match="is damaged \\(its digest differs\\): export or copy the model again"):
        OnnxEncoder(tmp_path / "onnx")
    path.unlink()
    with pytest.raises(FolderError, match="has no model.onnx"):
        OnnxEncoder(tmp_path / "onnx")
    (tmp_path / "onnx" / "export.json").write_text('{"format": "adsh-onnx", "format_version": 2}')
    with pytest.raises(FolderError, match="is of format adsh-onnx 2, not adsh-onnx 1"):
        OnnxEncoder(tmp_path / "onnx")
    (tmp_path / "onnx" / "export.json").write_text("[]")
    with pytest.raises(FolderError, match="cannot be read"):
        OnnxEncoder(tmp_path / "onnx")
    with pytest.raises(FolderError, match="has no export.json: give a folder that adsh export wrote"):
        OnnxEncoder(saved)


def test_the_graph_holds_no_paths_of_the_machine_that_exported_it(saved, tmp_path):
    export(saved, tmp_path / "onnx")
    assert b".py" not in (tmp_path / "onnx" / "model.onnx").read_bytes()
