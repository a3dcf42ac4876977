"""Writes the figures of materialized tables as OpenMetrics text, which Prometheus and others collect. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from tablestore.materialized.figures.freshnessfigures import FreshnessFigures

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
_PREFIX = "tablestore_materialized_table"


def metrics_text(figures: Sequence[FreshnessFigures], failures: Mapping[str, int]) -> str:
    """One exposition. ``failures``: how often a refresh of a table has failed, by its name."""
    labels = [{"table": str(table_figures.table)} for table_figures in figures]
    last = [
        ({**label, "mode": table_figures.last.mode}, table_figures.last)
        for label, table_figures in zip(labels, figures, strict=True)
        if table_figures.last
    ]
    lines = [
        *_gauge(
            "target_seconds",
            "How fresh the table is to be.",
            zip(labels, (table_figures.target_ms / 1000 for table_figures in figures), strict=True),
        ),
        *_gauge(
            "lag_seconds",
            "The age of the oldest commit of a source that the table does not show.",
            [
                (label, table_figures.lag_ms / 1000)
                for label, table_figures in zip(labels, figures, strict=True)
                if table_figures.lag_ms is not None
            ],
        ),
        *_gauge(
            "active",
            "1 for a table that is kept fresh, 0 for a suspended one.",
            [(label, int(table_figures.status == "ACTIVATED")) for label, table_figures in zip(labels, figures, strict=True)],
        ),
        *_gauge(
            "last_refresh_timestamp_seconds",
            "When the last refresh began.",
            [(label, refresh.at_ms / 1000) for label, refresh in last],
        ),
        *_gauge(
            "last_refresh_seconds", "How long the last refresh took.", [(label, refresh.took_ms / 1000) for label, refresh in last]
        ),
        *_gauge(
            "last_refresh_rows_in",
            "Changed rows of the sources that the last refresh read.",
            [(label, refresh.rows_in) for label, refresh in last if refresh.rows_in is not None],
        ),
        *_gauge(
            "last_refresh_rows_out",
            "Rows that the last refresh wrote.",
            [(label, refresh.rows_out) for label, refresh in last if refresh.rows_out is not None],
        ),
        f"# TYPE {_PREFIX}_refresh_failures counter",
        f"# HELP {_PREFIX}_refresh_failures Refreshes that failed since this server began.",
        *(_sample("refresh_failures_total", {"table": name}, count) for name, count in failures.items()),
        "# EOF",
    ]
    return "\n".join(lines) + "\n"


def _gauge(name: str, text: str, samples: Iterable[tuple[Mapping[str, str], float]]) -> list[str]:
    head = [f"# TYPE {_PREFIX}_{name} gauge", f"# HELP {_PREFIX}_{name} {text}"]
    return [*head, *(_sample(name, labels, value) for labels, value in samples)]


def _sample(name: str, labels: Mapping[str, str], value: float) -> str:
    pairs = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
    return f"{_PREFIX}_{name}{{{pairs}}} {value}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
