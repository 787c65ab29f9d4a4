import json

import numpy as np
import pytest
from typer.testing import CliRunner

from adsh.cli.data import app
from adsh.data import open_source
from adsh.data.sources.nuswide import open_nuswide
from adsh.errors import AdshWarning, FolderError, InputError

from .image_cases import random_images, save

IMAGES = random_images(60, 4, 5)
NAMES = [f"concept{i:02}" for i in range(81)]
LISTED = [f"part{i % 3}\\{i:04}_{i * 7919}.jpg" for i in range(60)]


def hot():
    """Concepts 80, 79, … are the most frequent; images 57 to 59 have none of the first 21."""
    table = np.zeros((60, 81), dtype=int)
    for i, concept in enumerate(range(80, 59, -1)):
        table[: 50 - i, concept] = 1
    table[50:57, 80] = 1
    table[57:, 3] = 1
    return table


@pytest.fixture
def root(tmp_path):
    """NUS-WIDE in small, in the published layout."""
    (tmp_path / "ImageList").mkdir()
    (tmp_path / "ImageList" / "Imagelist.txt").write_text("".join(f"{name}\r\n" for name in LISTED))
    (tmp_path / "Groundtruth" / "AllLabels").mkdir(parents=True)
    for name, column in zip(NAMES, hot().T, strict=True):
        (tmp_path / "Groundtruth" / "AllLabels" / f"Labels_{name}.txt").write_text("".join(f"{v}\n" for v in column))
    for name, pixels in zip(LISTED, IMAGES, strict=True):
        save(tmp_path / "Flickr" / name.replace("\\", "/").replace(".jpg", ".png"), pixels)
        (tmp_path / "Flickr" / name.replace("\\", "/").replace(".jpg", ".png")).rename(
            tmp_path / "Flickr" / name.replace("\\", "/")
        )
    return tmp_path


def test_the_21_most_frequent_concepts_label_the_images_that_have_one(root):
    dataset = open_source("nuswide", root=root)
    assert dataset.classes == dataset.labels.names == tuple(NAMES[60:])
    assert list(dataset.keys) == [name.replace("\\", "/") for name in LISTED[:57]]
    for i in (0, 31, 56):
        expected = tuple(NAMES[c] for c in np.flatnonzero(hot()[i]))
        assert dataset.labels.names_of(int(dataset.labels.ids[i])) == expected
        assert np.array_equal(dataset[i], IMAGES[i])


def test_missing_images_are_counted_reported_and_left_out(root):
    for i in (3, 7, 11, 40):
        (root / "Flickr" / LISTED[i].replace("\\", "/")).unlink()
    with pytest.warns(AdshWarning, match=r"4 of 57 images .* left out: part0/0003_\S+, .* and others"):
        dataset = open_nuswide(root)
    assert (len(dataset), len(dataset.missing)) == (53, 4)
    with pytest.warns(AdshWarning, match="4 of 57"):
        ended = CliRunner().invoke(app, ["info", "nuswide", "--root", str(root), "--json"])
    assert json.loads(ended.stdout)["missing"] == 4
    assert dataset.classes == tuple(NAMES[60:])  # counted over the whole list
    assert np.array_equal(dataset[3], IMAGES[4])


@pytest.mark.parametrize("flat", [False, True])
def test_images_may_lie_in_images_with_or_without_their_sub_folders(root, flat):
    (root / "Flickr").rename(root / "images")
    if flat:
        for path in list((root / "images").rglob("*.jpg")):
            path.rename(root / "images" / path.name)
    dataset = open_nuswide(root)
    assert np.array_equal(dataset[5], IMAGES[5])


def test_what_the_layout_lacks_is_reported(root):
    labels = root / "Groundtruth" / "AllLabels"
    text = (labels / "Labels_concept00.txt").read_text()
    (labels / "Labels_concept00.txt").write_text(text[2:])
    with pytest.raises(InputError, match="59 values, and the image list 60"):
        open_nuswide(root)
    (labels / "Labels_concept00.txt").write_text("2" + text[1:])
    with pytest.raises(InputError, match="0 or 1 for each"):
        open_nuswide(root)
    (labels / "Labels_concept00.txt").unlink()
    with pytest.raises(InputError, match="80 files .* not 81"):
        open_nuswide(root)
    (root / "ImageList" / "Imagelist.txt").unlink()
    with pytest.raises(FolderError, match="has no ImageList/Imagelist.txt"):
        open_nuswide(root)
    with pytest.raises(FolderError, match="does not exist"):
        open_nuswide(root / "nowhere")


def test_no_image_at_all_is_reported(root):
    (root / "Flickr").rename(root / "elsewhere")
    with pytest.raises(FolderError, match="none of 57 images"):
        open_nuswide(root)


def test_list_files_of_other_repositories_are_read(tmp_path):
    save(tmp_path / "images" / "a b.png", IMAGES[0])
    (tmp_path / "database.txt").write_text("images/a b.png 0 1 1\nimages/c.png 1 0 0\n\nimages/d.png 0 0 0\n")
    dataset = open_source(tmp_path / "database.txt")
    assert dataset.classes == ("0", "1", "2")
    assert [dataset.labels.names_of(int(i)) for i in dataset.labels.ids] == [("1", "2"), ("0",), ()]
    assert np.array_equal(dataset[0], IMAGES[0])
    (tmp_path / "one.txt").write_text("a.png 3\nb.png 12\n")
    assert open_source(tmp_path / "one.txt", root=tmp_path / "images").classes == ("3", "12")


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "lists no image"), ("a.png\n", "line 1"), ("a.png 0 1\nb.png 1\n", "line 2"), ("a.png 0 2\n", "'0 2'")],
)
def test_list_files_that_are_none_are_reported(tmp_path, text, said):
    (tmp_path / "list.txt").write_text(text)
    with pytest.raises(InputError, match=said):
        open_source(tmp_path / "list.txt")
