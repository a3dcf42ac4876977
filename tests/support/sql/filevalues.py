"""Rows that put every type and every end of it into a file of some format, and what is another in rows that come back."""

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.typestring import type_to_sql

FORMATS = ("parquet", "csv", "json", "orc", "avro")

_TEXTS = ["", 'a,"b"\n\\c\' é\t\r\U0001f600', None, " lead trail "]
_NESTED: dict[str, tuple[pa.DataType, list[Any]]] = {
    "ints": (pa.list_(pa.field("element", pa.int32())), [[], [1, None, 3], None, [4]]),
    "floats": (pa.list_(pa.field("element", pa.float64())), [[], [1.5, None, math.nan], None, [-0.0]]),
    "entries": (pa.map_(pa.string(), pa.int64()), [[], [("a", 1), ("", None)], None, [("x y", 2)]]),
    "times": (
        pa.map_(pa.string(), pa.struct([("at", pa.timestamp("us")), ("day", pa.date32())])),
        [
            [("a", {"at": datetime(1, 1, 1, 0, 0, 0, 1), "day": date(1, 1, 1)}), ("b", None)],
            [],
            None,
            [("c", {"at": None, "day": date(1582, 10, 15)})],
        ],
    ),
    "pair": (
        pa.struct(
            [("x", pa.int32()), ("y", pa.string()), ("d", pa.decimal128(20, 2)), ("b", pa.binary()), ("at", pa.timestamp("us"))]
        ),
        [
            {"x": None, "y": None, "d": None, "b": None, "at": None},
            {"x": 1, "y": "", "d": Decimal("123456789012345678.91"), "b": b"\xff\x00", "at": datetime(2000, 2, 29, 1, 2, 3, 4)},
            None,
            {"x": 2, "y": "q", "d": Decimal("-1.00"), "b": b"", "at": None},
        ],
    ),
}


def values_for(file_format: str) -> tuple[pa.Table, dict[str, str]]:
    """Rows with all columns that a format holds, and the options by which it tells them apart."""
    # Arrow writes and reads ORC's moments as nanoseconds, those before 1970 wrong.
    first, last = (1970, 2261) if file_format == "orc" else (1, 9999)
    columns: dict[str, tuple[pa.DataType, list[Any]]] = {
        "id": (pa.int64(), [1, 2, 3, 4]),
        "flag": (pa.bool_(), [True, False, None, True]),
        **{
            f"i{bits}": (getattr(pa, f"int{bits}")(), [-(2 ** (bits - 1)), 2 ** (bits - 1) - 1, None, 0])
            for bits in (8, 16, 32, 64)
        },
        "f4": (pa.float32(), [math.nan, -0.0, None, math.inf]),
        "f8": (pa.float64(), [math.nan, -0.0, None, -math.inf]),
        "ends4": (pa.float32(), [3.4028234663852886e38, 1e-45, None, 0.1]),
        "ends8": (pa.float64(), [1.7976931348623157e308, 5e-324, None, 0.1]),
        "wide": (
            pa.decimal128(38, 18),
            [Decimal("12345678901234567890.123456789012345678"), Decimal("-0.000000000000000001"), None, Decimal(0)],
        ),
        "whole": (pa.decimal128(38, 0), [Decimal(10**38 - 1), Decimal(-(10**38) + 1), None, Decimal(0)]),
        "cents": (pa.decimal128(5, 2), [Decimal("999.99"), Decimal("-0.01"), None, Decimal("1.50")]),
        "text": (pa.string(), _TEXTS),
        "words": (pa.string(), ["null", "NaN", None, "\\N"]),
        "bytes": (pa.binary(), [b"", b'\x00\xff\xfe,"\n', None, b"abc"]),
        "day": (pa.date32(), [date(1, 1, 1), date(9999, 12, 31), None, date(1970, 1, 1)]),
        "clock": (
            pa.timestamp("us"),
            [datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999), None, datetime(2024, 7, 1, 12, 30, 0, 123456)],
        ),
        "moment": (
            pa.timestamp("us", "UTC"),
            [
                datetime(first, 1, 2, tzinfo=UTC),
                datetime(last, 12, 30, 23, 59, 59, 999999, tzinfo=UTC),
                None,
                datetime(2024, 11, 3, 12, 30, 0, 123456, tzinfo=UTC),
            ],
        ),
        "time": (pa.time32("ms"), [0, 86_399_999, None, 45_000_123]),
        **({} if file_format == "csv" else _NESTED),
        **({} if file_format == "avro" else {'Odd né."x%': (pa.string(), ["x", "y", None, ""])}),
    }
    if file_format == "csv":
        del columns["bytes"]
    rows = pa.table({name: pa.array(values, kind) for name, (kind, values) in columns.items()})
    # Without it no reader of CSV tells the empty text from NULL.
    return rows, {"nullValue": "NIL"} if file_format == "csv" else {}


def columns_of(rows: pa.Table) -> str:
    """The columns as a CREATE TABLE declares them."""
    fields, _ = fields_from_arrow(rows.schema, where="the rows")
    return ", ".join(f"`{field.name}` {type_to_sql(field.type)}" for field in fields)


def differences(expected: pa.Table, actual: pa.Table) -> list[str]:
    """What is another in the columns of rows, by their ``id``; maps have no order."""
    if expected.schema.names != actual.schema.names:
        return [f"columns {actual.schema.names}"]
    expected, actual = expected.sort_by("id"), actual.sort_by("id")
    return [
        f"{name}: {left.type} {left.to_pylist()} -> {right.type} {right.to_pylist()}"
        for name, left, right in zip(expected.schema.names, expected.columns, actual.columns, strict=True)
        if left.type != right.type or _unordered(left) != _unordered(right)
    ]


def _unordered(column: pa.ChunkedArray) -> str:
    values = column.to_pylist()
    # Texts tell -0.0 from 0.0, and have NaN as equal.
    return repr([sorted(value, key=str) if pa.types.is_map(column.type) and value is not None else value for value in values])
