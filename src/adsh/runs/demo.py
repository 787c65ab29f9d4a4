"""From nothing to a report in seconds: the handwritten digits, learned codes beside random ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..evaluate import HASHED, Evaluation, evaluate_codings, write_report
from ..methods import create
from ..train.callbacks import Callback
from ..utils.files import check_writable
from .evaluate import Judged, evaluate, open_run
from .train import TrainSettings, train

OUTER = 20


@dataclass(frozen=True)
class Demo:
    """What the demo made."""

    judged: Judged
    evaluation: Evaluation
    random: Evaluation  # random projections of the same length
    model: Path
    page: Path


def demo(out: Path, *, bits: int = 24, seed: int = 0, watcher: Callback | None = None) -> Demo:
    """Trains `tiny` on the digits, judges it beside random projections, and writes a page that shows both."""
    folder = out / "model"
    check_writable(out, 20_000_000)
    settings = TrainSettings.of(source="digits", bits=bits, network="tiny", outer=OUTER, seed=seed, device="cpu")
    train(settings, folder, overwrite=True, watcher=watcher)
    judged = open_run(folder)
    queries, database = judged.queries, judged.database
    learned = evaluate(judged, name="ADSH", cases=8)
    projections = create("lsh", bits=bits, seed=seed).fit(database)
    random = evaluate_codings(
        projections.encode(queries), {HASHED: projections.database_codes_}, queries, queries.labels, database,
        database.labels, bits=bits, name="random projections", cases=8, about={"method": "lsh", "seed": seed},
    )  # fmt: skip
    title = f"Handwritten digits in {bits} bits"
    return Demo(judged, learned, random, folder, write_report([learned, random], out, title=title))
