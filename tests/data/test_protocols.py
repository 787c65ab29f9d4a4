import numpy as np
import pytest

from adsh.data import PROTOCOLS, ArrayDataset, Split, split
from adsh.errors import FolderError, InputError


def cifar10(n=60_000):
    labels = np.random.default_rng(5).permutation(np.arange(n) % 10)
    return ArrayDataset(np.zeros((n, 1), np.uint8), labels, name="cifar10", test_from=n * 5 // 6)


def multi_label(n, name):
    hot = np.zeros((n, 21), dtype=np.uint8)
    hot[np.arange(n), np.arange(n) % 21] = hot[np.arange(n), np.arange(n) % 4] = 1
    return ArrayDataset(np.zeros((n, 1), np.uint8), hot, name=name)


SIZES = {  # queries, validation, training, database
    "paper": (1000, 1000, 5000, 58_000),
    "59k": (1000, 0, 5000, 59_000),
    "54k": (1000, 0, 5000, 54_000),
    "50k": (10_000, 0, 5000, 50_000),
    "holdout": (1000, 0, 0, 59_000),
    "all": (0, 0, 0, 60_000),
}


@pytest.mark.parametrize("protocol", SIZES)
def test_cifar10s_protocols_have_their_sizes(protocol):
    dataset = cifar10()
    drawn = split(dataset, protocol, seed=3)
    assert tuple(len(p) for p in (drawn.queries, drawn.validation, drawn.training, drawn.database)) == SIZES[protocol]
    assert (drawn.protocol, drawn.seed) == (protocol, 3)
    drawn.check(len(dataset))
    if protocol in ("59k", "54k"):
        assert np.bincount(dataset.labels.ids[drawn.queries]).tolist() == [100] * 10
    if len(drawn.training):
        assert np.bincount(dataset.labels.ids[drawn.training]).tolist() == [500] * 10
        assert np.isin(drawn.training, drawn.database).all() == (protocol != "54k")
    if protocol == "50k":
        assert drawn.queries.tolist() == list(range(50_000, 60_000))


@pytest.mark.parametrize(
    ("protocol", "name", "n", "sizes"),
    [
        ("paper", "nuswide", 195_834, (2100, 2100, 10_500, 191_634)),
        ("nuswide", "database.txt", 20_000, (2100, 2100, 10_500, 15_800)),
        ("coco17", "coco17", 15_925, (1000, 0, 5000, 14_925)),
    ],
)
def test_the_other_protocols_have_their_sizes(protocol, name, n, sizes):
    drawn = split(multi_label(n, name), protocol)
    assert tuple(len(p) for p in (drawn.queries, drawn.validation, drawn.training, drawn.database)) == sizes
    drawn.check(n)


def test_coco_takes_queries_of_the_validation_images_and_all_training_images():
    dataset = multi_label(122_218, "coco")
    dataset.test_from = 82_081
    drawn = split(dataset, "coco", seed=1)
    assert drawn.database.tolist() == list(range(82_081))
    assert len(drawn.queries) == len(np.unique(drawn.queries)) == 5000
    assert drawn.queries.min() >= 82_081
    assert np.isin(drawn.training, drawn.database).all()
    assert len(drawn.training) == 10_000
    drawn.check(len(dataset))
    assert not np.array_equal(split(dataset, "coco", seed=2).queries, drawn.queries)
    dataset.test_from = None
    with pytest.raises(InputError, match="takes the published test part as queries, and coco has none"):
        split(dataset, "coco")


@pytest.mark.parametrize("protocol", sorted(set(PROTOCOLS) - {"all", "50k", "coco", "published"}))
def test_a_seed_gives_one_split_and_another_seed_another(protocol):
    dataset = cifar10()
    first, again, other = (split(dataset, protocol, seed) for seed in (1, 1, 2))
    for name, part in first.arrays().items():
        assert np.array_equal(part, again.arrays()[name])
    assert not np.array_equal(first.queries, other.queries)


def test_protocols_that_do_not_fit_are_reported():
    for protocol in ("paper", "59k", "nuswide", "coco17"):
        with pytest.raises(InputError, match="too small for it"):
            split(cifar10(990), protocol)
    with pytest.raises(InputError, match="several labels an item"):
        split(multi_label(9000, "tags"), "59k")
    with pytest.raises(InputError, match="no labels"):
        split(ArrayDataset(np.zeros((9000, 1))), "54k")
    with pytest.raises(InputError, match="published test part as queries, and arrays has none"):
        split(ArrayDataset(np.zeros((9000, 1)), np.arange(9000) % 2), "50k")
    with pytest.raises(InputError, match="choose holdout, all, paper, 59k"):
        split(cifar10(), "58k")
    with pytest.raises(InputError, match="seed=-1"):
        split(cifar10(), seed=-1)


def test_a_saved_split_comes_back_as_it_was(tmp_path):
    drawn = split(cifar10(), "54k", seed=7)
    drawn.save(tmp_path / "split.npz")
    back = Split.load(tmp_path / "split.npz")
    assert (back.protocol, back.seed) == ("54k", 7)
    for name, part in drawn.arrays().items():
        assert back.arrays()[name].dtype == np.int64
        assert np.array_equal(part, back.arrays()[name])
    assert [path.name for path in tmp_path.iterdir()] == ["split.npz"]


def test_files_that_are_no_split_are_reported(tmp_path):
    with pytest.raises(FolderError, match="does not exist"):
        Split.load(tmp_path / "split.npz")
    np.savez(tmp_path / "split.npz", queries=np.arange(3))
    with pytest.raises(FolderError, match="is no split"):
        Split.load(tmp_path / "split.npz")
    (tmp_path / "split.npz").write_text("text")
    with pytest.raises(FolderError, match="is no split"):
        Split.load(tmp_path / "split.npz")
    with pytest.raises(FolderError, match="cannot write"):
        split(cifar10()).save(tmp_path / "split.npz" / "below a file.npz")


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"queries": [0, 1], "database": [1, 2]}, "1 items in both database and queries or validation"),
        ({"validation": [0, 1], "training": [1, 2]}, "in both training and queries"),
        ({"queries": [0, 1], "validation": [1, 2]}, "items in both queries and validation"),
        ({"queries": [5]}, "hold 5, but there are 5 items"),
        ({"database": [-1, 2]}, "hold -1"),
        ({"database": [2, 2]}, "not ascending"),
    ],
)
def test_splits_that_cannot_be_are_refused(parts, said):
    with pytest.raises(InputError, match=said):
        Split("own", 0, **{name: np.array(part) for name, part in parts.items()}).check(5)
