"""A source in partitions, and the codes of each as a file."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest
from PIL import Image

from adsh.cluster.partitions import partition_source
from adsh.data import open_source
from adsh.errors import FolderError, InputError
from adsh.hamming.bits import bytes_for
from adsh.index import open_index
from tests.data.image_cases import random_images, save

pyarrow = pytest.importorskip("pyarrow", reason="adsh[ray] is not installed")

from pyarrow import parquet  # noqa: E402  # after the check that it is there

from adsh.cluster.index_sink import IndexSink, format_ranges, parse_ranges  # noqa: E402  # the same
from adsh.cluster.parquet_codes import ParquetCodes  # noqa: E402  # the same


@pytest.fixture
def photos(tmp_path):
    for at, image in enumerate(random_images(7, 12, 10, seed=0)):
        save(tmp_path / "photos" / ("cat", "dog")[at % 2] / f"{at}.png", image)
    return tmp_path / "photos"


def everything(source):
    return {key: np.asarray(read()) for number in range(source.count) for key, read in source.read(number)}


def test_every_item_is_in_one_partition(photos):
    source = partition_source(str(photos), size=3)
    assert source.count == 3
    found, dataset = everything(source), open_source(photos)
    assert list(found) == list(dataset.keys)
    for at, pixels in enumerate(found.values()):
        np.testing.assert_array_equal(pixels, dataset[at])


def test_an_address_gives_the_same_images(photos):
    by_path = everything(partition_source(str(photos), size=3))
    by_address = everything(partition_source(f"file://{photos}", size=2))
    assert by_path.keys() == by_address.keys()
    for key in by_path:
        np.testing.assert_array_equal(by_path[key], by_address[key])


def test_rows_of_parquet_are_images(tmp_path):
    images = random_images(5, 8, 8, seed=1)
    files = []
    for image in images:
        held = io.BytesIO()
        Image.fromarray(image).save(held, "PNG")
        files.append(held.getvalue())
    path = tmp_path / "some.parquet"
    table = pyarrow.table({"id": [f"k{i}" for i in range(5)], "bytes": files})
    parquet.write_table(table, path, row_group_size=2)
    source = partition_source(str(path), keys="id", images="bytes")
    assert source.count == 3
    np.testing.assert_array_equal(list(everything(source).values()), images)
    paths = pyarrow.table({"key": ["a"], "image": ["/etc/hostname"]})  # a path is not opened, wherever it is read
    parquet.write_table(paths, tmp_path / "paths.parquet")
    with pytest.raises(InputError, match="a of .* has no bytes of an image file"):
        everything(partition_source(str(tmp_path / "paths.parquet")))
    as_dataset = pyarrow.table({"key": ["a"], "image": [{"bytes": files[0], "path": None}]})
    parquet.write_table(as_dataset, tmp_path / "struct.parquet")
    np.testing.assert_array_equal(everything(partition_source(str(tmp_path / "struct.parquet")))["a"], images[0])
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    with pytest.raises(FolderError, match=r"broken.parquet cannot be read"):
        partition_source(str(tmp_path / "broken.parquet"))
    with pytest.raises(InputError, match="has no column 'image': it has id, bytes; name them with --key-column"):
        partition_source(str(path), keys="id")


def test_a_deleted_file_is_an_unreadable_image_and_a_store_that_fails_is_not(photos):
    """The first may be left out; of the second nothing is known, so a partition must not count as done."""
    source = partition_source(f"file://{photos}", size=7)
    named = dict(source.read(0))
    (photos / "cat" / "0.png").unlink()
    with pytest.raises(InputError, match=r"0.png was deleted after"):
        named["cat/0.png"]()
    (photos / "dog" / "1.png").unlink()
    (photos / "dog" / "1.png").mkdir()
    with pytest.raises(FolderError, match=r"1.png cannot be read"):
        named["dog/1.png"]()


def test_a_path_means_the_same_to_who_works_in_another_folder(photos, monkeypatch):
    monkeypatch.chdir(photos.parent)
    assert partition_source("photos", size=3).source == str(photos)
    (photos.parent / "digits").mkdir()
    assert partition_source("digits", size=3).source == "digits"  # a name goes before a folder, as everywhere
    monkeypatch.setenv("ADSH_DATA", "there")
    cifar10 = partition_source("cifar10", size=3)
    assert cifar10.root == str(photos.parent / "there" / "cifar10")  # by the settings of this machine


def test_which_partitions_an_index_holds_is_a_short_text():
    assert format_ranges([3, 0, 1, 2, 7, 9, 8, 12]) == "0-3 7-9 12"
    assert parse_ranges("0-3 7-9 12") == {0, 1, 2, 3, 7, 8, 9, 12}
    assert parse_ranges(format_ranges([])) == set()


def test_it_is_sent_without_what_it_opened(photos):
    source = partition_source(str(photos), size=3)
    assert source.count == 3
    assert len(pickle.dumps(source)) < 500
    assert list(everything(pickle.loads(pickle.dumps(source)))) == list(everything(source))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("file:///nothing/here", "there is nothing at file:///nothing/here"),
        ("nowhere://x", "nowhere://x cannot be used"),
        ("nowhere://me:secret@x", r"nowhere://me@x cannot be used .*URI: nowhere://me:…@x"),
        ("missing.parquet", "there is nothing at missing.parquet"),
    ],
)
def test_what_cannot_be_read_is_reported(source, message):
    with pytest.raises(InputError, match=message):
        partition_source(source)


def test_partitions_are_written_completely_and_read_again(tmp_path):
    output = ParquetCodes(str(tmp_path / "out"), 12)
    codes = np.random.default_rng(0).integers(0, 256, (4, bytes_for(12)), dtype=np.uint8)
    output.write(3, ["a", "b", "ü", "d"], codes)
    output.write(0, [], codes[:0])
    assert output.done() == {0, 3}
    keys, again = output.read(3)
    assert keys == ["a", "b", "ü", "d"]
    np.testing.assert_array_equal(again, codes)
    assert [len(keys) for keys, _ in output] == [0, 4]


def test_images_left_out_are_remembered(tmp_path):
    output = ParquetCodes(str(tmp_path / "out"), 8)
    output.write(1, ["a"], np.zeros((1, 1), dtype=np.uint8), ["b.png is broken"])
    assert output.left_out(1) == ["b.png is broken"]


@pytest.mark.parametrize("kind", ["folder", "files", "manifest", "parquet"])
def test_a_source_that_changed_is_another(photos, tmp_path, kind):
    def source():
        files = sorted(path.relative_to(photos).as_posix() for path in photos.rglob("*.png"))
        if kind == "manifest":
            (photos / "list.csv").write_text("path,label\n" + "".join(f"{name},x\n" for name in files))
            return partition_source(str(photos / "list.csv"), size=3)
        if kind == "parquet":
            rows = [(photos / name).read_bytes() for name in files]
            table = pyarrow.table({"key": files, "image": rows})
            parquet.write_table(table, tmp_path / "some.parquet", row_group_size=3)
            return partition_source(str(tmp_path / "some.parquet"))
        return partition_source(f"file://{photos}" if kind == "files" else str(photos), size=3)

    before = source()
    assert everything(before).keys() == {path.relative_to(photos).as_posix() for path in photos.rglob("*.png")}
    assert source().describe() == before.describe()
    if kind == "parquet":
        (photos / "dog" / "3.png").unlink()  # rows are counted, not read
    else:
        (photos / "dog" / "3.png").rename(photos / "dog" / "35.png")  # between the first and the last
    assert source().describe() != before.describe()


def test_two_collections_go_into_one_index_and_what_it_has_stays(tmp_path):
    rng = np.random.default_rng(0)
    with open_index(tmp_path / "index", bits=8) as index:
        index.add(["b/1"], np.full((1, 1), 255, dtype=np.uint8), [{"class": "cat"}])
        for name in ("a", "b"):
            output = ParquetCodes(str(tmp_path / name), 8)
            output.begin({"items": 4})
            for number in range(2):
                codes = rng.integers(0, 255, (2, 1), dtype=np.uint8)
                output.write(number, [f"{name}/{2 * number}", f"{name}/{2 * number + 1}"], codes)
            again = ParquetCodes(str(tmp_path / name), 8)  # as in a run that continues
            again.begin({"items": 4})
            sink = IndexSink(index, again)
            sink.ingest([0])
            sink.ingest([0, 1])
            assert sink.added == (4 if name == "a" else 3)
        assert sorted(index.keys()) == [f"{name}/{i}" for name in "ab" for i in range(4)]
        (kept,) = index.get(["b/1"])
        assert (kept.code, kept.metadata) == (b"\xff", {"class": "cat"})


def test_a_damaged_description_is_reported(tmp_path):
    output = ParquetCodes(str(tmp_path / "out"), 12)
    output.begin({"items": 5})
    (tmp_path / "out" / "encode.json").write_text("")
    with pytest.raises(FolderError, match=r"encode.json is damaged: give another --out"):
        output.begin({"items": 5})


def test_continuing_with_something_else_is_refused(tmp_path):
    output = ParquetCodes(str(tmp_path / "out"), 12)
    output.begin({"items": 5, "model": "m"})
    output.begin({"items": 5, "model": "m"})
    with pytest.raises(InputError, match="was started with items 5, and now it is 6: give another --out"):
        output.begin({"items": 6, "model": "m"})
