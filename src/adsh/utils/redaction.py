"""Leave the paths of this machine out of what strangers may see. `utils.urls` does the same for passwords."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any


def is_absolute_path(value: object) -> bool:
    """Return whether a value is an absolute path of this machine."""
    return isinstance(value, str) and os.path.isabs(value)


def redact_paths(values: Mapping[str, Any], fields: Collection[str] | None = None) -> dict[str, Any]:
    """Return a copy of the values without absolute paths.

    Args:
        values: Facts of a model or a report, or the metadata of an item.
        fields: The names that may hold such paths; all of them by default.
    """
    return {
        name: value
        for name, value in values.items()
        if not ((fields is None or name in fields) and is_absolute_path(value))
    }
