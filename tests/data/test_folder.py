import numpy as np
import pytest

from adsh.data import open_source
from adsh.data.sources.folder import open_folder
from adsh.errors import AdshWarning, FolderError, InputError

from .image_cases import random_images, save


def test_sub_folders_are_classes_and_relative_paths_are_keys(tmp_path):
    images = random_images(5)
    names = ["cat/b.png", "cat/deep/er/a.png", "dog/10.png", "dog/9.png", "ape/x.PNG"]
    for name, pixels in zip(names, images, strict=True):
        save(tmp_path / name, pixels)
    (tmp_path / "cat" / "notes.txt").write_text("not an image")
    (tmp_path / "empty").mkdir()
    save(tmp_path / "dog" / ".hidden.png", images[0])
    (tmp_path / "dog" / "1.HEX").write_bytes(b"")
    with pytest.warns(AdshWarning, match=r"left out of .*, as they are no images: 1 \.\w+, 1 \.\w+$"):
        dataset = open_source(tmp_path)
    assert list(dataset.keys) == sorted(names)
    assert dataset.classes == dataset.labels.names == ("ape", "cat", "dog")
    assert [dataset.labels.names_of(i) for i in dataset.labels.ids] == [(key.split("/")[0],) for key in sorted(names)]
    for key, pixels in zip(names, images, strict=True):
        assert np.array_equal(dataset[list(dataset.keys).index(key)], pixels)


def test_images_next_to_the_sub_folders_have_no_label(tmp_path):
    save(tmp_path / "loose.png", random_images(1)[0])
    assert open_source(tmp_path).labels is None
    save(tmp_path / "cat" / "a.png", random_images(1)[0])
    dataset = open_source(tmp_path)
    assert dataset.keys == ["cat/a.png", "loose.png"]
    assert [dataset.labels.names_of(i) for i in dataset.labels.ids] == [("cat",), ()]


def test_a_link_back_up_does_not_go_round(tmp_path):
    save(tmp_path / "cat" / "a.png", random_images(1)[0])
    (tmp_path / "cat" / "up").symlink_to(tmp_path, target_is_directory=True)
    assert open_source(tmp_path).keys == ["cat/a.png"]


def test_a_name_that_is_not_utf8_is_read(tmp_path):
    import os

    save(tmp_path / "cat" / "a.png", random_images(1)[0])
    os.rename(os.fsencode(tmp_path / "cat" / "a.png"), os.fsencode(tmp_path / "cat") + b"/\xff.png")
    assert open_source(tmp_path)[0].shape == (32, 32, 3)


def test_nothing_to_list_is_said(tmp_path):
    with pytest.raises(InputError, match="holds no image"):
        open_source(tmp_path)
    with pytest.raises(InputError, match="neither a source nor a path"):
        open_source(tmp_path / "nowhere")
    save(tmp_path / "a.png", random_images(1)[0])
    with pytest.raises(FolderError, match="is a file: give the folder"):
        open_folder(tmp_path / "a.png")
