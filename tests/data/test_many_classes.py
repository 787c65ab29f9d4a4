"""Caltech-101 and CUB-200-2011 in small, in the layouts they unpack to; and features of many classes in an .npz."""

import numpy as np
import pytest

from adsh.data import ArrayDataset, check_overlap, open_source, prepare, split
from adsh.data.duplicates import digests
from adsh.data.sources.cub200 import open_cub200
from adsh.errors import AdshWarning, FolderError, InputError

from .image_cases import random_images, save

SPECIES = ("001.Black_footed_Albatross", "002.Laysan_Albatross", "003.Sooty_Albatross")


@pytest.fixture
def caltech(tmp_path):
    folder = tmp_path / "caltech-101"
    for number, name in enumerate(("BACKGROUND_Google", "Faces", "Faces_easy", "accordion", "yin_yang")):
        for image, pixels in enumerate(random_images(10, 6, 6, seed=number), 1):
            save(folder / "101_ObjectCategories" / name / f"image_{image:04}.png", pixels)
    return folder


@pytest.fixture
def cub(tmp_path):
    """Three species of four images; the second and fourth of each are the published test part."""
    folder = tmp_path / "CUB_200_2011"
    listed = [f"{name}/bird_{i}.png" for name in SPECIES for i in range(4)]
    for key, pixels in zip(listed, random_images(12, 10, 20), strict=True):
        save(folder / "images" / key, pixels)

    def write(name, values):
        (folder / name).write_text("".join(f"{i} {value}\n" for i, value in enumerate(values, 1)))

    write("images.txt", listed)
    write("image_class_labels.txt", np.repeat([1, 2, 3], 4))
    write("classes.txt", SPECIES)
    write("train_test_split.txt", [1, 0] * 6)
    write("bounding_boxes.txt", [f"{i}.0 2.0 5.0 4.0" for i in range(12)])
    return folder


@pytest.mark.parametrize("named", [True, False])
def test_caltechs_categories_are_opened_by_name_and_by_structure(caltech, named):
    source, root = ("caltech101", caltech.parent) if named else (caltech, None)
    with pytest.warns(AdshWarning, match="BACKGROUND_Google and Faces_easy are left out.*give .*101_ObjectCategories"):
        dataset = open_source(source, root=root)
    assert dataset.name == "caltech101"
    assert dataset.classes == ("Faces", "accordion", "yin_yang")
    assert (len(dataset), dataset.keys[0]) == (30, "Faces/image_0001.png")


def test_the_folder_of_categories_has_all_of_them(caltech):
    dataset = open_source(caltech / "101_ObjectCategories")
    assert len(dataset.classes) == 5


def test_without_the_categories_left_out_there_is_nothing_to_say(caltech, recwarn):
    for name in ("BACKGROUND_Google", "Faces_easy"):
        (caltech / "101_ObjectCategories" / name).rename(caltech / name)
    assert len(open_source(caltech)) == 30
    assert not recwarn.list


def test_eight_queries_a_class_share_no_image_with_the_database(caltech):
    save(
        caltech / "101_ObjectCategories/Faces/image_0099.png", random_images(10, 6, 6, seed=1)[0]
    )  # a copy of the first face
    with pytest.warns(AdshWarning):
        dataset = open_source(caltech)
    found = digests(dataset)
    refused = 0
    for seed in range(8):
        drawn = split(dataset, "8-per-class", seed)
        drawn.check(len(dataset))
        assert np.bincount(dataset.labels.ids[drawn.queries]).tolist() == [8, 8, 8]
        assert len(drawn.database) == 31 - 24
        apart = np.isin([0, 10], drawn.queries).sum() == 1
        if apart:
            refused += 1
            with pytest.raises(InputError, match=r"image_0001|image_0099"):
                check_overlap(dataset, drawn, found)
        else:
            check_overlap(dataset, drawn, found)
    assert refused
    with pytest.raises(InputError, match="8 of the 7 items left of the class b"):
        split(ArrayDataset(np.zeros((15, 1)), ["a"] * 8 + ["b"] * 7), "8-per-class")


@pytest.mark.parametrize("place", ["by name", "by path", "by its outer folder"])
def test_the_birds_are_named_and_the_published_test_part_is_last(cub, place):
    source = {"by name": "cub200", "by path": cub, "by its outer folder": cub.parent}[place]
    dataset = open_source(source, root=cub.parent if place == "by name" else None)
    assert dataset.classes == ("Black_footed_Albatross", "Laysan_Albatross", "Sooty_Albatross")
    assert dataset.test_from == 6
    drawn = split(dataset, "published")
    assert [dataset.keys[i][-5] for i in drawn.queries] == ["1", "3"] * 3
    assert [dataset.keys[i][-5] for i in drawn.database] == ["0", "2"] * 3
    assert dataset.labels.names_of(int(dataset.labels.ids[-1])) == ("Sooty_Albatross",)


def test_without_the_official_split_the_order_is_that_of_the_list(cub):
    (cub / "train_test_split.txt").unlink()
    dataset = open_source(cub)
    assert dataset.test_from is None
    assert [key[-5] for key in dataset.keys[:4]] == ["0", "1", "2", "3"]
    with pytest.raises(InputError, match="published test part as queries, and cub200 has none"):
        split(dataset, "published")


def test_boxes_crop_the_birds_and_have_a_cache_of_their_own(cub, tmp_path):
    whole, cropped = open_source("cub200", root=cub), open_source("cub200_boxes", root=cub)
    for at, key in enumerate(cropped.keys):
        x = (SPECIES.index(key.split("/")[0])) * 4 + int(key[-5])
        np.testing.assert_array_equal(cropped[at], whole[at][2:6, x : x + 5])
    prepared = [prepare(dataset, 4, cache=str(tmp_path / "cache")).dataset for dataset in (whole, cropped)]
    assert not np.array_equal(prepared[0][0], prepared[1][0])
    (cub / "bounding_boxes.txt").write_text("1 0 0 5 5\n")
    with pytest.raises(InputError, match="has no box of"):
        open_source("cub200_boxes", root=cub)


def test_missing_birds_are_left_out_and_counted_in_the_test_part(cub):
    (cub / "images" / SPECIES[0] / "bird_0.png").unlink()  # of the training part
    with pytest.warns(AdshWarning, match="1 of 12 images are not in"):
        dataset = open_source(cub)
    assert (len(dataset), dataset.test_from) == (11, 5)
    assert [dataset.keys[i][-5] for i in split(dataset, "published").queries] == ["1", "3"] * 3


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("images.txt", "", "images.txt is empty"),
        ("images.txt", "one bird.png\n", "images.txt line 1 is no number and its value"),
        ("image_class_labels.txt", "1 1\n", "has no class of image 2"),
        ("bounding_boxes.txt", "1 2 3\n", "line 1 is no number and its value"),
    ],
)
def test_damaged_lists_are_refused_in_words(cub, name, text, message):
    (cub / name).write_text(text)
    with pytest.raises(InputError, match=message):
        open_source("cub200_boxes", root=cub)


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "images.txt").mkdir()
    with pytest.raises(FolderError, match=r"images\.txt"):
        open_cub200(tmp_path)


def test_features_of_many_classes_carry_their_names(tmp_path):
    path, labels = tmp_path / "many.npz", np.array([2, 0, 1, 2], np.int16)
    np.savez(path, features=np.eye(4, dtype=np.float16), labels=labels, classes=["ant", "bass", "cup"])
    dataset = open_source(path)
    assert dataset.classes == ("ant", "bass", "cup")
    assert [dataset.labels.names_of(int(i))[0] for i in dataset.labels.ids] == ["cup", "ant", "bass", "cup"]
