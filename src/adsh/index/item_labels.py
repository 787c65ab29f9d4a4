"""The labels of an item in its metadata: {"class": "cat"}, or {"class": ["cat", "outdoor"]} for several."""

from __future__ import annotations

from collections.abc import Sequence

from .matches import Metadata

CLASS = "class"


def classes_of(metadata: Metadata) -> list[str]:
    """Return the labels that an item's metadata names."""
    found = (metadata or {}).get(CLASS)
    values = found if isinstance(found, list) else [found]
    return [value for value in values if isinstance(value, str)]


def with_classes(metadata: Metadata, names: Sequence[str]) -> Metadata:
    """Return an item's metadata with these labels; None where nothing is left."""
    others = {name: value for name, value in (metadata or {}).items() if name != CLASS}
    return (others | ({CLASS: names[0] if len(names) == 1 else list(names)} if names else {})) or None
