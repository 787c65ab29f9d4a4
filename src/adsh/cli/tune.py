"""`adsh tune`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated

import typer

from ..utils.progress import ProgressLine
from .flags import Device, Json, Labels, Root, Size, Source, Workers
from .show import as_json, facts

EXAMPLE = "adsh tune photos/ --trials 20 --out photos-tuned"


def command(
    source: Source,
    trials: Annotated[int, typer.Option(help="Trials of the study, those of an earlier call among them.")] = 20,
    bits: Annotated[int | None, typer.Option(help="Code length.  [default: 48]")] = None,
    method: Annotated[str | None, typer.Option(help="adsh, or a deep baseline.  [default: adsh]")] = None,
    network: Annotated[str | None, typer.Option(help="As of adsh train.")] = None,
    preset: Annotated[str | None, typer.Option(help="As of adsh train.  [default: modern]")] = None,
    outer: Annotated[int | None, typer.Option(help="Outer iterations of each trial.")] = None,
    seed: Annotated[int | None, typer.Option(help="The seed of training and of the trials.  [default: 0]")] = None,
    protocol: Annotated[str | None, typer.Option(help="How queries are set apart.  [default: holdout]")] = None,
    root: Root = None,
    labels: Labels = None,
    size: Size = None,
    workers: Workers = None,
    device: Device = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The folder of the study.  [default: SOURCE-tuned]")
    ] = None,
    json: Json = False,
) -> None:
    """Tune the learning rate and gamma on validation items.

    Validation items are a tenth of the database; the queries that a model is evaluated on are not looked at. The same
    command goes on with a study that was stopped. OUT/best.toml has the values: adsh train --config OUT/best.toml.
    """
    flags = dict(locals())
    from ..runs.settings import TrainSettings
    from ..runs.tune import BEST, tune

    names = ("source", "bits", "method", "network", "preset", "outer", "seed", "protocol", "root", "labels", "size",
             "workers", "device")  # fmt: skip
    settings = TrainSettings.of(**{name: flags[name] for name in names})
    out = out or Path(f"{Path(source).stem}-tuned")
    with closing(ProgressLine("trials")) as bar:
        tuned = tune(settings, out, trials, on_trial=lambda done, best: bar(done, trials))
    if json:
        as_json({"out": str(out), "best": tuned.best, "map": tuned.score, "map_with_the_preset": tuned.preset,
                 "trials": len(tuned.trials), "validation_items": tuned.validation})  # fmt: skip
        return
    facts({
        "best": ", ".join(f"{name} {value:g}" for name, value in tuned.best.items()),
        "MAP": f"{tuned.score:.4f} of {tuned.validation:,} validation items; {tuned.preset:.4f} with the preset",
        "trials": f"{len(tuned.trials)} in {out}",
        "next": f"adsh train --config {out / BEST} --out MODEL",
    })  # fmt: skip
