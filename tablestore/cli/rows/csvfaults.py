"""Finds the value in a CSV file that Arrow's reader refuses. It names a column by number, and no line.

The file is read once more, by the reader of the standard library, up to the record at fault: a Python loop over records, for an
error only. A pipe cannot be read again: there the row counts that Arrow's message has if it reads with one thread. A fault of
another kind keeps Arrow's message.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TextIO

_VALUE = re.compile(
    r"In CSV column (?:#(?P<column>\d+)|named (?P<name>.+?)): (?:Row #(?P<row>\d+): )?CSV conversion error to .*?: "
    r"(?:invalid value '(?P<value>.*)'|invalid UTF8 data)",
    re.S,
)
_COUNT = re.compile(r"(?:Row #(?P<row>\d+): )?Expected (?P<expected>\d+) columns, got (?P<found>\d+)")
_NUMBER = re.compile(r"[+-]?(?:\d+(?P<fraction>\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
_WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_NUMBERS = (*_WHOLE, "FLOAT", "DOUBLE", "DECIMAL")
# How others write NULL.
_NULLS = {"null", "na", "n/a", "none", "nan", r"\n", "-", "?", "", "0000-00-00", "0000-00-00 00:00:00"}


@dataclass(frozen=True, slots=True)
class Fault:
    """A value, or a record of another length (``column`` None). ``place``: its line, or its row, counted from 1.

    ``found`` None: bytes that are no text.
    """

    place: str
    column: str | None
    found: str | None

    def sentence(self, path: str, expected: str) -> str:
        """A sentence that says what is wrong, where, and what to do where that can be guessed."""
        if self.column is None:
            return f"{path}, {self.place}: expected {expected}, found {self.found}"
        where = f"{path}, {self.place}, column {self.column!r}"
        if self.found is None:
            return f"{where}: expected UTF-8 text, found other bytes; convert it with iconv"
        value = self.found if len(self.found) <= 80 else f"{self.found[:80]}…"
        return f"{where}: expected {expected}, found {value!r}{_way_out(value.strip(), expected)}"


def find_fault(message: str, text: TextIO, *, delimiter: str, header: Sequence[str] | None) -> Fault | None:
    """The first record of ``text`` that ``message``, of Arrow's, is about. ``header``: the columns, where no line names them.

    ``text`` is opened without translation of line ends, with ``surrogateescape``.
    """
    match = _VALUE.search(message) or _COUNT.search(message)
    if match is None:
        return None
    records = _records(text, delimiter)
    try:
        names = next(records)[1] if header is None else header
        begin = 0 if match["row"] is None else int(match["row"]) - (2 if header is None else 1)
        records = islice(records, begin, None)
        if match.re is _COUNT:
            return _bad_length(records, int(match["found"]))
        column = names.index(match["name"]) if match["column"] is None else int(match["column"])
        return _bad_value(records, column, match["value"], names)
    except (csv.Error, StopIteration, ValueError):
        # It reads fewer files than Arrow does.
        return None


def fault_in_row(message: str, names: Sequence[str], *, header: bool) -> Fault | None:
    """The fault that ``message`` names by itself. ``names``: those of columns that are known; ``header``: they are a row."""
    match = _VALUE.search(message) or _COUNT.search(message)
    if match is None or match["row"] is None:
        return None
    place = f"row {match['row']} (the header is row 1)" if header else f"row {match['row']}"
    if match.re is _COUNT:
        return Fault(place, None, match["found"])
    number = int(match["column"] or 0)
    name = match["name"] or (names[number] if number < len(names) else str(number + 1))
    return Fault(place, name, match["value"])


def _way_out(value: str, expected: str) -> str:
    """Advice about a value, where it can be guessed."""
    if value.lower() in _NULLS:
        return f"; if that means NULL, pass --null '{value}'"
    return no_room(value, expected)


def _records(text: TextIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Each record with the line on which it begins, without empty lines."""
    reader, line = csv.reader(text, delimiter=delimiter), 1
    for record in reader:
        if record:
            yield line, record
        line = reader.line_num + 1


def _bad_value(records: Iterable[tuple[int, list[str]]], column: int, value: str | None, names: Sequence[str]) -> Fault | None:
    for line, record in records:
        cell = record[column] if column < len(record) else None
        if cell is not None and (cell == value if value is not None else not _is_text(cell)):
            return Fault(f"line {line}", names[column], cell if value is not None else None)
    return None


def _bad_length(records: Iterable[tuple[int, list[str]]], length: int) -> Fault | None:
    return next((Fault(f"line {line}", None, str(length)) for line, record in records if len(record) == length), None)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def no_room(text: str, expected: str) -> str:
    """The end of an error that names the ``text`` and the type ``expected``; empty where it is about something else."""
    number = _NUMBER.fullmatch(text)
    if number is None or (expected in _WHOLE and number["fraction"]) or not expected.startswith(_NUMBERS):
        return ""
    wider = "" if expected == "DOUBLE" else "give the column a wider type with tablestore table alter change-type, or "
    return f"; {expected} has no room for it: {wider}correct the value"
