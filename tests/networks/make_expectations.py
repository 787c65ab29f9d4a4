"""Writes expectations.json: what torchvision's and timm's own programs give on the numbers of numbers_by_name.py.

    python tests/networks/make_expectations.py [FILE]

Run where torch, torchvision and timm import; no weights are downloaded. adsh itself takes no part.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import sys
from pathlib import Path

import numpy as np
import PIL
import timm
import torch
import torchvision
from numbers_by_name import BITS, MEAN, SIZES, STD, TRANSFORMS, images, names_digest, numbers, sample_image
from PIL import Image
from torchvision import transforms

LAST = {"alexnet": "classifier.6", "vgg": "classifier.6", "resnet": "fc"}
TORCHVISION = ("alexnet", "vgg11", "vgg16", "resnet18", "resnet34", "resnet50")
LITE = ("efficientnet_lite0", "efficientnet_lite1", "efficientnet_lite2")


def published_lite_names(names: list[str]) -> dict[str, str]:
    """timm's names of EfficientNet-Lite to those of the published weight files."""
    blocks = sorted({tuple(int(i) for i in n.split(".")[1:3]) for n in names if n.startswith("blocks.")})
    first = {"conv_dw": "_depthwise_conv", "bn1": "_bn1", "conv_pw": "_project_conv", "bn2": "_bn2"}
    other = {"conv_pw": "_expand_conv", "bn1": "_bn0", "conv_dw": "_depthwise_conv", "bn2": "_bn1",
             "conv_pwl": "_project_conv", "bn3": "_bn2"}  # fmt: skip
    outside = {"conv_stem": "_conv_stem", "bn1": "_bn0", "conv_head": "_conv_head", "bn2": "_bn1"}
    found = {}
    for name in names:
        parts = name.split(".")
        if parts[0] == "blocks":
            stage, block = int(parts[1]), int(parts[2])
            part = (first if stage == 0 else other)[parts[3]]
            found[name] = f"_blocks.{blocks.index((stage, block))}.{part}.{parts[4]}"
        elif parts[0] == "classifier":
            found[name] = f"head.{parts[1]}"
        else:
            found[name] = f"{outside[parts[0]]}.{parts[1]}"
    return found


def expectation(network: torch.nn.Module, names: dict[str, str], last: str, mean: list, std: list) -> dict:
    state = network.state_dict()
    state = {name: tensor for name, tensor in state.items() if not name.endswith("num_batches_tracked")}
    for name, tensor in state.items():
        tensor.copy_(torch.from_numpy(numbers(names.get(name, name), tensor.shape)))
    network.eval()
    seen: list[torch.Tensor] = []
    network.get_submodule(last).register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    outputs = []
    with torch.no_grad():
        for number in range(len(SIZES)):
            x = torch.from_numpy(images(number))
            x = (x - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
            outputs.append(network(x))
    return {
        "names": names_digest({names.get(name, name): tuple(tensor.shape) for name, tensor in state.items()}),
        "outputs": [rounded(out) for out in outputs],
        "features": [rounded(out[:, :BITS]) for out in seen],
        "features_sum": [float(out.double().sum()) for out in seen],
    }


def rounded(values: torch.Tensor) -> list:
    return [[float(f"{value:.7g}") for value in row] for row in values.tolist()]


def transformed(size: tuple[int, int, int], steps: list) -> str:
    image = Image.fromarray(sample_image(*size))
    for name, argument in steps:
        image = getattr(transforms, name)(argument)(image)
    return hashlib.sha256(np.ascontiguousarray(np.asarray(image)).tobytes()).hexdigest()


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("expectations.json")
    torch.manual_seed(0)
    found: dict = {
        "made_with": {
            "python": platform.python_version(), "torch": torch.__version__, "torchvision": torchvision.__version__,
            "timm": timm.__version__, "pillow": PIL.__version__, "numpy": np.__version__,
        },
        "networks": {},
        "transforms": {name: transformed(size, steps) for name, (size, steps) in TRANSFORMS.items()},
    }  # fmt: skip
    for name in TORCHVISION:
        network = getattr(torchvision.models, name)(weights=None, num_classes=BITS)
        last = LAST[re.sub(r"\d", "", name)]
        names = {f"{last}.{part}": f"head.{part}" for part in ("weight", "bias")}
        found["networks"][name] = expectation(network, names, last, MEAN, STD)
        print(name, found["networks"][name]["outputs"][0][0][:3], flush=True)
    for name in LITE:
        network = timm.create_model(f"tf_{name}", pretrained=False, num_classes=BITS)
        tensors = [n for n in network.state_dict() if not n.endswith("num_batches_tracked")]
        lite = expectation(network, published_lite_names(tensors), "classifier", [127 / 255] * 3, [128 / 255] * 3)
        found["networks"][name] = lite
        print(name, lite["outputs"][0][0][:3], flush=True)
    target.write_text(json.dumps(found) + "\n", encoding="utf-8")
    print(f"wrote {target}, {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
