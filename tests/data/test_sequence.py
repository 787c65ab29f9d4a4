import numpy as np
import pytest
import torch
from PIL import Image

from adsh.data import SequenceDataset, as_items
from adsh.errors import InputError

from .image_cases import random_images, save

IMAGES = random_images(4, 6, 5)


class Named:
    def __init__(self, names):
        self.names = names


class Columns:
    """As a Hugging Face dataset answers: rows by number, columns by name, features that know their classes."""

    column_names = ("image", "label", "caption")
    features = {"label": Named(["cat", "dog"]), "image": object()}  # noqa: RUF012  # a stand-in that nobody changes

    def __init__(self):
        self.read = []

    def __len__(self):
        return len(IMAGES)

    def __getitem__(self, at):
        if isinstance(at, str):
            assert at == "label", "only the labels are read in full"
            return [1, 0, 1, 1]
        self.read.append(at)
        return {"image": Image.fromarray(IMAGES[at]), "label": [1, 0, 1, 1][at], "caption": ""}


class Pairs:
    """As torchvision's datasets answer: (image, label), `targets` and `classes`."""

    classes = ("cat", "dog")
    targets = (1, 0, 1, 1)

    def __len__(self):
        return len(IMAGES)

    def __getitem__(self, at):
        return Image.fromarray(IMAGES[at]), self.targets[at]


@pytest.mark.parametrize("rows", [Columns(), Pairs()])
def test_datasets_of_other_libraries_are_read_row_by_row(rows):
    dataset = SequenceDataset(rows, name="theirs")
    assert (len(dataset), dataset.classes) == (4, ("cat", "dog"))
    assert dataset.labels.ids.tolist() == [1, 0, 1, 1]
    assert all(np.array_equal(dataset[i], IMAGES[i]) for i in range(4))
    assert np.array_equal(as_items(dataset).take(np.array([2, 1])), IMAGES[[2, 1]])


def test_labels_come_from_their_column_without_reading_images():
    rows = Columns()
    SequenceDataset(rows)
    assert rows.read == [0]


def test_a_list_of_dicts_of_pairs_and_of_images_is_taken(tmp_path):
    paths = [save(tmp_path / f"{i}.png", image) for i, image in enumerate(IMAGES)]
    dicts = [
        {"img": {"bytes": path.read_bytes(), "path": None}, "tags": ["a", "b"][: i % 3]} for i, path in enumerate(paths)
    ]
    dataset = SequenceDataset(dicts)
    assert [dataset.labels.names_of(int(i)) for i in dataset.labels.ids] == [(), ("a",), ("a", "b"), ()]
    assert np.array_equal(dataset[3], IMAGES[3])
    pairs = SequenceDataset([(image, np.int64(i % 2)) for i, image in enumerate(IMAGES)])
    assert pairs.labels.ids.tolist() == [0, 1, 0, 1]
    for alone in (IMAGES, paths, [str(path) for path in paths]):
        dataset = SequenceDataset(alone, labels=[0, 0, 1, 1])
        assert dataset.labels.ids.tolist() == [0, 0, 1, 1]
        assert np.array_equal(dataset[1], IMAGES[1])
    assert SequenceDataset(IMAGES).labels is None


def test_labels_in_tensors_are_numbers_and_lists():
    rows = [{"image": image, "label": torch.tensor(i % 2)} for i, image in enumerate(IMAGES)]
    assert SequenceDataset(rows).labels.ids.tolist() == [0, 1, 0, 1]
    rows = [{"image": image, "label": torch.tensor([5, i])} for i, image in enumerate(IMAGES)]
    dataset = SequenceDataset(rows)
    assert [dataset.labels.names_of(int(i)) for i in dataset.labels.ids] == [(0, 5), (1, 5), (2, 5), (3, 5)]


def test_columns_of_other_names_are_named_by_the_user():
    rows = [{"photo": image, "kind": "x"} for image in IMAGES]
    dataset = SequenceDataset(rows, item="photo", label="kind")
    assert dataset.classes == ("x",)
    assert np.array_equal(dataset[0], IMAGES[0])
    with pytest.raises(InputError, match="columns photo, kind: say which"):
        SequenceDataset(rows)
    with pytest.raises(InputError, match="columns photo, kind"):
        SequenceDataset(rows, item="photo", label="sort")
    assert SequenceDataset([(image, 0) for image in IMAGES], label=False).labels is None


def test_vectors_are_features():
    dataset = SequenceDataset([{"features": [1.0, 2.0], "label": 0}, {"features": [3.0, 4.0], "label": 1}])
    assert as_items(dataset).take(np.array([1])).tolist() == [[3.0, 4.0]]


@pytest.mark.parametrize("rows", [[], 7, iter([1])])
def test_what_has_no_rows_is_refused(rows):
    with pytest.raises(InputError, match="rows by index"):
        SequenceDataset(rows)


def test_wrong_counts_and_broken_rows_are_reported():
    with pytest.raises(InputError, match="4 rows and 3 labels"):
        SequenceDataset(IMAGES, labels=[0, 1, 2])
    with pytest.raises(InputError, match="row 0"):
        SequenceDataset({"a": 1})
    with pytest.raises(InputError, match="things, row 1 is no image"):
        SequenceDataset([{"image": IMAGES[0]}, {"image": b"text"}], name="things")[1]
