"""Where in a CSV file is the value that Arrow's reader refuses? It names a column by number, and no line.

The file is read once more, by the reader of the standard library, up to the record at fault: a Python loop over records, for an
error only. What it does not find again (a pipe, a fault of another kind) keeps Arrow's message.
"""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TextIO

_VALUE = re.compile(
    r"In CSV column #(?P<column>\d+): CSV conversion error to .*?: (?:invalid value '(?P<value>.*)'|invalid UTF8 data)", re.S
)
_COUNT = re.compile(r"Expected (?P<expected>\d+) columns, got (?P<found>\d+)")
# How others write NULL.
_NULLS = {"null", "na", "n/a", "none", "nan", r"\n", "-", "?", "", "0000-00-00", "0000-00-00 00:00:00"}


@dataclass(frozen=True, slots=True)
class Fault:
    """A value, or a record of another length (``column`` None). Lines count from 1."""

    line: int
    column: str | None
    found: str

    def sentence(self, path: str, expected: str) -> str:
        """What is wrong, where, and what to do where that can be guessed."""
        if self.column is None:
            return f"{path}, line {self.line}: expected {expected}, found {self.found}"
        where = f"{path}, line {self.line}, column {self.column!r}"
        if not _is_text(self.found):
            return (
                f"{path}, line {self.line}, column {self.column!r}: expected UTF-8 text, found other bytes; convert it with iconv"
            )
        found = self.found if len(self.found) <= 80 else f"{self.found[:80]}…"
        hint = f"; if that means NULL, pass --null '{found}'" if found.strip().lower() in _NULLS else ""
        return f"{where}: expected {expected}, found {found!r}{hint}"


def find_fault(message: str, text: TextIO, *, delimiter: str, header: Sequence[str] | None) -> Fault | None:
    """The first record of ``text`` that ``message``, of Arrow's, is about. ``header``: the columns, where no line names them.

    ``text`` is opened without translation of line ends, with ``surrogateescape``.
    """
    records = _records(text, delimiter)
    try:
        names = next(records)[1] if header is None else header
        if (match := _VALUE.search(message)) is not None:
            return _bad_value(records, int(match["column"]), match["value"], names)
        if (match := _COUNT.search(message)) is not None:
            return _bad_length(records, int(match["found"]))
    except (csv.Error, StopIteration):
        # It reads fewer files than Arrow does.
        return None
    return None


def _records(text: TextIO, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Each record with the line on which it begins, without empty lines."""
    reader, line = csv.reader(text, delimiter=delimiter), 1
    for record in reader:
        if record:
            yield line, record
        line = reader.line_num + 1


def _bad_value(records: Iterable[tuple[int, list[str]]], column: int, value: str | None, names: Sequence[str]) -> Fault | None:
    for line, record in records:
        found = record[column] if column < len(record) else None
        if found is not None and (found == value if value is not None else not _is_text(found)):
            return Fault(line, names[column], found)
    return None


def _bad_length(records: Iterable[tuple[int, list[str]]], length: int) -> Fault | None:
    return next((Fault(line, None, str(length)) for line, record in records if len(record) == length), None)


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
