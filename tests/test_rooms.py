"""The order of the rooms: a module imports its own room and those below it, never one above, not even in a function."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"

# From the lowest to the highest. `config` and `labels` are modules of the package root.
ROOMS = (
    "errors", "config", "utils", "labels", "hamming", "data", "networks", "learn", "train", "models", "methods",
    "evaluate", "index", "encoders", "export", "search", "cluster", "runs", "experiments", "serve", "cli",
)  # fmt: skip
ROOT = {"__init__", "__main__", "client", "config", "errors", "labels", "metrics"}  # the package root, and no more
FACADES = {"adsh", "adsh.__main__", "adsh.metrics"}  # hand out names of any room


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in sorted((SRC / "adsh").rglob("*.py")):
        parts = path.relative_to(SRC).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def type_only(tree: ast.Module) -> set[ast.AST]:
    """The nodes under `if TYPE_CHECKING:`, which never run."""
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.dump(n.test)]
    return {node for block in blocks for statement in block.body for node in ast.walk(statement)}


def imports(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The modules of this package that one imports when it is loaded or when it runs."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    never = type_only(tree)
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in never:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {full if (full := f"{base}.{alias.name}") in known else base for alias in node.names}
    return {each for each in found if each.split(".")[0] == "adsh"}


MODULES = modules()
IMPORTS = {name: imports(name, path, MODULES) for name, path in MODULES.items()}


def room(name: str) -> str:
    return name.split(".")[1] if "." in name else ""


def test_the_package_root_holds_what_every_room_needs_and_no_more():
    assert {path.stem for path in (SRC / "adsh").glob("*.py")} == ROOT
    assert {path.name for path in (SRC / "adsh").iterdir() if path.is_dir() and path.name != "__pycache__"} == (
        set(ROOMS) - ROOT
    )


@pytest.mark.parametrize("name", sorted(set(MODULES) - FACADES))
def test_a_module_imports_no_room_above_its_own(name):
    if room(name) == "client":
        assert not IMPORTS[name], "the client is one file that works anywhere"
        return
    own = ROOMS.index(room(name))
    above = {each for each in IMPORTS[name] - {"adsh"} if ROOMS.index(room(each)) > own}
    assert not above, f"{name} imports {', '.join(sorted(above))}, which lie in rooms above it"


def test_no_modules_import_each_other_in_a_circle():
    """Modules count, not the packages they lie in: a package's `__init__` may hand out names of its modules."""
    visited: dict[str, int] = {}  # 1 while below it, 2 when done

    def walk(name: str, path: tuple[str, ...]) -> None:
        if visited.get(name) == 2:
            return
        assert visited.get(name) != 1, " -> ".join([*path[path.index(name) :], name])
        visited[name] = 1
        for each in sorted(IMPORTS[name] - {"adsh", name}):
            walk(each, (*path, name))
        visited[name] = 2

    for name in sorted(set(MODULES) - FACADES):
        walk(name, ())
