"""`adsh index`: make an index, put items in, take them out, and see that it is whole."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..utils.urls import shown
from .flags import Device, Json, Labels, Root, SkipBad, Workers
from .show import ReadingBar, Stopped, as_json, facts, say

if TYPE_CHECKING:
    from ..search.ingest import Put

app = typer.Typer(name="index", add_completion=False, rich_markup_mode=None)

Location = Annotated[
    str, typer.Argument(metavar="INDEX", help="The index: a folder, postgresql://… or milvus+http://…")
]
ModelFolder = Annotated[Path | None, typer.Option(help="The model's folder.  [default: the one the index notes]")]
Vectors = Annotated[
    bool,
    typer.Option(
        help="Keep the network's features, 64 bytes an item, to order what has one code. Every image is read for it."
    ),
]


@app.callback(invoke_without_command=True, epilog="Example:  adsh index build photos.index --model photos-48bits")
def index(context: typer.Context) -> None:
    """Make an index, put items in and take them out.

    `adsh train` makes one of pictures by itself, in the model's folder; the model's folder may be given for it.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(epilog="Example:  adsh index build photos.index --model photos-48bits")
def build(
    location: Location,
    model: Annotated[Path, typer.Option(help="The model's folder.")],
    data: Annotated[str | None, typer.Option(help="What it was trained on, where its run does not say.")] = None,
    root: Root = None,
    labels: Labels = None,
    vectors: Vectors = True,
    device: Device = None,
    json: Json = False,
) -> None:
    """Make an index of the database that a model learned.

    Items have the codes that were learned, the keys of their source, and metadata that leads back to their pictures.
    """
    from ..runs.evaluate import open_run
    from ..runs.run_dir import RunFolder
    from ..search.ingest import make

    judged = open_run(model, data=data, root=root, labels=labels, device=device, to_judge=False)
    trained = RunFolder(model).read_run().get("train", {})
    source, root = (data, root) if data else (trained["source"], root or trained.get("root"))
    try:
        with closing(ReadingBar("putting in")) as bar:
            put = make(model, location, judged, source, root, vectors=vectors, report=bar)
    except KeyboardInterrupt:
        raise Stopped("stopped; what was put in is kept: repeat the command to go on") from None
    _tell(location, put, json)


@app.command(epilog="Example:  adsh index add photos.index new-photos/")
def add(
    location: Location,
    sources: Annotated[list[str], typer.Argument(metavar="SOURCE…", help="Folders, pictures, lists, arrays or names.")],
    model: ModelFolder = None,
    root: Root = None,
    labels: Labels = None,
    by_label: Annotated[
        bool, typer.Option("--by-label", help="Code items by their labels, as training would, not by their pictures.")
    ] = False,
    vectors: Annotated[bool | None, typer.Option(help="The same as for build.  [default: as the index has it]")] = None,
    again: Annotated[bool, typer.Option("--again", help="Code those anew that are there already.")] = False,
    prefix: Annotated[str, typer.Option(help="What the keys begin with: new/ keeps two folders apart.")] = "",
    skip_bad: SkipBad = None,
    workers: Workers = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Put new items in, without training anew.

    The network codes them or, with --by-label, what they are called. What is there already is left, so that an
    interrupted command goes on when it is repeated.
    """
    from ..index.locate import open_existing
    from ..search.ingest import Put, Source, model_of, open_for
    from ..search.ingest import add as put_in

    opened = [Source.of(name, root, labels) for name in sources]
    with open_existing(location) if model is None or Path(location).exists() else open_for(location, model) as index:
        loaded = model_of(index, model, device)
        keep = index.has_vectors if vectors is None else vectors
        total = Put(0, 0, 0, [], 0.0)
        try:
            for source in opened:
                with closing(ReadingBar("putting in")) as bar:
                    total += put_in(
                        index, loaded, source, by_label=by_label, vectors=keep, again=again, prefix=prefix,
                        skip_bad=bool(skip_bad), workers=workers, report=bar,
                    )  # fmt: skip
        except KeyboardInterrupt:
            raise Stopped("stopped; what was put in is kept: repeat the command to go on") from None
    _tell(location, total, json)


@app.command(epilog="Example:  adsh index remove photos.index cat/001.jpg")
def remove(
    location: Location,
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="KEY…", help="Keys; - reads them from standard input.")
    ] = None,
    json: Json = False,
) -> None:
    """Take items out by their keys.

    A key is what `adsh search` shows: the path below the folder that was put in. Status 2 where none is there.
    """
    from ..errors import InputError
    from ..index.locate import open_existing

    given = [key for key in keys or [] if key != "-"]
    if keys and "-" in keys:
        given += [line.rstrip("\n") for line in sys.stdin if line.strip()]
    if not given:
        raise InputError("no key is given: name the items to take out, or - to read keys from standard input")
    with open_existing(location) as index:
        keys = list(dict.fromkeys(given))
        missing = [key for key, item in zip(keys, index.get(keys), strict=True) if item is None]
        removed = index.remove(keys)
        told = {"index": shown(location), "removed": removed, "not_there": len(missing), "items": len(index)}
        example = next((item.key for item in index.sample(1)), None)
    if missing:
        named = ", ".join(missing[:3]) + (f" and {len(missing) - 3:,} more" if len(missing) > 3 else "")
        like = f"; keys look like {example}" if example is not None else ""
        text = f"there is no item with the key {named}{like}"
        if not removed:
            raise InputError(f"{text}: nothing was taken out")
        say(f"note: {text}")
    if json:
        as_json(told)
    else:
        facts({name.replace("_", " "): value for name, value in told.items()})


@app.command(epilog="Example:  adsh index info photos.index")
def info(location: Location, json: Json = False) -> None:
    """Say what an index holds, and how it is searched."""
    from ..index.locate import MODEL, open_existing

    with open_existing(location) as index:
        told = {**index.info(), "model_folder": index.get_note(MODEL)}
    if json:
        as_json(told)
    else:
        facts({name.replace("_", " "): _words(value) for name, value in told.items()})


@app.command(epilog="Example:  adsh index verify photos.index")
def verify(location: Location, json: Json = False) -> None:
    """Read everything and say whether it is whole.

    Status 2 where it is not.
    """
    from ..errors import FolderError
    from ..index.locate import open_existing

    with open_existing(location) as index:
        problems, items = index.verify(), len(index)
    if json:
        as_json({"index": shown(location), "items": items, "problems": problems})
    elif not problems:
        print(f"{shown(location)} is whole: {items:,} items")
    if problems:
        raise FolderError(f"{shown(location)}: {'; '.join(problems)}")


@app.command(epilog="Example:  adsh index compact photos.index")
def compact(location: Location, json: Json = False) -> None:
    """Tidy what changes have left.

    Opening and searching are fastest then; the files may grow by it.
    """
    from ..index.locate import open_existing

    with open_existing(location) as index:
        before = index.info()["bytes"]
        index.compact()
        told = {"index": shown(location), "items": len(index), "bytes_before": before, "bytes": index.info()["bytes"]}
    if json:
        as_json(told)
    else:
        facts({name.replace("_", " "): _words(value) for name, value in told.items()})


@app.command(epilog="Example:  adsh index copy photos.index 'postgresql://me@host/photos?table=photos'")
def copy(
    source: Annotated[str, typer.Argument(metavar="FROM", help="The index to copy: a folder or an address.")],
    target: Annotated[str, typer.Argument(metavar="TO", help="Where to: an empty place, or an interrupted copy.")],
    json: Json = False,
) -> None:
    """Copy an index to another place, of any kind.

    Both are asked the same afterwards, to see that they find the same. What is there already is left, so that an
    interrupted command goes on when it is repeated.
    """
    from ..index.copy import copy as copied_to

    try:
        with closing(ReadingBar("copying")) as bar:
            copied = copied_to(source, target, bar)
    except KeyboardInterrupt:
        raise Stopped("stopped; what was copied is kept: repeat the command to go on") from None
    told = {"from": shown(source), "to": shown(target), **asdict(copied), "seconds": round(copied.seconds, 2)}
    if json:
        as_json(told)
        return
    facts(
        {
            "from": told["from"],
            "to": f"{told['to']}: {copied.items:,} items, {'with' if copied.vectors else 'without'} vectors",
            "copied": f"{copied.new:,} new, {copied.already:,} there already; {copied.seconds:.1f} s",
            "checked": f"the number of items, and {copied.searches} searches that both answer alike",
        }
    )


def _tell(location: str, put: Put, json: bool) -> None:
    from ..data.readable import as_records
    from ..index.locate import open_existing

    with open_existing(location) as index:
        held = index.info()
    told: dict[str, Any] = {
        "index": shown(location), "items": held["items"], "new": put.new, "replaced": put.replaced,
        "already": put.already, "bits": held["bits"], "distinct_codes": held["distinct_codes"],
        "search": held["search"], "seconds": round(put.seconds, 2), "unreadable": as_records(put.unreadable),
    }  # fmt: skip
    if json:
        as_json(told)
        return
    parts = [f"{put.new:,} new", *[f"{put.replaced:,} replaced"] * bool(put.replaced)]
    parts += [f"{put.already:,} there already"] * bool(put.already)
    parts += [f"{len(put.unreadable):,} cannot be read and are left out"] * bool(put.unreadable)
    facts(
        {
            "index": f"{shown(location)}: {held['items']:,} items of {held['bits']} bits",
            "put in": f"{', '.join(parts)}; {put.seconds:.1f} s",
            "codes": f"{_words(held['distinct_codes'])} distinct; searched by {held['search']}",
            "next": f"adsh search {shown(location)} IMAGE",
        }
    )
    for key, reason in put.unreadable:
        print(f"  {key}: {reason}")


def _words(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else "none" if value is None else str(value)
