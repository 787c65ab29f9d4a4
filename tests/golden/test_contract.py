"""Public names, parameters, flags, recipes, routes and JSON keys: all that was there is there. More is fine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tools.golden import contract
from tools.golden.differences import differences

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
BEFORE = json.loads((HERE / "contract.json").read_text(encoding="utf-8"))


# Lists of names: more of them is fine.
GROWING = (
    ("adsh.data", "NAMED"), ("adsh.data", "PROTOCOLS"), ("adsh.experiments", "EXPERIMENTS"),
    ("adsh.methods", "METHODS"), ("adsh.methods", "DEEP"),
)  # fmt: skip

# Values that only the package itself reads: the name of a measurement, which no stored result holds.
INTERNAL = ("adsh.experiments > Cell > made with > measure: ",)

# Defaults that changed on purpose, to methods as they were published: decision 21.
CHANGED = (
    *(f"{name} > {of} > decay: was '0.5'" for name in ("lfh", "lfh_d") for of in ("class > made with", "options")),
    *(f"{name} > {of} > block: was " for name in ("lin_lin", "lin_v") for of in ("class > made with", "options")),
)

# What may be left out now can still be given: arguments that were needed, and the names that **shared stood for.
LEFT_OUT = re.compile(r": was 'needed', is |> made with > (shared: is missing|whole: was 'False', is 'None')$")


def check(part, now):
    lost = differences(BEFORE[part], json.loads(json.dumps(now)))
    lost = [line for line in lost if not (line.startswith(INTERNAL + CHANGED) or LEFT_OUT.search(line))]
    assert not lost, "\n".join(lost)


def printed(folder, *arguments):
    done = subprocess.run(
        [sys.executable, "-m", "adsh", *arguments, "--json"],
        cwd=folder, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_public_name_is_there_with_its_parameters():
    now = contract.described({module: list(names) for module, names in BEFORE["names"].items()})
    for module, name in GROWING:
        before = BEFORE["names"][module][name]
        now[module][name] = [each for each in now[module][name] if each in before]
    check("names", now)


def test_every_method_takes_the_options_it_took():
    check("methods", contract.methods({name: list(of["options"]) for name, of in BEFORE["methods"].items()}))


def test_what_the_reference_shows_is_shown_and_can_be_imported():
    check("documented", contract.documented(ROOT))


def test_every_command_has_its_flags_and_arguments():
    check("commands", contract.commands())


def test_every_value_of_a_recipe_and_every_preset_is_as_it_was():
    check("recipes", contract.recipes(list(BEFORE["recipes"]["defaults"])))


def test_every_route_of_the_service_has_its_fields():
    for needed in ("fastapi", "multipart", "orjson", "prometheus_client"):
        pytest.importorskip(needed)
    check("service", contract.service())


@pytest.mark.parametrize(
    ("named", "arguments"), [("info", ("info", "model")), ("index info", ("index", "info", "index"))]
)
def test_what_is_printed_as_json_has_the_keys_it_had(named, arguments, tmp_path):
    """The cheap ones; `python -m tools.golden compare` runs every command."""
    for name in ("model", "index"):
        shutil.copytree(HERE / "written" / name, tmp_path / name)
    now = printed(tmp_path, *arguments)
    before = json.loads((HERE / "digests.json").read_text(encoding="utf-8"))["json"][named]
    of_a_run = {"source", "protocol", "model_folder"}  # these folders came from no run of adsh train
    assert set(before) - of_a_run <= set(now)
