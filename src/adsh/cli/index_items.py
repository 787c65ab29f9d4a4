"""`adsh index` for a collection that changes: list, count and change items, and follow an updated model."""

from __future__ import annotations

import json as json_module
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..utils.progress import ProgressLine
from ..utils.urls import shown
from .flags import Device, Json
from .index import Location, Where
from .index_corrections import GROUP as app
from .show import Stopped, as_json, facts, line, list_some

GROUP = app  # with the commands of `index`, of this file and of those that it imports

if TYPE_CHECKING:
    from ..runs.follow_index import FollowResult


@app.command("list", epilog="Example:  adsh index list photos.index --where class=cat --count 20")
def list_items(
    location: Location,
    where: Where = None,
    count: Annotated[int, typer.Option(min=1, help="The most items to list.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="Where the page before ended, as it said.")] = None,
    json: Json = False,
) -> None:
    """List items, in alphabetical order of their keys.

    Keys are printed with their metadata, one item on a line.
    """
    from ..index.locate import open_existing
    from ..search.query_parsing import parse_conditions

    with open_existing(location) as index:
        page = index.page(count, cursor, parse_conditions(where or []))
    if json:
        items = [{"key": item.key, "code": item.code.hex(), "metadata": item.metadata} for item in page.items]
        as_json({"index": shown(location), "items": items, "cursor": page.cursor})
        return
    for item in page.items:
        line(f"{item.key}  {json_module.dumps(item.metadata, ensure_ascii=False) if item.metadata else ''}".rstrip())
    if page.cursor is not None:
        line(f"there are more: --cursor {page.cursor}")


@app.command(epilog="Example:  adsh index count photos.index --where class=cat")
def count(location: Location, where: Where = None, json: Json = False) -> None:
    """Count the items that meet conditions, or all."""
    from ..index.locate import open_existing
    from ..search.query_parsing import parse_conditions

    with open_existing(location) as index:
        found = index.count(parse_conditions(where or []))
    as_json({"index": shown(location), "items": found}) if json else line(f"{found:,}")


@app.command("set", epilog="Example:  adsh index set photos.index cat/1.jpg --field class=lynx")
def set_fields(
    location: Location,
    keys: Annotated[list[str], typer.Argument(metavar="KEY…", help="Keys of items.")],
    fields: Annotated[
        list[str],
        typer.Option("--field", metavar="NAME=VALUE", help="A field and its value, as JSON or text; NAME= removes it."),
    ],
    json: Json = False,
) -> None:
    """Set fields of items' metadata, in place."""
    from ..errors import InputError
    from ..index.locate import open_existing
    from ..search.query_parsing import parse_field

    values = dict(map(parse_field, fields))
    with open_existing(location) as index:
        changed = index.change_metadata(list(dict.fromkeys(keys)), values)
    if not changed:
        raise InputError(f"there is no item with the key {keys[0]}: nothing was changed")
    summary: dict[str, Any] = {"index": shown(location), "changed": changed, "missing": len(set(keys)) - changed}
    as_json(summary) if json else facts(summary)


@app.command(epilog="Example:  adsh index follow photos.index photos-48bits")
def follow(
    location: Location,
    model: Annotated[Path, typer.Argument(help="The folder of the run that adsh update updated.")],
    json: Json = False,
) -> None:
    """Bring an index up to an updated model.

    `adsh update` does so for the index in the model's folder. Items that the update left alone are not touched. An
    interrupted command continues when it is repeated.
    """
    from ..index.locate import open_existing
    from ..runs.follow_index import follow as follow_index

    try:
        with open_existing(location) as index, closing(ProgressLine("indexing")) as bar:
            result = follow_index(index, model, on_done=bar)
    except KeyboardInterrupt:
        raise Stopped("stopped; what was done is kept: repeat the command to continue") from None
    if json:
        as_json({"index": shown(location), **asdict(result)})
    else:
        facts({"index": f"{shown(location)}: {describe_following(result)}"})


@app.command(epilog="Example:  adsh index recode photos.index photos-48bits")
def recode(
    location: Location,
    model: Annotated[Path | None, typer.Argument(help="The updated model.  [default: as for search]")] = None,
    images: Annotated[
        Path | None, typer.Option(metavar="ROOT", help="Where images are, if not where they were: ROOT/KEY.")
    ] = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Encode items of an earlier network again.

    After an update of the model, these are items without a label that the model knows. An interrupted command
    continues when it is repeated.
    """
    from ..index.locate import open_existing
    from ..search.index_model import load_model_of
    from ..search.recode import recode as recode_index

    try:
        with open_existing(location) as index, closing(ProgressLine("encoding")) as bar:
            loaded = load_model_of(index, model, device, newest=True)
            result = recode_index(index, loaded, images, bar)
    except KeyboardInterrupt:
        raise Stopped("stopped; what was encoded is kept: repeat the command to continue") from None
    if json:
        as_json({"index": shown(location), **asdict(result)})
        return
    unreadable = f", {len(result.unreadable):,} cannot be read and stay as they are" * bool(result.unreadable)
    facts({"index": f"{shown(location)}: {result.recoded:,} items encoded again{unreadable}; {result.seconds:.1f} s"})
    list_some([f"{key}: {reason}" for key, reason in result.unreadable], "--json lists them")


def describe_following(result: FollowResult) -> str:
    """Return what following an update changed in an index, on one line."""
    counts = [f"{result.items:,} items", f"{result.added:,} added", f"{result.changed + result.renamed:,} changed"]
    counts.append(f"{result.removed:,} removed")
    outdated = f"; {result.outdated:,} are encoded by the earlier network: adsh index recode" * bool(result.outdated)
    return ", ".join(counts) + outdated
