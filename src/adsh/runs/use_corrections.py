"""Take the open corrections of an index into an update of its model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ..errors import InputError
from ..index.corrections import Corrections
from ..index.locate import open_existing
from .database import RunItems
from .update_settings import UpdateSettings


def with_corrections(settings: UpdateSettings, folder: Path, index: str | None) -> tuple[UpdateSettings, int]:
    """Return the settings of an update with the open corrections of an index, which --relabel takes precedence over.

    Args:
        settings: Of the update.
        folder: The run's folder.
        index: The index; None for the one in the folder.

    Returns:
        The settings, and how many corrected items are not of the model's database: their corrections stay open.
    """
    known = set(RunItems.load(folder).keys)
    with open_existing(str(folder) if index is None else index) as opened:
        corrections = Corrections(opened).open()
        location = opened.location
    if not corrections:
        raise InputError(f"{location} has no open corrections: leave --corrections out")
    labels = {item.key: item.labels for each in corrections for item in each.items if item.key in known}
    used = [each.number for each in corrections if all(item.key in known for item in each.items)]
    others = {item.key for each in corrections for item in each.items} - known
    return replace(settings, relabel={**labels, **settings.relabel}, corrections=used), len(others)
