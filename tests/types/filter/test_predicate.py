"""Predicates: row by row like a small oracle, by ranges never wrong, whatever the tree."""

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tablestore.errors import InvalidInputError
from tablestore.types.filter.predicate import (
    FALSE,
    TRUE,
    UNKNOWN,
    And,
    Comparison,
    Constant,
    IsIn,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    StartsWith,
    all_of,
    any_of,
    columns,
    conjuncts,
    equalities,
    evaluate,
    keep_only,
    push_negation,
)
from tablestore.types.filter.pruning import ColumnRange, may_match

NAN = math.nan
POOLS: dict[str, list[Any]] = {
    "i": [-5, 0, 1, 2, 7],
    "s": ["", "a", "ab", "b", "é", "\U0001f600", "\uffee", "a%_"],
    "m": [Decimal("-1.50"), Decimal("0.00"), Decimal("1.00"), Decimal("9999.99")],
    "t": [dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1), dt.datetime(2024, 2, 29, 1, 2, 3, 4)],
    "n": [np.datetime64(-1, "ns"), np.datetime64(0, "ns"), np.datetime64(123456789123456789, "ns")],
    "x": [-math.inf, -1.5, -0.0, 0.0, 2.5, math.inf, NAN],
    "b": [False, True],
    "d": [dt.date(1969, 12, 31), dt.date(2024, 1, 1)],
    "y": [b"", b"\x00", b"\xff", b"a"],
}
SCHEMA = pa.schema(
    [
        ("i", pa.int64()),
        ("s", pa.string()),
        ("m", pa.decimal128(6, 2)),
        ("t", pa.timestamp("us")),
        ("n", pa.timestamp("ns")),
        ("x", pa.float64()),
        ("b", pa.bool_()),
        ("d", pa.date32()),
        ("y", pa.binary()),
    ]
)
OPS = ["=", "!=", "<", "<=", ">", ">="]
QUICK = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def leaves(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from(sorted(POOLS)))
    kind = draw(st.integers(0, 9))
    if kind <= 4:
        return Comparison(draw(st.sampled_from(OPS)), name, draw(st.sampled_from(POOLS[name])))
    if kind == 5:
        return IsNull(name)
    if kind <= 7:
        values = draw(st.lists(st.sampled_from([*POOLS[name], None]), max_size=4))
        return IsIn(name, tuple(values))
    if kind == 8:
        return draw(st.sampled_from([StartsWith("s", "a"), StartsWith("s", ""), Like("s", "a_"), Like("s", "%b")]))
    return draw(st.sampled_from([TRUE, FALSE, UNKNOWN]))


predicates = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(lambda c: And(tuple(c)), st.lists(inner, max_size=3)),
        st.builds(lambda c: Or(tuple(c)), st.lists(inner, max_size=3)),
    ),
    max_leaves=6,
)
rows = st.fixed_dictionaries({name: st.sampled_from([*pool, None]) for name, pool in POOLS.items()})


def order(value: Any) -> Any:
    """A sort key: NaN above all numbers, text by its UTF-8 bytes."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value)
    return value.encode() if isinstance(value, str) else value


def compare(op: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    a, b = order(left), order(right)
    # numpy compares to a bool of its own.
    return bool({"=": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[op])


def any_true(results: list[bool | None]) -> bool | None:
    return True if True in results else None if None in results else False


def negate(result: bool | None) -> bool | None:
    return None if result is None else not result


def oracle(predicate: Predicate, row: dict[str, Any]) -> bool | None:
    match predicate:
        case Constant(value):
            return value
        case Comparison(op, field, literal):
            return compare(op, row[field], literal)
        case IsIn(field, values):
            return None if row[field] is None else any_true([compare("=", row[field], value) for value in values])
        case IsNull(field):
            return row[field] is None
        case StartsWith(field, prefix):
            return None if row[field] is None else row[field].startswith(prefix)
        case Like(field, "a_"):
            return None if row[field] is None else len(row[field]) == 2 and row[field][0] == "a"
        case Like(field, "%b"):
            return None if row[field] is None else row[field].endswith("b")
        case Not(child):
            return negate(oracle(child, row))
        case Or(children):
            return any_true([oracle(child, row) for child in children])
        case And(children):
            return negate(any_true([negate(oracle(child, row)) for child in children]))
    raise AssertionError(predicate)


def table_of(found: list[dict[str, Any]]) -> pa.Table:
    return pa.table(
        {
            field.name: pa.array(np.array([r["n"] for r in found], "datetime64[ns]"), field.type)
            if field.name == "n"
            else pa.array([r[field.name] for r in found], field.type)
            for field in SCHEMA
        }
    )


@QUICK
@given(predicates, st.lists(rows, min_size=1, max_size=8))
def test_evaluate_and_expression_keep_what_the_oracle_keeps(predicate: Predicate, found: list[dict[str, Any]]) -> None:
    table = table_of(found)
    expected = [oracle(predicate, row) is True for row in found]
    mask = evaluate(predicate, table)
    assert mask.null_count == 0 and mask.to_pylist() == expected
    assert [oracle(push_negation(predicate), row) for row in found] == [oracle(predicate, row) for row in found]


def truncated(values: list[str], draw: st.DrawFn) -> tuple[str | None, str | None]:
    """Bounds of text as writers shorten them: the low end cut, the high end cut and bumped."""
    low, high = min(values, key=order), max(values, key=order)
    if draw(st.booleans()):
        return low, high
    return low[:1], ("b" if high[:1] == "a" else None) if len(high) > 1 else high


@st.composite
def ranges_of(draw: st.DrawFn, found: list[dict[str, Any]]) -> dict[str, ColumnRange]:
    ranges = {}
    for name in POOLS:
        if draw(st.integers(0, 4)) == 0:
            continue
        values = [row[name] for row in found if row[name] is not None]
        numbers = [v for v in values if not (isinstance(v, float) and math.isnan(v))]
        low, high = None, None
        if numbers:
            low, high = truncated(numbers, draw) if name == "s" else (min(numbers), max(numbers))
        # Writers of other engines leave NaN out of the bounds.
        nan_free = len(numbers) == len(values) and draw(st.booleans())
        ranges[name] = ColumnRange(
            min=low if draw(st.integers(0, 5)) else None,
            max=high if draw(st.integers(0, 5)) else None,
            null_count=len(found) - len(values) if draw(st.integers(0, 3)) else None,
            row_count=len(found),
            nan_free=nan_free,
        )
    return ranges


@QUICK
@given(predicates, st.lists(rows, min_size=1, max_size=4), st.data())
def test_pruning_never_drops_a_file_with_a_kept_row(predicate: Predicate, found: list[dict[str, Any]], data: st.DataObject) -> None:
    ranges = data.draw(ranges_of(found))
    if any(oracle(predicate, row) is True for row in found):
        assert may_match(predicate, ranges)


@QUICK
@given(predicates, st.sets(st.sampled_from(sorted(POOLS))), st.lists(rows, min_size=1, max_size=6))
def test_keep_only_is_weaker_and_uses_only_those_columns(
    predicate: Predicate, names: set[str], found: list[dict[str, Any]]
) -> None:
    weaker = keep_only(predicate, names)
    assert columns(weaker) <= names
    for row in found:
        if weaker is not None and oracle(predicate, row) is True:
            assert oracle(weaker, row) is True


@pytest.mark.deep
@QUICK
@given(predicates, st.sampled_from([["i"], ["x"], ["b", "i"], ["s", "d"]]), st.lists(rows, min_size=1, max_size=6))
def test_equalities_name_every_key_that_a_kept_row_has(predicate: Predicate, names: list[str], found: list[dict[str, Any]]) -> None:
    keys = equalities(predicate, names)
    if keys is None:
        return
    assert len(keys) <= 64
    for row in found:
        if oracle(predicate, row) is True:
            assert any(all(repr(key[name]) == repr(row[name]) for name in names) for key in keys)


def known(low: Any, high: Any, nulls: int | None = 0, **more: Any) -> ColumnRange:
    return ColumnRange(min=low, max=high, null_count=nulls, row_count=10, **more)


@pytest.mark.parametrize(
    ("predicate", "column", "expected"),
    [
        (Comparison("=", "c", 8), known(3, 7), False),
        (Comparison("=", "c", 7), known(3, 7), True),
        (Comparison(">", "c", 7), known(3, 7), False),
        (Not(Comparison("<=", "c", 7)), known(3, 7), False),
        (Not(Comparison("=", "c", 3)), known(3, 3), False),
        (Comparison("!=", "c", 3), known(3, 3, 5), False),
        (IsNull("c"), known(3, 7), False),
        (IsNull("c"), known(3, 7, None), True),
        (Not(IsNull("c")), known(None, None, 10), False),
        (Comparison("<", "c", 5), known(None, None, 10), False),
        (Comparison("<", "c", 5), known(None, None, 3), True),
        (IsIn("c", (1, 2, None)), known(3, 7), False),
        (Not(IsIn("c", (3, None))), known(3, 7), False),
        (IsIn("c", ()), known(3, 7), False),
        (And((Comparison(">", "c", 5), Comparison("<", "c", 2))), known(3, 7), False),
        (StartsWith("c", "ab"), known("aa", "ac"), True),
        (StartsWith("c", "ab"), known("ac", "b"), False),
        (StartsWith("c", "b"), known("a", "ab"), False),
        (Not(StartsWith("c", "a")), known("aa", "az"), False),
        (Like("c", "ab%_"), known("ac", "b"), False),
        (Not(Like("c", "a%x")), known("aa", "az"), True),
        (Not(Like("c", "a_")), known("a", "a"), True),
        (Comparison("=", "c", "\U0001f600"), known("a", "\uffff"), False),
        (Comparison(">", "c", 5.0), known(1.0, 2.0), True),
        (Comparison(">", "c", 5.0), known(1.0, 2.0, nan_free=True), False),
        (Comparison("<", "c", 0.5), known(1.0, 2.0), False),
        (Comparison("=", "c", Decimal("1.5")), known(Decimal("1.51"), Decimal("9")), False),
        (Comparison("=", "c", dt.datetime(2024, 1, 1)), known(np.datetime64("2024-01-02", "ms"), None), False),
        (Comparison("=", "c", dt.datetime(2024, 1, 1)), known(np.datetime64("9999-01-02", "ms"), None), False),
        (Comparison("=", "c", dt.datetime(2024, 1, 1)), known(dt.date(2024, 1, 2), None), True),
        (Comparison("=", "c", 5), known("6", "7"), True),
        (UNKNOWN, known(1, 2), False),
        (Comparison("=", "other", 5), known(1, 2), True),
        (TRUE, known(1, 2), True),
        (None, known(1, 2), True),
        (TRUE, ColumnRange(min=None, max=None, null_count=0, row_count=0), False),
    ],
    ids=str,
)
def test_pruning_by_range(predicate: Predicate | None, column: ColumnRange, expected: bool) -> None:
    assert may_match(predicate, {"c": column}) is expected


def test_equalities_multiply_and_intersect() -> None:
    a, b = IsIn("a", (1, 2)), IsIn("b", ("x", "y", None))
    assert equalities(And((a, b)), ["a", "b"]) == [
        {"a": 1, "b": "x"},
        {"a": 1, "b": "y"},
        {"a": 2, "b": "x"},
        {"a": 2, "b": "y"},
    ]
    assert equalities(And((a, Comparison("=", "a", 2))), ["a"]) == [{"a": 2}]
    assert equalities(And((Comparison("=", "a", 3), a)), ["a"]) == []
    assert equalities(Or((a, Comparison("=", "a", 9))), ["a"]) == [{"a": 1}, {"a": 2}, {"a": 9}]
    assert equalities(IsNull("a"), ["a"]) == [{"a": None}]
    assert equalities(a, ["a", "b"]) is None
    assert equalities(Or((a, b)), ["a"]) is None
    assert equalities(None, ["a"]) is None
    assert equalities(IsIn("a", tuple(range(65))), ["a"]) is None


def test_equalities_know_both_zeros_and_give_up_on_nan() -> None:
    assert repr(equalities(Comparison("=", "x", 0.0), ["x"])) == "[{'x': 0.0}, {'x': -0.0}]"
    assert equalities(Comparison("=", "x", NAN), ["x"]) is None


def test_conjunctions_and_disjunctions_are_flattened() -> None:
    a, b, c = (IsNull(name) for name in "abc")
    assert conjuncts(And((a, And((b, TRUE)), c))) == (a, b, c)
    assert conjuncts(None) == ()
    assert all_of([a, And((b, c)), TRUE]) == And((a, b, c))
    assert any_of([a, Or((b, c)), FALSE]) == Or((a, b, c))
    assert (all_of([]), any_of([]), all_of([a]), any_of([a])) == (TRUE, FALSE, a, a)


def test_evaluate_takes_batches_dictionaries_and_empty_rows() -> None:
    batch = pa.record_batch({"s": pa.array(["a", None, "b"]).dictionary_encode()})
    assert evaluate(Comparison("=", "s", "a"), batch).to_pylist() == [True, False, False]
    assert evaluate(None, batch).to_pylist() == [True, True, True]
    assert evaluate(Constant(None), batch).to_pylist() == [False, False, False]
    assert evaluate(IsNull("s"), pa.table({"s": pa.array([], pa.string())})).to_pylist() == []


def test_unknown_column_and_operator_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="'nope'"):
        evaluate(IsNull("nope"), pa.table({"a": [1]}))
    with pytest.raises(InvalidInputError, match="=="):
        Comparison("==", "a", 1)  # type: ignore[arg-type]


def test_literal_of_another_type_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="int64"):
        evaluate(Comparison("=", "a", "text"), pa.table({"a": [1]}))


def test_zoned_nanoseconds_are_compared() -> None:
    values = pa.array([0, 5, None], pa.timestamp("ns", "UTC"))
    mask = evaluate(Comparison("=", "a", np.datetime64(5, "ns")), pa.table({"a": values}))
    assert mask.to_pylist() == [False, True, False]
