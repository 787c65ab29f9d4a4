"""`adsh data`: download a published data set, and show what a source holds."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..utils.progress import ProgressLine
from .flags import Json, Labels, Root, SkipBadByDefault, Source, Strict
from .show import as_json, facts, list_some

if TYPE_CHECKING:
    from ..data import Dataset
    from ..data.readable import Readable

_LISTED = 20  # classes that are listed one by one

app = typer.Typer(name="data", add_completion=False, rich_markup_mode=None)


@app.callback(invoke_without_command=True, epilog="Example:  adsh data info digits")
def data(context: typer.Context) -> None:
    """Download a published data set, and show what a source holds."""
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(epilog="Example:  adsh data info cifar10 --sheet cifar10.png")
def info(
    source: Source,
    root: Root = None,
    labels: Labels = None,
    sheet: Annotated[Path | None, typer.Option(help="Write an image with samples of each class to this file.")] = None,
    strict: Strict = False,
    skip_bad: SkipBadByDefault = None,
    json: Json = False,
) -> None:
    """Show what a source holds.

    How many items, classes and label sets, the share of similar pairs, and which are duplicates. Every item is read
    once: all files that cannot be read are found and listed here, before training.
    """
    from ..data import check_readable, open_source, summary
    from ..data.images.contact_sheet import check_sheet, contact_sheet
    from ..data.readable import as_records

    if sheet is not None:
        check_sheet(sheet)
    dataset = open_source(source, root=root, labels=labels)
    with closing(ProgressLine()) as progress:
        skip = not strict or bool(skip_bad)
        read = check_readable(dataset, skip_bad=skip, progress=lambda done: progress(done, len(dataset)))
    figures = summary(read.dataset, read.digests)
    missing = dataset.missing
    if missing:
        figures["missing"] = len(missing)
    if read.bad:
        figures["unreadable"] = len(read.bad)
    if sheet is not None:
        figures["sheet"] = str(contact_sheet(read.dataset, sheet))
    if json:
        listed = {"bad": as_records(read.bad)} if read.bad else {}
        as_json({**figures, **listed, "duplicate_items": _duplicates(read)})
        return
    sizes = _class_sizes(read.dataset)
    shown = {name.replace("_", " "): _words(value) for name, value in figures.items()}
    facts({**shown, "classes": f"{shown['classes']}: {sizes}"} if sizes else shown)
    list_some([f"{key}: {reason}" for key, reason in read.bad], "--json lists them")
    list_some([_describe_duplicate(item) for item in _duplicates(read)], "--json lists them")


@app.command(epilog="Example:  adsh data get cifar10 --root data/cifar10")
def get(
    source: Annotated[str, typer.Argument(help="The data set to download: cifar10.")],
    root: Annotated[Path | None, typer.Option(help="The folder for it; else $ADSH_DATA/SOURCE.")] = None,
    json: Json = False,
) -> None:
    """Download a published set.

    Checks its digest, goes on where an earlier download broke, and turns to a second source where the first fails.
    """
    from ..data.sources.get_cifar10 import get_cifar10
    from ..data.sources.registry import source_root
    from ..errors import InputError

    if source != "cifar10":
        raise InputError(f"{source!r} cannot be downloaded: only cifar10 can; get others from those who publish them")
    with closing(ProgressLine("downloading")) as progress:
        path = get_cifar10(source_root(source, root), progress=progress)
    if json:
        as_json({"source": source, "path": str(path)})
    else:
        facts({"source": source, "path": path})


def _duplicates(read: Readable) -> list[dict[str, Any]]:
    """Return each item whose content an earlier one has, that one, and whether both have the same labels."""
    from ..data.duplicates import find_duplicates

    keys, labels = read.dataset.keys, read.dataset.labels
    return [
        {"key": keys[item], "same_as": keys[first], "same_labels": labels is None or labels[item] == labels[first]}
        for item, first in zip(*(each.tolist() for each in find_duplicates(read.digests)), strict=True)
    ]


def _describe_duplicate(item: dict[str, Any]) -> str:
    return f"{item['key']}: the same as {item['same_as']}" + ", with other labels" * (not item["same_labels"])


def _class_sizes(dataset: Dataset) -> str:
    """Return how many items each class has; of many classes, the first ones."""
    import numpy as np

    if dataset.labels is None or len(dataset.classes) != len(dataset.labels.names):
        return ""
    labels, names = dataset.labels, dataset.classes
    counts = np.bincount(labels.tags, np.repeat(labels.sizes, np.diff(labels.starts)), len(names))
    listed = [f"{name} {count:,.0f}" for name, count in zip(names[:_LISTED], counts, strict=False)]
    return ", ".join(listed) + ", …" * (len(names) > _LISTED)


def _words(value: Any) -> str:
    if value is None:
        return "none: that needs labels of two classes"
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
