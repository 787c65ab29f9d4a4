"""`adsh reproduce`."""

from __future__ import annotations

import sys
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..utils.progress import ProgressLine, say, time_left
from .flags import Device, Json, Root
from .show import Stopped, as_json, facts

if TYPE_CHECKING:
    from ..experiments import Cell, Outcome

EXAMPLE = "adsh reproduce table1 table2 --dataset digits --bits 12 --bits 24 --hash-function ridge"


def command(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="table1, table2, top-k, pr, time, networks, hyper, cases; columns, ties, scale, new-items, classes; "
            "or all."
        ),
    ] = None,
    dataset: Annotated[
        str, typer.Option(help="The data set: cifar10, nuswide, coco17, digits, a folder, …")
    ] = "cifar10",
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The output folder.  [default: results/DATASET]")
    ] = None,
    bits: Annotated[
        list[int] | None, typer.Option(help="A code length; repeat for several.  [default: 12 24 32 48]")
    ] = None,
    seeds: Annotated[int, typer.Option(help="The number of seeds, from 0 on; the paper has five.")] = 1,
    method: Annotated[list[str] | None, typer.Option(help="Run only this method; repeat for several.")] = None,
    network: Annotated[
        str, typer.Option(help="The network of ADSH and the deep baselines; mlp and linear take features.")
    ] = "mlp",
    weights: Annotated[str | None, typer.Option(help="A weight file that the network starts from.")] = None,
    size: Annotated[int | None, typer.Option(help="The image size that image networks take.")] = None,
    preset: Annotated[
        str, typer.Option(help="The preset of ADSH and the deep baselines: modern, fast, paper, …")
    ] = "modern",
    outer: Annotated[int | None, typer.Option(help="The number of outer iterations.  [default: the preset's]")] = None,
    features: Annotated[
        Path | None, typer.Option(help="A .npy of features, for all methods that take features: see adsh features.")
    ] = None,
    hash_function: Annotated[
        str, typer.Option(help="The hash function of FastH, LFH and COSDISH: trees or ridge.")
    ] = "trees",
    protocol: Annotated[
        str | None, typer.Option(help="The split into queries and database.  [default: the paper's for the data set]")
    ] = None,
    k: Annotated[
        int | None,
        typer.Option("-k", help="The cut-off of MAP.  [default: 5000 with several labels per item, none for coco]"),
    ] = None,
    tune: Annotated[
        bool, typer.Option("--tune", "--choose", help="First select options by a grid search on validation items.")
    ] = False,
    alexnet: Annotated[Path | None, typer.Option(help="A weight file of AlexNet, for networks.")] = None,
    compile: Annotated[
        bool, typer.Option("--compile", help="Compile networks on a GPU: one minute once, then shorter cells.")
    ] = False,
    max_points: Annotated[int, typer.Option("--max-points", "--largest", help="The largest database of scale.")] = 10
    ** 9,
    run: Annotated[bool, typer.Option(help="Run the cells that have no record, or only render the others.")] = True,
    jobs: Annotated[int, typer.Option(help="The number of cells to run in parallel.")] = 1,
    tex: Annotated[bool, typer.Option("--tex", help="Write the tables as LaTeX too.")] = False,
    merge: Annotated[
        bool, typer.Option("--merge", help="Merge OUT/cells into cells.jsonl, as every run does at its end.")
    ] = False,
    root: Root = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Reproduce the paper's tables and figures, and a few more.

    A cell is one method at one code length with one seed. Its record is written to OUT/cells and never computed again:
    after an interruption, the same command continues. At the end of a run the records are merged into OUT/cells.jsonl,
    one line per cell. Each experiment writes its rows to WHAT.json, its tables to WHAT.md with the paper's values next
    to ours, and its figures as PNG; several experiments are shown on one page, OUT/index.html. Tables include all
    methods that have records, also those that were not run now.
    """
    from ..errors import InputError
    from ..experiments import ExperimentConfig, reproduce
    from ..experiments.result_store import ResultStore

    out = out or Path("results") / Path(dataset).stem
    if merge and not what:
        _merge(out, json=json)
        return
    if merge and not run:
        ResultStore(out).merge()
    if seeds < 1:
        raise InputError(f"--seeds {seeds}: give at least 1")
    config = ExperimentConfig(
        dataset, root=root, protocol=protocol, features=str(features) if features else None, network=network,
        weights=weights, preset=preset, hash_function=hash_function, outer=outer, seeds=tuple(range(seeds)), k=k,
        device=device or "auto", methods=tuple(method or ()), size=size, max_points=max_points,
        alexnet=str(alexnet) if alexnet else None, compile=compile,
        **({"bits": tuple(bits)} if bits else {}),
    )  # fmt: skip
    try:
        with closing(_Bar()) as progress:
            outcome = reproduce(what or (), config, out, jobs=jobs, tune=tune, run=run, tex=tex, on_cell=progress)
    except KeyboardInterrupt:
        raise Stopped("stopped; finished cells are stored, and the same command continues") from None
    _report(outcome, json=json)
    if outcome.failed:
        raise typer.Exit(2)


def _merge(out: Path, *, json: bool) -> None:
    """Merge the records of a folder, and print how many there are."""
    from ..errors import InputError
    from ..experiments.result_store import ResultStore

    store = ResultStore(out)
    if not store.count():
        raise InputError(f"{out} holds no cells: name a folder of results with --out")
    summary = {"cells merged": store.merge(), "cells": store.count(), "file": str(store.file)}
    (as_json if json else facts)(summary)


def _report(outcome: Outcome, *, json: bool) -> None:
    """Print the failures, the tables and a summary."""
    for reason in dict.fromkeys(outcome.failed.values()):
        cells = [name for name, why in outcome.failed.items() if why == reason]
        which = cells[0] if len(cells) == 1 else f"{len(cells)} cells, {cells[0]} the first,"
        say(f"{which} failed: {reason}")
    counts = {"cells run": outcome.ran, "cells reused": outcome.reused}
    page = {} if outcome.page is None else {"page": str(outcome.page)}
    if json:
        files = {name: [str(path) for path in paths] for name, paths in outcome.files.items()}
        as_json({**counts, "kept from before": outcome.reused, **files, **page, "failed": outcome.failed})
        return
    for paths in outcome.files.values():
        table = next((path for path in paths if path.suffix == ".md"), None)
        if table is not None:
            print(table.read_text(encoding="utf-8").partition("![")[0])
    facts({**counts, **{name: " ".join(map(str, paths)) for name, paths in outcome.files.items()}, **page})


class _Bar:
    """Show progress as a bar on a terminal, and as one line per cell elsewhere."""

    def __init__(self) -> None:
        self._line = ProgressLine("cell", every=None)
        self._started = time.monotonic()

    def __call__(self, done: int, total: int, cell: Cell | None) -> None:
        text = "" if cell is None else f"{cell.display_name}, {cell.bits} bits, seed {cell.seed}"
        if cell is None:
            self._started = time.monotonic()
            self._line.restart()
        if sys.stderr.isatty():
            self._line(done, total, text)
        elif cell is not None:
            left = f", {time_left(self._started, done, total)} left" if done < total else ""
            say(f"cell {done}/{total}: {text}{left}")

    def close(self) -> None:
        """End the line."""
        self._line.close()
