"""Coverage-guided fuzzing of every parser: images, bodies, lists, arrays, models, index files and filters.

Each parser runs in a process of its own under atheris (pip install 'adsh[attack]'). An input may be refused by an error
of adsh, in one line; a traceback, a crash, a hang of 30 s or 2 GiB of memory is a finding, whose input is kept.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from ._parsers import PARSERS
from ._settings import Settings

_ROOT = Path(__file__).resolve().parents[2]
_FINDINGS = _ROOT / "fuzz-findings"  # not in git
_SLOW = {"config.json": 5, "row numbers": 5, "index file": 20, "npz": 3, "npz member": 2}  # get a part of the runs


def run(settings: Settings) -> dict[str, Any]:
    """Fuzz each parser for its share of the runs and of the time."""
    if importlib.util.find_spec("atheris") is None:
        return {"held": False, "error": "atheris is not installed: pip install -e '.[attack]'"}
    shares = {name: 1 / _SLOW.get(name, 1) for name in PARSERS}
    runs = {name: max(100, round(settings.count * share / sum(shares.values()))) for name, share in shares.items()}
    workers = max(1, (os.cpu_count() or 1))
    seconds = settings.seconds * workers / len(PARSERS)
    with ThreadPoolExecutor(workers) as pool:
        jobs = {name: pool.submit(_fuzz, name, runs[name], seconds, settings) for name in PARSERS}
        figures = {name: job.result() for name, job in jobs.items()}
    findings = [name for name, one in figures.items() if one["finding"]]
    return {
        "held": not findings,
        "inputs": sum(one["inputs"] for one in figures.values()),
        "findings": findings,
        "parsers": figures,
    }


def _fuzz(name: str, runs: int, seconds: float, settings: Settings) -> dict[str, Any]:
    folder = settings.folder / name.replace(" ", "-")
    folder.mkdir()
    options = [
        f"-runs={runs}", f"-max_total_time={max(1, round(seconds))}", f"-seed={settings.seed + 1}", "-max_len=4096",
        "-timeout=30", "-rss_limit_mb=2048", f"-artifact_prefix={folder}/", "-print_final_stats=1", "-verbosity=1",
    ]  # fmt: skip
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "tools.attack._fuzz", name, str(folder), *options],
        cwd=_ROOT, capture_output=True, text=True, errors="replace", check=False,
    )  # fmt: skip
    executed = re.findall(r"number_of_executed_units:\s*(\d+)|^#(\d+)", done.stderr, re.MULTILINE)
    finding = ""
    if done.returncode:
        finding = _kept(name, folder, done.stderr)
    coverage = re.findall(r"cov: (\d+)", done.stderr)
    return {
        "inputs": max((int(one or other) for one, other in executed), default=0),
        "coverage": int(coverage[-1]) if coverage else 0,
        "seconds": round(time.monotonic() - started, 1),
        "finding": finding,
    }


def _kept(name: str, folder: Path, said: str) -> str:
    """Keep the input that was found, and return the last line of its traceback."""
    _FINDINGS.mkdir(exist_ok=True)
    for path in folder.glob("*-*"):
        if path.is_file():
            shutil.copy(path, _FINDINGS / f"{name.replace(' ', '-')}-{path.name}")
    (_FINDINGS / f"{name.replace(' ', '-')}.log").write_text(said, encoding="utf-8")
    lines = [line for line in said.splitlines() if re.match(r"\s*[\w.]*(Error|Exception|Interrupt)\b", line)]
    return lines[-1].strip()[:300] if lines else (said.strip().splitlines() or ["no output"])[-1][:300]
