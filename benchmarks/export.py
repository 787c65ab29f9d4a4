"""Encoding images by ONNX and by torch, on this machine's CPU: EfficientNet-Lite0 at 224 x 224, 48 bits.

    python benchmarks/export.py            128 JPEG files of 500 x 375, each way the best of three
    python benchmarks/export.py --small    16 files, once

With mirror images (`flip_tta`), as the presets have it, an image goes through the network twice; without, once.
"network" starts from pixels at their size, "files" from JPEG files, decoding and resizing included.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import record
import torch
from PIL import Image

import adsh
from adsh.data import ResizedDataset
from adsh.data.images.files import ImageFiles
from adsh.encoders.onnx import OnnxEncoder
from adsh.export.onnx import export
from adsh.hamming.bits import unpack

BITS, SIDE = 48, 224
BATCHES = (1, 8, 32)


def write_images(root: Path, count: int) -> list[Path]:
    """JPEG files with shapes at every scale, so that they take as long to decode as photographs."""
    rng, paths = np.random.default_rng(0), []
    for at in range(count):
        layers = [
            Image.fromarray(rng.integers(0, 256, (375 // step, 500 // step, 3), dtype=np.uint8)).resize((500, 375))
            for step in (100, 25, 6)
        ]
        paths.append(root / f"{at:04}.jpg")
        Image.blend(Image.blend(layers[0], layers[1], 0.4), layers[2], 0.2).save(paths[-1], quality=90)
    return paths


def write_model(folder: Path, flip_tta: bool) -> Path:
    rng, labels = np.random.default_rng(0), np.arange(16) % 4
    images = rng.integers(0, 256, (16, SIDE, SIDE, 3), dtype=np.uint8)
    recipe = {"flip_tta": flip_tta}
    model = adsh.ADSH(BITS, network="efficientnet_lite0", outer=1, samples=16, batch_size=8, recipe=recipe)
    model.fit(images, labels, save_to=folder)
    return folder


def rate(run: Callable[[], object], items: int, times: int) -> float:
    """Items a second, the best of some runs after one that warms up."""
    run()
    seconds = []
    for _ in range(times):
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return round(items / min(seconds), 1)


def in_batches(encoder: OnnxEncoder, paths: list[Path], size: int) -> None:
    for start in range(0, len(paths), size):
        encoder.encode([Image.open(path) for path in paths[start : start + size]])


def measured(root: Path, paths: list[Path], flip_tta: bool, times: int) -> dict[str, object]:
    model = adsh.load(write_model(root / f"model-{flip_tta}", flip_tta))
    started = time.perf_counter()
    exported = export(root / f"model-{flip_tta}", root / f"onnx-{flip_tta}")
    seconds = time.perf_counter() - started
    files = ResizedDataset(ImageFiles(Path(), [str(path) for path in paths], None, name="images"), SIDE)
    pixels = files.__getitems__(range(len(files)))
    encoder, n = OnnxEncoder(root / f"onnx-{flip_tta}"), len(paths)
    outputs, coded = model.outputs(files), encoder.encode([Image.open(path) for path in paths])
    figures: dict[str, object] = {
        "export_seconds": round(seconds, 1),
        "model_MB": round(exported.bytes / 1e6, 1),
        "largest_difference": float(np.abs(outputs - coded.outputs).max()),
        "bits_that_differ": int((unpack(model.encode(files), BITS) != unpack(coded.codes, BITS)).sum()),
        "torch network": rate(lambda: model.encode(pixels), n, times),
        "torch files": rate(lambda: model.encode(files), n, times),
        "onnx network": rate(lambda: encoder.encode_inputs(pixels), n, times),
    }
    for size in BATCHES:
        figures[f"onnx files, {size} at once"] = rate(lambda size=size: in_batches(encoder, paths, size), n, times)
    encoder.close()
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--small", action="store_true")
    small = parser.parse_args().small
    figures: dict[str, object] = {"images": "per second", "threads": torch.get_num_threads()}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        paths = write_images(root, 16 if small else 128)
        for flip_tta in (True, False):
            name = "with mirror images" if flip_tta else "without"
            figures[name] = measured(root, paths, flip_tta, 1 if small else 3)
            print(name, figures[name], flush=True)
    if not small:
        print(record.write("onnx", figures, ("numpy", "torch", "onnxruntime", "pillow")))


if __name__ == "__main__":
    main()
