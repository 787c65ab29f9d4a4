"""The code blocks of a page, and running them as a reader would."""

from __future__ import annotations

import importlib
import re
import shlex
import signal
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt

from adsh.cli import main
from adsh.errors import AdshWarning

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

COMMANDS, PROGRAMS, SHOWN = ("bash", "console", "sh"), ("python",), ("text",)
_REASON = re.compile(r"<!-- not run: (\S.{9,}?) -->")


def load_hooks(name: str = "hooks") -> Any:
    """docs/hooks.py, or another module of docs/, as mkdocs loads it."""
    before = list(sys.path)
    sys.path.insert(0, str(DOCS))
    try:
        return importlib.import_module(name)
    finally:
        sys.path[:] = before


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str  # "" for one that is only indented, or says none
    text: str
    reason: str | None  # why it is not run

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Every fenced or indented block; one is marked as not run by a comment on the line above it."""
    source = page.read_text(encoding="utf-8")
    lines = source.splitlines()
    found = []
    for token in MarkdownIt("commonmark").parse(source):
        if token.type in ("fence", "code_block"):
            assert token.map is not None
            above = lines[token.map[0] - 1].strip() if token.map[0] else ""
            marked = _REASON.fullmatch(above)
            name = page.relative_to(ROOT).as_posix()
            found.append(
                Block(name, token.map[0] + 1, token.info.strip(), token.content, marked[1] if marked else None)
            )
    return found


def run(block: Block, names: dict[str, Any]) -> None:
    """Runs a block in the present folder: a program in the page's namespace, commands one after the other."""
    if block.language in PROGRAMS:
        program = compile("\n" * block.line + block.text, str(ROOT / block.page), "exec")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AdshWarning)  # warnings for the reader are no errors; all others are
            exec(program, names)
        return
    for command in commands(block.text):
        status = adsh(command[1:]) if command[0] == "adsh" else subprocess.run(command, check=False).returncode
        assert status == 0, f"{block}: {shlex.join(command)} ended with status {status}"


def commands(text: str) -> list[list[str]]:
    """The commands of a block, without comments; a line that ends in a backslash goes on in the next."""
    lines = text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def adsh(arguments: list[str]) -> int:
    """The status of a command, run in this process."""
    before = signal.getsignal(signal.SIGTERM), warnings.showwarning, sys.argv
    sys.argv = ["adsh", *arguments]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            main()
    except SystemExit as ended:
        return int(ended.code or 0)
    finally:
        signal.signal(signal.SIGTERM, before[0])
        warnings.showwarning, sys.argv = before[1:]
