"""Says what is to be done about a number in a file for which its column has no room."""

import re

_NUMBER = re.compile(r"[+-]?(?:\d+(?P<fraction>\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_NUMBERS = (*_WHOLE, "FLOAT", "DOUBLE", "DECIMAL")


def no_room(text: str, expected: str) -> str:
    """The end of an error that names the text ``text`` and the type ``expected``; empty where it is about something else."""
    number = _NUMBER.fullmatch(text)
    if number is None or (expected in _WHOLE and number["fraction"]) or not expected.startswith(_NUMBERS):
        return ""
    wider = "" if expected == "DOUBLE" else "give the column a wider type with tablestore table alter change-type, or "
    return f"; {expected} has no room for it: {wider}correct the value"
