"""Tables as sources, and codes and matches as tables, with the real pandas, polars and pyarrow."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import adsh
from adsh.data import open_source, open_table
from adsh.data.frames import codes_table, matches_table, save_parquet, to_frame
from adsh.errors import InputError

pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")
feather, parquet = pytest.importorskip("pyarrow.feather"), pytest.importorskip("pyarrow.parquet")

FRAMES = {
    "pandas": pandas.DataFrame,
    "polars": lambda columns: polars.DataFrame(columns, strict=False),
    "pyarrow": pyarrow.table,
}


@pytest.fixture(params=sorted(FRAMES))
def frame(request: pytest.FixtureRequest):
    return FRAMES[request.param]


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root, rng = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    for number in range(4):
        Image.fromarray(rng.integers(0, 255, (20 + number, 24, 3), dtype=np.uint8)).save(root / f"{number}.png")
    return root


def quick(**options):
    return adsh.ADSH(8, network="linear", outer=2, inner=1, device="cpu", progress=False, **options)


def test_a_column_of_paths_and_one_of_labels(frame, photos):
    paths = [str(photos / f"{number}.png") for number in range(4)]
    dataset = open_table(frame({"path": paths, "label": ["a", "b", None, "a"], "year": [1, 2, 3, 4]}))
    assert list(dataset.keys) == paths
    assert [dataset.labels[at] for at in range(4)] == [("a",), ("b",), (), ("a",)]
    assert dataset[1].shape == (21, 24, 3)
    assert list(dataset.columns["year"]) == ["1", "2", "3", "4"]


def test_a_column_of_lists_of_labels_and_of_vectors(frame):
    dataset = open_table(frame({"features": [[1.0, 2.0], [3.0, 4.0]], "labels": [["x", "y"], []], "key": ["p", "q"]}))
    assert dataset.array.tolist() == [[1, 2], [3, 4]]
    assert dataset.labels[0] == ("x", "y")
    assert list(dataset.keys) == ["p", "q"]


def test_columns_of_numbers_are_features(frame, blobs):
    X, y = blobs
    columns = {f"f{at}": X[:, at].tolist() for at in range(8)}
    table = frame({**columns, "label": y.tolist()})
    fitted = quick().fit(table)
    assert np.array_equal(fitted.database_codes_, quick().fit(X, y).database_codes_)
    assert np.array_equal(fitted.encode(frame(columns)), fitted.encode(X))
    assert np.array_equal(quick().fit(frame(columns), table["label"]).database_codes_, fitted.database_codes_)


def test_the_column_of_labels_can_be_named(frame, blobs):
    X, y = blobs
    table = frame({"features": [row.tolist() for row in X], "kind": y.tolist()})
    fitted = quick().fit(table, "kind")
    assert np.array_equal(fitted.database_codes_, quick().fit(X, y).database_codes_)
    with pytest.raises(InputError, match="no column 'sort': choose from features, kind"):
        quick().fit(table, "sort")


def test_a_column_of_image_bytes(frame, photos):
    files = [(photos / f"{number}.png").read_bytes() for number in range(4)]
    dataset = open_table(frame({"image": files, "label": [0, 1, 0, 1]}))
    assert all(np.array_equal(dataset[at], np.asarray(Image.open(photos / f"{at}.png"))) for at in range(4))


def test_columns_keep_their_order_after_the_fit(blobs):
    X, y = blobs
    names = [f"f{at}" for at in range(8)]
    model = quick().fit(pandas.DataFrame(X, columns=names), pandas.Series(y))
    assert list(model.feature_names_in_) == names
    with pytest.raises(InputError, match="feature names should match"):
        model.transform(pandas.DataFrame(X[:, ::-1], columns=names[::-1]))


def test_what_cannot_be_used_is_said(frame):
    for columns, said in (
        ({"name": ["a", "b"], "label": [0, 1]}, "no numbers .name."),
        ({"path": ["a.png", None]}, "no path in row 1"),
        ({"features": [[1.0], [1.0, 2.0]]}, "several lengths"),
        ({"features": [[1.0], [2.0]], "label": [0.5, 1.0]}, "no classes"),
        ({"path": []}, "no rows"),
    ):
        with pytest.raises(InputError, match=said):
            open_table(frame(columns))


@pytest.mark.parametrize("name", ["table.parquet", "table.arrow", "table.feather"])
def test_files_of_tables_are_sources(name, photos, tmp_path):
    table = pyarrow.table({"path": [f"{number}.png" for number in range(4)], "label": ["a", "b", "a", "b"]})
    write = parquet.write_table if name.endswith(".parquet") else feather.write_feather
    write(table, photos / name)
    dataset = open_source(photos / name)
    assert dataset[2].shape == (22, 24, 3)  # relative to the file
    assert list(dataset.classes) == ["a", "b"]
    write(table, tmp_path / name)
    assert open_source(tmp_path / name, root=photos)[2].shape == (22, 24, 3)
    assert open_source(f"file://{photos / name}", root=photos).keys[0] == "0.png"
    (tmp_path / name).write_bytes(b"no table")
    with pytest.raises(adsh.AdshError, match="cannot be read"):
        open_source(tmp_path / name)


def test_a_folder_at_an_address_is_a_source(tmp_path):
    for kind in ("cats", "dogs"):
        (tmp_path / kind).mkdir()
        Image.new("RGB", (9, 8), "red").save(tmp_path / kind / "1.png")
    dataset = open_source(f"file://{tmp_path}")
    assert list(dataset.keys) == ["cats/1.png", "dogs/1.png"]
    assert list(dataset.classes) == ["cats", "dogs"]
    assert dataset[1].shape == (8, 9, 3)
    with pytest.raises(adsh.AdshError, match="cannot be listed"):
        open_source(f"file://{tmp_path}/no")


def test_codes_as_a_table_and_as_parquet(tmp_path):
    codes = np.array([[1, 128], [255, 0]], dtype=np.uint8)
    table = codes_table(codes, ["a", "b"], 9)
    assert to_frame(table).shape == to_frame(table, "polars").shape == (2, 2)
    save_parquet(table, tmp_path / "codes.parquet")
    read = parquet.read_table(tmp_path / "codes.parquet")
    assert read["key"].to_pylist() == ["a", "b"]
    assert np.array_equal(np.frombuffer(b"".join(read["code"].to_pylist()), np.uint8).reshape(2, 2), codes)
    with pytest.raises(InputError, match="ends in .parquet"):
        save_parquet(table, tmp_path / "codes.csv")


def test_matches_as_a_frame(tmp_path):
    with adsh.open_index(tmp_path / "index", bits=8) as index:
        codes = np.arange(4, dtype=np.uint8)[:, None]
        index.add(["a", "b", "c", "d"], codes, [{"class": "x"}, {"class": "y"}, None, {"year": 3}])
        found = index.search(codes[:2], k=2)
    frame = to_frame(matches_table(found, ["q0", "q1"]))
    assert frame["query"].tolist() == ["q0", "q0", "q1", "q1"]
    assert frame["rank"].tolist() == [1, 2, 1, 2]
    assert frame["key"].tolist()[::2] == ["a", "b"]
    assert frame["class"].tolist()[0] == "x"
    assert matches_table([], []) == {"query": [], "rank": [], "key": [], "distance": []}


def run(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "adsh", *map(str, arguments)], cwd=folder, capture_output=True, text=True, check=False
    )  # fmt: skip


def test_the_commands_take_tables_and_give_them(tmp_path, blobs):
    X, y = blobs
    table = pyarrow.table({"features": [row.tolist() for row in X], "label": y, "key": [f"i{at}" for at in range(300)]})
    parquet.write_table(table, tmp_path / "items.parquet")
    parquet.write_table(table.slice(0, 3).drop_columns(["label"]), tmp_path / "queries.parquet")
    for arguments in (
        ("train", "items.parquet", "--bits", 8, "--outer", 2, "--out", "model", "--network", "linear", "--json"),
        ("encode", "model", "items.parquet", "-o", "codes.parquet"),
        ("index", "add", "found.index", "items.parquet", "--model", "model"),
        ("search", "found.index", "queries.parquet", "--top-k", 2, "-o", "matches.parquet", "--json"),
    ):
        done = run(tmp_path, *arguments)
        assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["queries"]) == 3
    matches = parquet.read_table(tmp_path / "matches.parquet").to_pydict()
    assert matches["query"] == ["i0", "i0", "i1", "i1", "i2", "i2"]
    codes = parquet.read_table(tmp_path / "codes.parquet").to_pydict()
    assert codes["key"][:2] == ["i0", "i1"]
    model = adsh.load(tmp_path / "model")
    assert b"".join(codes["code"]) == model.encode(X.astype(np.float32)).tobytes()
