"""Decides whether an expression means the same here (:mod:`.evaluate`) and in every engine of SQL. Pure.

    expression, types of its columns  ->  its type, and whether it can fail; None: an engine has to compute it

The rule: each operator is listed with the types for which the values are Spark's, bit for bit, whatever rows there are. What is not
listed is not agreed on: other casts than of whole numbers and decimals, decimals that need more than 38 digits, divisions of
decimals, ``upper`` and ``round`` (texts and floats that libraries see differently), timestamps (their meaning depends on the time
zone of a session), nested values, and types that Spark would have to bring together, but for these:

    whole numbers        with each other, beside a DOUBLE (of 64 bits not in comparisons), beside a DECIMAL
    literals like 1.5    beside a DOUBLE, of at most 15 digits
    a text like a day    beside a DATE, as a literal

An overflow or a division by zero fails here and there, so a value may do that: whoever computes it asks an engine then, for its
error. A condition may not, as it depends on the engine which rows are asked at all.
"""

import datetime as dt
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import pyarrow as pa

from tablestore.recursion import deep_stack
from tablestore.types.arrowtypes import to_arrow_type
from tablestore.types.datatypes import MAX_LENGTH, MAX_PRECISION, TEXT_ROOTS, AtomicType, DataType
from tablestore.types.expression.coercion import Datum, Decimals
from tablestore.types.expression.expression import Call, Cast, Column, Expression, Value

_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
# So many digits are exact as a double, and so is the power of ten that they are divided by.
_DOUBLE_DIGITS = 15
# Spark changes the sign of a decimal with so many digits; those behind it are rounded away.
_SIGNED_DIGITS = 34
_LEAST_DOUBLE = 1e-300
_NO_TYPE = pa.null()


@dataclass(frozen=True, slots=True)
class Agreed:
    """The type of an expression; ``literal``: its value, where it is one; ``fails``: some values of its columns are an error."""

    type: pa.DataType
    literal: pa.Scalar | None = None
    fails: bool = False

    @property
    def datum(self) -> Datum:
        """A value of its type, of which the digits are known."""
        return pa.nulls(0, self.type) if self.literal is None else self.literal


TypeOf = Callable[[str], pa.DataType]


def agreed_type(expression: Expression, type_of: TypeOf) -> pa.DataType | None:
    """The type of an expression that has the same values everywhere; None for others."""
    with deep_stack():
        agreed = _agreed(expression, type_of)
    return None if agreed is None else agreed.type


def agreed_value(expression: Expression, type_of: TypeOf, target_type: DataType) -> bool:
    """True if an expression, assigned to a column of a type, gives it the same values everywhere, or fails everywhere."""
    with deep_stack():
        agreed = _agreed(expression, type_of)
    return agreed is not None and agreed_store(agreed, target_type)


def agreed_condition(expression: Expression, type_of: TypeOf) -> bool:
    """True if a condition holds for the same rows everywhere, and never fails."""
    with deep_stack():
        agreed = _agreed(expression, type_of)
    return agreed is not None and pa.types.is_boolean(agreed.type) and not agreed.fails


def agreed_store(value: Agreed, target_type: DataType) -> bool:
    """True if a column takes a value, and casts it to its type in the same way everywhere."""
    if not isinstance(target_type, AtomicType):
        return False
    value_type, kind = value.type, to_arrow_type(target_type)
    if value_type == kind:
        return _is_plain(value_type)
    if value_type == _NO_TYPE:
        return True
    if pa.types.is_integer(value_type):
        return _is_number(kind) and kind != pa.float32()
    if pa.types.is_decimal(value_type):
        return pa.types.is_decimal(kind) or (kind == pa.float64() and _is_short(value))
    return False


def _is_plain(kind: pa.DataType) -> bool:
    return bool(_is_number(kind) or kind in (pa.bool_(), pa.string(), pa.binary(), pa.date32()))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_decimal(kind) or kind in (pa.float32(), pa.float64()))


def _is_short(value: Agreed) -> bool:
    return value.literal is not None and pa.types.is_decimal(value.type) and value.type.precision <= _DOUBLE_DIGITS


def _agreed(expression: Expression, type_of: TypeOf) -> Agreed | None:
    match expression:
        case Column(name):
            return Agreed(type_of(name))
        case Value(value):
            return Agreed(value.type, value) if _is_literal(value) else None
        case Cast(argument, kind):
            inner = _agreed(argument, type_of)
            return None if inner is None else _cast(inner, kind)
        case Call("case", arguments):
            return _case([_agreed(part, type_of) for part in arguments])
        case Call(function, arguments):
            parts: list[Agreed] = []
            for argument in arguments:
                if (part := _agreed(argument, type_of)) is None:
                    return None
                parts.append(part)
            return _call(function, parts)


def _is_literal(value: pa.Scalar) -> bool:
    """True for NULL and for what texts spell; what overflows or vanishes as a DOUBLE (1e400, 1e-400) some engines refuse."""
    if not value.is_valid:
        return bool(value.type == _NO_TYPE)
    return bool(value.type != pa.float64() or _LEAST_DOUBLE <= abs(value.as_py()) < math.inf)


def _call(function: str, parts: Sequence[Agreed]) -> Agreed | None:
    if function == "IS NULL":
        return Agreed(pa.bool_(), fails=parts[0].fails)
    if not all(map(_is_plain, map(attrgetter("type"), parts))):
        return None
    result = _RULES[function](parts) if function in _RULES else None
    if result is None:
        return None
    return replace(result, literal=None, fails=result.fails or any(map(attrgetter("fails"), parts)))


def _cast(value: Agreed, target_type: DataType) -> Agreed | None:
    if not isinstance(target_type, AtomicType):
        return None
    kind = to_arrow_type(target_type)
    if value.type == kind and _is_plain(kind) and target_type.root not in TEXT_ROOTS:
        return replace(value, literal=None)
    if pa.types.is_date(kind):
        return Agreed(kind) if _is_day(value) else None
    if pa.types.is_integer(value.type):
        if target_type.root in TEXT_ROOTS:
            return Agreed(kind, fails=value.fails) if target_type.length == MAX_LENGTH else None
        return Agreed(kind, fails=True) if _is_number(kind) and kind != pa.float32() else None
    return Agreed(kind, fails=True) if pa.types.is_decimal(value.type) and pa.types.is_decimal(kind) else None


def _is_day(value: Agreed) -> bool:
    text = value.literal.as_py() if value.literal is not None else None
    if not isinstance(text, str) or not _DAY.fullmatch(text):
        return False
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _case(parts: Sequence[Agreed | None]) -> Agreed | None:
    known_parts = [part for part in parts if part is not None]
    conditions, values = known_parts[:-1:2], [*known_parts[1::2], known_parts[-1]] if known_parts else []
    if len(known_parts) < len(parts) or not all(pa.types.is_boolean(one.type) for one in conditions):
        return None
    common = _together([value for value in values if value.type != _NO_TYPE])
    return None if common is None else replace(common, fails=any(part.fails for part in known_parts))


def _together(values: Sequence[Agreed]) -> Agreed | None:
    """The type that values have as one."""
    if not values or not all(_is_plain(value.type) for value in values):
        return None
    kinds = {value.type for value in values}
    if len(kinds) == 1:
        return Agreed(values[0].type)
    if all(map(pa.types.is_integer, kinds)):
        return Agreed(max(kinds, key=lambda kind: kind.bit_width))
    doubles = (pa.types.is_integer(value.type) or _is_double(value) for value in values)
    return Agreed(pa.float64()) if pa.float64() in kinds and all(doubles) else None


def _is_double(value: Agreed) -> bool:
    """True for a DOUBLE, and for what is one exactly."""
    return value.type == pa.float64() or (pa.types.is_integer(value.type) and value.type.bit_width <= 32) or _is_short(value)


# -- operators


def _compares(left: Agreed, right: Agreed) -> bool:
    kinds = {left.type, right.type}
    if len(kinds) == 1 or all(map(pa.types.is_integer, kinds)):
        return True
    if pa.date32() in kinds:
        return _is_day(right if left.type == pa.date32() else left)
    if pa.float64() in kinds:
        return _is_double(left) and _is_double(right)
    if _are_exact(left, right):
        digits = [Decimals.of(one.datum) for one in (left, right)]
        return max(one.precision - one.scale for one in digits) + max(one.scale for one in digits) <= MAX_PRECISION
    return False


def _are_exact(*values: Agreed) -> bool:
    return all(pa.types.is_integer(one.type) or pa.types.is_decimal(one.type) for one in values)


def _comparison(parts: Sequence[Agreed]) -> Agreed | None:
    left, right = parts
    return Agreed(pa.bool_()) if _compares(left, right) else None


def _order(parts: Sequence[Agreed]) -> Agreed | None:
    return None if any(pa.types.is_boolean(one.type) for one in parts) else _comparison(parts)


def _membership(parts: Sequence[Agreed]) -> Agreed | None:
    value, *candidates = parts
    alike = len({one.type for one in candidates}) == 1 or all(pa.types.is_integer(one.type) for one in candidates)
    return Agreed(pa.bool_()) if alike and all(_compares(value, one) for one in candidates) else None


def _logic(parts: Sequence[Agreed]) -> Agreed | None:
    return Agreed(pa.bool_()) if all(pa.types.is_boolean(one.type) for one in parts) else None


def _sum(parts: Sequence[Agreed]) -> Agreed | None:
    if len(parts) == 1:
        return _signed(parts)

    def digits(first: Decimals, second: Decimals) -> Decimals:
        scale = max(first.scale, second.scale)
        return Decimals(max(first.precision - first.scale, second.precision - second.scale) + scale + 1, scale)

    return _arithmetic(parts, digits)


def _product(parts: Sequence[Agreed]) -> Agreed | None:
    return _arithmetic(parts, lambda one, two: Decimals(one.precision + two.precision + 1, one.scale + two.scale))


def _arithmetic(parts: Sequence[Agreed], digits: Callable[[Decimals, Decimals], Decimals]) -> Agreed | None:
    if all(one.type == pa.float32() for one in parts):
        return Agreed(pa.float32())
    if _are_exact(*parts) and not all(pa.types.is_integer(one.type) for one in parts):
        left, right = parts
        result_digits = digits(Decimals.of(left.datum), Decimals.of(right.datum))
        return Agreed(result_digits.type(), fails=True) if result_digits.precision <= MAX_PRECISION else None
    found_type = _together(parts)
    if found_type is None or not _is_number(found_type.type):
        return None
    return replace(found_type, fails=pa.types.is_integer(found_type.type))


def _quotient(parts: Sequence[Agreed]) -> Agreed | None:
    doubles = all(pa.types.is_integer(one.type) or _is_double(one) for one in parts)
    whole = any(pa.types.is_decimal(one.type) for one in parts) and pa.float64() not in [one.type for one in parts]
    return Agreed(pa.float64(), fails=True) if doubles and not whole else None


def _remainder(parts: Sequence[Agreed]) -> Agreed | None:
    common = _together(parts)
    if common is None or not (pa.types.is_integer(common.type) or common.type == pa.float64()):
        return None
    divisor = parts[1].literal
    return replace(common, fails=divisor is None or not divisor.as_py())


def _signed(parts: Sequence[Agreed]) -> Agreed | None:
    (number,) = parts
    if not _is_number(number.type) or (pa.types.is_decimal(number.type) and number.type.precision > _SIGNED_DIGITS):
        return None
    return Agreed(number.type, fails=pa.types.is_integer(number.type))


# -- functions


def _of_texts(result_type: pa.DataType) -> Callable[[Sequence[Agreed]], Agreed | None]:
    return lambda parts: Agreed(result_type) if all(one.type == pa.string() for one in parts) else None


def _search(parts: Sequence[Agreed]) -> Agreed | None:
    """A search for a literal, which has no escapes where it is a pattern."""
    text, *patterns = parts
    literal = all(one.literal is not None and one.type == pa.string() and "\\" not in one.literal.as_py() for one in patterns)
    return Agreed(pa.bool_()) if literal and text.type == pa.string() else None


def _replacement(parts: Sequence[Agreed]) -> Agreed | None:
    if _search(parts) is None or len(parts) < 3 or parts[1].literal is None or not parts[1].literal.as_py():
        return None
    return Agreed(pa.string())


def _substring(parts: Sequence[Agreed]) -> Agreed | None:
    text, *numbers = parts
    literals = [one.literal.as_py() for one in numbers if one.literal is not None and pa.types.is_integer(one.type)]
    if text.type != pa.string() or len(literals) < len(numbers) or literals[0] < 1 or literals[-1] < 0:
        return None
    return Agreed(pa.string())


def _null_if(parts: Sequence[Agreed]) -> Agreed | None:
    left, _ = parts
    common = _together(parts)
    return Agreed(left.type) if common is not None and common.type == left.type and _comparison(parts) else None


def _extreme(parts: Sequence[Agreed]) -> Agreed | None:
    common = _together(parts)
    return common if common is not None and (pa.types.is_integer(common.type) or common.type == pa.date32()) else None


def _part_of_day(parts: Sequence[Agreed]) -> Agreed | None:
    return Agreed(pa.int32()) if parts[0].type == pa.date32() else None


_RULES: dict[str, Callable[[Sequence[Agreed]], Agreed | None]] = {
    **dict.fromkeys(("=", "!=", "<=>"), _comparison),
    **dict.fromkeys(("<", "<=", ">", ">="), _order),
    **dict.fromkeys(("AND", "OR", "NOT"), _logic),
    "IN": _membership,
    "LIKE": _search,
    **dict.fromkeys(("+", "-"), _sum),
    "*": _product,
    "/": _quotient,
    "%": _remainder,
    "abs": _signed,
    "||": _of_texts(pa.string()),
    **dict.fromkeys(("trim", "ltrim", "rtrim"), _of_texts(pa.string())),
    "length": _of_texts(pa.int32()),
    **dict.fromkeys(("startswith", "endswith", "contains"), _search),
    "replace": _replacement,
    "substring": _substring,
    "coalesce": _together,
    "nullif": _null_if,
    **dict.fromkeys(("greatest", "least"), _extreme),
    **dict.fromkeys(("year", "month", "day"), _part_of_day),
}
