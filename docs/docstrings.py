"""Lists of names in docstrings, which are aligned for reading in the source, as lists in the pages.

bits        code length, 1 to 1024            - `bits`: code length, 1 to 1024
device      "auto", "cpu",            ->      - `device`: "auto", "cpu", "cuda", …
            "cuda", …
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ENTRY = re.compile(r"([\"\w][\w., \"/-]*?) {2,}(\S.*)")
_NAMES = re.compile(r"\w+(?:, \w+)*")  # alone on a line, with their text below


class AlignedLists(griffe.Extension):
    """Turns them, in every docstring."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called for each object that is read."""
        if obj.docstring is not None:
            obj.docstring.value = "\n\n".join(map(_as_list, obj.docstring.value.split("\n\n")))


def _as_list(paragraph: str) -> str:
    """The paragraph, as a list where it is one."""
    entries: list[tuple[str, list[str]]] = []
    for line in paragraph.splitlines():
        if line.startswith(" ") and entries:
            entries[-1][1].append(line.strip())
        elif found := _ENTRY.fullmatch(line):
            entries.append((found[1], [found[2]]))
        elif _NAMES.fullmatch(line):
            entries.append((line, []))
        else:
            return paragraph
    if not any(text for _, text in entries):
        return paragraph
    return "\n".join(f"- `{names}`: {' '.join(text)}" for names, text in entries)
