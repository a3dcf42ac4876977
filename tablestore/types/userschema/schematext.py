"""Parses columns written as SQL text: ``id BIGINT NOT NULL, name STRING COMMENT 'full name', tags ARRAY<STRING>``.

    columns = column { "," column }
    column  = name [":"] type [ "COMMENT" text ]    name: a word, or anything between backticks or double quotes
    type    = ARRAY "<" type ">" | MAP "<" type "," type ">" | MULTISET "<" type ">" | ROW "<" columns ">" | atomic, [NOT] NULL

``STRUCT`` is ``ROW``, and parentheses do as well as angle brackets. Atomic types are those of a schema file (``typestring``).
"""

import re

from tablestore.errors import FormatError, InvalidInputError
from tablestore.types.datatypes import ArrayType, DataType, Field, MapType, MultisetType, RowType, with_nullable
from tablestore.types.typestring import MAX_TYPE_DEPTH, declared_type

_NAME = re.compile(r"\s*(?:`(?P<ticked>(?:[^`]|``)+)`|\"(?P<quoted>(?:[^\"]|\"\")+)\"|(?P<plain>\w+))\s*:?\s*")
_COMMENT = re.compile(r"\s+COMMENT\s+'(?P<text>(?:[^']|'')*)'\s*$", re.IGNORECASE)
_CONSTRUCTED = re.compile(
    r"\s*(?P<name>ARRAY|MAP|MULTISET|ROW|STRUCT)\s*[<(](?P<inner>.*)[>)]\s*(?P<null>(?:NOT\s+)?NULL)?\s*", re.IGNORECASE | re.DOTALL
)
_CONSTRAINT = re.compile(r"\s*(?:CONSTRAINT\s+\S+\s+)?PRIMARY\s+KEY\b", re.IGNORECASE)
_PAIRS = {"(": ")", "<": ">"}
_EXAMPLE = 'for example "id BIGINT NOT NULL, name STRING, tags ARRAY<STRING>"'


def parse_columns(text: str) -> tuple[Field, ...]:
    """The columns that the text says. Raises InvalidInputError, or UnsupportedError for types nobody stores."""
    return _columns(text, 0)


def parse_column(text: str) -> Field:
    """One column. Raises as :func:`parse_columns`."""
    fields = _columns(text, 0)
    if len(fields) != 1:
        raise InvalidInputError(f"expected one column, found {len(fields)} in {text!r:.200}; {_EXAMPLE}", kind="schema")
    return fields[0]


def parse_named(name: str, text: str) -> Field:
    """The column of this name: its type, and what may follow it. Raises as :func:`parse_columns`."""
    return _named(name, text, 0, 0)


def parse_type_text(text: str) -> DataType:
    """A type, nested ones as in SQL. Raises as :func:`parse_columns`."""
    try:
        return _type(text, 0)
    except FormatError as error:
        raise InvalidInputError(error.message, kind="invalid-type") from error


def _columns(text: str, depth: int) -> tuple[Field, ...]:
    _check_depth(depth)
    parts = [part for part in _split(text) if part.strip()]
    if not parts:
        raise InvalidInputError(f"expected columns, found none; {_EXAMPLE}", kind="schema")
    return tuple(_column(part, number, depth) for number, part in enumerate(parts))


def _column(text: str, number: int, depth: int) -> Field:
    if _CONSTRAINT.match(text):
        raise InvalidInputError(
            f"expected columns, found {text.strip()!r:.80}: name the key beside them, as primary_key=['id'] or --primary-key id, "
            "or run CREATE TABLE",
            kind="schema",
        )
    match = _NAME.match(text)
    if match is None or not text[match.end() :].strip():
        raise InvalidInputError(f"expected a column as 'name TYPE', found {text.strip()!r:.200}; {_EXAMPLE}", kind="schema")
    name = (match["ticked"] or "").replace("``", "`") or (match["quoted"] or "").replace('""', '"') or match["plain"]
    return _named(name, text[match.end() :], number, depth)


def _named(name: str, text: str, number: int, depth: int) -> Field:
    comment = None
    if match := _COMMENT.search(text):
        text, comment = text[: match.start()], match["text"].replace("''", "'")
    try:
        return Field(id=number, name=name, type=_type(text, depth), description=comment)
    except FormatError as error:
        raise InvalidInputError(f"column {name!r}: {error.message}", kind="invalid-type") from error


def _type(text: str, depth: int) -> DataType:
    """Raises FormatError for what is no type, InvalidInputError for columns inside that are none."""
    match = _CONSTRUCTED.fullmatch(text)
    if match is None:
        return declared_type(text.strip())
    _check_depth(depth)
    parsed = _constructed(match["name"].upper(), match["inner"], depth + 1)
    return with_nullable(parsed, False) if (match["null"] or "").upper().startswith("NOT") else parsed


def _constructed(name: str, inner: str, depth: int) -> DataType:
    if name in ("ROW", "STRUCT"):
        return RowType(fields=_columns(inner, depth))
    parts = _split(inner)
    arity = 2 if name == "MAP" else 1
    if len(parts) != arity:
        raise FormatError(f"expected {arity} type{'s' if arity > 1 else ''} inside {name}<…>, found {inner.strip()!r:.200}")
    types = [_type(part, depth) for part in parts]
    match name:
        case "MAP":
            return MapType(key=types[0], value=types[1])
        case "ARRAY":
            return ArrayType(element=types[0])
    return MultisetType(element=types[0])


def _check_depth(depth: int) -> None:
    if depth > MAX_TYPE_DEPTH:
        raise InvalidInputError(f"a type is nested more than {MAX_TYPE_DEPTH} levels deep", kind="limit")


def _split(text: str) -> list[str]:
    """The parts between commas that stand outside of brackets and quotes."""
    parts, open_brackets, quote, start = [], [], "", 0
    for position, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "`'\"":
            quote = char
        elif char in _PAIRS:
            open_brackets.append(_PAIRS[char])
        elif char in _PAIRS.values():
            if not open_brackets or open_brackets.pop() != char:
                raise InvalidInputError(f"found {char!r} without its beginning in {text.strip()!r:.200}; {_EXAMPLE}", kind="schema")
        elif char == "," and not open_brackets:
            parts.append(text[start:position])
            start = position + 1
    if quote or open_brackets:
        missing = quote or open_brackets[-1]
        raise InvalidInputError(f"{missing!r} is missing at the end of {text.strip()!r:.200}; {_EXAMPLE}", kind="schema")
    return [*parts, text[start:]]
