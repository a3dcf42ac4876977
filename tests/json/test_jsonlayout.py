"""Objects that are all written alike are read without a JSON reader, and no differently than by one."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore.json.jsonlayout import rows_alike
from tablestore.json.jsonrows import BadJson, rows_from_json
from tablestore.json.jsontext import rows_to_json
from tests.json.test_json import COLUMNS

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.float64()), ("paid", pa.bool_())])
HEAD, TAIL = b'{"before":null,"after":', b',"op":"c"}'


def _texts(*rows: tuple[Any, ...]) -> list[bytes]:
    return [
        json.dumps(dict(zip(SCHEMA.names, row, strict=True)), ensure_ascii=False, separators=(",", ":")).encode() for row in rows
    ]


@pytest.mark.parametrize("name", [n for n in COLUMNS if n not in ("list", "row", "string") and "map" not in n])
def test_every_flat_type_comes_back_from_its_text(name: str) -> None:
    kind, values, _ = COLUMNS[name]
    array = pa.array([value for value in values if repr(value) not in ("nan", "inf", "-inf")], kind)
    texts = [text.encode() for text in rows_to_json([array, array], [name, "again"]).to_pylist()]
    schema = pa.schema([(name, kind), ("again", kind)])
    found = rows_alike(texts, schema)
    assert found is not None
    assert found.equals(rows_from_json(texts, schema))
    assert repr(found.column(name).to_pylist()) == repr(array.to_pylist())


def test_what_stands_around_the_objects_is_left_out() -> None:
    texts = _texts((1, "Ada", 0.5, True), (2, None, None, None), (None, "", -1e300, False))
    found = rows_alike([HEAD + text + TAIL for text in texts], SCHEMA, head=HEAD, tail=TAIL)
    assert found is not None
    assert found.to_pylist() == [
        {"id": 1, "name": "Ada", "price": 0.5, "paid": True},
        {"id": 2, "name": None, "price": None, "paid": None},
        {"id": None, "name": "", "price": -1e300, "paid": False},
    ]


def test_only_the_columns_asked_for_are_read() -> None:
    texts = _texts((1, "Ada", 0.5, True), (2, "Bob, of \u65e5\u672c", None, None))
    found = rows_alike(texts, pa.schema([SCHEMA.field("paid"), SCHEMA.field("name")]))
    assert found is not None
    assert found.to_pylist() == [{"paid": True, "name": "Ada"}, {"paid": None, "name": "Bob, of \u65e5\u672c"}]


GOOD = b'{"id":7,"name":"x","price":1.5,"paid":true}'


@pytest.mark.parametrize(
    "text",
    [
        b'{"id":7,"name":"x","price":1.5,"paid":true',
        b'{"id":7,"name":"x","price":1.5,"paid":true}}',
        b'{"id":7,"name":"x","price":1.5,"paid":true,"more":1}',
        b'{"id":7,"name":"x","price":1.5}',
        b'{"name":"x","id":7,"price":1.5,"paid":true}',
        b'{"id": 7,"name":"x","price":1.5,"paid":true}',
        b'{"id":7,"name":"a\\"b","price":1.5,"paid":true}',
        b'{"id":7,\n"name":"x","price":1.5,"paid":true}',
        b'{"id":0x1F,"name":"x","price":1.5,"paid":true}',
        b'{"id":"7","name":"x","price":1.5,"paid":true}',
        b'{"id":7,"name":5,"price":1.5,"paid":true}',
        b'{"id":7,"name":"x","price":nan,"paid":true}',
        b'{"id":7,"name":"x","price":"NaN","paid":true}',
        b'{"id":7,"name":"x","price":1.5,"paid":1}',
        b'{"id":7,"name":"x","price":1.5,"paid":"true"}',
        b'{"id":7,"name":"\xff","price":1.5,"paid":true}',
        b'{"id":7,"name":nil,"price":1.5,"paid":true}',
        b'{"id":7.5,"name":"x","price":1.5,"paid":true}',
        b'{"id":9223372036854775808,"name":"x","price":1.5,"paid":true}',
        b'{"id":7,"name":"x","price":{"a":1},"paid":true}',
        b"",
        b"[]",
        b"null",
    ],
)
def test_texts_that_are_not_all_alike_are_left_to_a_json_reader(text: bytes) -> None:
    assert rows_alike([GOOD, GOOD], SCHEMA) is not None
    for texts in ([GOOD, text, GOOD], [GOOD, text], [text, GOOD]):
        assert rows_alike(texts, SCHEMA) is None


def test_a_table_with_nested_columns_is_left_to_a_json_reader() -> None:
    assert rows_alike([b'{"a":[1,2]}'], pa.schema([("a", pa.list_(pa.int64()))])) is None
    assert rows_alike([], SCHEMA) is None


ROWS = st.lists(
    st.tuples(
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.text(st.sampled_from('ab,:{}[]"\\né\x00n1'), max_size=6),
        st.none() | st.floats(allow_nan=False, allow_infinity=False),
        st.none() | st.booleans(),
    ),
    min_size=1,
    max_size=5,
)


@given(ROWS, st.data())
def test_whatever_is_read_is_what_a_json_reader_reads(rows: list[tuple[Any, ...]], data: st.DataObject) -> None:
    texts = _texts(*rows)
    # Damage: some bytes of a text become others that mean something to JSON.
    for _ in range(data.draw(st.integers(0, 2))):
        which = data.draw(st.integers(0, len(texts) - 1))
        place = data.draw(st.integers(0, len(texts[which])))
        put = data.draw(st.sampled_from([b"", b",", b'"', b"}", b"{", b":", b"\n", b" ", b"null", b"1", b',"id":3', b'"x"']))
        texts[which] = texts[which][:place] + put + texts[which][place + data.draw(st.integers(0, 2)) :]
    columns = data.draw(st.lists(st.sampled_from(SCHEMA.names), unique=True, min_size=1))
    schema = pa.schema([SCHEMA.field(name) for name in columns])
    found = rows_alike(texts, schema)
    if found is None:
        return
    try:
        expected = rows_from_json(texts, schema)
    except BadJson:
        # Damage in a column that was not asked for, or a number with a zero in front.
        return
    assert found.equals(expected)


def test_plain_rows_are_read_without_a_json_reader() -> None:
    rows = pa.table({"id": np.arange(1000), "name": [f"n{i}" for i in range(1000)]})
    texts = [t.encode() for t in rows_to_json([c.combine_chunks() for c in rows.columns], rows.column_names).to_pylist()]
    found = rows_alike(texts, rows.schema)
    assert found is not None
    assert found.to_pylist() == rows.to_pylist()
