"""Downloads whose sub-folders are not the classes: the parts of a split, and a folder too many."""

from __future__ import annotations

import warnings

import pytest

from adsh.data import open_source, split
from adsh.data.sources.layout import find_layout
from adsh.errors import AdshWarning

from .image_cases import random_images, save

IMAGES = random_images(40)


def folder(root, *names):
    for name, pixels in zip(names, IMAGES, strict=False):
        save(root / name, pixels)
    return root


def labels_by_key(dataset):
    return dict(zip(dataset.keys, map(dataset.labels.names_of, dataset.labels.ids.tolist()), strict=True))


def test_the_parts_of_a_split_are_no_classes(tmp_path):
    names = [f"{part}/{kind}/{at}.png" for part in ("train", "test") for kind in ("cat", "dog") for at in range(3)]
    with pytest.warns(
        AdshWarning,
        match="test, train are taken for the parts of one data set.*classes: cat, dog; --protocol published ",
    ):
        dataset = open_source(folder(tmp_path, *names))
    assert dataset.classes == ("cat", "dog")
    assert labels_by_key(dataset) == {name: (name.split("/")[1],) for name in names}
    assert dataset.keys == sorted(name for name in names if "train" in name) + sorted(
        name for name in names if "test" in name
    )
    drawn = split(dataset, "published", 0)  # the test part as queries
    assert {dataset.keys[at].split("/")[0] for at in drawn.queries} == {"test"}
    assert {dataset.keys[at].split("/")[0] for at in drawn.database} == {"train"}


def test_a_folder_too_many_is_no_class(tmp_path):
    with pytest.warns(AdshWarning, match="the folders in archive/images are taken for the classes: cat, dog$"):
        dataset = open_source(
            folder(tmp_path, "archive/images/cat/1.png", "archive/images/dog/deep/2.png", "readme.png")
        )
    assert labels_by_key(dataset) == {
        "archive/images/cat/1.png": ("cat",),
        "archive/images/dog/deep/2.png": ("dog",),
        "readme.png": (),
    }


def test_both_occur_together_and_a_part_may_have_no_classes(tmp_path):
    names = ["seg_train/seg_train/sea/1.png", "seg_train/seg_train/wood/2.png", "seg_test/seg_test/sea/3.png"]
    names += ["seg_test/seg_test/wood/4.png", "seg_pred/seg_pred/5.png"]
    with pytest.warns(AdshWarning, match="scenes/seg_pred, scenes/seg_test, scenes/seg_train are taken for the parts"):
        dataset = open_source(folder(tmp_path, *(f"scenes/{name}" for name in names)))
    found = labels_by_key(dataset)
    assert [found[f"scenes/{name}"] for name in names] == [("sea",), ("wood",), ("sea",), ("wood",), ()]
    assert dataset.keys[dataset.test_from :] == [f"scenes/{name}" for name in names[2:4]]


@pytest.mark.parametrize(
    "names",
    [
        ["train/cat/1.png", "train/dog/2.png", "test/3.png", "test/4.png"],  # test images without labels
        ["Training/cat/1.png", "Training/dog/2.png", "test1/unknown/3.png"],
        ["train/cat/1.png", "train/dog/2.png", "valid/cat/3.png"],
    ],
)
def test_kinds_of_parts(names):
    layout = find_layout(names)
    assert layout.classes[:2] == ["cat", "dog"]
    assert layout.classes[2] in (None, "cat")
    assert layout.note


@pytest.mark.parametrize(
    ("names", "classes"),
    [
        (["train/1.png", "bus/2.png"], ["train", "bus"]),  # vehicles
        (
            ["train/old/1.png", "train/new/2.png", "test/red/3.png", "test/blue/4.png"],
            ["train", "train", "test", "test"],
        ),
        (["train/1.png", "test/2.png"], ["train", "test"]),
        (["cat/1.png", "cat/deep/2.png", "cat/deeper/3.png"], ["cat"] * 3),  # it holds images itself
        (["cat/deep/er/1.png", "cat/deep/er/2.png"], ["cat"] * 2),  # no two folders
        (["cat/1.png", "dog/2.png", "3.png"], ["cat", "dog", None]),
        (["1.png"], [None]),
    ],
)
def test_what_is_no_such_layout_is_as_before(names, classes):
    layout = find_layout(names)
    assert layout.classes == classes
    assert layout.note == ""


def test_a_plain_folder_of_classes_is_opened_without_a_word(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert open_source(folder(tmp_path, "cat/1.png", "dog/2.png", "3.png")).classes == ("cat", "dog")


@pytest.mark.parametrize("part", ["", "train/"])
def test_folders_inside_the_classes_that_share_a_class_are_named(tmp_path, part):
    names = [f"{part}fruit/{kind}/1.png" for kind in ("apple", "pear", "plum", "quince")] + [f"{part}milk/oat/1.png"]
    names += [name.replace("train", "test") for name in names] if part else []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dataset = open_source(folder(tmp_path, *names))
    assert dataset.classes == ("fruit", "milk")
    (said,) = [str(one.message) for one in caught if "not told apart" in str(one.message)]
    assert "fruit/apple, fruit/pear, fruit/plum and 1 more; for classes by these, give a list" in said


def test_folders_next_to_images_are_no_classes_that_were_missed(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        open_source(folder(tmp_path, "cat/1.png", "cat/old/2.png", "cat/new/3.png", "dog/deep/4.png"))
