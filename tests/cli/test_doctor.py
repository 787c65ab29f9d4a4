"""`adsh doctor`: what it says of what is here and what is not."""

from __future__ import annotations

import tomllib
from pathlib import Path

from adsh.runs import doctor

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_all_is_well_here(adsh):
    ended = adsh("doctor")
    assert ended.status == 0
    assert "all is well" in ended.out
    for word in ("python", "torch", "device", "extras", "ADSH_DATA", "puts them into an index and searches it"):
        assert word in ended.out


def test_what_is_missing_comes_with_the_command_that_adds_it(adsh, monkeypatch):
    monkeypatch.setitem(doctor.EXTRAS, "plot", (("no_such_module",), "figures in reports"))
    assert "figures in reports: pip install 'adsh[plot]'" in adsh("doctor", "--no-self-test").out
    assert adsh("doctor", "--no-self-test", "--json").json["extras"]["plot"]["missing"] == ["no_such_module"]


def test_every_extra_of_a_user_is_known():
    extras = set(tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"])
    assert set(doctor.EXTRAS) == extras


def test_data_folders_are_reported(adsh, monkeypatch, tmp_path):
    (tmp_path / "cifar10").mkdir()
    monkeypatch.setenv("ADSH_DATA", str(tmp_path))
    found = adsh("doctor", "--no-self-test", "--json").json["data"]
    assert found["cifar10"] == str(tmp_path / "cifar10")
    assert found["coco17"].startswith("nothing at ")
    monkeypatch.delenv("ADSH_DATA")
    assert "not set" in adsh("doctor", "--no-self-test").out


def test_a_step_that_fails_ends_it_in_one_line(adsh, monkeypatch):
    monkeypatch.setattr("adsh.evaluate.metrics.mean_average_precision", lambda *_, **__: 0.25)
    ended = adsh("doctor")
    assert ended.status == 2
    assert "the self-test failed: finds the right ones: MAP on four well separated classes is 0.25" in ended.err
    assert "Traceback" not in ended.err
