"""Metrics for Prometheus, with a registry for each server, so that two in one process stay apart."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from transduce.version import __version__

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
TEXTS = (1, 2, 4, 8, 16, 32, 64, 128)


class ServerMetrics:
    """Counters of one server.

    refused: requests that found the queue full; dropped: segments whose request left before they were begun;
    unlogged: log lines that were not written.
    """

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "transduce_requests", "Requests answered.", ["path", "method", "status"], registry=self.registry
        )
        self._seconds = Histogram(
            "transduce_request_seconds", "From request to answer.", ["path"], buckets=SECONDS, registry=self.registry
        )
        self._batch_texts = Histogram(
            "transduce_batch_texts", "Texts in a batch.", buckets=TEXTS, registry=self.registry
        )
        self._batch_seconds = Histogram(
            "transduce_batch_seconds", "Seconds a batch took.", buckets=SECONDS, registry=self.registry
        )
        self._queue = Gauge("transduce_queue_texts", "Texts that wait.", registry=self.registry)
        self.open = Gauge("transduce_requests_open", "Requests under way.", registry=self.registry)
        self.refused = Counter("transduce_refused", "Requests that found the queue full.", registry=self.registry)
        self.dropped = Counter("transduce_dropped_texts", "Texts whose client left in time.", registry=self.registry)
        self.unlogged = Counter("transduce_dropped_log_lines", "Log lines not written.", registry=self.registry)
        self._reloads = Counter(
            "transduce_reloads", "Changed model files.", ["model", "outcome"], registry=self.registry
        )
        info = Gauge("transduce_info", "Always 1.", ["version"], registry=self.registry)
        info.labels(__version__).set(1)

    def watch_queue(self, length: Callable[[], int]) -> None:
        """Ask `length` whenever the measures are read."""
        self._queue.set_function(length)

    def request(self, path: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(path, method, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def batch(self, texts: int, seconds: float) -> None:
        """One batch went through the model."""
        self._batch_texts.observe(texts)
        self._batch_seconds.observe(seconds)

    def reload(self, model: str, loaded: bool) -> None:
        self._reloads.labels(model, "loaded" if loaded else "kept").inc()

    def text(self) -> bytes:
        return generate_latest(self.registry)
