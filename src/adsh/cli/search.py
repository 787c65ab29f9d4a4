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
        }
        for row, (key, matches) in enumerate(zip(queries.keys[: len(queries)], found, strict=True))
    ]
    if json:
        page = {name: str(path) for name, path in (("html", html), ("out", out)) if path is not None}
        as_json({"index": shown(location), "seconds": round(seconds, 4), "queries": answers, **page})
        return
    for answer in answers:
        line(f"{answer['query']}: {len(answer['matches'])} found{_nearest(answer, radius)}")
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


def _class(metadata: dict[str, Any] | None) -> str:
    value = (metadata or {}).get("class", "")
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
