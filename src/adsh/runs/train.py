"""From a source to a trained model in a folder, with everything beside it that the run leaves."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import config
from ..data import NAMED, ArrayDataset, Dataset, Split, as_items, open_source
from ..data.fingerprint import differences, fingerprint
from ..data.prepare import DISK, NONE, RAM
from ..errors import FolderError, InputError
from ..hamming.bits import check_bits
from ..models.adsh import ADSH, load
from ..models.protocol import HashModel
from ..models.storage_format import FEATURES, TENSORBOARD, holds_model
from ..train.callbacks import Callback, CallbackList, TensorBoard
from ..train.checkpoint import found
from ..train.distributed import ProcessGroup
from ..train.feature_cache import forget
from ..utils.device import choose_device
from ..utils.files import read_toml
from .defaults import advise, default_network
from .inputs import Reading, about_reading, draw, made_ready
from .recorder import RunRecorder
from .run_dir import RunFolder
from .settings import check_method, keeps_checkpoints, made, other_values

_READING = ("network", "size", "cache", "cache_size", "skip_bad", "workers")  # what the reading of images depends on
_NO_MATTER = (
    "device",
    "checkpoint_every",
    "tensorboard",
    "cache",
    "cache_size",
    "workers",
    "compile",
)  # to what comes out


@dataclass(frozen=True)
class TrainSettings:
    """What one run is asked to do; None leaves a value to the preset or the data."""

    source: str
    root: str | None = None
    labels: str | None = None  # a .npy of labels, for a source of arrays
    size: int | None = None  # the side of images that lie in files; what the network works on unless given
    skip_bad: bool = False  # go on without files that cannot be read
    skip_copies: bool = False  # go on without database items that are copies of queries
    cache: str = "ram"  # where decoded images are kept: ram, disk, none, or a folder
    cache_size: str | None = None  # such as 8GB
    workers: int | None = None  # threads that read files
    protocol: str = "holdout"
    split_seed: int = 0
    method: str = "adsh"  # or a name of adsh.methods
    options: str | None = None  # of the method: rounds=10,hash_function=ridge
    bits: int = 48
    network: str | None = None
    weights: str | None = None  # a file the network starts from, or "pretrained"
    preset: str = "modern"
    gamma: float | None = None
    samples: int | None = None
    outer: int | None = None
    inner: int | None = None
    batch_size: int | None = None
    lr: float | None = None
    compile: bool | None = None  # on a GPU: whether the network is compiled before training
    parts: int | None = None  # of a mini-batch, for the same bits in any number of processes
    unlabelled: str = "network"
    device: str = "auto"
    seed: int = 0
    checkpoint_every: int = 0  # 0: no checkpoints
    tensorboard: bool = False

    @classmethod
    def of(cls, config: Path | None = None, **flags: Any) -> TrainSettings:
        """The values of the table [train] of a TOML file, and over them the flags that are not None."""
        known = {field.name: field for field in fields(cls)}
        values: dict[str, Any] = {}
        if config is not None:
            table = read_toml(config).get("train")
            if not isinstance(table, dict):
                raise InputError(f"{config} has no table [train]: put the values of the run under it")
            for name, value in table.items():
                if name not in known:
                    raise InputError(f"{config} sets {name!r}: [train] knows {', '.join(known)}")
                values[name] = _checked(value, str(known[name].type), f"{config}: {name}")
        values |= {name: value for name, value in flags.items() if value is not None}
        if "source" not in values:
            raise InputError("no source is given: name one (digits, …), a path, or --config with one in it")
        for name in ("source", "root", "labels", "weights"):  # so that paths hold from anywhere
            path = Path(values.get(name) or "").expanduser()
            if values.get(name) not in (None, *NAMED) and path.exists():
                values[name] = str(path.absolute())
        if values.get("cache") not in (None, RAM, DISK, NONE):
            values["cache"] = str(Path(values["cache"]).expanduser().absolute())
        return cls(**values)


@dataclass(frozen=True)
class Trained:
    """What a run gave."""

    model: HashModel
    dataset: Dataset
    already: bool  # it had been finished before
    read: dict[str, Any]  # what the reading of images found: see `about_reading`
    split: Split | None = None  # where it was drawn now
    from_files: bool = False  # pictures in files, as people have them


def default_out(settings: TrainSettings) -> Path:
    """Where a run goes when nothing is said."""
    method = "" if settings.method == ADSH.name else f"{settings.method}-"
    return Path(f"{Path(settings.source).stem}-{method}{settings.bits}bits")


def can_go_on(out: Path) -> bool:
    """Whether a run that was cut short, or had just been finished, can be resumed there."""
    run = RunFolder(out)
    return run.finished or bool(found(run.checkpoints))


def train(
    settings: TrainSettings,
    out: Path,
    *,
    resume: bool = False,
    overwrite: bool = False,
    watcher: Callback | None = None,
    reading: Reading | None = None,
) -> Trained:
    """Trains as `settings` say and leaves the model in `out`; everything that can be refused is before training.

    `reading` is told how many images are read, of how many, before training starts. Where several processes share the
    run, all call this alike, and the first alone writes and tells.
    """
    check_method(settings)
    run, group = RunFolder(out), ProcessGroup.current()
    if not group.is_rank0:
        watcher = reading = None
    else:
        run.recover()
    if not group.is_single and not keeps_checkpoints(settings.method):
        raise InputError(f"{settings.method} trains in one process: leave --processes out")
    dataset = open_source(settings.source, root=settings.root, labels=settings.labels)
    if dataset.labels is None:
        how = "give --labels FILE.npy, or a source that is labelled"
        if not isinstance(dataset, ArrayDataset):
            how = "put the pictures into a sub-folder a class, or give a .csv of paths and labels"
        raise InputError(f"{settings.source} has no labels: {how}")
    finished = group.broadcast_from_rank0(lambda: _look_at(run, settings, resume=resume, overwrite=overwrite))
    if finished:
        model: Any = load(out, device=settings.device)  # ADSH or a method: their fits take different things
        _check_data(run, dataset, model)
        return Trained(model, dataset, already=True, read={}, from_files=not isinstance(dataset, ArrayDataset))
    check_bits(settings.bits)
    device = choose_device(settings.device).device.type
    in_files = not isinstance(dataset, ArrayDataset)
    if settings.network is None and settings.method == ADSH.name and in_files:
        settings = replace(settings, network=default_network(device))
    asked = {name: getattr(settings, name) for name in _READING}
    if in_files and settings.network is not None and settings.size is None:  # none need be kept larger
        asked["size"] = config.recipe(settings.preset, settings.network).size or None
    with group.local_rank0_first(settings.cache not in (RAM, NONE)):  # which fills the cache for the others
        prepared = made_ready(dataset, **asked, reading=reading)
    drawn = draw(prepared, settings.protocol, settings.split_seed, skip_copies=settings.skip_copies)
    read = about_reading(prepared, drawn)
    database = prepared.dataset.subset(drawn.parts.database)
    items = as_items(database, "the database")
    shape = items.shape
    model = _model(settings, shape, device)
    used = {
        "network": model.network_name,
        "size": shape[0] if in_files else settings.size,
    }
    board = TensorBoard(out / TENSORBOARD) if settings.tensorboard and group.is_rank0 else None
    recorder = RunRecorder(run, {**asdict(settings), **used}, drawn.parts, read, overwrite)
    try:
        model.fit(
            items,
            database.labels,
            **_training(settings, drawn.parts),
            callback=CallbackList(recorder, board, watcher),
            save_to=out,
            **({"features": out / FEATURES} if model.caches_features else {}),
            **_kept(model, settings, run, resume=resume, overwrite=overwrite),
        )
    finally:
        if board is not None:
            board.close()
    if not group.is_rank0:
        return Trained(model, prepared.dataset, already=False, read=read, split=drawn.parts, from_files=in_files)
    forget(out / FEATURES)  # the model has them in view as long as it is at hand
    run.log("saved", rows=model.num_distinct_codes, seconds=round(model.training_seconds, 3))
    return Trained(model, prepared.dataset, already=False, read=read, split=drawn.parts, from_files=in_files)


def _look_at(run: RunFolder, settings: TrainSettings, *, resume: bool, overwrite: bool) -> bool:
    """Whether the run is finished already. Refuses to touch what an earlier one left, unless told to."""
    if resume and overwrite:
        raise InputError("--resume goes on and --overwrite starts anew: give one of them")
    if overwrite:
        return False
    unfinished = found(run.checkpoints)
    if run.finished or (holds_model(run.path) and not unfinished):
        if not resume:
            raise FolderError(f"{run.path} holds a trained model: give another --out, or --overwrite")
        before = run.read_run().get("train", {})
        for field in fields(settings):
            name, value, was = field.name, getattr(settings, field.name), before.get(field.name, field.default)
            if value not in (None, was) and name not in _NO_MATTER:
                raise InputError(f"{run.path} was finished with {name} {was}, not {value}: give another --out")
        return True
    if resume and not keeps_checkpoints(settings.method):
        raise InputError(f"{settings.method} keeps no checkpoints to go on from: start anew with --overwrite")
    if resume and not settings.checkpoint_every:
        raise InputError(
            f"{run.path} has no checkpoints to go on from: start anew with --checkpoint-every 1 and --overwrite"
        )
    if unfinished and not resume:
        raise FolderError(
            f"{run.path} holds an unfinished run ({unfinished[0].name}): go on with --resume, or start anew with "
            "--overwrite"
        )
    return False


def _check_data(run: RunFolder, dataset: Dataset, model: HashModel) -> None:
    """Raises where a finished run was of other data; images in files are not read for it."""
    parts = run.read_split()
    if parts is None or not isinstance(dataset, ArrayDataset):
        return
    parts.check(len(dataset))
    database = dataset.subset(parts.database)
    other = differences(fingerprint(as_items(database), database.labels), model.fingerprint_)
    if other:
        raise InputError(f"{run.path} was finished with other data: {'; '.join(other)}. Give another --out")


def _training(settings: TrainSettings, parts: Split) -> dict[str, Any]:
    """Whom a method learns from, as places in the database: the protocol's training items, where it has some."""
    if settings.method == ADSH.name or not len(parts.training):
        return {}
    if not np.isin(parts.training, parts.database).all():
        raise InputError(
            f"protocol {parts.protocol} trains on items beside the database, and {settings.method} takes them from it: "
            "choose paper, 59k, 50k or holdout"
        )
    return {"train": np.searchsorted(parts.database, parts.training)}


def _kept(
    model: HashModel, settings: TrainSettings, run: RunFolder, *, resume: bool, overwrite: bool
) -> dict[str, Any]:
    """How checkpoints are kept, for those that keep them."""
    if not model.keeps_checkpoints:
        return {}
    return {
        "checkpoints": run.checkpoints if settings.checkpoint_every else None,
        "checkpoint_every": settings.checkpoint_every or 1,
        "resume": resume,
        "overwrite": overwrite,
    }


def _model(settings: TrainSettings, shape: tuple[int, ...], device: str) -> HashModel:
    if settings.method != ADSH.name:
        model = made(settings, shape)
        if model.network_name is not None:
            advise(model.network_name, shape, settings.source, device, explicit=settings.network is not None)
        return model
    network = settings.network or ("mlp" if len(shape) == 1 else "tiny")
    advise(network, shape, settings.source, device, explicit=settings.network is not None)
    given = {name: getattr(settings, name) for name in ("gamma", "samples", "outer", "inner", "batch_size", "lr")}
    return ADSH(
        settings.bits,
        network=network,
        network_options={"weights": settings.weights} if settings.weights else None,
        preset=settings.preset,
        recipe=other_values(settings),
        unlabelled=settings.unlabelled,
        device=settings.device,
        seed=settings.seed,
        progress=False,
        **given,
    )


def _checked(value: Any, kind: str, what: str) -> Any:
    """A TOML value of the type the field has."""
    wanted = {"str": str, "int": int, "float": (int, float), "bool": bool}[kind.split(" ")[0]]
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):  # type: ignore[arg-type]  # a type or some
        raise InputError(f"{what} is {value!r}: give {kind.split(' ')[0]}")
    return float(value) if kind.startswith("float") else value
