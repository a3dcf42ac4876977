"""Counts what the service does, for Prometheus and the like.

    tablestore_requests_total{method, route, status}     tablestore_request_duration_seconds{route}
    tablestore_requests_in_flight                        tablestore_requests_rejected_total{reason}
    tablestore_commits_total{outcome}

Labels are words of small sets, never what a caller sends: a route is the template of a path, a method one of those that HTTP knows.
Names of tables are no label, so that whoever collects the figures learns none.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from tablestore.lazy import missing_package

try:
    from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
    from prometheus_client.exposition import choose_encoder
except ImportError as error:
    raise missing_package("metrics need the package prometheus-client", "'managed-tablestore[server]'", error) from error

_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"})
_OTHER = "other"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class CommitOutcome(StrEnum):
    """The outcomes of a commit."""

    LANDED = "landed"
    LOST = "lost"
    UNKNOWN = "unknown"


class ServerMetrics:
    """The figures of one service, in a registry of its own: several in one process do not meet."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "tablestore_requests", "Requests that were answered.", ("method", "route", "status"), registry=self.registry
        )
        self._seconds = Histogram(
            "tablestore_request_duration_seconds",
            "How long answers took.",
            ("route",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._in_flight = Gauge("tablestore_requests_in_flight", "Requests that are being answered.", registry=self.registry)
        self._rejected = Counter(
            "tablestore_requests_rejected", "Requests that reached no route, by why.", ("reason",), registry=self.registry
        )
        self._commits = Counter("tablestore_commits", "Commits, by what came of them.", ("outcome",), registry=self.registry)
        for outcome in CommitOutcome:
            self._commits.labels(outcome)

    @contextmanager
    def in_flight(self) -> Iterator[None]:
        """Counts a request while it is answered."""
        self._in_flight.inc()
        try:
            yield
        finally:
            self._in_flight.dec()

    def answered(self, *, method: str, route: str, status: int, seconds: float) -> None:
        """Counts an answer. ``route``: the template of the path."""
        self._requests.labels(method if method in _METHODS else _OTHER, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def rejected(self, reason: str) -> None:
        """Counts a request that was refused before it reached a route; ``reason`` is a word of a small set."""
        self._rejected.labels(reason).inc()

    def committed(self, outcome: CommitOutcome) -> None:
        """Counts a commit."""
        self._commits.labels(outcome).inc()

    def exposition(self, accept: str = "") -> tuple[bytes, str]:
        """The figures as text, and its content type, in the format that a header ``Accept`` asks for."""
        encode, content_type = choose_encoder(accept)
        return encode(self.registry), content_type
