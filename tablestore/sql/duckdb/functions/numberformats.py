"""Writes numbers as texts and reads them, by formats of Spark's: ``format_number``, ``format_string``, ``to_char``, ``to_number``.

to_char, to_number      formats of digits (:mod:`digitformats`)
format_string           %s of texts and whole numbers, %d of whole numbers, %%
"""

import re
from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_UP, Context, Decimal

import pyarrow as pa
from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.functiontypes import rounded
from tablestore.sql.binding.signatures import Types, always
from tablestore.sql.binding.sqltypes import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    SqlType,
    Type,
    decimal,
)
from tablestore.sql.duckdb.calls import refusal, refused_where
from tablestore.sql.duckdb.floats import round_as_spark
from tablestore.sql.duckdb.functions import digitformats, textvalues
from tablestore.sql.duckdb.functions.argumenttypes import integer, text, written_integer, written_text
from tablestore.sql.duckdb.functions.arrowfunction import ArrowFunction
from tablestore.sql.duckdb.functions.digitformats import DigitFormat
from tablestore.sql.duckdb.functions.functionrule import MANY, FunctionRule, RuleCall
from tablestore.sql.duckdb.functions.momentfunctions import written_by_pattern
from tablestore.sql.duckdb.functions.valuefunctions import by_value, over_texts
from tablestore.types.datatypes import MAX_PRECISION

_CONVERSION = re.compile(r"%(?:[sd%])")
_EXACT = Context(prec=2000)
_MOST_DIGITS = 400
_MOST_BIGINT_DIGITS = 18
# Doubles have as many digits that are exact.
_MOST_PRINTED = 15


def _grouped(digits: str) -> str:
    return f"{int(digits):,}"


def _with_digits(number: Decimal, places: int, rounding: str) -> str:
    cut = number.quantize(Decimal(1).scaleb(-places), rounding=rounding, context=_EXACT)
    sign, whole_and_rest = ("-" if number.is_signed() else ""), f"{cut.copy_abs():f}"
    whole, _, rest = whole_and_rest.partition(".")
    return f"{sign}{_grouped(whole)}{'.' if places else ''}{rest}"


def _format_decimal(number: str, places: int) -> str | None:
    if places < 0:
        return None
    if places > _MOST_DIGITS:
        raise refusal("format_number with more than 400 digits behind the point")
    return _with_digits(Decimal(number), places, ROUND_HALF_EVEN)


def format_double(text_of_number: str, places: int) -> str | None:
    """A double by the digits that it is written with; where these are in the middle, by what it is."""
    number = float(text_of_number)
    if places < 0:
        return None
    if places > _MOST_DIGITS:
        raise refusal("format_number with more than 400 digits behind the point")
    if number != number:
        return "NaN"
    if number in (float("inf"), float("-inf")):
        return "∞" if number > 0 else "-∞"
    written, exact = Decimal(repr(number)), Decimal(number)
    size, exact_size = written.copy_abs(), exact.copy_abs()
    rounding = ROUND_HALF_EVEN
    rest = _EXACT.remainder(_EXACT.multiply(size, Decimal(1).scaleb(places)), Decimal(1))
    if rest == Decimal("0.5") and size != exact_size:
        rounding = ROUND_UP if exact_size > size else ROUND_DOWN
    return _with_digits(written, places, rounding)


def _read_number(value: str, form: str) -> str:
    number = digitformats.read_digits(value, _known_format(form))
    if number is None:
        raise digitformats.mismatch(value, form)
    return f"{number:f}"


def _try_read_number(value: str, form: str) -> str | None:
    number = digitformats.read_digits(value, _known_format(form))
    return None if number is None else f"{number:f}"


def _known_format(form: str) -> DigitFormat:
    known = digitformats.digit_format(form)
    assert known is not None, "the format is read while the query is translated"
    return known


def _to_char(numbers: pa.Array, forms: pa.Array) -> pa.Array:
    # The format is written in the query: it is that of all rows.
    return digitformats.write_digits(numbers, _known_format(forms[0].as_py()))


_DECIMAL = by_value("format_decimal", (STRING, INT), STRING, _format_decimal)
_DOUBLE = by_value("format_double", (STRING, INT), STRING, format_double)
_TO_CHAR = ArrowFunction(name="to_char", arguments=(STRING, STRING), result=STRING, call=_to_char)
_TO_NUMBER = by_value("to_number", (STRING, STRING), STRING, _read_number)
_TRY_TO_NUMBER = by_value("try_to_number", (STRING, STRING), STRING, _try_read_number)
_AS_DECIMALS = {FLOAT: decimal(14, 7), DOUBLE: decimal(30, 15), STRING: decimal(38, 18)}
_UTF8 = over_texts(by_value("to_char_utf8", (BINARY,), STRING, textvalues.utf8), lambda texts: texts)


def _formatted_number(call: RuleCall) -> exp.Expr:
    kind = call.type(0)
    if not kind.is_number and kind != VOID:
        raise call.refusal(f"of {kind}")
    if call.type(1) == STRING:
        raise call.refusal("with a pattern")
    places = integer(call, 1)
    digits = call.values[1]
    written = int(digits.name) if isinstance(digits, exp.Literal) and digits.name.isdecimal() else -1
    if kind.is_float:
        # As a text: 0.0 and -0.0 are one value.
        if not 0 <= written <= _MOST_PRINTED:
            return _DOUBLE.of(call.text("CAST($0 AS TEXT)", call.value(0, DOUBLE)), places)
        # Where doubles lie closer than the last digit, the digits that one is written with are rounded as it is itself.
        return call.text(
            f"""CASE WHEN $0 IS NULL THEN NULL WHEN ABS($0) < {10 ** (_MOST_PRINTED - written)} THEN FORMAT('{{:,.{written}f}}', $0)
            ELSE {_DOUBLE.engine_name}(CAST($0 AS TEXT), $1) END""",
            call.value(0, DOUBLE),
            places,
        )
    if kind.is_integer and 0 <= written <= _MOST_DIGITS:
        rest = "0" * written
        return call.text(f"FORMAT('{{:,}}', $0) || '{'.' * bool(rest)}{rest}'", call.value(0, BIGINT))
    if kind.is_decimal and kind.precision <= _MOST_BIGINT_DIGITS and 0 <= written <= _MOST_DIGITS:
        return call.text(_decimal_text(kind, written), call.value(0))
    return _DECIMAL.of(call.text("CAST($0 AS TEXT)"), places)


def _decimal_text(kind: SqlType, places: int) -> str:
    """A decimal with groups of digits, in DuckDB's words. Java writes the sign of what is rounded to zero."""
    kept = min(places, kind.scale)
    size = f"ABS(ROUND_EVEN($0, {kept}))"
    whole = f"CASE WHEN $0 < 0 THEN '-' ELSE '' END || FORMAT('{{:,}}', CAST(TRUNC({size}) AS BIGINT))"
    rest = f" || RIGHT(CAST({size} AS TEXT), {kept})" if kept else ""
    return f"{whole}{' || ' + chr(39) + '.' + chr(39) if places else ''}{rest} || '{'0' * (places - kept)}'"


def _formatted_text(call: RuleCall) -> exp.Expr:
    if call.type(0) == VOID:
        return call.as_result(exp.null())
    form = written_text(call, 0, "a format")
    parts: list[exp.Expr] = []
    place, done = 1, 0
    for match in _CONVERSION.finditer(form):
        plain = form[done : match.start()]
        if "%" in plain:
            break
        parts.append(exp.Literal.string(plain))
        done = match.end()
        if match[0] == "%%":
            parts.append(exp.Literal.string("%"))
            continue
        if place >= len(call.values):
            raise call.mismatch(0, "a format with no more conversions than there are values")
        kind = call.type(place)
        if not (kind.is_integer or kind == VOID or (match[0] == "%s" and kind in (STRING, BOOLEAN))):
            raise call.refusal(f"with {match[0]} of {kind}")
        parts.append(call.text("COALESCE($0, 'null')", call.value(place, STRING)))
        place += 1
    if "%" in form[done:]:
        raise call.refusal("with other conversions than %s, %d and %%")
    parts.append(exp.Literal.string(form[done:]))
    return exp.Anonymous(this="CONCAT", expressions=parts)


def _format(call: RuleCall) -> DigitFormat:
    form = written_text(call, 1, "a format")
    known = digitformats.digit_format(form)
    if known is None:
        message = f"the function `{call.name}`: expected a format of digits (0, 9), groups (, or G), a point (. or D), a $ before "
        raise InvalidInputError(f"{message}them and signs (S, MI, PR), found {form!r:.80}", kind="query")
    return known


def _char(call: RuleCall) -> exp.Expr:
    kind = call.type(0)
    if kind == BINARY:
        form = written_text(call, 1, "a format").strip(" ").lower()
        if form == "base64":
            return call.text("TO_BASE64($0)", call.value(0))
        if form == "hex":
            return call.text("HEX($0)", call.value(0))
        if form == "utf-8":
            return _UTF8.of(call.value(0))
        raise call.mismatch(1, "the format base64, hex or utf-8")
    if kind in (DATE, TIMESTAMP, TIMESTAMP_NTZ):
        return written_by_pattern(call)
    number = _AS_DECIMALS.get(kind)
    if number is None and not (kind.is_integer or kind.is_decimal):
        raise call.refusal(f"of {kind}")
    if isinstance(call.values[1], exp.Null):
        return call.as_result(exp.null())
    return _TO_CHAR.of(exp.cast(call.value(0, number), "TEXT"), exp.Literal.string(_format(call).text))


def _number_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    form = values[1] if len(values) > 1 else None
    known = digitformats.digit_format(str(form.this)) if isinstance(form, exp.Literal) and form.is_string else None
    return decimal(known.precision, known.rest) if known is not None and known.precision <= MAX_PRECISION else None


def _number(call: RuleCall) -> exp.Expr:
    form = _format(call)
    if form.precision > MAX_PRECISION:
        raise InvalidInputError(
            f"the function `{call.name}`: expected a format of at most {MAX_PRECISION} digits, found {form.precision}", kind="query"
        )
    beyond = _TRY_TO_NUMBER if call.name == "try_to_number" else _TO_NUMBER
    digits = "REPLACE($0, ',', '')" if len(form.groups) > 1 else "$0"
    if form.has_currency:
        digits = f"REPLACE({digits}, '$', '')"
    if form.behind == "PR":
        digits = f"CASE WHEN STARTS_WITH($0, '<') THEN '-' ELSE '' END || RTRIM(LTRIM({digits}, '<'), '>')"
    elif form.behind:
        digits = f"CASE WHEN ENDS_WITH($0, '-') THEN '-' ELSE '' END || RTRIM({digits}, '+-')"
    kind = f"DECIMAL({form.precision}, {form.rest})"
    # Of two signs the one makes the other's number negative again.
    if form.before and form.behind:
        return call.as_result(beyond.of(text(call, 0), exp.Literal.string(form.text)))
    return call.text(
        f"""CASE WHEN $0 IS NULL THEN NULL
        WHEN REGEXP_FULL_MATCH($0, '{digitformats.plain_digits(form)}') THEN CAST({digits} AS {kind})
        ELSE CAST({beyond.engine_name}($0, $1) AS {kind}) END""",
        text(call, 0),
        exp.Literal.string(form.text),
    )


def _ceil_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    if len(types) == 1:
        return rounded(exp.Ceil(this=exp.null()), types[0])
    kind = types[0]
    number = _AS_DECIMALS.get(kind, kind) if kind is not None else None
    if number is None or not (number.is_integer or number.is_decimal):
        return None
    return rounded(exp.Round(this=exp.null(), decimals=values[1].copy()), number.as_decimal)


_AS_DECIMALS = {FLOAT: decimal(14, 7), DOUBLE: decimal(30, 15), VOID: decimal(38, 18)}


def _as_decimal(call: RuleCall, kind: SqlType) -> exp.Expr:
    """A number as a decimal: NULL for NaN and infinity."""
    if not kind.is_float:
        return call.value(0) if kind != VOID else exp.cast(exp.null(), "DECIMAL(38, 18)")
    to = _AS_DECIMALS[kind]
    is_large = call.text(f"ISFINITE($0) AND ABS($0) >= 1e{to.precision - to.scale}")
    finite = call.text("CASE WHEN ISFINITE($0) THEN $1 END", call.value(0), call.value(0, to))
    return refused_where(is_large, f"{call.name} of a float for which a decimal has no room", finite)


def _bounded(call: RuleCall) -> exp.Expr:
    """Writes ``ceil`` and ``floor``, of a number and of digits."""
    if len(call.values) == 1:
        node = call.node
        return round_as_spark(node, call.types[0]) if isinstance(node, (exp.Ceil, exp.Floor)) else node
    kind = call.type(0)
    number = _AS_DECIMALS.get(kind, kind)
    if not (number.is_integer or number.is_decimal):
        raise call.refusal(f"of {kind} to digits")
    number, digits, value = number.as_decimal, written_integer(call, 1, "a number of digits"), _as_decimal(call, kind)
    function = "FLOOR" if call.name == "floor" else "CEIL"
    if digits >= number.scale or kind == VOID:
        return call.as_result(value)
    if number.precision - number.scale < -digits < MAX_PRECISION:
        # It is larger than all values.
        sign, size = ("<", f"-1e{-digits}") if function == "FLOOR" else (">", f"1e{-digits}")
        whole = f"CAST(CASE WHEN $0 {sign} 0 THEN '{size}' ELSE '0' END AS DECIMAL({MAX_PRECISION}, 0))"
        return call.as_result(call.text(f"CASE WHEN $0 IS NOT NULL THEN {whole} END", value))
    if number.precision + abs(digits) + 1 > MAX_PRECISION:
        raise call.refusal("of a decimal to digits for which there is no room")
    if digits >= 0:
        power, part = f"CAST({10**digits} AS DECIMAL({digits + 1}, 0))", f"CAST('1e-{digits}' AS DECIMAL({digits + 1}, {digits}))"
        return call.as_result(
            call.text(f"CAST({function}($0 * {power}) AS DECIMAL({MAX_PRECISION - digits - 1}, 0)) * {part}", value)
        )
    size = 10**-digits
    whole = f"CAST({function}($0) AS HUGEINT)"
    floor = f"({whole} - (({whole} % {size}) + {size}) % {size})"
    if function == "FLOOR":
        return call.as_result(call.text(floor, value))
    return call.as_result(call.text(f"{floor} + CASE WHEN {whole} % {size} <> 0 THEN {size} ELSE 0 END", value))


_WRITERS: tuple[tuple[str, tuple[int, int], Callable[[RuleCall], exp.Expr]], ...] = (
    ("format_number", (2, 2), _formatted_number),
    ("format_string", (1, MANY), _formatted_text),
    ("printf", (1, MANY), _formatted_text),
    ("to_char", (2, 2), _char),
    ("to_varchar", (2, 2), _char),
)
RULES = (
    *(FunctionRule(name=name, bounds=bounds, result=always(STRING), write=write) for name, bounds, write in _WRITERS),
    FunctionRule(name="to_number", bounds=(2, 2), result=_number_type, write=_number),
    FunctionRule(name="try_to_number", bounds=(2, 2), result=_number_type, write=_number),
    FunctionRule(name="ceil", aliases=("ceiling",), bounds=(1, 2), result=_ceil_type, write=_bounded),
    FunctionRule(name="floor", bounds=(1, 2), result=_ceil_type, write=_bounded),
)
ARROW = (_DECIMAL, _DOUBLE, _TO_CHAR, _TO_NUMBER, _TRY_TO_NUMBER, _UTF8)
