"""`adsh features`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ..utils.progress import ProgressLine
from .flags import Cache, CacheSize, Device, Json, Root, Size, SkipBad, Source, Workers
from .show import Stopped, as_json, facts, list_unreadable

EXAMPLE = "adsh features photos/ --network efficientnet_lite0 --out photos.npy"


def command(
    source: Source,
    network: Annotated[str | None, typer.Option(help="The network.  [default: efficientnet_lite0]")] = None,
    out: Annotated[Path, typer.Option("-o", "--out", help="The file of features, (n, d) float32.")] = Path(
        "features.npy"
    ),
    weights: Annotated[
        str | None, typer.Option(help="pretrained, the path of a weight file, or none.  [default: the network's]")
    ] = None,
    size: Size = None,
    batch: Annotated[int | None, typer.Option(help="Images per batch.")] = None,
    root: Root = None,
    skip_bad: SkipBad = None,
    cache: Cache = None,
    cache_size: CacheSize = None,
    workers: Workers = None,
    device: Device = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    json: Json = False,
) -> None:
    """Compute features of images once, to train on quickly.

    A pre-trained network computes a feature vector of every image, for `adsh train` and the methods that take features.

    A run that was stopped is resumed by the same command. Labels, keys and class names are written next to the
    features, and adsh train features.npy finds them there.
    """
    from ..data import open_source
    from ..data.readable import as_records
    from ..runs.defaults import PRETRAINED
    from ..runs.features import check_out, make_features
    from ..runs.inputs import prepare_inputs

    check_out(out)
    network = network or PRETRAINED
    reading, computing = ProgressLine(), ProgressLine("features")
    try:
        prepared = prepare_inputs(
            open_source(source, root=root), network=network, size=size, cache=cache or "ram", cache_size=cache_size,
            skip_bad=bool(skip_bad), workers=workers, on_read=reading,
        )  # fmt: skip
        features = make_features(
            prepared.usable(), out, network=network, batch=batch, device=device or "auto", overwrite=overwrite,
            weights=None if weights == "none" else weights or "auto", on_done=computing,
        )  # fmt: skip
    except KeyboardInterrupt:
        raise Stopped("stopped; repeat the command to continue") from None
    finally:
        reading.close()
        computing.close()
    items, width = features.shape
    read = {"unreadable": as_records(prepared.bad)}
    values: dict[str, Any] = {
        "features": str(out), "items": items, "width": width, "network": network, "done_before": features.resumed,
        "seconds": round(features.seconds, 3),
        "items_per_second": round((items - features.resumed) / max(features.seconds, 1e-9)),
        "device": str(features.device),
    }  # fmt: skip
    if json:
        as_json({**values, **(read if prepared.bad else {})})
        return
    again = f", {features.resumed:,} of them computed before" if features.resumed else ""
    facts(
        {
            "features": f"{out}: {items:,} items of {width:,} numbers by {network}{again}",
            "computed": f"in {features.seconds:.1f} s, {values['items_per_second']:,} items/s on {features.device}",
            **({"images": f"{len(prepared.bad):,} cannot be read and are left out"} if prepared.bad else {}),
            "next": f"adsh train {out} --network linear",
        }
    )
    list_unreadable(read)
