"""`adsh encode`."""

from __future__ import annotations

import sys
from contextlib import ExitStack, closing, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import InputError
from ..utils.progress import ProgressLine
from ..utils.urls import shown
from .flags import Device, Json, Labels, Model, Root, SkipBad, Source, Workers
from .show import as_json, facts, line, list_unreadable

if TYPE_CHECKING:
    from ..cluster.ray_encode import Job

EXAMPLE = "adsh encode photos-48bits new-photos/ --out codes.npz"


def command(
    model: Model,
    source: Source,
    out: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--out",
            help="codes.npz (codes, keys, bits), codes.npy (codes alone) or codes.parquet; with Ray, a folder or URL.  "
            "[default: codes.npz; with Ray, codes]",
        ),
    ] = None,
    root: Root = None,
    labels: Labels = None,
    skip_bad: SkipBad = None,
    workers: Workers = None,
    device: Device = None,
    engine: Annotated[str, typer.Option(help="local, or ray: on many machines, into Parquet.")] = "local",
    address: Annotated[
        str | None, typer.Option(help="The Ray cluster.  [default: $RAY_ADDRESS, or this machine]")
    ] = None,
    runtime: Annotated[str, typer.Option(help="With Ray: torch, or onnx with a folder of adsh export.")] = "torch",
    partition: Annotated[int | None, typer.Option(help="With Ray: items per partition.  [default: 1024]")] = None,
    actors: Annotated[
        int | None, typer.Option(help="With Ray: the largest number.  [default: one per CPU or GPU]")
    ] = None,
    gpus: Annotated[float, typer.Option(help="With Ray: GPUs per actor.")] = 0.0,
    index: Annotated[str | None, typer.Option(help="With Ray: also add items with new keys to this index.")] = None,
    key_column: Annotated[
        str | None, typer.Option(help="With Ray: the keys of a Parquet source.  [default: key]")
    ] = None,
    image_column: Annotated[
        str | None, typer.Option(help="With Ray: its image files, as bytes.  [default: image]")
    ] = None,
    json: Json = False,
) -> None:
    """Encode every item of a source with a model's network.

    Codes are rows of uint8 in numpy.packbits order. Images in files are resized to the size the model was trained on;
    the first that cannot be read stops the command. With --skip-bad all are read once before, and those that cannot be
    read are left out and listed.

    With --engine ray the source may also be Parquet files, or the URL (s3://, gs://, file://) of image files. Codes are
    written to --out partition by partition, as Parquet; the same command continues with the missing partitions.
    """
    if engine not in ("local", "ray"):
        raise InputError(f"--engine {engine}: choose local or ray")
    ray_flags = {
        "--address": address, "--actors": actors, "--gpus": gpus, "--index": index, "--partition": partition,
        "--key-column": key_column, "--image-column": image_column,
    }  # fmt: skip
    local_flags = {"--labels": labels, "--workers": workers}
    for flag, value in (ray_flags if engine == "local" else local_flags).items():
        if value:
            raise InputError(f"{flag} goes with --engine {'ray' if engine == 'local' else 'local'}: leave it out")
    if engine == "local":
        if runtime != "torch":
            raise InputError(f"--runtime {runtime} goes with --engine ray")
        _encode_locally(model, source, Path(out or "codes.npz"), root, labels, bool(skip_bad), workers, device, json)
        return
    from ..cluster.partitions import partition_source
    from ..cluster.ray_encode import Job

    size = 1024 if partition is None else partition
    partitions = partition_source(
        source, root=root, size=size, keys=key_column or "key", images=image_column or "image"
    )
    job = Job.of(model, partitions, out or "codes", runtime=runtime, device=device, skip_bad=bool(skip_bad))
    _encode_with_ray(job, index, json, address=address, actors=actors, gpus=gpus)


def _encode_with_ray(job: Job, index: str | None, json: bool, **where: Any) -> None:
    """Encode on a cluster, and print how much."""
    from ..cluster.ray_encode import encode_with_ray
    from ..index import open_index
    from ..index.locate import MODEL, inside

    with ExitStack() as stack:
        bar = stack.enter_context(closing(ProgressLine("partitions")))
        target = None
        if index is not None:
            target = stack.enter_context(open_index(inside(index), bits=job.bits, model=job.fingerprint, create=True))
            if job.runtime == "torch" and target.get_note(MODEL) is None:
                target.set_note(MODEL, job.model)
        with redirect_stdout(sys.stderr):  # where Ray reports lost nodes: standard output is for programs
            done = encode_with_ray(job, index=target, on_done=bar, **where)
    values = {
        "codes": shown(job.out), "partitions": done.partitions, "skipped": done.skipped, "items": done.items,
        "bits": job.bits, "seconds": round(done.seconds, 3),
        **({"index": shown(index), "added": done.added} if index else {}),
    }  # fmt: skip
    if json:
        older_names = {"there_before": done.skipped, **({"new_in_the_index": done.added} if index else {})}
        as_json({**values, **older_names, "unreadable": done.unreadable})
        return
    facts({name.replace("_", " "): value for name, value in values.items()})
    for reason in done.unreadable:
        line(f"  {reason}")


def _encode_locally(
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
    """Encode in this process, into one file."""
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
    values = {
        "codes": str(out), "items": len(dataset), "bits": loaded.bits, "bytes_an_item": (loaded.bits + 7) // 8,
        "seconds": round(seconds, 3), "items_per_second": round(len(dataset) / max(seconds, 1e-9)),
    }  # fmt: skip
    if json:
        as_json({**values, **(read if bad else {})})
        return
    facts(
        {
            "codes": f"{out}: {values['items']:,} items of {values['bits']} bits, {values['bytes_an_item']} bytes each",
            "encoded": f"in {seconds:.1f} s, {values['items_per_second']:,} items/s on {loaded.device_}",
            **({"images": f"{len(bad):,} of {len(opened):,} cannot be read and are left out"} if bad else {}),
        }
    )
    list_unreadable(read)
