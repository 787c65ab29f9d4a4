import numpy as np
import pytest
import scipy.sparse
import torch

from adsh.data import as_items
from adsh.data.loader import DeviceLoader
from adsh.errors import InputError


class Lazy:
    """Items computed on access; counts what was read."""

    def __init__(self, n, make):
        self.n, self.make, self.read = n, make, []

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        self.read.append(i)
        return self.make(i)


class LazyBatches(Lazy):
    def __getitems__(self, indices):
        self.read.extend(indices)
        return np.stack([self.make(i) for i in indices])


@pytest.mark.parametrize("kind", [Lazy, LazyBatches])
def test_a_lazy_sequence_larger_than_memory_is_read_where_indexed(kind):
    source = kind(10**12, lambda i: np.array([i % 97, 1.0]))
    items = as_items(source)
    assert len(items) == 10**12
    assert items.take(np.array([5, 10**11])).tolist() == [[5, 1], [10**11 % 97, 1]]
    assert set(source.read) == {0, 5, 10**11}


def test_arrays_lists_and_tensors_are_taken():
    for source in ([[1, 2], [3, 4]], np.array([[1, 2], [3, 4]]), torch.tensor([[1, 2], [3, 4]])):
        items = as_items(source)
        assert items.shape == (2,)
        assert items.take(np.array([1])).tolist() == [[3, 4]]


def test_images_arrive_channels_first_between_0_and_1():
    images = np.zeros((2, 4, 6, 3), dtype=np.uint8)
    images[1, 0, 2] = 255, 0, 51
    batch = DeviceLoader(as_items(images), torch.device("cpu"))(np.array([1]))
    assert batch.shape == (1, 3, 4, 6)
    assert batch[0, :, 0, 2].tolist() == pytest.approx([1.0, 0.0, 0.2])


def test_half_precision_features_arrive_as_float32():
    batch = DeviceLoader(as_items(np.ones((2, 3), dtype=np.float16)), torch.device("cpu"))(np.array([0, 1]))
    assert batch.dtype == torch.float32


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_are_found_and_the_item_named(bad, tmp_path):
    features = np.zeros((10, 3))
    features[7, 1] = bad
    with pytest.raises(InputError, match="item 7"):
        as_items(features)
    np.save(tmp_path / "f.npy", features)
    mapped = as_items(np.load(tmp_path / "f.npy", mmap_mode="r"))  # not read whole when opened
    with pytest.raises(InputError, match="item 7"):
        mapped.take(np.array([2, 7]))
    lazy = as_items(Lazy(10, lambda i: features[i]))
    with pytest.raises(InputError, match="item 7"):
        lazy.take(np.array([2, 7]))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (np.zeros((0, 3)), "empty"),
        (np.zeros(3), r"shape \(\)"),
        (np.zeros((2, 4, 4, 3)), "uint8"),
        (np.zeros((2, 3, 4, 4), dtype=np.uint8), "channels last"),
        (np.array([["a", "b"]]), "real numbers"),
        (7, "int"),
        ([[1, 2], [3]], "different shapes"),
        ({"a": 1}, "by index"),
        (scipy.sparse.csr_array(np.eye(3)), "toarray"),
        (Lazy(3, lambda i: (np.zeros(2), 1)), "without their labels"),
        (np.full((2, 3), 1e300), "beyond float32"),
        (Lazy(3, lambda i: np.zeros(2 + (i == 1))), "one shape an item"),
    ],
)
def test_inputs_that_cannot_be_used_are_refused_in_words(source, said):
    with pytest.raises(InputError, match=said):
        as_items(source, "Y").take(np.array([0, 1]))


def test_odd_arrays_arrive_as_plain_float32():
    def feed(source):
        return DeviceLoader(as_items(source), torch.device("cpu"))(np.array([1, 0])).tolist()

    plain = np.array([[1.0, 2.0], [3.0, 4.0]])
    fixed = plain.astype(np.float32)
    fixed.setflags(write=False)

    class Backwards(LazyBatches):
        def __getitems__(self, indices):
            return plain[np.asarray(indices)][:, ::-1][:, ::-1]

    odd = (plain.astype(">f8"), plain.astype(np.longdouble), torch.tensor(plain, dtype=torch.bfloat16), fixed)
    for source in (*odd, Backwards(2, None)):
        assert feed(source) == [[3.0, 4.0], [1.0, 2.0]]


def test_images_of_several_sizes_are_reported_what_gives_them_one():
    images = [np.zeros((4, 6, 3), np.uint8), np.zeros((5, 5, 3), np.uint8)]
    with pytest.raises(InputError, match="such as 4 x 6 and 5 x 5: .*ResizedDataset"):
        as_items(Lazy(2, lambda i: images[i])).take(np.array([0, 1]))


def test_what_a_source_says_of_a_bad_item_is_passed_on(tmp_path):
    def broken(i):
        if i:
            raise InputError("b.jpg is a broken image")
        return np.zeros((4, 6, 3), np.uint8)

    with pytest.raises(InputError, match="^b.jpg is a broken image$"):
        as_items(Lazy(2, broken)).take(np.array([0, 1]))


def test_too_few_items_back_are_reported():
    class Short(LazyBatches):
        def __getitems__(self, indices):
            return np.zeros((1, 2))

    with pytest.raises(InputError, match="for 2 indices"):
        as_items(Short(5, None)).take(np.array([0, 1]))
