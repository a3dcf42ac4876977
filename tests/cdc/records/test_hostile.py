"""Whatever a record holds is a fault of that record alone: nothing of it ends the ingest, or takes memory or time without bound."""

import json
from collections.abc import Sequence
from io import BytesIO
from typing import Any

import pyarrow as pa
import pytest
from fastavro import parse_schema, schemaless_writer
from hypothesis import given, settings
from hypothesis import strategies as st

from tablestore.cdc.records.avroobjects import parse_avro_schema
from tablestore.cdc.records.evolving import MOST_COLUMNS
from tablestore.cdc.records.recordformats import open_decoder
from tablestore.cdc.records.schemaenvelope import by_schema
from tablestore.cdc.records.target import Decoded, Target
from tablestore.table.write.retractions import RetractionNeeds
from tablestore.types.datatypes import Field
from tablestore.types.typestring import parse_type

CONNECT = "org.apache.kafka.connect.data.Decimal"
COLUMNS = {
    "id": "BIGINT NOT NULL",
    "d": "DECIMAL(38, 2)",
    "s": "STRING",
    "n": "INT",
    "f": "DOUBLE",
    "b": "BYTES",
    "t": "TIMESTAMP(6)",
}


def target(columns: dict[str, str] = COLUMNS, *, evolves: bool = False, whole: bool = False) -> Target:
    fields = tuple(Field(id=number, name=name, type=parse_type(text)) for number, (name, text) in enumerate(columns.items()))
    return Target(fields=fields, key=("id",), evolves=evolves, needs=RetractionNeeds(whole=whole))


def enveloped(fields: Any, payload: bytes) -> bytes:
    return b'{"schema":%b,"payload":%b}' % (json.dumps({"type": "struct", "fields": fields}).encode(), payload)


def decimal(parameters: Any, name: str = "d") -> dict[str, Any]:
    return {"type": "bytes", "field": name, "name": CONNECT, "parameters": parameters}


def decode(form: str, goal: Target, values: Sequence[bytes]) -> Decoded:
    return open_decoder(form, goal).decode([None] * len(values), list(values))


def texts_of(rows: pa.Table) -> list[str]:
    """Rows that can be compared, also with NaN and dates beyond those of Python."""
    plain = [column.cast(pa.int64()) if pa.types.is_temporal(column.type) else column for column in rows.columns]
    return [repr(row) for row in pa.table(plain, names=rows.schema.names).to_pylist()]


WRONG_SCALES = ["2000000000", "--1", "-1", "²", "1²", "\u0661", "", "-", "77", "9" * 5000, "1e1", "x", None, [], {}, True, 2.5, -3]
WRONG_PARAMETERS = [{"scale": one} for one in WRONG_SCALES]


@pytest.mark.parametrize("name", ["d", "new"])
@pytest.mark.parametrize("parameters", WRONG_PARAMETERS, ids=lambda one: str(one)[:20])
def test_a_scale_that_is_none_is_a_fault_of_the_records_with_a_text_there(parameters: Any, name: str) -> None:
    texts = [b'{"id":1,"%b":"Bg=="}' % name.encode(), b'{"id":2,"%b":null}' % name.encode(), b'{"id":3}']
    found = decode("json", target(evolves=True), [enveloped([decimal(parameters, name)], text) for text in texts])
    assert list(found.faults) == [0] and "a scale of 0 to 76 digits" in found.faults[0]
    assert found.rows.column("id").to_pylist() == [2, 3]
    assert not found.found


@pytest.mark.deep_after(98)
@pytest.mark.parametrize("scale", range(77))
@pytest.mark.parametrize("kind", ["DECIMAL(38, 38)", "DECIMAL(38, 0)", "DECIMAL(20, 7)"])
def test_every_scale_of_a_decimal_is_read_or_refused(kind: str, scale: int) -> None:
    goal = target({"id": "BIGINT NOT NULL", "d": kind})
    values = [enveloped([decimal({"scale": str(scale)})], b'{"id":1,"d":"%b"}' % text) for text in (b"AA==", b"f" * 20 + b"Q==")]
    found = decode("json", goal, values)
    found.rows.validate(full=True)
    assert 0 not in found.faults


@pytest.mark.parametrize("parameters", [[], [1], "x", 5, None, [{"scale": 1}]], ids=str)
def test_parameters_that_are_no_object_say_nothing(parameters: Any) -> None:
    for name in ("d", "new"):
        value = enveloped([decimal(parameters, name)], b'{"id":1,"%b":"Bg=="}' % name.encode())
        assert not decode("json", target(evolves=True), [value]).faults


def nested(levels: int, opening: bytes = b"[", closing: bytes = b"]", inner: bytes = b"") -> bytes:
    return opening * levels + inner + closing * levels


DEEP = [nested(101), nested(900), nested(5_000), nested(100_000), nested(100_000, b'{"a":', b"}", b"1")]


@pytest.mark.parametrize("name", ["s", "new"])
@pytest.mark.parametrize("evolves", [False, True])
@pytest.mark.parametrize("value", DEEP, ids=len)
def test_what_is_nested_deeply_is_a_fault(value: bytes, evolves: bool, name: str) -> None:
    texts = [b'{"id":1}', b'{"id":2,"%b":%b}' % (name.encode(), value), b'{"id":3}']
    found = decode("json", target(evolves=evolves), texts)
    assert list(found.faults) == [1] and found.rows.column("id").to_pylist() == [1, 3] and not found.found


def test_brackets_in_texts_and_beside_each_other_are_not_deep() -> None:
    texts = [b'{"id":1,"s":"%b"}' % (b'\\"[' * 300), b'{"id":2,"s":[%b1]}' % (b"[],{}," * 300)]
    assert not decode("json", target(evolves=True), texts).faults


NUMBERS = ["1e" + "9" * 30, "-1e" + "9" * 30, "1e-" + "9" * 30, "9" * 5_000, "1." + "0" * 5_000 + "1", "0e" + "9" * 30]


@pytest.mark.parametrize("number", NUMBERS, ids=lambda one: one[:8] + str(len(one)))
def test_numbers_beyond_all_columns_are_faults_of_the_columns_that_they_are_for(number: str) -> None:
    written = number.encode()
    assert decode("json", target(), [b'{"id":1,"s":%b}' % written]).rows.column("s").to_pylist() == [number]
    for neighbour in (b'{"id":2}', b"no JSON"):
        found = decode("json", target(), [b'{"id":1,"other":%b}' % written, neighbour])
        assert 0 not in found.faults
    if not number.startswith("0"):
        assert list(decode("json", target(), [b'{"id":1,"n":%b}' % written, b'{"id":2}']).faults) == [0]
    if number.strip("-").startswith(("1e9", "9")):
        assert list(decode("json", target(), [b'{"id":1,"f":%b}' % written, b'{"id":2}']).faults) == [0]


def test_a_row_before_is_looked_at_whatever_lies_beside_it() -> None:
    goal = target(whole=True)
    rest = b'"op":"u","after":{"id":1},"source":{"x":%b}}' % (b"9" * 5_000)
    found = decode("debezium-json", goal, [b'{"before":{"id":1},' + rest, b'{"before":{"id":1,"z":5},' + rest])
    assert not found.faults


def test_a_key_is_taken_as_it_is_written() -> None:
    goal = target({"id": "STRING NOT NULL"})
    keys = [b"1.50", b"12345678901234567890.123456789", b"1e5", b"[[", b'"x"', b"x", b"9" * 5_000, b"\xff"]
    found = open_decoder("json", goal).decode(keys, [None] * len(keys))
    assert list(found.faults) == [7]
    expected = ["1.50", "12345678901234567890.123456789", "1e5", "[[", "x", "x", "9" * 5_000]
    assert found.rows.column("id").to_pylist() == expected


@pytest.mark.deep
def test_many_names_and_many_schemas_are_read_in_proportion_to_their_bytes() -> None:
    values = [json.dumps({"id": row, **{f"c{row}_{name}": 1 for name in range(20)}}).encode() for row in range(2_000)]
    before = pa.default_memory_pool().max_memory()
    found = decode("json", target(evolves=True), values)
    # A column of all rows for each name would take 640 MB.
    assert pa.default_memory_pool().max_memory() - before < 64 * 2**20
    assert found.rows.num_rows == len(values) and len(found.found) == MOST_COLUMNS and not found.faults
    fields = [[{"type": "int64", "field": "id", "version": row}, decimal({"scale": str(row % 3)})] for row in range(2_000)]
    groups = by_schema([enveloped(one, b'{"id":1}') for one in fields])
    assert [len(group.places) for group in groups] == [667, 667, 666]


def varint(number: int) -> bytes:
    zigzag, written = (number << 1) ^ (number >> 63), b""
    while zigzag > 0x7F:
        written, zigzag = written + bytes([zigzag & 0x7F | 0x80]), zigzag >> 7
    return written + bytes([zigzag])


NOTHING: Any = {"type": "record", "name": "nothing", "fields": [{"name": "x", "type": "null"}]}
EMPTY: list[Any] = ["null", NOTHING, {"type": "fixed", "name": "none", "size": 0}, {"type": "record", "name": "bare", "fields": []}]


def avro_of(kind: Any) -> Any:
    return {"type": "record", "name": "row", "fields": [{"name": "id", "type": "long"}, {"name": "s", "type": kind}]}


def written(schema: Any, row: dict[str, Any]) -> bytes:
    out = BytesIO()
    schemaless_writer(out, parse_schema(schema), row)
    return out.getvalue()


@pytest.mark.parametrize("items", EMPTY, ids=lambda one: one if isinstance(one, str) else one["name"])
@pytest.mark.parametrize("count", [2**31, -(2**40), 2**62, 65_537])
def test_values_of_avro_without_bytes_are_counted_before_they_are_read(items: Any, count: int) -> None:
    schema = avro_of(["null", {"type": "array", "items": items}])
    head = varint(1) + varint(1)
    bad = head + varint(count) + (varint(0) if count < 0 else b"") + varint(0)
    few = written(schema, {"id": 2, "s": None}), head + varint(3) + varint(0)
    decoder = open_decoder("avro", target({"id": "BIGINT NOT NULL"}), parse_avro_schema(json.dumps(schema)))
    found = decoder.decode([None] * 4, [few[0], bad, few[1], bad])
    assert list(found.faults) == [1, 3] and all("values without bytes" in reason for reason in found.faults.values())
    assert found.rows.num_rows == 2


def test_a_record_of_avro_within_itself_has_as_many_levels_as_one_of_json() -> None:
    decoder = open_decoder("avro", target({"id": "BIGINT NOT NULL"}), parse_avro_schema(json.dumps(avro_of(["null", "row"]))))

    def row(levels: int) -> bytes:
        return (varint(1) + varint(1)) * levels + varint(1) + varint(0)

    found = decoder.decode([None] * 5, [row(0), row(50), row(150), row(50_000), row(3)])
    assert list(found.faults) == [2, 3] and found.rows.num_rows == 3


@pytest.mark.parametrize("scale", [-1, 77, 2 * 10**9, "--1", "²", [1], {}], ids=str)
def test_a_scale_of_avro_that_is_none_is_a_fault_of_the_records_with_a_value(scale: Any) -> None:
    schema = avro_of(["null", {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": scale}])
    values = [varint(1) + varint(1) + varint(1) + b"\6", varint(2) + varint(0)]
    for columns in ({"id": "BIGINT NOT NULL", "s": "DECIMAL(10, 2)"}, {"id": "BIGINT NOT NULL"}):
        decoder = open_decoder("avro", target(columns, evolves=True), parse_avro_schema(json.dumps(schema)))
        found = decoder.decode([None] * 2, values)
        assert list(found.faults) == [0] and "a scale of 0 to 76 digits" in found.faults[0]
        assert found.rows.column("id").to_pylist() == [2] and not found.found


VALUES = [
    b"null", b"true", b"1", b"1.5", b'"x"', b'"Bg=="', b'"AA=A"', b'"2.5"', b'"\\ud800"', b'"\\u0000"', b"[]", b"{}", b"[[1]]",
    b"NaN", b"-Infinity", b"1e400", b'"2024-01-31T00:00:00Z"', b"nul", b"", b'"\xff"', *DEEP[:3],
    *(one.encode() for one in NUMBERS),
]  # fmt: skip
NAMES = [*COLUMNS, "new", "ID", "", "_row_kind", "_KEY_id", "\\ud800", "\\u0000", "a.b", 'a\\"b', "x" * 300]
SHAPES: list[Any] = [None, 5, "x", {}, [], True, ["int32"], {"a": []}]


@st.composite
def hostile(draw: st.DrawFn) -> bytes:
    """A row: good or not, in a schema or not. Most are nearly good."""
    fields = draw(st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)), max_size=3))
    parts = [b'"id":7', *(b'"%b":%b' % (name.encode(), value) for name, value in fields)]
    row = draw(st.sampled_from([b"{%b}" % b",".join(parts)] * 8 + VALUES))
    if draw(st.booleans()):
        return row
    parameters = draw(st.sampled_from([*WRONG_PARAMETERS, *SHAPES, {"scale": "2"}]))
    name, kind = draw(st.sampled_from([CONNECT, *SHAPES])), draw(st.sampled_from(["bytes", "int32", *SHAPES]))
    described = [{"field": one, "name": name, "type": kind, "parameters": parameters} for one in ("d", "new")]
    return enveloped(draw(st.sampled_from([described, [*SHAPES, *described], *SHAPES])), row)


@pytest.mark.deep
@pytest.mark.parametrize("evolves", [False, True])
@pytest.mark.parametrize("form", ["json", "debezium-json"])
@settings(max_examples=150, deadline=None)
@given(records=st.lists(hostile(), min_size=1, max_size=6))
def test_a_record_becomes_the_same_alone_and_among_any_others(form: str, evolves: bool, records: list[bytes]) -> None:
    if form == "debezium-json":
        records = [b'{"op":"c","before":null,"after":%b}' % one if not one.startswith(b'{"schema"') else one for one in records]
    together = decode(form, target(evolves=evolves), records)
    together.rows.validate(full=True)
    alone = [decode(form, target(evolves=evolves), [one]) for one in records]
    assert sorted(together.faults) == [place for place, one in enumerate(alone) if one.faults]
    assert all(reason.strip() and len(reason.encode()) < 5_000 for reason in together.faults.values())
    assert texts_of(together.rows) == [row for one in alone for row in texts_of(one.rows)]
