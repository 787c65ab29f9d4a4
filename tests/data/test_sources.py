import numpy as np
import pytest

from adsh.data import NAMED, open_source
from adsh.errors import FolderError, InputError


def test_a_named_source_lies_in_its_root_or_in_the_folder_of_all(tmp_path, monkeypatch):
    monkeypatch.delenv("ADSH_DATA", raising=False)
    for name in set(NAMED) - {"digits", "synthetic"}:
        with pytest.raises(FolderError, match=rf"{name} needs a root: .*\$ADSH_DATA"):
            open_source(name)
    monkeypatch.setenv("ADSH_DATA", str(tmp_path))
    for name in set(NAMED) - {"digits", "synthetic"}:
        with pytest.raises(FolderError, match=f"{tmp_path}/{name.removesuffix('_boxes')}"):
            open_source(name)
        with pytest.raises(FolderError, match=f"{tmp_path}/else"):
            open_source(name, root=tmp_path / "else")


def test_digits_need_no_root():
    dataset = open_source("digits")
    assert (len(dataset), dataset.classes) == (1797, tuple("0123456789"))
    assert dataset[0].shape == (8, 8, 3)


def test_what_is_no_source_is_reported_with_what_would_be(tmp_path):
    with pytest.raises(
        InputError, match="'cifar11' is neither a source nor a path: give one of digits, .*cifar10, .*sub-folder"
    ):
        open_source("cifar11")
    (tmp_path / "notes.md").write_text("")
    with pytest.raises(InputError, match="a file of an unknown kind"):
        open_source(tmp_path / "notes.md")


def test_a_subset_keeps_labels_keys_and_items_together():
    dataset = open_source("digits")
    some = dataset.subset([5, 3, 1700]).subset([2, 0])
    assert list(some.keys) == ["1700", "0005"]
    assert some.labels.ids.tolist() == dataset.labels.ids[[1700, 5]].tolist()
    assert np.array_equal(some.__getitems__([0, 1]), dataset.__getitems__([1700, 5]))
    assert some.classes == dataset.classes
