"""How a value looks in JSON, for Arrow: the one encoding in which rows of all implementations are compared.

It is the encoding of the golden tables' ``expected.json``:

    integers, floats        numbers (NaN and the infinities are the strings "NaN", "Infinity", "-Infinity")
    decimal                 plain text, as many digits after the point as the scale
    date, time              "2024-01-31", "23:59:59.123"
    timestamp               "2024-01-31T23:59:59.123456", nine digits above precision 6; local time zone types end in Z
    bytes                   hexadecimal
    list, row               list, object
    map, multiset           list of [key, value]

Independent of the engine on purpose (pyarrow is all it needs), because it judges the engine; the process of the
pypaimon oracle, which has another pyarrow, imports it as well. ``java/Values.java`` is its twin.
"""

import datetime
import json
import math
import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

Row = dict[str, Any]
Column = dict[str, Any]  # {"name": …, "type": Paimon type as in a schema file}

_UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_EPOCH_DAY = datetime.date(1970, 1, 1).toordinal()


# ---- Arrow to JSON -------------------------------------------------------------------------------------------------


def encode_rows(table: pa.Table | pa.RecordBatch) -> list[Row]:
    """The rows of a table, in order."""
    columns = [encode_values(table.column(i)) for i in range(table.num_columns)]
    names = table.schema.names
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def encode_values(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column, in order."""
    if isinstance(array, pa.ChunkedArray):
        return [value for chunk in array.chunks for value in encode_values(chunk)]
    kind = array.type
    if pa.types.is_dictionary(kind):
        return encode_values(array.dictionary_decode())
    if pa.types.is_timestamp(kind):
        suffix = "Z" if kind.tz is not None else ""
        per_second = _UNITS[kind.unit]
        ticks = array.cast(pa.int64()).to_pylist()
        return [None if v is None else _timestamp_text(v, per_second) + suffix for v in ticks]
    if pa.types.is_time(kind):
        storage = pa.int32() if pa.types.is_time32(kind) else pa.int64()
        millis_in = _UNITS[kind.unit]
        return [None if v is None else _time_text(v * 1000 // millis_in) for v in array.cast(storage).to_pylist()]
    if pa.types.is_map(kind):
        return _encode_lists(
            array,
            lambda a, b: list(
                map(
                    list,
                    zip(
                        encode_values(array.keys.slice(a, b - a)),
                        encode_values(array.items.slice(a, b - a)),
                        strict=True,
                    ),
                )
            ),
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _encode_lists(array, lambda a, b: encode_values(array.values.slice(a, b - a)))
    if pa.types.is_struct(kind):
        # flatten() lays the row's own nulls over its fields.
        fields = [encode_values(child) for child in array.flatten()]
        names = [kind.field(i).name for i in range(kind.num_fields)]
        rows = [dict(zip(names, values, strict=True)) for values in zip(*fields, strict=True)]
        return [row if valid else None for row, valid in zip(rows, array.is_valid().to_pylist(), strict=True)]
    return [None if value is None else _encode_atom(value) for value in array.to_pylist()]


def _encode_lists(array: pa.Array, between: Callable[[int, int], list[Any]]) -> list[Any]:
    offsets = array.offsets.to_pylist()
    valid = array.is_valid().to_pylist()
    return [between(offsets[i], offsets[i + 1]) if valid[i] else None for i in range(len(array))]


def _encode_atom(value: Any) -> Any:
    if isinstance(value, float):
        if math.isnan(value):
            return "NaN"
        return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bool | int | str):
        return value
    raise TypeError(f"no canonical form for {value!r}")


def _timestamp_text(value: int, per_second: int) -> str:
    seconds, fraction = divmod(value, per_second)
    days, second = divmod(seconds, 86_400)
    date = datetime.date.fromordinal(_EPOCH_DAY + days)
    digits = f"{fraction:09d}" if per_second == 10**9 else f"{fraction * (10**6 // per_second):06d}"
    return f"{date.isoformat()}T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.{digits}"


def _time_text(millis: int) -> str:
    return f"{millis // 3_600_000:02d}:{millis // 60_000 % 60:02d}:{millis // 1000 % 60:02d}.{millis % 1000:03d}"


# ---- JSON to Arrow -------------------------------------------------------------------------------------------------


def decode_rows(rows: Sequence[Row], schema: pa.Schema) -> pa.Table:
    """The Arrow table of the rows; a column that a row does not name is null there."""
    arrays = [decode_values([row.get(field.name) for row in rows], field.type) for field in schema]
    return pa.Table.from_arrays(arrays, schema=schema)


def decode_values(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The Arrow array of canonical values."""
    if pa.types.is_timestamp(kind):
        per_second = _UNITS[kind.unit]
        ticks = [None if v is None else _timestamp_ticks(v, per_second) for v in values]
        return pa.array(ticks, pa.int64()).cast(kind)
    if pa.types.is_time(kind):
        per_second = _UNITS[kind.unit]
        storage = pa.int32() if pa.types.is_time32(kind) else pa.int64()
        return pa.array([None if v is None else _time_ticks(v, per_second) for v in values], storage).cast(kind)
    if pa.types.is_map(kind):
        entries = [pair for value in values if value is not None for pair in value]
        keys = decode_values([pair[0] for pair in entries], kind.key_type)
        items = decode_values([pair[1] for pair in entries], kind.item_type)
        return pa.MapArray.from_arrays(_offsets(values), keys, items, type=kind)
    if pa.types.is_list(kind):
        elements = decode_values([v for value in values if value is not None for v in value], kind.value_type)
        return pa.ListArray.from_arrays(_offsets(values), elements, type=kind)
    if pa.types.is_struct(kind):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        children = [decode_values([None if v is None else v.get(f.name) for v in values], f.type) for f in fields]
        mask = pa.array([value is None for value in values], pa.bool_())
        return pa.StructArray.from_arrays(children, fields=fields, mask=mask)
    return pa.array([None if value is None else _decode_atom(value, kind) for value in values], kind)


def _offsets(values: Sequence[Any]) -> pa.Array:
    offsets: list[int | None] = []
    position = 0
    for value in values:
        offsets.append(None if value is None else position)
        position += 0 if value is None else len(value)
    return pa.array([*offsets, position], pa.int32())


def _decode_atom(value: Any, kind: pa.DataType) -> Any:
    if pa.types.is_floating(kind):
        return float(value)
    if pa.types.is_decimal(kind):
        return Decimal(value)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return bytes.fromhex(value)
    if pa.types.is_date(kind):
        return datetime.date.fromisoformat(value)
    return value


def _timestamp_ticks(text: str, per_second: int) -> int:
    whole, fraction = text.rstrip("Z").split(".")
    date, time = whole.split("T")
    hours, minutes, seconds = map(int, time.split(":"))
    days = datetime.date.fromisoformat(date).toordinal() - _EPOCH_DAY
    nanos = int(fraction.ljust(9, "0"))
    return ((days * 24 + hours) * 60 + minutes) * 60 * per_second + seconds * per_second + nanos * per_second // 10**9


def _time_ticks(text: str, per_second: int) -> int:
    whole, fraction = text.split(".")
    hours, minutes, seconds = map(int, whole.split(":"))
    return ((hours * 60 + minutes) * 60 + seconds) * per_second + int(fraction.ljust(9, "0")) * per_second // 10**9


# ---- Paimon types --------------------------------------------------------------------------------------------------


def arrow_schema(columns: Iterable[Column]) -> pa.Schema:
    """The Arrow schema of columns with Paimon types; what Arrow cannot say travels as b"tablestore.type"."""
    return pa.schema([arrow_field(column["name"], column["type"]) for column in columns])


def arrow_field(name: str, paimon_type: Any) -> pa.Field:
    """One field. Types that Arrow has no word for keep their SQL text in the field's metadata."""
    nullable = not _type_text(paimon_type).endswith(" NOT NULL")
    metadata = None
    if isinstance(paimon_type, str):
        metadata = {b"tablestore.type": paimon_type.removesuffix(" NOT NULL").encode()}
    return pa.field(name, arrow_type(paimon_type), nullable, metadata)


def _type_text(paimon_type: Any) -> str:
    return paimon_type if isinstance(paimon_type, str) else paimon_type["type"]


_SIMPLE = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BYTES": pa.binary(),
    "DATE": pa.date32(),
    "CHAR": pa.string(),
    "VARCHAR": pa.string(),
    "BINARY": pa.binary(),
    "VARBINARY": pa.binary(),
    "TIME": pa.time32("ms"),
    "VARIANT": pa.struct([pa.field("value", pa.binary(), False), pa.field("metadata", pa.binary(), False)]),
}


def arrow_type(paimon_type: Any) -> pa.DataType:
    """The Arrow type of a Paimon type, as a schema file writes it."""
    text = _type_text(paimon_type).removesuffix(" NOT NULL")
    if text == "ARRAY":
        return pa.list_(arrow_field("element", paimon_type["element"]))
    if text == "MAP":
        return pa.map_(arrow_field("key", paimon_type["key"]).with_nullable(False), arrow_field("value", paimon_type["value"]))
    if text == "MULTISET":
        return pa.map_(arrow_field("key", paimon_type["element"]).with_nullable(False), pa.field("value", pa.int32(), False))
    if text == "ROW":
        return pa.struct([arrow_field(field["name"], field["type"]) for field in paimon_type["fields"]])
    base, numbers = re.match(r"[A-Z]+", text).group(), [int(n) for n in re.findall(r"\d+", text)]  # type: ignore[union-attr]
    if base == "DECIMAL":
        return pa.decimal128(*numbers)
    if base == "TIMESTAMP":
        precision = numbers[0] if numbers else 6
        unit = "ms" if precision <= 3 else "us" if precision <= 6 else "ns"
        return pa.timestamp(unit, "UTC" if text.endswith("WITH LOCAL TIME ZONE") else None)
    return _SIMPLE[base]


# ---- comparing -----------------------------------------------------------------------------------------------------


def comparable(rows: Iterable[Row], columns: Iterable[Column] | None = None) -> list[str]:
    """The rows as a sorted list of texts: equal lists mean equal multisets of rows. Map entries have no order."""
    maps = {c["name"] for c in columns or () if not isinstance(c["type"], str)}
    return sorted(
        json.dumps({k: _sorted_pairs(v) if k in maps or columns is None else v for k, v in row.items()}, sort_keys=True)
        for row in rows
    )


def _sorted_pairs(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _sorted_pairs(v) for k, v in value.items()}
    if isinstance(value, list):
        inner = [_sorted_pairs(v) for v in value]
        # A list of two-element lists may be an array of arrays; sorting both sides alike keeps it comparable enough.
        if inner and all(isinstance(v, list) and len(v) == 2 for v in inner):
            return sorted(inner, key=json.dumps)
        return inner
    return value
