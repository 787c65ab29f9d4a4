"""What can be checked of the container without a container engine, and that what it installs is enough."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

from adsh.serve.engine.limits import Limits

ROOT = Path(__file__).parent.parent
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
LINES = [line for line in DOCKERFILE.splitlines() if line and not line.startswith("#")]


def named(path: Path) -> list[str]:
    """The distributions of a list of requirements, as pip calls them."""
    lines = [line.split("#")[0].strip() for line in path.read_text(encoding="utf-8").splitlines()]
    return [re.sub(r"[-_.]+", "-", re.match(r"[\w.-]+", line)[0]).lower() for line in lines if line]


def test_the_dockerfile_copies_what_is_there_and_what_is_not_ignored():
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    for line in LINES:
        if line.startswith("COPY") and "--from" not in line:
            for name in line.split()[1:-1]:
                assert (ROOT / name).exists(), name
                assert name in kept


def test_the_python_of_the_image_is_one_the_package_takes():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    least = tuple(map(int, re.match(r">=(\d+)\.(\d+)$", project["requires-python"]).groups()))
    found = re.findall(r"^FROM python:(\d+)\.(\d+)-slim", DOCKERFILE, re.MULTILINE)
    assert len(found) == 2
    assert all(tuple(map(int, version)) >= least for version in found)


def test_every_install_is_pinned_and_torch_is_not_among_them():
    installs = [line for line in LINES if "pip install" in line]
    assert len(installs) == 2
    assert all("-c constraints.txt" in line for line in installs)
    assert "--no-deps" in installs[1]
    pinned, required = named(ROOT / "constraints.txt"), named(ROOT / "requirements-serve.txt")
    assert set(required) <= set(pinned)
    assert "torch" not in required


def test_the_container_runs_as_nobody_in_particular_and_is_reached_from_this_machine_alone():
    assert LINES[-1].startswith("CMD")
    assert "USER 10001" in LINES
    assert any(line.startswith("HEALTHCHECK") and "/readyz" in line for line in LINES)
    compose = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    assert re.findall(r'- "([^"]*:8000)"', compose) == ["127.0.0.1:${ADSH_PORT:-8000}:8000"]
    assert "ADSH_TOKEN: ${ADSH_TOKEN:?" in compose
    assert "read_only: true" in compose


def test_compose_bounds_memory_processes_and_uploads():
    compose = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    for limit in ("mem_limit:", "memswap_limit:", "pids_limit:", "stop_grace_period: 40s"):
        assert limit in compose
    size = int(re.search(r"/tmp:size=(\d+)m", compose)[1]) << 20
    assert size >= 2 * Limits.max_bodies
    assert int(re.search(r"pids_limit: (\d+)", compose)[1]) >= 1024
    assert Limits.max_seconds + 5 < 40


def test_compose_runs_as_whoever_owns_the_index():
    """Adding to an index needs to write to it, and what the host's user built is not user 10001's."""
    compose = (ROOT / "compose.yaml").read_text(encoding="utf-8")
    assert 'user: "${ADSH_USER:-10001:10001}"' in compose
    page = (ROOT / "docs/howto/export.md").read_text(encoding="utf-8")
    assert "ADSH_USER=$(id -u):$(id -g) ADSH_TOKEN=" in page
    assert "chown -R 10001:10001 serve/index" in page
    assert "--read-only --tmpfs /tmp" in page
    assert 'tmpfs: ["/tmp:size=256m"]' in compose


def test_the_installed_list_is_enough_for_the_command_line_the_index_and_coding():
    """Every distribution that the list does not lead to is hidden."""
    script = f"""
import importlib.metadata as metadata, re, sys

def plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()

def needed(name, seen):
    if plain(name) not in seen:
        seen.add(plain(name))
        try:
            requires = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            return seen
        for line in requires:
            if "extra ==" not in line:
                needed(re.match(r"[A-Za-z0-9_.-]+", line)[0], seen)
    return seen

allowed = {{"adsh"}}
for name in {named(ROOT / "requirements-serve.txt")!r}:
    needed(name, allowed)
assert "torch" not in allowed, allowed
hidden = {{
    module for module, owners in metadata.packages_distributions().items()
    if not allowed & {{plain(owner) for owner in owners}}
}}
assert {{"torch", "onnx", "scipy"}} <= hidden

class Hide:
    def __init__(self, finder):
        self.finder = finder

    def find_spec(self, name, path=None, target=None):
        return None if name.split(".")[0] in hidden else self.finder.find_spec(name, path, target)

sys.meta_path[:] = [Hide(finder) for finder in sys.meta_path]
import importlib.util, tempfile
import onnxruntime
from adsh import open_index
from adsh.encoders.onnx import OnnxEncoder
with tempfile.TemporaryDirectory() as folder, open_index(folder + "/index", bits=8) as index:
    index.add(["a"], __import__("numpy").zeros((1, 1), "uint8"))
from adsh.cli.app import app
verb = ["serve"] if importlib.util.find_spec("adsh.serve") else []
if verb:
    import adsh.serve.http.app
app([*verb, "--help"], prog_name="adsh", standalone_mode=False)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert "Usage: adsh" in done.stdout
