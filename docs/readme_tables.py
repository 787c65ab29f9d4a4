"""The tables of figures in README.md, written between its marks from results/*.json.

    python docs/readme_tables.py

Nothing builds the README where it is read, so its tables are committed; a test compares them with what this gives.
"""

from __future__ import annotations

import re
from pathlib import Path

from headline_tables import TABLES

README = Path(__file__).parents[1] / "README.md"
_MARKED = re.compile(r"(<!-- figures: (\w+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


def filled(text: str) -> str:
    """Return the page with the tables of the present results between its marks."""
    return _MARKED.sub(lambda found: f"{found[1]}{TABLES[found[2]]()}\n{found[3]}", text)


if __name__ == "__main__":
    README.write_text(filled(README.read_text(encoding="utf-8")), encoding="utf-8")
