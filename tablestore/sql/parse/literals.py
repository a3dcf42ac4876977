"""Constants as they are written in statements: texts, numbers, dates, option lists, partitions."""

from collections.abc import Mapping
from typing import NamedTuple

from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.tokens import Kind, Token, name_of
from tablestore.sql.source import Span

MOST_DIGITS = 400
_TYPED = ("DATE", "TIME", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ")
_PLAIN = {"TRUE": True, "FALSE": False, "NULL": None}
_SUFFIXES = "bBdDfFlLsSyY"


class Constant(NamedTuple):
    """``value`` as Python's; ``text`` as the engine reads it, None for NULL."""

    value: str | int | float | bool | None
    text: str | None


def constant(cursor: Cursor) -> Constant:
    """Take a text, a number, TRUE, FALSE, NULL, DATE '…' or TIMESTAMP '…'."""
    token = cursor.next
    if cursor.sees_text():
        text = cursor.string("a text")
        return Constant(text, text)
    if token.kind is Kind.NUMBER or (token.key in ("-", "+") and cursor.ahead(1).kind is Kind.NUMBER):
        return _number(cursor)
    if token.key in _PLAIN:
        value = _PLAIN[cursor.take().key]
        return Constant(value, None if value is None else str(value).lower())
    if token.key in _TYPED and cursor.sees_text(1):
        cursor.take()
        text = cursor.string("a text")
        return Constant(text, text)
    if token.key == "INTERVAL" or (token.key == "X" and cursor.sees_text(1)):
        raise cursor.unsupported(f"a literal with {token.key} is not supported here; write its value as a text between quotes")
    if token.key in (":", "?"):
        raise cursor.unsupported("a parameter stands only in queries, conditions and expressions; write the value itself")
    raise cursor.error("a literal")


def option_list(cursor: Cursor) -> dict[str, str]:
    """Take ``('key' = 'value', key.with.dots = 4, …)``."""
    options: dict[str, str] = {}
    for _ in cursor.listed():
        set_option(cursor, options)
    return options


def set_option(cursor: Cursor, options: dict[str, str]) -> None:
    """Put ``key = value`` (the sign may be missing) into ``options``. Raises InvalidInputError for a key that is there."""
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
    """Put an option into ``options``. Raises InvalidInputError for a key that is there."""
    if key in options:
        raise cursor.wrong(f"the option {key!r:.80} is given twice: {options[key]!r:.80} and {value!r:.80}", place.start)
    options[key] = value


def option_key(cursor: Cursor) -> str:
    """Take ``'key'``, or a key of words, digits and . - : * without a blank between them."""
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
    """Take ``('key', key.with.dots, …)``."""
    return tuple([option_key(cursor) for _ in cursor.listed()])


def partition_spec(cursor: Cursor) -> Mapping[str, str | None]:
    """Take ``(column = literal, …)``, after the word PARTITION: column -> value as text, None for NULL."""
    spec: dict[str, str | None] = {}
    for _ in cursor.listed():
        column = partition_column(cursor, spec)
        cursor.expect("=")
        spec[column] = constant(cursor).text
    return spec


def partition_column(cursor: Cursor, spec: Mapping[str, object]) -> str:
    """Take the name of a column that is not in ``spec`` yet."""
    start = cursor.next.start
    column = cursor.name("a partition column")
    if column in spec:
        raise cursor.wrong(f"the partition column {column!r:.80} stands here twice", start)
    return column


def optional_partition(cursor: Cursor) -> Mapping[str, str | None] | None:
    """Take ``PARTITION (…)`` if it comes next."""
    return partition_spec(cursor) if cursor.accept("PARTITION") else None


def _continues_key(token: Token) -> bool:
    return token.kind in (Kind.WORD, Kind.NAME, Kind.NUMBER) or token.key in (".", "-", ":", "*")


def _number(cursor: Cursor) -> Constant:
    start = cursor.next.start
    sign = "-" if cursor.next.key == "-" else ""
    if cursor.next.kind is Kind.SIGN:
        cursor.take()
    written = cursor.take().text
    if len(written) > MOST_DIGITS:
        raise cursor.wrong(f"expected a number of at most {MOST_DIGITS} digits, found {len(written)}", start)
    text = sign + written.rstrip(_SUFFIXES)
    return Constant(int(text) if text.lstrip("-").isdecimal() else float(text), text)
