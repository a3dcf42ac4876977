"""Reads VALUES that are literals only, as Arrow rows.

A long list costs a query engine, and the rewriting before it, far more than its rows are worth: each value becomes a dozen
objects, several times. So many rows of literals are read here, in one pass over their tokens, and the engine gets them as a table.
Their types are those that Spark gives: 7 is an INT, 3000000000 a BIGINT, 2.50 a DECIMAL(3, 2); a column of several kinds of
numbers has the least type that holds all.
"""

import datetime as dt
import re
from collections.abc import Sequence
from decimal import Decimal

import pyarrow as pa

from tablestore.sql.parse.tokens import Kind
from tablestore.sql.query.tokenstream import Tokens
from tablestore.types.datatypes import MAX_PRECISION

# Below, an engine is fast enough, and its errors name a place in the text.
LEAST_ROWS = 100

_VALUES = re.compile(r"\s*VALUES\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(?:\.\d*)?|\.\d+")
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TYPES = {str: pa.string(), bool: pa.bool_(), dt.date: pa.date32()}
_WORDS = {"NULL": None, "TRUE": True, "FALSE": False}
# The numbers of digits that Spark gives to whole numbers beside a decimal.
_INT_DIGITS, _BIGINT_DIGITS = 10, 20

Literal = bool | str | int | Decimal | dt.date | None


def literal_rows(values: str, least: int = LEAST_ROWS) -> pa.Table | None:
    """The rows of ``VALUES (…), (…)``, columns col1, col2, …; None if there are fewer than ``least``, or an engine has to look at
    them."""
    if values.count("(") < least or not _VALUES.match(values):
        return None
    rows = _rows(Tokens(values))
    if rows is None or len(rows) < least or len({len(row) for row in rows}) > 1:
        return None
    columns = [_column(column) for column in zip(*rows, strict=True)]
    if any(column is None for column in columns):
        return None
    return pa.table({f"col{place}": column for place, column in enumerate(columns, 1)})


def _rows(tokens: Tokens) -> list[list[Literal]] | None:
    """The values; None if there is anything but literals. A loop, because this is the parser."""
    rows: list[list[Literal]] = []
    at = 0
    if tokens.key(0) != "VALUES":
        return None
    while at == 0 or tokens.key(at) == ",":
        if tokens.key(at + 1) != "(":
            return None
        at += 1
        row: list[Literal] = []
        while tokens.key(at) in ("(", ","):
            at += 1
            sign = tokens.key(at)
            at += sign in ("-", "+")
            token = tokens.get(at)
            if token is None:
                return None
            if token.kind is Kind.NUMBER and _NUMBER.fullmatch(token.text):
                number = Decimal(token.text) if "." in token.text else int(token.text)
                row.append(-number if sign == "-" else number)
            elif sign in ("-", "+"):
                return None
            elif token.kind is Kind.TEXT:
                row.append(tokens.value(at))
            elif token.key == "DATE" and (day := _day(tokens, at + 1)) is not None:
                row.append(day)
                at += 1
            elif token.key in _WORDS:
                row.append(_WORDS[token.key])
            else:
                return None
            at += 1
        if tokens.key(at) != ")":
            return None
        at += 1
        rows.append(row)
    return rows if at == len(tokens) else None


def _day(tokens: Tokens, at: int) -> dt.date | None:
    """The day that a text says in the one form that everybody reads alike."""
    token = tokens.get(at)
    if token is None or token.kind is not Kind.TEXT or not _DAY.fullmatch(text := tokens.value(at)):
        return None
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def _column(values: Sequence[Literal]) -> pa.Array | None:
    """Values of one kind as an array; None for a mixture."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pa.nulls(len(values))
    if kinds <= {int, Decimal}:
        data_type = _number_type([value for value in values if isinstance(value, int | Decimal)])
        return None if data_type is None else pa.array(values, data_type)
    if len(kinds) > 1:
        return None
    (kind,) = kinds
    return pa.array(values, _TYPES[kind])


def _number_type(numbers: Sequence[int | Decimal]) -> pa.DataType | None:
    """The least type of all numbers; None where a whole number needs more than 64 bits, or a decimal more digits than there are."""
    whole = [number for number in numbers if isinstance(number, int)]
    shapes = [_shape(number) for number in numbers if isinstance(number, Decimal)]
    bits = max((number if number >= 0 else ~number).bit_length() for number in whole) if whole else 0
    if bits > 63:
        return None
    if not shapes:
        return pa.int32() if bits < 32 else pa.int64()
    if whole:
        shapes.append((_INT_DIGITS if bits < 32 else _BIGINT_DIGITS, 0))
    scale = max(scale for _, scale in shapes)
    precision = max(before for before, _ in shapes) + scale
    return pa.decimal128(precision, scale) if precision <= MAX_PRECISION else None


def _shape(number: Decimal) -> tuple[int, int]:
    """The numbers of digits before and behind the point."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int), "no NaN is spelled with digits"
    return max(len(digits) + exponent, 0), -exponent
