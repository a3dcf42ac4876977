"""Statistics of a table, as ANALYZE counts them: the rows of one snapshot, and what its columns hold.

    statistics/stat-<uuid>-<i> = {"snapshotId", "schemaId", "mergedRecordCount", "mergedRecordSize",
                                  "colStats": {name: {"colId", "distinctCount", "min", "max", "nullCount", "avgLen", "maxLen"}}}

The least and the greatest value are texts, as a cast to STRING gives them. What nobody counted is absent. Snapshots name the file
until the schema changes, so its numbers may be older than their rows.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tablestore.format.limits import DEFAULT_LIMITS, Limits, json_within_limits, parse_json_bounded
from tablestore.format.sealed import JsonObject

# Stored, never renamed.
_COUNTS = {
    "distinctCount": "distinct_count",
    "nullCount": "null_count",
    "avgLen": "average_length",
    "maxLen": "greatest_length",
}
_TEXTS = {"min": "least", "max": "greatest"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCounts:
    """The numbers of one column; lengths in bytes. None: not counted."""

    column_id: int
    distinct_count: int | None = None
    least: str | None = None
    greatest: str | None = None
    null_count: int | None = None
    average_length: int | None = None
    greatest_length: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatistics:
    """The rows of a snapshot, as readers see them, about how many bytes they take, and the counts of columns by name."""

    snapshot_id: int
    schema_id: int
    row_count: int | None = None
    size_bytes: int | None = None
    columns: Mapping[str, ColumnCounts] = field(default_factory=dict)


def encode_statistics(statistics: TableStatistics) -> bytes:
    """The bytes of the file. Raises InvalidInputError for more than it holds."""
    content: dict[str, object] = {"snapshotId": statistics.snapshot_id, "schemaId": statistics.schema_id}
    for key, value in (("mergedRecordCount", statistics.row_count), ("mergedRecordSize", statistics.size_bytes)):
        if value is not None:
            content[key] = value
    content["colStats"] = {name: _column_json(counts) for name, counts in statistics.columns.items()}
    return json_within_limits(content, "statistics", indent=2)


def decode_statistics(data: bytes, name: str, limits: Limits = DEFAULT_LIMITS) -> TableStatistics:
    """The statistics in a file of this or another writer. Raises FormatError."""
    source = JsonObject(parse_json_bounded(data, name, limits), name)
    columns = source.content.get("colStats") or {}
    if not isinstance(columns, dict):
        source.refuse("colStats", "an object", columns)
    return TableStatistics(
        snapshot_id=source.integer("snapshotId"),
        schema_id=source.integer("schemaId"),
        row_count=source.optional_integer("mergedRecordCount"),
        size_bytes=source.optional_integer("mergedRecordSize"),
        columns={column: _column(JsonObject(value, f"{name}, column {column!r:.80}")) for column, value in columns.items()},
    )


def _column_json(counts: ColumnCounts) -> dict[str, object]:
    stored: dict[str, object] = {"colId": counts.column_id}
    for key, attribute in {**_COUNTS, **_TEXTS}.items():
        if (value := getattr(counts, attribute)) is not None:
            stored[key] = value
    return stored


def _column(source: JsonObject) -> ColumnCounts:
    numbers = {attribute: source.optional_integer(key) for key, attribute in _COUNTS.items()}
    texts = {attribute: source.optional_text(key) for key, attribute in _TEXTS.items()}
    return ColumnCounts(column_id=source.integer("colId"), **numbers, **texts)  # type: ignore[arg-type]
