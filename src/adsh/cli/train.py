"""`adsh train`."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..models.storage_format import LOG
from ..utils.progress import LINE_SECONDS, Progress
from .flags import SOURCE_HELP, Cache, CacheSize, Device, Json, Labels, Root, Size, Workers
from .show import Stopped, as_json, describe_reading, facts, line, list_left_out

if TYPE_CHECKING:
    from ..evaluate import Baseline, Evaluation
    from ..evaluate.cross_fit import CrossFit
    from ..runs.pipeline import TrainingArtifacts

EXAMPLE = "adsh train photos/ --bits 32 --out model"
_FEW_QUERIES = 20  # one of them moves MAP by .05


def command(
    source: Annotated[str | None, typer.Argument(help=SOURCE_HELP)] = None,
    bits: Annotated[int | None, typer.Option(help="Code length, 1 to 1024.  [default: 48]")] = None,
    method: Annotated[
        str | None,
        typer.Option(help="adsh, or a baseline: itq, sdh_d, dpsh, … (see adsh.methods).  [default: adsh]"),
    ] = None,
    options: Annotated[
        str | None, typer.Option(metavar="NAME=VALUE,…", help="Options of a baseline: rounds=10.")
    ] = None,
    network: Annotated[
        str | None,
        typer.Option(
            help="mlp, linear for features; tiny, efficientnet_lite0, frozen:NAME, … for images.  "
            "[default: by data and machine]"
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
        int | None, typer.Option(help="Epochs over the sample in each outer iteration, T_in.  [default: the preset's]")
    ] = None,
    samples: Annotated[
        int | None, typer.Option(help="Points sampled per outer iteration, m.  [default: the preset's]")
    ] = None,
    gamma: Annotated[float | None, typer.Option(help="Weight of |v - u|^2, eq. (4).  [default: the preset's]")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Items in a mini-batch.  [default: the preset's]")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.  [default: the preset's]")] = None,
    compile: Annotated[
        bool | None,
        typer.Option(
            help="On a GPU, compile the network first: a minute, then faster steps; --no-compile also turns off "
            "CUDA graphs.  [default: the preset's; CUDA graphs only where training is short]"
        ),
    ] = None,
    unlabelled: Annotated[
        str | None,
        typer.Option(help="Items without a label: encoded by the network, or dissimilar to all.  [default: network]"),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Items of each class to keep in the model's folder, so that adsh update does not forget them; 0 for "
            "none.  [default: 100]",
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="The same seed, data and machine give the same bytes.  [default: 0]")
    ] = None,
    device: Device = None,
    processes: Annotated[
        int | None,
        typer.Option(metavar="N", help="Processes on this host that share each mini-batch, a GPU each.  [default: 1]"),
    ] = None,
    deterministic_shards: Annotated[
        int | None,
        typer.Option(
            "--deterministic-shards",
            "--parts",
            metavar="N",
            help="Shards of a mini-batch, on a CPU: the same bits at any --processes that divides N.  [default: 1]",
        ),
    ] = None,
    root: Root = None,
    labels: Labels = None,
    protocol: Annotated[
        str | None,
        typer.Option(help="holdout: 10 % become queries. all: no queries. Or 59k, paper, …  [default: holdout]"),
    ] = None,
    split_seed: Annotated[int | None, typer.Option(help="The seed of the split.  [default: 0]")] = None,
    size: Size = None,
    strict: Annotated[
        bool,
        typer.Option(
            "--strict", help="Stop where a file cannot be read, or a query has a copy in the database, with a list."
        ),
    ] = False,
    skip_bad: Annotated[
        bool | None, typer.Option("--skip-bad", help="With --strict: leave out files that cannot be read.")
    ] = None,
    drop_duplicates: Annotated[
        bool | None,
        typer.Option("--drop-duplicates", "--skip-copies", help="With --strict: leave out copies of queries."),
    ] = None,
    cache: Cache = None,
    cache_size: CacheSize = None,
    workers: Workers = None,
    checkpoint_every: Annotated[
        int | None,
        typer.Option(metavar="N", help="Write a checkpoint every N outer iterations; the last two are kept."),
    ] = None,
    tensorboard: Annotated[bool | None, typer.Option("--tensorboard", help="Write TensorBoard files.")] = None,
    config: Annotated[
        Path | None, typer.Option(help="A TOML file of a run, such as run.toml of a model; flags take precedence.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The folder for the model.  [default: SOURCE-BITSbits]")] = None,
    report: Annotated[
        bool | None, typer.Option(help="Evaluate the model and write OUT/report.  [default: for images in files]")
    ] = None,
    baselines: Annotated[
        bool | None,
        typer.Option(help="In the report, float cosine and a linear classifier on the same features.  [default: yes]"),
    ] = None,
    folds: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="For the report, fit again without each of N folds, whose items are then new; 0 for none.  "
            "[default: 5 where the held-out part is small and a fit takes seconds]",
        ),
    ] = None,
    index: Annotated[
        bool | None, typer.Option(help="Build an index to search, OUT/index.  [default: for images in files]")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the last checkpoint in the folder.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an earlier run in the folder.")] = False,
    details: Annotated[
        bool, typer.Option("--details", help="Print codes, loss, device, MAP and baselines too.")
    ] = False,
    json: Json = False,
) -> None:
    """Learn the codes of a source, and a network for new items.

    A folder with a sub-folder per class is all it needs: whatever is not given is chosen, and reported. The folder OUT
    gets the model, run.toml with all settings, split.npz with the queries and the database, and log.jsonl with every
    iteration. Images in files are all read once before training: those that cannot be read, and database items that are
    copies of queries, are left out and listed.

    With --method a baseline is trained, on the training items of the protocol where it has any; the names that end in
    _d learn from the full database. Baselines without a network take --options, and none of the network's flags.

    With --processes, or under torchrun for several hosts, the codes are those of one process up to rounding, and with
    --deterministic-shards bit for bit: see docs/howto/scale.md.
    """
    flags = dict(locals())  # every parameter by name
    from ..runs.pipeline import IndexingInterrupted, train_and_index
    from ..runs.settings import TrainSettings, default_out
    from ..train.launch import exit_now

    settings = TrainSettings.from_flags(flags, config, out, resume=resume)
    out = out or default_out(settings)
    how_to_resume = f"adsh train --resume --out {shlex.quote(str(out))}"
    can_resume = bool(settings.checkpoint_every)
    if processes is not None:
        _launch(processes, f"continue with: {how_to_resume}" if can_resume else _NO_CHECKPOINTS)
    display = Progress(every=LINE_SECONDS)
    try:
        artifacts = train_and_index(
            settings, out, report=report, index=index, resume=resume, overwrite=overwrite, progress=display
        )
    except IndexingInterrupted:
        raise Stopped(f"stopped; the model is saved: {how_to_resume} writes the rest") from None
    except KeyboardInterrupt:
        if not display.total:
            raise Stopped("stopped") from None
        where = f"stopped after outer iteration {display.done} of {display.total}"
        how = f"continue with: {how_to_resume}" if can_resume else f"nothing of it is saved: {_NO_CHECKPOINTS}"
        raise Stopped(f"{where}; {how}") from None
    if not artifacts.is_rank0:
        exit_now()
    if json:
        as_json(artifacts.summary())
        return
    for said in _in_words(artifacts):
        line(said)
    facts(_describe(artifacts, details=details or artifacts.evaluation is None))
    list_left_out(artifacts.read, out / LOG)


_NO_CHECKPOINTS = "with --checkpoint-every 1 it could be resumed"


def _launch(processes: int, how_to_resume: str) -> None:
    """Run this command in so many processes, and exit with their status; return in each of them, or where it is one."""
    from ..train.launch import check_count, is_child, run

    if is_child():
        return
    check_count(processes)
    if processes > 1:
        try:
            status = run(sys.argv[1:], processes, how_to_resume)
        except KeyboardInterrupt:
            raise Stopped("stopped") from None
        raise typer.Exit(status)


def _baseline(baseline: Baseline) -> str:
    """Return what a baseline reached, column by column."""
    maps = ", ".join(f"{score.map_expected:.4f} {name}" for name, score in baseline.columns.items())
    return f"{baseline.name} {maps}"


def _cross_fit(found: CrossFit) -> str:
    """Return what the folds gave, column by column."""
    maps = ", ".join(f"{column.map_expected:.4f} {name}" for name, column in found.columns.items())
    return f"{maps}; {found.queries:,} queries in {found.folds} folds, {found.seconds:.1f} s"


def _in_words(artifacts: TrainingArtifacts) -> list[str]:
    """Return what is printed first: how good a search is, in sentences; nothing where there is no evaluation."""
    from ..evaluate.in_words import examples, headline, worst_confusions

    evaluation = artifacts.evaluation
    if evaluation is None:
        return []
    confused = worst_confusions(evaluation)
    shown = [f"  {text}" for text in examples(evaluation)]
    return [headline(evaluation), *[confused] * bool(confused), *["For example:", *shown] * bool(shown), ""]


def _describe(artifacts: TrainingArtifacts, *, details: bool) -> dict[str, str]:
    """Return what is printed, by name; bits and figures of training only with `details`."""
    from ..evaluate.comparison_section import baselines_ahead

    values, out, evaluation, ingested = artifacts.summary(), artifacts.out, artifacts.evaluation, artifacts.ingested
    complete = ", complete before" * artifacts.was_complete
    lines = {"model": f"{out}: {values['method']}, {values['bits']} bits, {values['network']}{complete}"}
    if details:
        loss = f", loss {values['loss']:.4f}" if values["loss"] is not None else ""
        lines["codes"] = f"{values['rows']:,} distinct codes for {values['points']:,} database items"
        lines["training"] = f"{values['outer']} iterations in {values['seconds']:.1f} s{loss}"
        lines["device"] = values["device"]
    if artifacts.read:
        lines["items"] = describe_reading(artifacts.read)
    if evaluation is not None:
        lines |= _accuracy(evaluation) if details else {}
        if ahead := baselines_ahead(evaluation):
            lines["ahead"] = f"by MAP, {'; '.join(ahead)}"
        lines["report"] = str(artifacts.report)
    if ingested is not None:
        count = ingested.added + ingested.replaced + ingested.skipped
        lines["index"] = f"{artifacts.index}: {count:,} items{', indexed before' * (not ingested.added)}"
        lines["next"] = f"adsh search {artifacts.index} IMAGE --html found.html"
    else:
        lines["next"] = f"adsh evaluate {out} --out {out / 'report'}"
    return lines


def _accuracy(evaluation: Evaluation) -> dict[str, str]:
    """Return MAP in every column, of the folds and of the baselines."""
    maps = ", ".join(f"{column.map_expected:.4f} {name}" for name, column in evaluation.columns.items())
    few = ", too few to go by" * (evaluation.queries < _FEW_QUERIES)
    lines = {"MAP": f"{maps}; {evaluation.queries:,} queries{few}"}
    if evaluation.cross_fit is not None:
        lines["cross-fit"] = _cross_fit(evaluation.cross_fit)
    if evaluation.baselines:
        lines["baselines"] = "; ".join(map(_baseline, evaluation.baselines))
    return lines
