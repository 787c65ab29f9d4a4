"""Makes the notebooks from the scripts: `make notebooks`.

A line `# %%` begins a cell. The comment right below it becomes text, and so does the docstring at the top.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
NOTEBOOKS = HERE / "notebooks"
_DOCSTRING = re.compile(r'\A"""(.*?)"""\n', re.DOTALL)


def scripts() -> list[Path]:
    """The examples."""
    return sorted(path for path in HERE.glob("*.py") if path != Path(__file__))


def notebook(script: Path) -> str:
    """A script as the JSON of a notebook, without outputs."""
    head, *parts = re.split(r"^# %%\n", script.read_text(encoding="utf-8"), flags=re.MULTILINE)
    docstring = _DOCSTRING.match(head)
    assert docstring, f"{script} begins with no docstring"
    title, _, rest = docstring[1].strip().partition("\n\n")
    cells = [("markdown", f"# {title}\n\n{rest}")]
    for part in parts:
        comment = re.match(r"(?:#.*\n)*", part)
        assert comment
        text = re.sub(r"^# ?", "", comment[0], flags=re.MULTILINE)
        cells += [("markdown", text), ("code", part[comment.end() :])]
    notebook_cells = [_cell(at, kind, text.strip("\n")) for at, (kind, text) in enumerate(cells) if text.strip()]
    about = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    content = {"cells": notebook_cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def _cell(at: int, kind: str, text: str) -> dict[str, Any]:
    run = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "id": f"cell-{at}", "metadata": {}, **run, "source": text.splitlines(keepends=True)}


if __name__ == "__main__":
    NOTEBOOKS.mkdir(exist_ok=True)
    for one in scripts():
        target = NOTEBOOKS / f"{one.stem}.ipynb"
        target.write_text(notebook(one), encoding="utf-8")
        print(target.relative_to(HERE.parent))
