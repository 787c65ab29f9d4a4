"""`adsh index`: build an index, add and remove items, and check it."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..utils.progress import ProgressLine, say
from ..utils.urls import shown
from .flags import Device, Json, Labels, Root, SkipBadByDefault, Strict, Workers
from .show import Stopped, as_json, facts, list_some

if TYPE_CHECKING:
    from ..search.ingest import IngestResult

_STOPPED = "stopped; the items added so far are kept: repeat the command to continue"

app = typer.Typer(name="index", add_completion=False, rich_markup_mode=None)

Location = Annotated[
    str, typer.Argument(metavar="INDEX", help="The index: a folder, postgresql://… or milvus+http://…")
]
ModelFolder = Annotated[Path | None, typer.Option(help="The model's folder.  [default: the one stored in the index]")]
Where = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FIELD=VALUE",
        help="Conditions on metadata: class=cat, year>=2000, class in cat,dog, or several with or between them. "
        "Repeated, all must hold.",
    ),
]
Vectors = Annotated[
    bool,
    typer.Option(help="Store the network's features, 64 bytes an item, to order ties. Every image is read for that."),
]


@app.callback(invoke_without_command=True, epilog="Example:  adsh index build photos.index --model photos-48bits")
def index(context: typer.Context) -> None:
    """Build an index, add and remove items.

    `adsh train` builds one of image collections, in the model's folder; give that folder to use it.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(epilog="Example:  adsh index build photos.index --model photos-48bits")
def build(
    location: Location,
    model: Annotated[Path, typer.Option(help="The model's folder.")],
    data: Annotated[str | None, typer.Option(help="The source it was trained on, if its run does not say.")] = None,
    root: Root = None,
    labels: Labels = None,
    vectors: Vectors = True,
    device: Device = None,
    json: Json = False,
) -> None:
    """Index the database that a model was trained on.

    Items get the codes that were learned, the keys of their source, and metadata that leads back to their images.
    """
    from ..runs.evaluate import load_run
    from ..runs.run_dir import RunFolder
    from ..search.ingest import IndexSource, build_index

    inputs = load_run(model, data=data, root=root, labels=labels, device=device, allow_no_queries=True)
    trained = RunFolder(model).read_run().get("train", {})
    source, root = (data, root) if data else (trained["source"], root or trained.get("root"))
    try:
        with closing(ProgressLine("indexing")) as bar:
            database = IndexSource(source, root, inputs.database)
            result = build_index(location, model, inputs.model, database, vectors=vectors, progress=bar)
    except KeyboardInterrupt:
        raise Stopped(_STOPPED) from None
    _report(location, result, json)


@app.command(epilog="Example:  adsh index add photos.index new-photos/")
def add(
    location: Location,
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE…", help="Folders, images, lists, arrays or names.")],
    model: ModelFolder = None,
    root: Root = None,
    labels: Labels = None,
    by_label: Annotated[
        bool,
        typer.Option(
            "--by-label",
            help="Encode all items by their labels, as training does.  [default: those whose labels were trained]",
        ),
    ] = False,
    by_image: Annotated[
        bool, typer.Option("--by-image", help="Encode all items by their images, with the network.")
    ] = False,
    vectors: Annotated[
        bool | None, typer.Option(help="Store features, as for build.  [default: if the index has them]")
    ] = None,
    reencode: Annotated[
        bool, typer.Option("--reencode", "--again", help="Encode and replace items that are in the index already.")
    ] = False,
    prefix: Annotated[str, typer.Option(help="What the keys start with: new/ keeps two folders apart.")] = "",
    strict: Strict = False,
    skip_bad: SkipBadByDefault = None,
    workers: Workers = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Add new items, without training again.

    Items with labels that the model knows get the codes of those; the network encodes the others. Items that are in the
    index already are skipped, so an interrupted command continues when it is repeated. Files that cannot be read are
    left out and listed.
    """
    from ..errors import InputError
    from ..index.locate import open_existing
    from ..search.index_model import load_model_of, open_for_model
    from ..search.ingest import IndexSource, IngestOptions, IngestResult, ingest

    if by_label and by_image:
        raise InputError("--by-label and --by-image exclude each other: give one, or none for what suits each item")
    opened = [IndexSource.open(name, root, labels) for name in sources]
    exists = model is None or Path(location).exists()
    with open_existing(location) if model is None or exists else open_for_model(location, model) as index:
        loaded = load_model_of(index, model, device)
        keep_vectors = index.has_vectors if vectors is None else vectors
        options = IngestOptions(
            by_label if by_label or by_image else None,
            keep_vectors,
            reencode,
            prefix,
            not strict or bool(skip_bad),
            workers,
        )
        total = IngestResult(0, 0, 0, [], 0.0)
        try:
            for source in opened:
                with closing(ProgressLine("indexing")) as bar:
                    total += ingest(index, loaded, source, options, bar)
        except KeyboardInterrupt:
            raise Stopped(_STOPPED) from None
    _report(location, total, json)


@app.command(epilog="Example:  adsh index remove photos.index cat/001.jpg")
def remove(
    location: Location,
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="KEY…", help="Keys; - reads them from standard input.")
    ] = None,
    where: Where = None,
    json: Json = False,
) -> None:
    """Remove items by their keys, or all that meet conditions.

    A key is what `adsh search` shows: the path below the folder that was added. Exit status 2 if no key exists.
    """
    from ..errors import InputError
    from ..index.locate import open_existing
    from ..search.query_parsing import parse_conditions

    if where:
        if keys:
            raise InputError("keys and --where exclude each other: give one of them")
        with open_existing(location) as index:
            removed = index.remove_where(parse_conditions(where) or {})
            counts = {"index": shown(location), "removed": removed, "items": len(index)}
        as_json(counts) if json else facts(counts)
        return
    listed = [key for key in keys or [] if key != "-"]
    if keys and "-" in keys:
        listed += [line.rstrip("\n") for line in sys.stdin if line.strip()]
    if not listed:
        raise InputError("no key is given: give the keys of the items to remove, or - to read them from standard input")
    with open_existing(location) as index:
        keys = list(dict.fromkeys(listed))
        missing = [key for key, item in zip(keys, index.get(keys), strict=True) if item is None]
        removed = index.remove(keys)
        summary = {"index": shown(location), "removed": removed, "not_there": len(missing), "items": len(index)}
        example = next((item.key for item in index.sample(1)), None)
    if missing:
        named = ", ".join(missing[:3]) + (f" and {len(missing) - 3:,} more" if len(missing) > 3 else "")
        hint = f"; keys look like {example}" if example is not None else ""
        text = f"there is no item with the key {named}{hint}"
        if not removed:
            raise InputError(f"{text}: nothing was removed")
        say(f"note: {text}")
    if json:
        as_json(summary)
    else:
        facts({name.replace("_", " "): value for name, value in summary.items()})


@app.command(epilog="Example:  adsh index info photos.index")
def info(location: Location, json: Json = False) -> None:
    """Show what an index holds, and how it is searched."""
    from ..index.locate import MODEL, open_existing
    from ..search.recode import count_outdated

    with open_existing(location) as index:
        summary = {**index.info(), "model_folder": index.get_note(MODEL), "of_earlier_network": count_outdated(index)}
    if json:
        as_json(summary)
    else:
        facts({name.replace("_", " "): _format(value) for name, value in summary.items()})


@app.command(epilog="Example:  adsh index verify photos.index")
def verify(location: Location, json: Json = False) -> None:
    """Read all of an index and check it.

    Exit status 2 if it is damaged.
    """
    from ..errors import FolderError
    from ..index.locate import open_existing

    with open_existing(location) as index:
        problems, items = index.verify(), len(index)
    if json:
        as_json({"index": shown(location), "items": items, "problems": problems})
    elif not problems:
        print(f"{shown(location)} is intact: {items:,} items")
    if problems:
        raise FolderError(f"{shown(location)}: {'; '.join(problems)}")


@app.command(epilog="Example:  adsh index compact photos.index")
def compact(location: Location, json: Json = False) -> None:
    """Rewrite an index after many changes.

    Opening and searching are fastest then; the files may grow.
    """
    from ..index.locate import open_existing

    with open_existing(location) as index:
        before = index.info()["bytes"]
        index.compact()
        summary = {
            "index": shown(location),
            "items": len(index),
            "bytes_before": before,
            "bytes": index.info()["bytes"],
        }
    if json:
        as_json(summary)
    else:
        facts({name.replace("_", " "): _format(value) for name, value in summary.items()})


@app.command(epilog="Example:  adsh index copy photos.index 'postgresql://me@host/photos?table=photos'")
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The index to copy: a folder or a URL.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="The copy: a new location, or an interrupted copy.")],
    json: Json = False,
) -> None:
    """Copy an index to another location of any kind.

    Searches of both are compared afterwards. Items that were copied already are skipped, so an interrupted command
    continues when it is repeated.
    """
    from ..index.copy import copy as copy_index

    try:
        with closing(ProgressLine("copying")) as bar:
            copied = copy_index(source, target, bar)
    except KeyboardInterrupt:
        raise Stopped("stopped; what was copied is kept: repeat the command to continue") from None
    summary = {
        "from": shown(source), "to": shown(target), **asdict(copied), "seconds": round(copied.seconds, 2),
        "added": copied.new, "skipped": copied.already,
    }  # fmt: skip  # `new` and `already` are the former names
    if json:
        as_json(summary)
        return
    facts(
        {
            "from": summary["from"],
            "to": f"{summary['to']}: {copied.items:,} items, {'with' if copied.vectors else 'without'} vectors",
            "copied": f"{copied.new:,} new, {copied.already:,} skipped; {copied.seconds:.1f} s",
            "checked": f"the number of items, and {copied.searches} searches with equal results",
        }
    )


def _report(location: str, result: IngestResult, json: bool) -> None:
    """Print what was added; `new` and `already` are the former names of `added` and `skipped`."""
    from ..data.readable import as_records
    from ..index.locate import open_existing

    with open_existing(location) as index:
        info = index.info()
    summary: dict[str, Any] = {
        "index": shown(location), "items": info["items"], "added": result.added, "new": result.added,
        "replaced": result.replaced, "skipped": result.skipped, "already": result.skipped, "by_label": result.by_label,
        "bits": info["bits"],
        "distinct_codes": info["distinct_codes"], "search": info["search"], "seconds": round(result.seconds, 2),
        "unreadable": as_records(result.unreadable),
    }  # fmt: skip
    if json:
        as_json(summary)
        return
    counts = [f"{result.added:,} added", *[f"{result.replaced:,} replaced"] * bool(result.replaced)]
    counts += [f"{result.by_label:,} of them with the codes of their labels"] * bool(result.by_label)
    counts += [f"{result.skipped:,} skipped"] * bool(result.skipped)
    counts += [f"{len(result.unreadable):,} unreadable"] * bool(result.unreadable)
    facts(
        {
            "index": f"{shown(location)}: {info['items']:,} items of {info['bits']} bits",
            "items": f"{', '.join(counts)}; {result.seconds:.1f} s",
            "codes": f"{_format(info['distinct_codes'])} distinct; searched by {info['search']}",
            "next": f"adsh search {shown(location)} IMAGE",
        }
    )
    list_some([f"{key}: {reason}" for key, reason in result.unreadable], "--json lists them")


def _format(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else "none" if value is None else str(value)
