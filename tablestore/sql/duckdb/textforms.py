"""Reads texts as dates, timestamps, booleans and floats where Spark does: DuckDB takes other forms, and leaves some out.

What Spark reads and DuckDB does not is written as DuckDB reads it, or refused while the query runs; it is never NULL in silence.
"""

import re
from collections.abc import Callable

from sqlglot import exp

from tablestore.errors import InvalidInputError
from tablestore.sql.binding.sqltypes import TIMESTAMP, TIMESTAMP_NTZ, SqlType, engine_words
from tablestore.sql.duckdb.calls import call, first_shown, in_own_text, refusal, written, zoned_of_local
from tablestore.sql.duckdb.datetimefunctions import shown_in

# Spark cuts blanks and control characters off both ends.
_BLANK = r"[\x00-\x20\x7f]*"
_DAY = r"-[0-9]{1,2}-[0-9]{1,2}"
_HOUR = r"(?:[01]?[0-9]|2[0-3])"
_SIXTY = r"[0-5]?[0-9]"
_SECOND = rf"{_SIXTY}(?:\.[0-9]*)?"
_OFFSET = r"[+-](?:(?:0?[0-9]|1[0-7])(?::[0-5][0-9])?|(?:0[0-9]|1[0-7])[0-5][0-9])"
_REGION = r"[A-Z][A-Za-z0-9_]+(?:/[A-Za-z0-9_]+)+"
_PLAIN = re.compile(rf"-?[0-9]{{4,6}}{_DAY}(?:[ T]{_HOUR}:{_SIXTY}(?::{_SECOND})?)?")
_READ = re.compile(
    rf"{_BLANK}[+-]?[0-9]{{4,6}}(?:-[0-9]{{1,2}}(?:-[0-9]{{1,2}}(?:[ T]{_HOUR}(?::{_SIXTY}(?::{_SECOND}"
    rf"(?: ?(?:Z|UTC|GMT|{_OFFSET})| {_REGION})?)?)?)?)?)?{_BLANK}"
)
# Times of today, and zones of other names.
_OTHER = re.compile(
    rf"{_BLANK}(?:(?:(?:[+-]?[0-9]{{4,6}}{_DAY}[ T]|T)?{_HOUR}:{_SIXTY}:{_SECOND} *[A-Za-z+-][A-Za-z0-9~/._+: -]*)"
    rf"|T?{_HOUR}:{_SIXTY}(?::{_SECOND})?|T{_HOUR}){_BLANK}"
)
_CANONICAL = r"""CASE
    WHEN REGEXP_FULL_MATCH(:value, :plain) THEN :value
    WHEN REGEXP_FULL_MATCH(:value, :read) THEN LIST_TRANSFORM(
        [REGEXP_REPLACE(:value, '^[\x00-\x20\x7f]*\+?|[\x00-\x20\x7f]+$', '', 'g')],
        LAMBDA _trimmed: CASE
            WHEN REGEXP_FULL_MATCH(_trimmed, '-?[0-9]+') THEN _trimmed || '-01-01'
            WHEN REGEXP_FULL_MATCH(_trimmed, '-?[0-9]+-[0-9]+') THEN _trimmed || '-01'
            WHEN REGEXP_FULL_MATCH(_trimmed, '-?[0-9-]+[ T][0-9]+') THEN _trimmed || ':00'
            ELSE REGEXP_REPLACE(REGEXP_REPLACE(REGEXP_REPLACE(
                _trimmed,
                '(:[0-9]+:[0-9.]+) ?(?:Z|UTC|GMT)$', '\1Z'),
                '(:[0-9]+:[0-9.]+) ?([+-][0-9:]+)$', '\1\2'),
                '(:[0-9]+:[0-9.]+)([+-])([0-9](?::[0-9]+)?)$', '\1\20\3')
        END
    )[1]
    WHEN REGEXP_FULL_MATCH(:value, :other) THEN :refused
    WHEN NOT :value IS NULL THEN :otherwise
END"""
# What DuckDB writes as it reads it, without an era; other texts are read by their form.
_USUAL_MOMENT = """CASE WHEN CAST(TRY_CAST(:value AS TIMESTAMP) AS TEXT) = :value AND RIGHT(:value, 1) <= '9'
    THEN TRY_CAST(:value AS TIMESTAMP) END"""
_HAS_ZONE = r"REGEXP_MATCHES(:value, ':[0-9]+:[0-9.]+ ?[A-Z+-]')"
_ZONE_NAME = r"REGEXP_EXTRACT(:value, '[A-Z][A-Za-z0-9_]*(?:/[A-Za-z0-9_]+)+$')"
_WITHOUT_ZONE = r"CAST(REGEXP_EXTRACT(:value, '^[^:]+:[0-9]+:[0-9.]+') AS TIMESTAMP)"
_MOMENT_FORM = "a timestamp as yyyy-MM-dd HH:mm:ss"

# Ten letters that DuckDB writes as it reads them are a day with a year of four digits; other texts are read by their form.
_USUAL_DATE = """CASE
    WHEN CAST(TRY_CAST(LEFT(:value, 10) AS DATE) AS TEXT) = LEFT(:value, 10) AND LENGTH(:value) >= 10
        AND SUBSTRING(:value, 11, 1) IN ('', ' ', 'T')
    THEN TRY_CAST(LEFT(:value, 10) AS DATE)
END"""
# Spark cuts off whatever is behind the day.
_DATE = re.compile(rf"{_BLANK}[+-]?[0-9]{{4,7}}{_DAY}(?:[ T](?s:.)*)?{_BLANK}")
_MONTH_OR_YEAR = re.compile(rf"{_BLANK}[+-]?[0-9]{{4,7}}(?:-[0-9]{{1,2}})?{_BLANK}")
_DATE_OF_TEXT = rf"""CASE
    WHEN REGEXP_FULL_MATCH(:value, :day) THEN REGEXP_EXTRACT(:value, '-?[0-9]+{_DAY}')
    WHEN REGEXP_FULL_MATCH(:value, :month_or_year)
    THEN REGEXP_EXTRACT(:value, '-?[0-9]+(?:-[0-9]+)?') || CASE WHEN REGEXP_MATCHES(:value, '[0-9]-') THEN '-01' ELSE '-01-01' END
    WHEN NOT :value IS NULL THEN :otherwise
END"""

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_FLOAT = re.compile(rf"[\t-\r ]*{_NUMBER}[\t-\r ]*")
_FLOAT_WITH_LETTER = re.compile(rf"{_BLANK}{_NUMBER}[dDfF]?{_BLANK}")
_FLOAT_WORD = re.compile(rf"{_BLANK}(?:[nN][aA][nN]|[+-]?[iI][nN][fF](?:[iI][nN][iI][tT][yY])?){_BLANK}")
_HEXADECIMAL = re.compile(rf"{_BLANK}[+-]?0[xX][0-9a-fA-F]*\.?[0-9a-fA-F]*[pP][+-]?[0-9]+[dDfF]?{_BLANK}")
_FLOAT_OF_TEXT = r"""CASE
    WHEN REGEXP_FULL_MATCH(:value, :plain) THEN :value
    WHEN REGEXP_FULL_MATCH(:value, :word) THEN REGEXP_REPLACE(:value, '[\x00-\x20\x7f]+', '', 'g')
    WHEN REGEXP_FULL_MATCH(:value, :with_letter) THEN REGEXP_EXTRACT(:value, '[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?')
    WHEN REGEXP_FULL_MATCH(:value, :hexadecimal) THEN :refused
    WHEN NOT :value IS NULL THEN :otherwise
END"""

_TEXT_OF_MOMENT = r"""CASE
    WHEN YEAR(:value) > 9999 THEN '+' || CAST(:value AS TEXT)
    WHEN YEAR(:value) < 1
    THEN CASE WHEN YEAR(:value) < 0 THEN '-' ELSE '' END || LPAD(CAST(ABS(YEAR(:value)) AS TEXT), 4, '0')
        || REGEXP_REPLACE(CAST(:value AS TEXT), '^[0-9]+(-[0-9]+-[0-9]+) \(BC\)', '\1')
    ELSE CAST(:value AS TEXT)
END"""


def text_of_moment(node: exp.Cast, kind: SqlType) -> exp.Expr:
    """A date or timestamp as a text: years before the first have no era, those behind 9999 a sign. ``kind``: its type."""
    # Without the time zone.
    value = exp.Cast(this=node.this, to=exp.DataType.build("TIMESTAMP")) if kind == TIMESTAMP else node.this
    return once(value, lambda moment: written(_TEXT_OF_MOMENT, value=moment), "_moment")


def moment_of_text(node: exp.Cast, to: SqlType) -> exp.Expr:
    """A cast of a text to a TIMESTAMP or TIMESTAMP_NTZ. A text without a time zone is the first moment that clocks show so."""
    text = node.this
    if _is_written(text):
        if _PLAIN.fullmatch(text.name):
            return first_shown(node) if to == TIMESTAMP else node
        if not _READ.fullmatch(text.name) and not _OTHER.fullmatch(text.name):
            return _of_no_form(node, _MOMENT_FORM)

    def read(text: exp.Expr) -> exp.Expr:
        return written(
            _CANONICAL, value=text, plain=_form(_PLAIN), read=_form(_READ), other=_form(_OTHER),
            refused=_refused(f"the cast of a text with such a time zone, or of a time alone, to {to}"),
            otherwise=_otherwise(node, text, _MOMENT_FORM),
        )  # fmt: skip

    def moment(text: exp.Expr) -> exp.Expr:
        value = type(node)(this=text.copy(), to=node.to.copy())
        region = written(_ZONE_NAME, value=text)
        in_region = shown_in(region, written(_WITHOUT_ZONE, value=text))
        has_zone = written(_HAS_ZONE, value=text)
        is_region = exp.and_(has_zone, call("REGEXP_MATCHES", text.copy(), exp.Literal.string("[A-Za-z]/")))
        return exp.Case(
            ifs=[exp.If(this=is_region, true=in_region), exp.If(this=has_zone.copy(), true=value)],
            default=first_shown(value.copy()),
        )

    canonical = once(text, read, "_text")
    if to == TIMESTAMP_NTZ:
        return type(node)(this=canonical, to=engine_words(to))
    usual = once(text.copy(), lambda value: written(_USUAL_MOMENT, value=value), "_text")
    return exp.Coalesce(this=zoned_of_local(usual, is_finite=True), expressions=[once(canonical, moment, "_moment_text")])


def date_of_text(node: exp.Expr) -> exp.Expr:
    """A cast of a text to a DATE, or ``to_date`` of it."""
    text = node.this
    form = "a day as yyyy-MM-dd"
    if _is_written(text) and not _DATE.fullmatch(text.name) and not _MONTH_OR_YEAR.fullmatch(text.name):
        return _of_no_form(node, form)

    def read(text: exp.Expr) -> exp.Expr:
        canonical = written(
            _DATE_OF_TEXT, value=text, day=_form(_DATE), month_or_year=_form(_MONTH_OR_YEAR), otherwise=_otherwise(node, text, form)
        )
        by_form = node.copy()
        by_form.set("this", canonical)
        return by_form if _is_written(text) else exp.Coalesce(this=written(_USUAL_DATE, value=text), expressions=[by_form])

    return once(text, read, "_text")


def boolean_of_text(node: exp.Cast) -> exp.Expr:
    """A cast of a text to a BOOLEAN."""
    text = node.this
    ends = exp.Literal.string(rf"^{_BLANK[:-1]}+|{_BLANK[:-1]}+$")
    node.set("this", call("REGEXP_REPLACE", text, ends, exp.Literal.string(""), exp.Literal.string("g")))
    return node


def float_of_text(node: exp.Cast) -> exp.Expr:
    """A cast of a text to a FLOAT or DOUBLE, which may end with the letter of its type as in Java."""
    text, form = node.this, "a number without underscores"
    forms = (_FLOAT, _FLOAT_WORD, _FLOAT_WITH_LETTER, _HEXADECIMAL)
    if _is_written(text):
        if not any(one.fullmatch(text.name) for one in forms):
            return _of_no_form(node, form)
        if _FLOAT.fullmatch(text.name):
            return node

    def read(text: exp.Expr) -> exp.Expr:
        return written(
            _FLOAT_OF_TEXT, value=text, plain=_form(_FLOAT), word=_form(_FLOAT_WORD), with_letter=_form(_FLOAT_WITH_LETTER),
            hexadecimal=_form(_HEXADECIMAL), refused=_refused("the cast of a hexadecimal text to a float"),
            otherwise=_otherwise(node, text, form),
        )  # fmt: skip

    node.set("this", once(text, read, "_text"))
    return node


def _is_written(text: exp.Expr) -> bool:
    return isinstance(text, exp.Literal) and text.is_string


def _form(pattern: re.Pattern[str]) -> exp.Literal:
    return exp.Literal.string(pattern.pattern)


def _refused(what: str) -> exp.Expr:
    return call("ERROR", exp.Literal.string(str(refusal(what))))


def _otherwise(node: exp.Expr, text: exp.Expr, form: str) -> exp.Expr:
    """The value of a text in no form: NULL where it is tried, else an error."""
    if isinstance(node, exp.TryCast):
        return exp.null()
    parts = [exp.Literal.string(f"expected {form}, found '"), text.copy(), exp.Literal.string(f"'{in_own_text(node)}")]
    return call("ERROR", exp.Concat(expressions=parts))


def _of_no_form(node: exp.Expr, form: str) -> exp.Expr:
    """The value of a cast of a written text that is in no form. Raises InvalidInputError unless it is tried."""
    if isinstance(node, exp.TryCast):
        node.set("this", exp.null())
        return node
    raise InvalidInputError(f"{_shown(node)}: expected {form}, found {node.this.sql()}", kind="query")


def _shown(node: exp.Expr) -> str:
    return f"CAST({node.this.sql()} AS {node.to.sql()})" if isinstance(node, exp.Cast) else f"to_date({node.this.sql()})"


def once(value: exp.Expr, write: Callable[[exp.Expr], exp.Expr], name: str = "_value") -> exp.Expr:
    """An expression in which a value stands several times, and is computed once."""
    if isinstance(value, (exp.Column, exp.Literal)):
        return write(value)
    inner = exp.Lambda(this=write(exp.column(name)), expressions=[exp.to_identifier(name)])
    return exp.Bracket(
        this=call("LIST_TRANSFORM", exp.Array(expressions=[value]), inner), expressions=[exp.Literal.number(1)], offset=1
    )
