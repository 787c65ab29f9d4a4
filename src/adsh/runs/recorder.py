"""What a training run writes next to its model while it trains: run.toml, the split, and the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import __version__
from ..data import Split
from ..models.storage_format import ITEMS
from ..train.callbacks import Callback
from ..train.state import Record
from .database import RunItems
from .run_dir import RunFolder


@dataclass(frozen=True)
class RunRecorder(Callback):
    """A callback of `fit` that writes every event to log.jsonl, and the other files once training can start."""

    run: RunFolder
    settings: dict[str, Any]
    """The table [train] of run.toml."""
    split: Split
    read: dict[str, Any]
    """What the reading of images found: see `runs.inputs.reading_summary`."""
    items: RunItems
    overwrite: bool
    """Delete the log and the checkpoints of an earlier run first."""

    def on_start(self, facts: dict[str, Any]) -> None:
        """Write the files, and `start` to the log, or `resume` where some iterations were done before."""
        if self.overwrite:
            self.run.clear()
        about = {"adsh": __version__, "device": facts["device"], "points": facts["points"]}
        about |= {"chosen": facts["chosen"]} if "chosen" in facts else {}
        self.run.write_run({"train": self.settings, "recipe": facts["recipe"], "data": facts["data"], "made": about})
        self.run.write_split(self.split)
        self.items.save(self.run.path / ITEMS)
        self.run.mend_log(facts["done"])
        if self.read:
            self.run.log("read", **self.read)
        self.run.log("resume" if facts["done"] else "start", **facts)

    def on_iteration(self, record: Record) -> None:
        """Write `outer` to the log."""
        self.run.log("outer", **record)
