"""A trained run made ready for use: its report, and an index of its database to search."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from .errors import InputError
from .evaluate import Evaluation, write_report
from .evaluate_run import Judged, evaluate
from .index_run import Put, Report, make
from .model_config import INDEX, REPORT
from .train_run import Trained


@dataclass(frozen=True)
class Ready:
    """What lies beside the model now; None for what was not asked for, or could not be."""

    evaluation: Evaluation | None
    page: Path | None
    index: Path | None
    put: Put | None


def make_ready(
    trained: Trained, out: Path, source: str, *, report: bool = True, index: bool = True, on_put: Report | None = None
) -> Ready:
    """Writes OUT/report and OUT/index; those of an earlier run are replaced."""
    if trained.split is None:
        raise InputError(
            f"{out} was finished before: adsh evaluate {out} and adsh index build make its report and index"
        )
    whole, split = trained.dataset, trained.split
    judged = Judged(trained.model, whole.subset(split.queries), whole.subset(split.database), split)
    evaluation, page, put = None, None, None
    if report and len(split.queries):
        evaluation = evaluate(judged)
        page = write_report(evaluation, out / REPORT)
    if index:
        shutil.rmtree(out / INDEX, ignore_errors=True)
        put = make(out, str(out / INDEX), judged, source, report=on_put)
    return Ready(evaluation, page, out / INDEX if index else None, put)
