"""Columns as people write them on a command line: ``id BIGINT NOT NULL, name STRING COMMENT 'full name'``.

    columns = column { "," column }
    column  = name type [ "COMMENT" text ]          name: a word, or anything between backticks
    type    = ARRAY "<" type ">" | MAP "<" type "," type ">" | MULTISET "<" type ">" | ROW "<" columns ">" | atomic, [NOT] NULL

Atomic types are those of a schema file (``typestring``).
"""

import re

from tablestore.errors import FormatError, InvalidInputError
from tablestore.types.datatypes import ArrayType, DataType, Field, MapType, MultisetType, RowType, with_nullable
from tablestore.types.typestring import MAX_TYPE_DEPTH, parse_type

_NAME = re.compile(r"\s*(?:`(?P<quoted>(?:[^`]|``)+)`|(?P<plain>\w+))\s*:?\s*")
_COMMENT = re.compile(r"\s+COMMENT\s+'(?P<text>(?:[^']|'')*)'\s*$", re.IGNORECASE)
_CONSTRUCTED = re.compile(
    r"\s*(?P<name>ARRAY|MAP|MULTISET|ROW|STRUCT)\s*<(?P<inner>.*)>\s*(?P<null>(?:NOT\s+)?NULL)?\s*", re.IGNORECASE | re.DOTALL
)
_PAIRS = {"(": ")", "<": ">"}
_EXAMPLE = 'for example "id BIGINT NOT NULL, name STRING, tags ARRAY<STRING>"'


def parse_columns(text: str) -> tuple[Field, ...]:
    """The columns that the text says. Raises InvalidInputError, or UnsupportedError for types nobody stores."""
    return _columns(text, 0)


def parse_column(text: str) -> Field:
    """One column."""
    fields = _columns(text, 0)
    if len(fields) != 1:
        raise InvalidInputError(f"expected one column, found {len(fields)} in {text!r:.200}; {_EXAMPLE}")
    return fields[0]


def parse_type_text(text: str) -> DataType:
    """A type, nested ones as in SQL."""
    return _type(text, 0)


def _columns(text: str, depth: int) -> tuple[Field, ...]:
    if depth > MAX_TYPE_DEPTH:
        raise InvalidInputError(f"a type is nested more than {MAX_TYPE_DEPTH} levels deep", kind="limit")
    parts = [part for part in _split(text) if part.strip()]
    if not parts:
        raise InvalidInputError(f"expected columns, found none; {_EXAMPLE}")
    return tuple(_column(part, number, depth) for number, part in enumerate(parts))


def _column(text: str, number: int, depth: int) -> Field:
    match = _NAME.match(text)
    if match is None or not text[match.end() :].strip():
        raise InvalidInputError(f"expected a column as 'name TYPE', found {text.strip()!r:.200}; {_EXAMPLE}")
    rest, comment = text[match.end() :], None
    if found := _COMMENT.search(rest):
        rest, comment = rest[: found.start()], found["text"].replace("''", "'")
    name = match["quoted"].replace("``", "`") if match["quoted"] else match["plain"]
    return Field(id=number, name=name, type=_type(rest, depth), description=comment)


def _type(text: str, depth: int) -> DataType:
    match = _CONSTRUCTED.fullmatch(text)
    if match is None:
        try:
            return parse_type(text.strip())
        except FormatError as error:
            raise InvalidInputError(f"{error.message}; {_EXAMPLE}", kind="invalid-type") from error
    name, inner = match["name"].upper(), match["inner"]
    parsed: DataType
    if name in ("ROW", "STRUCT"):
        parsed = RowType(fields=_columns(inner, depth + 1))
    else:
        if depth > MAX_TYPE_DEPTH:
            raise InvalidInputError(f"a type is nested more than {MAX_TYPE_DEPTH} levels deep", kind="limit")
        parts = _split(inner)
        wanted = 2 if name == "MAP" else 1
        if len(parts) != wanted:
            raise InvalidInputError(f"expected {wanted} type(s) inside {name}<…>, found {inner.strip()!r:.200}; {_EXAMPLE}")
        types = [_type(part, depth + 1) for part in parts]
        if name == "MAP":
            parsed = MapType(key=types[0], value=types[1])
        else:
            parsed = ArrayType(element=types[0]) if name == "ARRAY" else MultisetType(element=types[0])
    return with_nullable(parsed, False) if (match["null"] or "").upper().startswith("NOT") else parsed


def _split(text: str) -> list[str]:
    """The parts between commas that stand outside of brackets and quotes."""
    parts, open_brackets, quote, start = [], [], "", 0
    for position, char in enumerate(text):
        if quote:
            quote = "" if char == quote else quote
        elif char in "`'":
            quote = char
        elif char in _PAIRS:
            open_brackets.append(_PAIRS[char])
        elif char in _PAIRS.values():
            if not open_brackets or open_brackets.pop() != char:
                raise InvalidInputError(f"found {char!r} without its beginning in {text.strip()!r:.200}; {_EXAMPLE}")
        elif char == "," and not open_brackets:
            parts.append(text[start:position])
            start = position + 1
    if quote or open_brackets:
        missing = quote or open_brackets[-1]
        raise InvalidInputError(f"{missing!r} is missing at the end of {text.strip()!r:.200}; {_EXAMPLE}")
    return [*parts, text[start:]]
