"""Data files in Avro: every type, nulls, damage."""

import datetime
import decimal
import io
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from tablestore.errors import FormatError, UnsupportedError
from tablestore.format.datafiles import avrofile
from tablestore.format.datafiles.avrofile import read_avro_rows
from tablestore.types.datatypes import Field
from tablestore.types.typestring import parse_type

NULL = "null"
MOST = 10**38 - 1
ENTRY = {"type": "record", "name": "entry", "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "int"}]}


def written(schema: list[tuple[str, Any]], rows: list[dict[str, Any]], codec: str = "null") -> bytes:
    fields = [{"name": name, "type": [NULL, kind]} for name, kind in schema]
    out = io.BytesIO()
    fastavro.writer(out, fastavro.parse_schema({"type": "record", "name": "record", "fields": fields}), rows, codec=codec)
    return out.getvalue()


def read(data: bytes, fields: list[tuple[str, Any]]) -> pa.Table:
    made = [Field(id=number, name=name, type=parse_type(kind)) for number, (name, kind) in enumerate(fields)]
    return pa.Table.from_batches(list(read_avro_rows(data, made, name="data-1.avro")))


def number(value: int) -> bytes:
    return value.to_bytes((value.bit_length() + 8) // 8, "big", signed=True)


CASES: list[tuple[Any, Any, list[Any], list[Any]]] = [
    ("BOOLEAN", "boolean", [True, False], [True, False]),
    ("TINYINT", "int", [-128, 127], [-128, 127]),
    ("SMALLINT", "int", [-32768, 7], [-32768, 7]),
    ("INT", "int", [-(2**31), 2**31 - 1], [-(2**31), 2**31 - 1]),
    ("BIGINT", "long", [-(2**63), 2**63 - 1], [-(2**63), 2**63 - 1]),
    ("FLOAT", "float", [1.5], [1.5]),
    ("DOUBLE", "double", [-0.1], [-0.1]),
    ("STRING", "string", ["", "é中"], ["", "é中"]),
    ("BYTES", "bytes", [b"", b"\0\xff"], [b"", b"\0\xff"]),
    ("DATE", "int", [-1], [datetime.date(1969, 12, 31)]),
    ("TIME(3)", "int", [86_399_001], [datetime.time(23, 59, 59, 1000)]),
    ("TIMESTAMP(3)", "long", [-877], [datetime.datetime(1969, 12, 31, 23, 59, 59, 123000)]),
    ("TIMESTAMP(6)", "long", [1], [datetime.datetime(1970, 1, 1, 0, 0, 0, 1)]),
    (
        "DECIMAL(10, 2)",
        "bytes",
        [number(12345), number(-1), b"", number(-12345)],
        [decimal.Decimal(text) for text in ("123.45", "-0.01", "0.00", "-123.45")],
    ),
    (
        "DECIMAL(38, 0)",
        "bytes",
        [number(10**38 - 1), number(-(10**38) + 1)],
        [decimal.Decimal(10**38 - 1), decimal.Decimal(1 - 10**38)],
    ),
    (
        {"type": "ARRAY", "element": "INT"},
        {"type": "array", "items": [NULL, "int"]},
        [[1, None], []],
        [[1, None], []],
    ),
    (
        {"type": "MAP", "key": "STRING NOT NULL", "value": "INT"},
        {"type": "map", "values": [NULL, "int"]},
        [{"a": 1, "b": None}, {}],
        [[("a", 1), ("b", None)], []],
    ),
    (
        {"type": "MULTISET", "element": "INT NOT NULL"},
        {
            "type": "array",
            "items": {
                "type": "record",
                "name": "entry",
                "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "int"}],
            },
        },
        [[{"key": 7, "value": 2}]],
        [[(7, 2)]],
    ),
    (
        {"type": "ROW", "fields": [{"id": 1, "name": "x", "type": "INT"}, {"id": 2, "name": "d", "type": "DECIMAL(4, 1)"}]},
        {"type": "record", "name": "r", "fields": [{"name": "x", "type": [NULL, "int"]}, {"name": "d", "type": [NULL, "bytes"]}]},
        [{"x": None, "d": number(-5)}],
        [{"x": None, "d": decimal.Decimal("-0.5")}],
    ),
]


@pytest.mark.parametrize(("kind", "avro", "stored", "expected"), CASES, ids=[str(case[0])[:40] for case in CASES])
def test_values_of_every_type_with_nulls_between(kind: Any, avro: Any, stored: list[Any], expected: list[Any]) -> None:
    values = [None, *(part for value in stored for part in (value, None))]
    data = written([("c", avro)], [{"c": value} for value in values])
    found = read(data, [("c", kind)]).column("c").to_pylist()
    assert found == [None, *(part for value in expected for part in (value, None))]


@pytest.mark.parametrize("codec", ["null", "deflate", "zstandard"])
def test_rows_come_in_batches_and_in_order(codec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avrofile, "_BATCH_ROWS", 500)
    out = io.BytesIO()
    schema = {
        "type": "record",
        "name": "record",
        "fields": [{"name": "a", "type": "long"}, {"name": "b", "type": [NULL, "string"]}],
    }
    rows = [{"a": i, "b": f"row {i}" if i % 3 else None} for i in range(3000)]
    fastavro.writer(out, fastavro.parse_schema(schema), rows, codec=codec, sync_interval=1000)
    fields = [Field(id=0, name="a", type=parse_type("BIGINT")), Field(id=1, name="b", type=parse_type("STRING"))]
    batches = list(read_avro_rows(out.getvalue(), fields, name="data-1.avro"))
    assert len(batches) > 3
    assert pa.Table.from_batches(batches).to_pylist() == rows


def test_a_file_of_another_table_or_with_other_values_is_refused() -> None:
    data = written([("a", "string")], [{"a": "x"}])
    with pytest.raises(FormatError, match=r"data-1\.avro: expected the columns b, found a"):
        read(data, [("b", "STRING")])
    with pytest.raises(FormatError, match=r"data-1\.avro: its values do not fit"):
        read(data, [("a", "INT")])
    with pytest.raises(FormatError, match=r"data-1\.avro"):
        read(data[:-3], [("a", "STRING")])
    with pytest.raises(FormatError, match="do not fit"):
        read(written([("a", "bytes")], [{"a": b"\1" * 17}]), [("a", "DECIMAL(38, 0)")])


def test_nanoseconds_are_refused_by_name() -> None:
    with pytest.raises(UnsupportedError, match=r"TIMESTAMP\(9\)"):
        read(written([("a", "long")], [{"a": 1}]), [("a", "TIMESTAMP(9)")])


def test_a_file_may_have_any_number_of_small_rows() -> None:
    data = written([("a", "int")], [{"a": 1}] * 150_000, "deflate")
    assert len(data) < 150_000, "less than a byte a row"
    assert read(data, [("a", "INT")]).num_rows == 150_000


@pytest.mark.parametrize(("size", "message"), [(10, "expected 10 bytes, found 11; the file was cut or replaced"), (None, "size")])
def test_no_more_of_a_file_is_read_than_it_may_have(size: int | None, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(avrofile, "LIMITS", replace(avrofile.LIMITS, max_bytes=100))
    source = io.BytesIO(bytes(1000))
    read: list[int] = []
    monkeypatch.setattr(avrofile, "bytes", lambda data: read.append(len(data)) or data, raising=False)
    with pytest.raises(FormatError, match=message):
        avrofile.AvroFileReader(source, (), file_name="data-1.avro", size=size)
    assert read == [11 if size else 101]
