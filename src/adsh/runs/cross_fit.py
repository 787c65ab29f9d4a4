"""Cross-fit a run: fit it again without each fold of the items, which are then its queries."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from ..config import FROZEN_PREFIX
from ..data import as_items
from ..errors import AdshError, AdshWarning, InputError, first_line
from ..evaluate.columns import LEARNED
from ..evaluate.cross_fit import CrossFit, assign_folds, choose_folds, evaluate_fold, is_small, pool
from ..evaluate.evaluation import coded_by
from ..evaluate.ties import Divisor
from ..labels import LabelSets
from ..models.adsh import ADSH
from ..models.protocol import HashModel
from ..train.distributed import ProcessGroup
from ..utils.progress import OnProgress
from .input_features import InputFeatures
from .settings import TrainSettings, build_method

_MOST_SECONDS = 60.0  # of all fits, unless folds are requested

Sides = tuple[LabelSets, LabelSets]  # labels of the queries and of the database


def cross_fit(
    model: HashModel,
    settings: TrainSettings,
    features: InputFeatures,
    sides: Sides,
    *,
    folds: int | None = None,
    k: int | None = None,
    divisor: Divisor = "retrieved",
    on_fold: OnProgress | None = None,
) -> tuple[CrossFit | None, str | None]:
    """Estimate a run's accuracy from further fits, each without a fold of all items, queries and database alike.

    A network on features, or on those of a frozen network, takes seconds to fit. Without `folds` it is done where the
    held-out part is small (`is_small`) and all fits together take a minute at most.

    Args:
        model: The model of the run; says how long a fit takes.
        settings: Of the run; each fit has the same.
        features: What the model takes, of the queries and of the database.
        sides: The labels of both.
        folds: How many; 0 or 1 for none, None to decide by the size of the held-out part.
        k: MAP over the first k.
        divisor: With `k`, as of `evaluate`.
        on_fold: Called with the number of folds done, and of all.

    Returns:
        The estimate or None; and why there is none, where a user might expect one.
    """
    if folds is not None and folds < 0:
        raise InputError(f"folds={folds}: give 2 or more, or 0 for none")
    if folds in (0, 1) or (folds is None and not is_small(*sides)):
        return None, None
    reason = features.missing or _reason(settings, sides)
    if reason is not None:
        return None, reason
    labels = _joined(*sides)
    count = choose_folds(labels) if folds is None else folds
    seconds = count * model.training_seconds
    if folds is None and seconds > _MOST_SECONDS:
        return None, f"{count} fits take about {seconds:,.0f} s: --folds {count} requests them"
    both = [_flat(side) for side in (features.queries, features.database)]
    items = np.concatenate(both)
    labelled = np.flatnonzero(~labels.empty[labels.ids])
    if len(labelled) < 2 * count:
        return None, f"{len(labelled)} labelled items are too few for {count} folds"
    settings = _on_features(settings)
    try:
        found = _fit_folds(
            items[labelled], labels.take(labelled), count, lambda: build_method(settings, items.shape[1:]),
            k=k, divisor=divisor, on_fold=on_fold or (lambda done, total: None),
        )  # fmt: skip
    except AdshError as problem:  # a part of the items may be too small for the method
        return None, first_line(problem)
    return found, None


def _fit_folds(
    items: Any,
    labels: LabelSets,
    folds: int,
    build: Callable[[], HashModel],
    *,
    k: int | None,
    divisor: Divisor,
    on_fold: OnProgress,
) -> CrossFit:
    """Fit and evaluate without each fold in turn.

    Args:
        items: (n, d) features.
        labels: Of these items.
        folds: How many.
        build: Returns a model that is not fitted yet.
        k, divisor, on_fold: As for `cross_fit`.

    Returns:
        The means over all folds.
    """
    started = time.perf_counter()
    fold_of = assign_folds(items, labels, folds, seed=0)
    found = []
    on_fold(0, folds)
    for fold in range(folds):
        queries, others = np.flatnonzero(fold_of == fold), np.flatnonzero(fold_of != fold)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AdshWarning)  # the run itself has warned
            model = build().fit(items[others], labels.take(others))
        codings = {LEARNED: model.database_codes_, coded_by(model): model.encode(items[others])}
        found.append(
            evaluate_fold(
                queries, model.encode(items[queries]), codings, labels.take(queries), labels.take(others),
                bits=model.bits, k=k, divisor=divisor,
            )
        )  # fmt: skip
        on_fold(fold + 1, folds)
    return pool(found, labels, time.perf_counter() - started)


def _reason(settings: TrainSettings, sides: Sides) -> str | None:
    """Return why a run cannot be fitted again on parts of its items; None where it can."""
    if not ProcessGroup.current().is_single:
        return "several processes share this run"
    if settings.method != ADSH.name and settings.protocol not in ("holdout", "all"):
        return f"protocol {settings.protocol} has training items of its own"
    if sides[0].names != sides[1].names:
        return "queries and database name their labels differently"
    return None


def _on_features(settings: TrainSettings) -> TrainSettings:
    """Return the settings for features of a frozen network, on which it trains an mlp; other settings as they are."""
    if settings.network is None or not settings.network.startswith(FROZEN_PREFIX):
        return settings
    return replace(settings, network="mlp", weights=None)


def _joined(queries: LabelSets, database: LabelSets) -> LabelSets:
    """Return the labels of both, queries first; both are of one source, so their tables of sets are the same."""
    return database.with_ids(np.concatenate([queries.ids, database.ids]))


def _flat(side: Any) -> Any:
    """Return (n, d) float32 features."""
    items = as_items(side)
    rows = items.take(np.arange(len(items)))
    return rows.reshape(len(rows), -1).astype(np.float32, copy=False)
