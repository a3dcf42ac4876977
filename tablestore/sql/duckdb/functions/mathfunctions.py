"""Writes functions of mathematics with Spark's meaning.

The last digit of a double that is no sum, product or root is the library's: Java's and C's may differ by one.
"""

from collections.abc import Callable

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.functiontypes import rounded
from tablestore.sql.binding.signatures import Types, always
from tablestore.sql.binding.sqltypes import BIGINT, DOUBLE, FLOAT, INT, STRING, VOID, Type
from tablestore.sql.duckdb.calls import failing
from tablestore.sql.duckdb.functions.argumenttypes import double, integer, text, written_integer
from tablestore.sql.duckdb.functions.functionrule import FunctionRule, RuleCall, by_text, from_text
from tablestore.sql.duckdb.functions.intervalvalues import written_interval
from tablestore.sql.duckdb.functions.valuefunctions import by_value

_LAST_DIGIT = "the last digit may be another"
_MOST_DIGITS = 15
_MOST_SCALED_DIGITS = 6
_FACTORIALS = (
    "[1, 1, 2, 6, 24, 120, 720, 5040, 40320, 362880, 3628800, 39916800, 479001600, 6227020800, 87178291200, 1307674368000, "
    "20922789888000, 355687428096000, 6402373705728000, 121645100408832000, 2432902008176640000]"
)
_NATURAL = ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cosh", "cot", "sinh", "tanh", "sin", "cos", "tan")
_BY_TEXT = {
    **{name: f"{name.upper()}($0)" for name in _NATURAL},
    "csc": "CAST(1 AS DOUBLE) / SIN($0)",
    "sec": "CAST(1 AS DOUBLE) / COS($0)",
}
_WIDTH_BUCKET = """CASE
    WHEN $3 <= 0 OR $3 = 9223372036854775807 OR ISNAN($0) OR $1 = $2 OR NOT ISFINITE($1) OR NOT ISFINITE($2) THEN NULL
    WHEN $1 < $2 AND $0 < $1 OR $1 > $2 AND $0 > $1 THEN 0
    WHEN $1 < $2 AND $0 >= $2 OR $1 > $2 AND $0 <= $2 THEN $3 + 1
    ELSE CAST(TRUNC(CASE WHEN $1 < $2 THEN $3 * ($0 - $1) / ($2 - $1) ELSE $3 * ($1 - $0) / ($1 - $2) END) AS BIGINT) + 1
END"""
_BASES = range(2, 37)
_DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _by_double(template: str) -> Callable[[RuleCall], exp.Expr]:
    return lambda call: call.text(template, double(call, 0))


# By Kahan: what the rounding of 1 + x, and of e^x, takes away is put back by the same factor.
_LOG1P = """CASE
    WHEN $0 <= -1 THEN NULL
    WHEN $0 + 1 = 1 OR NOT ISFINITE($0) THEN $0
    ELSE LN(CASE WHEN $0 > -1 THEN 1 + $0 ELSE 1 END) * ($0 / ((1 + $0) - 1))
END"""
_EXPM1 = """CASE
    WHEN $0 <= -40 THEN CAST(-1 AS DOUBLE)
    WHEN ABS($0) >= 1 OR ISNAN($0) THEN EXP($0) - 1
    WHEN EXP($0) = 1 THEN $0
    ELSE (EXP($0) - 1) * ($0 / LN(EXP($0)))
END"""
# Infinity is at no distance, not even with NaN; numbers whose squares a double may not have are made smaller or larger before.
_HYPOT = """CASE
    WHEN $0 * $0 + $1 * $1 BETWEEN 1e-280 AND 1e300 THEN SQRT($0 * $0 + $1 * $1)
    WHEN ISINF($0) AND $1 IS NOT NULL OR ISINF($1) AND $0 IS NOT NULL THEN CAST('inf' AS DOUBLE)
    WHEN $0 = 0 OR $1 = 0 THEN ABS($0) + ABS($1)
    WHEN GREATEST(ABS($0), ABS($1)) > 1e150 THEN SQRT(($0 * 1e-170) * ($0 * 1e-170) + ($1 * 1e-170) * ($1 * 1e-170)) * 1e170
    ELSE SQRT(($0 * 1e170) * ($0 * 1e170) + ($1 * 1e170) * ($1 * 1e170)) * 1e-170
END"""


def converted_base(number: str, from_base: int, to_base: int) -> str | None:
    """Spark's ``NumberConverter.convert``: an unsigned number of 64 bits, of the digits at the beginning of a text."""
    if from_base not in _BASES or abs(to_base) not in _BASES:
        return None
    number = number.strip(" ")
    if not number:
        return None
    is_negative = number[0] == "-"
    value = 0
    for letter in number[is_negative:].upper():
        digit = _DIGITS.find(letter) if letter.isascii() else -1
        if not 0 <= digit < from_base:
            break
        value = value * from_base + digit
        if value >= 2**64:
            raise InvalidInputError(f"the function `conv`: {number!r:.80} of the base {from_base} is out of range", kind="query")
    if is_negative and to_base > 0:
        value = 2**64 - 1 if value >= 2**63 else -value % 2**64
    if to_base < 0 and value >= 2**63:
        value, is_negative = 2**64 - value, True
    digits = ""
    while value:
        value, digit = divmod(value, abs(to_base))
        digits = _DIGITS[digit] + digits
    return ("-" if is_negative and to_base < 0 else "") + (digits or "0")


_CONV = by_value("conv", (STRING, INT, INT), STRING, converted_base)
# Of bases from which DuckDB reads texts: their digits, as many as a BIGINT has, and what stands before them.
_READ_BASES = {"2": ("[01]{1,62}", "0b"), "10": ("[0-9]{1,18}", ""), "16": ("[0-9A-Fa-f]{1,15}", "0x")}


def _conv(call: RuleCall) -> exp.Expr:
    values = text(call, 0), integer(call, 1), integer(call, 2)
    of, to = call.values[1], call.values[2]
    if not (isinstance(of, exp.Literal) and isinstance(to, exp.Literal) and of.name in _READ_BASES and to.name in map(str, _BASES)):
        return _CONV.of(*values)
    digits, prefix = _READ_BASES[of.name]
    number = f"CAST('{prefix}' || $0 AS BIGINT)"
    return call.text(
        f"""CASE WHEN $0 IS NULL THEN NULL WHEN REGEXP_FULL_MATCH($0, '{digits}') THEN TO_BASE({number}, {to.name})
        ELSE {_CONV.engine_name}($0, $1, $2) END""",
        *values,
    )


def _signed(types: Types, values: object) -> Type:
    kind = types[0]
    return DOUBLE if kind in (STRING, VOID) else kind


def _negative(call: RuleCall) -> exp.Expr:
    kind = call.type(0)
    if kind.is_integer:
        least = {"tinyint": 7, "smallint": 15, "int": 31, "bigint": 63}[kind.name]
        value = call.text(f"CASE WHEN $0 = {-(2**least)} THEN NULL ELSE -$0 END")
        is_least = call.text(f"$0 = {-(2**least)}")
        return call.as_result(failing(is_least, f"the function `negative`: the least {kind} has no opposite: out of range", value))
    if kind.is_number:
        return call.as_result(call.text("-$0"))
    if kind in (STRING, VOID):
        return call.text("-$0", double(call, 0))
    raise call.refusal(f"of {kind}")


def _positive(call: RuleCall) -> exp.Expr:
    kind = call.type(0)
    if kind.is_number:
        return call.value(0)
    return double(call, 0)


def _bround_type(types: Types, values: object) -> Type:
    node = exp.Round(this=exp.null())
    arguments = list(values) if isinstance(values, (list, tuple)) else []
    if len(arguments) > 1:
        node.set("decimals", arguments[1].copy())
    return rounded(node, types[0])


def _bround(call: RuleCall) -> exp.Expr:
    kind = call.type(0)
    digits = 0 if len(call.values) == 1 else written_integer(call, 1, "a number of digits")
    if kind.is_integer:
        if digits >= 0:
            return call.value(0)
        if digits < -18:
            raise call.refusal("of a whole number to more than 18 digits before the point")
        size = 10**-digits
        # The floor, and one more where what is left is more than a half, or a half behind an odd number.
        room = "HUGEINT" if kind == BIGINT else "BIGINT"
        whole = f"""(CAST($0 AS {room}) - ((CAST($0 AS {room}) % {size} + {size}) % {size})) // {size}"""
        left = f"""((CAST($0 AS {room}) % {size} + {size}) % {size}) * 2"""
        up = f"CASE WHEN {left} > {size} OR {left} = {size} AND ({whole}) % 2 <> 0 THEN 1 ELSE 0 END"
        return call.as_result(call.text(f"(({whole}) + {up}) * {size}"))
    if kind.is_decimal:
        if digits < 0:
            raise call.refusal("of a decimal to digits before the point")
        return call.as_result(call.text(f"ROUND_EVEN($0, {min(digits, kind.scale)})"))
    if not -_MOST_DIGITS <= digits <= _MOST_DIGITS:
        raise call.refusal(f"of a float to more than {_MOST_DIGITS} digits")
    # By the digits that the number is written with; the exponents of larger numbers leave them whole.
    number = double(call, 0) if kind in (STRING, VOID) else call.value(0)
    small, large = _even_text(37, digits), _even_text(20, digits)
    if digits < 0:
        raise call.refusal("of a float to digits before the point")
    rounded_text = f"CASE WHEN ABS($0) < 1 THEN {small} WHEN ABS($0) < 9007199254740992 THEN {large} ELSE CAST($0 AS DOUBLE) END"
    result = call.text(rounded_text, number)
    if kind == FLOAT or digits > _MOST_SCALED_DIGITS:
        return call.as_result(result)
    # Far from the middle between two results the nearest is meant, however the number is written. The quotient of two whole
    # numbers is the double that is nearest to the result.
    size = 10**digits
    clear = f"ABS($0) < 1e9 AND ABS(ABS($0 * {size} - TRUNC($0 * {size})) - 0.5) > 1e-4"
    plain = f"ROUND($0 * {size}) / CAST({size} AS DOUBLE) + CAST(0 AS DOUBLE)"
    return call.as_result(from_text(f"CASE WHEN {clear} THEN {plain} ELSE $1 END", number, result))


def _even_text(scale: int, digits: int) -> str:
    return f"CAST(ROUND_EVEN(CAST(CAST($0 AS TEXT) AS DECIMAL(38, {scale})), {digits}) AS DOUBLE)"


def _width_bucket(call: RuleCall) -> exp.Expr:
    if any(call.type(place).name == "interval" for place in range(3)):
        intervals = [interval for value in call.values[:3] if (interval := written_interval(value)) is not None]
        if len(intervals) < 3 or len({interval.has_months for interval in intervals}) > 1:
            raise call.refusal("of intervals that are computed, or of two kinds")
        lengths = [exp.cast(exp.Literal.string(str(interval.length)), "DOUBLE") for interval in intervals]
        return call.text(_WIDTH_BUCKET, *lengths, integer(call, 3, BIGINT))
    return call.text(_WIDTH_BUCKET, double(call, 0), double(call, 1), double(call, 2), integer(call, 3, BIGINT))


def _factorial(call: RuleCall) -> exp.Expr:
    return call.text(f"LIST_EXTRACT({_FACTORIALS}::BIGINT[], CASE WHEN $0 BETWEEN 0 AND 20 THEN $0 + 1 END)", integer(call, 0))


RULES = (
    *(
        FunctionRule(name=name, bounds=(1, 1), result=always(DOUBLE), write=_by_double(template), note=_LAST_DIGIT)
        for name, template in _BY_TEXT.items()
    ),
    FunctionRule(name="expm1", bounds=(1, 1), result=always(DOUBLE), write=_by_double(_EXPM1), note=_LAST_DIGIT),
    FunctionRule(name="log1p", bounds=(1, 1), result=always(DOUBLE), write=_by_double(_LOG1P), note=_LAST_DIGIT),
    FunctionRule(
        name="hypot", bounds=(2, 2), result=always(DOUBLE), note=_LAST_DIGIT,
        write=lambda call: call.text(_HYPOT, double(call, 0), double(call, 1)),
    ),
    FunctionRule(name="rint", bounds=(1, 1), result=always(DOUBLE), write=_by_double("ROUND_EVEN($0, 0)")),
    FunctionRule(name="e", bounds=(0, 0), result=always(DOUBLE), write=by_text("CAST(2.718281828459045e0 AS DOUBLE)")),
    FunctionRule(name="factorial", bounds=(1, 1), result=always(BIGINT), write=_factorial),
    FunctionRule(
        name="bin", bounds=(1, 1), result=always(STRING), write=lambda call: call.text("BIN($0)", integer(call, 0, BIGINT))
    ),
    FunctionRule(name="conv", bounds=(3, 3), result=always(STRING), write=_conv),
    FunctionRule(name="negative", bounds=(1, 1), result=_signed, write=_negative),
    FunctionRule(name="positive", bounds=(1, 1), result=_signed, write=_positive),
    FunctionRule(name="bround", bounds=(1, 2), result=_bround_type, write=_bround),
    FunctionRule(name="width_bucket", bounds=(4, 4), result=always(BIGINT), write=_width_bucket),
)  # fmt: skip
ARROW = (_CONV,)
