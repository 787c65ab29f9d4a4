"""Train a model, evaluate it and index its database, in one call: what `adsh train` runs."""

from __future__ import annotations

import shutil
from contextlib import AbstractContextManager, ExitStack, closing, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import FolderError, MissingExtraError
from ..evaluate import Evaluation, write_report
from ..index.locate import open_existing
from ..models.protocol import HashModel
from ..models.storage_format import INDEX, REPORT
from ..search.ingest import IndexSource, IngestOptions, IngestResult, build_index, ingest
from ..train.distributed import ProcessGroup
from ..train.launch import connect, is_restarted
from ..utils.locks import locked_folder
from ..utils.progress import OnProgress, Progress
from .accuracy import write_accuracy
from .evaluate import EvaluationInputs, evaluate, load_run
from .settings import TrainSettings, default_out
from .train import TrainedRun, is_resumable, train

_COMPLETE = "made by train"  # the note in an index that holds all items of its run


class IndexingInterrupted(KeyboardInterrupt):
    """Ctrl-C while the report or the index was written; the model is saved, and `resume=True` writes the rest."""


@dataclass(frozen=True)
class TrainingArtifacts:
    """What `train_and_index` wrote, and the trained model."""

    settings: TrainSettings
    out: Path
    """The run's folder, which `adsh.load` takes."""
    model: HashModel
    was_complete: bool
    """Whether the run had been finished before."""
    read: dict[str, Any]
    """What the reading of images found: items, unreadable ones, duplicates; {} for a source of arrays."""
    evaluation: Evaluation | None = None
    """None where no report was written."""
    report: Path | None = None
    """The page of the report."""
    index: Path | None = None
    """The folder of the index, which `adsh.open_index` takes."""
    ingested: IngestResult | None = None
    """How many items the index got, and how many were in it before."""
    is_rank0: bool = True
    """False in the other processes of a distributed run: rank 0 alone writes."""

    def summary(self) -> dict[str, Any]:
        """Return what `adsh train --json` prints."""
        last = self.model.history_[-1] if self.model.history_ else {}
        values: dict[str, Any] = {
            "model": str(self.out),
            "bits": self.model.bits,
            "method": self.settings.method,
            "network": self.model.network_name or "no network",
            "points": len(self.model.database_codes_),
            "rows": self.model.num_distinct_codes,
            "outer": int(last.get("outer", 0)),
            "loss": last.get("loss"),
            "seconds": round(self.model.training_seconds, 3),
            "device": str(self.model.device_),
            "was_complete": self.was_complete,
            "already_finished": self.was_complete,  # the older name
        }
        if self.read:
            values["read"] = self.read
        if self.evaluation is not None:
            values["report"] = str(self.report)
            values["map"] = {name: column.map_expected for name, column in self.evaluation.columns.items()}
            values["map_interval"] = {name: column.map_interval for name, column in self.evaluation.columns.items()}
            values["chance"] = {name: column.chance for name, column in self.evaluation.columns.items()}
            if self.evaluation.cross_fit is not None:
                values["cross_fit"] = asdict(self.evaluation.cross_fit)
            values["baselines"] = {
                baseline.name: {name: score.map_expected for name, score in baseline.columns.items()}
                for baseline in self.evaluation.baselines
            }
        if self.index is not None:
            values["index"] = str(self.index)
        return values


def train_and_index(
    source: str | Path | TrainSettings | None = None,
    out: str | Path | None = None,
    *,
    report: bool | None = None,
    index: bool | None = None,
    resume: bool = False,
    overwrite: bool = False,
    progress: bool | str | Progress = "auto",
    **settings: Any,
) -> TrainingArtifacts:
    """Train on a source, evaluate the model and index its database: `adsh train` as one call.

        artifacts = adsh.train_and_index("photos/", "model", bits=32)
        artifacts.evaluation.columns["network"].map_expected
        index = adsh.open_index(artifacts.index)

    Args:
        source: A named source (digits, cifar10, …), a folder with a sub-folder per class, a list of files (.csv, …) or
            arrays (.npz, .npy); or the settings of a whole run. With `resume` it may be left out: those of the run in
            `out` are taken.
        out: The run's folder; by default SOURCE-BITSbits in the working directory.
        report: Evaluate the model on its queries and write OUT/report; None does so for images in files.
        index: Write OUT/index, of the database and the queries; None does so for images in files.
        resume: Continue from the last checkpoint, and write what is missing.
        overwrite: Replace what an earlier run left in `out`.
        progress: "auto" shows progress on a terminal only, True always, False never.
        **settings: Any field of `TrainSettings`, named as the flags of `adsh train`: bits, network, protocol, seed, …;
            `strict=True` leaves no broken file or duplicate out, but raises; `config` is a TOML file of a run, which
            the others take precedence over.

    Returns:
        The model, its evaluation, and the paths of what was written.

    Raises:
        InputError: A setting cannot be used, or an image cannot be read; nothing was trained.
        FolderError: `out` holds another run, and neither `resume` nor `overwrite` is given.
    """
    run_settings = _settings(source, None if out is None else Path(out), resume, settings)
    folder = default_out(run_settings) if out is None else Path(out)
    with closing(Progress.of(progress)) as display, ExitStack() as held:
        with _process_group(run_settings.device) as group:
            group.broadcast_from_rank0(lambda: held.enter_context(_lock(folder)))
            if is_restarted() and group.broadcast_from_rank0(lambda: is_resumable(folder)):
                resume, overwrite = True, False
            trained = train(
                run_settings, folder, resume=resume, overwrite=overwrite, callback=display, on_read=display.reading
            )
        artifacts = TrainingArtifacts(
            run_settings, folder, trained.model, trained.was_complete, trained.read, is_rank0=group.is_rank0
        )
        report, index = (trained.from_files if choice is None else choice for choice in (report, index))
        if not group.is_rank0 or not (report or index):
            return artifacts
        try:
            return _report_and_index(artifacts, trained, display, report=report, index=index)
        except (KeyboardInterrupt, ImportError) as problem:  # the latter: stopped in the middle of an import
            if isinstance(problem, MissingExtraError):
                raise
            raise IndexingInterrupted from None


def _settings(
    source: str | Path | TrainSettings | None, out: Path | None, resume: bool, given: dict[str, Any]
) -> TrainSettings:
    """Return the settings of a call, as `adsh train` takes them from its flags.

    Args:
        source: A source, the settings of a run, or None for the source of `config` or of the resumed run.
        out: The run's folder; None for the default.
        resume: Whether an earlier run is continued.
        given: Other settings by name, and `config`, a TOML file of a run.

    Returns:
        The settings.
    """
    if isinstance(source, TrainSettings):
        return TrainSettings.of(**{**source.table(), **given})
    config = given.pop("config", None)
    values = given if source is None else {**given, "source": str(source)}
    return TrainSettings.resolve(values, None if config is None else Path(config), out, resume=resume)


def _lock(folder: Path) -> AbstractContextManager[None]:
    """Return the lock of a run's folder, which rank 0 holds to the end: two runs would mix their files."""
    taken = FolderError(f"another adsh train is writing to {folder}: wait until it ends, or give another --out")
    return locked_folder(folder, taken)


def _process_group(device: str) -> AbstractContextManager[ProcessGroup]:
    """Return the processes of this run: those that the caller joined, or those that were started with this one."""
    group = ProcessGroup.current()
    return connect(device) if group.is_single else nullcontext(group)


def _report_and_index(
    artifacts: TrainingArtifacts, trained: TrainedRun, display: Progress, *, report: bool, index: bool
) -> TrainingArtifacts:
    """Write OUT/report and OUT/index; those of an earlier run are replaced.

    The index holds the database with its learned codes, and the queries encoded by their labels.

    Args:
        artifacts: What training wrote.
        trained: The model and its data; without a split where the run was complete before.
        display: Shows how many folds are fitted, and how many items are indexed.
        report: Whether to write the report.
        index: Whether to write the index.

    Returns:
        The artifacts, with the report and the index added.
    """
    out = artifacts.out
    if trained.split is None:  # it was complete before: only what is missing is written
        inputs = load_run(out, allow_no_queries=True)
        report = report and not (out / REPORT).exists()
    else:
        dataset, split = trained.dataset, trained.split
        sides = dataset.subset(split.queries), dataset.subset(split.database)
        inputs = EvaluationInputs(trained.model, *sides, split, artifacts.settings)
        shutil.rmtree(out / INDEX, ignore_errors=True)
    if report and len(inputs.queries):
        settings = artifacts.settings
        evaluation = evaluate(inputs, baselines=settings.baselines, folds=settings.folds, on_fold=display.folds)
        artifacts = replace(artifacts, evaluation=evaluation, report=write_report(evaluation, out / REPORT))
        write_accuracy(out, evaluation)
    if index:
        ingested = _complete_index(out / INDEX) or _build_index(inputs, artifacts.settings, out, display.indexing)
        artifacts = replace(artifacts, index=out / INDEX, ingested=ingested)
    return artifacts


def _complete_index(index: Path) -> IngestResult | None:
    """Return how many items a complete index holds, which may have been changed since; None for any other."""
    if not index.exists():
        return None
    with open_existing(str(index)) as opened:
        return IngestResult(0, 0, len(opened), [], 0.0) if opened.get_note(_COMPLETE) else None


def _build_index(inputs: EvaluationInputs, settings: TrainSettings, out: Path, on_ingest: OnProgress) -> IngestResult:
    """Write an index of the database and the queries; one that was interrupted is completed.

    Args:
        inputs: The model, the queries and the database.
        settings: Name the source and its root.
        out: The run's folder.
        on_ingest: Called with the number of items indexed, and of all.

    Returns:
        How many items were added.
    """
    database = IndexSource(settings.source, settings.root, inputs.database)
    ingested = build_index(str(out / INDEX), out, inputs.model, database, progress=on_ingest)
    with open_existing(str(out / INDEX)) as opened:
        if len(inputs.queries):  # they were held out for evaluation, and users search for them too
            queries = IndexSource(settings.source, settings.root, inputs.queries)
            options = IngestOptions(by_label=inputs.model.codes_labels)
            ingested += ingest(opened, inputs.model, queries, options, on_ingest)
        opened.set_note(_COMPLETE, "yes")
    return ingested
