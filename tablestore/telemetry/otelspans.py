"""Gives operations to OpenTelemetry as spans and metrics, through its API package alone: without an SDK these do nothing.

    span      tablestore.<operation>              db.system.name, db.operation.name, db.collection.name; error.type of a failure
    metric    tablestore.operation.duration  s    a histogram; its count is the number of operations, such as commits
              tablestore.rows, .files, .bytes     counters of what they read or wrote

Attributes are those of OpenTelemetry's conventions for databases, others begin with ``tablestore.``.
"""

from types import TracebackType
from typing import TYPE_CHECKING, Self

from opentelemetry import context as otel_context
from opentelemetry import metrics, trace

from tablestore.clock import Clock
from tablestore.errors import TablestoreError

if TYPE_CHECKING:
    from contextvars import Token

    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

SYSTEM = "tablestore"
_DATABASE = ".db"


class OpenTelemetryTracer:
    """Implements :class:`~tablestore.telemetry.tracing.Tracer`. Without providers those of the program are used, which it sets as
    OpenTelemetry says, before or after this was made."""

    def __init__(self, clock: Clock, traces: "TracerProvider | None" = None, meters: "MeterProvider | None" = None) -> None:
        self.clock = clock
        self.tracer = trace.get_tracer(SYSTEM, tracer_provider=traces)
        meter = metrics.get_meter(SYSTEM, meter_provider=meters)
        self.duration = meter.create_histogram(
            "tablestore.operation.duration", unit="s", description="The time that operations on tables took."
        )
        self.rows = meter.create_counter("tablestore.rows", unit="{row}", description="Rows that operations read or changed.")
        self.files = meter.create_counter("tablestore.files", unit="{file}", description="Data files that they read or added.")
        self.bytes = meter.create_counter("tablestore.bytes", unit="By", description="Bytes of these files.")

    def span(self, operation: str, location: str, *, encloses: bool = True) -> "OpenTelemetrySpan":
        """As :meth:`Tracer.span <tablestore.telemetry.tracing.Tracer.span>`."""
        return OpenTelemetrySpan(self, operation, location, encloses=encloses)


class OpenTelemetrySpan:
    """One operation. Begins where it is entered, below what goes on in that thread."""

    def __init__(self, tracer: OpenTelemetryTracer, operation: str, location: str, *, encloses: bool) -> None:
        self._tracer, self._encloses, self._location = tracer, encloses, location
        self._attributes: dict[str, str | int] = {
            "db.system.name": SYSTEM,
            "db.operation.name": operation,
            "db.collection.name": collection_of(location),
        }
        self._span: trace.Span = trace.INVALID_SPAN
        self._token: Token[otel_context.Context] | None = None
        self._begun_s = 0.0

    def record(
        self,
        *,
        rows: int | None = None,
        files: int | None = None,
        size_bytes: int | None = None,
        snapshot_id: int | None = None,
    ) -> None:
        """As :meth:`Span.record <tablestore.telemetry.tracing.Span.record>`."""
        tracer = self._tracer
        for name, value, counter in (
            ("tablestore.rows", rows, tracer.rows),
            ("tablestore.files", files, tracer.files),
            ("tablestore.bytes", size_bytes, tracer.bytes),
        ):
            if value is not None:
                self._span.set_attribute(name, value)
                counter.add(value, self._attributes)
        if snapshot_id is not None:
            self._span.set_attribute("tablestore.snapshot.id", snapshot_id)

    def __enter__(self) -> Self:
        operation = self._attributes["db.operation.name"]
        self._span = self._tracer.tracer.start_span(
            f"tablestore.{operation}", attributes={**self._attributes, "tablestore.location": self._location}
        )
        if self._encloses:
            self._token = otel_context.attach(trace.set_span_in_context(self._span))
        self._begun_s = self._tracer.clock.steady_s()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace_back: TracebackType | None) -> None:
        seconds = self._tracer.clock.steady_s() - self._begun_s
        attributes = dict(self._attributes)
        # A reader that stops early ends its scan; that is no failure.
        if error is not None and not isinstance(error, GeneratorExit):
            attributes["error.type"] = error_type(error)
            self._span.set_attribute("error.type", attributes["error.type"])
            self._span.set_status(trace.StatusCode.ERROR, str(error))
        self._tracer.duration.record(seconds, attributes)
        if self._token is not None:
            otel_context.detach(self._token)
        self._span.end()


def error_type(error: BaseException) -> str:
    """The name of an error among few: its kind, or the class of one that is not tablestore's."""
    if isinstance(error, TablestoreError):
        return error.kind or type(error).__name__
    return type(error).__qualname__


def collection_of(location: str) -> str:
    """The name of the table that lies at an address: ``/data/wh/shop.db/orders`` is ``shop.orders``."""
    parent, _, name = location.rstrip("/").rpartition("/")
    folder = parent.rpartition("/")[2]
    return f"{folder.removesuffix(_DATABASE)}.{name}" if folder.endswith(_DATABASE) else name
