"""Holds rows in memory as a source that can be read several times."""

from collections.abc import Iterator

import pyarrow as pa

from tablestore.table.read.scan import ArrowSource


class MemoryRows(ArrowSource):
    """Rows of an Arrow table, which is kept."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    @property
    def schema(self) -> pa.Schema:
        return self._rows.schema

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._rows.to_batches()
