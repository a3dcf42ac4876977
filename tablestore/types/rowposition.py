"""Row positions: address a row of an append table by its data file and its position there.

    _data_file                 _row_position
    data-0b9c….parquet         0, 1, 2 …          counted from the file's first row, deleted rows too

A read can yield both as its last columns, and a change names by them the row that it updates or deletes. The name of a data file
is unique in its table. It is there only in the snapshots that hold the file: a compaction moves rows.
"""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.datatypes import MAX_LENGTH, AtomicType, Field, TypeRoot

DATA_FILE_COLUMN = "_data_file"
ROW_POSITION_COLUMN = "_row_position"
POSITION_COLUMNS = (DATA_FILE_COLUMN, ROW_POSITION_COLUMN)
# No file holds them, so their ids mean nothing.
POSITION_FIELDS = (
    Field(id=-1, name=DATA_FILE_COLUMN, type=AtomicType(root=TypeRoot.VARCHAR, length=MAX_LENGTH, nullable=False)),
    Field(id=-1, name=ROW_POSITION_COLUMN, type=AtomicType(root=TypeRoot.BIGINT, nullable=False)),
)


def with_positions(rows: Iterator[pa.RecordBatch], file_name: str) -> Iterator[pa.RecordBatch]:
    """The rows of a data file, given from its beginning, with their positions behind the other columns."""
    start, fields = 0, to_arrow_schema(POSITION_FIELDS)
    for batch in rows:
        stop = start + batch.num_rows
        columns = [pa.repeat(pa.scalar(file_name), batch.num_rows), pa.array(np.arange(start, stop, dtype=np.int64))]
        yield pa.RecordBatch.from_arrays([*batch.columns, *columns], schema=pa.schema([*batch.schema, *fields]))
        start = stop
