"""The real entry point, in this process where speed matters and in one of its own where the process does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adsh.cli import main

from .. import forked


@dataclass(frozen=True)
class Ended:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def adsh(monkeypatch, capsys, tmp_path):
    """adsh("train", "digits", …) as typed in an empty folder."""
    monkeypatch.chdir(tmp_path)
    before, shown = signal.getsignal(signal.SIGTERM), warnings.showwarning

    def run(*arguments: object) -> Ended:
        monkeypatch.setattr(sys, "argv", ["adsh", *map(str, arguments)])
        capsys.readouterr()
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            with pytest.raises(SystemExit) as ended:
                main()
        out, err = capsys.readouterr()
        return Ended(int(ended.value.code or 0), out, err)

    yield run
    signal.signal(signal.SIGTERM, before)
    warnings.showwarning = shown


@pytest.fixture
def refused(adsh):
    """adsh(…) that must end with this status, and one line, which is given back."""

    def run(*arguments: object, status: int = 2) -> str:
        ended = adsh(*arguments)
        assert ended.status == status, (ended.out, ended.err)
        assert ended.out == ""
        assert ended.err.count("\n") == 1
        assert ended.err.startswith("adsh: ")
        assert "Traceback" not in ended.err
        return ended.err

    return run


def process(*arguments: object, folder: Path, start: Any = forked.Popen, **options: Any) -> subprocess.Popen[str]:
    """adsh in a process of its own, which Ctrl-C stops even where these tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored there, and by children too
    try:
        return start(
            [sys.executable, "-m", "adsh", *map(str, arguments)],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}, **options,
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.fixture
def blob_file(tmp_path, blobs) -> Path:
    """The blobs as an .npz of features and labels."""
    features, labels = blobs
    np.savez(tmp_path / "blobs.npz", features=features.astype(np.float32), labels=labels)
    return tmp_path / "blobs.npz"
