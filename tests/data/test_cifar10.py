import contextlib
import io
import pickle
import struct
import tarfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adsh.data import open_source
from adsh.data.sources.batch_pickle import read_batch
from adsh.data.sources.cifar10 import BATCHES, CLASSES, open_cifar10
from adsh.errors import FolderError, InputError

from .image_cases import random_images, save

EACH = 20  # images a batch, where the published ones have 10,000
IMAGES = random_images(6 * EACH)
LABELS = np.random.default_rng(1).integers(0, 10, 6 * EACH)


def batch(at, labels=LABELS):
    here = slice(at * EACH, (at + 1) * EACH)
    planes = np.ascontiguousarray(IMAGES[here].transpose(0, 3, 1, 2)).reshape(EACH, 3072)
    return planes, labels[here].tolist()


def python_files(folder, protocol=2):
    folder.mkdir(parents=True)
    for at, name in enumerate(BATCHES):
        planes, labels = batch(at)
        held = {b"batch_label": name.encode(), b"labels": labels, b"data": planes, b"filenames": [b"a.png"] * EACH}
        (folder / name).write_bytes(pickle.dumps(held, protocol=protocol))


def old_python_files(folder):
    """Instruction by instruction what Python 2 wrote, as in the published archive: its strings are bytes."""
    folder.mkdir(parents=True)

    def text(value):
        return b"U" + bytes([len(value)]) + value if len(value) < 256 else b"T" + struct.pack("<i", len(value)) + value

    def number(value):
        return b"K" + bytes([value]) if value < 256 else b"M" + struct.pack("<H", value)

    for at, name in enumerate(BATCHES):
        planes, labels = batch(at)
        array = b"cnumpy.core.multiarray\n_reconstruct\nq\x02(cnumpy\nndarray\nq\x03K\x00\x85" + text(b"b") + b"tRq\x04"
        kind = (
            b"cnumpy\ndtype\nq\x05(" + text(b"u1") + b"K\x00K\x01tRq\x06(K\x03" + text(b"|") + b"NNNJ\xff\xff\xff\xff"
        )
        kind += b"J\xff\xff\xff\xffK\x00tb"
        array += b"(K\x01" + number(EACH) + number(3072) + b"\x86" + kind + b"\x89" + text(planes.tobytes()) + b"tb"
        held = b"\x80\x02}q\x01(" + text(b"data") + array
        held += text(b"labels") + b"]q\x07(" + b"".join(number(label) for label in labels) + b"e"
        (folder / name).write_bytes(held + text(b"batch_label") + text(b"one") + b"u.")


def binary_files(folder):
    folder.mkdir(parents=True)
    for at, name in enumerate(BATCHES):
        planes, labels = batch(at)
        records = np.concatenate([np.array(labels, np.uint8)[:, None], planes], axis=1)
        (folder / f"{name}.bin").write_bytes(records.tobytes())


def sheets(folder):
    folder.mkdir()
    for at in range(6):
        tiles = IMAGES[at * EACH : (at + 1) * EACH].reshape(4, 5, 32, 32, 3)
        save(folder / f"sheet_{at}.webp", tiles.transpose(0, 2, 1, 3, 4).reshape(128, 160, 3), lossless=True)
    np.save(folder / "labels.npy", LABELS.astype(np.uint8))


def image_files(folder, parts=True):
    for at, pixels in enumerate(IMAGES):
        part = ("train/" if at < 5 * EACH else "test/") if parts else ""
        number = at - 5 * EACH if parts and at >= 5 * EACH else at
        save(folder / f"{part}{CLASSES[LABELS[at]]}/{number}.png", pixels)


def archive(path, files, folder="cifar-10-batches-py"):
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as held:
        held.add(files, folder)


FORMS = {
    "python folder": lambda root: python_files(root / "cifar-10-batches-py"),
    "python folder, newer": lambda root: python_files(root / "cifar-10-batches-py", protocol=4),
    "python folder, as published": lambda root: old_python_files(root / "cifar-10-batches-py"),
    "python folder itself": lambda root: python_files(root),
    "python archive": lambda root: (
        old_python_files(root.parent / "unpacked"),
        archive(root / "cifar-10-python.tar.gz", root.parent / "unpacked"),
    ),
    "binary folder": lambda root: binary_files(root / "cifar-10-batches-bin"),
    "binary archive": lambda root: (
        binary_files(root.parent / "unpacked"),
        archive(root / "cifar-10-binary.tar.gz", root.parent / "unpacked", "cifar-10-batches-bin"),
    ),
    "sheets": sheets,
    "image files": image_files,
    "image files, one part": lambda root: image_files(root, parts=False),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_images_labels_and_order(tmp_path, form):
    FORMS[form](tmp_path / "root")
    dataset = open_source("cifar10", root=tmp_path / "root")
    assert np.array_equal(np.stack(list(dataset.__getitems__(range(len(dataset))))), IMAGES)
    assert [dataset.labels.names_of(int(i))[0] for i in dataset.labels.ids] == [CLASSES[label] for label in LABELS]
    assert dataset.classes == dataset.labels.names == CLASSES
    assert dataset.name == "cifar10"
    assert len(set(dataset.keys)) == len(IMAGES)
    if form != "image files, one part":
        assert dataset.test_from == 5 * EACH
        assert dataset.keys[5 * EACH].startswith("test/")


def test_the_archive_and_the_folder_open_by_their_paths(tmp_path):
    python_files(tmp_path / "cifar-10-batches-py")
    archive(tmp_path / "anything.tar.gz", tmp_path / "cifar-10-batches-py")
    for path in ("cifar-10-batches-py", "anything.tar.gz"):
        assert len(open_source(tmp_path / path)) == len(IMAGES)


class Harm:
    def __reduce__(self):
        return exec, ("raise SystemExit('run')",)


@pytest.mark.parametrize("protocol", [2, 4])
def test_a_pickle_that_calls_anything_is_refused_and_not_run(tmp_path, protocol):
    with pytest.raises(InputError, match="never needs: refused, not run"):
        read_batch(pickle.dumps({b"data": Harm()}, protocol=protocol), "data_batch_1")


@pytest.mark.parametrize("held", [b"", b"text", b"\x80\x02}q\x01", b"\x80\x02]q\x01.", pickle.dumps(object(), 4), b"."])
def test_bytes_that_are_no_batch_are_refused(held):
    with pytest.raises(InputError, match="data_batch_1"):
        read_batch(held, "data_batch_1")


@given(st.binary(max_size=60))
def test_any_bytes_are_a_batch_or_an_input_error(body):
    with contextlib.suppress(InputError):
        assert isinstance(read_batch(body, "data_batch_1"), dict)


@given(
    st.dictionaries(st.sampled_from([b"labels", b"filenames", b"batch_label"]), st.lists(st.integers(0, 10**12))),
    st.sampled_from([1, 2, 3, 4, 5]),
)
def test_plain_pickles_of_every_protocol_are_read_as_they_are(held, protocol):
    assert read_batch(pickle.dumps(held, protocol=protocol), "a") == {
        key.decode(): value for key, value in held.items()
    }


def test_an_array_that_is_not_of_bytes_is_refused():
    with pytest.raises(InputError, match="array of i8"):
        read_batch(pickle.dumps({b"data": np.arange(4)}, protocol=2), "data_batch_1")


def test_wrong_labels_short_files_and_missing_batches_are_reported(tmp_path):
    folder = tmp_path / "cifar-10-batches-bin"
    binary_files(folder)
    whole = (folder / "test_batch.bin").read_bytes()
    (folder / "test_batch.bin").write_bytes(b"\x0a" + whole[1:])
    with pytest.raises(InputError, match="the label 10, but 10 classes"):
        open_cifar10(tmp_path)
    (folder / "test_batch.bin").write_bytes(whole[:-1])
    with pytest.raises(InputError, match="no multiple of 3,073"):
        open_cifar10(tmp_path)
    (folder / "test_batch.bin").unlink()
    with pytest.raises(FolderError, match="all six batches"):
        open_cifar10(tmp_path)
    for missing in (tmp_path / "nowhere", tmp_path / "empty"):
        with pytest.raises(FolderError, match="adsh data get cifar10"):
            open_cifar10(missing)
        (tmp_path / "empty").mkdir(exist_ok=True)
    python_files(tmp_path / "few")
    planes, labels = batch(0)
    (tmp_path / "few" / "data_batch_1").write_bytes(pickle.dumps({"data": planes, "labels": labels[:-1]}, 2))
    with pytest.raises(InputError, match="20 images and 19 labels"):
        open_cifar10(tmp_path / "few")
    (tmp_path / "few" / "data_batch_1").write_bytes(pickle.dumps({"data": planes[:, :9], "labels": labels}, 2))
    with pytest.raises(InputError, match="3,072 columns"):
        open_cifar10(tmp_path / "few")


def odd_archive(path, member):
    with tarfile.open(path, "w:gz") as held:
        held.addfile(member, io.BytesIO(b"x" * member.size))


@pytest.mark.parametrize("name", ["../data_batch_1", "a/../../b", "/etc/data_batch_1", "..\\data_batch_1"])
def test_an_archive_whose_members_lead_out_of_it_is_refused(tmp_path, name):
    member = tarfile.TarInfo(name)
    member.size = 1
    odd_archive(tmp_path / "a.tar.gz", member)
    with pytest.raises(InputError, match="outside of it: refused"):
        open_source(tmp_path / "a.tar.gz")


def test_links_cut_archives_and_other_archives_are_refused(tmp_path):
    link = tarfile.TarInfo("data_batch_1")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    odd_archive(tmp_path / "link.tar.gz", link)
    with pytest.raises(InputError, match="link or device"):
        open_source(tmp_path / "link.tar.gz")
    odd_archive(tmp_path / "other.tar.gz", tarfile.TarInfo("readme"))
    with pytest.raises(InputError, match="lacks data_batch_1"):
        open_source(tmp_path / "other.tar.gz")
    python_files(tmp_path / "py")
    archive(tmp_path / "whole.tar.gz", tmp_path / "py")
    held = (tmp_path / "whole.tar.gz").read_bytes()
    (tmp_path / "cut.tar.gz").write_bytes(held[: len(held) // 2])
    with pytest.raises(FolderError, match="is broken or incomplete"):
        open_source(tmp_path / "cut.tar.gz")
    (tmp_path / "text.tar.gz").write_text("no archive")
    with pytest.raises(FolderError, match="is broken or incomplete"):
        open_source(tmp_path / "text.tar.gz")
