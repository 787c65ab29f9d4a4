"""`adsh update`."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..utils.progress import LINE_SECONDS, Progress, say
from .flags import SOURCE_HELP, Device, Json, Labels, Root, Strict, Workers
from .index_items import describe_following
from .show import Stopped, as_json, facts, list_some

if TYPE_CHECKING:
    from ..runs.update import UpdatedRun

EXAMPLE = "adsh update photos-48bits new-photos/"


def command(
    model: Annotated[Path, typer.Argument(help="The folder of a training run.")],
    source: Annotated[
        str | None, typer.Argument(help=f"New items, of known classes or of new ones. {SOURCE_HELP}")
    ] = None,
    relabel: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Other labels: a key or path and its labels on each line.")
    ] = None,
    rename: Annotated[
        list[str] | None,
        typer.Option(metavar="OLD=NEW", help="Rename a class, or merge it into another; OLD= removes it. Repeatable."),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Remove an item; @FILE removes those that a file lists. Repeatable."),
    ] = None,
    corrections: Annotated[
        bool, typer.Option("--corrections", help="Learn the open corrections of the index: see adsh index corrections.")
    ] = False,
    old: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="Where the items of the database are.  [default: where they were; else the few kept with the model]",
        ),
    ] = None,
    prefix: Annotated[str, typer.Option(help="What the keys of new items start with.")] = "",
    root: Root = None,
    labels: Labels = None,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="A folder for the updated run.  [default: in place]")
    ] = None,
    outer: Annotated[int | None, typer.Option(help="Outer iterations.  [default: half of those of training]")] = None,
    seed: Annotated[int | None, typer.Option(help="The seed of the update.  [default: the model's]")] = None,
    device: Device = None,
    checkpoint_every: Annotated[
        int, typer.Option(metavar="N", help="Write a checkpoint every N outer iterations; 0 for none.")
    ] = 1,
    strict: Strict = False,
    workers: Workers = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted update.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Discard an unfinished update.")] = False,
    index: Annotated[
        str | None, typer.Option(help="The index that follows: a folder or a URL.  [default: MODEL/index]")
    ] = None,
    json: Json = False,
) -> None:
    """Add items and classes to a trained model, or correct labels.

    Nothing is trained anew. Codes of items whose labels do not change stay as they are, bit for bit, so an index of
    them does too; the network goes on from its weights. The model's folder is replaced whole or not at all. To remember
    the classes it has, the network sees the items it was trained on where they are still there, and else the few that
    were kept with the model.
    """
    from ..runs.follow_index import follow_run
    from ..runs.update import finish, update_run
    from ..runs.update_settings import UpdateSettings
    from ..runs.use_corrections import with_corrections

    settings = UpdateSettings.of(
        relabel, source=source, root=root, labels=labels, prefix=prefix, rename=rename or [], remove=remove or [],
        old=old, outer=outer, seed=seed, device=device, checkpoint_every=checkpoint_every, strict=strict,
        workers=workers,
    )  # fmt: skip
    if corrections and not resume:
        settings, others = with_corrections(settings, model, index)
        if others:
            say(f"note: {others:,} corrected items are not of the model's database: they stay corrected in the index")
    display = Progress(every=LINE_SECONDS)
    target = out or model
    how_to_resume = f"adsh update --resume {shlex.quote(str(model))}" + (
        f" --out {shlex.quote(str(out))}" if out else ""
    )
    updated = None
    try:
        updated = update_run(model, settings, out, resume=resume, overwrite=overwrite, progress=display)
        followed = follow_run(model, target, index, None if updated is None else updated.model, display.indexing)
        finish(target)
    except KeyboardInterrupt:
        display.close()
        done = f" after outer iteration {display.done} of {display.total}" if display.total else ""
        state = "the model is as it was" if updated is None else "the model is updated, its index is not"
        raise Stopped(f"stopped{done}; {state}. Continue with: {how_to_resume}") from None
    display.close()
    if json:
        summary = updated.summary() if updated is not None else {"model": str(target), "was_complete": True}
        as_json(summary | ({} if followed is None else {"index": asdict(followed)}))
        return
    lines = {"model": f"{target}: updated before"} if updated is None else _describe(updated)
    facts(lines | ({} if followed is None else {"index": describe_following(followed)}))
    if updated is not None:
        list_some(
            [f"{key}: {reason}" for key, reason in updated.new.unreadable] if updated.new else [], "--json lists them"
        )


def _describe(updated: UpdatedRun) -> dict[str, str]:
    """Return what is printed, by name."""
    record, new = updated.record, updated.new
    names = updated.new_classes
    shown = ", ".join(names[:8]) + (", …" if len(names) > 8 else "")
    items, classes = len(updated.model.code_table_), len(updated.model.known_labels)
    lines = {"model": f"{updated.out}: {items:,} items of {classes:,} classes"}
    if new is not None:
        skipped = f"; {new.skipped:,} known ones skipped" * bool(new.skipped)
        unreadable = f"; {len(new.unreadable):,} cannot be read" * bool(new.unreadable)
        lines["new items"] = f"{len(record.added):,}{skipped}{unreadable}"
    if names:
        lines["new classes"] = f"{len(names):,}: {shown}"
    if updated.changed_items or record.removed:
        lines["changed"] = f"{updated.changed_items:,} items have other labels, {len(record.removed):,} were removed"
    lines["changed codes"] = f"{updated.changed_codes:,} of the items whose labels did not change"
    lines["learned from"] = f"old items: {updated.old}"
    lines["training"] = f"{len(updated.model.history_)} iterations; {updated.seconds:.1f} s in all"
    return lines
