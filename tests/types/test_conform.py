"""conform: rows come out canonical and unchanged in value, or are refused with the column named."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tablestore.errors import InvalidInputError
from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.conform import conform
from tablestore.types.datatypes import Field
from tablestore.types.typestring import parse_type


def fields_of(**types: object) -> tuple[Field, ...]:
    return tuple(Field(id=i, name=name, type=parse_type(text)) for i, (name, text) in enumerate(types.items()))


def one(values: pa.Array, text: object) -> pa.ChunkedArray:
    fields = fields_of(x=text)
    table = conform(pa.table({"x": values}), fields, where="table t")
    table.validate(full=True)
    assert table.schema.equals(to_arrow_schema(fields), check_metadata=True)
    return table.column(0)


ARRAY_NN = {"type": "ARRAY", "element": "INT NOT NULL"}
MAP = {"type": "MAP", "key": "STRING NOT NULL", "value": "BIGINT"}
MAP_NN = {"type": "MAP", "key": "STRING NOT NULL", "value": "BIGINT NOT NULL"}
MULTISET = {"type": "MULTISET", "element": "STRING"}
ROW = {
    "type": "ROW",
    "fields": [{"id": 1, "name": "a", "type": "INT"}, {"id": 2, "name": "b", "type": ARRAY_NN}],
}
ROW_NN = {"type": "ROW", "fields": [{"id": 1, "name": "a", "type": "INT NOT NULL"}]}


def test_canonical_columns_are_passed_on_without_a_copy() -> None:
    values = pa.array([1, 2, None], pa.int64())
    text = pa.array(["a", None, "c"])
    fields = fields_of(x="BIGINT", y="STRING")
    table = conform(pa.record_batch({"y": text, "x": values}), fields, where="t")
    assert table.column("x").chunk(0).buffers()[1].address == values.buffers()[1].address
    assert table.column("y").chunk(0).buffers()[2].address == text.buffers()[2].address
    assert table.schema.names == ["x", "y"]


@pytest.mark.parametrize(
    ("values", "text", "expected"),
    [
        (pa.array([1, None], pa.uint8()), "INT", [1, None]),
        (pa.array([2**31 - 1], pa.uint64()), "INT", [2**31 - 1]),
        (pa.array([1.0, None]), "BIGINT", [1, None]),
        (pa.array([Decimal("7.00")]), "SMALLINT", [7]),
        (pa.array([1, 2**24], pa.int64()), "FLOAT", [1.0, 2.0**24]),
        (pa.array([1.5, float("inf"), None]), "FLOAT", [1.5, float("inf"), None]),
        (pa.array(np.array([1.5], "f2")), "DOUBLE", [1.5]),
        (pa.array([5, -300]), "DECIMAL(5, 2)", [Decimal("5.00"), Decimal("-300.00")]),
        (pa.array([0]), "DECIMAL(38, 38)", [Decimal(0)]),
        (pa.array([2**64 - 1], pa.uint64()), "DECIMAL(20, 0)", [Decimal(2**64 - 1)]),
        (pa.array([Decimal("1.50")], pa.decimal256(60, 2)), "DECIMAL(2, 1)", [Decimal("1.5")]),
        (pa.array(["a", None], pa.large_string()), "STRING", ["a", None]),
        (pa.array(["a", None], pa.string_view()), "VARCHAR(1)", ["a", None]),
        (pa.array(["é", "é", None]).dictionary_encode(), "CHAR(1)", ["é", "é", None]),
        # As polars gives categories.
        (
            pa.DictionaryArray.from_arrays(pa.array([1, None, 0], pa.uint32()), pa.array(["a", "b"], pa.string_view())),
            "STRING",
            ["b", None, "a"],
        ),
        (
            pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array([b"a", None], pa.binary_view())),
            "BYTES",
            [b"a", None],
        ),
        (pa.DictionaryArray.from_arrays(pa.array([1, 0]), pa.array([5, None], pa.int64())), "INT", [None, 5]),
        (pa.array([b"ab"], pa.binary(2)), "BYTES", [b"ab"]),
        (pa.array([b"ab", None], pa.binary_view()), "BINARY(2)", [b"ab", None]),
        (pa.array([dt.date(2024, 1, 2)], pa.date64()), "DATE", [dt.date(2024, 1, 2)]),
        (pa.array([dt.datetime(2024, 1, 2)]), "DATE", [dt.date(2024, 1, 2)]),
        (pa.array([dt.date(1969, 1, 2)]), "TIMESTAMP(6)", [dt.datetime(1969, 1, 2)]),
        (pa.array([5_000_000], pa.timestamp("ns")), "TIMESTAMP(3)", [dt.datetime(1970, 1, 1, 0, 0, 0, 5000)]),
        (pa.array([-3], pa.timestamp("s")), "TIMESTAMP(9)", [dt.datetime(1969, 12, 31, 23, 59, 57)]),
        (pa.array([-3000], pa.timestamp("ms")), "TIMESTAMP(0)", [dt.datetime(1969, 12, 31, 23, 59, 57)]),
        (
            pa.array([0], pa.timestamp("s", tz="Europe/Berlin")),
            "TIMESTAMP(6) WITH LOCAL TIME ZONE",
            [dt.datetime(1970, 1, 1, tzinfo=dt.UTC)],
        ),
        (pa.array([dt.time(1, 2, 3)], pa.time64("us")), "TIME(0)", [dt.time(1, 2, 3)]),
        (pa.array([None, None]), "INT", [None, None]),
        (pa.array([None]), ROW, [None]),
        (pa.array([[1, 2], None, []], pa.large_list(pa.int64())), ARRAY_NN, [[1, 2], None, []]),
        (pa.array([[1, 2], None], pa.list_(pa.int64(), 2)), ARRAY_NN, [[1, 2], None]),
        (pa.array([[1, 2], None], pa.list_view(pa.int64())), ARRAY_NN, [[1, 2], None]),
        (pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int8())), MAP, [[("a", 1)], None, []]),
        (pa.array([[("a", 2)]], pa.map_(pa.string(), pa.int8())), MULTISET, [[("a", 2)]]),
        (pa.array([{"b": [1], "a": 2}, None, {"b": None}]), ROW, [{"a": 2, "b": [1]}, None, {"a": None, "b": None}]),
        (pa.array([{"a": 1}, None]), ROW, [{"a": 1, "b": None}, None]),
        (pa.array([{"a": 1}, None]), ROW_NN, [{"a": 1}, None]),
        (pa.array([[{"a": 1}], [None], None]), {"type": "ARRAY", "element": ROW_NN}, [[{"a": 1}], [None], None]),
    ],
    ids=str,
)
def test_values_that_fit_come_out_unchanged(values: pa.Array, text: object, expected: list[object]) -> None:
    assert one(values, text).to_pylist() == expected


@pytest.mark.parametrize(
    ("values", "text", "expected"),
    [
        (pa.array([[9], [1, 2], None, []], pa.list_(pa.int64())), ARRAY_NN, [[1, 2], None]),
        (pa.array([[("z", 0)], [("a", 1)], None, []], pa.map_(pa.string(), pa.int8())), MAP_NN, [[("a", 1)], None]),
        (pa.array([{"a": 9}, {"a": 1}, None, {"a": 3}]), ROW_NN, [{"a": 1}, None]),
    ],
    ids=str,
)
def test_slices_of_nested_arrays_keep_their_rows(values: pa.Array, text: object, expected: list[object]) -> None:
    assert one(values.slice(1, 2), text).to_pylist() == expected


def test_nan_survives_narrowing() -> None:
    assert np.isnan(one(pa.array([float("nan")]), "FLOAT")[0].as_py())


@pytest.mark.parametrize(
    ("values", "text", "message"),
    [
        (pa.array([300]), "TINYINT", "300"),
        (pa.array([1.5]), "INT", "1.5"),
        (pa.array([float("nan")]), "INT", "nan"),
        (pa.array([0.1]), "FLOAT", "0.1"),
        (pa.array([1e300]), "FLOAT", "lose precision"),
        (pa.array([2**24 + 1]), "FLOAT", "16777217"),
        (pa.array([1000]), "DECIMAL(4, 2)", "precision"),
        (pa.array([Decimal("1.55")]), "DECIMAL(5, 1)", "data loss"),
        (pa.array([Decimal("214748364800000000000")]), "DECIMAL(38, 20)", "precision"),
        (pa.array([1.5]), "DECIMAL(5, 1)", "cast it first"),
        (pa.array(["1"]), "INT", "cast it first"),
        (pa.array([1]), "STRING", "cast it first"),
        (pa.array([True]), "INT", "cast it first"),
        (pa.array([b"a"]), "STRING", "cast it first"),
        (pa.array(["abc", "abcd"]), "VARCHAR(3)", "'abcd' of 4 characters"),
        (pa.array(["ab"]), "CHAR(1)", "'ab' of 2 characters"),
        (pa.array([b"abc"]), "BINARY(2)", "of 3 bytes"),
        (pa.array([1], pa.timestamp("ns")), "TIMESTAMP(6)", "lose data"),
        (pa.array([1500], pa.timestamp("ms")), "TIMESTAMP(0)", "more fractional digits"),
        (pa.array([-1], pa.timestamp("us")), "TIMESTAMP(5)", "more fractional digits"),
        (pa.array([10**11], pa.timestamp("s")), "TIMESTAMP(9)", "out of bounds"),
        (pa.array([0], pa.timestamp("us", tz="UTC")), "TIMESTAMP(6)", "drop the time zone"),
        (pa.array([0], pa.timestamp("us")), "TIMESTAMP(6) WITH LOCAL TIME ZONE", "give the timestamps a time zone"),
        (pa.array([dt.date(2020, 1, 1)]), "TIMESTAMP(6) WITH LOCAL TIME ZONE", "with a time zone first"),
        (pa.array([dt.datetime(2024, 1, 2, 3)]), "DATE", "lose precision"),
        (pa.array([1], pa.time64("us")), "TIME(3)", "lose data"),
        (pa.array([1], pa.time32("ms")), "TIME(0)", "fractional"),
        (pa.array([[1]]), "INT", "cast it first"),
        (pa.array([1]), ARRAY_NN, "give a list"),
        (pa.array([[1, None]]), ARRAY_NN, "'x[]'"),
        (pa.array([[2**40]]), ARRAY_NN, "'x[]'"),
        (pa.array([[1]]), MAP, "give a map"),
        (pa.array([[("a", None)]], pa.map_(pa.string(), pa.int64())), MAP_NN, "x[value]"),
        (pa.array([1]), ROW, "give a struct"),
        (pa.array([{"a": None}, None], pa.struct([("a", pa.int32())])), ROW_NN, "'x.a'"),
        (pa.array([{}, None], pa.struct([])), ROW_NN, "lack the NOT NULL columns a"),
        (pa.array([{"a": 1, "c": 2}]), ROW, "'c'"),
        (pa.array([{"a": 1, "b": [None]}]), ROW, "'x.b[]'"),
    ],
    ids=str,
)
def test_values_that_do_not_fit_are_refused_by_column(values: pa.Array, text: object, message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        one(values, text)
    assert message in str(caught.value)
    assert "x" in str(caught.value) and "table t" in str(caught.value)


def test_missing_nullable_columns_become_null() -> None:
    table = conform(pa.table({"x": [1, 2]}), fields_of(x="BIGINT", y="STRING", z=ROW), where="t")
    assert table.to_pylist() == [{"x": 1, "y": None, "z": None}, {"x": 2, "y": None, "z": None}]


def test_missing_not_null_column_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="lack the NOT NULL columns y"):
        conform(pa.table({"x": [1]}), fields_of(x="BIGINT", y="INT NOT NULL"), where="t")


def test_null_in_not_null_tells_column_and_count() -> None:
    with pytest.raises(InvalidInputError, match=r"'x' of t is NOT NULL, found nulls in 2 of 3 rows") as caught:
        conform(pa.table({"x": [1, None, None]}), fields_of(x="BIGINT NOT NULL"), where="t")
    assert caught.value.kind == "null-in-not-null"


def test_extra_column_names_the_nearest() -> None:
    with pytest.raises(InvalidInputError, match="did you mean 'price'"):
        conform(pa.table({"Price": [1]}), fields_of(price="BIGINT"), where="t")


def test_duplicate_column_is_refused() -> None:
    rows = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"])
    with pytest.raises(InvalidInputError, match="duplicate columns: x"):
        conform(rows, fields_of(x="BIGINT"), where="t")


def test_empty_tables_and_many_chunks_pass() -> None:
    fields = fields_of(x="INT", y=ROW, z=MAP_NN)
    empty = pa.table({"x": pa.array([], pa.int64()), "y": pa.array([], pa.null()), "z": pa.array([], pa.null())})
    assert conform(empty, fields, where="t").num_rows == 0
    chunked = pa.table({"x": pa.chunked_array([[1], [], [2, 3]], pa.int16())})
    assert conform(chunked, fields, where="t").column("x").to_pylist() == [1, 2, 3]
