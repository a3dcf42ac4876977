"""A filter that is made of values keeps each row that equals one of them, and says nothing where it cannot know."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.datatype import data_type
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import Field
from tablestore.types.filter.equalvalues import MOST_VALUES, where_equal
from tablestore.types.filter.filters import parse_filter
from tablestore.types.filter.predicate import FALSE, evaluate
from tablestore.types.filter.predicatetext import to_sql

UTC = dt.UTC
DAY, NOON = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12)


def column(kind: str) -> Field:
    return Field(id=0, name="odd `name", type=data_type(Cursor(kind)))


def kept(field: Field, given: pa.Array, rows: list[Any]) -> list[Any] | None:
    """Which rows the filter keeps, once it has been text; None without one."""
    predicate = where_equal(field, given)
    if predicate is None:
        return None
    batch = pa.table({field.name: pa.array(rows, to_arrow_type(field.type))})
    (found,) = batch.filter(evaluate(parse_filter(to_sql(predicate), [field]), batch)).columns
    return found.to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("kind", "given", "others"),
    [
        ("INT", pa.array([0, -5, 2**31 - 1]), [1, 7]),
        ("TINYINT", pa.array([-128, 127], pa.int64()), [0]),
        ("BIGINT", pa.array([0, 2**63 - 1], pa.uint64()), [-1]),
        ("DATE", pa.array([DAY, dt.date(1, 1, 1), dt.date(9999, 12, 31)]), [dt.date(2024, 3, 1)]),
        ("STRING", pa.array(["", "it's", "ä", "a\nb%_\\", "\U0001f600"]), ["A", "e\u0301"]),
        ("STRING", pa.array(["a"], pa.large_string()), ["A", "aa"]),
        ("STRING", pa.array(["a"], pa.string_view()), ["b"]),
        ("DECIMAL(38, 2)", pa.array([Decimal("0.10"), Decimal("-" + "9" * 30 + ".99")]), [Decimal("0.11")]),
        ("DECIMAL(9, 2)", pa.array([Decimal("1.50")], pa.decimal128(20, 2)), [Decimal("1.51")]),
        ("TIMESTAMP(6)", pa.array([NOON], pa.timestamp("us")), [NOON.replace(microsecond=1)]),
        ("TIMESTAMP(3)", pa.array([NOON], pa.timestamp("us")), [NOON.replace(microsecond=1000)]),
        (
            "TIMESTAMP_LTZ(6)",
            pa.array([NOON.replace(tzinfo=UTC)], pa.timestamp("us", "Asia/Tokyo")),
            [NOON.replace(hour=3, tzinfo=UTC)],
        ),
    ],
)
def test_few_values_are_kept_one_by_one(kind: str, given: pa.Array, others: list[Any]) -> None:
    equal = given.to_pylist()
    assert kept(column(kind), given, [*equal, *others, None]) == equal


@pytest.mark.parametrize(
    ("kind", "given", "rows", "wanted"),
    [
        ("INT", pa.array([*range(100), None]), [-1, 0, 50, 99, 100, None], [0, 50, 99]),
        ("INT", pa.array(range(2**31 - 50, 2**31 + 50)), [2**31 - 51, 2**31 - 50, 2**31 - 1], [2**31 - 50, 2**31 - 1]),
        ("TINYINT", pa.array(range(200, 400)), [-128, 127, None], []),
        ("STRING", pa.array([f"{n:03}" for n in range(100)]), ["", "000", "0500", "099", "0990", "ä"], ["000", "0500", "099"]),
        ("DATE", pa.array([DAY + dt.timedelta(n) for n in range(80)]), [DAY - dt.timedelta(1), DAY], [DAY]),
    ],
)
def test_of_many_values_the_ends_count(kind: str, given: pa.Array, rows: list[Any], wanted: list[Any]) -> None:
    assert len(given) > MOST_VALUES
    assert kept(column(kind), given, rows) == wanted
    assert kept(column(kind), pa.chunked_array([given.slice(0, 10), given.slice(10)]), rows) == wanted


def test_values_that_the_column_cannot_have_are_equal_to_none() -> None:
    assert kept(column("TINYINT"), pa.array([1000, 5]), [5, 127, None]) == [5]
    assert kept(column("TINYINT"), pa.array([1000]), [5, 127, None]) == []
    assert kept(column("TIMESTAMP(3)"), pa.array([NOON.replace(microsecond=1)]), [NOON, None]) == []


@pytest.mark.parametrize("given", [[], [None], [None] * 100])
def test_null_equals_nothing(given: list[Any]) -> None:
    assert where_equal(column("INT"), pa.array(given, pa.int32())) == FALSE


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("DOUBLE", pa.array([float("nan"), -0.0])),
        ("FLOAT", pa.array([1.0], pa.float32())),
        ("DOUBLE", pa.array([1])),
        ("BIGINT", pa.array([1.0])),
        ("INT", pa.array(["1"])),
        ("STRING", pa.array([1])),
        ("STRING", pa.array(["a"]).dictionary_encode()),
        ("CHAR(3)", pa.array(["a"])),
        ("BIGINT", pa.array([Decimal("1")])),
        ("DECIMAL(9, 2)", pa.array([Decimal("1.500")])),
        ("TIMESTAMP(6)", pa.array([NOON], pa.timestamp("us", "UTC"))),
        ("TIMESTAMP_LTZ(6)", pa.array([NOON], pa.timestamp("us"))),
        ("TIMESTAMP(9)", pa.array([0], pa.timestamp("us"))),
        ("TIMESTAMP(6)", pa.array([DAY])),
        ("DATE", pa.array([NOON])),
        ("DATE", pa.array([2**31 - 1], pa.int32()).cast(pa.date32())),
        ("DATE", pa.array([2**31 - 1] * 100, pa.int32()).cast(pa.date32())),
        ("STRING", pa.array(["x" * 2000])),
        ("BOOLEAN", pa.array([True])),
        ("ARRAY<INT>", pa.array([[1]])),
        ("INT", pa.array([None])),
    ],
)
def test_nothing_is_said_of_what_compares_otherwise(kind: str, given: pa.Array) -> None:
    assert where_equal(column(kind), given) is None
