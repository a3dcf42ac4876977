"""Parses JSON text with its numbers as they are written: digit for digit as text, exactly as whole numbers.

Every number of JSON is read. One that no column has room for is a fault of the column that it is for, and none where it is not
asked for. So it is with a name that an object has twice.
"""

import json
from decimal import Decimal
from typing import Any

# A whole number of more digits fits no column.
_MOST_DIGITS = 76
# Python makes no integer of longer ones.
_LONGEST_INTEGER = 4_000
# A larger exponent, of which Python makes no decimal, is as good as this one: both are beyond all columns.
_LARGEST_EXPONENT = "999999"


class WrittenNumber(str):
    """A number with a point, an exponent or very many digits, as it is written."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class _MinusZero(int):
    """The whole number -0, which as a float keeps its sign."""

    __slots__ = ()

    def __float__(self) -> float:
        return -0.0


class NamedTwice:
    """Stands for the value of a name that an object has twice, which fits no column: JSON leaves open which of them counts."""

    def __repr__(self) -> str:
        return "two values of one name"


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                members[name] = NamedTwice()
            seen.add(name)
    return members


def _integer(text: str) -> int | WrittenNumber:
    if text == "-0":
        return _MinusZero()
    return int(text) if len(text) <= _LONGEST_INTEGER else WrittenNumber(text)


JSON = json.JSONDecoder(parse_float=WrittenNumber, parse_int=_integer, object_pairs_hook=_object_of)
# Faster, refuses the very long integers, and reads -0 as 0.
_JSON_OF_SHORT_INTEGERS = json.JSONDecoder(parse_float=WrittenNumber, object_pairs_hook=_object_of)


def parse_json(text: str) -> Any:
    """A text of JSON. Raises ValueError for another one, also for one that is nested too deeply."""
    try:
        try:
            return (JSON if "-0" in text else _JSON_OF_SHORT_INTEGERS).decode(text)
        except ValueError:
            return JSON.decode(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def parse_object(text: bytes) -> dict[str, Any]:
    """The object that a text of JSON is. Raises ValueError for any other text."""
    try:
        value = parse_json(text.decode())
    except ValueError as error:
        raise ValueError(f"not JSON: {text[:100]!r} ({error})") from error
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, found {text[:100]!r}")
    return value


def whole_number(number: str | Decimal) -> int:
    """A number without a fraction as an integer. Raises ValueError for another one."""
    value = Decimal(_with_an_exponent_in_reach(number)) if isinstance(number, str) else number
    if value and value.adjusted() > _MOST_DIGITS:
        raise ValueError(f"a number of more than 64 bits: {number!s:.100}")
    if value != value.to_integral_value():
        raise ValueError(f"expected a whole number, found {number!s:.100}")
    return int(value)


def _with_an_exponent_in_reach(text: str) -> str:
    digits, mark, exponent = text.lower().partition("e")
    size = exponent.lstrip("+-0")
    if len(size) <= len(_LARGEST_EXPONENT):
        return text
    return f"{digits}{mark}{'-' if exponent.startswith('-') else ''}{_LARGEST_EXPONENT}"


def json_text(value: Any) -> str:
    """An object or a list as JSON without spaces, its numbers as they were written."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{json_text(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    if isinstance(value, NamedTwice):
        raise ValueError(f"found {value}")
    return str(value) if isinstance(value, WrittenNumber) else json.dumps(value, ensure_ascii=False)
