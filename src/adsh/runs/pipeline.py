"""A trained run made ready for use: its report, and an index of its database to search."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from ..evaluate import Evaluation, write_report
from ..index.locate import open_existing
from ..models.storage_format import INDEX, REPORT
from ..search.ingest import IndexSource, IngestOptions, IngestResult, Progress, build_index, ingest
from .evaluate import Judged, evaluate, open_run
from .train import Trained

_WHOLE = "made by train"  # the note of an index that holds all it was to hold


@dataclass(frozen=True)
class Ready:
    """What lies beside the model now; None for what was not asked for, or could not be."""

    evaluation: Evaluation | None
    page: Path | None
    index: Path | None
    put: IngestResult | None


def make_ready(
    trained: Trained,
    out: Path,
    source: str,
    root: str | None = None,
    *,
    report: bool = True,
    index: bool = True,
    on_put: Progress | None = None,
) -> Ready:
    """Writes OUT/report and OUT/index; those of an earlier run are replaced.

    The index holds the database as it was learned and, coded by their labels, the items that were held out.
    """
    if trained.split is None:  # finished before: what is missing is made now
        judged = open_run(out, to_judge=False)
        report = report and not (out / REPORT).exists()
    else:
        whole, parts = trained.dataset, trained.split
        judged = Judged(trained.model, whole.subset(parts.queries), whole.subset(parts.database), parts)
        shutil.rmtree(out / INDEX, ignore_errors=True)
    evaluation, page, put = None, None, None
    if report and len(judged.queries):
        evaluation = evaluate(judged)
        page = write_report(evaluation, out / REPORT)
    if index:
        put = _filled(out / INDEX) or _fill(judged, out, source, root, on_put)
    return Ready(evaluation, page, out / INDEX if index else None, put)


def _filled(index: Path) -> IngestResult | None:
    """What an index holds that was made whole before: it is its owner's to change since. None for any other."""
    if not index.exists():
        return None
    with open_existing(str(index)) as opened:
        return IngestResult(0, 0, len(opened), [], 0.0) if opened.get_note(_WHOLE) else None


def _fill(judged: Judged, out: Path, source: str, root: str | None, on_put: Progress | None) -> IngestResult:
    database = IndexSource(source, root, judged.database)
    put = build_index(str(out / INDEX), out, judged.model, database, progress=on_put)
    with open_existing(str(out / INDEX)) as opened:
        if len(judged.queries):  # they were held out to judge by, and people will look for them too
            queries = IndexSource(source, root, judged.queries)
            options = IngestOptions(by_label=judged.model.codes_labels)
            put += ingest(opened, judged.model, queries, options, on_put)
        opened.set_note(_WHOLE, "yes")
    return put
