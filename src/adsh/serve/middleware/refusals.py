"""Pace the answers to malformed requests, so that a flood of them leaves most of the time to others.

Reading and refusing a request costs several times what a search does, most of it in the system's handling of the
connection. Who sends the next one when the last was answered is slowed by waiting; nobody else is.
"""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

PER_SECOND = 200.0  # answers to malformed requests
_BURST = 1.0  # seconds whose answers may come at once
_MAX_WAIT = 1.0  # seconds: a waiting request holds a connection
_MALFORMED = (400, 413, 415, 422)  # not 404: to ask whether an item exists is a use of the service


class PacedRefusals:
    """Delay answers that a request is malformed, once there are more of them than `PER_SECOND`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app, self._next = app, 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request.

        Args:
            scope: What ASGI says of the request.
            receive: Returns the next message of its body.
            send: Sends a message of the answer.
        """

        async def paced(message: Message) -> None:
            if message.get("status") in _MALFORMED:
                await asyncio.sleep(self.delay(asyncio.get_running_loop().time()))
            await send(message)

        await self._app(scope, receive, paced)

    def delay(self, now: float) -> float:
        """Return the seconds that one more refusal waits."""
        self._next = min(max(self._next, now - _BURST) + 1 / PER_SECOND, now + _MAX_WAIT)
        return max(0.0, self._next - now)
