"""A filter written as SQL text and parsed again keeps the same rows."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.filter.filters import parse_filter
from tablestore.types.filter.predicate import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Comparison,
    IsIn,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    StartsWith,
    evaluate,
)
from tablestore.types.filter.predicatetext import to_sql

SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("s", pa.string()),
        ("f", pa.float64()),
        ("d", pa.date32()),
        ("t", pa.timestamp("us")),
        ("z", pa.timestamp("us", "UTC")),
        ("n", pa.timestamp("ns")),
        ("m", pa.decimal128(20, 4)),
        ("y", pa.binary()),
        ("b", pa.bool_()),
        ("od`d na.me", pa.int8()),
        ("order", pa.int8()),
        ("w", pa.time32("ms")),
    ]
)
FIELDS, _ = fields_from_arrow(SCHEMA)


@pytest.mark.parametrize(
    "predicate",
    [
        Comparison("=", "a", 5),
        Comparison("<", "a", -(2**63)),
        Comparison("!=", "s", "o'x\\y%\n"),
        Like("s", "a\\%b%_"),
        StartsWith("s", "50%_\\x"),
        Comparison(">", "f", 1e300),
        Comparison("<", "f", float("-inf")),
        Comparison("=", "d", dt.date(1, 1, 2)),
        Comparison("=", "t", dt.datetime(2020, 1, 1, 1, 2, 3, 5)),
        Comparison("=", "z", dt.datetime(2020, 1, 1, 1, 2, 3, 5, tzinfo=dt.UTC)),
        Comparison("=", "n", np.datetime64("2020-01-01T00:00:00.123456789", "ns")),
        Comparison("=", "m", Decimal("1.2500")),
        Comparison("=", "y", b"\x00'"),
        Comparison("=", "b", True),
        Comparison("=", "od`d na.me", 3),
        IsIn("order", (1, 2)),
        IsIn("a", (1, None)),
        Not(IsNull("a")),
        Or((Comparison("=", "a", 1), And((Comparison("=", "a", 2), IsNull("s"))))),
        Comparison("=", "w", dt.time(1, 2, 3, 4000)),
        TRUE,
        FALSE,
        UNKNOWN,
    ],
    ids=to_sql,
)
def test_the_text_of_a_filter_parses_to_the_same_filter(predicate: Predicate) -> None:
    assert parse_filter(to_sql(predicate), FIELDS) == predicate


@pytest.mark.parametrize("predicate", [IsIn("a", ()), Not(IsIn("a", ())), And(()), Or(()), Comparison("=", "f", float("nan"))])
def test_filters_without_a_text_of_their_own_keep_the_same_rows(predicate: Predicate) -> None:
    batch = pa.record_batch({"a": pa.array([1, None, 3]), "f": pa.array([float("nan"), 1.0, None])})
    again = parse_filter(to_sql(predicate), FIELDS)
    assert evaluate(again, batch).to_pylist() == evaluate(predicate, batch).to_pylist()
