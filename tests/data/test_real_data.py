"""The real sets, where $ADSH_DATA holds them: skipped elsewhere."""

import hashlib
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from adsh.data import check_overlap, open_source, split
from adsh.data.sources.cifar10 import BATCHES, CLASSES, PIXELS_SHA256

from .image_cases import save

ROOT = Path(os.environ.get("ADSH_DATA", "/nowhere"))


def needs(name):
    return pytest.mark.skipif(not (ROOT / name).is_dir(), reason=f"$ADSH_DATA/{name} is not there")


@pytest.fixture(scope="module")
def cifar10():
    return open_source("cifar10")


def pixels_digest(dataset):
    digest = hashlib.sha256()
    for start in range(0, len(dataset), 1000):
        for image in dataset.__getitems__(range(start, start + 1000)):
            digest.update(np.ascontiguousarray(image))
    return digest.hexdigest()


def write_batches(folder, dataset):
    """As published: a dict of bytes, protocol 2."""
    folder.mkdir()
    for at, name in enumerate(BATCHES):
        here = slice(10_000 * at, 10_000 * (at + 1))
        planes = np.ascontiguousarray(dataset.items[here].transpose(0, 3, 1, 2)).reshape(-1, 3072)
        held = {b"batch_label": b"batch", b"labels": dataset.labels.ids[here].tolist(), b"data": planes}
        held[b"filenames"] = [b"image_%05d.png" % i for i in range(10_000)]
        (folder / name).write_bytes(pickle.dumps(held, protocol=2))


def write_images(folder, dataset):
    for at, pixels in enumerate(dataset.items):
        part, number = ("train", at) if at < 50_000 else ("test", at - 50_000)
        save(folder / part / CLASSES[dataset.labels.ids[at]] / f"{number:05}.png", pixels, compress_level=1)


@needs("cifar10")
@pytest.mark.parametrize("written", [None, write_batches, write_images])
def test_all_of_cifar10_is_the_same_in_every_form(cifar10, written, tmp_path):
    dataset = cifar10
    if written is not None:
        written(tmp_path / "cifar-10-batches-py", cifar10)
        dataset = open_source("cifar10", root=tmp_path / "cifar-10-batches-py")
    assert len(dataset) == 60_000
    assert pixels_digest(dataset) == PIXELS_SHA256
    assert np.array_equal(dataset.labels.ids, cifar10.labels.ids)
    assert dataset.classes == dataset.labels.names == CLASSES
    assert dataset.test_from == 50_000


@needs("cifar10")
def test_cifar10s_protocols_hold_no_image_on_both_sides(cifar10):
    for protocol in ("paper", "59k", "54k", "50k"):
        assert check_overlap(cifar10, split(cifar10, protocol)) == 0


@needs("coco17")
def test_coco17_has_its_images_and_label_sets():
    dataset = open_source("coco17")
    assert (len(dataset), dataset.labels.set_count, len(dataset.classes)) == (15_925, 506, 17)
    assert dataset[15_924].shape == (128, 128, 3)
