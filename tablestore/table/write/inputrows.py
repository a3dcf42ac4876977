"""Converts rows as users give them to Arrow tables. All entry points come through here.

    Arrow                  a table, a batch, a reader                              taken as they are
    frames                 pandas, polars (lazy ones too), DuckDB relations, scans and tables: whatever exports Arrow data by
                           ``__arrow_c_stream__`` or ``__arrow_c_array__``         without a copy
    Python                 [{"id": 1, "v": "a"}], [(1, "a")] in the order of the columns, {"id": [1], "v": ["a"]}
    a generator or list    of any of these that is Arrow or a frame                one after another

Memory: a part of bounded size of a stream; Python values and lazy frames as a whole.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any, Protocol, TypeAlias

import pyarrow as pa

from tablestore.bounds import BATCH_BYTES
from tablestore.errors import InvalidInputError

STREAM_ROWS = 1 << 20
_REFUSALS = (pa.ArrowException, TypeError, ValueError, OverflowError)


class ArrowStream(Protocol):
    """Objects that export Arrow data as a stream: frames of pandas and polars, relations of DuckDB, scans."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class ArrowArray(Protocol):
    """Objects that export Arrow data as one batch."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


class LazyRows(Protocol):
    """A lazy frame of polars."""

    def collect(self) -> ArrowStream: ...


ArrowRows: TypeAlias = pa.Table | pa.RecordBatch | pa.RecordBatchReader | ArrowStream | ArrowArray
Rows: TypeAlias = (
    ArrowRows | LazyRows | Sequence[Mapping[str, Any]] | Sequence[tuple[Any, ...]] | Mapping[str, Any] | Iterable[ArrowRows]
)
"""Rows as every method takes them."""

_FORMS = (
    "an Arrow table, batch or reader, a pandas or polars frame, an object with __arrow_c_stream__, a list of dicts such as "
    "[{'id': 1}], a list of tuples, a dict of lists such as {'id': [1]}, or a generator of batches"
)


def schema_and_tables(rows: Any, columns: Callable[[], pa.Schema] | None = None) -> tuple[pa.Schema, Iterator[pa.Table]]:
    """The Arrow schema of ``rows`` and its content as tables of bounded size.

    ``columns``: those of the table, which tuples have in their order and no rows at all have. Raises InvalidInputError.
    """
    if isinstance(rows, pa.Table):
        return rows.schema, iter((rows,))
    if isinstance(rows, pa.RecordBatch):
        return rows.schema, iter((pa.Table.from_batches([rows]),))
    if isinstance(rows, pa.RecordBatchReader):
        return rows.schema, _tables(rows)
    if isinstance(rows, (list, tuple)):
        return _of_list(rows, columns)
    if isinstance(rows, Mapping):
        table = _of_columns({name: _as_values(name, values) for name, values in rows.items()}, columns)
        return table.schema, iter((table,))
    if _is_lazy_frame(rows):
        rows = rows.collect()
    if hasattr(rows, "__arrow_c_stream__"):
        reader = _guarded(lambda: pa.RecordBatchReader.from_stream(rows), rows)
        schema, tables = reader.schema, _tables(reader)
        return _without_pandas_index(schema, tables)
    if hasattr(rows, "__arrow_c_array__"):
        batch = _guarded(lambda: pa.record_batch(rows), rows)
        return batch.schema, iter((pa.Table.from_batches([batch]),))
    if isinstance(rows, Iterator):
        return _of_parts(rows, columns)
    raise _not_rows(rows)


def ragged_columns(rows: Any) -> frozenset[str]:
    """Columns that some rows of a list of dicts have and others lack: in Arrow the latter hold nulls."""
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        return frozenset()
    names = [frozenset(row) for row in rows]
    return frozenset().union(*names) - frozenset.intersection(*names) if names else frozenset()


# -- Python values


def _of_list(rows: Sequence[Any], columns: Callable[[], pa.Schema] | None) -> tuple[pa.Schema, Iterator[pa.Table]]:
    if not rows:
        return _nothing(columns)
    kind = Mapping if isinstance(rows[0], Mapping) else tuple if isinstance(rows[0], (tuple, list)) else None
    if kind is None:
        if _is_part(rows[0]):
            return _of_parts(iter(rows), columns)
        raise InvalidInputError(
            f"expected in a list of rows dicts such as {{'id': 1}} or tuples, found {rows[0]!r:.80} as row 0", kind="not-rows"
        )
    # Per row, as Python's values are: Arrow data has the fast way.
    for place, row in enumerate(rows):
        if not isinstance(row, Mapping if kind is Mapping else (tuple, list)):
            raise InvalidInputError(
                f"expected a {'dict' if kind is Mapping else 'tuple'} as row {place} (the first is 0), as the rows before it are, "
                f"found {row!r:.80}",
                kind="not-rows",
            )
    if kind is Mapping:
        names = list(dict.fromkeys(name for row in rows for name in row))
        table = _of_columns({name: [row.get(name) for row in rows] for name in names}, columns)
        return table.schema, iter((table,))
    if columns is None:
        raise InvalidInputError("rows as tuples need the columns of a table; give dicts such as {'id': 1}", kind="not-rows")
    column_names = columns().names
    for place, row in enumerate(rows):
        if len(row) != len(column_names):
            raise InvalidInputError(
                f"expected a value for each of the columns {', '.join(column_names)} in row {place} (the first is 0), found "
                f"{len(row)}: {row!r:.80}; for some of the columns give dicts",
                kind="not-rows",
            )
    table = _of_columns({name: [row[place] for row in rows] for place, name in enumerate(column_names)}, columns)
    return table.schema, iter((table,))


def _of_columns(values: Mapping[str, Any], columns: Callable[[], pa.Schema] | None) -> pa.Table:
    if wrong := [name for name in values if not isinstance(name, str)]:
        raise InvalidInputError(f"expected names of columns as texts, found {wrong[0]!r:.80}", kind="not-rows")
    lengths = {name: len(column) for name, column in values.items()}
    if len(set(lengths.values())) > 1:
        (first, length), *remaining = lengths.items()
        other = next(name for name, count in remaining if count != length)
        raise InvalidInputError(
            f"expected columns of one length, found {length} values in {first!r} and {lengths[other]} in {other!r}", kind="not-rows"
        )
    return pa.table({name: _array(name, column, columns) for name, column in values.items()})


def _as_values(name: Any, values: Any) -> Any:
    if isinstance(values, (str, bytes, Mapping)) or not hasattr(values, "__len__"):
        raise InvalidInputError(
            f"expected a list as the values of column {name!r}, found {values!r:.80}; one row is {{'id': [1]}} or [{{'id': 1}}]",
            kind="not-rows",
        )
    return values


def _array(name: str, values: Any, columns: Callable[[], pa.Schema] | None) -> pa.Array | pa.ChunkedArray:
    """The values as Arrow finds them, or else as the column of the table has them. In a column with maps, dicts are maps."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    target = columns() if columns is not None else pa.schema([])
    data_type = target.field(name).type if name in target.names else None
    make = partial(_typed, data_type=data_type)
    try:
        return make(values) if data_type is not None and _has_maps(data_type) else pa.array(values)
    except _REFUSALS as inferred:
        error = inferred
        if data_type is not None:
            try:
                return make(values)
            except _REFUSALS as typed:
                error = typed
        place = _first_wrong(values, make)
        type_text = f", which takes {data_type}" if data_type is not None else ""
        raise InvalidInputError(
            f"row {place} (the first is 0): {values[place]!r:.80} does not go into column {name!r}{type_text}: {error}",
            kind="wrong-value",
        ) from error


def _typed(values: Sequence[Any], data_type: pa.DataType | None) -> pa.Array:
    if data_type is None or not data_type.num_fields:
        return pa.array(values, data_type)
    return pa.array([_as_arrow_wants(value, data_type) for value in values], data_type)


def _has_maps(data_type: pa.DataType) -> bool:
    return pa.types.is_map(data_type) or any(_has_maps(data_type.field(place).type) for place in range(data_type.num_fields))


def _as_arrow_wants(value: Any, data_type: pa.DataType) -> Any:
    """A value of Python with its maps as pairs. Raises ValueError for a field that a row does not have, which Arrow leaves out."""
    if value is None or not data_type.num_fields:
        return value
    if pa.types.is_map(data_type):
        pairs = value.items() if isinstance(value, Mapping) else value
        return [(_as_arrow_wants(key, data_type.key_type), _as_arrow_wants(item, data_type.item_type)) for key, item in pairs]
    if pa.types.is_struct(data_type) and isinstance(value, Mapping):
        types = {field.name: field.type for field in data_type}
        if unknown := [name for name in value if name not in types]:
            raise ValueError(f"the row has no field {unknown[0]!r}; its fields are {', '.join(types)}")
        return {name: _as_arrow_wants(part, types[name]) for name, part in value.items()}
    if pa.types.is_list(data_type) and isinstance(value, (list, tuple)):
        return [_as_arrow_wants(part, data_type.value_type) for part in value]
    return value


def _first_wrong(values: Sequence[Any], make: Callable[[Sequence[Any]], object]) -> int:
    """The place of the first value that Arrow does not take after those before it, by halves."""
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        try:
            make(values[: middle + 1])
            low = middle + 1
        except _REFUSALS:
            high = middle
    return low


# -- several parts


def _of_parts(parts: Iterator[Any], columns: Callable[[], pa.Schema] | None) -> tuple[pa.Schema, Iterator[pa.Table]]:
    first = next(parts, None)
    if first is None:
        return _nothing(columns)
    if not _is_part(first):
        raise InvalidInputError(
            f"expected Arrow batches or frames from a generator, found {first!r:.80}; gather rows in a list", kind="not-rows"
        )
    schema, tables = schema_and_tables(first)
    return schema, chain(tables, _later_parts(schema, parts))


def _later_parts(schema: pa.Schema, parts: Iterator[Any]) -> Iterator[pa.Table]:
    for place, part in enumerate(parts, start=1):
        part_schema, tables = schema_and_tables(part) if _is_part(part) else (None, iter(()))
        if part_schema is None or not part_schema.equals(schema):
            words = f"{part!r:.80}" if part_schema is None else ", ".join(f"{field.name} {field.type}" for field in part_schema)
            raise InvalidInputError(
                f"expected in part {place} (the first is 0) the columns of the first, "
                f"{', '.join(f'{field.name} {field.type}' for field in schema)}, found {words}",
                kind="not-rows",
            )
        yield from tables


def _is_part(value: Any) -> bool:
    arrow = (pa.Table, pa.RecordBatch, pa.RecordBatchReader)
    return isinstance(value, arrow) or hasattr(value, "__arrow_c_stream__") or hasattr(value, "__arrow_c_array__")


def _is_lazy_frame(value: Any) -> bool:
    return type(value).__name__ == "LazyFrame" and type(value).__module__.startswith("polars")


def _nothing(columns: Callable[[], pa.Schema] | None) -> tuple[pa.Schema, Iterator[pa.Table]]:
    if columns is None:
        raise InvalidInputError("expected rows, found none, so there is no telling their columns", kind="not-rows")
    return columns(), iter(())


def _not_rows(rows: Any) -> InvalidInputError:
    way = ""
    if isinstance(rows, (str, bytes)) or hasattr(rows, "__fspath__"):
        way = "; a file is read first: pyarrow.csv.read_csv(path), pyarrow.parquet.read_table(path), or `tablestore import`"
    elif type(rows).__module__.startswith("pyspark"):
        way = "; a frame of Spark is written with df.write.format('tablestore').mode('append').save(table.location)"
    type_name = f"{type(rows).__module__}.{type(rows).__qualname__}"
    return InvalidInputError(f"expected rows as {_FORMS}, found {type_name}{way}", kind="not-rows")


# -- streams


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
    names = [name for name in schema.names if name not in extra]
    return pa.schema([schema.field(name) for name in names]), (table.select(names) for table in tables)


def _guarded(read: Any, rows: Any) -> Any:
    try:
        return read()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"{type(rows).__qualname__} could not be read as Arrow rows: {error}; convert its columns to types that Arrow knows",
            kind="not-rows",
        ) from error
