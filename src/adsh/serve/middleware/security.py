"""Who may ask, how much they may send, and what browsers are told to refuse."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from collections.abc import Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...errors import InputError
from ..limits import Limits
from ..problems import Problem, send_problem

_LOCAL = ("localhost", "127.0.0.1", "::1")
_BY_A_PROXY = frozenset((b"x-forwarded-for", b"forwarded", b"x-real-ip"))

_PAGE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = [  # of every answer
    (b"content-security-policy", _PAGE.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"geolocation=(), microphone=()"),
]


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches that address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def check_token(token: str | None, host: str, *, without: bool) -> None:
    """Raises for a token that cannot be sent, and where the network could come in without one."""
    if token is not None and (not token.isascii() or not token.isprintable() or not token.strip() or " " in token):
        raise InputError("the token has characters that a header cannot carry: use letters, digits and signs, no space")
    if token is None and not without and not is_loopback(host):
        raise InputError(
            f"--host {host} lets the network in: give --token TEXT (or set ADSH_TOKEN), or say --no-token where "
            "something in front of it decides who may ask"
        )


class Guard:
    """Lets a request through that may ask, and no more of it than is allowed, for no longer than is allowed.

    Without a token, on this machine alone, only names of this machine are answered to: else any web page could reach
    the service through a name of its own that leads here. What a proxy passed on comes from elsewhere, whatever name it
    asks under.
    """

    def __init__(self, app: ASGIApp, limits: Limits, token: str | None, *, only_local: bool) -> None:
        self._app, self._limits = app, limits
        self._token = None if token is None else token.encode()
        self._only_local = only_local and token is None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, whole = False, False
        size, most = 0, self._limits.max_body

        async def counted() -> Message:
            nonlocal size, whole
            message = await receive()
            size += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if size > most:
                raise _too_large(most)
            return message

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            self._check(scope)
            async with asyncio.timeout(self._limits.max_seconds):
                await self._app(scope, counted, noted)
        except Problem as problem:
            if started:
                raise
            await send_problem(scope, noted, problem)
        except TimeoutError:
            if started:
                raise
            seconds = f"{self._limits.max_seconds:g} s"
            late = (
                Problem(504, f"this took longer than {seconds}: ask for less, or try again later", {"Retry-After": "5"})
                if whole
                else Problem(408, f"the request was not whole after {seconds}: send it faster", {"Connection": "close"})
            )
            await send_problem(scope, noted, late)

    def _check(self, scope: Scope) -> None:
        headers: Mapping[bytes, bytes] = dict(scope["headers"])
        if self._only_local:
            host = headers.get(b"host", b"localhost").decode("latin-1")
            name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
            plain = name.lower().removesuffix(".")  # names are the same in capitals, and with the dot of the root
            if plain.strip("[]") not in _LOCAL and not is_loopback(plain):
                raise Problem(421, f"this service answers to localhost, not to {name[:80]!r}: start it with --token")
            if not _BY_A_PROXY.isdisjoint(headers):
                raise Problem(
                    403,
                    "this came through a proxy, and the service has no token: start it with ADSH_TOKEN set, or with "
                    "--no-token where the proxy decides who may ask",
                )
        path = scope["path"]
        if self._token is not None and (path.startswith("/v1") or path == "/metrics"):
            kind, _, given = headers.get(b"authorization", b"").partition(b" ")
            if kind.lower() != b"bearer" or not hmac.compare_digest(given.strip(), self._token):
                raise Problem(
                    401,
                    "this service needs a token: send the header Authorization: Bearer TOKEN",
                    {"WWW-Authenticate": 'Bearer realm="adsh"'},
                )
        length = headers.get(b"content-length")
        if length is not None and (len(length) > 18 or int(length) > self._limits.max_body):  # of digits alone
            raise _too_large(self._limits.max_body)


def _too_large(most: int) -> Problem:
    return Problem(
        413, f"the request has more than {most:,} bytes: send a smaller one, or less at a time", {"Connection": "close"}
    )
