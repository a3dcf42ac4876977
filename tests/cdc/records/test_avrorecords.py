"""Records of Avro become rows if they are of the schema that is given, and are named if they are not."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from io import BytesIO
from typing import Any

import pytest
from fastavro import parse_schema, schemaless_writer

import tablestore as ts
from tablestore.cdc.records.avroobjects import parse_avro_schema
from tablestore.cdc.records.recordformats import open_decoder
from tablestore.cdc.records.target import Target
from tablestore.types.datatypes import Field
from tablestore.types.typestring import parse_type, type_to_sql

SCHEMA = {
    "type": "record",
    "name": "orders",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": ["null", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "kind", "type": {"type": "enum", "name": "kinds", "symbols": ["a", "b"]}},
        {"name": "raw", "type": "bytes"},
        {"name": "x", "type": "double"},
        {"name": "more", "type": {"type": "array", "items": "int"}},
    ],
}
TYPES = {
    "id": "BIGINT NOT NULL",
    "price": "DECIMAL(10, 2)",
    "day": "DATE",
    "at": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "kind": "STRING",
    "raw": "BYTES",
    "x": "DOUBLE",
    "more": "STRING",
}
TARGET = Target(
    fields=tuple(Field(id=number, name=name, type=parse_type(text)) for number, (name, text) in enumerate(TYPES.items())),
    key=("id",),
)
ROW: dict[str, Any] = {
    "id": 7,
    "price": Decimal("-1.25"),
    "day": date(2024, 1, 31),
    "at": datetime(2024, 1, 31, 12, 30, 0, 5, UTC),
    "kind": "b",
    "raw": b"\x00\xff",
    "x": float("-inf"),
    "more": [1, 2],
}


def written(row: dict[str, Any], schema: dict[str, Any] = SCHEMA) -> bytes:
    out = BytesIO()
    schemaless_writer(out, parse_schema(schema), row)
    return out.getvalue()


@pytest.mark.parametrize("number", [None, 300])
def test_records_of_the_schema_become_rows(number: int | None) -> None:
    head = b"" if number is None else b"\x00" + number.to_bytes(4, "big")
    decoder = open_decoder("avro", TARGET, parse_avro_schema(json.dumps(SCHEMA), number))
    good, null = head + written(ROW), head + written({**ROW, "id": 8, "price": None})
    bad = [b"", good[:-1], good + b"\x00", b"\x01" + good if number is None else b"\x00\x00\x00\x00\x07" + written(ROW)]
    values = [good, *bad, null, None]
    found = decoder.decode([None] * 6 + [b'{"id":7}'], values)
    assert sorted(found.faults) == [1, 2, 3, 4]
    first, second, gone = found.rows.to_pylist()
    assert first == {**ROW, "more": "[1,2]"} and second["price"] is None and gone["id"] == 7
    assert found.kinds is not None and found.kinds.tolist() == [0, 0, 3]


@pytest.mark.parametrize("text", ["", "{}", '"long"', "[]", '{"type":"record"}', '{"type":"array","items":"int"}'])
def test_other_schemas_are_refused(text: str) -> None:
    with pytest.raises(ts.InvalidInputError, match="schema"):
        parse_avro_schema(text)


def test_a_table_that_lacks_columns_hears_of_them() -> None:
    short = Target(fields=TARGET.fields[:1], key=("id",), evolves=True)
    found = open_decoder("avro", short, parse_avro_schema(json.dumps(SCHEMA))).decode([None], [written(ROW)])
    assert found.rows.schema.names == ["id"] and set(found.found) == {*TYPES} - {"id"}
    told = {name: type_to_sql(next(iter(kinds))) for name, kinds in found.found.items()}
    assert (told["price"], told["day"], told["at"], told["raw"]) == ("DECIMAL(10, 2)", "DATE", "TIMESTAMP(6)", "BYTES")


@pytest.mark.parametrize("reference", ["Value", "shop.orders.Value"])
def test_changes_of_debezium_have_rows_below_before_and_after_and_keys_of_a_schema_of_their_own(reference: str) -> None:
    value = {"type": "record", "name": "Value", "fields": SCHEMA["fields"]}
    fields = [
        {"name": "before", "type": ["null", value]},
        {"name": "after", "type": ["null", reference]},
        {"name": "source", "type": {"type": "record", "name": "Source", "fields": [{"name": "lsn", "type": "long"}]}},
        {"name": "op", "type": "string"},
    ]
    envelope = {"type": "record", "name": "Envelope", "namespace": "shop.orders", "fields": fields}
    key = {"type": "record", "name": "Key", "fields": SCHEMA["fields"][:1]}
    schemas = parse_avro_schema(json.dumps(envelope), 5), parse_avro_schema(json.dumps(key), 4)

    def record(op: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> bytes:
        return b"\0\0\0\0\5" + written({"before": before, "after": after, "source": {"lsn": 1}, "op": op}, envelope)

    moved = {**ROW, "id": 8}
    values = [record("c", None, ROW), record("u", ROW, moved), record("d", moved, None), None, record("x", None, ROW), b"{}"]
    keys = [None] * 3 + [b"\0\0\0\0\4" + written({"id": 9}, key), None, None]
    found = open_decoder("debezium-avro", TARGET, *schemas).decode(keys, values)
    assert sorted(found.faults) == [4, 5] and found.kinds is not None
    said = list(zip(found.kinds.tolist(), (row["id"] for row in found.rows.to_pylist()), strict=True))
    assert said == [(0, 7), (3, 7), (2, 8), (3, 8), (3, 9)]
    assert found.rows.to_pylist()[0] == {**ROW, "more": "[1,2]"}
    short = Target(fields=TARGET.fields[:1], key=("id",), evolves=True)
    more = open_decoder("debezium-avro", short, *schemas).decode([None], values[:1]).found
    assert {name: type_to_sql(next(iter(kinds))) for name, kinds in more.items()}["price"] == "DECIMAL(10, 2)"
