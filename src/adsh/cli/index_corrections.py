"""`adsh index corrections`: list, import, export and undo corrections of items' labels."""

from __future__ import annotations

import csv
import getpass
import io
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from ..utils.urls import shown
from .flags import Json
from .index import Location, ModelFolder, app
from .show import as_json, line, table

GROUP = app  # with the commands of `index` and of this file
_COLUMNS = ("number", "key", "labels", "before", "who", "when")


@app.command(epilog="Example:  adsh index corrections photos.index --import right.csv")
def corrections(
    location: Location,
    csv_file: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write them to a .csv.")] = None,
    import_file: Annotated[
        Path | None,
        typer.Option("--import", metavar="FILE", help="Correct items: a .csv of keys and their labels."),
    ] = None,
    undo: Annotated[int | None, typer.Option(metavar="NUMBER", help="Undo a correction.")] = None,
    model: ModelFolder = None,
    json: Json = False,
) -> None:
    """List open corrections, or make and undo them.

    A correction gives items other labels at once, with the codes that the model has for these. It stays open until
    `adsh update --corrections` teaches it to the model.
    """
    from ..index.corrections import MOST_ITEMS, Corrections
    from ..index.locate import open_existing
    from ..models.label_codes import code_of_labels
    from ..runs.update_inputs import read_relabel
    from ..search.index_model import load_model_of

    with open_existing(location) as index:
        if import_file is not None:
            loaded = load_model_of(index, model, "cpu")
            kept = Corrections(index, lambda labels: code_of_labels(loaded, labels))
            right = list(read_relabel(import_file).items())
            for start in range(0, len(right), MOST_ITEMS):
                kept.add(dict(right[start : start + MOST_ITEMS]), getpass.getuser())
        if undo is not None:
            Corrections(index).undo(undo)
        found = Corrections(index).open()
    rows = [
        (str(each.number), item.key, "|".join(item.labels), "|".join(item.before), each.who, each.when)
        for each in found
        for item in each.items
    ]
    if csv_file is not None:
        _write(csv_file, {item.key: item.labels for each in found for item in each.items})
    if json:
        as_json({"index": shown(location), "corrections": [asdict(each) for each in found]})
    elif rows:
        table(_COLUMNS, rows)
    else:
        line("no open corrections")


def _write(path: Path, labels: dict[str, list[str]]) -> None:
    """Write a .csv with a key and its labels on each line, as --import and adsh update --relabel read it."""
    from ..utils.files import replacing_file

    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(("key", "label"))
    writer.writerows((key, *names) for key, names in labels.items())
    with replacing_file(path) as file:
        file.write(text.getvalue().encode())
