import numpy as np
import pytest

from adsh.data import ArrayDataset, Split, check_overlap, digests, open_source, split, without_overlap
from adsh.errors import InputError

from .image_cases import random_images, save


def parts(**indices):
    return Split("own", 0, **{name: np.array(part, dtype=np.int64) for name, part in indices.items()})


def test_a_planted_duplicate_is_caught_when_saved_again_under_another_name(tmp_path):
    images = random_images(20)
    for at, pixels in enumerate(images):
        save(tmp_path / f"class{at % 2}" / f"{at:02}.bmp", pixels)
    save(tmp_path / "class1" / "zz_innocent.png", images[4])
    dataset = open_source(tmp_path)
    query = list(dataset.keys).index("class0/04.bmp")
    drawn = parts(queries=[query], database=[i for i in range(len(dataset)) if i != query])
    with pytest.raises(
        InputError, match="1 items in both queries and database: class0/04.bmp = class1/zz_innocent.png;"
    ) as caught:
        check_overlap(dataset, drawn)
    assert "\n" not in str(caught.value)


def test_copies_inside_the_database_are_counted():
    images = random_images(6)[[0, 1, 2, 3, 1, 1]]
    assert check_overlap(ArrayDataset(images), parts(queries=[0], database=[1, 2, 3, 4, 5])) == 2


@pytest.mark.parametrize(
    "drawn",
    [
        parts(queries=[0], training=[3], database=[1]),
        parts(validation=[0], database=[1, 3]),
        parts(queries=[0], validation=[3], database=[1]),
    ],
)
def test_a_copy_in_any_two_parts_that_must_be_apart_is_refused(drawn):
    images = random_images(4)[[0, 1, 2, 0]]
    with pytest.raises(InputError, match="0 = 3"):
        check_overlap(ArrayDataset(images), drawn)


def test_copies_can_be_left_out_of_the_database():
    images = random_images(10)[[0, 1, 2, 3, 0, 1, 0, 7, 8, 9]]
    drawn = parts(queries=[0, 1], validation=[5, 7], database=[2, 3, 4, 6, 8, 9], training=[4, 9])
    found = digests(ArrayDataset(images))
    kept, dropped = without_overlap(drawn, found)
    assert dropped.tolist() == [4, 5, 6]
    assert [part.tolist() for part in kept.arrays().values()] == [[0, 1], [2, 3, 8, 9], [7], [9]]
    assert check_overlap(ArrayDataset(images), kept, found) == 0


def test_many_copies_are_counted_and_the_first_named():
    images = random_images(8)[[*range(8), *range(8)]]
    with pytest.raises(
        InputError, match="8 items in both queries and database: 0 = 8, 1 = 9, 2 = 10, 3 = 11, 4 = 12 and 3 more"
    ):
        check_overlap(ArrayDataset(images), parts(queries=range(8), database=range(8, 16)))


def test_equal_bytes_of_another_shape_or_type_are_another_item():
    zeros = [
        np.zeros((2, 6, 3), np.uint8),
        np.zeros((6, 2, 3), np.uint8),
        np.zeros(9, np.float32),
        np.zeros(36, np.uint8),
    ]
    found = np.concatenate([digests(ArrayDataset(item[None])) for item in zeros])
    assert len(np.unique(found, axis=0)) == 4


def test_digests_read_in_blocks_and_report_progress():
    dataset, seen = ArrayDataset(np.arange(600.0)[:, None]), []
    found = digests(dataset, seen.append)
    assert found.shape == (600, 16)
    assert seen == [256, 512, 600]
    assert np.array_equal(found[300:], digests(dataset.subset(np.arange(300, 600))))


def test_a_split_of_another_dataset_is_refused():
    small, large = ArrayDataset(random_images(10)), ArrayDataset(random_images(20))
    with pytest.raises(InputError, match="but there are 10 items"):
        check_overlap(small, split(large))
