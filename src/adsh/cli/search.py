"""`adsh search`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..utils.urls import shown
from ..utils.words import count
from .flags import Device, Json
from .show import as_json, line, table

EXAMPLE = "adsh search photos.index cat.jpg -k 20 --html found.html"


def command(
    location: Annotated[str, typer.Argument(metavar="INDEX", help="The index: a folder or a URL.")],
    images: Annotated[
        list[str],
        typer.Argument(metavar="IMAGE…", help="Query images; for a model on features, .npy files; or a .parquet."),
    ],
    k: Annotated[int, typer.Option("-k", "--k", "--top-k", help="Number of matches for each query.")] = 10,
    radius: Annotated[int | None, typer.Option(help="Only items within this Hamming distance.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where", "--filter", metavar="FIELD=VALUE", help="Only items with this metadata; also < <= > >= !=."
        ),
    ] = None,
    ranking: Annotated[
        str,
        typer.Option(
            metavar="hamming|asymmetric",
            help="How items are ordered: by differing bits, or by the network's real-valued outputs.",
        ),
    ] = "hamming",
    rerank: Annotated[
        bool | None, typer.Option(help="Order ties by visual similarity.  [default: where the index has vectors]")
    ] = None,
    model: Annotated[
        Path | None, typer.Option(help="The model's folder.  [default: the one stored in the index]")
    ] = None,
    unknown: Annotated[
        bool,
        typer.Option("--unknown", help="Of the images or folders, list those that look like nothing known, grouped."),
    ] = False,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="Also write the matches to this .parquet file.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with the images to this file.")] = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Search an index by image.

    The model encodes each query, and the index returns the nearest items with their distance in bits.
    """
    from ..data.frames import check_parquet, matches_table, save_parquet
    from ..index.locate import open_existing
    from ..search.index_model import load_model_of
    from ..search.page import write_page
    from ..search.query_parsing import open_queries, parse_conditions
    from ..search.searcher import Searcher, SearchOptions, encode_queries
    from ..utils.files import check_parent

    _check_order(location, images)
    options = SearchOptions(k, radius, parse_conditions(where or []), ranking, rerank)
    if html is not None:
        check_parent(html)
    if out is not None:
        check_parquet(out)
    if unknown:
        if out is not None:
            raise InputError("--out writes the matches of queries, and --unknown has none: use --json or --html")
        _list_unknown(location, images, model, device, html, json)
        return
    queries = open_queries(images)
    with open_existing(location) as index:
        loaded = load_model_of(index, model, device)
        started = time.perf_counter()
        searcher, encoded = Searcher(index), encode_queries(loaded, queries)
        found = searcher.search(encoded, options)
        seconds = time.perf_counter() - started
        nearest = {
            row: searcher.nearest_distance(encoded.codes[row : row + 1], options.where)
            for row, matches in enumerate(found)
            if radius is not None and not len(matches)
        }
        if html is not None:
            write_page(html, shown(location), queries, found, index.bits, nearest)
    if out is not None:
        save_parquet(matches_table(found, queries.keys[:]), out)
    answers: list[dict[str, Any]] = [
        {
            "query": key,
            "matches": [
                {"key": match.key, "distance": match.distance, "metadata": match.metadata} for match in matches
            ],
            **({"nearest": nearest[row]} if row in nearest else {}),
            **({} if encoded.familiarity is None else {"familiarity": round(encoded.familiarity[row], 4)}),
        }
        for row, (key, matches) in enumerate(zip(queries.keys[: len(queries)], found, strict=True))
    ]
    if json:
        page = {name: str(path) for name, path in (("html", html), ("out", out)) if path is not None}
        as_json({"index": shown(location), "seconds": round(seconds, 4), "queries": answers, **page})
        return
    for answer in answers:
        line(f"{answer['query']}: {len(answer['matches'])} found{_nearest(answer, radius)}{_unfamiliar(answer)}")
        if answer["matches"]:
            rows = [
                (str(rank), f"{match['distance']:g}", match["key"], _class(match["metadata"]))
                for rank, match in enumerate(answer["matches"], 1)
            ]
            table(("", "distance", "key", "class"), rows)
    if html is not None:
        print(f"page  {html}")
    if out is not None:
        print(f"matches  {out}")


def _check_order(location: str, images: list[str]) -> None:
    """Raise, with the right command, when an image is given in place of the index."""
    if Path(location).is_file():
        folders = [image for image in images if Path(image).is_dir()]
        index, queries = (folders[0], location) if folders else ("INDEX", " ".join([location, *images]))
        raise InputError(f"{location} is a file: give the index first, adsh search {index} {queries}")


def _nearest(answer: dict[str, Any], radius: int | None) -> str:
    """Return what to say of a query that a radius finds nothing for; nothing for others."""
    if radius is None or "nearest" not in answer:
        return ""
    away = "" if answer["nearest"] is None else f"; the nearest is at distance {answer['nearest']}"
    return f" within {count(radius, 'bit')}{away}"


def _list_unknown(
    location: str, sources: list[str], folder: Path | None, device: str | None, html: Path | None, json: bool
) -> None:
    """List the items of images or of one source that look like nothing the model was trained on."""
    from ..data import open_source
    from ..index.locate import open_existing
    from ..search.index_model import load_model_of
    from ..search.query_parsing import open_queries
    from ..search.unknown import find_unknown, write_groups
    from ..utils.progress import ProgressLine

    if len(sources) > 1 and any(Path(source).is_dir() for source in sources):
        raise InputError(f"--unknown with {len(sources)} sources: give one folder or list, or images alone")
    items = open_queries(sources) if all(Path(source).is_file() for source in sources) else open_source(sources[0])
    with open_existing(location) as index:
        model = load_model_of(index, folder, device)
    groups = find_unknown(model, items, ProgressLine("reading"))
    if html is not None:
        write_groups(html, items, groups)
    keys = [[items.keys[item] for item in group.items] for group in groups]
    if json:
        page = {"html": str(html)} if html is not None else {}
        found = [{"items": names, "familiarity": group.familiarity} for names, group in zip(keys, groups, strict=True)]
        as_json({"index": shown(location), "items": len(items), "groups": found, **page})
        return
    unfamiliar = sum(len(names) for names in keys)
    line(f"{unfamiliar:,} of {count(len(items), 'item')} look like nothing the model was trained on")
    rows = [(str(number), f"{len(names):,}", names[0]) for number, names in enumerate(keys, 1)]
    table(("group", "items", "such as"), rows)
    if html is not None:
        print(f"page  {html}")


def _unfamiliar(answer: dict[str, Any]) -> str:
    """Return what to say of a query that looks like nothing that the model was trained on; nothing for others."""
    from ..search.searcher import UNFAMILIAR

    if answer.get("familiarity", 1.0) >= UNFAMILIAR:
        return ""
    return "; looks like nothing the model was trained on: fewer than 1 in 100 known items look this unfamiliar"


def _class(metadata: dict[str, Any] | None) -> str:
    value = (metadata or {}).get("class", "")
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
