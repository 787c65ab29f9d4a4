"""The settings of an update, from flags and the files that they name."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .update_inputs import read_keys, read_relabel


@dataclass(frozen=True)
class UpdateSettings:
    """What an update does. Paths are absolute, so that it can be resumed from anywhere."""

    source: str | None = None
    """New items, in any form that training takes; None for changes alone."""
    root: str | None = None
    labels: str | None = None
    prefix: str = ""
    """What the keys of new items start with."""
    relabel: dict[str, list[str]] = field(default_factory=dict)
    """Other labels for some items, by key."""
    rename: list[str] = field(default_factory=list)
    """OLD=NEW each; OLD= removes a label."""
    remove: list[str] = field(default_factory=list)
    """Keys of items to remove."""
    corrections: list[int] = field(default_factory=list)
    """The numbers of the index's corrections that `relabel` has, to be closed once the index follows."""
    old: str | None = None
    """A source that has the items of the database; None for the run's own."""
    outer: int | None = None
    seed: int | None = None
    device: str | None = None
    checkpoint_every: int = 1
    strict: bool = False
    workers: int | None = None

    @classmethod
    def of(cls, relabel: Path | None = None, **values: Any) -> UpdateSettings:
        """Return the settings of a command, with absolute paths and the relabelled items read.

        Args:
            relabel: A .csv of keys and labels.
            **values: Other fields by name.
        """
        for name in ("source", "root", "labels", "old"):
            text = values.get(name)
            if text is not None and Path(text).expanduser().exists():
                values[name] = str(Path(text).expanduser().absolute())
        values["remove"] = read_keys(values.get("remove", ()))
        return cls(relabel={} if relabel is None else read_relabel(relabel), **values)

    @property
    def is_empty(self) -> bool:
        """Whether it changes nothing."""
        return self.source is None and not (self.relabel or self.rename or self.remove)
