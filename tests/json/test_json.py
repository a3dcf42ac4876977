"""Rows as JSON and back: every type, both readers, and texts that are wrong."""

import base64
import json
from datetime import date
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablestore.json.jsonrows import BadJson, decode_base64, rows_from_json
from tablestore.json.jsontext import encode_base64, rows_to_json, to_json

COLUMNS: dict[str, tuple[pa.DataType, list[Any], list[str]]] = {
    "boolean": (pa.bool_(), [True, False, None], ["true", "false", "null"]),
    "tinyint": (pa.int8(), [-128, 127, None], ["-128", "127", "null"]),
    "bigint": (pa.int64(), [2**63 - 1, -(2**63), None], [str(2**63 - 1), str(-(2**63)), "null"]),
    "float": (pa.float32(), [0.1, float("nan"), -0.0], ["0.1", '"NaN"', "-0.0"]),
    "double": (pa.float64(), [float("inf"), float("-inf"), 1e300], ['"Infinity"', '"-Infinity"', "1e+300"]),
    "decimal": (
        pa.decimal128(38, 10),
        [Decimal("0.0000000001"), Decimal("-12.5"), Decimal("1234567890123456789012345678")],
        ['"0.0000000001"', '"-12.5000000000"', '"1234567890123456789012345678.0000000000"'],
    ),
    "whole decimal": (pa.decimal128(5, 0), [Decimal("12345"), Decimal("-1"), None], ['"12345"', '"-1"', "null"]),
    "string": (pa.string(), ['a"b\\c\n\x01\x7f', "", "naïve 日本"], ['"a\\"b\\\\c\\n\\u0001\x7f"', '""', '"naïve 日本"']),
    "binary": (pa.binary(), [b"hi", b"", b"\x00\xff\xfe"], ['"aGk="', '""', '"AP/+"']),
    "date": (pa.date32(), [0, -1, None], ['"1970-01-01"', '"1969-12-31"', "null"]),
    "time": (pa.time32("ms"), [0, 45_000_123, None], ['"00:00:00.000"', '"12:30:00.123"', "null"]),
    "timestamp": (pa.timestamp("ms"), [0, -1, None], ['"1970-01-01 00:00:00.000"', '"1969-12-31 23:59:59.999"', "null"]),
    "nanoseconds": (
        pa.timestamp("ns"),
        [1, -1, None],
        ['"1970-01-01 00:00:00.000000001"', '"1969-12-31 23:59:59.999999999"', "null"],
    ),
    "local": (pa.timestamp("us", "UTC"), [0, 1, None], ['"1970-01-01 00:00:00.000000Z"', '"1970-01-01 00:00:00.000001Z"', "null"]),
    "list": (pa.list_(pa.int32()), [[1, None], [], None], ["[1,null]", "[]", "null"]),
    "map of text": (
        pa.map_(pa.string(), pa.float64()),
        [[('k"', 1.5), ("z", None)], [], None],
        ['{"k\\"":1.5,"z":null}', "{}", "null"],
    ),
    "map": (pa.map_(pa.int32(), pa.string()), [[(1, "x"), (2, None)], [], None], ['[[1,"x"],[2,null]]', "[]", "null"]),
    "row": (
        pa.struct([("a", pa.int64()), ("b", pa.list_(pa.binary()))]),
        [{"a": 1, "b": [b"x"]}, {"a": None, "b": None}, None],
        ['{"a":1,"b":["eA=="]}', '{"a":null,"b":null}', "null"],
    ),
    "list of maps": (
        pa.list_(pa.map_(pa.string(), pa.decimal128(4, 1))),
        [[[("a", Decimal("1.5"))], None], [], None],
        ['[{"a":"1.5"},null]', "[]", "null"],
    ),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_every_type_has_one_text_and_comes_back_from_it(name: str) -> None:
    kind, values, texts = COLUMNS[name]
    array = pa.array(values, kind)
    assert to_json(array).to_pylist() == texts
    assert to_json(array.slice(1)).to_pylist() == texts[1:], "a slice has the texts of its own rows"
    rows = rows_to_json([array], [name])
    back = rows_from_json([text.encode() for text in rows.to_pylist()], pa.schema([(name, kind)]))
    assert repr(back.column(name).to_pylist()) == repr(array.to_pylist())
    assert back.column(name).type == kind


def test_both_readers_agree() -> None:
    names = [name for name in COLUMNS if "map" not in name and name not in ("float", "double")]
    arrays = [pa.array(COLUMNS[name][1], COLUMNS[name][0]) for name in names]
    texts = [text.encode() for text in rows_to_json(arrays, names).to_pylist()]
    schema = pa.schema([(name, COLUMNS[name][0]) for name in names])
    # A line break between two values is white space to JSON; it sends the second set to the exact reader.
    exact = rows_from_json([text.replace(b',"', b',\n"', 1) for text in texts], schema)
    assert rows_from_json(texts, schema).to_pylist() == exact.to_pylist()


def test_names_are_escaped_and_kept_in_order() -> None:
    texts = rows_to_json([pa.array([1]), pa.array([2])], ['b"', "a"])
    assert texts.to_pylist() == ['{"b\\"":1,"a":2}']


def test_missing_names_are_null_and_unknown_ones_skipped() -> None:
    schema = pa.schema([("a", pa.int64()), ("m", pa.map_(pa.string(), pa.int64()))])
    assert rows_from_json([b'{"x":[1,{"y":2}],"a":3}'], schema).to_pylist() == [{"a": 3, "m": None}]
    assert rows_from_json([b'{"x":1}'], pa.schema([("a", pa.int64())])).to_pylist() == [{"a": None}]


def test_decimals_of_others_may_be_numbers() -> None:
    schema = pa.schema([("d", pa.decimal128(20, 2))])
    assert rows_from_json([b'{"d":12.50}'], schema).column("d").to_pylist() == [Decimal("12.50")]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"nonsense", pa.int64()),
        (b"[1]", pa.int64()),
        (b"", pa.int64()),
        (b'{"a":"x"}', pa.int64()),
        (b'{"a":300}', pa.int8()),
        (b'{"a":1e400}', pa.float64()),
        (b'{"a":-1e39}', pa.float32()),
        (b'{"a":[1.5, 1e39]}', pa.list_(pa.float32())),
        (b'{"a":{"b":1e400}}', pa.map_(pa.string(), pa.float64())),
        (b'{"a":"1e400"}', pa.float64()),
        (b'{"a":true}', pa.int64()),
        (b'{"a":1}', pa.string()),
        (b'{"a":"12.345"}', pa.decimal128(4, 2)),
        (b'{"a":"not base64!"}', pa.binary()),
        (b'{"a":"2024-02-30"}', pa.date32()),
        (b'{"a":{"b":"x"}}', pa.map_(pa.string(), pa.int64())),
        (b"[" * 5000, pa.int64()),
    ],
)
def test_a_text_that_does_not_fit_is_named(text: bytes, kind: pa.DataType) -> None:
    schema = pa.schema([("a", kind)])
    with pytest.raises(BadJson) as caught:
        rows_from_json([b'{"a":null}', text, b'{"a":null}'], schema)
    assert caught.value.position == 1


@given(st.lists(st.one_of(st.none(), st.binary(max_size=40))))
def test_base64_is_that_of_the_standard_library(values: list[bytes | None]) -> None:
    array = pa.array(values, pa.binary())
    texts = encode_base64(array)
    assert texts.to_pylist() == [None if v is None else base64.b64encode(v).decode() for v in values]
    assert decode_base64(texts).to_pylist() == values
    assert decode_base64(encode_base64(array.slice(len(values) // 2))).to_pylist() == values[len(values) // 2 :]


@given(st.lists(st.text(max_size=30)))
def test_text_is_escaped_as_json_wants_it(values: list[str]) -> None:
    values = [value.encode("utf-8", "replace").decode() for value in values]
    array = pa.array(values, pa.string())
    assert [json.loads(text) for text in to_json(array).to_pylist()] == values


@given(st.lists(st.floats(), min_size=1))
def test_doubles_come_back_to_the_bit(values: list[float]) -> None:
    array = pa.array(values, pa.float64())
    texts = [text.encode() for text in rows_to_json([array], ["x"]).to_pylist()]
    back = rows_from_json(texts, pa.schema([("x", pa.float64())])).column("x").to_numpy()
    numbers = array.to_numpy()
    assert np.array_equal(back, numbers, equal_nan=True)
    signed = ~np.isnan(numbers)
    assert np.array_equal(np.signbit(back[signed]), np.signbit(numbers[signed]))


@given(st.lists(st.dates(min_value=date(1, 1, 1))))
def test_dates_come_back(values: list[date]) -> None:
    array = pa.array(values, pa.date32())
    texts = [text.encode() for text in rows_to_json([array], ["x"]).to_pylist()]
    assert rows_from_json(texts, pa.schema([("x", pa.date32())])).column("x").to_pylist() == values


@pytest.mark.parametrize("text", [b'{"id":1,"id":2}', b'{"id":1,"f":1.5,"f":1.5}', b'{"id":1,"f":null,"f":1}'])
def test_a_name_that_an_object_has_twice_is_refused(text: bytes) -> None:
    schema = pa.schema([("id", pa.int64()), ("f", pa.float64())])
    with pytest.raises(BadJson, match="two values of one name") as refused:
        rows_from_json([b'{"id":0}', text], schema)
    assert refused.value.position == 1
    assert rows_from_json([b'{"id":1,"x":1,"x":2}'], schema).to_pylist() == [{"id": 1, "f": None}]
