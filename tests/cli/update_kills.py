"""Kill `adsh update` and corrections at any moment: nothing is lost, and every answer is the old or the new one."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import adsh
from adsh.index import open_index
from adsh.index.corrections import Corrections
from adsh.models.fingerprint import identify
from adsh.runs.database import RunItems
from adsh.runs.update_record import read_updates

CENTRES = 4 * np.random.default_rng(0).standard_normal((6, 12))
CORRECTING = """
import sys
import adsh
from adsh.index.corrections import Corrections
with adsh.open_index(sys.argv[1]) as index:
    kept = Corrections(index, lambda labels: bytes(2))
    for number in range(int(sys.argv[2]), int(sys.argv[2]) + 100000):
        made = kept.add({f"old-{number % 120}": [f"right {number}"], f"old-{number % 120 + 1}": [f"right {number}"]})
        print(made.number, number, flush=True)
"""


class Run:
    """A small run with its index, which is copied for each kill."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.whole = folder, folder / "whole"
        self._write("old.npz", ["c0", "c1", "c2", "c3"], 1, "old")
        self._write("new.npz", ["c4", "c5"], 2, "new")
        self.adsh(
            "train", "old.npz", "--bits", 16, "--outer", 6, "--out", "whole", "--no-report", "--index", "--protocol",
            "all",
        )  # fmt: skip
        self.old = self.contents(self.whole)
        shutil.copytree(self.whole, folder / "updated")
        started = time.monotonic()
        self.adsh("update", "updated", "new.npz", "--outer", 4)
        self.seconds = time.monotonic() - started
        self.new = self.contents(folder / "updated")
        self.fingerprints = [identify(folder / name).fingerprint for name in ("whole", "updated")]

    def adsh(self, *arguments: Any, check: bool = True) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, "-m", "adsh", *map(str, arguments)],
            cwd=self.folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert not check or done.returncode == 0, done.stderr
        return done

    def contents(self, run: Path) -> dict[str, tuple[bytes, Any]]:
        """The code and metadata of each item in the index of a run."""
        with open_index(run / "index") as index:
            return {item.key: (item.code, (item.metadata or {}).get("class")) for item in index.items()}

    def kill_update(self, rng: random.Random) -> str:
        """Kill an update after some of its time, check what is there, and complete it; say what was there."""
        run = self.folder / "killed"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(self.whole, run)
        process = subprocess.Popen(
            [sys.executable, "-m", "adsh", "update", "killed", "new.npz", "--outer", "4"],
            cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        if rng.random() < 0.5:
            time.sleep(rng.uniform(0.4, 1.05) * self.seconds)
        else:  # around the moment in which the model is replaced, and while the index follows
            last, until = run / "updating" / "checkpoints" / "checkpoint-000004.safetensors", time.monotonic() + 60
            while not last.exists() and process.poll() is None and time.monotonic() < until:
                time.sleep(0.002)
            time.sleep(rng.uniform(0.0, 0.4))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        found = self._check(run)
        resumed = self.adsh("update", "--resume", "killed", check=False)
        if resumed.returncode and "no unfinished update" in resumed.stderr and found != "new":
            self.adsh("update", "killed", "new.npz", "--outer", 4)  # it was killed before it had begun
        else:
            assert resumed.returncode == 0 or found == "new", resumed.stderr
        assert identify(run).fingerprint == self.fingerprints[1]
        assert self.contents(run) == self.new
        assert len(read_updates(run)) == 1
        return found

    def _check(self, run: Path) -> str:
        """Return whether the model is old or new, once it is whole and all that the index answers is of one of them."""
        model = adsh.load(run)
        which = self.fingerprints.index(identify(run).fingerprint)
        count = (len(self.old), len(self.new))[which]
        assert len(model.database_codes_) == count
        assert len(RunItems.load(run)) == count
        index = self.folder / "killed" / "index"
        if not index.exists():  # between the two renames
            index = self.folder / ".killed.previous" / "index"
        with open_index(index) as opened:
            assert opened.verify() == []
            assert opened.model in self.fingerprints[: which + 1]
            there = {item.key: (item.code, (item.metadata or {}).get("class")) for item in opened.items()}
        for key, value in there.items():
            assert value in (self.old.get(key), self.new.get(key)), key
        assert there.keys() >= self.old.keys()
        return ("old", "new")[which]

    def kill_corrections(self, rng: random.Random, first: int = 0) -> int:
        """Kill a process that makes corrections; return how many it had reported, all of which must be there."""
        run = self.folder / "corrected"
        shutil.rmtree(run, ignore_errors=True)
        shutil.copytree(self.whole / "index", run)
        process = subprocess.Popen(
            [sys.executable, "-c", CORRECTING, str(run), str(first)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        process.stdout.readline()  # it works
        time.sleep(rng.uniform(0.0, 0.3))
        process.kill()
        reported = [line.split() for line in process.stdout.read().splitlines() if line.count(" ") == 1]
        process.wait()
        process.stdout.close()
        with open_index(run) as index:
            assert index.verify() == []
            kept = {each.number: each for each in Corrections(index).open()}
            assert set(kept) >= {int(number) for number, _ in reported}
            last = kept[max(kept)]
            for each in kept.values():  # of one correction, all items were changed or none
                labels = [(index.get([item.key])[0].metadata or {}).get("class") for item in each.items]  # type: ignore[union-attr]  # they exist
                changed = [label == item.labels[0] for label, item in zip(labels, each.items, strict=True)]
                assert each is not last or len(set(changed)) == 1
        return len(reported)

    def _write(self, name: str, classes: list[str], seed: int, prefix: str) -> None:
        labels = np.repeat(np.array(classes), 40)
        noise = np.random.default_rng(seed).standard_normal((len(labels), 12))
        features = (CENTRES[[int(label[1:]) for label in labels]] + noise).astype(np.float32)
        np.savez(
            self.folder / name, features=features, labels=labels, keys=[f"{prefix}-{i}" for i in range(len(labels))]
        )
