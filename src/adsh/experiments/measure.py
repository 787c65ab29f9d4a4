"""The usual measurement of a cell: a method is trained, then evaluated on learned and on hashed database codes."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import __version__
from ..config import COMPILE_MODE, recipe, source_values
from ..evaluate import LEARNED, NEW, Evaluation, evaluate_model
from ..evaluate.evaluation import coded_by
from ..methods import DEEP, create
from ..methods.sdh import SDH
from ..models.adsh import ADSH
from ..models.protocol import HashModel
from .cell import Cell, Record
from .experiment_data import ExperimentData, Indices, take
from .iterations import total_iterations
from .paper import paper_map

KS = (1, 100, 200, *range(400, 2001, 200))  # cut-offs of the precision curves


class Training(NamedTuple):
    """The database that a model was trained on, as indices and as items, and the duration of `fit`."""

    database: Indices
    items: Any
    seconds: float


def build_model(cell: Cell, data: ExperimentData) -> Any:
    """Return the untrained model of a cell."""
    options = dict(cell.options)
    if cell.method == "adsh" or cell.method in DEEP:
        options["device"] = data.config.device
        # set explicitly, since the default depends on the length of training: compared cells are compiled in one way
        default = recipe(options["preset"], options["network"]).compile
        options["recipe"] = {
            **source_values(options["preset"], data.config.dataset),
            **{name: options.pop(name) for name in ("ema_decay",) if name in options},
            "compile": COMPILE_MODE if data.config.compile else default,
        }
        options["network_options"] = {name: options.pop(name) for name in ("weights", "size") if name in options}
    options |= {"seed": cell.seed, "progress": False}
    return ADSH(cell.bits, **options) if cell.method == "adsh" else create(cell.method, bits=cell.bits, **options)


def train(cell: Cell, data: ExperimentData, model: Any) -> Training:
    """Train a model on the cell's part of the database.

    Args:
        cell: The cell.
        data: The data of the experiment.
        model: The untrained model, see `build_model`.

    Returns:
        The database that the model was given, and the duration.
    """
    items, (_, database, training) = data.inputs(cell), data.sides(cell)
    if cell.points is not None:
        sample = np.random.default_rng([cell.seed, 2]).choice(len(database), cell.points, replace=False)
        training = database[np.sort(sample)]
        if cell.method == "adsh" or cell.method.endswith("_d"):
            database = training  # these are trained on the whole database
    database_labels, database_items = data.labels.take(database), take(items, database)
    if model.name == SDH.name:  # a small collection has fewer items than anchors
        labels = data.labels.take(database if cell.method.endswith("_d") else training)
        model.anchors = min(model.anchors, int((~labels.empty[labels.ids]).sum()))
    if cell.method in DEEP and data.config.outer is not None and cell.option("outer") == data.config.outer:
        count = len(database) if cell.method.endswith("_d") else len(training)
        model.outer = total_iterations(data.config, cell.method, count, len(database))
    started = time.perf_counter()
    if cell.method == "adsh":
        model.fit(database_items, database_labels)
    else:
        model.fit(database_items, database_labels, train=np.searchsorted(database, training))
    return Training(database, database_items, time.perf_counter() - started)


def evaluate_cell(cell: Cell, data: ExperimentData) -> Record:
    """Train and evaluate: MAP for every order of ties, precision at k, precision and recall by radius, and the time."""
    model = build_model(cell, data)
    training = train(cell, data, model)
    queries, database = data.sides(cell).queries, training.database
    evaluation = evaluate_model(
        model, take(data.inputs(cell), queries), data.labels.take(queries), training.items, data.labels.take(database),
        k=data.k, cases=0,
    )  # fmt: skip
    learned, hashed = evaluation.columns[LEARNED], evaluation.columns[coded_by(model)]
    precision_at = dict(zip(learned.ks, learned.precision, strict=True))
    return {
        **describe_cell(cell, data),
        "map_expected": learned.map_expected,
        "map_stable": learned.map_stable,
        "map_network": hashed.map_expected,
        **new_items(evaluation),
        "paper": paper_map(data.config.dataset, cell.method, cell.bits),
        "seconds": training_seconds(model, training.seconds),
        "device": str(model.device_),
        "commit": code_version(),
        "map_lowest": learned.map_lowest,
        "map_highest": learned.map_highest,
        "distinct_codes": learned.distinct_codes,
        "database": len(database),
        "k": data.k,
        "ks": [k for k in KS if k in precision_at],
        "precision": [precision_at[k] for k in KS if k in precision_at],
        "radius_precision": learned.radius_precision,
        "radius_recall": learned.radius_recall,
    }


def new_items(evaluation: Evaluation) -> Record:
    """Return what a record says of items that no training saw, and how sure its figures are; {} without such items."""
    if NEW not in evaluation.columns:
        return {}
    learned, new = evaluation.columns[LEARNED], evaluation.columns[NEW]
    return {
        "map_new": new.map_expected,
        "map_interval": learned.map_interval,
        "map_new_interval": new.map_interval,
        "map_classes": learned.map_classes,
        "map_new_classes": new.map_classes,
        "chance": learned.chance,
    }


def describe_cell(cell: Cell, data: ExperimentData) -> Record:
    """Return the part of a record that says which cell it is of."""
    options = {name: value for name, value in cell.options if name not in ("network", "preset", "weights")}
    return {
        "method": cell.method, "bits": cell.bits, "seed": cell.seed, "network": cell.option("network"),
        "preset": cell.option("preset"), "options": options, "points": cell.points, "protocol": data.protocol,
    }  # fmt: skip


def training_seconds(model: HashModel, fit_seconds: float) -> float:
    """Return the duration of training alone, without compilation before it and encoding of the database after it."""
    return model.training_seconds or fit_seconds


def code_version() -> str:
    """Return the commit in a clone of the repository, else the version of the package."""
    if "ADSH_COMMIT" in os.environ:
        return os.environ["ADSH_COMMIT"]
    folder = Path(__file__).resolve().parent
    try:
        command = ["git", "-C", str(folder), "rev-parse", "--short", "HEAD"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return __version__
    return result.stdout.strip() if result.returncode == 0 else __version__
