"""Finds the parameters that a text names, and checks and binds their values.

``:name`` takes a value by its name, ``?`` by its place. A text with ``?`` is edited to names (``:_1``, ``:_2``, …), so that
clauses can be cut out of it or move, and a value stays with its place.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from tablestore.errors import InvalidInputError
from tablestore.names import did_you_mean
from tablestore.sql.parse.tokens import Kind
from tablestore.sql.query.tokenstream import Tokens, tokens_of
from tablestore.sql.source import Edit, Fragment, Span, apply_edits, marked
from tablestore.sql.sqldialect import SqlDialect
from tablestore.types.datatypes import MAX_PRECISION

Parameters = Mapping[str, Any] | Sequence[Any]

_NAME = re.compile(r"[^\W\d]\w*")
# Both engines take them.
_VALUES = (bool, int, float, Decimal, str, bytes, bytearray, memoryview, date, time, timedelta, UUID)
_LONGEST_NUMBER = 8
_DEEPEST = 32


@dataclass(frozen=True, slots=True)
class Marker:
    """One parameter in a text. ``name`` is what its value is found by; ``by_place``: it was written ``?``."""

    name: str
    span: Span
    by_place: bool


def may_have_markers(text: str) -> bool:
    """True if a text may name parameters: long statements have too many tokens to read them once more for nothing."""
    return "?" in text or ":" in text


def find_markers(tokens: Tokens) -> Iterator[Marker]:
    """The parameters of a text, in order of their place. In DuckDB's words they are ``?``, ``$1`` and ``$name``."""
    if tokens.dialect is SqlDialect.DUCKDB:
        yield from _find_dollars(tokens)
        return
    count = 0
    for at in tokens.places(("?", ":")):
        token, before, behind = tokens[at], tokens.get(at - 1), tokens.get(at + 1)
        if token.key == "?":
            count += 1
            yield Marker(f"_{count}", token.span, by_place=True)
        elif behind is not None and behind.start == token.end and _NAME.fullmatch(behind.text):
            # In struct<a:int> the colon follows a name at once.
            adjacent = before is not None and before.end == token.start
            if before is None or not (adjacent and (before.kind in (Kind.WORD, Kind.NAME) or before.key in (")", "]"))):
                yield Marker(behind.text, Span(token.start, behind.end), by_place=False)


def _find_dollars(tokens: Tokens) -> Iterator[Marker]:
    count = 0
    for at in tokens.places(("?", "$")):
        token, behind = tokens[at], tokens.get(at + 1)
        if token.key == "?":
            count += 1
            yield Marker(f"_{count}", token.span, by_place=True)
        elif behind is not None and behind.start == token.end and behind.kind in (Kind.WORD, Kind.NUMBER):
            is_place = behind.text.isdecimal()
            yield Marker(f"_{behind.text}" if is_place else behind.text, Span(token.start, behind.end), by_place=is_place)


def checked_parameters(text: str, parameters: Parameters) -> Parameters:
    """The values of a statement's parameters, used or not, as both engines take them.

    Raises InvalidInputError for a value that no column has, with the place of its marker.
    """
    if not parameters:
        return parameters
    named = parameters if isinstance(parameters, Mapping) else {f"_{at + 1}": value for at, value in enumerate(parameters)}
    for name, value in named.items():
        if (fault := _strange(value)) is not None:
            raise _no_value(text, name, fault)
    plain_values = {name: _plain_value(value) for name, value in named.items()}
    return plain_values if isinstance(parameters, Mapping) else list(plain_values.values())


def _no_value(text: str, name: str, fault: str) -> InvalidInputError:
    marker = next((marker for marker in find_markers(Tokens(text)) if marker.name == name), None)
    shown = f":{name:.80}" if marker is None else text[marker.span.start : marker.span.end]
    place = "; the statement does not name it, so leave it out" if marker is None else f"\n{marked(text, marker.span)}"
    return InvalidInputError(
        f"the parameter {shown} has {fault}, which no column has: give None, a bool, a number, a text, bytes, a date, a time, a "
        f"datetime or a timedelta, or lists and dicts of them{place}",
        kind="parameters",
    )


def _strange(value: Any, depth: int = 0) -> str | None:
    """The description of a value that no column has; None if a column may have it."""
    if depth > _DEEPEST:
        return f"a value that is nested more than {_DEEPEST} levels deep"
    if isinstance(value, (Mapping, list, tuple)):
        parts = (*value, *value.values()) if isinstance(value, Mapping) else value
        return next((fault for part in parts if (fault := _strange(part, depth + 1)) is not None), None)
    if isinstance(value, str) and not _is_unicode(value):
        return f"a text that is no Unicode ({value!r:.80})"
    if _has_too_many_digits(value):
        return f"a number that is no DECIMAL ({value!r:.80})"
    if value is None or isinstance(value, _VALUES) or _is_of_numpy(value):
        return None
    return f"a value of type {type(value).__qualname__}"


def _has_too_many_digits(value: Any) -> bool:
    """True if a decimal or a whole number is too long for a DECIMAL, or not finite."""
    if not isinstance(value, Decimal):
        return isinstance(value, int) and not -(10**MAX_PRECISION) < value < 10**MAX_PRECISION
    _, digits, exponent = value.as_tuple()
    return isinstance(exponent, str) or max(len(digits) + max(exponent, 0), -exponent) > MAX_PRECISION


def _is_unicode(value: str) -> bool:
    """True if a text can be handed to an engine: half of a pair of surrogates cannot."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_of_numpy(value: Any) -> bool:
    """True if this is a value or an array of numpy whose type a column may have."""
    kind = getattr(value, "dtype", None) if type(value).__module__ == "numpy" else None
    return kind is not None and (kind.kind in "USM" or (kind.kind in "biuf" and kind.itemsize <= _LONGEST_NUMBER))


def _plain_value(value: Any) -> Any:
    """A value as both engines take it: they know values of numpy, memory and ids in few places."""
    if isinstance(value, Mapping):
        return {name: _plain_value(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain_value(part) for part in value]
    if type(value).__module__ == "numpy":
        # Moments to the nanosecond would become numbers.
        return (value.astype("M8[us]") if value.dtype.str.endswith("[ns]") else value).tolist()
    if isinstance(value, memoryview):
        return value.tobytes()
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        # As Spark reads the number in a query.
        return Decimal(value)
    return str(value) if isinstance(value, UUID) else value


def bind_parameters(text: str, tokens: Tokens, parameters: Parameters) -> tuple[tuple[Edit, ...], Mapping[str, Any]]:
    """The edits that give each ``?`` a name, and all values by name. InvalidInputError if markers and values do not match."""
    markers = tuple(find_markers(tokens))
    by_place = [marker for marker in markers if marker.by_place]
    if isinstance(parameters, Mapping) or not parameters:
        named = parameters if isinstance(parameters, Mapping) else {}
        for marker in markers:
            if marker.by_place:
                raise _unbound(
                    text, marker, "values are given by name, and it is marked by its place" if named else "none is given"
                )
            if marker.name not in named:
                raise _unbound(text, marker, f"none is given for this name{did_you_mean(marker.name, named)}")
        return (), named
    if len(by_place) < len(markers):
        wrong = next(marker for marker in markers if not marker.by_place)
        raise _unbound(text, wrong, "values are given by place, and it is marked by its name")
    # DuckDB's $1 may stand there more than once.
    places = sorted({marker.name: None for marker in by_place}, key=lambda name: int(name[1:]))
    if len(places) != len(parameters):
        raise InvalidInputError(
            f"the statement has {len(places)} parameters (?), found {len(parameters)} values", kind="parameters"
        )
    sign = ":" if tokens.dialect is SqlDialect.SPARK else "$"
    edits = tuple(Edit(span=marker.span, text=f"{sign}{marker.name}") for marker in by_place)
    return edits, dict(zip(places, parameters, strict=True))


def named_parameters(text: str, parameters: Parameters) -> Mapping[str, Any]:
    """The values of a statement's parameters by name, ``_n`` for the n-th ``?``. InvalidInputError if they do not match."""
    return bind_parameters(text, Tokens(text), parameters)[1]


def with_literals(text: str, parameters: Parameters, dialect: SqlDialect = SqlDialect.SPARK) -> str:
    """The text with its parameters written out: so a view keeps its query. InvalidInputError for a value without a literal."""
    tokens = Tokens(text, dialect)
    _, named = bind_parameters(text, tokens, parameters)
    edits = []
    for marker in find_markers(tokens):
        if (literal := literal_text(named[marker.name], dialect)) is None:
            type_name, shown = type(named[marker.name]).__qualname__, text[marker.span.start : marker.span.end]
            raise InvalidInputError(
                f"the parameter {shown} is a {type_name}, which no literal stands for: write the value into the query\n"
                f"{marked(text, marker.span)}",
                kind="parameters",
            )
        edits.append(Edit(span=marker.span, text=literal))
    return apply_edits(text, edits, str)


def literal_text(value: object, dialect: SqlDialect = SqlDialect.SPARK) -> str | None:
    """A value as Spark's SQL, or DuckDB's, writes it; None if there is no literal for it."""
    if dialect is SqlDialect.DUCKDB:
        match value:
            case str():
                return "'" + value.replace("'", "''") + "'"
            case bytes():
                return f"unhex('{value.hex()}')"
            case datetime():
                return f"{'TIMESTAMP' if value.tzinfo is None else 'TIMESTAMPTZ'} '{value.isoformat(' ')}'"
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).upper()
        case int():
            return str(value) if value >= 0 else f"({value})"
        case float():
            return f"CAST('{value}' AS DOUBLE)"
        case Decimal() if value.is_finite():
            digits = value.as_tuple()
            scale = max(-int(digits.exponent), 0)
            precision = max(len(digits.digits) + max(int(digits.exponent), 0), scale, 1)
            return f"CAST('{value:f}' AS DECIMAL({precision}, {scale}))"
        case str():
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        case bytes():
            return f"X'{value.hex()}'"
        case datetime():
            kind = "TIMESTAMP_NTZ" if value.tzinfo is None else "TIMESTAMP"
            return f"{kind} '{value.isoformat(' ')}'"
        case date():
            return f"DATE '{value.isoformat()}'"
    return None


def literal_value(text: str, fragment: Fragment, parameters: Parameters) -> Any:
    """The value of a fragment of a text that is a literal or a parameter; None for any other expression: an engine computes it.

    ``'tag'`` and ``TIMESTAMP '2024-01-01'`` give texts, ``7`` gives an int.
    """
    tokens = tokens_of(fragment)
    count = len(tokens)
    if count == 1 and tokens[0].kind is Kind.NUMBER and tokens[0].text.isdecimal():
        return int(tokens[0].text)
    if count == 1 and tokens[0].kind is Kind.TEXT:
        return tokens.value(0)
    if count == 2 and tokens.key(0) in _TYPED and tokens[1].kind is Kind.TEXT:
        return tokens.value(1)
    if count == 6 and tokens.words(0, "CAST", "(") and tokens[2].kind is Kind.TEXT and tokens.words(3, "AS"):
        return tokens.value(2) if tokens.key(4) in _TYPED | {"STRING"} else None
    markers = {marker.span: marker for marker in find_markers(Tokens(text, fragment.dialect))} if parameters else {}
    marker = markers.get(fragment.span)
    if marker is None:
        return None
    if isinstance(parameters, Mapping):
        return parameters.get(marker.name)
    place = int(marker.name[1:]) - 1
    return parameters[place] if marker.by_place and place < len(parameters) else None


_TYPED = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_LTZ", "TIMESTAMP_NTZ"})


def _unbound(text: str, marker: Marker, why: str) -> InvalidInputError:
    shown = text[marker.span.start : marker.span.end]
    return InvalidInputError(f"the parameter {shown} has no value: {why}\n{marked(text, marker.span)}", kind="parameters")
