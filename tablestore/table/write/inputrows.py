"""Rows given by users, as Arrow tables.

Tables, record batches and readers of pyarrow are taken as they are; pandas and polars frames, DuckDB relations and any other
object that exports ``__arrow_c_stream__`` or ``__arrow_c_array__`` through the Arrow PyCapsule interface without a copy.
"""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tablestore.bounds import BATCH_BYTES
from tablestore.errors import InvalidInputError

STREAM_ROWS = 1 << 20


def schema_and_tables(rows: Any) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """The Arrow schema of ``rows`` and its content as tables of bounded size. Raises InvalidInputError."""
    if isinstance(rows, pa.Table):
        return rows.schema, iter((rows,))
    if isinstance(rows, pa.RecordBatch):
        return rows.schema, iter((pa.Table.from_batches([rows]),))
    if isinstance(rows, pa.RecordBatchReader):
        return rows.schema, _tables(rows)
    if isinstance(rows, list) and rows and all(isinstance(row, dict) for row in rows):
        names = list(dict.fromkeys(name for row in rows for name in row))
        table = _guarded(lambda: pa.table({name: [row.get(name) for row in rows] for name in names}), rows)
        return table.schema, iter((table,))
    if hasattr(rows, "__arrow_c_stream__"):
        reader = _guarded(lambda: pa.RecordBatchReader.from_stream(rows), rows)
        schema, tables = reader.schema, _tables(reader)
        return _without_pandas_index(schema, tables)
    if hasattr(rows, "__arrow_c_array__"):
        batch = _guarded(lambda: pa.record_batch(rows), rows)
        return batch.schema, iter((pa.Table.from_batches([batch]),))
    raise InvalidInputError(
        f"expected rows as an Arrow table, batch or reader, a pandas or polars frame, or an object with __arrow_c_stream__, found "
        f"{type(rows).__module__}.{type(rows).__qualname__}; build one with pyarrow.table({{...}})",
        kind="not-rows",
    )


def ragged_columns(rows: Any) -> frozenset[str]:
    """Columns that some rows of a list of dicts have and others lack: in Arrow the latter hold nulls."""
    if not isinstance(rows, list):
        return frozenset()
    names = [frozenset(row) for row in rows]
    return frozenset().union(*names) - frozenset.intersection(*names) if names else frozenset()


def _tables(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """Batches gathered up to a number of rows or bytes, because the write path has a fixed cost per table."""
    pending: list[pa.RecordBatch] = []
    count = size = 0
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            break
        pending.append(batch)
        count, size = count + batch.num_rows, size + batch.nbytes
        if count >= STREAM_ROWS or size >= BATCH_BYTES:
            yield pa.Table.from_batches(pending)
            pending, count, size = [], 0, 0
    if pending:
        yield pa.Table.from_batches(pending)


def _without_pandas_index(schema: pa.Schema, tables: Iterator[pa.Table]) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """The rows without the columns of a pandas index that has no name."""
    extra = [name for name in schema.names if name.startswith("__index_level_")]
    if not extra:
        return schema, tables
    kept = [name for name in schema.names if name not in extra]
    return pa.schema([schema.field(name) for name in kept]), (table.select(kept) for table in tables)


def _guarded(read: Any, rows: Any) -> Any:
    try:
        return read()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{type(rows).__qualname__} could not be read as Arrow rows: {error}; convert its columns to types that Arrow knows",
            kind="not-rows",
        ) from error
