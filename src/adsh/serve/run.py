"""The service as a process: opened, listening, and stopped without losing what it accepted."""

from __future__ import annotations

import gc
import logging
import socket
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import uvicorn

from ..encoders.base import open_coder
from ..errors import FolderError, InputError, first_line
from ..index.locate import check_model, open_existing
from .engine.service import Service
from .http.app import create_app
from .limits import Limits
from .middleware.heads import IDLE, HeadProtocol
from .middleware.logs import log_as_json, write_line
from .middleware.security import check_token, is_loopback

_DAY = 86_400.0  # seconds
_OTHER_FILES = 512  # that this process may have open beside its connections


@dataclass(frozen=True)
class Settings:
    """What `adsh serve` was asked for."""

    model: Path
    index: str
    host: str = "127.0.0.1"
    port: int = 8000
    token: str | None = None
    without_token: bool = False
    images: Path | None = None
    cors: Sequence[str] = ()
    runtime: str = "torch"
    device: str | None = None
    log: bool = True
    limits: Limits = field(default_factory=Limits)


def open_service(settings: Settings) -> Service:
    """The model and the index, checked against each other."""
    check_token(settings.token, settings.host, without=settings.without_token)
    if not 0 < settings.limits.max_seconds <= _DAY:  # NaN is not
        raise InputError(f"--max-seconds {settings.limits.max_seconds:g}: give seconds for a request, such as 30")
    for origin in settings.cors:
        if origin != "*" and not origin.startswith(("http://", "https://")):
            raise InputError(f"--cors {origin}: give an origin such as https://example.org")
    if settings.images is not None and not settings.images.is_dir():
        raise InputError(f"--images {settings.images} is no folder: give the one that the keys or files are below")
    if not settings.model.exists():
        raise InputError(f"there is no folder {settings.model}: give that of a trained or exported model")
    index = open_existing(settings.index)
    try:
        coder = open_coder(settings.model, settings.runtime, settings.device)
        check_model(index, coder.fingerprint, settings.model, "give the model that the index was made with")
        return Service(
            coder, index, settings.limits, model=settings.model, runtime=settings.runtime, images=settings.images
        )
    except BaseException:
        index.close()
        raise


def listen(host: str, port: int) -> socket.socket:
    """A socket there; port 0 takes any that is free."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=2048)
    except (OSError, OverflowError) as problem:
        reason = (getattr(problem, "strerror", None) or first_line(problem)).partition(" (while")[0]
        raise FolderError(
            f"cannot listen at {host}, port {port} ({reason.lower()}): choose another --port or --host"
        ) from None


def url_of(listening: socket.socket) -> str:
    """Where the service is, for a browser."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def serve(service: Service, settings: Settings, listening: socket.socket) -> None:
    """Answers until a signal says to stop; then no more is taken, and what was taken is finished."""
    app = create_app(
        service,
        token=settings.token,
        cors=settings.cors,
        only_local=is_loopback(settings.host) and not settings.without_token,
        write=write_line if settings.log else None,
    )
    log_as_json()
    _allow_files(settings.limits.max_connections + _OTHER_FILES)
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level=logging.WARNING,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on",
        ws="none",
        http=HeadProtocol,
        limit_concurrency=settings.limits.max_connections,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=round(settings.limits.max_seconds) + 5,
    )
    gc.collect()
    gc.freeze()  # a collection that walks through all of torch's objects holds every request up for 0.1 s
    with suppress(KeyboardInterrupt):  # uvicorn raises the signal again once all is done
        uvicorn.Server(config).run(sockets=[listening])


def _allow_files(wanted: int) -> None:
    """Lets this process have so many files and connections open, as far as it may: often 1,024 are the start."""
    with suppress(ImportError, ValueError, OSError):  # not on Windows; not more than the machine allows
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
