"""The description of the built package: README.md without what a package index cannot show.

An index has the text alone: links to files beside it, and images, lead nowhere there. So images are left out, and
links keep their words.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_ABSOLUTE = r"(?!https?://)"
_IMAGE = re.compile(rf"^!\[[^\]]*\]\({_ABSOLUTE}[^)]*\)\n\n", re.MULTILINE)
_LINK = re.compile(rf"\[([^\]]*)\]\({_ABSOLUTE}[^)]*\)")
_COMMENT = re.compile(r"^<!--.*?-->\n", re.MULTILINE)


class DescriptionHook(MetadataHookInterface):
    """Sets the description, which pyproject.toml calls dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the description to the metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": description(text)}


def description(readme: str) -> str:
    """Return the README without images, comments, and links that are not absolute."""
    return _LINK.sub(r"\1", _IMAGE.sub("", _COMMENT.sub("", readme)))
