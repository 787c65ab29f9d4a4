"""Tries dist/ as people will: the wheel, then the source archive, each in an empty environment, away from the source.

    python .ci/try_dist.py              on this Python
    python .ci/try_dist.py --both       on the oldest and on the newest supported Python at hand

A first result from Python, a run of the command line, and the page of the service with every file it names.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from urllib.parse import urljoin
from urllib.request import urlopen

ROOT = Path(__file__).parents[1]
HERE = Path(__file__).parent


def supported() -> list[str]:
    """The Pythons that pyproject.toml names, oldest first."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["classifiers"]
    found = [one.rpartition(" ")[2] for one in told if re.fullmatch(r"Programming Language :: Python :: 3\.\d+", one)]
    return sorted(found, key=lambda one: int(one.partition(".")[2]))


def at_hand() -> dict[str, str]:
    """Those of them that this machine has, with the path of each."""
    found = {}
    for name in supported():
        places = [shutil.which(f"python{name}"), *map(str, Path.home().glob(f".pyenv/versions/{name}.*/bin/python"))]
        for place in filter(None, places):
            asked = subprocess.run([place, "-c", "import ensurepip"], capture_output=True)  # a shim may lead nowhere
            if asked.returncode == 0:
                found[name] = place
                break
    return found


def try_on(python: str) -> None:
    """Raises where something does not work on this Python."""
    started = time.monotonic()
    wheel, source = next((ROOT / "dist").glob("*.whl")), next((ROOT / "dist").glob("*.tar.gz"))
    with tempfile.TemporaryDirectory(prefix="adsh-dist-") as scratch:
        run([python, "-m", "venv", "env"], scratch)
        program = f"{scratch}/env/bin/python"
        pip = [program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        shutil.copy(HERE / "first_result.py", scratch)
        run([*pip, "-c", str(ROOT / "constraints.txt"), f"adsh[serve,train,export] @ {wheel.as_uri()}"], scratch)
        use(program, scratch)
        run([*pip, "--force-reinstall", "--no-deps", str(source)], scratch)  # builds a wheel of its own
        use(program, scratch)
        run([program, "-m", "adsh", "export", "model", "--out", "exported"], scratch)
        serve_alone(python, wheel, scratch)
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"{said}: the wheel and the source archive work, in {time.monotonic() - started:.0f} s", flush=True)


def serve_alone(python: str, wheel: Path, scratch: str) -> None:
    """Serve the exported model from an environment without torch, with the newest versions that are accepted."""
    run([python, "-m", "venv", "serving"], scratch)
    program = f"{scratch}/serving/bin/python"
    pip = [program, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, f"adsh[serve,onnx] @ {wheel.as_uri()}"], scratch)
    run([program, "-c", "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is not None)"], scratch)
    serve([program, "-m", "adsh"], ["exported", "model/index", "--runtime", "onnx"], scratch)


def use(program: str, scratch: str) -> None:
    """A first result, the command line, and the page."""
    adsh = [program, "-m", "adsh"]
    run([program, "first_result.py"], scratch)
    run(
        [*adsh, "train", "blobs.npz", "--bits", "12", "--outer", "5", "--index", "--overwrite", "--out", "model"],
        scratch,
    )
    run([*adsh, "info", "model"], scratch)
    serve(adsh, ["model", "model/index"], scratch)


def serve(adsh: list[str], what: list[str], scratch: str) -> None:
    """Start the service, and fetch its page, every file that it names, and what is served."""
    command = [*adsh, "serve", *what, "--port", "0", "--no-log"]
    with subprocess.Popen(command, cwd=scratch, stdout=subprocess.PIPE, text=True, env=environment()) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[-1]
            page = urlopen(url, timeout=60).read().decode()
            named = re.findall(r'(?:src|href)="([^":#]+\.(?:js|css|svg))"', page)
            assert named, "the page names no file of its own"
            for file in named:
                assert urlopen(urljoin(url, file), timeout=60).read(), f"{file} is empty"
            assert json.load(urlopen(urljoin(url, "/v1/info"), timeout=60))["items"] == 600
        finally:
            server.terminate()


def run(command: list[str], folder: str) -> None:
    """Runs a command; what it says is shown only where it fails."""
    done = subprocess.run(
        command, cwd=folder, env=environment(), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout}\nended with status {done.returncode}")


def environment() -> dict[str, str]:
    """Without what would lead back to the source."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


if __name__ == "__main__":
    if "--both" not in sys.argv:
        try_on(sys.executable)
        sys.exit()
    there = at_hand()
    if not there:
        sys.exit(f"none of Python {', '.join(supported())} is at hand")
    chosen = list(dict.fromkeys([min(there, key=supported().index), max(there, key=supported().index)]))
    for name in chosen:
        try_on(there[name])
    print(f"tried on Python {' and '.join(chosen)}; at hand were {', '.join(there)}", end="")
    missing = [name for name in supported() if name not in there]
    print(f"; supported, and not at hand: {', '.join(missing)}" if missing else "; no supported one is missing")
