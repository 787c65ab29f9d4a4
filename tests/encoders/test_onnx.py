"""Images through ONNX get the codes that `adsh encode` gives them, and torch is not there."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import adsh
from adsh.data.images.files import ImageFiles
from adsh.encoders.onnx import OnnxEncoder
from adsh.errors import AdshError, InputError, MissingExtraError
from adsh.export.onnx import export
from adsh.hamming.bits import unpack
from adsh.models.fingerprint import model_fingerprint
from adsh.runs.encode import items_for

pytest.importorskip("onnxruntime")
pytest.importorskip("onnxscript")

BITS = 12
DOCS = Path(__file__).parents[2] / "docs/howto/export.md"


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory):
    """A model of 24 x 24 images with mirror images."""
    folder = tmp_path_factory.mktemp("models")
    images = np.random.default_rng(0).integers(0, 256, (60, 24, 24, 3), dtype=np.uint8)
    labels = np.arange(60) % 3
    images[labels == 1, :12] //= 4
    images[labels == 2, :, :8] //= 4
    recipe = {"mirror": True}
    model = adsh.ADSH(BITS, network="tiny", outer=2, recipe=recipe, progress=False)
    model.fit(images, [("ash", "elm", "fir")[i] for i in labels], save_to=folder / "photos-12bits")
    export(folder / "photos-12bits", folder / "photos-onnx")
    return folder


@pytest.fixture(scope="module")
def encoder(model_folder):
    return OnnxEncoder(model_folder / "photos-onnx", threads=2)


@pytest.fixture(scope="module")
def image_files(tmp_path_factory):
    """Files of odd sizes and of every kind that decoding treats in its own way."""
    folder, rng = tmp_path_factory.mktemp("images"), np.random.default_rng(1)

    def noise(height: int, width: int, channels: int) -> Image.Image:
        coarse = rng.integers(0, 256, (5, 7, channels), dtype=np.uint8).squeeze()
        return Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC)

    rotated = Image.Exif()
    rotated[0x0112] = 6
    noise(37, 61, 3).save(folder / "plain.png")
    noise(301, 200, 3).save(folder / "tall.jpg", quality=85)
    noise(101, 333, 3).save(folder / "rotated.jpg", exif=rotated)
    noise(50, 50, 1).save(folder / "grey.png")
    noise(40, 31, 4).save(folder / "transparent.png")
    noise(64, 80, 3).quantize(16).save(folder / "palette.gif")
    noise(24, 24, 3).save(folder / "its_size.bmp")
    noise(9, 11, 3).save(folder / "small.png")
    noise(90, 60, 4).convert("CMYK").save(folder / "cmyk.jpg")
    Image.fromarray(rng.integers(0, 1 << 16, (33, 29), dtype=np.uint16)).save(folder / "deep.png")
    return sorted(folder.iterdir())


def opened(path: Path) -> Image.Image:
    return Image.open(io.BytesIO(path.read_bytes()))  # as a server has it: no file is left open


def test_images_get_the_codes_that_the_model_gives_their_files(model_folder, encoder, image_files):
    model = adsh.load(model_folder / "photos-12bits", device="cpu")
    items, _ = items_for(model, ImageFiles(Path(), [str(path) for path in image_files], None, name="images"))
    expected, (codes, vectors) = model.outputs(items), model.codes_and_features(items)
    encoding = encoder.encode([opened(path) for path in image_files])
    np.testing.assert_allclose(encoding.outputs, expected, atol=1e-4)
    differ = unpack(encoding.codes, BITS) != unpack(codes, BITS)
    assert not (differ & (np.abs(expected) >= 1e-4)).any()
    np.testing.assert_allclose(encoding.vectors, vectors, atol=1e-4)
    assert len(np.unique(expected.round(3), axis=0)) == len(image_files)
    assert (encoder.bits, encoder.vector_size, encoder.classes) == (BITS, vectors.shape[1], ("ash", "elm", "fir"))
    assert encoder.fingerprint == model_fingerprint(model_folder / "photos-12bits")


def test_an_image_gets_one_code_alone_and_among_others_and_from_several_threads(encoder, image_files):
    together = encoder.encode([opened(path) for path in image_files] * 4)  # more than one batch
    assert together.codes.shape == (4 * len(image_files), 2)
    assert together.codes.dtype == np.uint8
    with ThreadPoolExecutor(4) as pool:
        alone = list(pool.map(lambda path: encoder.encode([opened(path)]), image_files))
    outputs = np.concatenate([one.outputs for one in alone])
    np.testing.assert_allclose(np.tile(outputs, (4, 1)), together.outputs, atol=1e-5)


def test_no_images_give_no_codes(encoder):
    encoding = encoder.encode([])
    assert encoding.codes.shape == (0, 2)
    assert encoding.outputs.shape == (0, BITS)
    assert encoding.vectors is not None
    assert encoding.vectors.shape == (0, encoder.vector_size)


def test_what_is_no_image_is_refused_in_one_line(encoder):
    with pytest.raises(InputError, match="no image of a known format"):
        encoder.encode([b"hello"])
    cut = io.BytesIO()
    Image.new("RGB", (300, 300)).save(cut, "PNG")
    with pytest.raises(InputError, match="broken image"):
        encoder.encode([cut.getvalue()[:200]])
    with pytest.raises(InputError, match="too long to be cropped"):
        encoder.encode([Image.new("RGB", (600_000, 1))])
    with pytest.raises(InputError, match="takes 24 x 24 x 3 images, not features"):
        encoder.encode_features(np.zeros((1, 4)))
    with pytest.raises(InputError, match="threads=0"):
        OnnxEncoder("nowhere", threads=0)


def test_a_model_of_features_refuses_images_and_other_widths(blobs, tmp_path):
    features, labels = blobs
    adsh.ADSH(8, network="mlp", outer=1, progress=False).fit(features, labels, save_to=tmp_path / "model")
    export(tmp_path / "model", tmp_path / "onnx")
    encoder = OnnxEncoder(tmp_path / "onnx", threads=1)
    with pytest.raises(InputError, match="takes 8 features an item, not images: call encode_features"):
        encoder.encode([Image.new("RGB", (8, 8))])
    with pytest.raises(InputError, match=re.escape("the model takes numbers (n, 8)")):
        encoder.encode_features(features[:, :5])
    with pytest.raises(InputError, match="NaN"):
        encoder.encode_features(np.full((1, 8), np.nan))
    encoder.close()
    with pytest.raises(InputError, match="closed"):
        encoder.encode_features(features)


def test_images_that_are_not_square_must_have_the_shape_of_the_fit(tmp_path):
    images = np.random.default_rng(0).integers(0, 256, (30, 12, 20, 3), dtype=np.uint8)
    adsh.ADSH(8, network="tiny", outer=1, progress=False).fit(images, np.arange(30) % 2, save_to=tmp_path / "model")
    export(tmp_path / "model", tmp_path / "onnx")
    encoder = OnnxEncoder(tmp_path / "onnx", threads=1)
    assert encoder.encode([Image.fromarray(images[0])]).codes.shape == (1, 1)
    with pytest.raises(InputError, match="an image has 20 x 20 pixels, but the model was fitted on 12 x 20"):
        encoder.encode([Image.new("RGB", (20, 20))])


def test_encoding_needs_no_torch_and_no_onnx(model_folder, image_files):
    script = f"""
import sys
for name in ("torch", "onnx", "onnxscript", "safetensors", "typer", "sklearn", "scipy"):
    sys.modules[name] = None  # any import of it fails
from PIL import Image
from adsh.encoders.onnx import OnnxEncoder
encoder = OnnxEncoder({str(model_folder / "photos-onnx")!r}, threads=1)
print(encoder.encode([Image.open({str(image_files[0])!r})]).codes.shape)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(1, 2)\n"


def test_a_missing_onnxruntime_is_reported_with_the_command_that_adds_it(model_folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match="pip install onnxruntime"):
        OnnxEncoder(model_folder / "photos-onnx")


def test_the_code_of_the_documentation_runs(model_folder, image_files, encoder, monkeypatch, capsys):
    """Its own preparation of an image, with Pillow and onnxruntime alone, gives the code of this package."""
    monkeypatch.chdir(model_folder)
    named = re.search(r'OnnxEncoder\("([\w-]+)"\)', DOCS.read_text(encoding="utf-8"))
    Path(named[1]).symlink_to("photos-onnx")  # as the page calls it
    Image.open(next(path for path in image_files if path.name == "rotated.jpg")).save(
        "cat.jpg", exif=Image.Exif(), quality=100
    )
    expected = encoder.encode([Image.open("cat.jpg")]).codes.tobytes().hex()
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        exec(compile(block, str(DOCS), "exec"), {})
        assert expected in capsys.readouterr().out


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"bits": 24}, "as outputs, but export.json says .* of shape .24"),
        ({"vector_size": 7}, "as features, but export.json says"),
        ({"input": {"shape": ["n", 10**6, 10**6, 3]}}, "as inputs, but export.json says"),
        ({"input": {"shape": ["n", 24]}}, "as inputs, but export.json says"),
        ({"bits": 10**9}, "bits"),
    ],
    ids=["bits", "features", "images", "kind", "no code length"],
)
def test_a_description_unlike_its_graph_is_refused_when_the_model_is_loaded(model_folder, tmp_path, changed, said):
    folder = shutil.copytree(model_folder / "photos-onnx", tmp_path / "m")
    record = json.loads((folder / "export.json").read_text())
    (folder / "export.json").write_text(json.dumps(record | changed))
    with pytest.raises(AdshError, match=said) as raised:
        OnnxEncoder(folder)
    assert "\n" not in str(raised.value)


def test_a_description_nested_too_deeply_is_refused(model_folder, tmp_path):
    folder = shutil.copytree(model_folder / "photos-onnx", tmp_path / "m")
    (folder / "export.json").write_text("[" * 200_000)
    with pytest.raises(AdshError, match="nested too deeply"):
        OnnxEncoder(folder)
