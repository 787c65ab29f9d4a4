"""One reading gives images of one size, the list of bad files, and digests, wherever the images are kept."""

import json
import subprocess
import sys
import threading

import numpy as np
import pytest

import adsh
from adsh.data import ArrayDataset, ResizedDataset, as_items, check_overlap, digests, open_source, prepare, split
from adsh.data.cache_limits import free_memory, memory_limit, parse_bytes
from adsh.data.fingerprint import fingerprint
from adsh.data.images import cache
from adsh.errors import FolderError, InputError

from .image_cases import random_images, save

BAD = ["a/06.png", "b/11.png"]


@pytest.fixture
def folder(tmp_path):
    for at in range(40):
        save(tmp_path / "in" / "ab"[at % 2] / f"{at:02}.png", random_images(1, 16 + at % 7, 24, seed=at)[0])
    return tmp_path / "in"


@pytest.fixture
def spoiled(folder):
    for name in BAD:
        (folder / name).write_bytes((folder / name).read_bytes()[:200])
    return folder


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("where", ["ram", "none", "a folder"])
def test_images_and_digests_are_the_same_wherever_they_are_kept(folder, tmp_path, where, workers):
    dataset, seen = open_source(folder), []
    kept = str(tmp_path / "cache") if where == "a folder" else where
    prepared = prepare(dataset, 16, cache=kept, workers=workers, progress=seen.append)
    assert np.array_equal(np.stack(list(prepared.dataset)), np.stack(list(ResizedDataset(dataset, 16))))
    assert np.array_equal(prepared.digests, digests(dataset))
    assert (prepared.dataset.keys, prepared.dataset.labels) == (dataset.keys, dataset.labels)
    assert (prepared.dataset.classes, seen[-1], prepared.bad) == (("a", "b"), 40, [])
    assert prepared.usable() is prepared.dataset
    items = as_items(prepared.dataset)
    assert (items.is_array, items.in_memory) == {"ram": (True, True), "none": (False, False)}.get(where, (True, False))
    assert fingerprint(items, dataset.labels) == fingerprint(as_items(ResizedDataset(dataset, 16)), dataset.labels)
    assert {"ram": "in memory", "none": "not kept, as asked"}.get(where, "on disk") in prepared.kept


def test_files_that_cannot_be_read_stop_it_with_all_of_them_or_are_left_out(spoiled):
    dataset = open_source(spoiled)
    with pytest.raises(InputError, match="2 of 40 items cannot be read: .*06.png.*11.png.*--skip-bad"):
        prepare(dataset, 16)
    prepared = prepare(dataset, 16, skip_bad=True)
    assert [key for key, _ in prepared.bad] == BAD
    assert (len(prepared.dataset), len(prepared.usable()), len(prepared.readable)) == (40, 38, 38)
    assert not set(BAD) & set(prepared.usable().keys)
    parts = split(dataset).only(prepared.readable)
    assert len(parts.queries) + len(parts.database) == 38
    assert check_overlap(prepared.dataset, parts, prepared.digests) == 0


def test_an_image_too_long_to_be_cut_is_one_that_cannot_be_read(folder):
    save(folder / "a/long.png", np.zeros((1, 60_000, 3), np.uint8))
    with pytest.raises(
        InputError, match="a/long.png: an image of in has 1 x 60,000 pixels, too long to be cropped to 64"
    ):
        prepare(open_source(folder), 64)
    assert len(prepare(open_source(folder), 64, skip_bad=True).usable()) == 40
    assert prepare(open_source(folder), 64, how="squash").bad == []


def test_a_cache_on_disk_is_reused_and_rebuilt_when_a_file_changes(spoiled, tmp_path, monkeypatch):
    dataset, kept = open_source(spoiled), str(tmp_path / "cache")
    first = prepare(dataset, 16, cache=kept, skip_bad=True)
    with monkeypatch.context() as hidden:
        hidden.setattr(type(dataset), "__getitem__", lambda *_: pytest.fail("a file was read again"))
        again = prepare(dataset, 16, cache=kept, skip_bad=True)
    assert "read before" in again.kept
    assert again.bad == first.bad
    assert np.array_equal(again.digests, first.digests)
    assert np.array_equal(again.dataset.items, first.dataset.items)
    save(spoiled / "a/00.png", random_images(1, seed=99)[0])
    changed = prepare(open_source(spoiled), 16, cache=kept, skip_bad=True)
    assert np.array_equal(changed.dataset[0], ResizedDataset(open_source(spoiled), 16)[0])
    for size, how in ((20, "crop"), (16, "squash")):
        other = prepare(dataset, size, how=how, cache=kept, skip_bad=True)
        assert np.array_equal(other.dataset[4], ResizedDataset(dataset, size, how)[4])
    assert len([path for path in (tmp_path / "cache").iterdir() if path.is_dir()]) == 4


def test_a_half_filled_cache_continues_from_its_last_progress(folder, tmp_path, monkeypatch):
    dataset, kept = open_source(folder), str(tmp_path / "cache")
    monkeypatch.setattr(cache, "_INTERVAL", 0.0)

    def stop(done):
        if done >= 32:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(dataset, 16, cache=kept, progress=stop, workers=0)
    (part,) = (path for path in (tmp_path / "cache").iterdir() if path.is_dir())
    assert (part.suffix, json.loads((part / "cache.json").read_text())["done"]) == (".part", 32)
    read, decoded = [], type(dataset).__getitem__
    monkeypatch.setattr(type(dataset), "__getitem__", lambda self, at: read.append(at) or decoded(self, at))
    prepared = prepare(dataset, 16, cache=kept, workers=0)
    assert (read, "going on" in prepared.kept) == (list(range(32, 40)), True)
    assert np.array_equal(prepared.dataset.items, np.stack(list(ResizedDataset(dataset, 16))))
    assert np.array_equal(prepared.digests, digests(dataset))


def test_a_stopped_reading_leaves_no_thread(folder):
    def stop(done):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prepare(open_source(folder), 16, progress=stop, workers=3)
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("adsh")]


def test_a_damaged_cache_is_rebuilt(folder, tmp_path):
    dataset, kept = open_source(folder), str(tmp_path / "cache")
    prepare(dataset, 16, cache=kept)
    (whole,) = (path for path in (tmp_path / "cache").iterdir() if path.is_dir())
    for name, held in (("cache.json", b"{"), ("images.npy", b"no array"), ("digests.npy", b"")):
        (whole / name).write_bytes(held)
        prepared = prepare(dataset, 16, cache=kept)
        assert "read before" not in prepared.kept
        assert np.array_equal(prepared.dataset.items, np.stack(list(ResizedDataset(dataset, 16))))


def test_a_cache_that_another_process_fills_is_refused(folder, tmp_path):
    name = cache.fingerprint_of_files(open_source(folder), 16, "crop", 16)
    (tmp_path / "cache").mkdir()
    held = "import fcntl, sys; f = open(sys.argv[1], 'wb'); fcntl.flock(f, 2); print('held', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", held, tmp_path / "cache" / f"{name}.lock"], stdin=-1, stdout=-1, text=True
    ) as other:
        other.stdout.readline()
        with pytest.raises(FolderError, match="is being filled by another run: wait"):
            prepare(open_source(folder), 16, cache=str(tmp_path / "cache"))
        other.communicate("\n")


def test_what_does_not_fit_is_not_kept_and_says_so(folder, tmp_path):
    dataset = open_source(folder)
    for where in ("ram", str(tmp_path / "cache")):
        prepared = prepare(dataset, 16, cache=where, cache_size="30KB")
        assert "not kept: 30.7 kB are needed and a cache may take 30.0 kB" in prepared.kept
        assert not as_items(prepared.dataset).is_array
    assert "in memory" in prepare(dataset, 16, cache_size="31KB").kept


def test_no_room_and_no_folder_are_reported_in_one_line(folder, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="is a file: give ram, disk, none or a folder"):
        prepare(open_source(folder), 16, cache=str(tmp_path / "file"))
    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(FolderError, match="No space left on device.: give another --cache"):
        prepare(open_source(folder), 16, cache=str(tmp_path / "cache"))


def test_arrays_are_taken_as_they_are_unless_another_size_is_requested(tmp_path):
    images = ArrayDataset(random_images(5, 16, 16), [0, 1, 0, 1, 0])
    assert prepare(images, None).dataset is prepare(images, 16).dataset is images
    assert prepare(images, 8).dataset.items.shape == (5, 8, 8, 3)
    assert "not on disk: only a source of files" in prepare(images, 8, cache=str(tmp_path / "cache")).kept
    features = ArrayDataset(np.zeros((3, 4)))
    assert len(prepare(features, None).digests) == len(features)  # copies are looked for there too
    with pytest.raises(InputError, match="only images have a size"):
        prepare(features, 8)


def test_sizes_of_a_cache_are_read():
    assert [parse_bytes(text) for text in ("8GB", "1.5 MiB", "12", 7, "2kb")] == [8 * 10**9, 3 << 19, 12, 7, 2000]
    for wrong in ("much", "8 apples", "-1GB", ""):
        with pytest.raises(InputError, match="such as 8GB"):
            parse_bytes(wrong)
    assert 0 < memory_limit(None) <= free_memory()


def test_codes_are_the_same_from_every_cache_and_no_thread_stays(folder, tmp_path):
    codes = []
    for where in ("ram", "none", str(tmp_path / "cache")):
        dataset = prepare(open_source(folder), 16, cache=where).dataset
        model = adsh.ADSH(8, network="tiny", outer=2, device="cpu").fit(dataset)
        codes.append((model.database_codes_.tobytes(), model.fingerprint_, model.encode(dataset).tobytes()))
    assert codes[0] == codes[1] == codes[2]
    assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("adsh")]
