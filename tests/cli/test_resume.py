"""Runs that survive anything: killed, out of disk, damaged, and resumed to the same bytes."""

from __future__ import annotations

import errno
import json
import os
import random
import time
from pathlib import Path

import numpy as np
import pytest

from .conftest import process

WHAT_COUNTS = ("model.safetensors", "codes.safetensors", "row_numbers.npy")


def train(out: str, outer: int = 6, *more: object) -> tuple[object, ...]:
    return ("train", "blobs.npz", "--bits", 12, "--outer", outer, "--checkpoint-every", 1, "--out", out, *more)


def same_bytes(one: Path, other: Path) -> bool:
    return all((one / name).read_bytes() == (other / name).read_bytes() for name in WHAT_COUNTS)


def checkpoints(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "checkpoints").iterdir())


def line_count(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


@pytest.mark.parametrize("times", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_a_run_killed_at_random_moments_ends_with_the_same_bytes(adsh, blob_file, times):
    folder, outer = blob_file.parent, 40 * times  # more than all the killed runs together log, on any machine
    assert adsh(*train("whole", outer)).status == 0
    rng, log = random.Random(0), folder / "killed/log.jsonl"
    for kill in range(times):
        before = line_count(log)
        run = process(*train("killed", outer, "--resume"), folder=folder)
        lines_expected, deadline = before + rng.randrange(1, 20), time.monotonic() + 60
        moment = deadline if kill % 4 else time.monotonic() + rng.uniform(0, 1)  # every fourth, the start included
        while line_count(log) < lines_expected and time.monotonic() < moment:
            assert run.poll() is None
            time.sleep(0.002)
        assert time.monotonic() < deadline
        run.kill()
        run.communicate()
        assert run.returncode == -9
    assert adsh(*train("killed", outer, "--resume")).status == 0
    assert same_bytes(folder / "whole", folder / "killed")
    lines = (folder / "killed/log.jsonl").read_text().splitlines()
    assert all(json.loads(line) for line in lines)


def test_the_last_two_checkpoints_are_kept(adsh, blob_file):
    adsh(*train("model"))
    assert checkpoints(blob_file.parent / "model") == [f"checkpoint-00000{i}.safetensors" for i in (5, 6)]
    adsh("train", "blobs.npz", "--outer", 6, "--checkpoint-every", 4, "--out", "sparse")
    assert checkpoints(blob_file.parent / "sparse") == ["checkpoint-000004.safetensors"]


@pytest.fixture
def stopped(adsh, blob_file, monkeypatch):
    """A run of six outer iterations that stopped after the fourth, before its checkpoint; `whole` ran through."""
    from adsh.runs.run_dir import RunFolder

    adsh(*train("whole"))
    log = RunFolder.log

    def stop(self, event, **values):
        log(self, event, **values)
        if values.get("outer") == 4:
            raise OSError(errno.EIO, "pulled the plug")

    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "log", stop)
        assert adsh(*train("model")).status == 1
    return blob_file.parent / "model"


def test_resuming_needs_the_folder_alone(adsh, stopped):
    assert adsh("train", "--resume", "--out", "model").status == 0
    assert same_bytes(stopped, stopped.parent / "whole")
    events = [json.loads(line) for line in (stopped / "log.jsonl").read_text().splitlines()]
    assert [e.get("outer") or e["event"] for e in events] == [
        "read",
        "start",
        1,
        2,
        3,
        "read",
        "resume",
        4,
        5,
        6,
        "saved",
    ]
    assert events[6]["done"] == 3


def test_resuming_a_finished_run_says_so_and_changes_nothing(adsh, refused, stopped):
    adsh("train", "--resume", "--out", "model")
    before = (stopped / "model.safetensors").stat().st_mtime_ns
    assert adsh("train", "--resume", "--out", "model", "--json").json["already_finished"]
    assert (stopped / "model.safetensors").stat().st_mtime_ns == before
    output = adsh("train", "--resume", "--out", "model", "--index").out
    items = adsh("index", "info", "model/index", "--json").json["items"]
    assert f"model/index: {items} items\n" in output
    assert f"model/index: {items} items, indexed before" in adsh("train", "--resume", "--out", "model", "--index").out
    assert "bits 12, not 16" in refused("train", "--resume", "--out", "model", "--bits", 16)


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--seed", 1], "seed 1, not 0"),
        (["--bits", 16], "bits 16, not 12"),
        (["--lr", 0.5], "lr 0.5, not 0.003"),
        (["--split-seed", 1], "labels of items differ"),
        (["--protocol", "all"], "number of items 300, not 270"),
    ],
)
def test_another_configuration_or_other_data_are_refused_by_name(refused, stopped, flags, said):
    before = (stopped / "run.toml").read_bytes()
    assert said in refused("train", "--resume", "--out", "model", *flags)
    assert (stopped / "run.toml").read_bytes() == before


def test_an_unfinished_run_is_not_started_over_unasked(adsh, refused, stopped):
    assert "--resume" in refused(*train("model"))
    assert adsh(*train("model", 6, "--overwrite")).status == 0
    assert same_bytes(stopped, stopped.parent / "whole")


@pytest.mark.parametrize("damage", ["cut", "flipped", "empty"])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(adsh, stopped, damage):
    newest = stopped / "checkpoints" / checkpoints(stopped)[-1]
    content = bytearray(newest.read_bytes())
    if damage == "flipped":
        content[-5] ^= 1
    newest.write_bytes({"cut": content[:-100], "flipped": content, "empty": b""}[damage])
    assert adsh("train", "--resume", "--out", "model").status == 0
    assert same_bytes(stopped, stopped.parent / "whole")


def test_when_no_checkpoint_is_whole_it_is_said(refused, stopped):
    for path in (stopped / "checkpoints").iterdir():
        path.write_bytes(b"?")
    assert "every checkpoint in model/checkpoints is damaged" in refused("train", "--resume", "--out", "model")


def test_a_full_disk_leaves_the_checkpoint_before(adsh, refused, blob_file, monkeypatch):
    adsh(*train("whole"))
    sync, model = os.fsync, blob_file.parent / "model"

    def full(handle):
        if "checkpoint-000004" in os.readlink(f"/proc/self/fd/{handle}"):
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        assert "no space is left on the disk" in refused(*train("model"))
    assert checkpoints(model) == ["checkpoint-000002.safetensors", "checkpoint-000003.safetensors"]
    assert adsh("train", "--resume", "--out", "model").status == 0
    assert same_bytes(model, blob_file.parent / "whole")


def test_too_little_space_is_reported_before_training(refused, blob_file, monkeypatch):
    import shutil

    usage = shutil.disk_usage(blob_file.parent)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=2000))
    assert "not enough space" in refused(*train("model"))
    assert not (blob_file.parent / "model").exists()


def test_a_crash_while_the_model_takes_its_place_is_mended(adsh, stopped):
    stopped.rename(stopped.parent / ".model.previous")  # as between the two renames of a save
    assert adsh(*train("model", 6, "--resume")).status == 0
    assert same_bytes(stopped, stopped.parent / "whole")
    assert not (stopped.parent / ".model.previous").exists()


def test_averaged_weights_and_augmented_images_resume_to_the_same_bytes(tmp_path):
    import adsh as package
    from adsh.data import open_source

    digits = open_source("digits").subset(range(300))
    settings = {"network": "tiny", "outer": 5, "recipe": {"ema": 0.95, "flip": True, "shift": 0.2, "mirror": True}}
    whole = package.ADSH(12, **settings).fit(digits)

    def stop(record):
        if record["outer"] == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        package.ADSH(12, **settings).fit(digits, checkpoints=tmp_path, callback=stop)
    resumed = package.ADSH(12, **settings).fit(digits, checkpoints=tmp_path, resume=True)
    assert (resumed.outputs(digits) == whole.outputs(digits)).all()
    assert (resumed.database_codes_ == whole.database_codes_).all()


def test_a_stopped_overwrite_goes_on_as_the_new_run_and_not_as_the_old_model(adsh, stopped):
    adsh("train", "--resume", "--out", "model")
    old = (stopped / "model.safetensors").read_bytes()
    stopped_again = {"outer": 0}
    from adsh.runs.run_dir import RunFolder

    log = RunFolder.log

    def stop(self, event, **values):
        log(self, event, **values)
        if values.get("outer") == 3 and not stopped_again["outer"]:
            stopped_again["outer"] = 3
            raise OSError(errno.EIO, "pulled the plug")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RunFolder, "log", stop)
        assert adsh(*train("model", 6, "--seed", 9, "--overwrite")).status == 1
    assert (stopped / "model.safetensors").read_bytes() == old  # until the new one takes its place
    ended = adsh("train", "--resume", "--out", "model", "--json")
    assert not ended.json["already_finished"]
    adsh(*train("fresh", 6, "--seed", 9))
    assert same_bytes(stopped, stopped.parent / "fresh")


def test_nothing_is_forgotten_for_a_run_that_cannot_start(refused, stopped):
    before = checkpoints(stopped)
    assert "gamma" in refused(*train("model", 6, "--gamma", -1, "--overwrite"))
    assert checkpoints(stopped) == before
    assert (stopped / "log.jsonl").exists()


def test_a_crash_while_the_model_takes_its_place_needs_the_folder_alone(adsh, stopped):
    stopped.rename(stopped.parent / ".model.previous")
    assert adsh("train", "--resume", "--out", "model").status == 0
    assert same_bytes(stopped, stopped.parent / "whole")


@pytest.mark.parametrize("mapped", [False, True])
def test_any_changed_item_is_seen_on_resume(adsh, refused, stopped, blob_file, mapped):
    with np.load(blob_file) as held:
        arrays = dict(held)
    if mapped:  # an .npy is memory-mapped
        np.save(blob_file.with_suffix(".npy"), arrays["features"])
        np.save(blob_file.with_name("blobs.labels.npy"), arrays["labels"])
        assert adsh("train", "blobs.npy", "--outer", 2, "--checkpoint-every", 1, "--out", "m").status == 0
        arrays["features"][7, 3] += 1
        np.save(blob_file.with_suffix(".npy"), arrays["features"])
        assert "items differ" in refused("train", "--resume", "--out", "m")
        return
    arrays["features"][7, 3] += 1
    np.savez(blob_file, **arrays)
    assert "items differ" in refused("train", "--resume", "--out", "model")
