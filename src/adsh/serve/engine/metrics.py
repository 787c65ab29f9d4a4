"""Counters of the service in Prometheus' text format; each service has a registry of its own."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

CONTENT_TYPE = CONTENT_TYPE_LATEST
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """Counters, gauges and durations."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._requests = Counter(
            "adsh_requests", "Requests answered.", ("method", "path", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "adsh_request_seconds", "Time to answer.", ("path",), buckets=_SECONDS, registry=self.registry
        )
        self._batches = Histogram(
            "adsh_batch_size", "Requests answered together.", ("kind",), buckets=_SIZES, registry=self.registry
        )
        self._known: dict[tuple[str, str, int], tuple[Counter, Histogram]] = {}

    def request(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count an answered request.

        Args:
            method: The HTTP method.
            path: The route's path, not the client's.
            status: The status of the answer.
            seconds: How long it took.
        """
        name = (method, path, status)
        known = self._known.get(name)
        if known is None:  # looking up a label takes longer than counting
            verb = method if method in _METHODS else "other"
            known = self._requests.labels(verb, path, str(status)), self._seconds.labels(path)
            if verb != "other":
                self._known[name] = known
        known[0].inc()
        known[1].observe(seconds)

    def batch(self, kind: str) -> Callable[[int], None]:
        """Return a function that records the size of a batch of this kind."""
        child = self._batches.labels(kind)
        return lambda size: child.observe(size)

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Add a value that is read when the metrics are.

        Args:
            name: Its name, without `adsh_`.
            text: Its description.
            value: Returns the value.
        """
        Gauge(f"adsh_{name}", text, registry=self.registry).set_function(value)

    def text(self) -> bytes:
        """Return all metrics, as Prometheus reads them."""
        return generate_latest(self.registry)
