"""The oldest versions that are accepted have no known hole, and the pinned ones are accepted."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parent.parent
FILE = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = FILE["project"]
GROUPED = [one for group in FILE["dependency-groups"].values() for one in group]


def requirements(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return [Requirement(line.partition("#")[0]) for line in lines if line.partition("#")[0].strip()]


@pytest.mark.parametrize(
    ("name", "hole"), [("torch", "2.5.1"), ("starlette", "1.3.0")], ids=["CVE-2025-32434", "CVE-2026-54283"]
)
def test_a_version_with_a_known_hole_is_not_accepted(name, hole):
    extras = PROJECT["optional-dependencies"]
    listed = map(Requirement, PROJECT["dependencies"] + extras["train"] + extras["serve"])
    [found] = [one for one in listed if one.name == name]
    assert Version(hole) not in found.specifier


def test_the_pinned_versions_are_those_that_are_accepted():
    pinned = {one.name.lower(): one for one in requirements(ROOT / "constraints.txt")}
    extras = [one for extra in PROJECT["optional-dependencies"].values() for one in extra]
    for one in map(Requirement, PROJECT["dependencies"] + extras + GROUPED):
        pin = pinned.get(one.name.lower().replace("_", "-"))
        if pin is not None:
            [exact] = pin.specifier
            assert Version(exact.version) in one.specifier, one


def test_training_is_an_extra_and_what_serves_needs_no_torch():
    extras = PROJECT["optional-dependencies"]
    assert [Requirement(one).name for one in extras["train"]] == ["torch"]
    named = {Requirement(one).name for one in PROJECT["dependencies"] + extras["serve"] + extras["onnx"]}
    assert "torch" not in named
    assert "adsh" not in named  # which could lead to torch


def test_what_develops_the_package_is_in_groups_and_not_in_extras():
    assert {"dev", "docs"} <= set(FILE["dependency-groups"])
    assert not {"dev", "docs", "mutants", "attack"} & set(PROJECT["optional-dependencies"])
