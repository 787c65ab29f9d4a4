"""`adsh encode`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from .flags import Device, Json, Labels, Model, Root, Source
from .show import as_json, bar, facts

EXAMPLE = "adsh encode digits-24 digits --out codes.npz"


def command(
    model: Model,
    source: Source,
    out: Annotated[Path, typer.Option(help="codes.npz (codes, keys, bits) or codes.npy (codes alone).")] = Path(
        "codes.npz"
    ),
    root: Root = None,
    labels: Labels = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Code every item of a source with a model's network.

    Codes are rows of uint8 in numpy.packbits order.
    """
    from ..data import open_source
    from ..encode_run import check_out, encode
    from ..estimator import load

    check_out(out)
    dataset = open_source(source, root=root, labels=labels)
    loaded = load(model, device=device)
    shown = sys.stderr.isatty()
    progress = bar("coding {task.completed:,}/{task.total:,}") if shown else None
    if progress is None:
        seconds = encode(loaded, dataset, out)
    else:
        with progress:
            task = progress.add_task("", total=len(dataset))
            seconds = encode(loaded, dataset, out, on_done=lambda done: progress.update(task, completed=done))
    told = {
        "codes": str(out), "items": len(dataset), "bits": loaded.bits, "bytes_an_item": (loaded.bits + 7) // 8,
        "seconds": round(seconds, 3), "items_per_second": round(len(dataset) / max(seconds, 1e-9)),
    }  # fmt: skip
    if json:
        as_json(told)
        return
    facts(
        {
            "codes": f"{out}: {told['items']:,} items of {told['bits']} bits, {told['bytes_an_item']} bytes each",
            "coded": f"in {seconds:.1f} s, {told['items_per_second']:,} items/s on {loaded.device_}",
        }
    )
