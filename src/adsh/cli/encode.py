"""`adsh encode`."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ..utils.progress import ProgressLine
from ..utils.urls import is_address, shown
from .flags import Device, Json, Labels, Model, Root, SkipBad, Source, Workers
from .show import as_json, facts, list_unreadable

if TYPE_CHECKING:
    from ..cluster.ray_encode import Job

EXAMPLE = "adsh encode photos-48bits new-photos/ --out codes.npz"


def command(
    model: Model,
    source: Source,
    out: Annotated[
        str | None,
        typer.Option(
            help="codes.npz (codes, keys, bits) or codes.npy (codes alone); with Ray, a folder or address.  "
            "[default: codes.npz; with Ray, codes]"
        ),
    ] = None,
    root: Root = None,
    labels: Labels = None,
    skip_bad: SkipBad = None,
    workers: Workers = None,
    device: Device = None,
    engine: Annotated[str, typer.Option(help="local, or ray: by many machines, into Parquet.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="Ray's cluster.  [default: $RAY_ADDRESS, or this machine]")
    ] = None,
    runtime: Annotated[str, typer.Option(help="With Ray: torch, or onnx with a folder of adsh export.")] = "torch",
    partition: Annotated[int | None, typer.Option(help="With Ray: items of a partition.  [default: 1024]")] = None,
    actors: Annotated[int | None, typer.Option(help="With Ray: at most so many.  [default: one a CPU or GPU]")] = None,
    gpus: Annotated[float, typer.Option(help="With Ray: of an actor.")] = 0.0,
    index: Annotated[
        str | None, typer.Option(help="With Ray: also put the codes into this index, of keys that it has not.")
    ] = None,
    key_column: Annotated[str | None, typer.Option(help="Of a Parquet source, with Ray.  [default: key]")] = None,
    image_column: Annotated[
        str | None, typer.Option(help="The same: the bytes of image files.  [default: image]")
    ] = None,
    json: Json = False,
) -> None:
    """Code every item of a source with a model's network.

    Codes are rows of uint8 in numpy.packbits order. Images in files are brought to the size the model learned on; the
    first that cannot be read stops it, and with --skip-bad all are read once before, and those left out and listed.

    With --engine ray the source may also be Parquet files, or an address (s3://, gs://, file://) of image files. The
    codes go partition by partition into --out, as Parquet; given again, the command goes on with what is missing.
    """
    if engine not in ("local", "ray"):
        raise InputError(f"--engine {engine}: choose local or ray")
    of_ray = {
        "--address": address, "--actors": actors, "--gpus": gpus, "--index": index, "--partition": partition,
        "--key-column": key_column, "--image-column": image_column,
    }  # fmt: skip
    of_local = {"--labels": labels, "--workers": workers}
    for flag, value in (of_ray if engine == "local" else of_local).items():
        if value:
            raise InputError(f"{flag} goes with --engine {'ray' if engine == 'local' else 'local'}: leave it out")
    if engine == "local":
        if runtime != "torch":
            raise InputError(f"--runtime {runtime} goes with --engine ray")
        if is_address(source) or source.endswith(".parquet"):
            raise InputError(f"{shown(source)} can be read with --engine ray: give that, and a folder as --out")
        _here(model, source, Path(out or "codes.npz"), root, labels, bool(skip_bad), workers, device, json)
        return
    from ..cluster.partitions import partition_source
    from ..cluster.ray_encode import Job

    size = 1024 if partition is None else partition
    cut = partition_source(source, root=root, size=size, keys=key_column or "key", images=image_column or "image")
    job = Job.of(model, cut, out or "codes", runtime=runtime, device=device, skip_bad=bool(skip_bad))
    _by_ray(job, index, json, address=address, actors=actors, gpus=gpus)


def _by_ray(job: Job, index: str | None, json: bool, **where: Any) -> None:
    """Codes on a cluster, and says how much."""
    from ..cluster.ray_encode import encode_with_ray
    from ..index import open_index
    from ..index.locate import MODEL, inside

    with ExitStack() as held:
        bar = held.enter_context(closing(ProgressLine("partitions")))
        into = None
        if index is not None:
            into = held.enter_context(open_index(inside(index), bits=job.bits, model=job.fingerprint))
            if job.runtime == "torch" and into.get_note(MODEL) is None:
                into.set_note(MODEL, job.model)
        with redirect_stdout(sys.stderr):  # where Ray tells of lost nodes; what is printed here stays a program's
            done = encode_with_ray(job, index=into, on_done=bar, **where)
    told = {
        "codes": shown(job.out), "partitions": done.partitions, "there_before": done.skipped, "items": done.items,
        "bits": job.bits, "seconds": round(done.seconds, 3),
        **({"index": shown(index), "new_in_the_index": done.added} if index else {}),
    }  # fmt: skip
    if json:
        as_json({**told, "unreadable": done.unreadable})
        return
    facts({name.replace("_", " "): value for name, value in told.items()})
    for line in done.unreadable:
        print(f"  {line}")


def _here(
    model: Path,
    source: str,
    out: Path,
    root: str | None,
    labels: str | None,
    skip_bad: bool,
    workers: int | None,
    device: str | None,
    json: bool,
) -> None:
    """Codes in this process, into one file."""
    from ..data import open_source
    from ..data.readable import as_records
    from ..models.adsh import load
    from ..runs.encode import check_out, encode, items_for

    check_out(out)
    loaded = load(model, device=device)
    reading, encoding = ProgressLine(), ProgressLine("encoding")
    try:
        opened = open_source(source, root=root, labels=labels)
        dataset, bad = items_for(loaded, opened, skip_bad=skip_bad, workers=workers, on_read=reading)
        seconds = encode(loaded, dataset, out, on_done=lambda done: encoding(done, len(dataset)))
    finally:
        reading.close()
        encoding.close()
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
    list_unreadable(read)
