"""Weakens another library's condition to the predicate that a scan can apply (filter pushdown).

    condition of the library  ->  a weaker predicate, true wherever the condition is; and the columns that the condition names

The library tests its whole condition on the rows that come out, so what a predicate cannot say exactly is left out here. The
meaning is the library's own, down to NaN. A literal is taken only if it is of its column's kind: with another one a library
converts one side first, a decimal to a double say, and what is equal after that was not so before.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.recursion import deep_stack
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import Field, is_float
from tablestore.types.filter.arrowfilter import call_of, condition, read_expression
from tablestore.types.filter.filters import check_depth
from tablestore.types.filter.predicate import And, Comparison, IsNull, Predicate, keep_only

# Stands for what no predicate says: a test of no column, which is dropped with all that hangs on it.
UNSAID = IsNull("\0")
# Integers up to here are floats of either width.
_EXACT_FLOATS = 2**24


@dataclass(frozen=True, slots=True)
class PushedDown:
    """A pushed-down condition. ``predicate``: None if nothing could be taken over. ``columns``: those the condition names, None if
    they are not known."""

    predicate: Predicate | None
    columns: frozenset[str] | None


def push_expression(expression: pc.Expression, fields: Mapping[str, Field]) -> PushedDown:
    """Weakens an Arrow expression to a predicate over these columns."""
    named: set[str] = set()

    def column(names: Sequence[str]) -> Field | Predicate:
        named.add(names[0])
        return fields.get(names[0], UNSAID) if len(names) == 1 else UNSAID

    def read() -> Predicate:
        return condition(read_expression(expression, column, _part_of))

    try:
        return PushedDown(weakest(read, fields), frozenset(named))
    except UnsupportedError:
        # It names columns by their numbers, say.
        return PushedDown(None, None)


def weakest(read: Callable[[], Predicate], names: Collection[str]) -> Predicate | None:
    """A predicate over these columns that is true wherever the one that is read is, where :data:`UNSAID` may be anything."""
    try:
        with deep_stack():
            predicate = read()
            check_depth(predicate)
            return keep_only(predicate, names)
    except (InvalidInputError, RecursionError):
        return None


def _part_of(name: str, parts: Sequence[Any], options: Mapping[str, Any]) -> Predicate:
    match name, parts:
        case "match_like", _:
            # Arrow's % and _ match no line break, those of a predicate do.
            return UNSAID
        case "not_equal", [Field() as left, Field() as right] if left == right and is_float(left.type):
            return Comparison("=", left.name, np.nan)
        case "if_else", [first, second, pa.Scalar(is_valid=False)]:
            # DuckDB says so that a null is in no list.
            return And((condition(first), condition(second)))
    literals = [part for part in parts if isinstance(part, pa.Scalar)]
    if name == "is_in":
        literals += options["value_set"].values
    if not all(is_of_kind(part, literal) for part in parts if isinstance(part, Field) for literal in literals):
        return UNSAID
    try:
        return call_of(name, parts, dict(options))
    except (UnsupportedError, InvalidInputError):
        return UNSAID


def is_of_kind(field: Field, literal: pa.Scalar) -> bool:
    """True if a comparison of the column with the literal is exact, whatever the two are converted to."""
    column, kind = to_arrow_type(field.type), literal.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not literal.is_valid:
        return True
    if pa.types.is_floating(column):
        return _is_exact_float(literal.as_py(), narrow=pa.types.is_float32(column))
    if pa.types.is_timestamp(column):
        return pa.types.is_timestamp(kind) and (column.tz is None) == (kind.tz is None)
    if pa.types.is_integer(column):
        return pa.types.is_integer(kind) and not pa.types.is_uint64(kind)
    tests = next((tests for tests in _KINDS if any(test(column) for test in tests)), ())
    return any(test(kind) for test in tests)


_KINDS = (
    (pa.types.is_boolean,),
    (pa.types.is_decimal,),
    (pa.types.is_date32,),
    (pa.types.is_time,),
    (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary),
)


def _is_exact_float(value: object, *, narrow: bool) -> bool:
    if isinstance(value, int) and not isinstance(value, bool):
        return abs(value) <= _EXACT_FLOATS
    if not isinstance(value, float):
        return False
    with np.errstate(over="ignore"):
        return not narrow or value != value or float(np.float32(value)) == value
