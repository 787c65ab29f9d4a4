import numpy as np
import pytest
from PIL import Image

from adsh import LabelSets
from adsh.data import ArrayDataset, contact_sheet, similar_rate, summary
from adsh.errors import FolderError, InputError

from .image_cases import random_images


def brute_force(hot):
    shared = (hot @ hot.T > 0)[np.triu_indices(len(hot), 1)]
    return shared.mean()


@pytest.mark.parametrize("seed", range(3))
def test_the_similar_rate_is_that_of_all_pairs(seed):
    hot = (np.random.default_rng(seed).random((60, 7)) < 0.2).astype(int)
    assert similar_rate(LabelSets.of(hot)) == pytest.approx(brute_force(hot[hot.any(axis=1)]))
    classes = np.random.default_rng(seed).integers(-1, 5, 60)
    assert similar_rate(LabelSets.of(classes)) == pytest.approx(brute_force(np.eye(5)[classes[classes >= 0]]))
    assert similar_rate(LabelSets.of([0])) is None


def test_a_summary_counts_items_classes_label_sets_and_copies():
    images = random_images(6)[[0, 1, 2, 2, 2, 5]]
    figures = summary(ArrayDataset(images, [["a"], ["b"], ["a", "b"], ["a"], [], ["c"]], name="mine"))
    assert figures == {
        "source": "mine",
        "items": 6,
        "classes": 3,
        "label_sets": 4,
        "unlabelled": 1,
        "similar_rate": pytest.approx(4 / 10),
        "duplicates": 2,
        "imbalance": 2.0,
        "advised_bits": 16,
    }
    bare = summary(ArrayDataset(images))
    assert (bare["label_sets"], bare["unlabelled"], bare["similar_rate"]) == (0, 6, None)


@pytest.mark.parametrize("suffix", [".png", ".jpg", ".webp"])
def test_a_contact_sheet_has_a_row_a_class(tmp_path, suffix):
    dataset = ArrayDataset(random_images(50, 20, 30), np.arange(50) % 3, classes=["a", "b" * 80, "c", "nobody"])
    path = contact_sheet(dataset, tmp_path / f"sheet{suffix}")
    with Image.open(path) as image:
        assert image.size[0] > 12 * 72
        assert image.size[1] == pytest.approx(3 * 78 + 106, abs=20)


def test_a_sheet_shows_the_images_of_each_class_in_its_row(tmp_path):
    colours = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255]], np.uint8)
    labels = np.arange(60) % 3
    images = np.broadcast_to(colours[labels][:, None, None], (60, 4, 4, 3)).copy()
    with Image.open(contact_sheet(ArrayDataset(images, labels), tmp_path / "s.png", columns=5)) as image:
        pixels = np.asarray(image).astype(int)
    places = [np.flatnonzero((np.abs(pixels - colour).sum(axis=2) == 0).any(axis=1)) for colour in colours]
    assert [len(rows) for rows in places] == [72, 72, 72]
    assert places[0].max() < places[1].min()
    assert places[1].max() < places[2].min()


def test_a_sheet_without_labels_or_with_many_classes_is_drawn(tmp_path):
    contact_sheet(ArrayDataset(random_images(5)), tmp_path / "a.png")
    many = ArrayDataset(random_images(100), np.arange(100))
    with Image.open(contact_sheet(many, tmp_path / "b.png")) as image:
        assert image.size[1] < 41 * 80 + 100


def test_a_sheet_that_cannot_be_written_is_reported(tmp_path):
    images = ArrayDataset(random_images(2), [0, 1])
    with pytest.raises(InputError, match="call it .png"):
        contact_sheet(images, tmp_path / "sheet.txt")
    (tmp_path / "file").touch()
    with pytest.raises(FolderError, match="cannot write"):
        contact_sheet(images, tmp_path / "file" / "sheet.png")
    with pytest.raises(InputError, match="only images"):
        contact_sheet(ArrayDataset(np.zeros((2, 3)), [0, 1]), tmp_path / "sheet.png")
    with pytest.raises(InputError, match="columns=0"):
        contact_sheet(images, tmp_path / "sheet.png", columns=0)
