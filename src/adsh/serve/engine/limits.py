"""Limits of one request, and of all requests together."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Limits:
    """Every limit has a flag of the same name, `--max-k` for `max_k`."""

    max_body: int = 16 << 20  # bytes of a request
    max_pixels: int = 50_000_000  # of one image, read from its header before it is decoded
    max_k: int = 1000  # matches of one search
    max_items: int = 1000  # items of one batch
    max_queue: int = 64  # images being decoded, waiting or encoded, and as many slow searches; more get status 429
    max_searches: int = 1024  # searches waiting; more get status 429
    max_writes: int = 256  # writes waiting; more get status 429
    max_batch: int = 4  # images in one pass through the network: more are slower on a CPU, and faster on a GPU
    max_seconds: float = 30.0  # for one request, from its head to its answer
    max_connections: int = 2048  # open at a time; requests on more get status 503

    max_decode_seconds: float = 10.0  # that one image, or the JSON of one batch, may take to decode
    max_bodies: int = 128 << 20  # bytes of all requests in progress, beyond the first 64 KiB of each; more get 429

    def to_json(self) -> dict[str, float]:
        """Return the limits by name."""
        return asdict(self)
