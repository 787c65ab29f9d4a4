"""Update the model of a run: new items, other labels, other classes. The run's folder changes whole or not at all.

While it trains, everything is in MODEL/updating: what was requested, the checkpoints, the log. Then a folder with the
new model, the keys of its items and run.toml replaces the one before.
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..data.fingerprint import fingerprint
from ..data.items import as_items
from ..errors import FolderError, InputError
from ..labels import LabelSets
from ..learn.changes import change_database
from ..models.adsh import ADSH, load
from ..models.fingerprint import model_fingerprint
from ..models.storage_format import (
    FEATURES,
    ITEMS,
    LOG,
    REPLAY,
    REPORT,
    SPLIT,
    UPDATES,
    UPDATING,
    check_no_other_files,
    holds_model,
)  # fmt: skip
from ..train.callbacks import Callback, CallbackList
from ..train.checkpoint import found
from ..train.state import Record
from ..utils.files import find_file, find_whole, replacing, replacing_file
from ..utils.locks import locked_folder
from ..utils.progress import Progress
from ..utils.reading import parse_json
from .database import Indices, RunItems
from .run_dir import RunFolder
from .update_differences import CodedItems, Differences
from .update_inputs import (
    NewItems,
    Origin,
    changes_of,
    keys_named,
    new_items,
    old_items,
    origins_of,
)
from .update_record import UpdateRecord, read_updates, write_updates
from .update_settings import UpdateSettings

_REQUEST = "request.json"


@dataclass(frozen=True)
class UpdatedRun:
    """What an update did."""

    out: Path
    model: ADSH
    record: UpdateRecord
    new: NewItems | None
    new_classes: list[str]
    changed_codes: int
    """Codes of untouched items that changed: always 0, counted to be sure."""
    changed_items: int
    """Items whose labels or names of labels changed."""
    old: str
    """Where the network saw old items."""
    seconds: float

    def summary(self) -> dict[str, Any]:
        """Return what `adsh update --json` prints."""
        return {
            "model": str(self.out),
            "before": self.record.before,
            "after": self.record.after,
            "points": len(self.model.code_table_),
            "new_items": len(self.record.added),
            "known_items": 0 if self.new is None else self.new.skipped,
            "unreadable": [] if self.new is None else [list(pair) for pair in self.new.unreadable],
            "new_classes": self.new_classes,
            "classes": [str(name) for name in self.model.known_labels],
            "changed_items": self.changed_items,
            "removed_items": len(self.record.removed),
            "changed_codes": self.changed_codes,
            "old_items": self.old,
            "outer": len(self.model.history_),
            "seconds": round(self.seconds, 3),
        }


def update_run(
    folder: Path,
    settings: UpdateSettings | None,
    out: Path | None = None,
    *,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool | str | Progress = "auto",
) -> UpdatedRun | None:
    """Update the model of a run, in place or into another folder.

    Args:
        folder: The run's folder.
        settings: What to change; None to take those of the update that is resumed.
        out: A folder for the updated run; by default the run's own.
        resume: Continue an interrupted update.
        overwrite: Start over where an unfinished update is in the way.
        progress: "auto" shows progress on a terminal only, True always, False never.

    Returns:
        What was done; None where the update that is resumed had replaced the model already.

    Raises:
        InputError: The model cannot be updated, or there is nothing to do.
        FolderError: An unfinished update is in the way.
    """
    out = folder if out is None else out
    taken = FolderError(f"another adsh update or adsh train is writing to {out}: wait until it ends")
    with locked_folder(out, taken):
        RunFolder(folder).recover()
        RunFolder(out).recover()
        check_no_other_files(out)
        work = RunFolder(out / UPDATING)
        settings = _settings(work, settings, resume, overwrite)
        before = model_fingerprint(find_whole(folder))
        if resume and _is_done(work, out, before):
            return None
        if out != folder and holds_model(out) and not overwrite:
            raise FolderError(f"{out} holds a model: give another --out, or --overwrite")
        return _Update(folder, out, work, settings, Progress.of(progress)).run(resume)


def requested(out: Path) -> UpdateSettings:
    """Return what the unfinished update in a run's folder is to do."""
    return UpdateSettings(**parse_json((out / UPDATING / _REQUEST).read_bytes())["settings"])


def finish(out: Path) -> None:
    """Forget a finished update's request, checkpoints and log."""
    shutil.rmtree(out / UPDATING, ignore_errors=True)


def _settings(work: RunFolder, given: UpdateSettings | None, resume: bool, overwrite: bool) -> UpdateSettings:
    """Return what to do, and write it down for `resume`.

    Args:
        work: The folder of the unfinished update.
        given: The settings given now; None for those written down.
        resume: Continue the unfinished update.
        overwrite: Discard it.
    """
    request = work.path / _REQUEST
    if resume:
        if not request.exists():
            raise InputError(f"{work.path.parent} has no unfinished update: leave --resume out")
        stored = requested(work.path.parent)
        if given is not None and not given.is_empty and asdict(given) != asdict(stored):
            raise InputError("--resume continues the update that was interrupted: give no other changes with it")
        return stored
    if given is None or given.is_empty:
        raise InputError(
            "nothing to update: give a source of new items, --relabel, --rename, --remove or --corrections"
        )
    if found(work.checkpoints) and not overwrite:
        raise FolderError(
            f"{work.path.parent} holds an unfinished update: continue it with --resume, or start over with --overwrite"
        )
    return given


def _is_done(work: RunFolder, out: Path, before: str) -> bool:
    """Return whether the update that is resumed had replaced the model before it was interrupted."""
    started = parse_json((work.path / _REQUEST).read_bytes())["before"]
    updates = read_updates(out) if holds_model(out) else []
    return bool(updates) and updates[-1].before == started and (before != started or updates[-1].after != before)


@dataclass
class _Recorder(Callback):
    """Writes every event of an update to its log."""

    work: RunFolder

    def on_start(self, facts: dict[str, Any]) -> None:
        """Write `start`, or `resume` where some iterations were done before."""
        self.work.mend_log(facts["done"])
        self.work.log("resume" if facts["done"] else "start", **facts)

    def on_iteration(self, record: Record) -> None:
        """Write `outer`."""
        self.work.log("outer", **record)


class _Update:
    """One update of a run.

    Args:
        folder: The run.
        out: Where the updated run goes.
        work: Where the unfinished update is.
        settings: What to change.
        display: Shows the progress.
    """

    def __init__(self, folder: Path, out: Path, work: RunFolder, settings: UpdateSettings, display: Progress) -> None:
        self.folder, self.out, self.work, self.settings, self.display = folder, out, work, settings, display
        self.tables = RunFolder(folder).read_run()
        self.items = RunItems.load(folder)
        model = load(folder, device=settings.device)
        if not isinstance(model, ADSH):
            raise InputError(f"{folder} holds a model of {model.name}: only those of adsh can be updated")
        self.model: ADSH = model
        if settings.seed is not None:
            model.seed = settings.seed
        self.before = model_fingerprint(find_whole(folder))

    def run(self, resume: bool) -> UpdatedRun:
        """Read, train, and replace the run's folder."""
        started = time.perf_counter()
        model, settings, display = self.model, self.settings, self.display
        origins = origins_of(self.tables)
        named = keys_named(list(settings.relabel), self.items, origins)
        relabel = dict(zip(named, settings.relabel.values(), strict=True))
        remove = keys_named(settings.remove, self.items, origins)
        changes = changes_of(model, self.items, relabel, settings.rename, remove)
        new = self._new_items(origins)
        if new is None and not (changes.relabel or changes.rename or len(changes.remove)):
            raise InputError(f"{settings.source} has no items that the model does not have: nothing was changed")
        given = None if settings.old is None else Origin(settings.old)
        old, why = old_items(model, self.items, origins, given, display.reading)
        self._start(resume)
        before, kept_items = self._database(), 0 if model.replay_ is None else len(model.replay_)
        model.progress = False
        labels = None if new is None else LabelSets.of(new.dataset.labels)
        changed = change_database(model.code_table_, model.database_labels_, changes, labels)
        model.update(
            *((None, None) if new is None else (new.dataset, labels)),
            changes=changes,
            old=old,
            outer=settings.outer,
            callback=CallbackList(_Recorder(self.work), display),
            checkpoints=self.work.checkpoints if settings.checkpoint_every else None,
            checkpoint_every=settings.checkpoint_every or 1,
            resume=resume and bool(found(self.work.checkpoints)),
            overwrite=not resume,
            features=self.work.path / FEATURES if model.caches_features else None,
        )
        kept, differs = changed.kept, Differences.of(before, self._database(), changed)
        record = UpdateRecord(
            self.before,
            model_fingerprint(model),
            [] if new is None else new.keys,
            [self.items.keys[i] for i in kept[differs.names | differs.codes].tolist()],
            [self.items.keys[i] for i in np.setdiff1d(np.arange(len(self.items)), kept).tolist()],
            {str(o): None if n is None else str(n) for o, n in changes.rename.items()},
        )
        updated = UpdatedRun(
            self.out,
            model,
            record,
            new,
            sorted({str(name) for name in model.known_labels} - set(before.names)),
            int((differs.codes & changed.untouched).sum()),
            int(differs.names.sum()),
            f"all {len(self.items):,}" if old is not None else f"{kept_items:,} kept beside the model ({why})",
            time.perf_counter() - started,
        )
        self._replace(updated, kept)
        return updated

    def _database(self) -> CodedItems:
        labels = self.model.database_labels_
        sets = [tuple(map(str, labels.names_of(k))) for k in range(labels.set_count)]
        return CodedItems(self.model.database_codes_, sets, labels.ids, [str(name) for name in labels.names])

    def _new_items(self, origins: Mapping[int, Origin]) -> NewItems | None:
        settings = self.settings
        if settings.source is None:
            return None
        removed = frozenset(key for update in read_updates(self.folder) for key in update.removed)
        origin = Origin(settings.source, settings.root, settings.labels, settings.prefix)
        return new_items(
            self.model, self.items, origins, origin, removed,
            strict=settings.strict, workers=settings.workers, on_read=self.display.reading,
        )  # fmt: skip

    def _start(self, resume: bool) -> None:
        """Write down what is requested, before training starts."""
        if not resume:
            finish(self.out)
        request = {"before": self.before, "settings": asdict(self.settings)}
        with replacing_file(self.work.path / _REQUEST) as file:
            file.write(json.dumps(request).encode())

    def _replace(self, updated: UpdatedRun, kept: Indices) -> None:
        """Write the updated run in place of the one before, whole or not at all."""
        number = str(len(self.tables.get("update", {})) + 1)
        new = updated.new
        at = np.empty(0, dtype=np.int64) if new is None else new.at
        items = self.items.after(kept, updated.record.added, at)
        tables = {**self.tables, "update": {**self.tables.get("update", {}), number: self._table(updated)}}
        log = find_file(self.folder, LOG)
        with replacing(self.out) as folder:
            updated.model.save(folder)
            run = RunFolder(folder)
            items.save(folder / ITEMS)
            write_updates(folder / UPDATES, [*read_updates(self.folder), updated.record])
            run.write_run(tables)
            lines = [path.read_bytes() for path in (log, self.work.path / LOG) if path.exists()]
            (folder / LOG).write_bytes(b"".join(lines))
            summary = {name: value for name, value in updated.summary().items() if name not in ("model", "classes")}
            run.log("updated", **summary)
            run.log("saved", rows=updated.model.num_distinct_codes, seconds=round(updated.seconds, 3))
            if self.out != self.folder and find_file(self.folder, SPLIT).exists():
                shutil.copyfile(find_file(self.folder, SPLIT), folder / SPLIT)
        if updated.model.replay_ is None:
            (self.out / REPLAY).unlink(missing_ok=True)
        shutil.rmtree(self.out / REPORT, ignore_errors=True)  # of the model before

    def _table(self, updated: UpdatedRun) -> dict[str, Any]:
        """Return the table of run.toml that says what this update was."""
        settings, model = self.settings, self.model
        table: dict[str, Any] = {
            name: getattr(settings, name) for name in ("source", "root", "labels", "outer", "seed", "old")
        }
        table |= {"prefix": settings.prefix or None, "rename": settings.rename or None}
        table |= {"relabelled": len(settings.relabel), "removed": len(updated.record.removed)}
        table |= {"added": len(updated.record.added), "adsh": __version__, "device": str(model.device_)}
        table |= {"before": updated.record.before, "after": updated.record.after}
        if updated.new is not None:
            table["data"] = fingerprint(as_items(updated.new.dataset))
        return table
