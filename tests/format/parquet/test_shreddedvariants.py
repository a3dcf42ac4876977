"""Shredded VARIANT columns become whole values again, and broken ones are named."""

import datetime as dt
import uuid
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tablestore.errors import FormatError, UnsupportedError
from tablestore.format.parquet.variants import variants_of
from tablestore.sql.duckdb.functions import variantformat

NO_NAMES = b"\x01\x00\x00"


def column(rows: list[dict[str, Any] | None], typed: pa.DataType) -> pa.Array:
    kind = pa.struct([pa.field("metadata", pa.binary(), False), ("value", pa.binary()), ("typed_value", typed)])
    return pa.array(rows, kind)


def values(array: pa.Array) -> list[Any]:
    return [
        None if one is None else variantformat.decode((one["value"], one["metadata"])) for one in variants_of(array).to_pylist()
    ]


def test_plain_columns_are_found_by_name_whatever_their_order() -> None:
    value, metadata = variantformat.encode({"a": [1, None]})
    parts = [("metadata", pa.binary()), ("value", pa.binary())]
    array = pa.array([{"metadata": metadata, "value": value}, None], pa.struct(parts))
    assert values(array) == [{"a": [1, None]}, None]
    assert variants_of(array.slice(1)).to_pylist() == [None]
    with pytest.raises(FormatError, match="value and metadata"):
        variants_of(pa.array([{"value": b""}], pa.struct(parts[1:])))


@pytest.mark.parametrize(
    ("typed", "value", "expected"),
    [
        (pa.bool_(), True, b"\x04"),
        (pa.int8(), -128, b"\x0c\x80"),
        (pa.int32(), 128, b"\x10\x80\x00"),
        (pa.int64(), 2**31 - 1, b"\x14\xff\xff\xff\x7f"),
        (pa.int64(), -(2**63), b"\x18" + b"\x00" * 7 + b"\x80"),
        (pa.float32(), 1.5, b"\x38\x00\x00\xc0\x3f"),
        (pa.float64(), -0.0, b"\x1c" + b"\x00" * 7 + b"\x80"),
        (pa.string(), "é" * 31, bytes([62 << 2 | 1]) + "é".encode() * 31),
        (pa.string(), "x" * 64, b"\x40\x40\x00\x00\x00" + b"x" * 64),
        (pa.binary(), b"", b"\x3c\x00\x00\x00\x00"),
        (pa.date32(), dt.date(1969, 12, 31), b"\x2c\xff\xff\xff\xff"),
        (pa.timestamp("us", "UTC"), dt.datetime(1970, 1, 1, 0, 0, 0, 1, tzinfo=dt.UTC), b"\x30\x01" + b"\x00" * 7),
        (pa.timestamp("us"), dt.datetime(1970, 1, 1, 0, 0, 0, 1), b"\x34\x01" + b"\x00" * 7),
        (pa.decimal128(9, 2), Decimal("-0.01"), b"\x20\x02\xff\xff\xff\xff"),
        (pa.decimal128(38, 2), Decimal(10**9).scaleb(-2), b"\x24\x02" + (10**9).to_bytes(8, "little")),
        (pa.decimal128(38, 0), Decimal(-(10**18)), b"\x28\x00" + (-(10**18)).to_bytes(16, "little", signed=True)),
        (pa.binary(16), uuid.UUID(int=5).bytes, b"\x50" + uuid.UUID(int=5).bytes),
    ],
    ids=str,
)
def test_each_type_has_the_bytes_of_the_specification(typed: pa.DataType, value: Any, expected: bytes) -> None:
    rows = [{"metadata": NO_NAMES, "value": None, "typed_value": value}, {"metadata": NO_NAMES, "value": b"\x00"}, None]
    assert [one and one["value"] for one in variants_of(column(rows, typed)).to_pylist()] == [expected, b"\x00", None]
    assert [one and one["value"] for one in variants_of(column(rows, typed).slice(1)).to_pylist()] == [b"\x00", None]


PART = pa.struct([("value", pa.binary()), ("typed_value", pa.int64())])
OBJECT = pa.struct([pa.field("b", PART, False), pa.field("ä", PART, False)])


def plain(value: Any, names: dict[str, int]) -> bytes:
    return variantformat._encoded(value, names)


def test_objects_have_their_columns_and_what_is_left_beside_them() -> None:
    names = {"z": 0, "b": 1, "ä": 2, "a": 3}
    metadata = variantformat.metadata_of(names)
    big = {"z": "x" * 70_000, "a": list(range(300))}
    rows = [
        {"metadata": metadata, "value": plain(big, dict(names)), "typed_value": {"b": {"typed_value": 1}, "ä": {"value": b"\x00"}}},
        {"metadata": metadata, "typed_value": {"b": {}, "ä": {"typed_value": 2**40}}},
        {"metadata": metadata, "typed_value": {"b": {}, "ä": {}}},
        {"metadata": metadata, "value": plain(["no object"], dict(names))},
        {
            "metadata": variantformat.metadata_of({"ä": 0, "b": 1}),
            "typed_value": {"b": {"typed_value": 5}, "ä": {"typed_value": 6}},
        },
        None,
    ]
    expected = [{**big, "b": 1, "ä": None}, {"ä": 2**40}, {}, ["no object"], {"b": 5, "ä": 6}, None]
    assert values(column(rows, OBJECT)) == expected
    assert values(column(rows, OBJECT).slice(3)) == expected[3:]
    # Fields lie in the order of their names, as readers look for them.
    whole = variants_of(column(rows, OBJECT))[0].as_py()
    assert list(variantformat.decode((whole["value"], whole["metadata"]))) == ["a", "b", "z", "ä"]


def test_arrays_of_any_length_keep_their_parts() -> None:
    typed = pa.list_(pa.struct([("value", pa.binary()), ("typed_value", pa.string())]))
    many = [{"typed_value": str(place) * (place % 90)} for place in range(1000)]
    rows = [{"metadata": NO_NAMES, "typed_value": parts} for parts in (many, [], [{"value": b"\x0c\x01"}], many[:255], many[:256])]
    texts = [part["typed_value"] for part in many]
    assert values(column(rows, typed)) == [texts, [], [1], texts[:255], texts[:256]]


@pytest.mark.parametrize(
    ("fault", "row"),
    [
        ("nowhere", {"metadata": NO_NAMES}),
        ("no name 'b'", {"metadata": NO_NAMES, "typed_value": {"b": {"typed_value": 1}, "ä": {}}}),
        ("none of an object", {"metadata": NO_NAMES, "value": b"\x0c\x01", "typed_value": {"b": {}, "ä": {}}}),
        (
            "twice",
            {
                "metadata": b"\x01\x01\x00\x01b",
                "value": b"\x02\x01\x00\x00\x01\x00",
                "typed_value": {"b": {"typed_value": 1}, "ä": {}},
            },
        ),
        (
            "do not lie in it",
            {"metadata": b"\x01\x01\x00\x01b", "value": b"\x02\x01\x00\x00\x09\x00", "typed_value": {"b": {}, "ä": {}}},
        ),
        (
            "do not lie in it",
            {"metadata": b"\x01\x01\x00\x01b", "value": b"\x02\x01\x07\x00\x01\x00", "typed_value": {"b": {}, "ä": {}}},
        ),
        ("cut", {"metadata": b"\x01\x01\x00\x01b", "value": b"\x02", "typed_value": {"b": {}, "ä": {}}}),
        ("cut", {"metadata": b"\x01\x05\x00", "typed_value": {"b": {}, "ä": {}}}),
    ],
)
def test_parts_that_do_not_fit_together_are_named(fault: str, row: dict[str, Any]) -> None:
    with pytest.raises(FormatError, match=fault):
        variants_of(column([row], OBJECT))


def test_a_type_that_no_variant_has_is_refused_with_a_way_out() -> None:
    with pytest.raises(UnsupportedError, match=r"time64.*variant\.shreddingSchema"):
        variants_of(column([{"metadata": NO_NAMES, "typed_value": dt.time(1)}], pa.time64("us")))
