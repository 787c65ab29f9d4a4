"""Flags that several verbs share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of text.")]
Model = Annotated[Path, typer.Argument(help="A folder that a model was saved in.")]
Source = Annotated[str, typer.Argument(help="A name (digits, …) or the path of a .npy or .npz file.")]
Root = Annotated[str | None, typer.Option(help="Where a named source's files are; else $ADSH_DATA/SOURCE.")]
Labels = Annotated[str | None, typer.Option(help="A .npy of labels, for a source of arrays.")]
Device = Annotated[str | None, typer.Option(help="auto, cpu, cuda, …")]
