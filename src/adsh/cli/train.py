"""`adsh train`."""

from __future__ import annotations

import shlex
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .flags import SOURCE_HELP, Cache, CacheSize, Device, Json, Labels, Root, Size, SkipBad, Workers
from .show import ReadingBar, Stopped, TrainingBar, as_json, facts, list_bad, read_in_words

if TYPE_CHECKING:
    from ..runs.pipeline import Ready

EXAMPLE = "adsh train photos/ --bits 32 --out model"


def command(
    source: Annotated[str | None, typer.Argument(help=SOURCE_HELP)] = None,
    bits: Annotated[int | None, typer.Option(help="Code length, 1 to 1024.  [default: 48]")] = None,
    method: Annotated[
        str | None,
        typer.Option(help="adsh, or one it is compared with: itq, sdh_d, dpsh, … (see adsh.methods).  [default: adsh]"),
    ] = None,
    options: Annotated[
        str | None, typer.Option(metavar="NAME=VALUE,…", help="Options of another method than adsh: rounds=10.")
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            help="mlp, linear for features; tiny, efficientnet_lite0, frozen:NAME, … for images.  "
            "[default: what suits data and machine]"
        ),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="A file the network starts from: .pth, .safetensors, .npz.")
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help="modern, fast, paper, authors-matlab or authors-pytorch.  [default: modern]")
    ] = None,
    outer: Annotated[
        int | None, typer.Option(help="Outer iterations, T_out of the paper.  [default: the preset's]")
    ] = None,
    inner: Annotated[
        int | None, typer.Option(help="Epochs over the sample in each, T_in.  [default: the preset's]")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(help="Points sampled an outer iteration, m.  [default: the preset's]")
    ] = None,
    gamma: Annotated[float | None, typer.Option(help="Weight of |v - u|^2, eq. (4).  [default: the preset's]")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Items of a mini-batch.  [default: the preset's]")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.  [default: the preset's]")] = None,
    compile: Annotated[
        bool | None,
        typer.Option(
            help="On a GPU, compile the network first: a minute, then faster steps; --no-compile also leaves out CUDA "
            "graphs.  [default: the preset's; only graphs where training is short]"
        ),
    ] = None,
    unlabelled: Annotated[
        str | None,
        typer.Option(help="Items without a label: coded by the network, or dissimilar to all.  [default: network]"),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The same seed, data and machine give the same bytes.  [default: 0]")
    ] = None,
    device: Device = None,
    processes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Processes on this host that share each mini-batch, a GPU each.  [default: 1]"),
    ] = None,
    parts: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Parts of a mini-batch, on a CPU: the same bits at any --processes that divides N.  [default: 1]",
        ),
    ] = None,
    root: Root = None,
    labels: Labels = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="holdout: a tenth of the items ask. all: nobody does. Or 59k, paper, …  [default: holdout]"),
    ] = None,
    split_seed: Annotated[int | None, typer.Option(help="The seed the split is drawn from.  [default: 0]")] = None,
    size: Size = None,
    skip_bad: SkipBad = None,
    skip_copies: Annotated[
        bool | None, typer.Option("--skip-copies", help="Leave copies of queries out of the database.")
    ] = None,
    cache: Cache = None,
    cache_size: CacheSize = None,
    workers: Workers = None,
    checkpoint_every: Annotated[
        int | None,
        typer.Option(metavar="N", help="Write a checkpoint every N outer iterations; the last two are kept."),
    ] = None,
    tensorboard: Annotated[bool | None, typer.Option("--tensorboard", help="Write TensorBoard's files too.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="A TOML of a run, such as run.toml beside a model; flags go over it.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The model's folder.  [default: SOURCE-BITSbits]")] = None,
    report: Annotated[
        bool | None, typer.Option(help="Judge the model and write OUT/report.  [default: for pictures in files]")
    ] = None,
    index: Annotated[
        bool | None, typer.Option(help="Make an index to search, OUT/index.  [default: for pictures in files]")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the last checkpoint in the folder.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what an earlier run left there.")] = False,
    json: Json = False,
) -> None:
    """Learn the codes of a source, and a network for new items.

    A folder with a sub-folder a class is all it needs: what is not said is chosen, and told. The folder OUT gets the
    model, run.toml with the whole run, split.npz with who asks and who answers, and log.jsonl with every iteration.
    Images in files are all read once before: those that cannot be read, and images on both sides of the split, stop
    the run with a list.

    With --method another method than ADSH is trained, on the training items of the protocol where it has some; the
    names that end in _d learn from the whole database. Those without a network take --options and no network's flags.

    With --processes, or under torchrun for several hosts, the codes are those of one process up to rounding, and with
    --parts too bit for bit: see docs/scale.md.
    """
    from ..errors import MissingExtraError
    from ..models.storage_format import RUN
    from ..runs.pipeline import make_ready
    from ..runs.train import TrainSettings, can_go_on, default_out, train
    from ..train.launch import check_count, connect, exit_now, is_child, is_restarted, run
    from ..utils.files import find_file

    flags: dict[str, Any] = {
        "source": source, "method": method, "options": options,
        "root": root, "labels": labels, "protocol": protocol, "split_seed": split_seed, "bits": bits,
        "network": network, "weights": weights, "preset": preset, "gamma": gamma, "samples": samples, "outer": outer,
        "inner": inner, "compile": compile, "parts": parts,
        "batch_size": batch_size, "lr": lr, "unlabelled": unlabelled, "device": device, "seed": seed, "size": size,
        "checkpoint_every": checkpoint_every, "tensorboard": tensorboard, "skip_bad": skip_bad, "cache": cache,
        "skip_copies": skip_copies, "cache_size": cache_size, "workers": workers,
    }  # fmt: skip
    if resume and config is None:  # nothing needs to be said again
        at = find_file(out or default_out(TrainSettings.of(**flags)), RUN)
        config = at if at.exists() else None
    settings = TrainSettings.of(config, **flags)
    out = out or default_out(settings)
    if processes is not None and not is_child():
        check_count(processes)
        if processes > 1:
            try:
                status = run(sys.argv[1:], processes, _once_lost(out, bool(settings.checkpoint_every)))
            except KeyboardInterrupt:
                raise Stopped("stopped") from None
            raise typer.Exit(status)
    display = TrainingBar()
    try:
        with connect(settings.device) as group:
            if is_restarted() and group.broadcast_from_rank0(lambda: can_go_on(out)):
                resume, overwrite = True, False
            trained = train(settings, out, resume=resume, overwrite=overwrite, watcher=display, reading=display.reading)
    except KeyboardInterrupt:
        raise Stopped(_how_to_go_on(display, out, bool(settings.checkpoint_every))) from None
    finally:
        display.close()
    if not group.is_rank0:
        exit_now()
    wanted = {
        name: trained.from_files if flag is None else flag for name, flag in (("report", report), ("index", index))
    }
    ready = None
    if any(wanted.values()):
        try:
            with closing(ReadingBar("putting in")) as bar:
                ready = make_ready(trained, out, settings.source, settings.root, **wanted, on_put=bar)
        except (KeyboardInterrupt, ImportError) as problem:  # the latter: stopped in the middle of an import
            if isinstance(problem, MissingExtraError):
                raise
            how = f"adsh train --resume --out {shlex.quote(str(out))} makes the rest"
            raise Stopped(f"stopped; the model is saved: {how}") from None
    model = trained.model
    seconds = model.training_seconds
    network_name = model.network_name or "no network"
    last = model.history_[-1] if model.history_ else {}
    told: dict[str, Any] = {
        "model": str(out),
        "bits": model.bits,
        "method": settings.method,
        "network": network_name,
        "points": len(model.database_codes_),
        "rows": model.num_distinct_codes,
        "outer": int(last.get("outer", 0)),
        "loss": last.get("loss"),
        "seconds": round(seconds, 3),
        "device": str(model.device_),
        "already_finished": trained.already,
        **({"read": trained.read} if trained.read else {}),
        **(_told(ready) if ready else {}),
    }
    if json:
        as_json(told)
        return
    facts(
        {
            "model": f"{out}: {settings.method}, {model.bits} bits, {network_name}"
            + (", finished before" if trained.already else ""),
            "codes": f"{told['rows']:,} distinct rows for {told['points']:,} points",
            "training": f"{told['outer']} iterations in {seconds:.1f} s"
            + (f", loss {last['loss']:.4f}" if last else ""),
            "device": told["device"],
            **({"items": read_in_words(trained.read)} if trained.read else {}),
            **(_shown(ready) if ready else {}),
            "next": f"adsh search {out / 'index'} IMAGE --html found.html"
            if ready and ready.index
            else f"adsh evaluate {out} --out {out / 'report'}",
        }
    )
    list_bad(trained.read)


_FEW = 20  # queries: one of them moves MAP by .05


def _told(ready: Ready) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if ready.evaluation is not None:
        told["report"] = str(ready.page)
        told["map"] = {name: column.map_expected for name, column in ready.evaluation.columns.items()}
    return told | ({"index": str(ready.index)} if ready.index is not None else {})


def _shown(ready: Ready) -> dict[str, str]:
    shown = {}
    if ready.evaluation is not None:
        maps = ", ".join(f"{column.map_expected:.4f} {name}" for name, column in ready.evaluation.columns.items())
        asking = ready.evaluation.queries
        shown["MAP"] = f"{maps}; {asking:,} held-out items ask" + ", too few to go by" * (asking < _FEW)
        shown["report"] = str(ready.page)
    if ready.put is not None:
        put = ready.put
        before = ", there before" if not put.added else ""
        shown["index"] = f"{ready.index}: {put.added + put.replaced + put.skipped:,} items{before}"
    return shown


def _once_lost(out: Path, checkpoints: bool) -> str:
    return _resuming(out) if checkpoints else "with --checkpoint-every 1 it can go on where it stopped"


def _resuming(out: Path) -> str:
    return f"go on with: adsh train --resume --out {shlex.quote(str(out))}"


def _how_to_go_on(display: TrainingBar, out: Path, checkpoints: bool) -> str:
    where = f"stopped after outer iteration {display.done} of {display.total}" if display.total else "stopped"
    if not display.total:
        return where
    if not checkpoints:
        return f"{where}; nothing of it is kept: with --checkpoint-every 1 it can go on where it stopped"
    return f"{where}; {_resuming(out)}"
