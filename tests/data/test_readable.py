import numpy as np
import pytest

from adsh.data import check_overlap, check_readable, digests, open_source, split
from adsh.errors import InputError

from .image_cases import random_images, save


@pytest.fixture
def folder(tmp_path):
    for at, pixels in enumerate(random_images(30)):
        save(tmp_path / "ab"[at % 2] / f"{at:02}.png", pixels)
    return tmp_path


def spoil(folder, count):
    names = [f"{'ab'[at % 2]}/{at:02}.png" for at in range(3, 3 + count)]
    for name in names:
        (folder / name).write_text("not an image")
    return sorted(names)


def test_a_dataset_that_can_be_read_is_given_back_with_its_digests(folder):
    dataset, seen = open_source(folder), []
    read = check_readable(dataset, progress=seen.append)
    assert read.dataset is dataset
    assert (read.bad, seen[-1]) == ([], 30)
    assert np.array_equal(read.digests, digests(dataset))


def test_unreadable_files_stop_with_a_list_before_anything_starts(folder):
    names = spoil(folder, 7)
    with pytest.raises(InputError, match="7 of 30 items cannot be read: .*--skip-bad") as caught:
        check_readable(open_source(folder))
    assert all(name in str(caught.value) for name in names)
    assert "\n" not in str(caught.value)


def test_unreadable_files_are_left_out_on_request_and_listed(folder):
    names = spoil(folder, 2)
    read = check_readable(open_source(folder), skip_bad=True)
    assert [key for key, _ in read.bad] == names
    assert all("no image of a known format" in reason for _, reason in read.bad)
    assert len(read.dataset) == len(read.dataset.labels) == len(read.digests) == 28
    assert not set(names) & set(read.dataset.keys)
    check_overlap(read.dataset, split(read.dataset), read.digests)


def test_nothing_readable_is_an_error_even_then(folder):
    for path in folder.rglob("*.png"):
        path.write_text("not an image")
    with pytest.raises(InputError, match="30 of 30 .*give images that can be read"):
        check_readable(open_source(folder), skip_bad=True)
