"""Records what today's code does, and says what other code does otherwise.

    python -m tools.golden record tests/golden/digests.json    twice over, some minutes
    python -m tools.golden compare tests/golden/digests.json
    python -m tools.golden contract tests/golden/contract.json
    python -m tools.golden written tests/golden/written

Whatever `import adsh` finds is what is run: set PYTHONPATH to the src of another tree to take that one.
The runs are made in adsh-golden below the folder for temporary files, which is to be the one of the record, /tmp.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import gettempdir
from typing import Any

os.environ["OMP_NUM_THREADS"], os.environ["OMP_WAIT_POLICY"] = "1", "passive"

ROOT = Path(__file__).parents[2]
_SHOWN = 50  # lines of a group
_NUMBERS = ("numbers", "files")  # hang on the machine's floating point


def machine() -> dict[str, str]:
    """What bytes of floating point hang on."""
    import numpy
    import torch

    about = Path("/proc/cpuinfo")
    lines = about.read_text(encoding="utf-8").splitlines() if about.exists() else []
    cpu = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")
    capability = torch.backends.cpu.get_cpu_capability()
    return {"cpu": cpu, "capability": capability, "torch": str(torch.__version__), "numpy": numpy.__version__}


@contextmanager
def _folder() -> Iterator[Path]:
    """The same folder for every run, as paths get into checksums and lengths; one run at a time has it."""
    here = Path(gettempdir()).resolve() / "adsh-golden"
    with here.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        shutil.rmtree(here, ignore_errors=True)
        here.mkdir()
        try:
            yield here
        finally:
            shutil.rmtree(here, ignore_errors=True)


def run(only: str = "", quick: bool = False, strict: bool = False) -> dict[str, Any]:
    """Every run once; `quick` leaves out the command line, and `strict` stops at the first that fails."""
    from .cases import run_cases
    from .commands import run_commands

    with _folder() as here:
        cases, line = here / "cases", here / "line"
        cases.mkdir()
        line.mkdir()
        found = run_cases(cases, only, strict)
        summary: dict[str, Any] = {
            group: {name: case[group] for name, case in found.items()} for group in ("codes", "numbers", "files")
        }
        if not quick:
            ran = run_commands(line, only, strict)
            summary["files"] |= ran.pop("files")
            summary |= ran
        return json.loads(json.dumps(summary))


def main() -> int:
    """The command line of this tool."""
    parser = argparse.ArgumentParser(prog="python -m tools.golden", description="What must not change.")
    parser.add_argument("what", choices=("record", "compare", "contract", "written"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="cases and commands whose name holds this")
    parser.add_argument("--quick", action="store_true", help="compare all but the command line, in half a minute")
    given = parser.parse_args()
    if given.what == "written":
        from .written import write_all

        write_all(given.file)
        return 0
    if given.what == "contract":
        from .contract import collect

        _write(given.file, collect(ROOT))
        return 0
    return _record(given.file) if given.what == "record" else _compare(given.file, given.only, given.quick)


def _record(file: Path) -> int:
    from .differences import settled, unsettled

    record = settled(run(strict=True), run(strict=True))
    for line in unsettled({name: of for name, of in record.items() if name != "json"}):
        print(f"varies, and is not compared:{line}")
    _write(file, {"machine": machine(), **record})
    return 0


def _compare(file: Path, only: str, quick: bool) -> int:
    import adsh

    from .differences import differences

    before = json.loads(file.read_text(encoding="utf-8"))
    there = before.pop("machine")
    elsewhere = differences(there, machine(), "machine")
    if quick:
        names = set(before["codes"])
        before = {group: {name: of for name, of in cases.items() if name in names} for group, cases in before.items()}
    if only:
        before = {group: {name: of for name, of in cases.items() if only in name} for group, cases in before.items()}
        before["refusals"] = {}  # they come after everything else
    print(f"comparing {Path(adsh.__file__).parent} with {file}")
    started = time.perf_counter()
    now, wrong = run(only, quick), 0
    for group, cases in before.items():
        if not cases:
            continue
        found = differences(cases, now.get(group, {}))
        wrong += len(found)
        print(f"{group}: {'equal' if not found else f'{len(found)} differ'} ({len(cases)} cases)")
        for line in found[:_SHOWN]:
            print(f"  {line}")
        if len(found) > _SHOWN:
            print(f"  and {len(found) - _SHOWN} more")
    if elsewhere:
        print(
            f"this is another machine ({'; '.join(elsewhere)}): {' and '.join(_NUMBERS)} may differ by rounding there"
        )
    print(
        f"{'everything is as it was' if not wrong else f'{wrong} differences'}; {time.perf_counter() - started:.0f} s"
    )
    return min(wrong, 1)


def _write(file: Path, content: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
