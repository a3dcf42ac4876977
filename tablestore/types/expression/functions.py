"""Functions of scalar expressions, each from Arrow data to Arrow data: NULL gives NULL where nothing else is said.

Numbers as in SQL's ANSI mode: an overflow and a division by zero are errors, ``/`` of whole numbers has a fraction. Floats are
ordered as in filters: NaN equals NaN and is the greatest number, -0.0 equals 0.0.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.types.expression.coercion import Datum, Decimals, cast_datum, exact, is_number, is_text, rounded_to, together, wide

Function = Callable[[Sequence[Datum]], Datum]

# -- logic and comparisons


def _conditions(data: Sequence[Datum]) -> list[Datum]:
    for datum in data:
        if not (pa.types.is_boolean(datum.type) or pa.types.is_null(datum.type)):
            raise _takes("conditions", datum)
    return [cast_datum(datum, pa.bool_()) for datum in data]


def _joined(join: Callable[[Datum, Datum], Datum], data: Sequence[Datum]) -> Datum:
    return reduce(join, _conditions(data))


def _not(data: Sequence[Datum]) -> Datum:
    return pc.invert(*_conditions(data))


def _compared(compare: Callable[[Datum, Datum], Datum], data: Sequence[Datum]) -> Datum:
    left, right = together(data)
    if pa.types.is_null(left.type):
        return pa.scalar(None, pa.bool_())
    return compare(left, right)


def _is_among(data: Sequence[Datum]) -> Datum:
    value, *candidates = data
    return reduce(pc.or_kleene, (cast_datum(_compared(_equal, [value, one]), pa.bool_()) for one in candidates))


def _equal(left: Datum, right: Datum) -> Datum:
    result = pc.equal(left, right)
    return pc.or_(result, pc.and_(pc.is_nan(left), pc.is_nan(right))) if pa.types.is_floating(left.type) else result


def _less(left: Datum, right: Datum) -> Datum:
    result = pc.less(left, right)
    return pc.or_(result, pc.and_not(pc.is_nan(right), pc.is_nan(left))) if pa.types.is_floating(left.type) else result


def _same(left: Datum, right: Datum) -> Datum:
    return pc.or_(pc.fill_null(_equal(left, right), False), pc.and_(pc.is_null(left), pc.is_null(right)))


def _null_safe_equal(data: Sequence[Datum]) -> Datum:
    left, right = together(data)
    return pc.is_null(left) if pa.types.is_null(right.type) else _same(left, right)


# -- numbers

_MOST_PLACES = 400


def _numbers(data: Sequence[Datum]) -> list[Datum]:
    for datum in data:
        if not (is_number(datum.type) or pa.types.is_null(datum.type)):
            raise _takes("numbers", datum)
    return together([cast_datum(d, pa.int32()) if pa.types.is_null(d.type) else d for d in data])


def _sum(compute: Callable[[Datum, Datum], Datum], data: Sequence[Datum]) -> Datum:
    left, right = _numbers(data)
    if not pa.types.is_decimal(left.type):
        return compute(left, right)
    first, second = map(Decimals.of, _digits(data))
    scale = max(first.scale, second.scale)
    digits = Decimals(scale + max(first.precision - first.scale, second.precision - second.scale) + 1, scale)
    return rounded_to(compute(*(wide(datum, scale) for datum in data)), digits.type())


def _product(data: Sequence[Datum]) -> Datum:
    left, right = _numbers(data)
    if not pa.types.is_decimal(left.type):
        return pc.multiply_checked(left, right)
    first, second = map(Decimals.of, _digits(data))
    digits = Decimals(first.precision + second.precision + 1, first.scale + second.scale)
    return rounded_to(pc.multiply_checked(exact(data[0], first), exact(data[1], second)), digits.type())


def _quotient(data: Sequence[Datum]) -> Datum:
    left, right = _numbers(data)
    _check_divisor(left, right)
    if not pa.types.is_decimal(left.type):
        return pc.divide_checked(*(cast_datum(datum, pa.float64()) for datum in (left, right)))
    first, second = map(Decimals.of, _digits(data))
    scale = max(6, first.scale + second.precision + 1)
    digits = Decimals(first.precision - first.scale + second.scale + scale, scale)
    # Arrow gives as many digits behind the point as the scale of the first and the digits of the second; one more, to round by.
    more = first.scale + second.scale + max(0, 6 - first.scale - second.precision) + 1
    dividend = Decimals(first.precision - first.scale + more, more)
    return rounded_to(pc.divide(exact(data[0], dividend), exact(data[1], second)), digits.type())


def _remainder(data: Sequence[Datum]) -> Datum:
    left, right = _numbers(data)
    _check_divisor(left, right)
    if pa.types.is_decimal(left.type):
        raise UnsupportedError("% of decimals is not computed here; cast them to BIGINT or DOUBLE", kind="unsupported-filter")
    null = pc.or_(pc.is_null(left), pc.is_null(right))
    # 1 % 1 where one of them is null.
    operands = [_as_numpy(pc.fill_null(datum, pa.scalar(1).cast(datum.type))) for datum in (left, right)]
    with np.errstate(invalid="ignore"):  # The remainder of an infinity is NaN, as in SQL.
        values = np.fmod(*operands)
    remainders = pa.array(values, left.type) if values.ndim else pa.scalar(values, left.type)
    return pc.if_else(null, pa.scalar(None, left.type), remainders)


def _as_numpy(datum: Datum) -> np.ndarray:
    kind = datum.type.to_pandas_dtype()
    return np.asarray(datum.as_py() if isinstance(datum, pa.Scalar) else datum, kind)


def _digits(data: Sequence[Datum]) -> list[Datum]:
    return [cast_datum(datum, pa.int32()) if pa.types.is_null(datum.type) else datum for datum in data]


def _check_divisor(left: Datum, right: Datum) -> None:
    zero = pc.and_(pc.equal(pc.sign(right), 0), pc.is_valid(left))
    if zero.as_py() if isinstance(zero, pa.Scalar) else pc.any(zero).as_py():
        raise InvalidInputError("a division by zero; leave such rows out, or divide by nullif(…, 0)", kind="division-by-zero")


def _of_number(compute: Callable[[Datum], Datum], data: Sequence[Datum]) -> Datum:
    (number,) = _numbers(data)
    return compute(number)


def _whole(compute: Callable[[Datum], Datum], data: Sequence[Datum]) -> Datum:
    """FLOOR and CEIL: whole numbers."""
    (number,) = _numbers(data)
    if pa.types.is_integer(number.type):
        return number.cast(pa.int64())
    if pa.types.is_decimal(number.type):
        kind = pa.decimal128(min(38, number.type.precision - number.type.scale + 1), 0)
        return rounded_to(compute(number.cast(pa.decimal256(75, number.type.scale))), kind)
    return cast_datum(compute(number), pa.int64())


def _round(data: Sequence[Datum]) -> Datum:
    (number,) = _numbers(data[:1])
    digits = _constant(data[1], "the number of digits of round") if len(data) > 1 else 0
    if not isinstance(digits, int):
        raise _takes("a whole number of digits", data[1])
    # Arrow computes the power of ten step by step, and no number has more digits than these.
    digits = max(-_MOST_PLACES, min(digits, _MOST_PLACES))
    if pa.types.is_integer(number.type):
        return number if digits >= 0 else pc.round(number, digits, "half_towards_infinity").cast(number.type)
    if not pa.types.is_decimal(number.type):
        return pc.round(number, digits, "half_towards_infinity")
    of = Decimals.of(number)
    scale = min(of.scale, max(digits, 0))
    moved = pc.round(number.cast(pa.decimal256(75, of.scale)), digits, "half_towards_infinity")
    return rounded_to(moved, Decimals(min(38, of.precision - of.scale + scale + 1), scale).type())


# -- texts


def _texts(data: Sequence[Datum]) -> list[Datum]:
    for datum in data:
        if not (is_text(datum.type) or pa.types.is_null(datum.type)):
            raise _takes("texts", datum)
    return [cast_datum(datum, pa.string()) for datum in data]


def _of_text(compute: Callable[..., Datum], data: Sequence[Datum], **options: Any) -> Datum:
    (text,) = _texts(data)
    return compute(text, **options)


def _concatenated(data: Sequence[Datum]) -> Datum:
    simple = [cast_datum(d, pa.string()) if pa.types.is_integer(d.type) or pa.types.is_boolean(d.type) else d for d in data]
    return pc.binary_join_element_wise(*_texts(simple), "", null_handling="emit_null")


def _length(data: Sequence[Datum]) -> Datum:
    if len(data) == 1 and pa.types.is_binary(data[0].type):
        return pc.binary_length(data[0]).cast(pa.int32())
    return pc.utf8_length(*_texts(data)).cast(pa.int32())


def _substring(data: Sequence[Datum]) -> Datum:
    (text,) = _texts(data[:1])
    start = _constant(data[1], "the start of substring")
    size = _constant(data[2], "the length of substring") if len(data) > 2 else None
    if start < 0:
        # From the end; a start before the first character takes from the length.
        if size is not None:
            raise UnsupportedError("substring from the end takes no length here", kind="unsupported-filter")
        return pc.utf8_slice_codeunits(text, start)
    # The first character is 1, and 0 is it too.
    first = max(start - 1, 0)
    return pc.utf8_slice_codeunits(text, first, None if size is None else max(first + size, first))


def _replaced(data: Sequence[Datum]) -> Datum:
    (text,) = _texts(data[:1])
    pattern, other = (_constant_text(datum, "replace") for datum in data[1:])
    return text if not pattern else pc.replace_substring(text, pattern=pattern, replacement=other)


def _matching(compute: Callable[..., Datum], name: str, data: Sequence[Datum]) -> Datum:
    (text,) = _texts(data[:1])
    return compute(text, pattern=_constant_text(data[1], name))


def _like(data: Sequence[Datum]) -> Datum:
    (text,) = _texts(data[:1])
    return pc.match_substring_regex(text, pattern=like_regex(_constant_text(data[1], "LIKE")))


def like_regex(pattern: str) -> str:
    """The RE2 expression that matches what the LIKE pattern matches."""
    parts, escaped = [], False
    for char in pattern:
        if escaped:
            parts.append(_quoted(char))
        elif char == "%":
            parts.append(".*")
        elif char == "_":
            parts.append(".")
        elif char != "\\":
            parts.append(_quoted(char))
        escaped = char == "\\" and not escaped
    return r"(?s)\A" + "".join(parts) + r"\z"


def _quoted(char: str) -> str:
    return char if char.isalnum() or ord(char) > 127 else f"\\x{{{ord(char):x}}}"


def _constant_text(datum: Datum, where: str) -> str:
    value = _constant(datum, f"what {where} looks for")
    if not isinstance(value, str):
        raise _takes("texts", datum)
    return value


# -- choices


def _coalesced(data: Sequence[Datum]) -> Datum:
    return pc.coalesce(*together(data))


def _null_if(data: Sequence[Datum]) -> Datum:
    left, right = together(data)
    if pa.types.is_null(left.type):
        return left
    return pc.if_else(
        pc.fill_null(_equal(left, right), False), pa.scalar(None, left.type), data[0] if data[0].type == left.type else left
    )


def _extreme(is_better: Callable[[Datum, Datum], Datum], data: Sequence[Datum]) -> Datum:
    """The greatest or least of those that are not NULL."""

    def better(left: Datum, right: Datum) -> Datum:
        chosen = pc.if_else(pc.fill_null(is_better(right, left), False), right, left)
        return pc.coalesce(chosen, left, right)

    values = together(data)
    return values[0] if pa.types.is_null(values[0].type) else reduce(better, values)


# -- moments


def _of_moment(compute: Callable[[Datum], Datum], data: Sequence[Datum]) -> Datum:
    (moment,) = data
    if not (pa.types.is_date(moment.type) or pa.types.is_timestamp(moment.type) or pa.types.is_null(moment.type)):
        raise _takes("dates and timestamps", moment)
    return compute(cast_datum(moment, pa.date32()) if pa.types.is_null(moment.type) else moment).cast(pa.int32())


def _year(moment: Datum) -> Datum:
    """The year, of which ``pc.year`` keeps 16 bits."""
    if isinstance(moment, pa.Scalar):
        return _year(pa.repeat(moment, 1))[0]
    days = pc.cast(pc.cast(moment, pa.date32()), pa.int32())
    years = pc.fill_null(days, 0).to_numpy().astype("datetime64[D]").astype("datetime64[Y]").astype(np.int32) + 1970
    return pa.array(years, pa.int32(), mask=pc.is_null(days).to_numpy(zero_copy_only=False))


def _takes(accepted: str, datum: Datum) -> InvalidInputError:
    return InvalidInputError(f"takes {accepted}, found {datum.type}; write CAST(… AS …)", kind="type-mismatch")


def _constant(datum: Datum, subject: str) -> Any:
    if not isinstance(datum, pa.Scalar) or not datum.is_valid:
        raise UnsupportedError(f"{subject} has to be a literal here", kind="unsupported-filter")
    return datum.as_py()


def _swapped(compare: Callable[[Datum, Datum], Datum]) -> Callable[[Datum, Datum], Datum]:
    return lambda left, right: compare(right, left)


def _inverted(compare: Callable[[Datum, Datum], Datum]) -> Callable[[Datum, Datum], Datum]:
    return lambda left, right: pc.invert(compare(left, right))


FUNCTIONS: Mapping[str, Function] = {
    "AND": partial(_joined, pc.and_kleene),
    "OR": partial(_joined, pc.or_kleene),
    "NOT": _not,
    "=": partial(_compared, _equal),
    "!=": partial(_compared, _inverted(_equal)),
    "<": partial(_compared, _less),
    ">": partial(_compared, _swapped(_less)),
    "<=": partial(_compared, _inverted(_swapped(_less))),
    ">=": partial(_compared, _inverted(_less)),
    "<=>": _null_safe_equal,
    "IN": _is_among,
    "IS NULL": lambda data: pc.is_null(data[0]),
    "+": partial(_sum, pc.add_checked),
    "-": lambda data: _of_number(pc.negate_checked, data) if len(data) == 1 else _sum(pc.subtract_checked, data),
    "*": _product,
    "/": _quotient,
    "%": _remainder,
    "abs": partial(_of_number, pc.abs_checked),
    "floor": partial(_whole, pc.floor),
    "ceil": partial(_whole, pc.ceil),
    "round": _round,
    "||": _concatenated,
    "LIKE": _like,
    "upper": partial(_of_text, pc.utf8_upper),
    "lower": partial(_of_text, pc.utf8_lower),
    "trim": partial(_of_text, pc.utf8_trim, characters=" "),
    "ltrim": partial(_of_text, pc.utf8_ltrim, characters=" "),
    "rtrim": partial(_of_text, pc.utf8_rtrim, characters=" "),
    "length": _length,
    "substring": _substring,
    "replace": _replaced,
    "startswith": partial(_matching, pc.starts_with, "startswith"),
    "endswith": partial(_matching, pc.ends_with, "endswith"),
    "contains": partial(_matching, pc.match_substring, "contains"),
    "coalesce": _coalesced,
    "nullif": _null_if,
    "greatest": partial(_extreme, _swapped(_less)),
    "least": partial(_extreme, _less),
    "year": partial(_of_moment, _year),
    "month": partial(_of_moment, pc.month),
    "day": partial(_of_moment, pc.day),
    "hour": partial(_of_moment, pc.hour),
    "minute": partial(_of_moment, pc.minute),
    "second": partial(_of_moment, pc.second),
}
