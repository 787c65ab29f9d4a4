"""Print text of others, such as keys and metadata, without what a terminal would act on."""

from __future__ import annotations

import re

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # all but tab and line break


def printable(text: str) -> str:
    """Return a text with control characters, and those that reverse the direction of writing, as \\u001b."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
