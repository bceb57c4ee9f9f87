"""What the server tells of its work: one log line a request, and the metrics that Prometheus reads.

Neither carries contents, ids or keys; a log line has the user as a keyed hash, a metric has no user at all.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import TYPE_CHECKING, Literal
from wsgiref.simple_server import WSGIServer

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    generate_latest,
    start_http_server,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from memserver import __version__
from memserver.errors import MemserverError
from memserver.ids import user_hash
from memserver.logs import place

if TYPE_CHECKING:
    from memserver.engine import Stats

Operation = Literal["add", "search", "delete", "health", "unknown"]

CONTENT_TYPE = CONTENT_TYPE_LATEST
NOBODY = 499  # the status of a request that got no answer, as nginx has it
LATENCIES = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)  # seconds
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, inf)  # texts
BYTES_PER_TOKEN = 4  # of UTF-8: about right for English words and for Chinese characters

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Exchange:
    """One request and its answer; each fact is set by whoever learns it. ``bytes_in``: of the body."""

    operation: Operation
    status: int = NOBODY
    error: Exception | None = None
    user_id: str | None = field(default=None, repr=False)
    bytes_in: int | None = None
    messages: int | None = None
    hits: int | None = None
    replay: bool | None = None


class Telemetry:
    """Follows the requests of one process. ``stats`` is read at each scrape; ``salt`` keys the hashes of users, 16 to 64 bytes.

    Without a salt the hashes are good for this process alone.
    """

    def __init__(self, stats: Callable[[], Stats] | None = None, salt: bytes | None = None) -> None:
        self._salt = salt or secrets.token_bytes(16)
        self._in_flight = 0
        self._registry = registry = CollectorRegistry()
        self._requests = Counter("memserver_requests", "Requests answered.", ["operation", "status"], registry=registry)
        self._seconds = Histogram(
            "memserver_request_seconds", "Time to answer.", ["operation"], buckets=LATENCIES, registry=registry
        )
        self._replays = Counter("memserver_replays", "Adds that were stored before and only answered again.", registry=registry)
        in_flight = Gauge("memserver_requests_in_flight", "Requests being answered.", registry=registry)
        in_flight.set_function(lambda: self._in_flight)
        Info("memserver_build", "The release that runs.", registry=registry).info({"version": __version__})
        ProcessCollector(registry=registry)
        if stats:
            registry.register(_EngineCollector(stats))

    @contextmanager
    def follow(self, operation: Operation) -> Iterator[Exchange]:
        """Time and count a request, and log its line when the block ends. For one event loop: no lock."""
        exchange, start = Exchange(operation), perf_counter()
        self._in_flight += 1
        try:
            yield exchange
        finally:
            self._finish(exchange, perf_counter() - start)
            self._in_flight -= 1

    def user_hash(self, user_id: str) -> str:
        """See ``ids.user_hash``."""
        return user_hash(user_id, self._salt)

    def exposition(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self._registry)

    def listen(self, host: str, ports: range) -> WSGIServer | None:
        """Serve the metrics, without a key, at the first free one of ``ports``: each worker of a server gets its own.

        Where none is free an error is logged and None returned: memories are served all the same.
        """
        for port in ports:
            try:
                return start_http_server(port, host, self._registry)[0]
            except (OSError, OverflowError):
                continue
        logger.error(
            "metrics are not served: free a port from %d to %d, or set another MEMSERVER_METRICS_PORT", ports[0], ports[-1]
        )
        return None

    def _finish(self, exchange: Exchange, seconds: float) -> None:
        self._requests.labels(exchange.operation, str(exchange.status)).inc()
        self._seconds.labels(exchange.operation).observe(seconds)
        if exchange.replay:
            self._replays.inc()
        facts = {
            "operation": exchange.operation,
            "status": exchange.status,
            "ms": round(seconds * 1000, 1),
            "in_flight": self._in_flight,
            "user": None if exchange.user_id is None else self.user_hash(exchange.user_id),
            "bytes_in": exchange.bytes_in,
            "messages": exchange.messages,
            "hits": exchange.hits,
            "replay": exchange.replay,
        } | _told(exchange.error)
        logger.log(_level(exchange), "request", extra={name: value for name, value in facts.items() if value is not None})


def _told(error: Exception | None) -> dict[str, str]:
    """An error as facts. Only our own messages are known to carry no content."""
    if error is None:
        return {}
    return {"error": type(error).__name__} | (
        {"reason": str(error)} if isinstance(error, MemserverError) else {"place": place(error)}
    )


def _level(exchange: Exchange) -> int:
    if exchange.status == 500:
        return logging.ERROR
    if exchange.status >= 400:
        return logging.WARNING
    return logging.DEBUG if exchange.operation == "health" else logging.INFO


@dataclass(frozen=True, slots=True)
class _EngineCollector:
    """Reads the engine's own figures when Prometheus asks, so that the engine need not know of metrics."""

    stats: Callable[[], Stats]

    def collect(self) -> Iterator[Metric]:
        stats = self.stats()
        embedder, indexes = stats.embedder, stats.indexes
        texts = sum(size * count for size, count in embedder.batches.items())
        yield GaugeMetricFamily("memserver_embed_waiting", "Texts queued for the embedder.", embedder.waiting)
        yield CounterMetricFamily("memserver_embedded_texts", "Texts embedded.", texts)
        tokens = embedder.embedded_bytes / BYTES_PER_TOKEN
        yield CounterMetricFamily("memserver_embedded_tokens", "Tokens of these texts, estimated from their bytes.", tokens)
        batches = [
            ("+Inf" if top == inf else str(top), sum(n for size, n in embedder.batches.items() if size <= top)) for top in BATCHES
        ]
        yield HistogramMetricFamily("memserver_embed_batch_texts", "Texts of each call of the embedder.", batches, texts)
        yield GaugeMetricFamily("memserver_index_users", "Users whose indexes are in memory.", indexes.users)
        yield GaugeMetricFamily("memserver_index_bytes", "Memory of their indexes, estimated.", indexes.nbytes)
        yield CounterMetricFamily("memserver_index_hits", "Searches whose index was in memory.", indexes.hits)
        yield CounterMetricFamily("memserver_index_misses", "Searches whose index had to be built.", indexes.misses)
        yield CounterMetricFamily(
            "memserver_index_evictions", "Indexes dropped to stay within the memory set.", indexes.evictions
        )
        yield GaugeMetricFamily("memserver_database_bytes", "The database and its write-ahead log on disk.", stats.database_bytes)
