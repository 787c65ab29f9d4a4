"""`adsh encode`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from .flags import Device, Json, Labels, Model, Root, SkipBad, Source, Workers
from .show import ReadingBar, as_json, facts, list_bad

EXAMPLE = "adsh encode digits-24 digits --out codes.npz"


def command(
    model: Model,
    source: Source,
    out: Annotated[Path, typer.Option(help="codes.npz (codes, keys, bits) or codes.npy (codes alone).")] = Path(
        "codes.npz"
    ),
    root: Root = None,
    labels: Labels = None,
    skip_bad: SkipBad = None,
    workers: Workers = None,
    device: Device = None,
    json: Json = False,
) -> None:
    """Code every item of a source with a model's network.

    Codes are rows of uint8 in numpy.packbits order. Images in files are brought to the size the model learned on; the
    first that cannot be read stops it, and with --skip-bad all are read once before, and those left out and listed.
    """
    from ..data import open_source
    from ..data.readable import as_records
    from ..encode_run import check_out, encode, items_for
    from ..estimator import load

    check_out(out)
    loaded = load(model, device=device)
    reading, coding = ReadingBar(), ReadingBar("coding")
    try:
        opened = open_source(source, root=root, labels=labels)
        dataset, bad = items_for(loaded, opened, skip_bad=bool(skip_bad), workers=workers, reading=reading)
        seconds = encode(loaded, dataset, out, on_done=lambda done: coding(done, len(dataset)))
    finally:
        reading.close()
        coding.close()
    read = {"unreadable": as_records(bad)}
    told = {
        "codes": str(out), "items": len(dataset), "bits": loaded.bits, "bytes_an_item": (loaded.bits + 7) // 8,
        "seconds": round(seconds, 3), "items_per_second": round(len(dataset) / max(seconds, 1e-9)),
    }  # fmt: skip
    if json:
        as_json({**told, **(read if bad else {})})
        return
    facts(
        {
            "codes": f"{out}: {told['items']:,} items of {told['bits']} bits, {told['bytes_an_item']} bytes each",
            "coded": f"in {seconds:.1f} s, {told['items_per_second']:,} items/s on {loaded.device_}",
            **({"images": f"{len(bad):,} of {len(opened):,} cannot be read and are left out"} if bad else {}),
        }
    )
    list_bad(read)
