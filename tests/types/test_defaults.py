"""Default values: what their text stands for, and where writers put it."""

import datetime
import decimal
from typing import Any

import pyarrow as pa
import pytest

from tablestore.errors import InvalidInputError
from tablestore.types.conform import conform
from tablestore.types.datatypes import Field
from tablestore.types.defaults import default_scalar
from tablestore.types.typestring import parse_type


def column(type: str, default: str | None, name: str = "c") -> Field:
    return Field(id=0, name=name, type=parse_type(type), default_value=default)


@pytest.mark.parametrize(
    ("type", "text", "value"),
    [
        ("BOOLEAN", "True", True),
        ("BOOLEAN", "0", False),
        ("TINYINT", " -7 ", -7),
        ("BIGINT", str(2**62), 2**62),
        ("FLOAT", "1.5", 1.5),
        ("DOUBLE", "1e300", 1e300),
        ("DECIMAL(6, 2)", "12.5", decimal.Decimal("12.50")),
        ("STRING", "a b ", "a b "),
        ("STRING", "'quoted'", "quoted"),
        ("STRING", "", ""),
        ("VARCHAR(3)", "abc", "abc"),
        ("BYTES", "ab", b"ab"),
        ("DATE", "2024-01-31", datetime.date(2024, 1, 31)),
        ("TIME(3)", "12:34:56", datetime.time(12, 34, 56)),
        ("TIMESTAMP(3)", "2024-01-31 12:00:00.5", datetime.datetime(2024, 1, 31, 12, 0, 0, 500_000)),
        (
            "TIMESTAMP(6) WITH LOCAL TIME ZONE",
            "2024-01-31 12:00:00",
            datetime.datetime(2024, 1, 31, 12, 0, 0, tzinfo=datetime.UTC),
        ),
    ],
)
def test_a_text_stands_for_a_value_of_the_type(type: str, text: str, value: object) -> None:
    found = default_scalar(column(type, text))
    assert found is not None
    assert found.as_py() == value


@pytest.mark.parametrize(
    ("type", "text"),
    [
        ("BOOLEAN", "perhaps"), ("TINYINT", "128"), ("INT", ""), ("INT", "1.5"), ("DECIMAL(4, 2)", "1234"), ("DATE", "soon"),
        ("DECIMAL(38, 20)", "214748364800000000000"),
        ("VARCHAR(3)", "abcd"), ("BINARY(1)", "ab"), ("TIMESTAMP(3)", "12:00"),
    ],
)  # fmt: skip
def test_what_is_no_value_of_the_type_is_refused_by_column_and_text(type: str, text: str) -> None:
    with pytest.raises(InvalidInputError, match=r"default .* of column 'c'"):
        default_scalar(column(type, text))


FIELDS = (column("INT NOT NULL", "7", "n"), column("STRING", "x", "s"), column("DATE", None, "d"))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"n": [1, None], "s": [None, "b"]}, [(1, "x"), (7, "b")]),
        ({"d": pa.array([None, None], pa.date32())}, [(7, "x"), (7, "x")]),
        ({"n": pa.nulls(2), "s": pa.nulls(2)}, [(7, "x"), (7, "x")]),
        ({"n": pa.array([None, 5], pa.int8()), "s": pa.array([None, "b"]).dictionary_encode()}, [(7, "x"), (5, "b")]),
    ],
)
def test_nulls_and_missing_columns_are_filled_with_the_default(given: dict[str, Any], expected: list[Any]) -> None:
    found = conform(pa.table(given), FIELDS, where="t").to_pylist()
    assert [(row["n"], row["s"]) for row in found] == expected
    assert {row["d"] for row in found} == {None}


def test_the_result_has_the_canonical_types_in_every_chunk() -> None:
    column = pa.chunked_array([pa.array([1, None], pa.int64()), pa.array([], pa.int64()), pa.array([3], pa.int64())])
    found = conform(pa.table({"n": column}), FIELDS, where="t")
    assert found.column("n").to_pylist() == [1, 7, 3]
    assert found.schema.field("n").type == pa.int32()


def test_without_filling_a_null_stays_one() -> None:
    with pytest.raises(InvalidInputError, match="NOT NULL"):
        conform(pa.table({"n": pa.array([None], pa.int32())}), FIELDS[:1], where="t", fill=False)
    with pytest.raises(InvalidInputError, match="lack the NOT NULL"):
        conform(pa.table({"s": ["a"]}), FIELDS, where="t", fill=False)


def test_a_value_that_does_not_fit_is_refused_beside_nulls_too() -> None:
    with pytest.raises(InvalidInputError, match="does not fit"):
        conform(pa.table({"n": [None, 2**40]}), FIELDS, where="t")
