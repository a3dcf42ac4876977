"""Writes numbers as texts and reads them, by formats of Spark's: ``format_number``, ``format_string``, ``to_char``, ``to_number``.

to_char, to_number      formats of digits (0, 9), groups (, and G), a point (., D), a $ and a sign (S, MI), that a number fills
format_string           %s of texts and whole numbers, %d of whole numbers, %%
"""

import re
from collections.abc import Callable, Sequence
from decimal import ROUND_DOWN, ROUND_HALF_EVEN, ROUND_UP, Context, Decimal

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
    engine_words,
)
from tablestore.sql.duckdb.calls import refusal, refused_where
from tablestore.sql.duckdb.datetimefunctions import formatted
from tablestore.sql.duckdb.floats import round_as_spark
from tablestore.sql.duckdb.functions import textvalues
from tablestore.sql.duckdb.functions.argumenttypes import integer, text, written_integer, written_text
from tablestore.sql.duckdb.functions.functionrule import MANY, FunctionRule, RuleCall
from tablestore.sql.duckdb.functions.valuefunctions import by_value, over_texts
from tablestore.sql.query.dialect import Spark4
from tablestore.types.datatypes import MAX_PRECISION

_FORMAT = re.compile(r"(?P<before>S|MI)?(?P<currency>\$)?(?P<whole>[09]+(?:[,G][09]{3})*)(?:[.D](?P<rest>[09]+))?(?P<behind>S|MI)?")
_NUMBER = re.compile(r"(?P<before>-)?(?P<currency>\$)?(?P<whole>[0-9]+(?:,[0-9]{3})*)(?:\.(?P<rest>[0-9]*))?(?P<behind>-)?")
_CONVERSION = re.compile(r"%(?:[sd%])")
_EXACT = Context(prec=2000)
_MOST_DIGITS = 400


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


def _format_double(text_of_number: str, places: int) -> str | None:
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


def _to_char(number: str, form: str) -> str:
    parts = _FORMAT.fullmatch(form)
    assert parts is not None, "the format was read"
    value = Decimal(number)
    whole, _, rest = f"{value.copy_abs():f}".partition(".")
    places = parts["whole"].replace(",", "").replace("G", "")
    is_filled = len(whole) == len(places) and whole[0] != "0" and len(rest) == len(parts["rest"] or "")
    sign = parts["before"] or parts["behind"]
    if not is_filled or (sign is None) == value.is_signed() or (sign is not None and sign != "S"):
        raise refusal("to_char of a number that does not fill its format, or of a sign that is none")
    digits = iter(whole)
    grouped = "".join("," if letter in ",G" else next(digits) for letter in parts["whole"])
    text_of_number = f"{parts['currency'] or ''}{grouped}{'.' if rest else ''}{rest}"
    if not value.is_signed():
        return text_of_number
    return f"-{text_of_number}" if parts["before"] else f"{text_of_number}-"


def _number_of(value: str, form: str) -> Decimal | None:
    """The number that a text is by a format; None if it is none. Raises UnsupportedError where Spark may read it in its own way."""
    parts = _FORMAT.fullmatch(form)
    assert parts is not None, "the format was read"
    value = value.strip(" ")
    if not value or re.search(r"[^0-9,.$+\-<> ]", value):
        return None
    places = parts["whole"].replace(",", "").replace("G", "")
    allowed = (("$", parts["currency"]), (".", parts["rest"]), ("-", parts["before"] or parts["behind"]))
    if any(sign in value and not is_allowed for sign, is_allowed in allowed):
        return None
    if "," in value and places == parts["whole"]:
        return None
    if parts["currency"] and "$" not in value:
        return None
    match = _NUMBER.fullmatch(value)
    if match is None or (match["before"] and not parts["before"]) or (match["behind"] and not parts["behind"]):
        raise refusal("to_number of such a text")
    whole, rest = match["whole"].replace(",", ""), match["rest"] or ""
    if len(whole) > len(places) or len(rest) > len(parts["rest"] or ""):
        return None
    has_all_groups = _grouped(whole) == match["whole"] or places == parts["whole"]
    if not has_all_groups or (places.startswith("0") and len(whole) != len(places)) or (match["rest"] == "" and "." in value):
        raise refusal("to_number of a text that does not fill its format")
    number = Decimal(f"{whole}.{rest or '0'}")
    return number.copy_negate() if match["before"] or match["behind"] else number


def _read_number(value: str, form: str) -> str:
    number = _number_of(value, form)
    if number is None:
        message = f"the function `to_number`: expected a text of the format {form}, found {value!r:.80}"
        raise InvalidInputError(message, kind="query")
    return str(number)


def _try_read_number(value: str, form: str) -> str | None:
    number = _number_of(value, form)
    return None if number is None else str(number)


_DECIMAL = by_value("format_decimal", (STRING, INT), STRING, _format_decimal)
_DOUBLE = by_value("format_double", (STRING, INT), STRING, _format_double)
_TO_CHAR = by_value("to_char", (STRING, STRING), STRING, _to_char)
_TO_NUMBER = by_value("to_number", (STRING, STRING), STRING, _read_number)
_TRY_TO_NUMBER = by_value("try_to_number", (STRING, STRING), STRING, _try_read_number)
_UTF8 = over_texts(by_value("to_char_utf8", (BINARY,), STRING, textvalues.utf8), lambda texts: texts)


def _formatted_number(call: RuleCall) -> exp.Expr:
    kind = call.type(0)
    if not kind.is_number and kind != VOID:
        raise call.refusal(f"of {kind}")
    if call.type(1) == STRING:
        raise call.refusal("with a pattern")
    places = integer(call, 1)
    if kind.is_float:
        # As a text: 0.0 and -0.0 are one value.
        return _DOUBLE.of(call.text("CAST($0 AS TEXT)", call.value(0, DOUBLE)), places)
    if kind.is_integer and isinstance(call.values[1], exp.Literal) and 0 <= int(call.values[1].name) <= _MOST_DIGITS:
        rest = "0" * int(call.values[1].name)
        return call.text(f"FORMAT('{{:,}}', $0) || '{'.' * bool(rest)}{rest}'", call.value(0, BIGINT))
    return _DECIMAL.of(call.text("CAST($0 AS TEXT)"), places)


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


def _format(call: RuleCall) -> str:
    form = written_text(call, 1, "a format").upper()
    parts = _FORMAT.fullmatch(form)
    if parts is None or (parts["before"] and parts["behind"]):
        raise call.refusal("with a format of other parts than digits, groups, a point, a $ and a sign")
    return form


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
        mapped = Spark4.format_time(exp.Literal.string(written_text(call, 1, "a format")))
        node = exp.TimeToStr(this=exp.Cast(this=call.value(0), to=engine_words(TIMESTAMP_NTZ)), format=mapped)
        return formatted(node)
    if kind.is_integer or kind.is_decimal:
        return _TO_CHAR.of(call.text("CAST($0 AS TEXT)"), exp.Literal.string(_format(call)))
    raise call.refusal(f"of {kind}")


def _number_type(types: Types, values: Sequence[exp.Expr]) -> Type:
    form = values[1] if len(values) > 1 else None
    parts = _FORMAT.fullmatch(str(form.this).upper()) if isinstance(form, exp.Literal) and form.is_string else None
    if parts is None:
        return None
    rest = len(parts["rest"] or "")
    return decimal(len(re.sub("[,G]", "", parts["whole"])) + rest, rest)


def _number(call: RuleCall) -> exp.Expr:
    form = _format(call)
    function = _TRY_TO_NUMBER if call.name == "try_to_number" else _TO_NUMBER
    return call.as_result(function.of(text(call, 0), exp.Literal.string(form)))


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
