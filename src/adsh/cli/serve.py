"""`adsh serve`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..encoders.onnx_package import is_export
from ..models.storage_format import INDEX
from ..serve.limits import Limits
from .flags import Device, Json
from .show import as_json, facts

EXAMPLE = "adsh serve photos-48bits --images photos/"


def command(
    model: Annotated[Path, typer.Argument(help="A folder that a model was saved in, or exported to.")],
    index: Annotated[
        str | None, typer.Argument(help="The index: a folder or an address.  [default: MODEL/index]")
    ] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen at; 127.0.0.1 is reached from this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen; 0 takes any that is free.")] = 8000,
    token: Annotated[
        str | None, typer.Option(envvar="ADSH_TOKEN", show_envvar=True, help="What every request must bear.")
    ] = None,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Listen to the network without one: something in front decides.")
    ] = False,
    images: Annotated[
        Path | None, typer.Option(metavar="ROOT", help="Show items' pictures that lie below this folder.")
    ] = None,
    cors: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="Let the pages of this origin ask; may be repeated.")
    ] = None,
    runtime: Annotated[
        str | None,
        typer.Option(metavar="torch|onnx", help="What runs the network.  [default: onnx for an export, else torch]"),
    ] = None,
    max_body: Annotated[int, typer.Option(min=1024, help="Bytes of a request.")] = Limits.max_body,
    max_pixels: Annotated[int, typer.Option(min=1, help="Pixels of a picture.")] = Limits.max_pixels,
    max_k: Annotated[int, typer.Option(min=1, help="Matches of a search.")] = Limits.max_k,
    max_items: Annotated[int, typer.Option(min=1, help="Items of one batch that is stored.")] = Limits.max_items,
    max_queue: Annotated[
        int, typer.Option(min=1, help="Pictures waiting, and slower searches; more are answered 429.")
    ] = Limits.max_queue,
    max_searches: Annotated[int, typer.Option(min=1, help="Searches waiting; the same.")] = Limits.max_searches,
    max_writes: Annotated[int, typer.Option(min=1, help="Writes waiting; the same.")] = Limits.max_writes,
    max_batch: Annotated[
        int, typer.Option(min=1, help="Pictures in one pass through the network; on a GPU give 64.")
    ] = Limits.max_batch,
    max_seconds: Annotated[float, typer.Option(min=0.1, help="For one request.")] = Limits.max_seconds,
    max_connections: Annotated[
        int, typer.Option(min=2, help="Open at a time; more are answered 503.")
    ] = Limits.max_connections,
    log: Annotated[bool, typer.Option(help="A JSON line for every request on standard error.")] = True,
    device: Device = None,
    json: Json = False,
) -> None:
    """Serve a model and an index over HTTP, with a page to try it.

    Only this machine can reach it unless --host says otherwise, which needs --token. SIGTERM or Ctrl-C ends it once
    what was accepted is answered.
    """
    from ..errors import MissingExtraError, first_line

    try:
        from ..serve.run import Settings, listen, open_service, serve, url_of
    except ImportError as problem:
        raise MissingExtraError(f"{first_line(problem)}: pip install 'adsh[serve]'") from None

    index = index or str(model / INDEX)
    runtime = runtime or ("onnx" if is_export(model) else "torch")
    limits = Limits(
        max_body, max_pixels, max_k, max_items, max_queue, max_searches, max_writes, max_batch, max_seconds,
        max_connections,
    )  # fmt: skip
    settings = Settings(
        model, index, host, port, token or None, no_token, images, tuple(cors or ()), runtime, device, log, limits
    )
    service = open_service(settings)
    with listen(host, port) as listening:
        told = {
            "url": url_of(listening), "index": f"{index}: {len(service.index):,} items of {service.index.bits} bits",
            "token": "needed" if settings.token else "none", "images": None if images is None else str(images),
        }  # fmt: skip
        if json:
            as_json(told)
        else:
            facts({"page": told["url"], **{name: told[name] or "not shown" for name in ("index", "token", "images")}})
        sys.stdout.flush()  # who started this may wait for the address
        serve(service, settings, listening)
