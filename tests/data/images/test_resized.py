import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import adsh
from adsh.data import ArrayDataset, ResizedDataset, as_items, open_source
from adsh.data.images.resized import center_crop, resize_shorter_side
from adsh.errors import InputError

from ...networks import numbers_by_name
from ...networks.numbers_by_name import TRANSFORMS, sample_image
from ..image_cases import random_images, save

EXPECTED = json.loads(Path(numbers_by_name.__file__).with_name("expectations.json").read_text())["transforms"]
STEPS = {"Resize": resize_shorter_side, "CenterCrop": center_crop}
SHAPES = [(40, 60), (61, 33), (16, 16), (8, 90), (33, 32)]


@pytest.fixture
def folder(tmp_path):
    for at, (height, width) in enumerate(SHAPES):
        save(tmp_path / f"class{at % 2}" / f"{at}.png", random_images(1, height, width, seed=at)[0])
    return tmp_path


def test_images_of_all_sizes_come_at_one(folder):
    dataset = open_source(folder)
    for resized in (
        ResizedDataset(dataset, 16),
        ResizedDataset(dataset, 16, how="squash"),
        ResizedDataset(dataset, 16, resize=20),
    ):
        assert resized.__getitems__(range(5)).shape == (5, 16, 16, 3)
        assert np.array_equal(resized.__getitems__([3, 1])[1], resized[1])
        assert as_items(resized).shape == (16, 16, 3)
        assert (resized.keys, resized.classes, resized.labels) == (dataset.keys, dataset.classes, dataset.labels)


def test_the_shorter_side_is_resized_and_the_center_cut_out(folder):
    dataset = open_source(folder)
    at = list(dataset.keys).index("class0/0.png")  # 40 x 60
    with Image.open(folder / "class0" / "0.png") as image:
        resized = np.asarray(image.resize((30, 20), Image.Resampling.BILINEAR))
        squashed = np.asarray(image.resize((16, 16), Image.Resampling.BILINEAR))
    assert np.array_equal(ResizedDataset(dataset, 16, resize=20)[at], resized[2:18, 7:23])
    assert np.array_equal(ResizedDataset(dataset, 16, how="squash")[at], squashed)


@pytest.mark.parametrize("name", list(TRANSFORMS))
def test_every_bit_is_that_of_torchvisions_resize_and_center_crop(name):
    """The digests were stored by make_expectations.py."""
    size, steps = TRANSFORMS[name]
    image = sample_image(*size)
    for step, argument in steps:
        image = STEPS[step](image, argument)
    assert hashlib.sha256(np.ascontiguousarray(image).tobytes()).hexdigest() == EXPECTED[name]


def test_images_of_that_size_already_are_not_touched():
    images = random_images(3, 16, 16)
    assert np.array_equal(ResizedDataset(ArrayDataset(images), 16).__getitems__([2, 0]), images[[2, 0]])


def test_sizes_that_cannot_be_are_refused():
    images = ArrayDataset(random_images(2))
    for arguments in ({"size": 0}, {"size": 16, "resize": 8}):
        with pytest.raises(InputError, match="size="):
            ResizedDataset(images, **arguments)
    with pytest.raises(InputError, match="how='fill'"):
        ResizedDataset(images, 8, how="fill")
    with pytest.raises(InputError, match="only images have a size"):
        ResizedDataset(ArrayDataset(np.zeros((2, 5))), 8)[0]


def test_a_model_learns_from_a_folder_of_images(folder):
    for at in range(5, 40):
        bright = np.full((20 + at, 24, 3), 40 + 160 * (at % 2), dtype=np.uint8)
        save(folder / f"class{at % 2}" / f"{at}.png", bright)
    dataset = ResizedDataset(open_source(folder), 8)
    model = adsh.ADSH(8, network="tiny", outer=2, samples=20, device="cpu").fit(dataset, dataset.labels)
    assert model.encode(dataset).shape == (40, 1)
