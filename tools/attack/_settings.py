"""What every attack is given."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """The bounds of an attack, and a folder that is removed after it."""

    seconds: float
    count: int
    seed: int
    folder: Path
