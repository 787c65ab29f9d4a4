"""Every recipe of docs/howto/serve.md, run against the real server."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from PIL import Image

PAGE = (Path(__file__).parents[2] / "docs/howto/serve.md").read_text(encoding="utf-8")
RECIPES = re.findall(r"^```bash\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
PROGRAMS = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Image.new("RGB", (60, 40), (200, 50, 40)).save("cat.jpg")
    return tmp_path


@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_the_recipes_for_curl_work_one_after_the_other(live, folder):
    assert len(RECIPES) >= 12
    for recipe in RECIPES:
        script = recipe.replace("localhost:8000", f"localhost:{live.port}").replace("red/1.png", "red/1%20%C3%A9.png")
        script = script.replace('"red/1%20%C3%A9.png"', '"red/1 é.png"').replace("curl ", "curl -sS --fail-with-body ")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            capture_output=True, text=True, env={**os.environ, "ADSH_TOKEN": "s3cret"}, check=False, timeout=30,
        )  # fmt: skip
        assert done.returncode == 0, (recipe, done.stdout, done.stderr)
    with Image.open("found.png") as image:
        assert image.size == (36, 40)


def test_the_program_works(live, folder, capsys):
    for program in PROGRAMS:
        exec(program.replace("localhost:8000", f"localhost:{live.port}").replace("red/1.png", "red/1 é.png"), {})
    assert capsys.readouterr().out.count("red/") == 5


def test_every_route_has_a_recipe(live):
    for route in ("search", "encode", "items", "items/[^ ]*/image", "info"):
        assert re.search(f"localhost:8000/v1/{route}", PAGE), route
    for method in ("-X PUT", "-X DELETE"):
        assert method in PAGE
