"""Flags that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

SOURCE_HELP = "A name (digits, cifar10, …), a folder with a sub-folder a class, a list (.csv, …), or a .npy or .npz."

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Model = Annotated[Path, typer.Argument(help="A folder that a model was saved in.")]
Source = Annotated[str, typer.Argument(help=SOURCE_HELP)]
Root = Annotated[str | None, typer.Option(help="Where a named source's files are; else $ADSH_DATA/SOURCE.")]
Labels = Annotated[str | None, typer.Option(help="A .npy of labels, for a source of arrays.")]
Size = Annotated[int | None, typer.Option(help="The side images are brought to.  [default: what the network works on]")]
SkipBad = Annotated[
    bool | None, typer.Option("--skip-bad", help="List files that cannot be read and go on without them.")
]
Workers = Annotated[int | None, typer.Option(help="Threads that read files.  [default: one a core]")]
Cache = Annotated[
    str | None,
    typer.Option(metavar="ram|disk|FOLDER|none", help="Where decoded images are kept.  [default: ram]"),
]
CacheSize = Annotated[
    str | None, typer.Option(metavar="8GB", help="The most to keep.  [default: half of the free memory]")
]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda, …  [default: auto]")]
