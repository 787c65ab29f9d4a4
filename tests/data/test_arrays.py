import numpy as np
import pytest
import torch

from adsh.data import ArrayDataset, open_source
from adsh.errors import FolderError, InputError

from .image_cases import random_images


def labels_of(dataset):
    return [dataset.labels.names_of(int(i)) for i in dataset.labels.ids]


def test_tensors_are_taken_channels_first_or_last():
    images = random_images(4, 5, 7)
    first = ArrayDataset(torch.from_numpy(images).permute(0, 3, 1, 2), torch.tensor([0, 1, 0, 1]))
    last = ArrayDataset(torch.from_numpy(images), [0, 1, 0, 1])
    for dataset in (first, last):
        assert np.array_equal(dataset[2], images[2])
        assert np.array_equal(dataset.__getitems__([3, 0]), images[[3, 0]])
        assert dataset.labels.ids.tolist() == [0, 1, 0, 1]
    halves = ArrayDataset(torch.ones(3, 2, dtype=torch.bfloat16))
    assert halves[0].dtype == np.float32


def test_numbers_and_columns_are_called_by_the_names_of_the_classes():
    features = np.zeros((3, 2))
    dataset = ArrayDataset(features, [2, 0, -1], classes=["cat", "dog", "emu"])
    assert labels_of(dataset) == [("emu",), ("cat",), ()]
    assert dataset.classes == dataset.labels.names == ("cat", "dog", "emu")  # the one that nobody has included
    hot = ArrayDataset(features, np.array([[1, 1], [0, 1], [0, 0]]), classes=["cat", "dog"])
    assert labels_of(hot) == [("cat", "dog"), ("dog",), ()]
    plain = ArrayDataset(features, ["b", "a", "b"])
    assert plain.classes == ("a", "b")


def test_a_label_out_of_range_is_refused():
    with pytest.raises(InputError, match="the label 3, but 3 classes, numbered 0 to 2"):
        ArrayDataset(np.zeros((2, 2)), [0, 3], classes=["a", "b", "c"])
    with pytest.raises(InputError, match="the label 2, but 2 classes"):
        ArrayDataset(np.zeros((1, 2)), np.array([[1, 0, 1]]), classes=["a", "b"])


@pytest.mark.parametrize("counts", [{"labels": [0]}, {"keys": ["a"]}])
def test_one_label_and_key_an_item(counts):
    with pytest.raises(InputError, match="2 items and 1"):
        ArrayDataset(np.zeros((2, 2)), **counts)


@pytest.mark.parametrize("saved", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_npz_gives_items_labels_keys_and_classes(tmp_path, saved, order):
    features = np.asarray(np.random.default_rng(0).normal(size=(6, 3)), order=order)
    names = {"keys": np.array(list("uvwxyz")), "classes": np.array(["cat", "dog"])}
    saved(tmp_path / "f.npz", features=features, labels=np.array([0, 1, 0, 1, 0, 1]), **names)
    dataset = open_source(tmp_path / "f.npz")
    assert np.array_equal(dataset.__getitems__(range(6)), features)
    assert (dataset.keys, dataset.classes, dataset.name) == (list("uvwxyz"), ("cat", "dog"), "f.npz")
    assert isinstance(dataset.items, np.memmap) == (saved is np.savez)


def test_npy_files_are_mapped_and_labelled_by_another(tmp_path):
    np.save(tmp_path / "f.npy", np.arange(12.0).reshape(4, 3))
    np.save(tmp_path / "y.npy", np.array([0, 1, 1, 0]))
    dataset = open_source(tmp_path / "f.npy", labels=tmp_path / "y.npy")
    assert isinstance(dataset.items, np.memmap)
    assert dataset.subset([2, 0]).labels.ids.tolist() == [1, 0]
    assert open_source(tmp_path / "f.npy").labels is None


def test_arrays_that_cannot_be_read_are_reported(tmp_path):
    np.save(tmp_path / "o.npy", np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "o.npz", features=np.array([{}], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "two.npz", features=np.zeros((1, 2)), images=np.zeros((1, 2, 2, 3)))
    (tmp_path / "text.npz").write_text("no zip")
    (tmp_path / "empty.npy").write_bytes(b"")
    whole = (tmp_path / "two.npz").read_bytes()
    (tmp_path / "cut.npz").write_bytes(whole[: len(whole) // 2])
    for name in ("o.npy", "o.npz", "text.npz", "empty.npy", "cut.npz", "missing.npy", "missing.npz"):
        with pytest.raises(FolderError, match=name):
            open_source(tmp_path / name)
    with pytest.raises(InputError, match="one array named features or images"):
        open_source(tmp_path / "two.npz")
    with pytest.raises(InputError, match="has its own labels"):
        open_source(tmp_path, labels="y.npy")
