"""Authentication, limits on the size and time of a request, and security headers for browsers."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
from collections.abc import Collection, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...errors import InputError
from ..engine.limits import Limits
from ..engine.problems import Problem, too_large
from .body_budget import BodyBudget
from .responses import send_problem

_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
_PROXY_HEADERS = frozenset((b"x-forwarded-for", b"forwarded", b"x-real-ip"))

_CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; connect-src 'self'; "
    "font-src 'self'; manifest-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
SECURITY_HEADERS = [  # of every answer
    (b"content-security-policy", _CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"geolocation=(), microphone=()"),
]


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def check_token(token: str | None, host: str, *, without: bool) -> None:
    """Check the token for a service that listens at `host`.

    Args:
        token: The token; None for none.
        host: The address to listen at.
        without: Whether the user accepts a service without a token on the network.

    Raises:
        InputError: The token cannot be sent in a header, or is missing for an address that the network reaches.
    """
    if token is not None and (not token.isascii() or not token.isprintable() or not token.strip() or " " in token):
        raise InputError("the token has characters that a header cannot carry: use letters, digits and signs, no space")
    if token is None and not without and not is_loopback(host):
        raise InputError(
            f"--host {host} can be reached from the network: give --token TEXT (or set ADSH_TOKEN), or --no-token if a "
            "proxy in front authenticates requests"
        )


class Guard:
    """Enforce authentication, body size and time limits.

    Without a token, a local service answers only requests for names of this machine: otherwise any web page could reach
    it through a domain name that resolves to this machine. Requests that a proxy forwarded are refused too, since they
    come from other machines whatever their Host header says, and so are those that a browser sends for a page of
    another site.

    Args:
        app: What handles a request that is accepted.
        limits: The largest body, and the longest time.
        token: What requests must carry; None for no token.
        only_local: Without a token, answer only requests for names of this machine.
        cors: Origins whose pages may call the service.
    """

    def __init__(
        self, app: ASGIApp, limits: Limits, token: str | None, *, only_local: bool, cors: Collection[str] = ()
    ) -> None:
        self._app, self._limits, self._cors = app, limits, frozenset(cors)
        self._token = None if token is None else token.encode()
        self._only_local = only_local and token is None
        self._bodies = BodyBudget(limits.max_bodies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request, or answer why it is refused.

        Args:
            scope: What ASGI says of the request.
            receive: Returns the next message of its body.
            send: Sends a message of the answer.
        """
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, complete = False, False
        size, held, max_size = 0, 0, self._limits.max_body

        async def receive_counted() -> Message:
            nonlocal size, held, complete
            message = await receive()
            size += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if size > max_size:
                raise too_large(max_size)
            held = self._bodies.grow(held, size)
            return message

        async def send_tracked(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            self._check(scope)
            async with asyncio.timeout(self._limits.max_seconds):
                await self._app(scope, receive_counted, send_tracked)
        except Problem as problem:
            if started:
                raise
            await send_problem(scope, send_tracked, problem)
        except TimeoutError:
            if started:
                raise
            seconds = f"{self._limits.max_seconds:g} s"
            late = (
                Problem(504, f"this took longer than {seconds}: request less, or try again later", {"Retry-After": "5"})
                if complete
                else Problem(
                    408, f"the request was not complete after {seconds}: send it faster", {"Connection": "close"}
                )
            )
            await send_problem(scope, send_tracked, late)
        finally:
            self._bodies.release(held)

    def _check(self, scope: Scope) -> None:
        headers: Mapping[bytes, bytes] = dict(scope["headers"])
        if self._only_local:
            host = headers.get(b"host", b"localhost").decode("latin-1")
            name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
            plain = name.lower().removesuffix(".")  # case and a trailing dot do not matter in names
            if plain.strip("[]") not in _LOCAL_NAMES and not is_loopback(plain):
                raise Problem(421, f"this service answers to localhost, not to {name[:80]!r}: start it with --token")
            if not _PROXY_HEADERS.isdisjoint(headers):
                raise Problem(
                    403,
                    "this came through a proxy, and the service has no token: start it with ADSH_TOKEN set, or with "
                    "--no-token if the proxy authenticates requests",
                )
        path = scope["path"]
        if self._token is None and (path.startswith("/v1") or path == "/metrics") and self._is_foreign(headers):
            raise Problem(
                403, "this came from a page of another site, and the service has no token: start it with --cors ORIGIN"
            )
        if self._token is not None and (path.startswith("/v1") or path == "/metrics"):
            scheme, _, credentials = headers.get(b"authorization", b"").partition(b" ")
            if scheme.lower() != b"bearer" or not hmac.compare_digest(credentials.strip(), self._token):
                raise Problem(
                    401,
                    "this service needs a token: send the header Authorization: Bearer TOKEN",
                    {"WWW-Authenticate": 'Bearer realm="adsh"'},
                )
        self._check_length(headers)

    def _is_foreign(self, headers: Mapping[bytes, bytes]) -> bool:
        """Return whether a browser sent this for a page of another site."""
        origin = headers.get(b"origin", b"").decode("latin-1")
        if origin in self._cors:
            return False
        site = headers.get(b"sec-fetch-site")
        if site is not None:
            return site not in (b"same-origin", b"none")
        # An older browser: a proxy may have changed the Host header, but then the service is not only local.
        host = headers.get(b"host", b"").decode("latin-1")
        return self._only_local and bool(origin) and origin.partition("://")[2].lower() != host.lower()

    def _check_length(self, headers: Mapping[bytes, bytes]) -> None:
        length = headers.get(b"content-length")
        if length is not None and (
            len(length) > 18 or int(length) > self._limits.max_body
        ):  # digits only: the parser checked
            raise too_large(self._limits.max_body)
