"""`adsh serve`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..encoders.onnx_package import is_export
from ..models.storage_format import INDEX
from ..serve.engine.limits import Limits
from ..utils.urls import shown
from .flags import Device, Json
from .show import as_json, facts

EXAMPLE = "adsh serve photos-48bits --images photos/"


def command(
    model: Annotated[Path, typer.Argument(help="The folder of a saved or exported model.")],
    index: Annotated[str | None, typer.Argument(help="The index: a folder or a URL.  [default: MODEL/index]")] = None,
    host: Annotated[
        str, typer.Option(help="The address to listen at; only this machine can reach 127.0.0.1.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen at; 0 takes any free port.")] = 8000,
    token: Annotated[
        str | None, typer.Option(envvar="ADSH_TOKEN", show_envvar=True, help="The token that requests must carry.")
    ] = None,
    no_token: Annotated[
        bool,
        typer.Option(
            "--no-token", help="Accept requests from the network without a token: a proxy authenticates them."
        ),
    ] = False,
    images: Annotated[
        Path | None, typer.Option(metavar="ROOT", help="Show the images of items from this folder.")
    ] = None,
    cors: Annotated[
        list[str] | None,
        typer.Option(metavar="ORIGIN", help="Allow requests from pages of this origin; may be repeated."),
    ] = None,
    runtime: Annotated[
        str | None,
        typer.Option(
            metavar="torch|onnx", help="What runs the network.  [default: onnx for an exported model, else torch]"
        ),
    ] = None,
    max_body: Annotated[int, typer.Option(min=1024, help="Largest request, in bytes.")] = Limits.max_body,
    max_pixels: Annotated[int, typer.Option(min=1, help="Largest image, in pixels.")] = Limits.max_pixels,
    max_k: Annotated[int, typer.Option(min=1, help="Most matches of a search.")] = Limits.max_k,
    max_items: Annotated[int, typer.Option(min=1, help="Most items stored by one request.")] = Limits.max_items,
    max_queue: Annotated[
        int, typer.Option(min=1, help="Most images waiting, and slow searches; more get status 429.")
    ] = Limits.max_queue,
    max_searches: Annotated[
        int, typer.Option(min=1, help="Most searches waiting; more get status 429.")
    ] = Limits.max_searches,
    max_writes: Annotated[
        int, typer.Option(min=1, help="Most writes waiting; more get status 429.")
    ] = Limits.max_writes,
    max_batch: Annotated[
        int, typer.Option(min=1, help="Most images in one pass through the network; 64 suits a GPU.")
    ] = Limits.max_batch,
    max_seconds: Annotated[float, typer.Option(min=0.1, help="Most seconds for one request.")] = Limits.max_seconds,
    max_connections: Annotated[
        int, typer.Option(min=2, help="Most open connections; more get status 503.")
    ] = Limits.max_connections,
    max_decode_seconds: Annotated[
        float, typer.Option(min=0.1, help="Most seconds to decode one image, or the JSON of one batch.")
    ] = Limits.max_decode_seconds,
    max_bodies: Annotated[
        int, typer.Option(min=1 << 20, help="Most bytes of all requests in progress; more get status 429.")
    ] = Limits.max_bodies,
    stop_seconds: Annotated[
        float | None,
        typer.Option(help="Most seconds from SIGTERM to the end of the process.  [default: --max-seconds and 5 more]"),
    ] = None,
    log: Annotated[bool, typer.Option(help="Log a JSON line for every request to standard error.")] = True,
    device: Device = None,
    json: Json = False,
) -> None:
    """Serve a model and an index over HTTP, with a web page.

    Only this machine can reach it unless --host says otherwise, which needs --token. SIGTERM or Ctrl-C stops it once
    all accepted requests are answered, and at the latest after --stop-seconds.
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
        max_connections, max_decode_seconds, max_bodies,
    )  # fmt: skip
    settings = Settings(
        model, index, host, port, token or None, no_token, images, tuple(cors or ()), runtime, device, log, limits,
        stop_seconds,
    )  # fmt: skip
    service = open_service(settings)
    with listen(host, port) as listening:
        summary = {
            "url": url_of(listening),
            "index": f"{shown(index)}: {len(service.index):,} items of {service.index.bits} bits",
            "token": "needed" if settings.token else "none", "images": None if images is None else str(images),
        }  # fmt: skip
        if json:
            as_json(summary)
        else:
            facts(
                {
                    "page": summary["url"],
                    **{name: summary[name] or "not shown" for name in ("index", "token", "images")},
                }
            )
        sys.stdout.flush()  # the caller may wait for the address
        serve(service, settings, listening)
