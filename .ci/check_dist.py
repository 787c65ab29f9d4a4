"""What is inside dist/: one wheel and one source archive, of one version, with every file that the package needs.

python .ci/check_dist.py        after python -m build
"""

from __future__ import annotations

import re
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src/adsh"
# What people who unpack the source archive need besides the package.
BESIDE = (
    "pyproject.toml",
    "hatch_build.py",
    "README.md",
    "LICENSE",
    "CHANGELOG.md",
    "Makefile",
    "constraints.txt",
    "mkdocs.yml",
)
FOLDERS = ("tests", "examples", "docs", "benchmarks", "runs", "results")


def version() -> str:
    """The one place that says it."""
    said = re.findall(r'^__version__ = "(.+)"$', (PACKAGE / "__init__.py").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(said) == 1, f"src/adsh/__init__.py says its version {len(said)} times"
    return str(said[0])


def package_files() -> set[str]:
    """All files of the package, from src/: programs, py.typed, styles, and the page."""
    return {
        path.relative_to(ROOT / "src").as_posix()
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def the_one(pattern: str) -> Path:
    """The file of dist/ that is called so."""
    found = sorted((ROOT / "dist").glob(pattern))
    assert len(found) == 1, f"dist/ holds {len(found)} files {pattern}: rm -rf dist, and build anew"
    return found[0]


def main() -> None:
    """Ends with a sentence and status 1 where something is missing."""
    wanted, called = package_files(), version()
    for file in ("adsh/py.typed", "adsh/serve/static/index.html", "adsh/utils/page.css"):
        assert file in wanted, f"src/{file} is gone"  # so that what is looked for below is what is meant
    wheel, source = the_one(f"adsh-{called}-py3-none-any.whl"), the_one(f"adsh-{called}.tar.gz")
    with zipfile.ZipFile(wheel) as opened:
        inside = set(opened.namelist())
        about = Parser().parsestr(opened.read(f"adsh-{called}.dist-info/METADATA").decode())
    assert not wanted - inside, f"the wheel lacks {sorted(wanted - inside)}"
    more = {name for name in inside - wanted if not name.startswith(f"adsh-{called}.dist-info/")}
    assert not more, f"the wheel holds {sorted(more)}, which are not of the package"
    leading = re.findall(r"!\[|\]\((?!https://)", about.get_payload())
    assert not leading, "the description has images, or links that lead nowhere on a package index"
    assert about["Version"] == called, f"the wheel calls itself {about['Version']}, and src/adsh/__init__.py {called}"
    with tarfile.open(source) as opened_source:
        held = {name.removeprefix(f"adsh-{called}/") for name in opened_source.getnames()}
    needed = {f"src/{name}" for name in wanted} | set(BESIDE)
    assert not needed - held, f"the source archive lacks {sorted(needed - held)}"
    for folder in FOLDERS:
        assert any(name.startswith(f"{folder}/") for name in held), f"the source archive lacks {folder}/"
    static = sum(name.startswith("adsh/serve/static/") for name in inside)
    print(
        f"adsh {called}: {wheel.name} ({len(wanted)} files, {static} of the page, py.typed) and {source.name} are whole"
    )


if __name__ == "__main__":
    try:
        main()
    except AssertionError as problem:
        sys.exit(f"dist: {problem}")
