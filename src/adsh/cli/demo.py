"""`adsh demo`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from ..utils.progress import LINE_SECONDS, Progress, say
from .flags import Json
from .show import Stopped, as_json, facts, table

EXAMPLE = "adsh demo --out demo"


def command(
    out: Annotated[Path, typer.Option(help="The folder for the report and the model.")] = Path("adsh-demo"),
    bits: Annotated[int, typer.Option(help="Code length.")] = 24,
    seed: Annotated[int, typer.Option(help="The seed of training.")] = 0,
    json: Json = False,
) -> None:
    """Learn and search handwritten digits: a page in seconds.

    Trains on the CPU, evaluates the codes next to random projections of the same length, and shows what some queries
    found.
    """
    started = time.perf_counter()
    if sys.stderr.isatty():
        say("training on the CPU, on the handwritten digits that come with scikit-learn")
    from ..evaluate.report import table as rows
    from ..runs.demo import demo

    try:
        result = demo(out, bits=bits, seed=seed, progress=Progress(every=LINE_SECONDS))
    except KeyboardInterrupt:
        raise Stopped("stopped; run adsh demo again, it takes seconds") from None
    learned, random = result.evaluation, result.random
    figures = {
        "learned": learned.columns["learned"].map_expected,
        "network": learned.columns["network"].map_expected,
        "random_projections": random.columns["hashed"].map_expected,
    }
    training = learned.about["training_seconds"]
    if json:
        as_json(
            {
                "bits": bits, "queries": learned.queries, "database": learned.database, "map": figures,
                "training_seconds": training, "seconds": round(time.perf_counter() - started, 2),
                "model": str(result.model), "report": str(result.page),
            }
        )  # fmt: skip
        return
    print(f"\n{learned.queries:,} queries, {learned.database:,} database items; {training:.1f} s of training\n")
    columns = [row[0:1] + row[2:4] + row[-1:] for row in rows([learned, random])]
    table(("", "database codes", "MAP", "distinct"), columns)
    print("\nWhat some queries found, nearest first, by the network's codes alone:")
    for case in learned.cases["network"][:5]:
        print(f"  {case.query.label}  ->  {' '.join(shown.label for shown in case.found)}")
    print()
    facts(
        {
            "look at": result.page,
            "the model": result.model,
            "next": f"adsh info {result.model}",
            "": "adsh train photos/    (your own images: see docs/tutorial/start.md)",
        }
    )
