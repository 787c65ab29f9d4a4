"""Bound the bytes of all requests in progress together: many half-sent uploads would else fill memory and disk."""

from __future__ import annotations

from ..engine.problems import Problem

FREE_BYTES = 1 << 16  # of each request that are not counted: searches are answered whatever others upload


class BodyBudget:
    """The bytes that bodies may hold together.

    Args:
        max_bytes: The most.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes, self.used = max_bytes, 0

    def grow(self, held: int, size: int) -> int:
        """Count a body that has grown.

        Args:
            held: The bytes counted for it so far.
            size: The bytes that it has now.

        Returns:
            The bytes counted for it now.

        Raises:
            Problem: There are too many; nothing more is counted.
        """
        needed = max(held, size - FREE_BYTES)
        if needed > held and self.used + needed - held > self._max_bytes:
            raise Problem(
                429,
                f"requests of {self._max_bytes:,} bytes are being received already: try again in a few seconds",
                {"Retry-After": "5", "Connection": "close"},
            )
        self.used += needed - held
        return needed

    def release(self, held: int) -> None:
        """Forget a body whose request was answered."""
        self.used -= held
