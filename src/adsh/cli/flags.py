"""Flags that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SOURCE_HELP = "A name (digits, cifar10, …), a folder with a sub-folder per class, a list (.csv, …), or a .npy or .npz."

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Model = Annotated[Path, typer.Argument(help="A folder that a model was saved in.")]
Source = Annotated[str, typer.Argument(help=SOURCE_HELP)]
Root = Annotated[str | None, typer.Option(help="Where the files of a named source are.  [default: $ADSH_DATA/SOURCE]")]
Labels = Annotated[str | None, typer.Option(help="A .npy of labels, for a source of arrays.")]
Size = Annotated[int | None, typer.Option(help="The side that images are resized to.  [default: the network's]")]
SkipBad = Annotated[bool | None, typer.Option("--skip-bad", help="List files that cannot be read, and leave them out.")]
SkipBadByDefault = Annotated[bool | None, typer.Option("--skip-bad", hidden=True)]  # which the flag was needed for once
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop where a file cannot be read, with all such files, and leave nothing out.")
]
Workers = Annotated[int | None, typer.Option(help="Threads that read files.  [default: one per core]")]
Cache = Annotated[
    str | None,
    typer.Option(metavar="ram|disk|FOLDER|none", help="Where decoded images are cached.  [default: ram]"),
]
CacheSize = Annotated[
    str | None, typer.Option(metavar="8GB", help="The largest size of the cache.  [default: half of the free memory]")
]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda, …  [default: auto]")]
