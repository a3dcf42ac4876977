"""Constraints as conditions: what violates one, of every type, and what is no constraint."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.datatypes import Field
from tablestore.types.filter.constraints import (
    constraint_options,
    naming_constraints,
    parse_constraint,
    parse_constraints,
    stored_text,
    violations,
    violations_of_each,
)

NAN, WIDE = float("nan"), Decimal("99999999999999999999999999999999999.9")
ROW = pa.struct([("a", pa.int32())])


def fields_of(**types: pa.DataType) -> tuple[Field, ...]:
    return fields_from_arrow(pa.schema(list(types.items())))[0]


@pytest.mark.parametrize(
    ("kind", "text", "values", "violating"),
    [
        (pa.int32(), "x > 0", [1, 0, -1, None], [False, True, True, False]),
        (pa.int8(), "x <> 3", [3, 4, None], [True, False, False]),
        (pa.float64(), "x > 0", [1.0, 0.0, -0.0, NAN, None, -NAN], [False, True, True, False, False, False]),
        (pa.float64(), "x < 10", [NAN, 9.0], [True, False]),
        (pa.float32(), "x = 0", [0.0, -0.0, NAN], [False, False, True]),
        (pa.float64(), "x = CAST('NaN' AS DOUBLE)", [NAN, 1.0], [False, True]),
        (pa.decimal128(38, 1), "x < 99999999999999999999999999999999999.9", [WIDE, Decimal("0.1"), None], [True, False, False]),
        (pa.string(), "x LIKE 'a%'", ["ab", "b", None, "a"], [False, True, False, False]),
        (pa.string(), "length(x) <= 2", ["äö", "abc", None], [False, True, False]),
        (pa.string(), "x IN ('new', 'paid')", ["new", "x", None], [False, True, False]),
        (pa.string(), "x IS NOT NULL", ["", None], [False, True]),
        (pa.binary(), "x <> X'00'", [b"\0", b"\1"], [True, False]),
        (pa.bool_(), "x", [True, False, None], [False, True, False]),
        (pa.date32(), "x >= DATE '2024-01-01'", [dt.date(2024, 1, 1), dt.date(2023, 12, 31)], [False, True]),
        (
            pa.timestamp("us"),
            "x < TIMESTAMP '2024-01-01 00:00:00.000001'",
            [dt.datetime(2024, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1)],
            [False, True],
        ),
        (pa.timestamp("us", "UTC"), "x < TIMESTAMP '2024-01-01 00:00:00Z'", [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)], [True]),
        (ROW, "x IS NOT NULL", [{"a": None}, None], [False, True]),
        (pa.list_(pa.int32()), "x IS NOT NULL", [[], None], [False, True]),
    ],
)
def test_a_row_violates_a_constraint_where_it_is_false_and_not_where_it_is_unknown(
    kind: pa.DataType, text: str, values: list[Any], violating: list[bool]
) -> None:
    constraint = parse_constraint("c", text, fields_of(x=kind))
    rows = pa.table({"x": pa.array(values, kind)})
    assert violations(constraint, rows).tolist() == violating
    assert sorted(violations_of_each(constraint, rows)) == [place for place, violates in enumerate(violating) if violates]


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("y > 0", InvalidInputError, "'y', which does not exist"),
        ("x > 'a'", TablestoreError, "x > 'a'"),
        ("x + 1", InvalidInputError, "expected a condition"),
        ("1 = 1", InvalidInputError, "looks at no column"),
        ("TRUE", InvalidInputError, "looks at no column"),
        ("", InvalidInputError, "expected a condition as SQL text"),
        ("x >", InvalidInputError, "x >"),
        ("x > rand()", UnsupportedError, "is not one that every writer could check"),
        ("x > current_date()", UnsupportedError, "is not one that every writer could check"),
        ("x IN (SELECT 1)", TablestoreError, "SELECT 1"),
        ("r.a > 0", UnsupportedError, "neither fields of nested rows"),
        ("x > 0; DROP TABLE t", InvalidInputError, "DROP TABLE"),
        ("x > 0 -- " + "x" * 9000, InvalidInputError, "at most 8192 characters"),
    ],
)
def test_what_is_no_condition_that_every_writer_computes_is_refused_by_name(
    text: str, error: type[TablestoreError], words: str
) -> None:
    with pytest.raises(error) as raised:
        parse_constraint("c", text, fields_of(x=pa.int32(), r=ROW))
    assert words in str(raised.value)
    assert raised.value.kind == "invalid-constraint"


def test_a_row_for_which_a_constraint_cannot_be_computed_is_named() -> None:
    constraint = parse_constraint("c", "10 % x < 5", fields_of(x=pa.int32()))
    rows = pa.table({"x": pa.array([3, None, 6, 0, 7], pa.int32())})
    with pytest.raises(InvalidInputError, match="cannot be computed for the row with x = 0"):
        violations(constraint, rows)
    reasons = violations_of_each(constraint, rows)
    assert sorted(reasons) == [3]
    assert "cannot be computed: x = 0" in reasons[3]


def test_a_text_is_kept_on_one_line_and_without_comments_where_it_means_the_same() -> None:
    fields = fields_of(x=pa.int32(), y=pa.int32())
    assert stored_text("c", " x  IS NOT NULL ", fields) == "x  IS NOT NULL"
    assert stored_text("c", "x > 0 -- positive\n AND y < /* ! */ 3", fields) == "x > 0 AND y < 3"


@pytest.mark.parametrize("name", ["", " ", "a\nb", "x" * 129, 7])
def test_a_constraint_has_a_printable_name(name: Any) -> None:
    with pytest.raises(InvalidInputError, match="printable"):
        constraint_options({name: "x > 0"})


def test_two_constraints_differ_in_more_than_case() -> None:
    with pytest.raises(InvalidInputError, match="differ in upper and lower case"):
        parse_constraints(constraint_options({"a": "x > 0", "A": "x > 1"}), fields_of(x=pa.int32()))


def test_a_constraint_names_the_columns_that_it_looks_at_in_whatever_case() -> None:
    options = constraint_options({"one": "X > 0", "two": "x < `a b`", "three": "`a b` = 1", "broken": "???"})
    fields = fields_of(x=pa.int32(), **{"a b": pa.int32()}, z=pa.int32())
    assert naming_constraints(options, fields, "x") == ("one", "two", "broken")
    assert naming_constraints(options, fields, "z") == ("broken",)
