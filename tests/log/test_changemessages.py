"""Changes as messages and back, and what other writers of Debezium JSON send."""

import datetime
import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tablestore.errors import InvalidInputError
from tablestore.format.datafiles.avrorows import AvroRows
from tablestore.log.changemessages import BadMessage, ChangelogMode, LogFormat, decode_changes, encode_changes
from tablestore.types.rowkind import RowKind

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])
ROWS = pa.table({"id": [1, 1, 1, 2], "name": ["a", "a", "b", "c"]}, schema=SCHEMA)
KINDS = np.array([RowKind.INSERT, RowKind.UPDATE_BEFORE, RowKind.UPDATE_AFTER, RowKind.DELETE], dtype=np.int8)


def test_an_upsert_log_has_rows_and_tombstones_and_no_update_before() -> None:
    messages = encode_changes(ROWS, KINDS, key=["id"], mode="upsert")
    assert messages.keys == [b'{"id":1}', b'{"id":1}', b'{"id":2}']
    assert messages.values == [
        b'{"before":null,"after":{"id":1,"name":"a"},"op":"c"}',
        b'{"before":null,"after":{"id":1,"name":"b"},"op":"c"}',
        None,
    ]
    assert messages.places.tolist() == [0, 2, 3]


def test_a_log_of_all_changes_has_an_update_as_two_messages() -> None:
    messages = encode_changes(ROWS, KINDS, key=[], mode="all")
    assert messages.keys == [None] * 4
    assert [json.loads(value or b"")["op"] for value in messages.values] == ["c", "d", "c", "d"]
    assert messages.values[1] == b'{"before":{"id":1,"name":"a"},"after":null,"op":"d"}'


@pytest.mark.parametrize("mode", ["upsert", "all"])
def test_messages_come_back_as_the_changes_they_were(mode: str) -> None:
    messages = encode_changes(ROWS, KINDS, key=["id"], mode=mode)  # type: ignore[arg-type]
    back = decode_changes(messages.keys, messages.values, SCHEMA, key=["id"], kinds=messages.kinds)
    assert back.kinds.tolist() == messages.kinds.tolist()
    assert back.places.tolist() == list(range(len(messages.values)))
    expected = ROWS.take(pa.array(messages.places)).to_pylist()
    if mode == "upsert":
        expected[-1] = {"id": 2, "name": None}
    assert back.rows.to_pylist() == expected


def test_no_changes_are_no_messages() -> None:
    messages = encode_changes(SCHEMA.empty_table(), np.array([], dtype=np.int8), key=["id"], mode="upsert")
    assert (messages.keys, messages.values) == ([], [])
    back = decode_changes([], [], SCHEMA, key=["id"])
    assert back.rows.num_rows == 0 and back.rows.schema.names == SCHEMA.names


def test_updates_and_first_copies_of_other_writers_are_read() -> None:
    values = [
        b'{"before":null,"after":{"id":1,"name":"a"},"op":"r","ts_ms":5}',
        b'{"before":{"id":1,"name":"a"},"after":{"id":1,"name":"b"},"op":"u"}',
        b'{"after":{"id":3},"op":"u"}',
    ]
    back = decode_changes([None] * 3, values, SCHEMA, key=["id"])
    assert back.places.tolist() == [0, 1, 1, 2]
    assert [RowKind(kind).symbol for kind in back.kinds] == ["+I", "-U", "+U", "+U"]
    assert back.rows.to_pylist()[2:] == [{"id": 1, "name": "b"}, {"id": 3, "name": None}]


def test_what_the_writer_said_of_a_kind_counts_unless_it_contradicts_the_message() -> None:
    values = [b'{"after":{"id":1},"op":"c"}'] * 3
    told = np.array([RowKind.UPDATE_AFTER, RowKind.DELETE, -1], dtype=np.int8)
    back = decode_changes([None] * 3, values, SCHEMA, key=["id"], kinds=told)
    assert [RowKind(kind).symbol for kind in back.kinds] == ["+U", "+I", "+I"]


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (None, b"poison", "not JSON"),
        (None, b'{"after":{"id":1}}', "expected op"),
        (None, b'{"op":"x","after":{"id":1}}', "expected op"),
        (None, b'{"op":"c"}', "`after`"),
        (None, b'{"op":"d"}', "`before`"),
        (None, b'{"op":"c","after":{"name":"a"}}', "key column 'id'"),
        (None, None, "neither"),
        (b"{}", None, "key column 'id'"),
        (b"poison", None, "not JSON"),
    ],
)
def test_a_message_that_cannot_be_understood_is_named(key: bytes | None, value: bytes | None, reason: str) -> None:
    good = b'{"after":{"id":1},"op":"c"}'
    with pytest.raises(BadMessage, match=reason) as caught:
        decode_changes([None, b'{"id":1}', key], [good, None, value], SCHEMA, key=["id"])
    assert caught.value.position == 2


FORMS: tuple[LogFormat, ...] = ("debezium-json", "canal-json", "json", "avro")
WIDE = pa.table(
    {
        "id": pa.array([1, -(2**63), 2**63 - 1, 0], pa.int64()),
        "flag": pa.array([True, None, False, True]),
        "small": pa.array([-128, 127, None, 0], pa.int8()),
        "real": pa.array([float("nan"), -0.0, float("inf"), None], pa.float64()),
        "price": pa.array([Decimal("9" * 36 + ".99"), Decimal("-0.01"), None, Decimal(0)], pa.decimal128(38, 2)),
        "text": pa.array(["", 'q"\\\n', "\u00e9\U0001f600", None]),
        "raw": pa.array([b"", b"\x00\xff", None, b"]}"], pa.binary()),
        "day": pa.array([datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None, datetime.date(1970, 1, 1)]),
        "at": pa.array(
            [datetime.datetime(2026, 1, 31, 12, 30, 0, 123456), None, datetime.datetime(1, 1, 1), None], pa.timestamp("us")
        ),
        "list": pa.array([[1, None], [], None, [3]], pa.list_(pa.int32())),
        "map": pa.array([[("a", 1)], [], None, [("b", None)]], pa.map_(pa.string(), pa.int32())),
        "row": pa.array(
            [{"x": 1, "y": None}, None, {"x": None, "y": "z"}, {"x": 2, "y": ""}],
            pa.struct([("x", pa.int32()), ("y", pa.string())]),
        ),
    }
)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("copies", [1, 60])
def test_every_format_gives_back_what_was_written(form: LogFormat, copies: int) -> None:
    rows = pa.concat_tables([WIDE] * copies)
    kinds = np.zeros(rows.num_rows, dtype=np.int8)
    messages = encode_changes(rows, kinds, key=[], mode="all", form=form)
    back = decode_changes(messages.keys, messages.values, WIDE.schema, key=[], form=form)
    assert back.kinds.tolist() == kinds.tolist()
    # As text, since NaN is not itself.
    assert str(back.rows.to_pylist()) == str(rows.to_pylist())
    narrow = pa.schema([WIDE.schema.field("row"), WIDE.schema.field("id")])
    part = decode_changes(messages.keys, messages.values, narrow, key=[], form=form, written=WIDE.schema)
    assert part.rows.to_pylist() == rows.select(narrow.names).to_pylist()


def test_an_avro_number_that_is_too_large_for_its_column_is_named() -> None:
    narrow, wide = (pa.schema([("id", kind)]) for kind in (pa.int8(), pa.int32()))
    values = [AvroRows(wide).encode(pa.table({"id": [number]}, schema=wide))[0] for number in (1, 127, 128)]
    with pytest.raises(BadMessage, match="do not fit") as caught:
        decode_changes([None] * 3, values, narrow, key=[], form="avro")
    assert caught.value.position == 2


@pytest.mark.parametrize(
    ("kind", "value"),
    [(pa.decimal128(38, 0), (10**38).to_bytes(16)), (pa.decimal128(3, 1), b"\x03\xe8"), (pa.time32("ms"), 86_400_000)],
)
def test_an_avro_value_beyond_the_range_of_its_type_is_named(kind: pa.DataType, value: object) -> None:
    schema = pa.schema([("v", kind)])
    carrier = pa.schema([("v", pa.binary() if isinstance(value, bytes) else pa.int32())])
    values = [AvroRows(carrier).encode(pa.table({"v": [one]}, schema=carrier))[0] for one in (None, value)]
    with pytest.raises(BadMessage, match="do not fit") as caught:
        decode_changes([None] * 2, values, schema, key=[], form="avro")
    assert caught.value.position == 1


@pytest.mark.parametrize("form", FORMS)
def test_an_upsert_log_of_every_format_has_rows_and_tombstones(form: LogFormat) -> None:
    messages = encode_changes(ROWS, KINDS, key=["id"], mode="upsert", form=form)
    assert messages.keys == [b'{"id":1}', b'{"id":1}', b'{"id":2}']
    assert messages.values[2] is None
    back = decode_changes(messages.keys, messages.values, SCHEMA, key=["id"], kinds=messages.kinds, form=form)
    assert [RowKind(kind).symbol for kind in back.kinds] == ["+I", "+U", "-D"]
    assert back.rows.to_pylist() == [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}, {"id": 2, "name": None}]


def test_the_messages_of_formats_are_those_that_others_read() -> None:
    def values(form: LogFormat, mode: ChangelogMode) -> list[bytes | None]:
        return encode_changes(ROWS, KINDS, key=["id"], mode=mode, form=form).values

    assert values("json", "upsert") == [b'{"id":1,"name":"a"}', b'{"id":1,"name":"b"}', None]
    assert values("canal-json", "all")[:2] == [
        b'{"data":[{"id":1,"name":"a"}],"type":"INSERT"}',
        b'{"data":[{"id":1,"name":"a"}],"type":"DELETE"}',
    ]
    # A column is a union of null and its type: the branch, then the value; numbers zig-zag, a text behind its length.
    assert values("avro", "upsert") == [b"\x02\x02\x02\x02a", b"\x02\x02\x02\x02b", None]


@pytest.mark.parametrize("form", ["json", "avro"])
def test_a_row_taken_back_has_no_message_in_formats_of_rows(form: LogFormat) -> None:
    with pytest.raises(InvalidInputError, match="found a change -U"):
        encode_changes(ROWS, KINDS, key=["id"], mode="all", form=form)


@pytest.mark.parametrize(
    ("form", "value", "reason"),
    [
        ("json", b"poison", "not JSON"),
        ("json", b'{"name":"a"}', "key column 'id', found null"),
        ("canal-json", b'{"data":[{"id":1}],"type":"UPDATE"}', "expected type INSERT or DELETE .type 'UPDATE'"),
        ("canal-json", b'{"data":[{"id":1},{"id":2}],"type":"INSERT"}', "expected one row"),
        ("canal-json", b'{"data":[null],"type":"INSERT"}', "expected one row"),
        ("canal-json", b'{"data":null,"type":"INSERT"}', "expected one row"),
        ("avro", b"", "not of the columns"),
        ("avro", b"\x02\x02\x02\xfe\xff\xff\xff\x0fa", "not of the columns"),
        ("avro", b"\x02\x02\x02\x02ab", "1 bytes are left over"),
        ("avro", b"\x00\x00", "key column 'id', found null"),
        ("avro", b"\x08\x00", "not of the columns"),
        ("avro", b"\x02\x02\x02\x02\xff", "not of the columns"),
    ],
)
def test_messages_that_are_not_of_the_format_are_named(form: LogFormat, value: bytes, reason: str) -> None:
    good = encode_changes(ROWS.slice(0, 1), KINDS[:1], key=["id"], mode="upsert", form=form).values
    with pytest.raises(BadMessage, match=reason) as caught:
        decode_changes([None] * 2, [*good, value], SCHEMA, key=["id"], form=form)
    assert caught.value.position == 1
