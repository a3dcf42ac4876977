"""Records of JSON become rows: whatever databases and their connectors write, and what is at fault is named alone."""

import itertools
import json
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tablestore.cdc.records.recordformats import DebeziumChanges, PlainRows
from tablestore.cdc.records.target import Decoded, Target
from tablestore.table.write.retractions import RetractionNeeds
from tablestore.types.arrowtypes import from_arrow_type
from tablestore.types.datatypes import Field
from tablestore.types.rowkind import symbols_from_kinds
from tablestore.types.typestring import parse_type

Record = tuple[bytes | None, bytes | None]


def target(key: tuple[str, ...] = ("id",), *, whole_before: bool = False, **columns: str | pa.DataType) -> Target:
    types = {"id": "BIGINT NOT NULL", **columns}
    ids = itertools.count(100)
    fields = tuple(
        Field(
            id=number,
            name=name,
            type=parse_type(given) if isinstance(given, str) else from_arrow_type(given, True, lambda: next(ids)),
        )
        for number, (name, given) in enumerate(types.items())
    )
    return Target(fields=fields, key=key, needs=RetractionNeeds(whole=whole_before))


def plain(goal: Target, *rows: Any) -> Decoded:
    values = [row if isinstance(row, bytes) or row is None else json.dumps(row).encode() for row in rows]
    return PlainRows(goal).decode([None] * len(values), values)


def debezium(goal: Target, *records: Record) -> Decoded:
    return DebeziumChanges(goal).decode([key for key, _ in records], [value for _, value in records])


def changes(found: Decoded) -> list[tuple[Any, ...]]:
    kinds = ["+I"] * found.rows.num_rows if found.kinds is None else symbols_from_kinds(pa.array(found.kinds)).to_pylist()
    return [(kind, *row.values()) for kind, row in zip(kinds, found.rows.to_pylist(), strict=True)]


def message(op: str, before: Any = None, after: Any = None, key: Any = None) -> Record:
    value = {"before": before, "after": after, "op": op, "source": {"lsn": 1}}
    return None if key is None else json.dumps(key).encode(), json.dumps(value).encode()


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        ("TINYINT", ["127", True], [127, 1]),
        ("BIGINT", [-(2**63), "12", 3.0], [-(2**63), 12, 3]),
        ("FLOAT", [0.1, "-Infinity"], [pa.scalar(0.1, pa.float32()).as_py(), float("-inf")]),
        ("BIGINT", [True, False, 2], [1, 0, 2]),
        ("DOUBLE", [-0.0, 2**60, "1e-3"], [-0.0, float(2**60), 0.001]),
        ("DECIMAL(38, 2)", ["1.5", 2, 123456789012345678.25], [Decimal("1.50"), Decimal("2.00"), Decimal("123456789012345680.00")]),
        ("DATE", ["9999-12-31", 0, -1], ["9999-12-31", "1970-01-01", "1969-12-31"]),
        ("TIME(3)", [3_600_000, "12:30:00.5"], ["01:00:00", "12:30:00.500000"]),
        ("TIMESTAMP(3)", [1, "2024-01-31T12:30:00Z"], ["1970-01-01 00:00:00.001000", "2024-01-31 12:30:00"]),
        ("TIMESTAMP(6)", [1], ["1970-01-01 00:00:00.000001"]),
        (
            "TIMESTAMP(3) WITH LOCAL TIME ZONE",
            [0, "2018-06-20T13:37:03+02:00"],
            ["1970-01-01 00:00:00+00:00", "2018-06-20 11:37:03+00:00"],
        ),
        ("BOOLEAN", [1, "false", True], [True, False, True]),
        ("STRING", [12, True, {"a": [1.5, None]}, "ü\u0000"], ["12", "true", '{"a":[1.5,null]}', "ü\u0000"]),
        ("BYTES", ["AP8="], [b"\x00\xff"]),
        (pa.list_(pa.int32()), [[1, None], []], [[1, None], []]),
        (pa.map_(pa.string(), pa.int32()), [{"a": 1}], [[("a", 1)]]),
        (pa.struct([("a", pa.int32()), ("b", pa.string())]), [{"a": 1, "x": 2}], [{"a": 1, "b": None}]),
    ],
)
def test_values_come_in_many_ways_alone_and_mixed(kind: str | pa.DataType, given: list[Any], expected: list[Any]) -> None:
    goal = target(v=kind)

    def shown(value: Any) -> Any:
        return str(value) if hasattr(value, "isoformat") else value

    rows = [{"id": number, "v": value} for number, value in enumerate([*given, None])]
    together = plain(goal, *rows)
    assert not together.faults
    column = together.rows.column("v")
    assert [shown(value) for value in column.to_pylist()] == [*expected, None]
    for row, value in zip(rows, expected, strict=False):
        assert [shown(one) for one in plain(goal, row).rows.column("v").to_pylist()] == [value]


def test_a_value_that_does_not_fit_is_named_and_its_neighbours_stay() -> None:
    goal = target(a="TINYINT", b="VARCHAR(3)", c="DECIMAL(4, 2)", d="DATE", e="INT NOT NULL", f=pa.struct([("x", pa.int32())]))
    good = {"id": 1, "a": 1, "b": "abc", "c": "1.25", "d": "2024-01-01", "e": 1, "f": {"x": 1}}
    wrong = {"a": 128, "b": "abcd", "c": "123.4", "d": "yesterday", "e": None, "f": {"x": "y"}, "id": None}
    rows: list[Any] = [good]
    for name, value in wrong.items():
        rows += [{**good, name: value}, good]
    rows += [
        b"",
        b"nonsense",
        b"[1]",
        b'{"id":1',
        b'"\xff"',
        b"null",
        b"{}{}",
        b'{"id":' + b"9" * 30 + b',"e":1}',
        b"[" * 5000,
        good,
    ]
    found = plain(goal, *rows)
    assert sorted(found.faults) == [1, 3, 5, 7, 9, 11, 13, *range(15, 24)]
    assert found.rows.num_rows == len(rows) - len(found.faults)
    for place, name in zip((1, 3, 5, 7, 9, 11, 13), wrong, strict=True):
        assert repr(name) in found.faults[place]


def test_texts_that_would_fill_up_for_each_other_are_taken_apart() -> None:
    """Two objects in one text and none in the next are as many as there are texts."""
    found = plain(target(), b'{"id":1}{"id":2}', b" ", b'{"id":3}', b' {"id":4}\n')
    assert sorted(found.faults) == [0, 1] and changes(found) == [("+I", 3), ("+I", 4)]
    found = plain(target(), b"{}null{}", b'{"id":3}')
    assert sorted(found.faults) == [0]


def test_a_reader_takes_the_fast_way_again_once_it_knows_how_values_come() -> None:
    reader = PlainRows(target(at="TIMESTAMP(3)"))
    for _ in range(2):
        found = reader.decode([None, None], [b'{"id":1,"at":5}', b'{"id":2,"at":null}'])
        assert found.rows.column("at").cast(pa.int64()).to_pylist() == [5, None] and not found.faults


def test_changemessages_changes_become_rows_in_their_order() -> None:
    goal = target(v="STRING NOT NULL")
    found = debezium(
        goal,
        message("r", after={"id": 1, "v": "a"}),
        message("u", {"id": 1, "v": "a"}, {"id": 1, "v": "b"}),
        message("u", {"id": 1, "v": "b"}, {"id": 2, "v": "b"}),
        message("u", None, {"id": 3, "v": "c"}),
        message("d", {"id": 3, "v": None}),
        message("d", key={"id": 4, "more": 1}),
        (b'{"id":5}', None),
        (b"6", None),
    )
    assert not found.faults
    assert changes(found) == [
        ("+I", 1, "a"),
        ("+U", 1, "b"),
        ("-D", 1, ""),
        ("+U", 2, "b"),
        ("+U", 3, "c"),
        ("-D", 3, ""),
        ("-D", 4, ""),
        ("-D", 5, ""),
        ("-D", 6, ""),
    ]
    whole = debezium(
        target(whole_before=True, v="INT"), message("u", {"id": 1, "v": 3}, {"id": 1, "v": 5}), message("d", {"id": 1, "v": 5})
    )
    assert changes(whole) == [("-U", 1, 3), ("+U", 1, 5), ("-D", 1, 5)]


def test_changemessages_records_that_say_nothing_are_named() -> None:
    found = debezium(
        target(v="STRING"),
        message("t"),
        message("c"),
        message("u", {"id": 1}),
        message("d"),
        (None, None),
        (b"\xff", None),
        (None, b'{"after":7,"op":"c"}'),
        (None, b'{"after":{"id":1}}'),
        message("c", after={"id": 9, "v": "x"}),
    )
    assert sorted(found.faults) == list(range(8)) and changes(found) == [("+I", 9, "x")]
    append = debezium(target(key=(), v="STRING"), message("c", after={"id": 1, "v": "a"}), message("d", {"id": 1}), (b"1", None))
    assert sorted(append.faults) == [1, 2] and "no primary key" in append.faults[1]
    assert changes(append) == [("+I", 1, "a")]


def test_a_schema_around_a_record_says_what_its_values_mean() -> None:
    def field(name: str, kind: str, meaning: str | None = None, **parameters: str) -> dict[str, Any]:
        return {"field": name, "type": kind, "optional": True, **({"name": meaning, "parameters": parameters} if meaning else {})}

    columns = [
        field("id", "int64"),
        field("amount", "bytes", "org.apache.kafka.connect.data.Decimal", scale="2"),
        field("day", "int32", "io.debezium.time.Date"),
        field("at", "int64", "io.debezium.time.MicroTimestamp"),
        field("clock", "int64", "io.debezium.time.MicroTime"),
        field("zoned", "string", "io.debezium.time.ZonedTimestamp"),
    ]
    rows = [{"type": "struct", "field": name, "fields": columns} for name in ("before", "after")]
    schema = {"type": "struct", "fields": [*rows, {"type": "string", "field": "op"}]}
    row = {"id": 1, "amount": "AN4=", "day": 1, "at": 1_500_000, "clock": 2_000_000, "zoned": "2024-01-31T12:30:00.5Z"}
    negative = {**row, "id": 2, "amount": "/w=="}

    def wrapped(after: dict[str, Any]) -> Record:
        return None, json.dumps({"schema": schema, "payload": {"before": None, "after": after, "op": "c"}}).encode()

    goal = target(
        amount="DECIMAL(10, 2)", day="DATE", at="TIMESTAMP(6)", clock="TIME(3)", zoned="TIMESTAMP(6) WITH LOCAL TIME ZONE"
    )
    bare = message("c", after={**row, "id": 3, "amount": "2.22"})
    found = debezium(goal, wrapped(row), bare, wrapped(negative), wrapped({**row, "id": 4, "amount": None}))
    assert not found.faults
    assert found.rows.column("amount").to_pylist() == [Decimal("2.22"), Decimal("2.22"), Decimal("-0.01"), None]
    first = found.rows.slice(0, 1).to_pylist()[0]
    assert [str(first[name]) for name in ("day", "at", "clock", "zoned")] == [
        "1970-01-02",
        "1970-01-01 00:00:01.500000",
        "00:00:02",
        "2024-01-31 12:30:00.500000+00:00",
    ]
    turned = json.dumps({"payload": {"before": None, "after": row, "op": "c"}, "schema": schema}).encode()
    assert debezium(goal, (None, turned)).rows.to_pylist() == [first]


TWICE = [
    b'{"id":1,"id":2,"v":"a"}', b'{"id":null,"id":2,"v":"a"}', b'{"id":1,"v":"a","\\u0076":"a"}', b'{"id":1,"r":{"a":1,"a":1}}',
    b'{"id":1,"v":{"k":1,"k":2}}', b'{"id":1,"l":[{"a":1},{"a":1,"a":2}]}', b'{"id":1,"r":{"a":1},"r":{"a":1}}',
    b'{"id":1,"d":1.5,"d":1.5}',
]  # fmt: skip


@pytest.mark.parametrize("beside", [b'{"id":9,"v":"good"}', b"no JSON", b'{"id":9,"m":{"k":1}}'])
@pytest.mark.parametrize("record", TWICE)
def test_a_name_that_an_object_has_twice_is_a_fault_of_its_record_alone(record: bytes, beside: bytes) -> None:
    row = pa.struct([("a", pa.int32())])
    columns = {"v": "STRING", "r": row, "l": pa.list_(row), "d": "DECIMAL(5, 2)"}
    found = plain(target(**columns), record, beside, b'{"id":7,"v":"last"}')
    assert "two values of one name" in found.faults[0] or found.faults[0].startswith("column"), found.faults
    assert sorted(found.faults) == ([0, 1] if beside == b"no JSON" else [0])
    assert found.rows["id"].to_pylist() == ([7] if beside == b"no JSON" else [9, 7])
    maps = plain(target(m=pa.map_(pa.string(), pa.int32())), b'{"id":1,"m":{"k":1,"k":2}}', b'{"id":2,"m":{"k":1}}')
    assert sorted(maps.faults) == [0]
    envelope = b'{"before":null,"after":%s,"op":"c"}'
    assert sorted(debezium(target(**columns), (None, envelope % record), (None, envelope % b'{"id":7}')).faults) == [0]
    twice = (None, b'{"before":null,"after":{"id":1},"after":{"id":2},"op":"c"}')
    assert sorted(debezium(target(), twice, (None, envelope % b'{"id":7}')).faults) == [0]


@pytest.mark.parametrize("beside", [b'{"id":9}', b"no JSON"])
def test_a_name_that_is_not_asked_for_may_stand_twice_whatever_stands_beside(beside: bytes) -> None:
    found = plain(target(), b'{"id":1,"x":1,"x":2,"y":{"a":1,"a":2}}', beside)
    assert 0 not in found.faults and found.rows["id"].to_pylist()[0] == 1


@pytest.mark.parametrize(
    ("scale", "amount", "text"),
    [
        (2, "AN4=", "2.22"), (2, "/w==", "-0.01"), (2, "AA==", "0.00"), (0, "/w==", "-1"), (10, "AQ==", "0.0000000001"),
        (38, "AQ==", f"0.{'0' * 37}1"), (4, "S0PkcZJ6jz8AAAAA", "2329345256111014109479383.8592"),
    ],
)  # fmt: skip
def test_a_decimal_of_connect_in_a_column_of_text_is_its_digits(scale: int, amount: str, text: str) -> None:
    decimal = {"field": "v", "type": "bytes", "optional": True, "name": "org.apache.kafka.connect.data.Decimal"}
    columns = [{"field": "id", "type": "int64"}, {**decimal, "parameters": {"scale": str(scale)}}]
    schema = {"type": "struct", "fields": columns}
    rows = [{"schema": schema, "payload": {"id": number, "v": value}} for number, value in enumerate((amount, None, amount))]
    for values in (rows, [*rows, {"schema": schema, "payload": {"id": 3, "v": 7}}]):
        found = plain(target(v="STRING"), *values)
        assert not found.faults
        assert found.rows["v"].to_pylist()[:3] == [text, None, text]


def test_a_value_of_no_schema_has_null_around_it_unless_it_is_a_row_with_such_columns() -> None:
    rows = [b'{"schema":null,"payload":{"id":%d,"v":"a"}}' % number for number in (1, 2)]
    found = plain(target(v="STRING"), rows[0], {"id": 3, "v": "c"}, rows[1])
    assert not found.faults and changes(found) == [("+I", 1, "a"), ("+I", 3, "c"), ("+I", 2, "a")]
    columns = target(payload="STRING", schema="STRING")
    assert changes(plain(columns, {"id": 1, "payload": "p", "schema": None})) == [("+I", 1, "p", None)]
    whole = Target(fields=columns.fields[1:], key=())
    assert changes(plain(whole, {"payload": "p", "schema": None})) == [("+I", "p", None)]
    change = b'{"schema":null,"payload":{"before":null,"after":{"id":1,"v":"a"},"op":"c"}}'
    assert changes(debezium(target(v="STRING"), (None, change))) == [("+I", 1, "a")]


def test_a_key_that_is_a_value_alone_may_have_its_schema_around_it() -> None:
    keys: list[Any] = [7, {"schema": {"type": "int64"}, "payload": 8}, {"payload": {"id": 9}, "schema": None}, {"id": 10}]
    found = debezium(target(v="STRING"), *((json.dumps(key).encode(), None) for key in keys))
    assert not found.faults and changes(found) == [("-D", 7, None), ("-D", 8, None), ("-D", 9, None), ("-D", 10, None)]
    at = Target(fields=target(at="TIMESTAMP(6) NOT NULL").fields[1:], key=("at",))
    key = {"schema": {"type": "int64", "name": "io.debezium.time.Timestamp"}, "payload": 1500}
    ((_, when),) = changes(debezium(at, (json.dumps(key).encode(), None)))
    assert str(when) == "1970-01-01 00:00:01.500000", "its schema says that these are milliseconds"


def test_many_good_records_with_a_few_bad_ones_lose_only_those() -> None:
    goal = target(v="DOUBLE")
    values: list[bytes | None] = [b'{"id":%d,"v":%d.5}' % (number, number) for number in range(3000)]
    bad = {7, 1500, 2999}
    for place in bad:
        values[place] = b'{"id":%d,"v":"x"}' % place
    values[8] = b'{"id":8,"v":"NaN"}'
    found = PlainRows(goal).decode([None] * 3000, values)
    assert set(found.faults) == bad
    assert found.rows.column("id").to_pylist() == [number for number in range(3000) if number not in bad]


def test_a_key_of_several_columns_names_its_row_in_whatever_order_they_are() -> None:
    goal = target(("b", "id"), b="BIGINT NOT NULL")
    assert changes(debezium(goal, (b'{"id":1,"b":2}', None), message("d", {"b": 4, "id": 3}))) == [("-D", 1, 2), ("-D", 3, 4)]
