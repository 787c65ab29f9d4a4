"""WebDataset shards, written by webdataset itself, as a source."""

from __future__ import annotations

import tarfile

import numpy as np
import pytest

import adsh
from adsh.data import open_source
from adsh.errors import InputError

webdataset = pytest.importorskip("webdataset")
pytest.importorskip("pyarrow")


@pytest.fixture
def images() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.integers(0, 255, (10 + at, 12, 3), dtype=np.uint8) for at in range(7)]


def write(path, samples) -> None:
    with webdataset.TarWriter(str(path)) as sink:
        for sample in samples:
            sink.write(sample)


def test_shards_are_read_in_order_with_their_labels(images, tmp_path):
    samples = [{"__key__": f"s/{at:03d}", "png": image, "cls": at % 2} for at, image in enumerate(images)]
    for number in range(2):
        write(tmp_path / f"train-{number:03d}.tar", samples[number * 4 : number * 4 + 4])
    dataset = open_source(str(tmp_path / "train-{000..001}.tar"))
    assert list(dataset.keys) == [sample["__key__"] for sample in samples]
    assert all(np.array_equal(dataset[at], image) for at, image in enumerate(images))
    assert [dataset.labels[at] for at in range(7)] == [(at % 2,) for at in range(7)]
    other = open_source(f"file://{tmp_path}/train-001.tar")
    assert np.array_equal(other[0], images[4])
    with (tmp_path / "train-000.tar").open("rb") as file:  # as webdataset itself groups samples
        groups = list(
            webdataset.tariterators.group_by_keys(
                {**member, "__url__": ""} for member in webdataset.tariterators.tar_file_iterator(file)
            )
        )
    assert list(dataset.keys[:4]) == [group["__key__"] for group in groups]


def test_labels_in_json_and_samples_without_an_image(images, tmp_path):
    write(
        tmp_path / "x.tar",
        [
            {"__key__": "a", "jpg": images[0], "json": {"labels": ["x", "y"]}},
            {"__key__": "b", "txt": "no image"},
            {"__key__": "c", "json": {"other": 1}, "png": images[1]},
        ],
    )
    dataset = open_source(tmp_path / "x.tar")
    assert list(dataset.keys) == ["a", "c"]
    assert dataset.labels[0] == ("x", "y")
    assert dataset.labels[1] == ()


def test_shards_are_trained_on(images, tmp_path):
    write(tmp_path / "x.tar", [{"__key__": f"{at}", "png": image, "cls": at % 2} for at, image in enumerate(images)])
    model = adsh.ADSH(8, network="tiny", outer=1, inner=1, samples=7, device="cpu", progress=False)
    model.fit(str(tmp_path / "x.tar"))
    assert model.encode(images[0]).shape == (1, 1)
    assert model.encode(str(tmp_path / "x.tar")).shape == (7, 1)


def test_broken_shards_are_refused(images, tmp_path):
    (tmp_path / "x.tar").write_bytes(b"no tar" * 200)
    with pytest.raises(adsh.AdshError, match="no whole, uncompressed tar"):
        open_source(tmp_path / "x.tar")
    with tarfile.open(tmp_path / "y.tar", "w"):
        pass
    with pytest.raises(InputError, match="holds no image"):
        open_source(tmp_path / "y.tar")
    with pytest.raises(adsh.AdshError, match="cannot be read"):
        open_source(tmp_path / "z.tar")
    write(tmp_path / "w.tar", [{"__key__": "a", "png": images[0], "txt": "x", "cls": b"cat"}])
    with pytest.raises(InputError, match="is no number"):
        open_source(tmp_path / "w.tar")
