"""Writes the figures of materialized tables as OpenMetrics text, which Prometheus and others collect. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tablestore.lazy import missing_package
from tablestore.materialized.figures.freshnessfigures import FreshnessFigures

try:
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
    from prometheus_client.openmetrics.exposition import generate_latest
    from prometheus_client.registry import Collector
except ImportError as error:
    raise missing_package("metrics need the package prometheus-client", "'managed-tablestore[server]'", error) from error

_PREFIX = "tablestore_materialized_table"


class FreshnessRegistry(CollectorRegistry):
    """A registry of the figures that were shown last. Threads may share it."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: _FreshnessCollector | None = None

    def show(self, figures: Sequence[FreshnessFigures], failures: Mapping[str, int]) -> None:
        """Put these figures in the place of those before. ``failures``: how often a refresh of a table has failed, by its name."""
        self._shown = _FreshnessCollector(figures, failures)

    def collect(self) -> Iterator[Metric]:
        """The metrics; none before the first figures are shown."""
        shown = self._shown
        yield from () if shown is None else shown.collect()


def metrics_text(figures: Sequence[FreshnessFigures], failures: Mapping[str, int]) -> str:
    """One exposition as text."""
    registry = FreshnessRegistry()
    registry.show(figures, failures)
    text: bytes = generate_latest(registry)  # type: ignore[no-untyped-call]
    return text.decode()


class _FreshnessCollector(Collector):
    """The figures of one look as metrics."""

    def __init__(self, figures: Sequence[FreshnessFigures], failures: Mapping[str, int]) -> None:
        self._figures, self._failures = figures, failures

    def collect(self) -> Iterator[Metric]:
        """The metrics, each with a sample a table."""
        tables = [(str(one.table), one) for one in self._figures]
        last = [((name, one.last.mode), one.last) for name, one in tables if one.last is not None]
        yield _gauge("target_seconds", "How fresh the table is to be.", [((name,), one.target_ms / 1000) for name, one in tables])
        yield _gauge(
            "lag_seconds",
            "The age of the oldest commit of a source that the table does not show.",
            [((name,), one.lag_ms / 1000) for name, one in tables if one.lag_ms is not None],
        )
        yield _gauge(
            "active",
            "1 for a table that is kept fresh, 0 for a suspended one.",
            [((name,), float(one.status == "ACTIVATED")) for name, one in tables],
        )
        yield _gauge(
            "last_refresh_timestamp_seconds",
            "When the last refresh began.",
            [(labels, refresh.at_ms / 1000) for labels, refresh in last],
            mode=True,
        )
        yield _gauge(
            "last_refresh_seconds",
            "How long the last refresh took.",
            [(labels, refresh.took_ms / 1000) for labels, refresh in last],
            mode=True,
        )
        yield _gauge(
            "last_refresh_rows_in",
            "Changed rows of the sources that the last refresh read.",
            [(labels, refresh.rows_in) for labels, refresh in last if refresh.rows_in is not None],
            mode=True,
        )
        yield _gauge(
            "last_refresh_rows_out",
            "Rows that the last refresh wrote.",
            [(labels, refresh.rows_out) for labels, refresh in last if refresh.rows_out is not None],
            mode=True,
        )
        failures = CounterMetricFamily(
            f"{_PREFIX}_refresh_failures", "Refreshes that failed since this server began.", labels=("table",)
        )
        for name, count in self._failures.items():
            failures.add_metric((name,), count)
        yield failures


def _gauge(name: str, text: str, samples: Iterable[tuple[Sequence[str], float]], *, mode: bool = False) -> GaugeMetricFamily:
    family = GaugeMetricFamily(f"{_PREFIX}_{name}", text, labels=("table", "mode") if mode else ("table",))
    for labels, value in samples:
        family.add_metric(labels, value)
    return family
