"""Measures a table for people who look at many: its kind, rows, files, bytes and newest snapshot."""

from dataclasses import dataclass

from tablestore.options import is_materialized
from tablestore.store.context import TableContext
from tablestore.store.filesums import summed_files
from tablestore.types.schema import TableSchema


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFigures:
    """The figures of one table. ``rows``: as readers see them where ``rows_exact``, else records in files; None where rules of a
    catalog service hide some of them."""

    kind: str
    rows: int | None
    rows_exact: bool
    files: int
    size_bytes: int
    snapshot_id: int | None = None
    time_ms: int | None = None

    @property
    def rows_text(self) -> str:
        """The rows for people."""
        if self.rows is None:
            return "unknown"
        return f"{self.rows:,}" if self.rows_exact else f"≤ {self.rows:,}"


def figures_of_table(context: TableContext) -> TableFigures:
    """The figures of a table as it is now. Raises StorageError, FormatError."""
    latest = context.shown_latest()
    sums = summed_files(context.manifests, latest, "bucket")
    counted = 0 if latest is None else latest.rows
    return TableFigures(
        kind=table_kind(context.schema),
        rows=counted if counted is not None else latest.total_record_count if latest is not None else 0,
        rows_exact=counted is not None,
        files=sum(one.files for one in sums),
        size_bytes=sum(one.size_bytes for one in sums),
        snapshot_id=latest.id if latest else None,
        time_ms=latest.time_millis if latest else None,
    )


def table_kind(schema: TableSchema) -> str:
    """The kind of a table, in a word."""
    if is_materialized(schema.options):
        return "materialized"
    return "keyed" if schema.is_keyed else "append"
