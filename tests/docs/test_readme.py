"""The README: short, and readable where it is only text, without the files around it."""

from __future__ import annotations

import importlib.util
import re

import pytest

from .blocks import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def description():
    """What a package index gets: hatch_build.py makes it when the package is built."""
    pytest.importorskip("hatchling")
    spec = importlib.util.spec_from_file_location("hatch_build", ROOT / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.description(README)


def test_it_is_short():
    assert len(README.encode()) <= 10_000


def test_it_names_the_targets_that_set_everything_up():
    assert "\nmake demo " in README
    assert "\nmake test " in README


def test_an_index_gets_no_link_or_image_that_leads_nowhere(description):
    for target in re.findall(r"\]\(([^)\s]*)", description):
        assert target.startswith("https://"), target
    assert "![" not in description
    assert "<!--" not in description
    assert "adsh train photos/" in description


def test_an_index_gets_every_word_of_a_sentence(description):
    """Links keep their words, and nothing else is lost but images and comments."""
    kept = re.sub(r"^!\[.*\n|^<!--.*\n", "", README, flags=re.MULTILINE)
    words = re.findall(r"[a-z]{3,}", re.sub(r"\]\([^)]*\)", "]", kept).lower())
    assert words == re.findall(r"[a-z]{3,}", re.sub(r"\]\([^)]*\)", "]", description).lower())


def test_the_description_is_built_with_the_package():
    assert re.search(
        r"^dynamic = \[.*\"readme\"\]", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
