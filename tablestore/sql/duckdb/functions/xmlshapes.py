"""Reads the XML documents of a column by their shapes: those that differ in texts and in values of attributes alone.

    <a id="1"><b>x</b></a>   ->  the shape <a id="·"><b>·</b></a>, the columns of texts 1 and x

Whoever reads a shape does it once, with characters of :data:`MARKS` in the places of texts. What has references, comments, CDATA,
control characters or values in single quotes, and what has a shape of few rows, is left to the caller.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.sql.duckdb.functions.variantshapes import Texts, binaries

_I64: TypeAlias = "npt.NDArray[np.int64]"
_Bools: TypeAlias = "npt.NDArray[np.bool_]"
MARKS = range(0xE000, 0xE400)
"""The characters that stand for the texts of a shape, in their order."""
_PIECE = re.compile(f"[{chr(MARKS[0])}-{chr(MARKS[-1])}]|[^{chr(MARKS[0])}-{chr(MARKS[-1])}]+")
_OPEN, _CLOSE, _QUOTE, _SINGLE, _AND, _BANG, _QUESTION, _SPACE, _NEWLINE, _TAB = b"<>\"'&!? \n\t"
# What begins so may be a character that XML does not have, and one of MARKS.
_ODD = (0xEE, 0xEF)
_FILLED = 1
# A shape of fewer rows costs more than its documents one by one.
_LEAST_ROWS = 12


@dataclass(frozen=True, slots=True)
class XmlShape:
    """Documents of one shape: their ``rows``, one ``document`` with a mark for each text, and the texts by columns."""

    rows: _I64
    document: str
    texts: tuple[Texts, ...]

    def column_of(self, marked: str) -> pa.Array:
        """The texts that a text with marks stands for, row by row."""
        parts = [
            self.texts[ord(one) - MARKS[0]].to_arrow(pa.string()) if ord(one[0]) in MARKS else pa.scalar(one, pa.string())
            for one in _PIECE.findall(marked)
        ]
        if len(parts) == 1 and isinstance(parts[0], pa.Array):
            return parts[0]
        if not any(isinstance(part, pa.Array) for part in parts):
            return pa.repeat(pa.scalar(marked, pa.string()), len(self.rows))
        return pc.binary_join_element_wise(*parts, pa.scalar("", pa.string()))


def xml_shapes_of(documents: pa.Array) -> Iterator[XmlShape]:
    """The shapes of a column of documents. A row that is in none of them, and is not NULL, is to be read by itself."""
    column = documents.cast(pa.large_binary())
    ends: _I64 = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
    if ends[-1] == ends[0] or column.buffers()[2] is None:
        return iter(())
    data = np.frombuffer(column.buffers()[2], np.uint8)[ends[0] : ends[-1]]
    return _Reading(data, ends - ends[0], np.asarray(column.is_valid())).shapes()


class _Reading:
    """Reads the documents that lie one behind the other in ``data``, each from one of the ``bounds`` to the next."""

    def __init__(self, data: "npt.NDArray[np.uint8]", bounds: _I64, is_there: _Bools) -> None:
        self._data, self._bounds = data, bounds
        self._is_plain = is_there & (np.diff(bounds) > 0)
        is_space = (data == _SPACE) | (data == _NEWLINE) | (data == _TAB)
        self._exclude(np.flatnonzero(((data < _SPACE) & ~is_space) | (data == _AND) | (data == _ODD[0]) | (data == _ODD[1])))
        self._opens, self._closes = np.flatnonzero(data == _OPEN), np.flatnonzero(data == _CLOSE)
        # The rows of the tags.
        self._rows: _I64 = np.zeros(0, np.int64)
        self._find_tags()
        self._find_texts(is_space)

    def _exclude(self, places: _I64) -> None:
        if len(places):
            self._is_plain[self._rows_of(places)] = False

    def _rows_of(self, places: _I64) -> _I64:
        return np.searchsorted(self._bounds[1:], places, side="right")

    def _find_tags(self) -> None:
        """Keeps the tags of rows in which each ``<`` has its ``>``, and that begin and end with a tag."""
        opens, closes = (np.diff(np.searchsorted(places, self._bounds)) for places in (self._opens, self._closes))
        self._is_plain &= (opens == closes) & (opens > 0)
        if not self._is_plain.all():
            self._opens = self._opens[np.repeat(self._is_plain, opens)]
            self._closes = self._closes[np.repeat(self._is_plain, closes)]
            opens = opens[self._is_plain]
        self._rows = rows = np.repeat(np.flatnonzero(self._is_plain), opens)
        if not len(rows):
            return
        is_next = rows[1:] == rows[:-1]
        is_odd = (self._opens > self._closes) | (self._data[self._opens + 1] == _BANG)
        is_odd[1:] |= is_next & (self._opens[1:] < self._closes[:-1])
        is_odd |= np.append(True, ~is_next) & (self._opens > self._bounds[rows])
        is_odd |= np.append(~is_next, True) & (self._closes + 1 < self._bounds[rows + 1])
        if is_odd.any():
            self._is_plain[rows[is_odd]] = False
            is_kept = self._is_plain[rows]
            self._opens, self._closes, self._rows = self._opens[is_kept], self._closes[is_kept], rows[is_kept]

    def _find_texts(self, is_space: _Bools) -> None:
        """Finds where texts and values begin and end."""
        data = self._data
        starts, ends = self._closes[:-1] + 1, self._opens[1:]
        is_text = (starts < ends) & (self._rows[1:] == self._rows[:-1])
        rows, starts, ends = self._rows[:-1][is_text], starts[is_text], ends[is_text]
        if len(starts) and is_space[starts].any():
            ink = np.concatenate(([0], np.cumsum(~is_space)))
            has_ink = ink[ends] > ink[starts]
            rows, starts, ends = rows[has_ink], starts[has_ink], ends[has_ink]
        quotes = np.flatnonzero((data == _QUOTE) | (data == _SINGLE))
        if len(quotes) and len(self._opens):
            rows, starts, ends = self._with_values(quotes, rows, starts, ends)
        if not self._is_plain.all():
            is_kept = self._is_plain[rows]
            starts, ends = starts[is_kept], ends[is_kept]
        self._starts, self._ends = starts, ends

    def _with_values(self, quotes: _I64, rows: _I64, starts: _I64, ends: _I64) -> tuple[_I64, _I64, _I64]:
        """Texts, and the values of attributes among them."""
        data = self._data
        tags = np.searchsorted(self._opens, quotes, side="right") - 1
        # A declaration has no attributes.
        is_inside = (tags >= 0) & (quotes < self._closes[tags]) & (data[self._opens[tags] + 1] != _QUESTION)
        quotes, tags = quotes[is_inside], tags[is_inside]
        self._is_plain[self._rows[tags[data[quotes] == _SINGLE]]] = False
        self._is_plain[self._rows[np.bincount(tags, minlength=len(self._opens)) & 1 == 1]] = False
        controls = np.flatnonzero((data == _NEWLINE) | (data == _TAB))
        if len(controls):
            around = np.searchsorted(self._opens, controls, side="right") - 1
            self._is_plain[self._rows[around[(around >= 0) & (controls < self._closes[around])]]] = False
        some = self._is_plain[self._rows[tags]]
        quotes, tags = quotes[some], tags[some]
        starts, ends = np.concatenate((starts, quotes[::2] + 1)), np.concatenate((ends, quotes[1::2]))
        order = np.argsort(starts, kind="stable")
        return np.concatenate((rows, self._rows[tags[::2]]))[order], starts[order], ends[order]

    def shapes(self) -> Iterator[XmlShape]:
        """The shapes of many rows."""
        rows = np.flatnonzero(self._is_plain)
        if not len(rows):
            return
        skeletons = self._skeletons().take(pa.array(rows)).dictionary_encode()
        codes = np.asarray(skeletons.indices)
        order = np.argsort(codes, kind="stable")
        counts = np.bincount(codes)
        firsts = np.cumsum(counts) - counts
        for code in np.flatnonzero(counts >= _LEAST_ROWS).tolist():
            chosen = rows[order[firsts[code] : firsts[code] + counts[code]]]
            first, last = (np.searchsorted(self._starts, self._bounds[some]) for some in (chosen, chosen + 1))
            document, count = _marked(skeletons.dictionary[code].as_py())
            if count <= len(MARKS) and (last - first == count).all():
                places = (first + place for place in range(count))
                texts = tuple(Texts(self._data, self._starts[at], self._ends[at] - self._starts[at]) for at in places)
                yield XmlShape(chosen, document, texts)

    def _skeletons(self) -> pa.Array:
        """The documents with one byte for each text and each value; an empty value is one too."""
        some = self._ends > self._starts
        starts, ends = self._starts[some], self._ends[some]
        data = self._data.copy()
        data[starts] = _FILLED
        # A text's first byte stays for it.
        turns = np.empty(2 * len(starts) + 2, np.int64)
        turns[0], turns[-1] = 0, len(data)
        turns[1:-1:2], turns[2:-1:2] = starts + 1, ends
        is_kept = np.repeat(np.arange(len(turns) - 1) & 1 == 0, np.diff(turns))
        left_out = np.concatenate(([0], np.cumsum(ends - starts - 1)))
        return binaries(data[is_kept], self._bounds - left_out[np.searchsorted(starts, self._bounds)])


def _marked(skeleton: bytes) -> tuple[str, int]:
    """A document with marks, and how many there are."""
    marks = iter(MARKS)
    pieces: list[str] = []
    count = 0
    text = skeleton.decode()
    is_declared = False
    for place, one in enumerate(text):
        if one == "<":
            is_declared = text[place + 1 : place + 2] == "?"
        is_empty = one == '"' and text[place - 1] == "=" and text[place + 1 : place + 2] == '"' and not is_declared
        if one == chr(_FILLED) or is_empty:
            count += 1
            mark = chr(next(marks, 0))
            pieces.append(mark if not is_empty else f'"{mark}')
        else:
            pieces.append(one)
    return "".join(pieces), count
