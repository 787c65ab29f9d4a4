"""One cell measured: a method trained and judged in both columns, as plain figures that are kept."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np

from .. import __version__
from ..config import COMPILE_MODE, recipe
from ..evaluate import LEARNED, evaluate_model
from ..evaluate.evaluation import coded_by
from ..methods import DEEP, create
from ..methods.sdh import SDH
from ..models.adsh import ADSH
from ..models.protocol import HashModel
from .cell import Cell
from .experiment_config import ExperimentData, at
from .paper import printed

Record = dict[str, Any]

KS = (1, 100, 200, *range(400, 2001, 200))  # places of the precision curves


def model_of(cell: Cell, data: ExperimentData) -> Any:
    """The method of a cell, to be fitted."""
    options = dict(cell.options)
    if cell.method == "adsh" or cell.method in DEEP:
        options["device"] = data.config.device
        # said, not left to the length of training: cells that are compared are compiled alike
        usual = recipe(options["preset"], options["network"]).compile
        options["recipe"] = {"compile": COMPILE_MODE if data.config.compile else usual}
        options["network_options"] = {name: options.pop(name) for name in ("weights", "size") if name in options}
    options |= {"seed": cell.seed, "progress": False}
    return ADSH(cell.bits, **options) if cell.method == "adsh" else create(cell.method, bits=cell.bits, **options)


def fitted(cell: Cell, data: ExperimentData, model: Any) -> tuple[Any, Any, float]:
    """The model trained on its part of the database; the database it was given, and the seconds it took."""
    items, (_, database, training) = data.seen_by(cell), data.sides(cell)
    if cell.points is not None:
        drawn = np.random.default_rng([cell.seed, 2]).choice(len(database), cell.points, replace=False)
        training = database[np.sort(drawn)]
        if cell.method == "adsh" or cell.method.endswith("_d"):
            database = training  # these learn from all that they get
    known, given = data.labels.take(database), at(items, database)
    if model.name == SDH.name:  # a small collection has fewer items than anchors
        seen = data.labels.take(database if cell.method.endswith("_d") else training)
        model.anchors = min(model.anchors, int((~seen.empty[seen.ids]).sum()))
    started = time.perf_counter()
    if cell.method == "adsh":
        model.fit(given, known)
    else:
        model.fit(given, known, train=np.searchsorted(database, training))
    return database, given, time.perf_counter() - started


def judged(cell: Cell, data: ExperimentData) -> Record:
    """Trains and judges: MAP in every way, precision at k, precision and recall by radius, and the time."""
    model = model_of(cell, data)
    database, given, seconds = fitted(cell, data, model)
    asking = data.sides(cell)[0]
    items = data.seen_by(cell)
    evaluation = evaluate_model(
        model, at(items, asking), data.labels.take(asking), given, data.labels.take(database), k=data.k, cases=0
    )
    learned, network = evaluation.columns[LEARNED], evaluation.columns[coded_by(model)]
    at_k = dict(zip(learned.ks, learned.precision, strict=True))
    return {
        **about(cell, data),
        "map_expected": learned.map_expected,
        "map_stable": learned.map_stable,
        "map_network": network.map_expected,
        "paper": printed(data.config.dataset, cell.method, cell.bits),
        "seconds": training_time(model, seconds),
        "device": str(model.device_),
        "commit": version_of_code(),
        "map_lowest": learned.map_lowest,
        "map_highest": learned.map_highest,
        "distinct_codes": learned.distinct_codes,
        "database": len(database),
        "k": data.k,
        "ks": [k for k in KS if k in at_k],
        "precision": [at_k[k] for k in KS if k in at_k],
        "radius_precision": learned.radius_precision,
        "radius_recall": learned.radius_recall,
    }


def about(cell: Cell, data: ExperimentData) -> Record:
    """What the cell is, as every record begins."""
    options = {name: value for name, value in cell.options if name not in ("network", "preset", "weights")}
    return {
        "method": cell.method, "bits": cell.bits, "seed": cell.seed, "network": cell.option("network"),
        "preset": cell.option("preset"), "options": options, "points": cell.points, "protocol": data.protocol,
    }  # fmt: skip


def training_time(model: HashModel, seconds: float) -> float:
    """Of the learning alone: compiling for a GPU before it, and coding the database after it, are not in it."""
    return model.training_seconds or seconds


def version_of_code() -> str:
    """The commit, where this is a clone; else the version."""
    if "ADSH_COMMIT" in os.environ:
        return os.environ["ADSH_COMMIT"]
    here = Path(__file__).resolve().parent
    try:
        asked = ["git", "-C", str(here), "rev-parse", "--short", "HEAD"]
        found = subprocess.run(asked, capture_output=True, text=True, check=False)
    except OSError:
        return __version__
    return found.stdout.strip() if found.returncode == 0 else __version__
