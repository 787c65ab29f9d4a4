"""How much one request, and all of them together, may take."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Limits:
    """Every limit has a flag of the same name, `--max-k` for `max_k`."""

    max_body: int = 16 << 20  # bytes of a request
    max_pixels: int = 50_000_000  # of one picture, told by its header before it is decoded
    max_k: int = 1000  # matches of one search
    max_items: int = 1000  # items of one batch
    max_queue: int = 64  # pictures being decoded, waiting or coded, and as many slower searches; more are answered 429
    max_searches: int = 1024  # searches waiting; the same
    max_writes: int = 256  # writes waiting; the same
    max_batch: int = 4  # pictures in one pass through the network: more are slower on a CPU, and faster on a GPU
    max_seconds: float = 30.0  # for one request, from its head to its answer
    max_connections: int = 2048  # open at a time; requests on more are answered 503

    def to_json(self) -> dict[str, float]:
        """By name."""
        return asdict(self)
