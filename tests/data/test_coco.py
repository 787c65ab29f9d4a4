import io
import json

import numpy as np
import pytest
from PIL import Image

from adsh.data import open_source
from adsh.data.sources.coco import open_coco
from adsh.data.sources.coco17 import CLASSES
from adsh.errors import AdshWarning, FolderError, InputError

from .image_cases import random_images, save

IMAGES = random_images(6, 5, 4)
CATEGORIES = [
    {"id": 18, "name": "dog", "supercategory": "animal"},
    {"id": 1, "name": "person"},
    {"id": 3, "name": "car"},
]


def write_part(root, part, numbers, pairs, categories=CATEGORIES, images=""):
    """A part as published: its images, and annotations with outlines."""
    names = {number: f"COCO_{part}_{number:012}.png" for number in numbers}
    for number, name in names.items():
        save(root / images / part / name, IMAGES[number])
    held = {
        "info": {"year": 2014},
        "images": [{"id": number, "file_name": name, "height": 5, "width": 4} for number, name in names.items()],
        "annotations": [
            {"id": i, "image_id": image, "category_id": category, "iscrowd": 0, "segmentation": [[0.5, 1, 2, 3]]}
            for i, (image, category) in enumerate(pairs)
        ],
        "categories": categories,
    }
    (root / "annotations").mkdir(exist_ok=True)
    (root / "annotations" / f"instances_{part}.json").write_text(json.dumps(held))


def labels_of(dataset):
    return [dataset.labels.names_of(int(i)) for i in dataset.labels.ids]


@pytest.mark.parametrize("images", ["", "images"])
def test_annotated_images_are_labelled_by_their_categories(tmp_path, images):
    write_part(tmp_path, "train2014", [0, 2, 1], [(1, 18), (1, 18), (1, 1), (0, 3)], images=images)
    write_part(tmp_path, "val2014", [3, 4], [(4, 1)], images=images)
    dataset = open_source("coco", root=tmp_path)
    assert dataset.classes == dataset.labels.names == ("person", "car", "dog")  # by their numbers
    assert labels_of(dataset) == [("car",), ("person", "dog"), ("person",)]
    assert [np.flatnonzero([np.array_equal(dataset[i], one) for one in IMAGES])[0] for i in range(3)] == [0, 1, 4]
    assert dataset.keys[2].endswith("val2014/COCO_val2014_000000000004.png")
    assert dataset.test_from == 2
    (tmp_path / images / "train2014" / "COCO_train2014_000000000000.png").unlink()
    with pytest.warns(AdshWarning, match="1 of 3 images"):
        assert open_source("coco", root=tmp_path).test_from == 1


def test_one_file_of_annotations_may_be_given(tmp_path):
    write_part(tmp_path, "train2014", [0], [(0, 1)])
    write_part(tmp_path, "val2017", [1], [(1, 3)])
    with pytest.raises(InputError, match="2014 and 2017, which share images"):
        open_coco(tmp_path)
    assert labels_of(open_coco(tmp_path / "annotations" / "instances_val2017.json")) == [("car",)]


def test_missing_images_are_left_out_and_counted(tmp_path):
    write_part(tmp_path, "train2014", [0, 1], [(0, 1), (1, 3)])
    (tmp_path / "train2014" / "COCO_train2014_000000000001.png").unlink()
    with pytest.warns(AdshWarning, match="1 of 2 images"):
        assert len(open_coco(tmp_path)) == 1


def test_what_is_no_coco_is_reported(tmp_path):
    with pytest.raises(FolderError, match="no annotations/instances"):
        open_coco(tmp_path)
    write_part(tmp_path, "train2014", [0], [])
    with pytest.raises(InputError, match="no image has an annotation"):
        open_coco(tmp_path)
    write_part(tmp_path, "train2014", [0], [(9, 1)])
    with pytest.raises(InputError, match="unknown image or category 9"):
        open_coco(tmp_path)
    write_part(tmp_path, "train2014", [0], [(0, 1)])
    write_part(tmp_path, "val2014", [1], [(1, 1)], categories=CATEGORIES[1:])
    with pytest.raises(InputError, match="other categories"):
        open_coco(tmp_path)
    for text in ("{", "[]", '{"images": []}'):
        (tmp_path / "annotations" / "instances_val2014.json").write_text(text)
        with pytest.raises(InputError, match="not COCO's instances"):
            open_coco(tmp_path / "annotations" / "instances_val2014.json")


def packed(tmp_path, **changes):
    files = []
    for pixels in IMAGES:
        held = io.BytesIO()
        Image.fromarray(pixels).save(held, "WEBP", lossless=True)
        files.append(held.getvalue())
    table = np.zeros((6, 17), dtype=np.uint8)
    table[np.arange(6), np.arange(6) % 3] = 1
    table[0, 16] = 1
    arrays = {
        "blob": np.frombuffer(b"".join(files), np.uint8),
        "offsets": np.cumsum([0, *(len(file) for file in files)]),
        "Y": table,
        "image_no": np.array([1, 3, 4, 6, 7, 9]),
    }
    np.savez(tmp_path / "coco17_128.npz", **{**arrays, **changes})
    return tmp_path


def test_packed_images_are_decoded_one_by_one(tmp_path):
    dataset = open_source("coco17", root=packed(tmp_path))
    assert all(np.array_equal(dataset[i], IMAGES[i]) for i in (*range(6), -1))
    assert (list(dataset.keys)[:3], dataset.classes) == (["000001", "000003", "000004"], CLASSES)
    assert labels_of(dataset)[:2] == [("bicycle", "horse"), ("car",)]
    assert isinstance(dataset.blob, np.memmap)


def test_a_pack_that_does_not_fit_together_is_reported(tmp_path):
    with pytest.raises(InputError, match="6 images, 6 labels and 2 keys"):
        open_source("coco17", root=packed(tmp_path, image_no=np.array([1, 2])))
    with pytest.raises(InputError, match="do not fit together"):
        open_source("coco17", root=packed(tmp_path, offsets=np.array([0, 9, 3, 4, 5, 6, 7])))
    np.savez(tmp_path / "coco17_128.npz", blob=np.zeros(3))
    with pytest.raises(FolderError, match="lacks offsets, Y, image_no"):
        open_source("coco17", root=tmp_path)
    with pytest.raises(FolderError, match="does not exist"):
        open_source("coco17", root=tmp_path / "nowhere")
