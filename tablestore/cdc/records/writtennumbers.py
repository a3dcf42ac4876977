"""Keeps numbers of JSON as they are written: digit for digit as text, exactly as whole numbers.

Every number of JSON is read. One that no column has room for is a fault of the column that it is for, and none where it is not
asked for. So it is with a name that an object has twice.
"""

import json
from decimal import Decimal
from typing import Any

from tablestore.log.json.jsonrows import NamedTwice, object_of

# A whole number of more digits fits no column.
_MOST_DIGITS = 76
# Python makes no integer of longer ones.
_LONGEST_INTEGER = 4_000
# A larger exponent, of which Python makes no decimal, is as good as this one: both are beyond all columns.
_LARGEST_EXPONENT = "999999"


class WrittenNumber(Decimal):
    """A number with a point, an exponent or very many digits. Its text is what was written, also where its value has a shorter
    one."""

    __slots__ = ("written",)
    written: str

    def __new__(cls, text: str) -> "WrittenNumber":
        number = super().__new__(cls, _with_an_exponent_in_reach(text))
        number.written = text
        return number

    def __str__(self) -> str:
        return self.written

    __repr__ = __str__


def parse_json(text: str) -> Any:
    """A text of JSON. Raises ValueError for another one, also for one that is nested too deeply."""
    try:
        return JSON.decode(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _integer(text: str) -> "int | WrittenNumber":
    return int(text) if len(text) <= _LONGEST_INTEGER else WrittenNumber(text)


JSON = json.JSONDecoder(parse_float=WrittenNumber, parse_int=_integer, object_pairs_hook=object_of)


def whole_number(number: Decimal) -> int:
    """A number without a fraction as an integer. Raises ValueError for another one."""
    if number and number.adjusted() > _MOST_DIGITS:
        raise ValueError(f"a number of more than 64 bits: {number!s:.100}")
    if number != number.to_integral_value():
        raise ValueError(f"expected a whole number, found {number!s:.100}")
    return int(number)


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
