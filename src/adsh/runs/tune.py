"""Tune learning rate and gamma on validation items with Optuna; the queries of the split are never looked at.

Of the database, a tenth become validation items: every trial trains on the others and is measured by the MAP of the
validation items. The first trial has the preset's values. Trials are kept in a file, so that a study goes on where it
was stopped.

    trials.log    Optuna's journal of the study
    tune.json     what was tried and what was best
    tune.md       the same for people
    best.toml     the settings for `adsh train --config`
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from .. import config
from ..data import as_items, open_source
from ..errors import InputError, MissingExtraError, TrainingError
from ..evaluate.metrics import mean_average_precision
from ..labels import LabelSets
from ..methods import DEEP
from ..models.adsh import ADSH
from ..utils.files import replacing_file
from .inputs import draw_split, prepare_inputs
from .settings import TrainSettings, build_method

JOURNAL, JSON, MARKDOWN, BEST = "trials.log", "tune.json", "tune.md", "best.toml"
_SHARE = 0.1  # of the database that becomes validation items
_FACTOR = 10.0  # how far from the preset's value a trial may lie, up and down
_TUNED = {ADSH.name: ("lr", "gamma")}  # of the deep methods, lr alone


@dataclass(frozen=True)
class Tuned:
    """The best values on validation items, and every trial."""

    settings: TrainSettings
    best: dict[str, float]
    score: float  # MAP of the validation items
    preset: float  # the same with the preset's values
    trials: list[dict[str, Any]]
    validation: int  # items
    seconds: float


def tune(
    settings: TrainSettings, out: Path, trials: int, *, on_trial: Callable[[int, float], None] | None = None
) -> Tuned:
    """Run trials until there are so many, those of an earlier call of the same study among them.

    Args:
        settings: The run that is tuned.
        out: The folder of the study.
        trials: How many trials the study has in the end.
        on_trial: Called after each with its number and the best MAP so far.

    Returns:
        The best values; they are also written to the folder.
    """
    optuna = _optuna()
    if trials < 1:
        raise InputError(f"--trials {trials}: give 1 or more")
    if settings.method != ADSH.name and settings.method not in DEEP:
        raise InputError(f"{settings.method} has no learning rate to tune: choose adsh or one of {', '.join(DEEP)}")
    started = time.perf_counter()
    problem = _Problem.of(settings)
    out.mkdir(parents=True, exist_ok=True)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    backend = optuna.storages.journal.JournalFileBackend(str(out / JOURNAL))
    study = optuna.create_study(
        study_name="adsh", direction="maximize", storage=optuna.storages.JournalStorage(backend), load_if_exists=True,
    )  # fmt: skip
    requested = json.dumps(settings.table(), sort_keys=True)
    if study.user_attrs.get("settings", requested) != requested:
        raise InputError(f"{out} holds a study of other settings: give another --out")
    study.set_user_attr("settings", requested)
    if not study.trials:
        study.enqueue_trial(problem.preset)
    complete = optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED
    done = len(study.get_trials(states=complete))
    while done < trials:
        study.sampler = optuna.samplers.TPESampler(
            seed=settings.seed + done
        )  # a resumed study draws what one run draws
        study.optimize(problem.score, n_trials=1)
        done += 1
        if on_trial is not None:
            on_trial(done, study.best_value)
    tuned = _result(settings, study, problem, time.perf_counter() - started)
    _write(out, tuned)
    return tuned


class _Problem:
    """The items of a study, and the score of a trial."""

    def __init__(self, settings: TrainSettings, items: Any, labels: LabelSets, validation: Any, training: Any) -> None:
        self.settings, self.items, self.labels = settings, items, labels
        self.validation, self.training = validation, training
        shape = as_items(items).shape
        self.network = settings.network or ("mlp" if len(shape) == 1 else "tiny")
        several = int(np.diff(labels.starts).max()) > 1
        recipe = config.recipe(settings.preset, self.network, multi_label=several, method=settings.method)
        names = _TUNED.get(settings.method, ("lr",))
        self.preset = {name: float(getattr(settings, name) or getattr(recipe, name)) for name in names}

    @classmethod
    def of(cls, settings: TrainSettings) -> _Problem:
        """Open the source of the settings, and draw validation items from the split's database."""
        dataset = open_source(settings.source, root=settings.root, labels=settings.labels)
        if dataset.labels is None:
            raise InputError(f"{settings.source} has no labels: give --labels FILE.npy, or a source with labels")
        prepared = prepare_inputs(
            dataset, network=settings.network, size=settings.size, skip_bad=True, cache=settings.cache or "ram",
            workers=settings.workers,
        )  # fmt: skip
        split = draw_split(prepared, settings.protocol, settings.split_seed, drop_duplicates=True).split
        order = np.random.default_rng([settings.split_seed, 1]).permutation(split.database)
        count = max(1, round(_SHARE * len(order)))
        validation, training = np.sort(order[:count]), np.sort(order[count:])
        return cls(settings, prepared.dataset, LabelSets.of(dataset.labels), validation, training)

    def score(self, trial: Any) -> float:
        """Return the MAP of the validation items with the values that a trial suggests; 0 where training diverges."""
        values: dict[str, Any] = {
            name: trial.suggest_float(name, at / _FACTOR, at * _FACTOR, log=True) for name, at in self.preset.items()
        }
        settings = replace(self.settings, **values)
        items = self.items.subset(self.training)
        model: Any = build_method(settings, as_items(items).shape)
        started = time.perf_counter()
        try:
            model.fit(items, self.labels.take(self.training))
        except TrainingError:
            return 0.0
        trial.set_user_attr("seconds", round(time.perf_counter() - started, 3))
        return mean_average_precision(
            model.encode(self.items.subset(self.validation)), model.database_codes_,
            self.labels.take(self.validation), self.labels.take(self.training), bits=settings.bits,
        )  # fmt: skip


def _result(settings: TrainSettings, study: Any, problem: _Problem, seconds: float) -> Tuned:
    """Return what a study found.

    Args:
        settings: The run that was tuned.
        study: Optuna's study.
        problem: The items.
        seconds: How long this call took.
    """
    finished = [trial for trial in study.trials if trial.value is not None]
    rows = [{"number": trial.number, "map": trial.value, **trial.params, **trial.user_attrs} for trial in finished]
    best = {name: float(f"{value:.4g}") for name, value in study.best_params.items()}
    given: dict[str, Any] = dict(best)
    return Tuned(
        replace(settings, **given), best, study.best_value, finished[0].value, rows, len(problem.validation), seconds
    )  # fmt: skip


def _write(out: Path, tuned: Tuned) -> None:
    """Write the report of a study, and the settings for `adsh train --config`."""
    summary = {
        "source": tuned.settings.source, "bits": tuned.settings.bits, "validation_items": tuned.validation,
        "best": tuned.best, "map": tuned.score, "map_with_the_preset": tuned.preset, "trials": tuned.trials,
    }  # fmt: skip
    names = list(tuned.best)
    header = f"| trial | {' | '.join(names)} | MAP |\n| --- |{' --- |' * len(names)} --- |\n"
    rows = "".join(
        f"| {row['number']} | {' | '.join(f'{row[name]:.4g}' for name in names)} | {row['map']:.4f} |\n"
        for row in sorted(tuned.trials, key=lambda row: -row["map"])
    )
    found = ", ".join(f"{name} {value:g}" for name, value in tuned.best.items())
    text = (
        f"# Tuning of {Path(tuned.settings.source).name}, {tuned.settings.bits} bits\n\nBest: {found}; MAP "
        f"{tuned.score:.4f} of {tuned.validation:,} validation items, {tuned.preset:.4f} with the preset's values. The "
        f"queries of the split were not looked at.\n\n{header}{rows}"
    )
    table = {name: value for name, value in tuned.settings.table().items() if value is not None}
    toml = "[train]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in table.items())
    for name, content in ((JSON, json.dumps(summary, indent=1) + "\n"), (MARKDOWN, text), (BEST, toml)):
        with replacing_file(out / name) as file:
            file.write(content.encode())


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("tuning needs Optuna: pip install 'adsh[tune]'") from None
    return optuna
