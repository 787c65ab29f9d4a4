"""Two trainings into one folder: the second is refused, and a killed one locks nothing."""

import os
import time

from .conftest import process


def train(out, *more):
    return ("train", "blobs.npz", "--bits", 12, "--outer", 60, "--checkpoint-every", 1, "--out", out, *more)


def started(folder, *arguments):
    run, log = process(*arguments, folder=folder), folder / "model/log.jsonl"
    until = time.monotonic() + 60
    while not log.exists():
        assert run.poll() is None
        assert time.monotonic() < until
        time.sleep(0.005)
    return run


def test_a_second_run_into_the_same_folder_is_refused_in_one_line(refused, blob_file):
    folder = blob_file.parent
    first = started(folder, *train("model"))
    os.kill(first.pid, 19)  # stopped: it cannot end before the others are refused
    for more in (["--overwrite"], ["--resume"], []):
        said = refused(*train("model", *more))
        assert "another adsh train is writing to model" in said
        assert len(said.strip().splitlines()) == 1
    os.kill(first.pid, 18)
    first.communicate()
    assert first.returncode == 0
    assert not (folder / ".model.lock").exists()


def test_a_killed_run_does_not_lock_its_folder(adsh, blob_file):
    folder = blob_file.parent
    first = started(folder, *train("model"))
    first.kill()
    first.communicate()
    assert (folder / ".model.lock").exists()
    assert adsh(*train("model", "--resume")).status == 0
    assert not (folder / ".model.lock").exists()
