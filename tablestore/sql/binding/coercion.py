"""Decides the type that holds values of several types, and the types of sums and quotients, by the rules of Spark's ANSI mode."""

from collections.abc import Iterable

from sqlglot import exp

from tablestore.sql.binding.sqltypes import (
    BIGINT,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    INTERVAL,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    SqlType,
    Type,
    array,
    decimal,
    map_of,
    struct_of,
)
from tablestore.types.datatypes import MAX_PRECISION

_LEAST_SCALE = 6
_ORDER = ("tinyint", "smallint", "int", "bigint")
_MOMENTS = (DATE, TIMESTAMP_NTZ, TIMESTAMP)


def common(types: Iterable[Type]) -> Type:
    """The type that holds any of several values; None where one of theirs is not known, or Spark finds none. VOID for no values."""
    result: Type = VOID
    for one in types:
        result = _common(result, one)
        if result is None:
            return None
    return result


def _common(left: Type, right: Type) -> Type:
    if left is None or right is None:
        return None
    if left == right:
        # Nanoseconds are left where both have them.
        return left if right.is_fine else right
    if VOID in (left, right):
        return right if left == VOID else left
    if left.is_number and right.is_number:
        return _common_number(left, right)
    if left in _MOMENTS and right in _MOMENTS:
        return max(left, right, key=_MOMENTS.index)
    if left.name == right.name == "array":
        return array(_common(left.parts[0], right.parts[0]))
    if left.name == right.name == "map":
        key, value = (_common(*parts) for parts in zip(left.parts, right.parts, strict=True))
        return map_of(key, value)
    if left.name == right.name == "struct":
        if len(left.parts) != len(right.parts):
            return None
        return struct_of(left.fields, tuple(_common(*parts) for parts in zip(left.parts, right.parts, strict=True)))
    if STRING in (left, right):
        other = right if left == STRING else left
        return BIGINT if other.is_integer else DOUBLE if other.is_number else None if other.is_nested else other
    return None


def _common_number(left: SqlType, right: SqlType) -> SqlType:
    if left.is_float or right.is_float:
        return FLOAT if left == right == FLOAT else DOUBLE
    if left.is_integer and right.is_integer:
        return max(left, right, key=lambda number: _ORDER.index(number.name))
    left, right = left.as_decimal, right.as_decimal
    scale = max(left.scale, right.scale)
    whole = max(left.precision - left.scale, right.precision - right.scale)
    # Digits before the point are kept first.
    return decimal(whole + scale, scale if whole + scale <= MAX_PRECISION else max(MAX_PRECISION - whole, 0))


def arithmetic(node: exp.Binary, left: Type, right: Type) -> Type:
    """The type of a sum, a difference, a product, a quotient or a remainder."""
    if isinstance(node, exp.IntDiv):
        return BIGINT
    if left is None or right is None:
        return None
    if left in _MOMENTS or right in _MOMENTS or INTERVAL in (left, right):
        return _moved(node, left, right)
    if isinstance(node, exp.Div) and left == VOID:
        return DOUBLE
    left, right = _number(left, right), _number(right, left)
    if not (left.is_number and right.is_number):
        return None
    if left.is_float or right.is_float:
        return FLOAT if left == right == FLOAT and not isinstance(node, exp.Div) else DOUBLE
    if left.is_integer and right.is_integer:
        return DOUBLE if isinstance(node, exp.Div) else common((left, right))
    digits = (written_digits(one, other) for one, other in ((node.this, right), (node.expression, left)))
    left_digits, right_digits = digits
    return _decimal(node, left_digits or left.as_decimal, right_digits or right.as_decimal)


def _number(operand: SqlType, other: SqlType) -> SqlType:
    """The type of number as which an operand is taken: a NULL has the type of the other one, a text is cast to it."""
    if operand == VOID:
        return DOUBLE if other in (STRING, VOID) else other
    if operand == STRING:
        return BIGINT if other.is_integer else DOUBLE
    return operand


def written_digits(operand: exp.Expr, other: SqlType) -> SqlType | None:
    """The digits of a whole number that is written beside a decimal; it has those of its type otherwise."""
    number = operand.unnest()
    if isinstance(number, exp.Neg):
        number = number.this
    if isinstance(number, exp.Cast) and _has_suffix(number.this):
        number = number.this
    if not other.is_decimal or not isinstance(number, exp.Literal) or number.is_string or not number.this.isdigit():
        return None
    return decimal(max(len(number.this.lstrip("0")), 1), 0)


def _has_suffix(number: exp.Expr) -> bool:
    """True if the type of a number stands behind it, as in ``2L``, which sqlglot has for a cast."""
    place = number.meta if isinstance(number, exp.Literal) and not number.is_string else {}
    return "start" in place and place["end"] - place["start"] + 1 > len(number.this)


def _moved(node: exp.Binary, left: SqlType, right: SqlType) -> Type:
    """The type of a moment to which something is added, or of the difference of two moments."""
    if left in _MOMENTS and right in _MOMENTS:
        return INTERVAL if isinstance(node, exp.Sub) else None
    moment, moved, by = (left, right, node.expression) if left in _MOMENTS else (right, left, node.this)
    if moment not in _MOMENTS:
        return left if left == INTERVAL else right if right == INTERVAL else None
    if moved == INTERVAL and moment == DATE:
        return DATE if isinstance(by, exp.Interval) and _is_of_days(by) else TIMESTAMP
    return moment if moved == INTERVAL or (moment == DATE and moved.is_integer) else None


def _is_of_days(interval: exp.Interval) -> bool:
    return str(interval.args.get("unit") or "").upper().rstrip("S") in ("DAY", "WEEK", "MONTH", "YEAR", "QUARTER", "YEAR TO MONTH")


def _decimal(node: exp.Expr, left: SqlType, right: SqlType) -> SqlType:
    """The type of a decimal result."""
    match node:
        case exp.Mul():
            return _adjusted(left.precision + right.precision + 1, left.scale + right.scale)
        case exp.Div():
            scale = max(_LEAST_SCALE, left.scale + right.precision + 1)
            return _adjusted(left.precision - left.scale + right.scale + scale, scale)
        case exp.Mod():
            scale = max(left.scale, right.scale)
            return _adjusted(min(left.precision - left.scale, right.precision - right.scale) + scale, scale)
        case _:
            scale = max(left.scale, right.scale)
            return _adjusted(max(left.precision - left.scale, right.precision - right.scale) + scale + 1, scale)


def _adjusted(precision: int, scale: int) -> SqlType:
    if precision <= MAX_PRECISION:
        return decimal(precision, scale)
    return decimal(MAX_PRECISION, max(MAX_PRECISION - (precision - scale), min(scale, _LEAST_SCALE)))


def literal(text: str) -> SqlType:
    """The type of a number that is written."""
    if "e" in text.lower():
        return DOUBLE
    whole, point, fraction = text.partition(".")
    digits = len((whole + fraction).lstrip("0"))
    if not point and int(text) < 2**63:
        return INT if int(text) < 2**31 else BIGINT
    return decimal(max(digits, len(fraction), 1), len(fraction))
