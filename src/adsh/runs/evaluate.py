"""A trained model judged on a source, by the split of its run or by a protocol drawn anew."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..data import Dataset, ResizedDataset, Split, as_items, open_source
from ..data.fingerprint import differences, fingerprint
from ..data.match_input import resize_for_model
from ..errors import InputError
from ..evaluate import Evaluation, evaluate_model
from ..evaluate.ties import Divisor
from ..models.adsh import load
from ..models.protocol import HashModel
from .inputs import draw, made_ready
from .run_dir import RunFolder


@dataclass(frozen=True)
class Judged:
    """A model with the two sides of its split."""

    model: HashModel
    queries: Dataset
    database: Dataset
    split: Split


def open_run(
    folder: Path,
    *,
    data: str | None = None,
    root: str | None = None,
    labels: str | None = None,
    protocol: str | None = None,
    split_seed: int | None = None,
    device: str | None = None,
    to_judge: bool = True,
) -> Judged:
    """The model and the split it is to be judged on. Refused where the database is not the one it learned.

    A run that left no queries is refused too, unless it is not to be judged.
    """
    run = RunFolder(folder)
    model = load(folder, device=device)
    trained = run.read_run().get("train", {})
    if data is None:
        if "source" not in trained:
            raise InputError(f"{folder} does not say what it was trained on: give --data")
        data, root, labels = trained["source"], root or trained.get("root"), labels or trained.get("labels")
    source = open_source(data, root=root, labels=labels)
    if source.labels is None:
        raise InputError(f"{data} has no labels to judge by: give --labels FILE.npy, or a source that is labelled")
    parts = run.read_split() if protocol is None and split_seed is None else None
    dataset = resize_for_model(source, model.input_shape_, trained.get("workers"))
    if parts is None:
        chosen = protocol or trained.get("protocol", "holdout")
        asked = {name: trained[name] for name in ("cache", "cache_size", "skip_bad", "workers") if name in trained}
        size = dataset.size if isinstance(dataset, ResizedDataset) else None
        prepared = made_ready(source, size=size, **asked)
        seed = trained.get("split_seed", 0) if split_seed is None else split_seed
        dataset, parts = (
            prepared.dataset,
            draw(prepared, chosen, seed, skip_copies=trained.get("skip_copies", False)).parts,
        )
    if to_judge and not len(parts.queries):
        raise InputError(f"protocol {parts.protocol!r} leaves no queries: train with one that does, such as holdout")
    parts.check(len(dataset))
    database = dataset.subset(parts.database)
    other = differences(fingerprint(as_items(database), database.labels), model.fingerprint_)
    if model.fingerprint_ and other:
        raise InputError(
            f"the database of this data and split is not the one the model learned: {'; '.join(other)}. "
            "Give the --data, --protocol and --split-seed it was trained with"
        )
    return Judged(model, dataset.subset(parts.queries), database, parts)


def evaluate(
    judged: Judged, *, name: str | None = None, k: int | None = None, divisor: Divisor = "retrieved", cases: int = 5
) -> Evaluation:
    """Both columns, with what was run."""
    about: dict[str, Any] = {"data": judged.database.name, "protocol": judged.split.protocol}
    about["split_seed"] = judged.split.seed
    queries, database = judged.queries, judged.database
    return evaluate_model(
        judged.model, queries, queries.labels, database, database.labels,
        name=name, k=k, divisor=divisor, cases=cases, about=about,
    )  # fmt: skip
