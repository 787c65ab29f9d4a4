"""Run attacks, print what each found, and write the figures to a file."""

from __future__ import annotations

import argparse
import json
import pkgutil
import sys
import tempfile
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

import tools.attack

from ._settings import Settings

NAMES = sorted(module.name for module in pkgutil.iter_modules(tools.attack.__path__) if module.name[0] != "_")


def main() -> int:
    """Run the attacks that are named; return 1 if adsh did not hold against one."""
    parser = argparse.ArgumentParser(prog="python -m tools.attack", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"attacks: {', '.join(NAMES)}; all by default")
    parser.add_argument("--minutes", type=float, default=5.0, help="the most that one attack takes")
    parser.add_argument("--count", type=int, default=100_000, help="the most requests, kills or files of one attack")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="a JSON file for the figures")
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(NAMES))
    if unknown:
        parser.error(f"{unknown[0]} is no attack: choose from {', '.join(NAMES)}")
    results: dict[str, Any] = {}
    for name in given.names or NAMES:
        results[name] = _run(name, given)
        print(json.dumps({name: results[name]}, indent=1), flush=True)
        if given.out is not None:
            given.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    lost = [name for name, result in results.items() if not result["held"]]
    print(f"{len(results) - len(lost)} of {len(results)} attacks were held{': not ' if lost else ''}{', '.join(lost)}")
    return 1 if lost else 0


def _run(name: str, given: argparse.Namespace) -> dict[str, Any]:
    attack = import_module(f"tools.attack.{name}")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="adsh-attack-") as folder:
        settings = Settings(60 * given.minutes, given.count, given.seed, Path(folder))
        try:
            result: dict[str, Any] = attack.run(settings)
        except Exception:  # an attack that breaks is one that was not held
            result = {"held": False, "error": traceback.format_exc()}
    summary = (attack.__doc__ or "").splitlines()[0]
    return {"attack": summary, "seed": given.seed, "seconds": round(time.monotonic() - started, 1), **result}


if __name__ == "__main__":
    sys.exit(main())
