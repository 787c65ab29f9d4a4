"""Evaluate a trained model on the split of its run, or on one drawn anew."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..data import Dataset, Split, as_items, open_source
from ..data.fingerprint import differences, fingerprint
from ..data.match_input import resize_for_model
from ..errors import InputError
from ..evaluate import Evaluation, evaluate_baselines, evaluate_model
from ..evaluate.evaluation import coded_by
from ..evaluate.ties import Divisor
from ..labels import LabelSets
from ..models.adsh import load
from ..models.protocol import HashModel
from ..models.storage_format import RUN
from ..utils.files import find_file
from ..utils.progress import OnProgress
from .cross_fit import cross_fit
from .input_features import input_features
from .inputs import draw_split, prepare_inputs
from .run_dir import RunFolder
from .settings import TrainSettings, current_names
from .updated_database import renamed_labels, updated_database


@dataclass(frozen=True)
class EvaluationInputs:
    """A model, and the queries and the database to evaluate it on."""

    model: HashModel
    queries: Dataset
    database: Dataset
    split: Split
    settings: TrainSettings | None = None
    """Of the run; None where nothing says them."""
    is_own_split: bool = True
    """Whether they are of the run that trained the model."""


def load_run(
    folder: Path,
    *,
    data: str | None = None,
    root: str | None = None,
    labels: str | None = None,
    protocol: str | None = None,
    split_seed: int | None = None,
    device: str | None = None,
    allow_no_queries: bool = False,
) -> EvaluationInputs:
    """Return the model of a run with its queries and database.

    Args:
        folder: The run's folder.
        data: A source; None for the one it was trained on.
        root: Where the files of a named source are.
        labels: A .npy of labels, for a source of arrays.
        protocol: Draw this split; None for the run's own.
        split_seed: The seed of a split that is drawn.
        device: Where the model is loaded to.
        allow_no_queries: Accept a run without queries, which cannot be evaluated.

    Returns:
        The model, the queries, the database and the split.

    Raises:
        InputError: The database is not the one that the model learned, or there are no queries.
    """
    run, is_own_split = RunFolder(folder), data is None and protocol is None and split_seed is None
    model = load(folder, device=device)
    trained = current_names(run.read_run().get("train", {}))
    if data is None:
        if "source" not in trained:
            raise InputError(f"{folder} does not say what it was trained on: give --data")
        data, root, labels = trained["source"], root or trained.get("root"), labels or trained.get("labels")
    source = open_source(data, root=root, labels=labels)
    if source.labels is None:
        raise InputError(f"{data} has no labels to evaluate by: give --labels FILE.npy, or a source with labels")
    split = run.read_split() if protocol is None and split_seed is None else None
    dataset = resize_for_model(source, model.input_shape_, trained.get("workers"))
    if split is None:
        size = dataset.image_size
        dataset, split = _draw_anew(source, size, trained, protocol, split_seed)
    if not allow_no_queries and not len(split.queries):
        raise InputError(f"protocol {split.protocol!r} leaves no queries: train with one that does, such as holdout")
    split.check(len(dataset))
    queries = dataset.subset(split.queries)
    if is_own_split and "update" in run.read_run():
        database, queries.labels = updated_database(run, model), renamed_labels(run, queries)
        return EvaluationInputs(model, queries, database, split, _settings(run))
    database = dataset.subset(split.database)
    different = differences(fingerprint(as_items(database), database.labels), model.fingerprint_)
    if model.fingerprint_ and different:
        raise InputError(
            f"the database of this data and split is not the one the model learned: {'; '.join(different)}. "
            "Give the --data, --protocol and --split-seed it was trained with"
        )
    return EvaluationInputs(model, queries, database, split, _settings(run), is_own_split)


def _settings(run: RunFolder) -> TrainSettings | None:
    """Return the settings of a run; None where it has no run.toml."""
    path = find_file(run.path, RUN)
    return TrainSettings.of(path) if path.exists() else None


def _draw_anew(
    source: Dataset, size: int | None, trained: dict[str, Any], protocol: str | None, seed: int | None
) -> tuple[Dataset, Split]:
    """Draw a split, with what is not given taken from the settings of the run.

    Args:
        source: The source as opened.
        size: The side of the images; None for arrays.
        trained: The settings of the run.
        protocol: None for the run's own.
        seed: None for the run's own.

    Returns:
        All items, and the split.
    """
    options = {name: trained[name] for name in ("cache", "cache_size", "skip_bad", "workers") if name in trained}
    prepared = prepare_inputs(source, size=size, **options)
    checked = draw_split(
        prepared,
        protocol or trained.get("protocol", "holdout"),
        trained.get("split_seed", 0) if seed is None else seed,
        drop_duplicates=trained.get("drop_duplicates", True),
    )
    return prepared.dataset, checked.split


def evaluate(
    inputs: EvaluationInputs,
    *,
    name: str | None = None,
    k: int | None = None,
    divisor: Divisor = "retrieved",
    cases: int = 5,
    baselines: bool = True,
    folds: int | None = 0,
    on_fold: OnProgress | None = None,
) -> Evaluation:
    """Return how well the queries find items of their class, by learned codes and by the network's.

    Args:
        inputs: The model, its queries and its database.
        name: What the report calls the model.
        k: Mean average precision over the first k, not over all.
        divisor: With `k`: "retrieved" or "min".
        cases: Queries that are shown with what they found.
        baselines: Evaluate float cosine and a linear classifier on the same features too, where the model takes
            features: up to a second for thousands of items of few classes, ten for many of both.
        folds: Cross-fit in so many folds, see `cross_fit`; 0 for none, None where the held-out part is small.
        on_fold: Called with the number of folds done, and of all.

    Returns:
        The metrics of each coding, and the queries shown.
    """
    queries, database, split = inputs.queries, inputs.database, inputs.split
    about: dict[str, Any] = {"data": database.name, "protocol": split.protocol, "split_seed": split.seed}
    with input_features(inputs.model, queries, database) as features:
        evaluation = evaluate_model(
            inputs.model, queries, queries.labels, database, database.labels,
            name=name, k=k, divisor=divisor, cases=cases, about=about,
        )  # fmt: skip
        taken = features()
    if inputs.settings is not None:
        sides = LabelSets.of(queries.labels), LabelSets.of(database.labels)
        fitted, why = cross_fit(
            inputs.model, inputs.settings, taken, sides, folds=folds, k=k, divisor=divisor, on_fold=on_fold
        )
        evaluation = replace(evaluation, cross_fit=fitted, cross_fit_missing=why)
    if taken.missing is not None or not baselines:
        return replace(evaluation, baselines_missing=taken.missing or "they were declined")
    found = evaluate_baselines(
        taken.queries, taken.database, queries.labels, database.labels,
        k=k, divisor=divisor, encoded=coded_by(inputs.model),
    )  # fmt: skip
    return replace(evaluation, baselines=found)
