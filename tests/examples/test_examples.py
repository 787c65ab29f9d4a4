"""The examples run as they are, say what they promise, and their notebooks are theirs."""

from __future__ import annotations

import ast
import json
import runpy
import tempfile
import warnings
from pathlib import Path

import pytest

from adsh.errors import AdshWarning

ROOT = Path(__file__).parents[2]
TO_NOTEBOOKS = runpy.run_path(str(ROOT / "examples/to_notebooks.py"))
SCRIPTS = TO_NOTEBOOKS["scripts"]()

# A line that each says once it worked. Figures are left to the reader: they differ a little between machines.
SAID = {
    "image_folder": "640 images of 10 classes, such as digit-0/0010.png",
    "embeddings": "a text was 128 bytes as a vector, and is 2 as a code",
    "multi_label": "tagged ['2', '5']: [['2', '5'],",
    "incremental": "600 of the first day are removed, 1,000 are left",
    "changing_classes": "codes that changed: 0",
    "search_over_http": "the service ended with status 0",
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_runs(script, tmp_path, monkeypatch, capsys):
    if script.stem == "search_over_http":
        pytest.importorskip("fastapi", reason="adsh[serve] is not installed")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AdshWarning)  # warnings for the reader are no errors; all others are
        runpy.run_path(str(script), run_name="__main__")
    assert SAID[script.stem] in capsys.readouterr().out


def test_every_example_fits_a_screen_or_so():
    assert {script.stem for script in SCRIPTS} == set(SAID)
    for script in SCRIPTS:
        assert len(script.read_text(encoding="utf-8").splitlines()) <= 60, script


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_notebook_is_generated_from_its_script(script):
    created = TO_NOTEBOOKS["notebook"](script)
    kept = TO_NOTEBOOKS["NOTEBOOKS"] / f"{script.stem}.ipynb"
    assert kept.read_text(encoding="utf-8") == created, "make notebooks"
    cells = json.loads(created)["cells"]
    code = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    of_script = ast.parse(script.read_text(encoding="utf-8"))
    of_script.body = of_script.body[1:]  # the docstring is text there
    assert ast.dump(ast.parse(code)) == ast.dump(of_script)  # nothing is lost on the way


def test_every_notebook_has_its_script():
    assert {path.stem for path in TO_NOTEBOOKS["NOTEBOOKS"].iterdir()} == set(SAID)
