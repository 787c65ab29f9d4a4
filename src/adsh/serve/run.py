"""Run the service as a process: open it, listen, and stop without losing what was accepted."""

from __future__ import annotations

import faulthandler
import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import uvicorn

from ..encoders.base import open_encoder
from ..errors import EXIT_STOPPED, FolderError, InputError, first_line
from ..index.locate import check_model, open_existing
from ..models.fingerprint import ModelId
from ..utils.urls import is_address, secrets_of
from .engine.limits import Limits
from .engine.reload import ModelReloader
from .engine.service import Service
from .http.app import create_app
from .middleware.head_limits import IDLE_SECONDS, LimitedHeadProtocol
from .middleware.log_writer import LogWriter
from .middleware.logs import Write, log_as_json
from .middleware.security import check_token, is_loopback

_DAY = 86_400.0  # seconds
_SWITCH_SECONDS = 0.0005  # after which a thread that computes lets the event loop go on; Python's 0.005 adds up
_REPORT_SECONDS = 0.25  # left to say that the process ends with work unfinished
_STOP_MARGIN = 5.0  # seconds that a stop takes besides the longest request
_OTHER_FILES = 512  # that this process may have open besides its connections


@dataclass(frozen=True)
class Settings:
    """The settings of `adsh serve`."""

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
    stop_seconds: float | None = None  # from the signal to the end; by default `max_seconds` and a few more

    @property
    def stop_after(self) -> float:
        """The most seconds from a signal to the end of the process."""
        return self.limits.max_seconds + _STOP_MARGIN if self.stop_seconds is None else self.stop_seconds


def open_service(settings: Settings) -> Service:
    """Open the model and the index, and check that they belong together."""
    check_token(settings.token, settings.host, without=settings.without_token)
    if not 0 < settings.limits.max_seconds <= _DAY:  # NaN is not
        raise InputError(
            f"--max-seconds {settings.limits.max_seconds:g}: give the seconds that a request may take, such as 30"
        )
    if not 1 <= settings.stop_after <= _DAY + _STOP_MARGIN:
        raise InputError(
            f"--stop-seconds {settings.stop_after:g}: give the seconds that a stop may take, from 1, such as 35"
        )
    if "*" in settings.cors and settings.token is None:
        raise InputError(
            "--cors '*' lets any web page read and delete what a service without a token holds: give --token TEXT, or "
            "name the origins"
        )
    for origin in settings.cors:
        if origin != "*" and not origin.startswith(("http://", "https://")):
            raise InputError(f"--cors {origin}: give an origin such as https://example.org")
    if settings.images is not None and not settings.images.is_dir():
        raise InputError(f"--images {settings.images} is not a folder: give the one that the image files are in")
    if not settings.model.exists():
        raise InputError(f"{settings.model} does not exist: give the folder of a trained or exported model")
    index = open_existing(settings.index)
    try:
        encoder = open_encoder(settings.model, settings.runtime, settings.device)
        known = ModelId(encoder.fingerprint, encoder.lineage)
        check_model(index, known, settings.model, "give the model that the index was built with")
        return Service(
            encoder, index, settings.limits, model=settings.model, runtime=settings.runtime, images=settings.images
        )
    except BaseException:
        index.close()
        raise


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens there; port 0 takes any free port."""
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=family, backlog=2048)
    except (OSError, OverflowError) as problem:
        reason = (getattr(problem, "strerror", None) or first_line(problem)).partition(" (while")[0]
        raise FolderError(
            f"cannot listen at {host}, port {port} ({reason.lower()}): choose another --port or --host"
        ) from None


def url_of(listening: socket.socket) -> str:
    """Return the address of the service, for a browser."""
    host, port = listening.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"


def serve(service: Service, settings: Settings, listening: socket.socket) -> None:
    """Answer requests until a signal; then accept no more, and finish those that were accepted.

    Args:
        service: The opened service.
        settings: What it was opened with.
        listening: The socket of `listen`.
    """
    secrets = secrets_of(settings.index) if is_address(settings.index) else []
    write = LogWriter(secrets=[*secrets, settings.token] if settings.token else secrets)
    reloader = ModelReloader(
        service,
        settings.model,
        lambda: open_encoder(settings.model, settings.runtime, settings.device),
        lambda level, text: write({"level": level, "text": text}),
    )
    app = create_app(
        service,
        token=settings.token,
        cors=settings.cors,
        only_local=is_loopback(settings.host) and not settings.without_token,
        write=write if settings.log else None,
        reloader=reloader,
    )
    log_as_json(write)
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
        http=LimitedHeadProtocol,
        limit_concurrency=settings.limits.max_connections,
        timeout_keep_alive=IDLE_SECONDS,
        timeout_graceful_shutdown=max(1, int(settings.stop_after - _STOP_MARGIN / 2)),
    )
    service.metrics.gauge("log_lines_dropped", "Lines of the log that nobody read in time.", lambda: write.dropped)
    service.start()
    with suppress(AttributeError, ValueError):  # not on Windows, nor in another thread than the main one
        signal.signal(signal.SIGHUP, lambda *_: reloader.request())
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.collect()
    gc.freeze()  # a collection that visits all of torch's objects delays every request by 0.1 s
    with suppress(KeyboardInterrupt):  # uvicorn raises the signal again at its end
        _Server(config, settings.stop_after, write).run(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that ends in time after a signal, whatever its threads are doing.

    Args:
        config: Of uvicorn.
        seconds: From the signal to the end of the process.
        write: Takes the values of a line of the log.
    """

    def __init__(self, config: uvicorn.Config, seconds: float, write: Write) -> None:
        super().__init__(config)
        self._write = write
        self._seconds, self._ends = seconds, False
        self._timer = threading.Timer(seconds - _REPORT_SECONDS, self._give_up)
        self._timer.daemon = True
        self._nowhere = open(os.devnull, "wb")  # noqa: SIM115  # a log that nobody reads would block

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer requests until a signal; the caller goes on afterwards."""
        try:
            super().run(sockets)
        finally:
            if not self.force_exit:  # after which threads may be stuck, and Python waits for them at its end
                self._cancel_end()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop, and set the clock that ends the process."""
        super().handle_exit(sig, frame)
        if not self._ends:
            self._ends = True
            # In C: it needs neither the event loop nor the interpreter's lock, which what is stuck may hold.
            faulthandler.dump_traceback_later(self._seconds, exit=True, file=self._nowhere)
            self._timer.start()

    def _cancel_end(self) -> None:
        """Stop the clock that ends the process."""
        if self._ends:
            self._timer.cancel()
            faulthandler.cancel_dump_traceback_later()
        self._nowhere.close()

    def _give_up(self) -> None:
        text = f"stopped after {self._seconds:g} s with work unfinished: raise --stop-seconds if it should be finished"
        self._write({"level": "error", "text": text})
        os._exit(EXIT_STOPPED)


def _allow_files(count: int) -> None:
    """Raise the limit of open files and connections, as far as the system allows; often it is 1,024 at first."""
    with suppress(ImportError, ValueError, OSError):  # not on Windows; not beyond the limit of the system
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        limit = count if hard == resource.RLIM_INFINITY else min(count, hard)
        if soft != resource.RLIM_INFINITY and soft < limit:
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
