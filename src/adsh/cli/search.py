"""`adsh search`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import InputError
from ..utils.urls import shown
from .flags import Device, Json
from .show import as_json, table

EXAMPLE = "adsh search photos.index cat.jpg -k 20 --html found.html"


def command(
    location: Annotated[str, typer.Argument(metavar="INDEX", help="The index: a folder or an address.")],
    images: Annotated[
        list[str], typer.Argument(metavar="IMAGE…", help="Pictures, or for a model of features .npy files of rows.")
    ],
    k: Annotated[int, typer.Option("-k", help="How many to find.")] = 10,
    radius: Annotated[int | None, typer.Option(help="Only those within this Hamming distance.")] = None,
    where: Annotated[
        list[str] | None, typer.Option(metavar="FIELD=VALUE", help="Only items with this metadata; also < <= > >= !=.")
    ] = None,
    ranking: Annotated[str, typer.Option(metavar="hamming|asymmetric", help="What orders the items.")] = "hamming",
    rerank: Annotated[
        bool | None, typer.Option(help="Order what has one code by what it looks like.  [default: where it can be]")
    ] = None,
    model: Annotated[Path | None, typer.Option(help="The model's folder.  [default: the one the index notes]")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page with the pictures here.")] = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Find what is most like some pictures.

    The model's network codes each picture, and the index gives the nearest items with their distance in bits.
    """
    from ..index.locate import open_existing
    from ..search.ingest import find, model_of
    from ..search.page import write_page
    from ..search.query_parsing import conditions, open_queries
    from ..utils.files import check_parent

    _check_order(location, images)
    wanted = conditions(where or [])
    if html is not None:
        check_parent(html)
    queries = open_queries(images)
    with open_existing(location) as index:
        loaded = model_of(index, model, device)
        started = time.perf_counter()
        found = find(index, loaded, queries, k=k, radius=radius, where=wanted, ranking=ranking, rerank=rerank)
        seconds = time.perf_counter() - started
        if html is not None:
            write_page(html, shown(location), queries, found, index.bits)
    answers: list[dict[str, Any]] = [
        {
            "query": key,
            "matches": [{"key": m.key, "distance": m.distance, "metadata": m.metadata} for m in matches],
        }
        for key, matches in zip(queries.keys[: len(queries)], found, strict=True)
    ]
    if json:
        page = {"html": str(html)} if html is not None else {}
        as_json({"index": shown(location), "seconds": round(seconds, 4), "queries": answers, **page})
        return
    for answer in answers:
        print(f"{answer['query']}: {len(answer['matches'])} found")
        if answer["matches"]:
            rows = [
                (str(at), f"{m['distance']:g}", m["key"], _class(m["metadata"]))
                for at, m in enumerate(answer["matches"], 1)
            ]
            table(("", "distance", "key", "class"), rows)
    if html is not None:
        print(f"page  {html}")


def _check_order(location: str, images: list[str]) -> None:
    """The index is named first, and nobody knows that by heart."""
    if Path(location).is_file():
        folders = [image for image in images if Path(image).is_dir()]
        index, pictures = (folders[0], location) if folders else ("INDEX", " ".join([location, *images]))
        raise InputError(f"{location} is a file: name the index first, adsh search {index} {pictures}")


def _class(metadata: dict[str, Any] | None) -> str:
    value = (metadata or {}).get("class", "")
    return ", ".join(value) if isinstance(value, list) else str(value)
