"""Rules of the house that no linter knows."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILES = sorted(
    path
    for folder in ("src", "tests", "benchmarks", "runs", "docs", "examples", ".ci")
    for path in (ROOT / folder).rglob("*.py")
)
_SILENCED = re.compile(r"# (?:noqa|type: ignore|pragma: no cover)\b([^#]*)(#?.*)$")


def test_a_silenced_check_says_why():
    for path in FILES:
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            found = _SILENCED.search(line)
            if found and path != Path(__file__):
                assert len(found[2].strip("# ")) > 3, (
                    f"{path.relative_to(ROOT)}:{number} silences a check without a reason"
                )


def test_a_file_holds_one_idea():
    for path in FILES:
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, (
            f"{path.relative_to(ROOT)}: two ideas live in it"
        )


def test_the_version_is_said_in_one_place():
    import adsh

    said = re.compile(rf"(?<![\d.]){re.escape(adsh.__version__)}(?![\d.])")
    for name in ("pyproject.toml", "CITATION.cff", "README.md", "mkdocs.yml", "Dockerfile", "compose.yaml"):
        assert not said.search((ROOT / name).read_text(encoding="utf-8")), name
