"""`adsh demo`."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from .flags import Json
from .show import Stopped, TrainingBar, as_json, facts, say, table

EXAMPLE = "adsh demo --out demo"


def command(
    out: Annotated[Path, typer.Option(help="The folder of the report and the model.")] = Path("adsh-demo"),
    bits: Annotated[int, typer.Option(help="Code length.")] = 24,
    seed: Annotated[int, typer.Option(help="Of training.")] = 0,
    json: Json = False,
) -> None:
    """Learn and search handwritten digits: a page in seconds.

    Trains on the CPU, judges the codes beside random projections of the same length, and shows what some digits found.
    """
    started = time.perf_counter()
    if sys.stderr.isatty():
        say("the handwritten digits that scikit-learn ships, learned on the CPU")
    from ..evaluate.report import table as rows
    from ..runs.demo import demo

    display = TrainingBar()
    try:
        made = demo(out, bits=bits, seed=seed, watcher=display)
    except KeyboardInterrupt:
        raise Stopped("stopped; run adsh demo again, it takes seconds") from None
    finally:
        display.close()
    learned, random = made.evaluation, made.random
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
                "model": str(made.model), "report": str(made.page),
            }
        )  # fmt: skip
        return
    print(f"\n{learned.queries:,} digits asked, {learned.database:,} answered; {training:.1f} s of training\n")
    shown = [row[0:1] + row[2:4] + row[-1:] for row in rows([learned, random])]
    table(("", "database codes", "MAP", "distinct"), shown)
    print("\nWhat some digits found, nearest first, by the network's codes alone:")
    for case in learned.cases["network"][:5]:
        print(f"  {case.query.label}  ->  {' '.join(shown.label for shown in case.found)}")
    print()
    facts(
        {
            "look at": made.page,
            "the model": made.model,
            "next": f"adsh info {made.model}",
            "": "adsh train photos/    (your own images: docs/start.md has the whole way)",
        }
    )
