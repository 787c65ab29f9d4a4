"""Refuse identifiers from the private vocabulary this project once had: `make check` runs it.

docs/reference/glossary.md has the words to use instead. An identifier is split at underscores and capitals, so
`told_weights` and `_ToldWeights` are found as well as `told`. Old public names that stay as aliases are in ALIASES.

    python tools/check_words.py [FOLDER …]        src by default
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

INSTEAD = {
    "told": "summary, facts",
    "tell": "report, notify",
    "tells": "report, notify",
    "asked": "query, requested",
    "asking": "query",
    "asks": "query",
    "asker": "query",
    "askers": "queries, num_sampleable",
    "made": "created, built",
    "judge": "evaluate",
    "judged": "evaluated",
    "judging": "evaluating",
    "slope": "gradient",
    "slopes": "gradient",
    "standing": "state",
    "picture": "image",
    "pictures": "images",
    "gone": "deleted",
    "verdict": "result",
    "verdicts": "filter_cache",
    "alike": "equal",
    "lent": "borrowed",
    "wanted": "requested, expected",
    "noted": "note",
    "founding": "create",
    "founded": "created",
    "adopt": "set",
    "adopted": "set",
    "spoken": "reported",
    "beside": "next to, sidecar",
    "recorded": "captured",
    "shortening": "compression",
    "shortened": "compressed",
    "coder": "encoder",
    "coders": "encoders",
    "networked": "deep",
    "begun": "started",
    "guilty": "failed",
    "patience": "timeout",
    "silence": "timeout",
    "meeting": "barrier, rendezvous",
    "watcher": "listener, monitor",
    "watchers": "listeners",
    "ledger": "log, records",
    "askable": "sampleable",
}

# Old public names, kept next to the new ones, and names that others chose: "path: identifier".
ALIASES: set[str] = {
    "src/adsh/index/base.py: adopt",
    "src/adsh/index/base.py: noted",
    "src/adsh/encoders/onnx.py: OnnxCoder",
    "src/adsh/experiments/cell.py: asking",
    "src/adsh/learn/code_table.py: askers",
    "src/adsh/serve/middleware/head_limits.py: connection_made",  # the name is asyncio's
    "benchmarks/serve.py: connection_made",  # the same
}


def words(identifier: str) -> list[str]:
    """The words of an identifier, in lower case."""
    parts = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", identifier).split("_")
    return [part.lower() for part in parts if part]


def identifiers(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every name that a module defines or assigns, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id if isinstance(node, ast.Name) else node.attr
        elif isinstance(node, ast.alias) and node.asname:
            yield node.lineno, node.asname


def problems(folders: list[Path]) -> Iterator[str]:
    """One line for each identifier that should have another name; modules count by their file names too."""
    for path in sorted(path for folder in folders for path in folder.rglob("*.py")):
        where = path.as_posix()
        found = [(1, path.stem), *identifiers(ast.parse(path.read_text(encoding="utf-8")))]
        for line, name in found:
            banned = [word for word in words(name) if word in INSTEAD]
            if banned and f"{where}: {name}" not in ALIASES:
                yield f"{where}:{line}: {name}: use {INSTEAD[banned[0]]}"


def main() -> int:
    """Print what was found; 1 where there is anything."""
    found = list(problems([Path(each) for each in sys.argv[1:]] or [Path("src")]))
    print("\n".join(found) if found else "no banned words")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
