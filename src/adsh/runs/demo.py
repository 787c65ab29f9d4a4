"""Train on the handwritten digits in seconds, and report learned codes next to random ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..evaluate import HASHED, Evaluation, evaluate_codings, write_report
from ..methods import create
from ..utils.files import check_writable
from ..utils.progress import Progress
from .evaluate import evaluate, load_run
from .pipeline import train_and_index

OUTER = 20


@dataclass(frozen=True)
class Demo:
    """What the demo wrote, and its figures."""

    evaluation: Evaluation
    random: Evaluation
    """Of random projections of the same length."""
    model: Path
    page: Path


def demo(out: Path, *, bits: int = 24, seed: int = 0, progress: bool | str | Progress = "auto") -> Demo:
    """Train `tiny` on the digits, compare it with random projections, and write a page that shows both.

    Args:
        out: The folder of the page; the model goes to OUT/model.
        bits: Code length.
        seed: The seed of training, and of the projections.
        progress: As in `train_and_index`.

    Returns:
        Both evaluations, and where the model and the page are.
    """
    check_writable(out, 20_000_000)
    artifacts = train_and_index(
        "digits", out / "model", bits=bits, network="tiny", outer=OUTER, seed=seed, device="cpu",
        report=False, index=False, overwrite=True, progress=progress,
    )  # fmt: skip
    inputs = load_run(artifacts.out)
    queries, database = inputs.queries, inputs.database
    learned = evaluate(inputs, name="ADSH", cases=8)
    projections = create("lsh", bits=bits, seed=seed).fit(database)
    random = evaluate_codings(
        projections.encode(queries), {HASHED: projections.database_codes_}, queries, queries.labels, database,
        database.labels, bits=bits, name="random projections", cases=8, about={"method": "lsh", "seed": seed},
    )  # fmt: skip
    title = f"Handwritten digits in {bits} bits"
    return Demo(learned, random, artifacts.out, write_report([learned, random], out, title=title))
