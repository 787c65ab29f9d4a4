"""`adsh export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .flags import Json, Model
from .show import as_json, facts

EXAMPLE = "adsh export photos-48bits --format onnx --out photos-onnx"


def command(
    model: Model,
    format: Annotated[str, typer.Option(help="The format: onnx.")] = "onnx",
    out: Annotated[Path | None, typer.Option(help="The folder to write.  [default: MODEL-onnx]")] = None,
    json: Json = False,
) -> None:
    """Export a model to ONNX, for use without torch.

    The folder gets model.onnx (a batch of items to real-valued outputs, packed codes and features) and export.json,
    which says how to prepare images. onnxruntime's results are compared with the model's before anything is written.
    """
    from ..export.onnx import export

    out = out or model.resolve().with_name(f"{model.resolve().name}-{format}")
    written = export(model, out, format=format)
    exported = written.facts
    if json:
        as_json({"folder": str(out), **exported, "bytes": written.bytes, "seconds": round(written.seconds, 3)})
        return
    outputs = ", ".join(f"{name} {_shape(tensor)}" for name, tensor in exported["outputs"].items())
    facts(
        {
            "folder": f"{out}: model.onnx, {written.bytes / 1e6:,.1f} MB, and export.json; in {written.seconds:.1f} s",
            "input": f"{exported['input']['name']} {_shape(exported['input'])}",
            "outputs": outputs,
            "checked": f"outputs differ from the model's by at most {exported['largest_difference']:.1e}; equal codes",
            "use": f'adsh.encoders.onnx.OnnxEncoder("{out}") in Python, or any ONNX runtime: see docs/howto/export.md',
        }
    )


def _shape(tensor: dict[str, object]) -> str:
    sides = tensor["shape"]
    assert isinstance(sides, list)
    return f"{tensor['type']} ({', '.join(map(str, sides))})"
