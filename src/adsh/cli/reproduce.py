"""`adsh reproduce`."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..utils.progress import time_left
from .flags import Device, Json, Root
from .show import Stopped, as_json, bar, facts, say

if TYPE_CHECKING:
    from ..experiments import Cell

EXAMPLE = "adsh reproduce table1 table2 --dataset digits --bits 12 --bits 24 --hash-function ridge"


def command(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="table1, table2, top-k, pr, time, networks, hyper, cases; columns, ties, scale, new-items; or all."
        ),
    ] = None,
    dataset: Annotated[str, typer.Option(help="A source: cifar10, nuswide, coco17, digits, a folder, …")] = "cifar10",
    out: Annotated[Path | None, typer.Option(help="Where it goes.  [default: results/DATASET]")] = None,
    bits: Annotated[
        list[int] | None, typer.Option(help="A code length; again for more.  [default: 12 24 32 48]")
    ] = None,
    seeds: Annotated[int, typer.Option(help="How many, from 0 on; the paper has five.")] = 1,
    method: Annotated[list[str] | None, typer.Option(help="Only this method; again for more.")] = None,
    network: Annotated[str, typer.Option(help="Of ADSH and the deep methods; mlp learns from features.")] = "mlp",
    weights: Annotated[str | None, typer.Option(help="A file it starts from.")] = None,
    size: Annotated[int | None, typer.Option(help="The side that image networks work on.")] = None,
    preset: Annotated[str, typer.Option(help="Their preset: modern, fast, paper, …")] = "modern",
    outer: Annotated[int | None, typer.Option(help="Their outer iterations.")] = None,
    features: Annotated[
        Path | None, typer.Option(help="A .npy of features, for all that learn from such: see adsh features.")
    ] = None,
    hash_function: Annotated[str, typer.Option(help="trees or ridge, for FastH, LFH and COSDISH.")] = "trees",
    protocol: Annotated[str | None, typer.Option(help="Who asks.  [default: the paper's for the data set]")] = None,
    k: Annotated[
        int | None, typer.Option("-k", help="MAP over the first k.  [default: 5000 with several labels]")
    ] = None,
    choose: Annotated[bool, typer.Option("--choose", help="First choose options on validation items.")] = False,
    alexnet: Annotated[Path | None, typer.Option(help="A weight file of AlexNet, for networks.")] = None,
    compile: Annotated[
        bool, typer.Option("--compile", help="On a GPU: compile networks, a minute once, then cells are shorter.")
    ] = False,
    largest: Annotated[int, typer.Option(help="Points at most, in scale.")] = 10**9,
    run: Annotated[bool, typer.Option(help="Run the cells that are missing, or only show what is done.")] = True,
    jobs: Annotated[int, typer.Option(help="Cells run side by side.")] = 1,
    tex: Annotated[bool, typer.Option("--tex", help="Write the tables as LaTeX too.")] = False,
    merge: Annotated[
        bool, typer.Option("--merge", help="Merge OUT/cells into cells.jsonl, as every run does at its end.")
    ] = False,
    root: Root = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Make the paper's tables and figures, and a few more.

    A cell is a method at one code length with one seed. Each is written to OUT/cells when it is done, and never run
    again: stopped, the same command goes on. At the end they are merged into OUT/cells.jsonl, a line each. Each
    experiment leaves its rows as WHAT.json, tables as WHAT.md with the paper's figures beside, and figures as PNG; of
    several, OUT/index.html shows all. What is done of other methods is shown as well.
    """
    from ..errors import InputError
    from ..experiments import ExperimentConfig, reproduce

    if seeds < 1:
        raise InputError(f"--seeds {seeds}: give at least 1")
    config = ExperimentConfig(
        dataset, root=root, protocol=protocol, features=str(features) if features else None, network=network,
        weights=weights, preset=preset, hash_function=hash_function, outer=outer, seeds=tuple(range(seeds)), k=k,
        device=device or "auto", methods=tuple(method or ()), size=size, largest=largest,
        alexnet=str(alexnet) if alexnet else None, compile=compile,
        **({"bits": tuple(bits)} if bits else {}),
    )  # fmt: skip
    out = out or Path("results") / Path(dataset).stem
    if merge:
        _merge(out, alone=not what, json=json)
        if not what:
            return
    try:
        with closing(_Bar()) as shown:
            outcome = reproduce(what or (), config, out, jobs=jobs, choose=choose, run=run, tex=tex, on_cell=shown)
    except KeyboardInterrupt:
        raise Stopped("stopped; what is done is kept, and the same command goes on") from None
    for reason in dict.fromkeys(outcome.failed.values()):
        cells = [name for name, why in outcome.failed.items() if why == reason]
        which = cells[0] if len(cells) == 1 else f"{len(cells)} cells, {cells[0]} the first,"
        say(f"{which} failed: {reason}")
    told: dict[str, Any] = {
        "cells run": outcome.ran,
        "kept from before": outcome.kept,
        **{name: " ".join(str(path) for path in paths) for name, paths in outcome.files.items()},
    }
    if outcome.page is not None:
        told["page"] = str(outcome.page)
    if json:
        as_json({**told, **{name: [str(p) for p in paths] for name, paths in outcome.files.items()},
                 "failed": outcome.failed})  # fmt: skip
    else:
        for paths in outcome.files.values():
            table = next((path for path in paths if path.suffix == ".md"), None)
            if table is not None:
                print(table.read_text(encoding="utf-8").partition("![")[0])
        facts(told)
    if outcome.failed:
        raise typer.Exit(2)


def _merge(out: Path, *, alone: bool, json: bool) -> None:
    from ..errors import InputError
    from ..experiments.result_store import ResultStore

    store = ResultStore(out)
    if not store.count():
        raise InputError(f"{out} holds no cells: name a folder of results with --out")
    summary = {"cells merged": store.merge(), "cells": store.count(), "file": str(store.file)}
    if alone:
        (as_json if json else facts)(summary)


class _Bar:
    """Cells as a bar with the time left on a terminal; elsewhere a line each."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._started = time.monotonic()

    def __call__(self, done: int, total: int, cell: Cell | None) -> None:
        text = "" if cell is None else f"{cell.called}, {cell.bits} bits, seed {cell.seed}"
        if sys.stderr.isatty():
            if self._bar is None or not done:
                self.close()
                self._bar = bar("cell {task.completed}/{task.total}", "{task.fields[text]}")
                self._bar.start()
                self._task = self._bar.add_task("", total=total, text="")
            self._bar.update(self._task, completed=done, text=text)
        elif cell is None:
            self._started = time.monotonic()
        else:
            left = f", {time_left(self._started, done, total)} left" if done < total else ""
            say(f"cell {done}/{total}: {text}{left}")

    def close(self) -> None:
        """Leaves the bar as it stands."""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
