"""Train a model on a source and write its run folder."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import config
from ..data import Dataset, Prepared, Split, as_items, open_source
from ..data.fingerprint import differences, fingerprint
from ..data.prepare import NONE, RAM
from ..errors import FolderError, InputError
from ..hamming.bits import check_bits
from ..labels import LabelSets
from ..models.adsh import ADSH, load
from ..models.protocol import HashModel
from ..models.storage_format import FEATURES, TENSORBOARD, holds_model
from ..train.callbacks import Callback, CallbackList, TensorBoard
from ..train.checkpoint import found
from ..train.distributed import ProcessGroup
from ..train.feature_cache import forget
from ..utils.device import choose_device
from ..utils.progress import OnProgress
from .class_warnings import warn_of_few_bits, warn_of_shared_codes
from .database import RunItems
from .defaults import advise, default_network
from .inputs import draw_split, prepare_inputs, reading_summary
from .recorder import RunRecorder
from .run_dir import RunFolder
from .settings import (
    TrainSettings,
    build_method,
    check_method,
    current_names,
    keeps_checkpoints,
)

_READ_SETTINGS = ("network", "size", "cache", "cache_size", "skip_bad", "workers")  # what reading images depends on
_NO_EFFECT = (
    "device",
    "checkpoint_every",
    "tensorboard",
    "cache",
    "cache_size",
    "workers",
    "compile",
    "baselines",
    "folds",
)  # on the result


@dataclass(frozen=True)
class TrainedRun:
    """A trained model, and the data it was trained on."""

    model: HashModel
    dataset: Dataset
    was_complete: bool
    """Whether the run had been finished before."""
    read: dict[str, Any]
    """What the reading of images found: see `inputs.reading_summary`."""
    from_files: bool
    """Whether the source is images in files, and not arrays."""
    split: Split | None = None
    """The split that was drawn; None where the run had been finished before."""


def is_resumable(out: Path) -> bool:
    """Return whether this folder holds a run that `resume` continues, or that is complete."""
    run = RunFolder(out)
    return run.finished or bool(found(run.checkpoints))


def train(
    settings: TrainSettings,
    out: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    callback: Callback | None = None,
    on_read: OnProgress | None = None,
) -> TrainedRun:
    """Train as the settings say and write the model to `out`; whatever can be refused is refused before training.

    Where several processes share the run, all call this with the same arguments, and rank 0 alone writes and reports.

    Args:
        settings: The whole run.
        out: The run's folder.
        resume: Continue from the last checkpoint; a complete run is returned as it is.
        overwrite: Replace what an earlier run left in `out`.
        callback: Called at the start and after each outer iteration.
        on_read: Called with the number of images read, and of all, before training.

    Returns:
        The model, its data, and the split that was drawn.

    Raises:
        InputError: A setting cannot be used, or an image cannot be read.
        FolderError: `out` holds another run, and neither `resume` nor `overwrite` is given.
    """
    check_method(settings)
    run, group = RunFolder(out), ProcessGroup.current()
    if group.is_rank0:
        run.recover()
    else:
        callback = on_read = None
    if not group.is_single and not keeps_checkpoints(settings.method):
        raise InputError(f"{settings.method} trains in one process: leave --processes out")
    dataset = _open_labelled(settings)
    from_files = dataset.array is None
    if group.broadcast_from_rank0(lambda: check_output_dir(run, settings, resume=resume, overwrite=overwrite)):
        model: Any = load(out, device=settings.device)  # ADSH or a method: their fits take different arguments
        _check_data(run, dataset, model)
        return TrainedRun(model, dataset, was_complete=True, read={}, from_files=from_files)
    check_bits(settings.bits)
    device = choose_device(settings.device).device.type
    if settings.network is None and settings.method == ADSH.name and from_files:
        settings = replace(settings, network=default_network(device))
    prepared = _prepare(settings, dataset, group, on_read)
    checked = draw_split(
        prepared, settings.protocol, settings.split_seed, drop_duplicates=settings.drop_duplicates
    )  # fmt: skip
    read = reading_summary(prepared, checked)
    database = prepared.dataset.subset(checked.split.database)
    items = as_items(database, "the database")
    model = build_method(settings, items.shape)
    labels = LabelSets.of(database.labels)
    if group.is_rank0:
        warn_of_few_bits(settings.bits, labels)
    if model.network_name is not None:
        advise(model.network_name, items.shape, settings.source, device, explicit=settings.network is not None)
    table = settings.table() | {"network": model.network_name}
    if from_files:
        table["size"] = items.shape[0]
    board = TensorBoard(out / TENSORBOARD) if settings.tensorboard and group.is_rank0 else None
    run_items = RunItems.of_split(dataset, checked.split)
    recorder = RunRecorder(run, table, checked.split, read, run_items, overwrite)
    try:
        model.fit(
            items,
            database.labels,
            **_training_items(settings, checked.split),
            callback=CallbackList(recorder, board, callback),
            save_to=out,
            **({"features": out / FEATURES} if model.caches_features else {}),
            **checkpoint_kwargs(model, settings, run, resume=resume, overwrite=overwrite),
        )
    finally:
        if board is not None:
            board.close()
    if group.is_rank0:
        warn_of_shared_codes(model, labels)
        if settings.checkpoint_every is None:  # nobody asked for them, and the model is there
            run.remove_checkpoints()
        forget(out / FEATURES)  # the model keeps them mapped as long as it lives
        run.log("saved", rows=model.num_distinct_codes, seconds=round(model.training_seconds, 3))
    return TrainedRun(model, prepared.dataset, False, read, from_files, checked.split)


def check_output_dir(run: RunFolder, settings: TrainSettings, *, resume: bool, overwrite: bool) -> bool:
    """Check that a run may be written to a folder, and whether it is complete already.

    Args:
        run: The folder that the run is to be written to.
        settings: The run that is requested.
        resume: Whether an earlier run there may be continued.
        overwrite: Whether it may be replaced.

    Returns:
        True for a complete run that `resume` accepts; False where there is something to train.

    Raises:
        FolderError: An earlier run is there, and neither is allowed.
        InputError: It cannot be resumed, or was trained with other settings.
    """
    if resume and overwrite:
        raise InputError("--resume continues a run and --overwrite starts over: give one of them")
    if overwrite:
        return False
    unfinished = found(run.checkpoints)
    if run.finished or (holds_model(run.path) and not unfinished):
        if not resume:
            raise FolderError(f"{run.path} holds a trained model: give another --out, or --overwrite")
        _check_same_settings(run, settings)
        return True
    if resume and not keeps_checkpoints(settings.method):
        raise InputError(f"{settings.method} writes no checkpoints to resume from: start over with --overwrite")
    if resume and not settings.checkpoint_every and not unfinished:
        raise InputError(
            f"{run.path} has no checkpoints to resume from: start over with --checkpoint-every 1 and --overwrite"
        )
    if unfinished and not resume:
        raise FolderError(
            f"{run.path} holds an unfinished run ({unfinished[0].name}): continue it with --resume, or start over with "
            "--overwrite"
        )
    return False


def checkpoint_kwargs(
    model: HashModel, settings: TrainSettings, run: RunFolder, *, resume: bool, overwrite: bool
) -> dict[str, Any]:
    """Return the arguments of `fit` about checkpoints; {} for a method that writes none.

    Args:
        model: The model to fit.
        settings: Say how often to write a checkpoint.
        run: The run's folder.
        resume: Continue from the last checkpoint.
        overwrite: Delete the checkpoints of an earlier run.

    Returns:
        Keyword arguments of `fit`.
    """
    if not model.keeps_checkpoints:
        return {}
    return {
        "checkpoints": None if settings.checkpoint_every == 0 else run.checkpoints,
        "checkpoint_every": settings.checkpoint_every or (1 if settings.checkpoint_every == 0 else None),
        "resume": resume,
        "overwrite": overwrite,
    }


def _open_labelled(settings: TrainSettings) -> Dataset:
    """Return the source, which must have labels."""
    dataset = open_source(settings.source, root=settings.root, labels=settings.labels)
    if dataset.labels is None:
        remedy = "give --labels FILE.npy, or a source with labels"
        if dataset.array is None:
            remedy = "put the images into a sub-folder per class, or give a .csv of paths and labels"
        raise InputError(f"{settings.source} has no labels: {remedy}")
    return dataset


def _prepare(settings: TrainSettings, dataset: Dataset, group: ProcessGroup, on_read: OnProgress | None) -> Prepared:
    """Return the items as the network takes them.

    Args:
        settings: How items are read and cached.
        dataset: The source as opened.
        group: The processes of the run.
        on_read: Called with the number of images read, and of all.

    Returns:
        The items, and what was found in reading them.
    """
    options = {name: getattr(settings, name) for name in _READ_SETTINGS}
    in_files = dataset.array is None
    if in_files and settings.network is not None and settings.size is None:  # the cache need not hold larger ones
        options["size"] = config.recipe(settings.preset, settings.network).size or None
    with group.local_rank0_first(settings.cache not in (RAM, NONE)):  # which fills the cache for the others
        return prepare_inputs(dataset, **options, on_read=on_read)


def _check_same_settings(run: RunFolder, settings: TrainSettings) -> None:
    """Raise where a complete run was trained with other settings than these."""
    trained = current_names(run.read_run().get("train", {}))
    for field in fields(settings):
        name, value, before = field.name, getattr(settings, field.name), trained.get(field.name, field.default)
        if value not in (None, before) and name not in _NO_EFFECT:
            raise InputError(f"{run.path} was trained with {name} {before}, not {value}: give another --out")


def _check_data(run: RunFolder, dataset: Dataset, model: HashModel) -> None:
    """Raise where a complete run was trained on other data; images in files are not read for this.

    Args:
        run: The folder of the complete run.
        dataset: The source as opened.
        model: The model of the run.
    """
    split = run.read_split()
    if split is None or dataset.array is None:
        return
    split.check(len(dataset))
    database = dataset.subset(split.database)
    different = differences(fingerprint(as_items(database), database.labels), model.fingerprint_)
    if different:
        raise InputError(f"{run.path} was trained on other data: {'; '.join(different)}. Give another --out")


def _training_items(settings: TrainSettings, split: Split) -> dict[str, Any]:
    """Return the argument of `fit` with the database items that a method learns from, where the protocol has any."""
    if settings.method == ADSH.name or not len(split.training):
        return {}
    if not np.isin(split.training, split.database).all():
        raise InputError(
            f"protocol {split.protocol} trains on items outside the database, but {settings.method} takes them from "
            "it: choose paper, 59k, 50k or holdout"
        )
    return {"train": np.searchsorted(split.database, split.training)}
