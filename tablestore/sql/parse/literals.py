"""Parses constants in statements: texts, numbers, dates, option lists, partitions.

Those of queries are the engine's; :func:`refused_literal` finds what Spark refuses among them, for engines that do not.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.tokens import Kind, Token, name_of
from tablestore.sql.source import Span
from tablestore.types.datatypes import MAX_PRECISION

MOST_DIGITS = 400
_TYPED = ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
_PLAIN = {"TRUE": True, "FALSE": False, "NULL": None}
_SUFFIXES = "bBdDfFlLsSyY"
# The parts of numbers in queries: digits, fraction, exponent, type.
_WRITTEN = re.compile(r"(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?(BD|[LSYDF]?)", re.IGNORECASE)
_FLOATS = {"": ("DOUBLE", 1.7976931348623157e308), "D": ("DOUBLE", 1.7976931348623157e308), "F": ("FLOAT", 3.4028234663852886e38)}
_WHOLE = {"L": ("BIGINT", 2**63), "S": ("SMALLINT", 2**15), "Y": ("TINYINT", 2**7)}
_HEX = re.compile(r"['\"][0-9a-fA-F]*['\"]")


class ConstantText(NamedTuple):
    """``value`` as Python's; ``text`` as the engine reads it, None for NULL."""

    value: str | int | float | bool | None
    text: str | None


def constant(cursor: Cursor) -> ConstantText:
    """Takes a text, a number, TRUE, FALSE, NULL, DATE '…' or TIMESTAMP '…'."""
    token = cursor.next
    if cursor.sees_text():
        text = cursor.string("a text")
        return ConstantText(text, text)
    if token.kind is Kind.NUMBER or (token.key in ("-", "+") and cursor.ahead(1).kind is Kind.NUMBER):
        return _number(cursor)
    if token.key in _PLAIN:
        value = _PLAIN[cursor.take().key]
        return ConstantText(value, None if value is None else str(value).lower())
    if token.key in _TYPED and cursor.sees_text(1):
        cursor.take()
        text = cursor.string("a text")
        return ConstantText(text, text)
    if token.key == "INTERVAL" or (token.key == "X" and cursor.sees_text(1)):
        raise cursor.unsupported(f"a literal with {token.key} is not supported here; write its value as a text between quotes")
    if token.key in (":", "?"):
        raise cursor.unsupported("a parameter stands only in queries, conditions and expressions; write the value itself")
    raise cursor.error("a literal")


def refused_literal(tokens: Iterable[Token]) -> tuple[Span, str] | None:
    """The first number or text of bytes among the tokens of a query that Spark refuses, and why."""
    nothing = Token(Kind.END, "", 0, 0, "")
    for before, token in pairwise((nothing, *tokens)):
        if token.kind is Kind.NUMBER and (why := _out_of_range(token.text, negative=before.key == "-")) is not None:
            return token.span, why
        if token.kind is Kind.TEXT and before.key == "X" and before.end == token.start and not _HEX.fullmatch(token.text):
            return (
                Span(before.start, token.end),
                f"expected hexadecimal digits, as in X'1F', found {before.text}{token.text:.60}",
            )
    return None


def _out_of_range(written: str, *, negative: bool) -> str | None:
    """The reason why a number has no value of its type; None if it has one."""
    if (match := _WRITTEN.fullmatch(written)) is None:
        return None
    whole, fraction, exponent, suffix = match[1].lstrip("0"), match[2], match[3], match[4].upper()
    if suffix in _WHOLE:
        name, most = _WHOLE[suffix]
        # A BIGINT has 19 digits.
        fits = len(whole) < 20 and int(whole or "0") < most + negative
        return None if fits else f"the number {written:.60} is out of the range of a {name}, which ends at {most - 1}"
    if suffix in ("D", "F") or (exponent is not None and not suffix):
        name, highest = _FLOATS[suffix]
        fits = float(written.rstrip(_SUFFIXES)) <= highest
        return None if fits else f"the number {written:.60} is out of the range of a {name}, which ends at {highest}"
    scale = len(fraction) - _exponent(exponent or "0")
    digits = len((whole + fraction).lstrip("0"))
    digits = digits - scale if scale < 0 else max(digits, scale)
    if digits <= MAX_PRECISION:
        return None
    return f"the number {written:.60} has {digits} digits, and a DECIMAL has {MAX_PRECISION} at most; a DOUBLE is written 1e40"


def _exponent(written: str) -> int:
    """An exponent; one of many digits is as good as another."""
    return int(written) if len(written) <= MOST_DIGITS else int(f"{written[:1].strip('0123456789')}{10**9}")


def option_list(cursor: Cursor) -> dict[str, str]:
    """Takes ``('key' = 'value', key.with.dots = 4, …)``."""
    options: dict[str, str] = {}
    for _ in cursor.listed():
        set_option(cursor, options)
    return options


def set_option(cursor: Cursor, options: dict[str, str]) -> None:
    """Puts ``key = value`` (the sign may be missing) into ``options``. Raises InvalidInputError for a key that is there."""
    start = cursor.next.start
    key = option_key(cursor)
    place = cursor.span_from(start)
    cursor.accept("=")
    if cursor.next.kind is Kind.WORD and cursor.next.key not in _PLAIN:
        raise cursor.error("a value between quotes")
    value = constant(cursor)
    if value.text is None:
        raise cursor.wrong(f"the option {key!r:.80} has no value: expected a text or a number, found NULL", start)
    add_option(cursor, options, key, value.text, place)


def add_option(cursor: Cursor, options: dict[str, str], key: str, value: str, place: Span) -> None:
    """Puts an option into ``options``. Raises InvalidInputError for a key that is there."""
    if key in options:
        raise cursor.wrong(f"the option {key!r:.80} is given twice: {options[key]!r:.80} and {value!r:.80}", place.start)
    options[key] = value


def option_key(cursor: Cursor) -> str:
    """Takes ``'key'``, or a key of words, digits and . - : * without a blank between them."""
    if cursor.sees_text():
        key = cursor.string("an option")
        if not key:
            cursor.at -= 1
            raise cursor.wrong("expected the name of an option, found an empty text")
        return key
    if not cursor.sees_name():
        raise cursor.error("an option")
    parts = [cursor.take()]
    while cursor.next.start == parts[-1].end and _continues_key(cursor.next):
        parts.append(cursor.take())
    return "".join(name_of(part) for part in parts)


def option_keys(cursor: Cursor) -> tuple[str, ...]:
    """Takes ``('key', key.with.dots, …)``."""
    return tuple([option_key(cursor) for _ in cursor.listed()])


def partition_spec(cursor: Cursor) -> Mapping[str, str | None]:
    """Takes ``(column = literal, …)``, after the word PARTITION: column -> value as text, None for NULL."""
    spec: dict[str, str | None] = {}
    for _ in cursor.listed():
        column = partition_column(cursor, spec)
        cursor.expect("=")
        spec[column] = constant(cursor).text
    return spec


def partition_column(cursor: Cursor, spec: Mapping[str, object]) -> str:
    """Takes the name of a column that is not in ``spec`` yet."""
    start = cursor.next.start
    column = cursor.name("a partition column")
    if column in spec:
        raise cursor.wrong(f"the partition column {column!r:.80} stands here twice", start)
    return column


def optional_partition(cursor: Cursor) -> Mapping[str, str | None] | None:
    """Takes ``PARTITION (…)`` if it comes next."""
    return partition_spec(cursor) if cursor.accept("PARTITION") else None


def _continues_key(token: Token) -> bool:
    return token.kind in (Kind.WORD, Kind.NAME, Kind.NUMBER) or token.key in (".", "-", ":", "::", "*")


def _number(cursor: Cursor) -> ConstantText:
    start = cursor.next.start
    sign = "-" if cursor.next.key == "-" else ""
    if cursor.next.kind is Kind.SIGN:
        cursor.take()
    written = cursor.take().text
    if len(written) > MOST_DIGITS:
        raise cursor.wrong(f"expected a number of at most {MOST_DIGITS} digits, found {len(written)}", start)
    text = sign + written.rstrip(_SUFFIXES)
    return ConstantText(int(text) if text.lstrip("-").isdecimal() else float(text), text)
