"""Resize, CenterCrop, ToTensor, Normalize: the bits that torchvision gives (stored by make_expectations.py)."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from adsh.data.images import transforms
from adsh.data.images.transforms import CenterCrop, Compose, Normalize, Resize, ToTensor
from adsh.errors import InputError

from ...networks import numbers_by_name
from ...networks.numbers_by_name import MEAN, STD, TRANSFORMS, picture

EXPECTED = json.loads(Path(numbers_by_name.__file__).with_name("expectations.json").read_text())["transforms"]


def digest(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


@pytest.mark.parametrize("name", list(TRANSFORMS))
def test_every_bit_is_torchvisions(name):
    size, steps = TRANSFORMS[name]
    pixels = picture(*size)
    image = Image.fromarray(pixels if size[2] == 3 else pixels[..., 0])
    changed = Compose([getattr(transforms, step)(*arguments) for step, arguments in steps])(image)
    assert digest(np.asarray(changed)) == EXPECTED[name]["pixels"]
    normal = Compose([ToTensor(), Normalize(MEAN[: size[2]], STD[: size[2]])])(changed)
    assert list(normal.shape) == EXPECTED[name]["shape"]
    assert digest(normal.numpy()) == EXPECTED[name]["normalised"]


def test_arrays_and_one_bit_pictures_become_tensors_too():
    pixels = picture(5, 7, 3)
    assert torch.equal(ToTensor()(pixels), ToTensor()(Image.fromarray(pixels)))
    black_and_white = Image.fromarray(pixels[..., 0] > 127)
    assert set(ToTensor()(black_and_white).unique().tolist()) == {0.0, 1.0}
    batch = torch.rand(2, 3, 4, 4)
    before = batch.clone()
    assert Normalize(MEAN, STD)(batch).shape == batch.shape
    assert torch.equal(batch, before)


def test_a_picture_of_the_right_size_is_left_alone():
    image = Image.fromarray(picture(6, 8, 3))
    assert Resize((6, 8))(image) is image
    assert Resize(6)(image) is image
    assert np.array_equal(np.asarray(CenterCrop((6, 8))(image)), np.asarray(image))


@pytest.mark.parametrize(
    "make",
    [
        lambda: Resize(0),
        lambda: Resize((3,)),
        lambda: Resize(5, interpolation="magic"),
        lambda: CenterCrop((3, -1)),
        lambda: Normalize([0.5], [0.0]),
        lambda: Normalize([0.5, 0.5], [1.0]),
        lambda: Normalize(MEAN, STD)(torch.zeros(1, 4, 4)),
        lambda: ToTensor()(np.zeros((4, 4, 3))),
        lambda: ToTensor()(Image.new("F", (3, 3))),
    ],
)
def test_what_cannot_be_used_is_refused(make):
    with pytest.raises(InputError):
        make()
