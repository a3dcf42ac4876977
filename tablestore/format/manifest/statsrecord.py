"""Column statistics as an Avro record inside of manifests and manifest lists."""

from typing import Any

from tablestore.errors import FormatError
from tablestore.format.binaryrow import EMPTY_ROW
from tablestore.format.manifest.records import RecordFormat, StoredColumn
from tablestore.format.stats import EMPTY_STATS, SimpleStats

_COLUMNS = (
    StoredColumn("_MIN_VALUES", "min_values", "bytes"),
    StoredColumn("_MAX_VALUES", "max_values", "bytes"),
    StoredColumn("_NULL_COUNTS", "null_counts", {"type": "array", "items": ["null", "long"]}, optional=True, write=list),
)
encode_stats_record = RecordFormat("", _COLUMNS).encode
"""The record of a SimpleStats."""


def stats_column(name: str, attribute: str, inside: str) -> StoredColumn:
    """The column of a record ``inside`` that holds statistics."""
    schema = RecordFormat(f"{inside}_{name}", _COLUMNS).schema
    return StoredColumn(name, attribute, schema, write=encode_stats_record, read=_read)


def _read(record: dict[str, Any] | None, where: str) -> SimpleStats:
    """A missing record is :data:`EMPTY_STATS`."""
    if record is None:
        return EMPTY_STATS
    low, high, counts = record["_MIN_VALUES"], record["_MAX_VALUES"], record.get("_NULL_COUNTS")
    if low == EMPTY_ROW and high == EMPTY_ROW and not counts:
        return EMPTY_STATS
    if low is None or high is None:
        raise FormatError(f"{where}: expected statistics with two rows of bounds, found none. Restore the file.")
    return SimpleStats(min_values=low, max_values=high, null_counts=tuple(counts or ()))
