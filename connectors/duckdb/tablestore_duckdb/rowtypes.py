"""Maps the Arrow types of rows to those in which they go into DuckDB, and in which they come out.

    in    TIMESTAMP(0-3) counts microseconds, as DuckDB's own scan of our files has it; all else is canonical
    out   the canonical types of tablestore.types.arrowtypes

What queries compute can have a type that no table holds; it comes out as the nearest one that holds its values, or as it is:

    HUGEINT (sums of integers)  int64, as Spark has it     TINYINT … UBIGINT, unsigned  the next larger type
    ENUM, UUID, JSON            string                     TIME                         time32[ms]
    fixed-size array            list                       TIMESTAMP_S, _MS             timestamp[us]
                                                           INTERVAL, BIGNUM, UNION …    as they are

UHUGEINT, BIT and TIME WITH TIME ZONE are refused: Arrow has no type that holds their values, and DuckDB exports others.
"""

import re
from collections.abc import Sequence

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.types.arrowtypes import TYPE_KEY, from_arrow_type, to_arrow_type
from tablestore.types.datatypes import (
    VARIANT_PARTS,
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    MultisetType,
    RowType,
    TypeRoot,
    VariantType,
    as_map,
    as_row,
    is_finer_than_micros,
)
from tablestore_duckdb.quoting import identifier


def rows_in(schema: pa.Schema) -> pa.Schema:
    """The types in which our rows go into DuckDB."""
    return pa.schema([pa.field(field.name, _in_microseconds(field.type), field.nullable) for field in schema])


def rows_out(schema: pa.Schema, duckdb_types: Sequence[str]) -> pa.Schema:
    """The types in which rows of ``schema``, as DuckDB exports them, come out. ``duckdb_types``: their names in DuckDB.

    Raises UnsupportedError for a type that Arrow has no words for.
    """
    for field, name in zip(schema, duckdb_types, strict=True):
        if (exported := _EXPORTED_AS_OTHERS.search(_QUOTED.sub("", name))) is not None:
            raise UnsupportedError(
                f"column {field.name!r} of the query has the type {name}, and Arrow has none that holds the values of "
                f"{exported[0]}; cast it, CAST({field.name} AS {_CAST_TO[exported[0]]})",
                kind="engine",
            )
    return pa.schema(
        [
            _marked(field.name, pa.int64() if name == "HUGEINT" else _canonical(field.type))
            for field, name in zip(schema, duckdb_types, strict=True)
        ]
    )


_CAST_TO = {"UHUGEINT": "DECIMAL(38, 0)", "BIT": "VARCHAR", "TIME WITH TIME ZONE": "VARCHAR"}
_EXPORTED_AS_OTHERS = re.compile(rf"\b(?:{'|'.join(_CAST_TO)})\b")
# The names of fields, which may be words of types.
_QUOTED = re.compile(r'"(?:[^"]|"")*"')
_INTERVAL_WORD = re.compile(r"\bINTERVAL\b")
_INTERVAL, _DURATION = pa.month_day_nano_interval(), pa.duration("us")
_PARTS = np.dtype([("months", "<i4"), ("days", "<i4"), ("nanos", "<i8")])
_PLAIN = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "HUGEINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "DATE": pa.date32(),
}


def plain_rows_out(names: Sequence[str], duckdb_types: Sequence[str]) -> pa.Schema | None:
    """The types as :func:`rows_out` gives them where the names of DuckDB's types say it, whatever its settings are: no row has to
    be exported for it."""
    # An export gives columns of one name other names.
    if not all(name in _PLAIN for name in duckdb_types) or len({name.casefold() for name in names}) < len(names):
        return None
    return pa.schema([pa.field(name, _PLAIN[type_name]) for name, type_name in zip(names, duckdb_types, strict=True)])


def in_days(relation: duckdb.DuckDBPyRelation) -> duckdb.DuckDBPyRelation:
    """The rows with intervals of whole days and a rest of less than a day: what DuckDB exports counts nanoseconds in 64 bits, which
    as many microseconds as it may hold itself do not fit.

    Raises UnsupportedError for intervals in structs and maps.
    """
    kinds = [str(kind) for kind in relation.types]
    if not any(_INTERVAL_WORD.search(_QUOTED.sub("", kind)) for kind in kinds):
        return relation
    columns = zip(relation.columns, kinds, strict=True)
    # By their places, as two may have one name.
    written = (f"{_in_days(f'#{place}', kind, name)} AS {identifier(name)}" for place, (name, kind) in enumerate(columns, 1))
    return relation.project(", ".join(written))


def _in_days(value: str, kind: str, column: str) -> str:
    if kind == "INTERVAL":
        days = f"to_days(CAST(epoch_us({value}) // 86400000000 AS INTEGER)) + to_microseconds(epoch_us({value}) % 86400000000)"
        return f"CASE WHEN datepart('year', {value}) = 0 AND datepart('month', {value}) = 0 THEN {days} ELSE {value} END"
    if kind.endswith("[]"):
        item = f"_item{len(kind)}"
        return f"list_transform({value}, lambda {item}: {_in_days(item, kind.removesuffix('[]'), column)})"
    if _INTERVAL_WORD.search(_QUOTED.sub("", kind)):
        raise UnsupportedError(
            f"column {column!r} of the query has intervals inside of the type {kind}; give them in a column or an array, or their "
            "parts, extract(DAY FROM i)",
            kind="engine",
        )
    return value


def with_durations(schema: pa.Schema) -> pa.Schema:
    """The types with durations for intervals, as Spark has them: of days and what is shorter."""
    if not any(_has_interval(field.type) for field in schema):
        return schema
    return pa.schema([field.with_type(_with_duration(field.type)) for field in schema])


def _has_interval(arrow_type: pa.DataType) -> bool:
    return arrow_type == _INTERVAL or (pa.types.is_list(arrow_type) and _has_interval(arrow_type.value_type))


def _with_duration(arrow_type: pa.DataType) -> pa.DataType:
    if pa.types.is_list(arrow_type):
        return pa.list_(arrow_type.value_field.with_type(_with_duration(arrow_type.value_type)))
    return _DURATION if arrow_type == _INTERVAL else arrow_type


def _durations(column: pa.Array, name: str) -> pa.Array:
    """Intervals as durations. Raises InvalidInputError for one of months."""
    if pa.types.is_list(column.type):
        # Arrow takes nulls beside offsets of a whole array only.
        column = column.take(pa.array(np.arange(len(column)))) if column.offset else column
        values = _durations(column.values, name)
        return pa.ListArray.from_arrays(column.offsets, values, mask=column.is_null() if column.null_count else None)
    parts = np.frombuffer(column.buffers()[1], dtype=_PARTS)[column.offset : column.offset + len(column)]
    is_value = np.asarray(column.is_valid())
    if (parts["months"][is_value] != 0).any():
        raise InvalidInputError(
            f"column {name!r} of the query has an interval of months, and no column of a result has such values; add it to a date",
            kind="query",
        )
    micros = parts["days"].astype(np.int64) * 86_400_000_000 + parts["nanos"] // 1000
    return pa.array(np.where(is_value, micros, 0), mask=~is_value).cast(_DURATION)


def cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The batch in these types. Raises InvalidInputError for a value that does not fit."""
    if batch.schema.equals(schema):
        return batch
    return pa.RecordBatch.from_arrays(
        [_cast(column, field) for column, field in zip(batch.columns, schema, strict=True)], schema=schema
    )


def check_finite(batch: pa.RecordBatch) -> None:
    """Raises InvalidInputError for a date or timestamp that is infinite, which DuckDB exports as the last one that it counts."""
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if _has_infinite(column):
            raise InvalidInputError(
                f"column {name!r} of the query has an infinite date or timestamp, and no column of a result has such values; "
                f"cast it to VARCHAR, or take NULL for it, CASE WHEN isfinite({name}) THEN {name} END",
                kind="query",
            )


def _has_infinite(column: pa.Array) -> bool:
    types, kind = pa.types, column.type
    if types.is_struct(kind):
        return any(map(_has_infinite, column.flatten()))
    if types.is_list(kind):
        return _has_infinite(column.flatten())
    if types.is_map(kind):
        return _has_infinite(column.keys) or _has_infinite(column.items)
    if not types.is_date32(kind) and not types.is_timestamp(kind):
        return False
    number = pa.int32() if types.is_date32(kind) else pa.int64()
    ends = pc.min_max(column.view(number))
    endless = 2 ** (number.bit_width - 1) - 1
    return bool(ends["max"].as_py() == endless or ends["min"].as_py() == -endless)


def duckdb_type(data_type: DataType) -> str:
    """The name of DuckDB's type that holds the values of a logical type."""
    match data_type:
        case AtomicType(root=TypeRoot.DECIMAL):
            return f"DECIMAL({data_type.precision}, {data_type.scale})"
        case AtomicType(root=TypeRoot.TIMESTAMP):
            return "TIMESTAMP_NS" if is_finer_than_micros(data_type) else "TIMESTAMP"
        case AtomicType(root=TypeRoot.TIMESTAMP_LTZ):
            return "TIMESTAMPTZ_NS" if is_finer_than_micros(data_type) else "TIMESTAMPTZ"
        case AtomicType(root=TypeRoot.BINARY | TypeRoot.VARBINARY):
            return "BLOB"
        case AtomicType(root=TypeRoot.CHAR):
            return "VARCHAR"
        case AtomicType():
            return data_type.root.value
        case ArrayType():
            return f"{duckdb_type(data_type.element)}[]"
        case MapType() | MultisetType():
            entries = as_map(data_type)
            return f"MAP({duckdb_type(entries.key)}, {duckdb_type(entries.value)})"
        case RowType() | VariantType():
            fields = as_row(data_type).fields
            return f"STRUCT({', '.join(f'{identifier(field.name)} {duckdb_type(field.type)}' for field in fields)})"


def _cast(column: pa.Array, field: pa.Field) -> pa.Array:
    if column.type == field.type:
        return column
    if _has_interval(column.type):
        column = _durations(column, field.name)
        if column.type == field.type:
            return column
    try:
        # Digits below the milliseconds of a TIME are cut off, as in CAST(x AS TIME(3)).
        return column.cast(field.type, safe=not pa.types.is_time(field.type))
    except pa.ArrowInvalid as error:
        raise InvalidInputError(
            f"column {field.name!r} of the query: expected values of {field.type}, found one that does not fit ({error}); cast "
            "it to a type that holds its values, such as DECIMAL(38, 0)",
            kind="query",
        ) from error


def _canonical(arrow_type: pa.DataType) -> pa.DataType:
    if pa.types.is_null(arrow_type):
        return arrow_type
    try:
        return _in_microseconds(to_arrow_type(from_arrow_type(arrow_type, True, lambda: 0)))
    except UnsupportedError:
        return arrow_type


def _in_microseconds(arrow_type: pa.DataType) -> pa.DataType:
    types = pa.types
    if types.is_timestamp(arrow_type) and arrow_type.unit in ("s", "ms"):
        return pa.timestamp("us", arrow_type.tz)
    if types.is_struct(arrow_type):
        return pa.struct([_field(arrow_type.field(position)) for position in range(arrow_type.num_fields)])
    if types.is_map(arrow_type):
        return pa.map_(_in_microseconds(arrow_type.key_type), _marked("value", _in_microseconds(arrow_type.item_type)))
    if types.is_list(arrow_type):
        return pa.list_(_marked("element", _in_microseconds(arrow_type.value_type)))
    return arrow_type


def _field(field: pa.Field) -> pa.Field:
    return _marked(field.name, _in_microseconds(field.type))


def _marked(name: str, arrow_type: pa.DataType) -> pa.Field:
    """A field; the rows that are a VARIANT here are one in a table that is made of them."""
    return pa.field(name, arrow_type, metadata={TYPE_KEY: b"VARIANT"} if arrow_type == _VARIANT else None)


_VARIANT = pa.struct([(name, pa.binary()) for name in VARIANT_PARTS])
