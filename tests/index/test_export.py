"""What other programs get is what the index finds."""

import json
import sys

import numpy as np
import pytest

import adsh
from adsh.errors import FolderError, InputError, MissingExtraError
from tests.index.cases import keys, random_codes


@pytest.fixture
def index(tmp_path):
    codes = random_codes(300, 20, distinct=30)
    with adsh.open_index(tmp_path / "index", bits=20) as index:
        index.add(keys(200), codes[:200], [{"n": i} for i in range(200)])
        index.compact()
        index.add(keys(100, 200), codes[200:])
        index.remove(["item 7"])
        yield index


def test_faiss_finds_the_same_distances_and_in_its_own_order_the_same_items(index):
    pytest.importorskip("faiss")
    flat, names = index.to_faiss(), index.keys()
    queries = random_codes(5, 20)
    far, numbers = flat.search(queries, 299)
    for matches, distances, found in zip(index.search(queries, k=299), far, numbers, strict=True):
        assert matches.distances.tolist() == distances.tolist()
        for distance in set(distances.tolist()):
            mine = {key for key, d in zip(matches.keys, matches.distances, strict=True) if d == distance}
            assert mine == {names[i] for i, d in zip(found, distances, strict=True) if d == distance}


def test_npy_files_hold_codes_and_keys_without_pickles(index, tmp_path):
    keys_path = index.to_npy(tmp_path / "codes.npy")
    assert keys_path == tmp_path / "codes.keys.npy"
    names = np.load(keys_path, allow_pickle=False)
    codes = np.load(tmp_path / "codes.npy", allow_pickle=False)
    assert names.tolist() == index.keys()
    assert [(key, code.tobytes()) for key, code in zip(names, codes, strict=True)] == [i[:2] for i in index.items()]
    with pytest.raises(InputError, match="does not end in .npy"):
        index.to_npy(tmp_path / "codes.txt")


def test_parquet_holds_keys_codes_and_metadata(index, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    index.to_parquet(tmp_path / "items.parquet")
    table = parquet.read_table(tmp_path / "items.parquet").to_pylist()
    read = [(r["key"], r["code"], json.loads(r["metadata"]) if r["metadata"] else None) for r in table]
    assert read == list(index.items())
    with pytest.raises(FolderError, match="is a folder"):
        index.to_parquet(tmp_path)


def test_an_empty_index_is_exported_too(tmp_path):
    with adsh.open_index(tmp_path / "i", bits=20) as index:
        index.to_npy(tmp_path / "c.npy")
        assert np.load(tmp_path / "c.npy").shape == (0, 3)
        assert index.keys() == []


@pytest.mark.parametrize(("package", "name"), [("faiss", "to_faiss"), ("pyarrow", "to_parquet")])
def test_a_missing_package_is_named_with_the_command_that_adds_it(index, tmp_path, monkeypatch, package, name):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match="pip install"):
        getattr(index, name)(*([] if name == "to_faiss" else [tmp_path / "x"]))
