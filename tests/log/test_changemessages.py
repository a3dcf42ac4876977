"""Changes as messages and back, and what other writers of Debezium JSON send."""

import json

import numpy as np
import pyarrow as pa
import pytest

from tablestore.json.jsonrows import BadJson
from tablestore.log.changemessages import decode_changes, encode_changes
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
    with pytest.raises(BadJson, match=reason) as caught:
        decode_changes([None, b'{"id":1}', key], [good, None, value], SCHEMA, key=["id"])
    assert caught.value.position == 2
