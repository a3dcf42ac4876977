"""Reads and writes the VARIANT values of a column by their shapes: texts of JSON that differ in numbers and in texts alone.

    {"id": 12, "tags": ["a"]}   ->  the shape {"id": 0, "tags": [""]}, the column of numbers 12, the column of texts a

A shape is parsed once, to a value as :func:`variantformat.parse` gives it, with columns in the places of numbers and texts. What
has escapes, control characters, exponents or many digits, and what has a shape of few rows, is left to the caller; so is what is no
JSON.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import groupby
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.sql.duckdb.functions import variantformat

_I64: TypeAlias = "npt.NDArray[np.int64]"
_U8: TypeAlias = "npt.NDArray[np.uint8]"
_Lengths: TypeAlias = "int | npt.NDArray[np.int64]"
_Pieces: TypeAlias = "list[bytes | npt.NDArray[np.uint8] | pa.Array]"
_QUOTE, _PLUS, _MINUS, _POINT, _ZERO, _NINE, _COLON, _BACKSLASH, _SPACE = b'"+-.09:\\ '
_CONTROLS = 32
_SPACES = np.frombuffer(b" \n\r\t", np.uint8)
# A shape of fewer rows costs more than its values one by one.
_LEAST_ROWS = 12
_MOST_SPACES = 4
_MOST_DIGITS = 18
_MOST_LEAVES = 60
_SHORT_TEXT = 64


@dataclass(frozen=True, slots=True)
class Texts:
    """A text of each row: bytes of ``data``."""

    data: _U8
    starts: _I64
    lengths: _I64

    def of(self, places: _I64) -> "Texts":
        return Texts(self.data, self.starts[places], self.lengths[places])

    def one(self, _place: int) -> str:
        return ""

    def to_arrow(self, kind: pa.DataType) -> pa.Array:
        ends = np.concatenate(([0], np.cumsum(self.lengths)))
        places = np.arange(ends[-1]) + np.repeat(self.starts - ends[:-1], self.lengths)
        return binaries(self.data[places], ends, kind)


@dataclass(frozen=True, slots=True)
class Wholes:
    """A whole number of each row."""

    numbers: _I64

    def of(self, places: _I64) -> "Wholes":
        return Wholes(self.numbers[places])

    def one(self, place: int) -> int:
        return int(self.numbers[place])


@dataclass(frozen=True, slots=True)
class Decimals:
    """A decimal of each row."""

    unscaled: _I64
    scales: _I64

    def of(self, places: _I64) -> "Decimals":
        return Decimals(self.unscaled[places], self.scales[places])

    def one(self, place: int) -> Decimal:
        return Decimal(int(self.unscaled[place])).scaleb(-int(self.scales[place]))

    @property
    def digits(self) -> _I64:
        """Counts the digits of each number without its point."""
        return np.maximum(np.searchsorted(_POWERS, np.abs(self.unscaled), side="right"), 1)


_POWERS = 10 ** np.arange(_MOST_DIGITS + 1, dtype=np.int64)
LEAVES = (Texts, Wholes, Decimals)


@dataclass(frozen=True, slots=True)
class Shape:
    """Rows of one shape. ``value``: theirs, with columns as long as ``rows`` in it."""

    rows: _I64
    value: Any

    def of(self, places: _I64) -> "Shape":
        """Some of the rows."""
        return Shape(self.rows[places], _replaced(self.value, lambda leaf: leaf.of(places)))

    def split(self, keys: _I64) -> "Iterator[Shape]":
        """The rows that have a key in common."""
        for key in np.unique(keys):
            yield self.of(np.flatnonzero(keys == key))

    def first(self) -> Any:
        """The value of the first row, with texts that are empty."""
        return _replaced(self.value, lambda leaf: leaf.one(0))

    def decoded(self) -> "Shape":
        """The values as the binary form gives them again: with the fields of objects by their names."""
        return replace(self, value=_with_fields_in_order(self.value))

    def leaves(self) -> list[Any]:
        """The columns, in the order in which they stand."""
        leaves: list[Any] = []
        _replaced(self.value, leaves.append)
        return leaves


def _replaced(value: Any, by: Any) -> Any:
    """A value with something else in the places of columns."""
    if isinstance(value, dict):
        return {name: _replaced(part, by) for name, part in value.items()}
    if isinstance(value, list):
        return [_replaced(part, by) for part in value]
    return by(value) if isinstance(value, LEAVES) else value


def _with_fields_in_order(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_fields_in_order(value[name]) for name in variantformat.field_order(value)}
    return [_with_fields_in_order(part) for part in value] if isinstance(value, list) else value


def shapes_of(texts: pa.Array) -> list[Shape]:
    """The shapes of a column of JSON texts. A row that is in none of them, and is not NULL, is to be read by itself."""
    column = texts.cast(pa.large_binary())
    ends: _I64 = np.frombuffer(column.buffers()[1], np.int64)[column.offset : column.offset + len(column) + 1]
    first, last = int(ends[0]), int(ends[-1])
    if last == first or column.buffers()[2] is None:
        return []
    # The end is a byte that belongs to no value.
    data = np.empty(last - first + _MOST_SPACES + 2, np.uint8)
    data[last - first :] = 0
    data[: last - first] = np.frombuffer(column.buffers()[2], np.uint8)[first:last]
    return _Reading(data, ends - first, np.asarray(column.is_valid())).shapes()


class _Reading:
    """Reads the texts that lie one behind the other in ``data``, each from one of the ``ends`` to the next."""

    def __init__(self, data: _U8, ends: _I64, is_there: "npt.NDArray[np.bool_]") -> None:
        self._data, self._starts, self._end = data, ends[:-1], int(ends[-1])
        self._is_plain = is_there & (ends[1:] > ends[:-1])
        # Comparisons of all bytes are many times as fast as a look into a table.
        controls = np.flatnonzero(data[: self._end] < _CONTROLS)
        self._exclude(np.flatnonzero(data == _BACKSLASH))
        quotes = np.flatnonzero(data == _QUOTE)
        is_odd = np.diff(np.searchsorted(quotes, ends)) & 1 == 1
        if is_odd.any():
            self._is_plain &= ~is_odd
            quotes = quotes[~is_odd[self._rows_of(quotes)]]
        opening, closing = quotes[::2], quotes[1::2]
        if len(controls):
            # Between texts there may be spaces.
            text = np.searchsorted(opening, controls) - 1
            is_inside = (text >= 0) & (controls < np.append(closing, 0)[text])
            self._exclude(controls[is_inside | ~self._is_space(controls)])
        is_key = self._are_keys(closing)
        in_number = (data - np.uint8(_ZERO) < 10) | (data == _MINUS) | (data == _PLUS) | (data == _POINT)
        in_number &= ~self._marked(opening, closing)
        self._opening, self._closing = opening[~is_key], closing[~is_key]
        changes = np.flatnonzero(in_number[1:] != in_number[:-1]) + 1
        if in_number[0]:
            changes = np.concatenate(([0], changes))
        self._numbers, self._number_ends = changes[::2], changes[1::2]
        # A number at the end of a row and one at the beginning of the next are two.
        between = self._starts[1:][self._is_plain[1:] & in_number[self._starts[1:]] & in_number[self._starts[1:] - 1]]
        if len(between):
            self._numbers = np.sort(np.concatenate((self._numbers, between)))
            self._number_ends = np.sort(np.concatenate((self._number_ends, between)))

    def _are_keys(self, closing: _I64) -> "npt.NDArray[np.bool_]":
        """True for texts, by where they end, with a colon behind them."""
        is_start = np.zeros(len(self._data), np.bool_)
        is_start[self._starts] = True
        following = closing + 1
        is_beyond = is_start[following]
        for _ in range(_MOST_SPACES):
            is_space = self._is_space(following)
            if not is_space.any():
                break
            following = following + is_space
            is_beyond |= is_start[following]
        self._exclude(closing[self._is_space(following)])
        is_beyond |= self._data[following] != _COLON
        return ~is_beyond

    def _is_space(self, places: _I64) -> "npt.NDArray[np.bool_]":
        return np.isin(self._data[places], _SPACES)

    def _rows_of(self, places: _I64) -> _I64:
        return np.searchsorted(self._starts, places, side="right") - 1

    def _exclude(self, places: _I64) -> None:
        if len(places):
            self._is_plain[self._rows_of(places)] = False

    def _marked(self, starts: _I64, ends: _I64) -> "npt.NDArray[np.bool_]":
        """The bytes from starts to ends, the starts with them; they are in order and do not overlap."""
        bounds = np.empty(2 * len(starts) + 2, np.int64)
        bounds[0], bounds[-1] = 0, len(self._data)
        bounds[1:-1:2], bounds[2:-1:2] = starts, ends
        return np.repeat(np.arange(len(bounds) - 1) & 1 == 1, np.diff(bounds))

    def shapes(self) -> list[Shape]:
        """The shapes of many rows."""
        rows = np.flatnonzero(self._is_plain)
        if not len(rows):
            return []
        skeletons = self._skeletons().take(pa.array(rows)).dictionary_encode()
        codes = np.asarray(skeletons.indices)
        order = np.argsort(codes, kind="stable")
        counts = np.bincount(codes)
        shapes: list[Shape] = []
        for code in np.flatnonzero(counts >= _LEAST_ROWS).tolist():
            value = _parsed(skeletons.dictionary[code].as_py())
            if value is not None:
                first = int(counts[:code].sum())
                shapes += self._filled(rows[order[first : first + counts[code]]], value[0])
        return shapes

    def _skeletons(self) -> pa.Array:
        """The texts without the insides of texts, and with 0 for numbers."""
        starts = np.concatenate((self._opening + 1, self._numbers + 1))
        ends = np.concatenate((self._closing, self._number_ends))
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
        is_left_out = self._marked(starts, ends)
        left_out = np.concatenate(([0], np.cumsum(ends - starts)))
        bounds = np.append(self._starts, self._end)
        offsets = bounds - left_out[np.searchsorted(starts, bounds)]
        data = self._data.copy()
        data[self._numbers] = _ZERO
        return binaries(data.compress(~is_left_out), offsets)

    def _filled(self, rows: _I64, value: Any) -> Iterator[Shape]:
        """The shapes of rows of one skeleton: their numbers are whole or decimal."""
        texts, numbers = _count(value, str), _count(value, int)
        if texts + numbers > _MOST_LEAVES:
            return
        columns: list[Any] = []
        bounds = np.append(self._starts, self._end)
        first, last = (np.searchsorted(self._opening, bounds[some]) for some in (rows, rows + 1))
        is_read = last - first == texts
        for place in range(texts):
            at = first + place
            columns.append(Texts(self._data, self._opening[at] + 1, self._closing[at] - self._opening[at] - 1))
        first, last = (np.searchsorted(self._numbers, bounds[some]) for some in (rows, rows + 1))
        is_read &= last - first == numbers
        if not is_read.all():
            # Assured by how a skeleton is made; a column that is read wrongly would be worse than one read slowly.
            return
        kinds = np.zeros(len(rows), np.int64)
        for place in range(numbers):
            at = first + place
            column, is_number, is_decimal = self._read_numbers(self._numbers[at], self._number_ends[at])
            columns.append(column)
            is_read &= is_number
            kinds |= is_decimal.astype(np.int64) << place
        for kind in np.unique(kinds[is_read]):
            places = np.flatnonzero(is_read & (kinds == kind))
            chosen = [column.of(places) for column in columns[:texts]]
            for place, column in enumerate(columns[texts:]):
                some = column.of(places)
                chosen.append(some if int(kind) >> place & 1 else Wholes(some.unscaled))
            yield Shape(rows[places], _put_in(value, iter(chosen[:texts]), iter(chosen[texts:])))

    def _read_numbers(self, starts: _I64, ends: _I64) -> "tuple[Decimals, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]":
        """Numbers, which of them are read, and which are decimals."""
        data = self._data
        is_negative = data[starts] == _MINUS
        at = starts + is_negative
        is_read = (ends > at) & (ends - at <= _MOST_DIGITS + 1)
        is_read &= ~((data[at] == _ZERO) & (data[at + 1] >= _ZERO) & (data[at + 1] <= _NINE) & (ends > at + 1))
        is_read &= (data[at] != _POINT) & (data[ends - 1] != _POINT)
        values, scales, points = (np.zeros(len(starts), np.int64) for _ in range(3))
        for step in range(int(np.max(np.where(is_read, ends - at, 0), initial=0))):
            is_inside = at + step < ends
            byte = data[np.where(is_inside, at + step, 0)]
            is_digit = (byte >= _ZERO) & (byte <= _NINE) & is_inside
            is_point = (byte == _POINT) & is_inside
            is_read &= is_digit | is_point | ~is_inside
            scales += is_digit & (points > 0)
            points += is_point
            values = np.where(is_digit, values * 10 + (byte - np.uint8(_ZERO)), values)
        is_read &= (points <= 1) & (ends - at - points <= _MOST_DIGITS)
        return Decimals(np.where(is_negative, -values, values), scales), is_read, points > 0


def _parsed(skeleton: bytes) -> tuple[Any] | None:
    """The value of a skeleton, in which all numbers are 0 and all texts are empty; None if it is no JSON, or has others."""
    try:
        value = variantformat.parse(skeleton.decode())
    except (InvalidInputError, UnsupportedError):
        return None
    return (value,) if _is_blank(value) else None


def _is_blank(value: Any) -> bool:
    if isinstance(value, dict | list):
        return all(map(_is_blank, value.values() if isinstance(value, dict) else value))
    return value is True or (isinstance(value, bool | int | str | None) and not value)


def _count(value: Any, kind: type) -> int:
    if isinstance(value, dict):
        return sum(_count(part, kind) for part in value.values())
    if isinstance(value, list):
        return sum(_count(part, kind) for part in value)
    return isinstance(value, kind) and not isinstance(value, bool)


def _put_in(value: Any, texts: Iterator[Any], numbers: Iterator[Any]) -> Any:
    if isinstance(value, dict):
        return {name: _put_in(part, texts, numbers) for name, part in value.items()}
    if isinstance(value, list):
        return [_put_in(part, texts, numbers) for part in value]
    if isinstance(value, str):
        return next(texts)
    return next(numbers) if isinstance(value, int) and not isinstance(value, bool) else value


class _MixedError(Exception):
    """Signals rows whose offsets differ in width. ``keys``: a number of each row; those of one number have one."""

    def __init__(self, keys: _I64) -> None:
        super().__init__()
        self.keys = keys


def encoded(shape: Shape) -> Iterator[tuple[_I64, pa.Array]]:
    """The binary form of values: rows of a shape, and their rows of ``value`` and ``metadata``."""
    for some, values, names in _written(shape, _whole):
        (one,) = values
        yield some.rows, _variants(one, names)


def encoded_parts(shape: Shape) -> Iterator[tuple[_I64, list[tuple[str | None, pa.Array]]]]:
    """The parts of values that are objects or arrays, with their names, in the order of :func:`variantformat.parts_of`."""
    for some, values, names in _written(shape, _parts):
        keys = variantformat.field_order(shape.value) if isinstance(shape.value, dict) else [None] * len(values)
        yield some.rows, [(key, _variants(one, names)) for key, one in zip(keys, values, strict=True)]


def _written(
    shape: Shape, write: "Callable[[_Encoding, Any], list[_Pieces]]"
) -> "Iterator[tuple[Shape, list[pa.Array], dict[str, int]]]":
    encoding = _Encoding(len(shape.rows))
    try:
        pieces = write(encoding, shape.value)
    except _MixedError as error:
        for some in shape.split(error.keys):
            yield from _written(some, write)
    else:
        yield shape, [_joined(one, len(shape.rows)) for one in pieces], encoding.names


def _whole(encoding: "_Encoding", value: Any) -> "list[_Pieces]":
    return [encoding.pieces(value)[0]]


def _parts(encoding: "_Encoding", value: Any) -> "list[_Pieces]":
    if isinstance(value, dict):
        by_name = {}
        for name, part in value.items():
            encoding.names.setdefault(name, len(encoding.names))
            by_name[name] = encoding.pieces(part)[0]
        return [by_name[name] for name in variantformat.field_order(value)]
    return [encoding.pieces(part)[0] for part in value]


def _variants(values: pa.Array, names: dict[str, int]) -> pa.Array:
    metadata = pa.repeat(pa.scalar(variantformat.metadata_of(names), pa.binary()), len(values))
    return pa.StructArray.from_arrays([values, metadata], ["value", "metadata"])


class _Encoding:
    """Writes the values of rows of one shape as bytes."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.names: dict[str, int] = {}

    def pieces(self, value: Any) -> "tuple[_Pieces, _Lengths]":
        """The pieces of the bytes of all rows, one behind the other, and their lengths. Raises _MixedError."""
        match value:
            case dict():
                ids, parts = [], []
                for name, part in value.items():
                    ids.append(self.names.setdefault(name, len(self.names)))
                    parts.append(self.pieces(part))
                places = {name: place for place, name in enumerate(value)}
                order = [places[name] for name in variantformat.field_order(value)]
                return self._container(ids, parts, order, is_object=True)
            case list():
                parts = [self.pieces(part) for part in value]
                return self._container([], parts, range(len(parts)), is_object=False)
            case Texts():
                return _text_pieces(value)
            case Wholes():
                return _whole_pieces(value.numbers)
            case Decimals():
                return _decimal_pieces(value)
            case _:
                data = variantformat.encode(value)[0]
                return [data], len(data)

    def _container(
        self, ids: list[int], parts: "list[tuple[_Pieces, _Lengths]]", order: Sequence[int], *, is_object: bool
    ) -> "tuple[_Pieces, _Lengths]":
        starts: list[_Lengths] = []
        at: _Lengths = 0
        for _, length in parts:
            starts.append(at)
            at = at + length
        size = self._width(at)
        head = variantformat.container_head(len(parts), [ids[place] for place in order] if is_object else None, size)
        offsets = [*(starts[place] for place in order), at]
        written: bytes | _U8
        if all(isinstance(one, int) for one in offsets):
            written = b"".join(int(one).to_bytes(size, "little") for one in offsets)
        else:
            matrix = np.empty((self._count, len(offsets)), np.dtype("<u4"))
            for place, one in enumerate(offsets):
                matrix[:, place] = one
            written = matrix.view(np.uint8).reshape(self._count, len(offsets), 4)[:, :, :size].reshape(self._count, -1)
        pieces = [piece for some, _ in parts for piece in some]
        return [head, written, *pieces], at + len(head) + size * len(offsets)

    def _width(self, lengths: _Lengths) -> int:
        if isinstance(lengths, int):
            return variantformat.width(lengths)
        widths = 1 + np.searchsorted([0xFF, 0xFFFF, 0xFFFFFF], lengths, side="left")
        if widths.min() != widths.max():
            raise _MixedError(widths)
        return int(widths[0])


def _text_pieces(texts: Texts) -> "tuple[_Pieces, _Lengths]":
    is_short = texts.lengths < _SHORT_TEXT
    heads = np.empty((len(is_short), 5), np.uint8)
    heads[:, 1:] = texts.lengths.astype(np.dtype("<u4")).view(np.uint8).reshape(-1, 4)
    heads[:, 0] = np.where(is_short, texts.lengths << 2 | 1, variantformat.LONG_TEXT << 2)
    sizes = np.where(is_short, 1, 5)
    return [_beginnings(heads, sizes), texts.to_arrow(pa.binary())], texts.lengths + sizes


def _whole_pieces(numbers: _I64) -> "tuple[_Pieces, _Lengths]":
    place = np.zeros(len(numbers), np.int64)
    for _, size in variantformat.INTEGERS[:-1]:
        place += (numbers < -(1 << 8 * size - 1)) | (numbers >= 1 << 8 * size - 1)
    kinds, sizes = (np.array([one[at] for one in variantformat.INTEGERS])[place] for at in (0, 1))
    matrix = np.empty((len(numbers), 9), np.uint8)
    matrix[:, 0] = kinds << 2
    matrix[:, 1:] = numbers.astype(np.dtype("<i8")).view(np.uint8).reshape(-1, 8)
    return [_beginnings(matrix, sizes + 1)], sizes + 1


def _decimal_pieces(decimals: Decimals) -> "tuple[_Pieces, _Lengths]":
    (small, small_size, most), (large, large_size, _) = variantformat.DECIMALS[:2]
    is_small = (decimals.digits <= most) & (decimals.scales <= most)
    matrix = np.empty((len(is_small), 10), np.uint8)
    matrix[:, 0] = np.where(is_small, small << 2, large << 2)
    matrix[:, 1] = decimals.scales
    matrix[:, 2:] = decimals.unscaled.astype(np.dtype("<i8")).view(np.uint8).reshape(-1, 8)
    sizes = np.where(is_small, small_size, large_size) + 2
    return [_beginnings(matrix, sizes)], sizes


def _beginnings(matrix: _U8, sizes: _I64) -> "_U8 | pa.Array":
    """The first bytes of rows."""
    if sizes.min() == sizes.max():
        return matrix[:, : sizes[0]]
    return binaries(matrix[np.arange(matrix.shape[1]) < sizes[:, None]], np.concatenate(([0], np.cumsum(sizes))))


def binaries(data: _U8, offsets: _I64, kind: pa.DataType | None = None) -> pa.Array:
    """The bytes between offsets, as values."""
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(kind or pa.binary(), len(offsets) - 1, buffers)


def _joined(pieces: "_Pieces", count: int) -> pa.Array:
    """The bytes of rows. Pieces of one width each become one."""
    columns: list[Any] = []
    for are_fixed, some in groupby(pieces, lambda piece: not isinstance(piece, pa.Array)):
        if are_fixed:
            parts = [np.tile(np.frombuffer(one, np.uint8), (count, 1)) if isinstance(one, bytes) else one for one in some]
            matrix = np.concatenate(parts, axis=1)
            columns.append(binaries(matrix, np.arange(count + 1) * matrix.shape[1]))
        else:
            columns += some
    return columns[0] if len(columns) == 1 else pc.binary_join_element_wise(*columns, pa.scalar(b"", pa.binary()))
