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
    format: Annotated[str, typer.Option(help="onnx.")] = "onnx",
    out: Annotated[Path | None, typer.Option(help="The folder to write.  [default: MODEL-onnx]")] = None,
    json: Json = False,
) -> None:
    """Write a model's network for runtimes without torch.

    The folder holds model.onnx (items to real outputs, packed codes and features, any number at once) and export.json,
    which says how pictures are to be prepared. It is checked with onnxruntime against the model before it is written.
    """
    from ..export.onnx import export

    out = out or model.resolve().with_name(f"{model.resolve().name}-{format}")
    written = export(model, out, format=format)
    told = written.facts
    if json:
        as_json({"folder": str(out), **told, "bytes": written.bytes, "seconds": round(written.seconds, 3)})
        return
    outputs = ", ".join(f"{name} {_shape(one)}" for name, one in told["outputs"].items())
    facts(
        {
            "folder": f"{out}: model.onnx, {written.bytes / 1e6:,.1f} MB, and export.json; in {written.seconds:.1f} s",
            "input": f"{told['input']['name']} {_shape(told['input'])}",
            "outputs": outputs,
            "checked": f"onnxruntime and the model differ by at most {told['largest_difference']:.1e}; codes are equal",
            "use": f'adsh.encoders.onnx.OnnxCoder("{out}") in Python, or any ONNX runtime: see docs/export.md',
        }
    )


def _shape(one: dict[str, object]) -> str:
    sides = one["shape"]
    assert isinstance(sides, list)
    return f"{one['type']} ({', '.join(map(str, sides))})"
