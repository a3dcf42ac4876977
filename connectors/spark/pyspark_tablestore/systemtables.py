"""Reads system tables as relations: ``load("/data/warehouse/shop.db/orders$snapshots")``.

They are small, and computed anew for every query: one task opens the table where it runs and makes the rows. The exception is
``$ro``, which holds rows of the table and is planned like them, by ``reader``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from pyspark_tablestore.sourceoptions import SourceOptions
from pyspark_tablestore.tasks import plain_errors
from pyspark_tablestore.typemapping import arrow_schema, check_asked, to_spark
from tablestore.distributed.spec import TableSpec
from tablestore.table.read.scan import check_columns
from tablestore.table.system.systemtable import SystemTable
from tablestore.types.datatypes import Field
from tablestore.types.filter.filters import parse_filter


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataPin:
    """A system table as any process finds it."""

    spec: TableSpec
    kind: str

    def table(self) -> SystemTable:
        """Opens the system table."""
        return self.spec.table().system(self.kind)


class MetadataReader(DataSourceReader):
    """One task: the columns and rows that the options ask for."""

    def __init__(self, pin: MetadataPin, columns: tuple[str, ...], options: SourceOptions, target: pa.Schema) -> None:
        self._pin, self._columns, self._options, self._target = pin, columns, options, target

    def partitions(self) -> list[InputPartition]:
        """The one task."""
        return [InputPartition(self._pin.kind)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows in Spark's layout."""
        with plain_errors():
            scan = self._pin.table().scan(self._columns, self._options.filter, **_at(self._options))
            for batch in scan.to_batches():
                yield to_spark(batch, self._target)


def metadata_fields(pin: MetadataPin, options: SourceOptions) -> tuple[Field, ...]:
    """The columns that are asked for; checks the other options too."""
    table = pin.table()
    fields = {field.name: field for field in table.fields}
    parse_filter(options.filter, table.fields)
    table.scan(**_at(options))
    return tuple(fields[name] for name in check_columns(options.columns, tuple(fields)))


def make_metadata_reader(pin: MetadataPin, options: SourceOptions, schema: StructType) -> MetadataReader:
    """A reader of the columns in ``schema``."""
    return MetadataReader(pin, check_asked(schema, metadata_fields(pin, options)), options, arrow_schema(schema))


def _at(options: SourceOptions) -> dict[str, Any]:
    points = {"snapshot_id": options.snapshot_id, "timestamp": options.timestamp_millis}
    return {key: value for key, value in points.items() if value is not None}
