"""Where a benchmark's figures go: results/benchmarks/NAME.json, with what they were measured on."""

from __future__ import annotations

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def write(name: str, figures: Any, packages: tuple[str, ...] = ("numpy", "torch")) -> Path:
    """Writes the figures beside the commit, the versions and the machine."""
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False)
    changed = subprocess.run([*git, "status", "--porcelain", "src"], capture_output=True, text=True, check=False)
    path = ROOT / "results" / "benchmarks" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "commit": commit.stdout.strip() + ("+changes" if changed.stdout.strip() else ""),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": {package: version(package) for package in packages},
        "figures": figures,
    }
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path


def peak_bytes() -> int:
    """The most memory this process has held: of it alone, where ru_maxrss would start at its parent's."""
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
