"""Evaluates a scalar expression over the rows of a batch.

Over no rows the result has a type all the same: that is how an expression is checked before a row is read.

    case(…)       a condition is asked of the rows that none before it took, a value is computed for the rows that it is for:
                  CASE WHEN b <> 0 THEN a / b END divides by no zero
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.recursion import deep_stack
from tablestore.types.arrays import Mask, Places
from tablestore.types.arrowtypes import says_no_type
from tablestore.types.expression.coercion import Datum, cast_datum, cast_to, together
from tablestore.types.expression.expression import Call, Cast, Column, Expression, Value, expression_text
from tablestore.types.expression.functions import FUNCTIONS

CASE = "case"


@dataclass(frozen=True, slots=True)
class ColumnValues:
    """Rows that expressions are computed over: so many, and the values of their columns."""

    count: int
    column: Callable[[Column], pa.Array]

    def take(self, places: Places) -> "ColumnValues":
        """Some of the rows."""
        if len(places) == self.count:
            return self
        chosen = pa.array(places)
        return ColumnValues(len(places), lambda column: self.column(column).take(chosen))


def evaluate_expression(expression: Expression, rows: ColumnValues) -> pa.Array:
    """The values. Raises InvalidInputError for values that do not fit, UnsupportedError for functions and types without
    support here."""
    with deep_stack():
        datum = _datum(expression, rows)
    if not isinstance(datum, pa.Scalar):
        return datum
    # Arrow repeats no list zero times, and no struct in which a field is of no type.
    if not rows.count:
        return pa.nulls(0, datum.type)
    if says_no_type(datum.type):
        return pa.array([datum.as_py()], datum.type).take(pa.array(np.zeros(rows.count, np.int64)))
    return pa.repeat(datum, rows.count)


def holds(condition: Expression, rows: ColumnValues) -> Mask:
    """The mask of the rows for which a condition is true. Raises as :func:`evaluate_expression`, also for what is no condition."""
    values = evaluate_expression(condition, rows)
    if not (pa.types.is_boolean(values.type) or pa.types.is_null(values.type)):
        raise InvalidInputError(
            f"expected a condition, found {expression_text(condition)}, which is {values.type}", kind="type-mismatch"
        )
    return np.asarray(pc.fill_null(cast_datum(values, pa.bool_()), False))


def _datum(expression: Expression, rows: ColumnValues) -> Datum:
    match expression:
        case Column():
            column = rows.column(expression)
            return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        case Value(value):
            return value
        case Call("case", arguments):
            return _case(arguments, rows, expression)
        case Cast(argument, kind):
            datum = _datum(argument, rows)
            return _guarded(lambda: cast_to(datum, kind), expression)
        case Call(function, arguments):
            data = [_datum(argument, rows) for argument in arguments]
            return _guarded(lambda: FUNCTIONS[function](data), expression)


def _case(arguments: tuple[Expression, ...], rows: ColumnValues, whole: Expression) -> pa.Array:
    left = np.arange(rows.count)
    places, values = [], []
    for condition, value in zip(arguments[:-1:2], arguments[1::2], strict=True):
        some = rows.take(left)
        chosen = holds(condition, some)
        places.append(left[chosen])
        values.append(evaluate_expression(value, rows.take(left[chosen])))
        left = left[~chosen]
    places.append(left)
    values.append(evaluate_expression(arguments[-1], rows.take(left)))
    together_values = _guarded(lambda: together(values), whole)
    order = np.argsort(np.concatenate(places), kind="stable")
    return pa.concat_arrays(together_values).take(pa.array(order))


def _guarded(compute: Callable[[], Datum], expression: Expression) -> Datum:
    """The computed value; an error names the part of the expression that it is about."""
    try:
        return compute()
    except TablestoreError as error:
        raise type(error)(f"in {_short(expression)}: {error}", kind=error.kind) from error
    except pa.ArrowInvalid as error:
        raise InvalidInputError(f"in {_short(expression)}: a value does not fit ({error})", kind="wrong-value") from error
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError, TypeError, ValueError, OverflowError) as error:
        raise UnsupportedError(
            f"{_short(expression)} is not computed here ({error}); run the statement with SQL: tablestore.TableEnvironment",
            kind="unsupported-filter",
        ) from error


def _short(expression: Expression) -> str:
    text = expression_text(expression)
    return text if len(text) <= 200 else text[:200] + "…"
