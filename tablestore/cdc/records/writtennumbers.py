"""Keeps numbers of JSON as they are written: digit for digit as text, exactly as whole numbers."""

import json
from decimal import Decimal
from typing import Any

# A whole number of more digits fits no column.
_MOST_DIGITS = 76


class WrittenNumber(Decimal):
    """A number with a point or an exponent. Its text is what was written, also where its value has a shorter one."""

    __slots__ = ("written",)
    written: str

    def __new__(cls, text: str) -> "WrittenNumber":
        number = super().__new__(cls, text)
        number.written = text
        return number

    def __str__(self) -> str:
        return self.written

    __repr__ = __str__


def whole_number(number: Decimal) -> int:
    """A number without a fraction as an integer. Raises ValueError for another one."""
    if number.adjusted() > _MOST_DIGITS:
        raise ValueError(f"a number of more than 64 bits: {number!s:.100}")
    if number != number.to_integral_value():
        raise ValueError(f"expected a whole number, found {number!s:.100}")
    return int(number)


def json_text(value: Any) -> str:
    """An object or a list as JSON without spaces, its numbers as they were written."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{json_text(part)}" for name, part in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(json_text, value)) + "]"
    return str(value) if isinstance(value, WrittenNumber) else json.dumps(value, ensure_ascii=False)
