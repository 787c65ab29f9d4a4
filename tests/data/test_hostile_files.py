"""Files that somebody wrote to break a reader: pipes, devices, deep nesting, huge numbers, archives that explode."""

import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from PIL import Image

from adsh.data import Split, open_source
from adsh.data.images.decode import decode
from adsh.data.prepare import prepare
from adsh.data.sources.batch_pickle import read_batch
from adsh.data.sources.coco import open_coco
from adsh.errors import AdshError, FolderError, InputError
from adsh.networks.weights import read_tensors
from adsh.utils.files import read_toml

DEEP = "[" * 200_000


def refused(call, *given):
    with pytest.raises(AdshError) as raised:
        call(*given)
    assert "\n" not in str(raised.value)
    return str(raised.value)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["pipe", "device"])
@pytest.mark.parametrize("name", ["image.png", "list.csv", "list.jsonl", "list.txt", "items.npy", "items.npz"])
def test_a_pipe_or_device_in_place_of_a_file_is_refused_at_once(tmp_path, name, kind):
    path = tmp_path / name
    if kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    read = (lambda source: decode(source)) if name == "image.png" else open_source
    assert "pipe or a device" in refused(read, str(path))


@pytest.mark.timeout(20)
def test_pipes_among_labels_and_weights_are_refused_at_once(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((4, 3), dtype=np.float32))
    os.mkfifo(tmp_path / "labels.npy")
    with pytest.raises(AdshError, match="pipe or a device"):
        open_source(str(tmp_path / "x.npy"), labels=str(tmp_path / "labels.npy"))
    os.mkfifo(tmp_path / "w.npz")
    refused(read_tensors, tmp_path / "w.npz")


def test_lists_nested_too_deeply_are_refused(tmp_path):
    (tmp_path / "list.jsonl").write_text(f'{{"path": "a.png", "more": {DEEP}}}\n')
    assert "nested too deeply" in refused(open_source, str(tmp_path / "list.jsonl"))
    (tmp_path / "instances_x2014.json").write_text(DEEP)
    refused(open_coco, tmp_path / "instances_x2014.json")
    (tmp_path / "run.toml").write_text(f"a = {DEEP}")
    assert "is not TOML" in refused(read_toml, tmp_path / "run.toml")


def test_classes_with_thousands_of_digits_are_names(tmp_path):
    long = "9" * 5000
    (tmp_path / "list.csv").write_text(f"path,label\na.png,{long}\nb.png,7\n")
    assert set(open_source(str(tmp_path / "list.csv")).classes) == {long, "7"}
    (tmp_path / "list.txt").write_text(f"a.png {long}\n")
    assert "give 0 or 1" in refused(open_source, str(tmp_path / "list.txt"))


def test_a_field_longer_than_a_csv_may_have_is_refused(tmp_path):
    (tmp_path / "list.csv").write_text("path,label\na.png," + "x" * 200_000 + "\n")
    assert "field larger than field limit" in refused(open_source, str(tmp_path / "list.csv"))


def bomb(path, names, count):
    """An .npz of a few kilobytes that unpacks to count * 8 bytes for each name."""
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({count},), }}"
    head = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.ljust(117).encode() + b"\n"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                file.write(head)
                for _ in range(8):
                    file.write(bytes(count))


def test_a_split_that_unpacks_to_gigabytes_is_refused_before_it_does(tmp_path, monkeypatch):
    bomb(tmp_path / "split.npz", ["queries"], 16 << 20)
    monkeypatch.setattr("numpy.lib.format.read_array", lambda *_, **__: pytest.fail("unpacked"))
    assert "unpacks to" in refused(Split.load, tmp_path / "split.npz")


def test_arrays_larger_than_the_free_memory_are_refused_before_they_take_it(tmp_path, monkeypatch):
    bomb(tmp_path / "x.npz", ["features"], 1 << 20)
    monkeypatch.setattr("adsh.data.npz.free_memory", lambda: 1 << 20)
    assert "unpacks to 8.4 MB, and 1.0 MB of memory are free" in refused(open_source, str(tmp_path / "x.npz"))


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_an_array_that_declares_more_than_it_holds_is_refused(tmp_path, compression):
    write_array(tmp_path / "x.npz", 100_000_000_000, compression)
    assert "declares more numbers than it holds" in refused(open_source, str(tmp_path / "x.npz"))


def test_an_array_in_place_ends_where_its_part_of_the_archive_does(tmp_path):
    write_array(tmp_path / "x.npz", 9)  # one more than the bytes after its header have room for
    assert "declares more numbers than it holds" in refused(open_source, str(tmp_path / "x.npz"))


def write_array(path, count, compression=zipfile.ZIP_STORED):
    """An archive with one array of 8 numbers that declares `count`."""
    header = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({count},), }}"
    head = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + header.ljust(117).encode() + b"\n"
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("features.npy", head + bytes(64))


def test_a_batch_whose_keys_are_nested_is_refused():
    nested = b")" + b"\x85" * 500_000  # ((((…),),),)
    refused(read_batch, b"\x80\x04}" + nested + b"K\x01s.", "data_batch_1")
    refused(read_batch, b"\x80\x04}(" + nested + b"K\x01u.", "data_batch_1")
    assert read_batch(pickle.dumps({b"labels": [1, 2]}), "x") == {"labels": [1, 2]}


def test_an_image_exchanged_during_a_run_without_a_cache_is_noticed(tmp_path):
    for number in range(3):
        (tmp_path / "a").mkdir(exist_ok=True)
        Image.new("RGB", (20, 20), (number, 0, 0)).save(tmp_path / "a" / f"{number}.png")
    prepared = prepare(open_source(str(tmp_path)), 16, cache="none").dataset
    before = prepared[1]
    Image.new("RGB", (20, 20), (200, 0, 0)).save(tmp_path / "a/1.png")
    with pytest.raises(InputError, match=r"1\.png was changed during the run: its pixels are others"):
        prepared[1]
    with pytest.raises(InputError, match="changed during the run"):
        prepared.__getitems__([0, 1])
    Image.new("RGB", (20, 20), (1, 0, 0)).save(tmp_path / "a/1.png")  # written again, the same pixels
    assert (prepared[1] == before).all()
    os.utime(tmp_path / "a/2.png")
    assert prepared[2].shape == (16, 16, 3)


def test_an_image_that_vanishes_is_reported_as_ever(tmp_path):
    (tmp_path / "a").mkdir()
    Image.new("RGB", (20, 20)).save(tmp_path / "a/1.png")
    prepared = prepare(open_source(str(tmp_path)), 16, cache="none").dataset
    (tmp_path / "a/1.png").unlink()
    with pytest.raises(InputError, match="does not exist"):
        prepared[0]


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(FolderError, match="cannot read"):
        read_toml(tmp_path)


@pytest.mark.parametrize("name", ["x.npy", "x.npz"])
def test_an_array_whose_header_never_ends_is_refused(tmp_path, name):
    head = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little") + b"{'descr': (".ljust(117) + b"\n"
    if name == "x.npy":
        (tmp_path / name).write_bytes(head)
    else:
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr("features.npy", head)
    assert "cannot be read" in refused(open_source, str(tmp_path / name))


@pytest.mark.parametrize(
    "change",
    [{"annotations": [[1]]}, {"annotations": [3]}, {"annotations": [[[], {}]]}, {"categories": [{"id": 1, "name": 2}]}],
)
def test_annotations_of_another_shape_are_refused(tmp_path, change):
    content = {"images": [{"id": 1, "file_name": "a.jpg"}], "categories": [{"id": 1, "name": "dog"}], "annotations": []}
    (tmp_path / "instances_x2014.json").write_text(json.dumps(content | change))
    refused(open_coco, tmp_path / "instances_x2014.json")


@pytest.mark.parametrize("name", ["features", "keys", "classes", "labels"])
def test_a_single_value_in_place_of_an_array_is_refused(tmp_path, name):
    arrays = {"features": np.zeros((3, 2), np.float32), "labels": np.array([0, 1, 1]), name: np.array(3)}
    np.savez(tmp_path / "x.npz", **arrays)
    refused(open_source, str(tmp_path / "x.npz"))
    np.save(tmp_path / "x.npy", np.float32(3))
    assert "single value" in refused(open_source, str(tmp_path / "x.npy"))
