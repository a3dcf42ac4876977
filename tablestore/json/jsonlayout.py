"""Reads rows from JSON objects that are all written alike, without parsing one of them.

    <head>{"id":17,"name":"Ada","paid":null}<tail>      the names of the first object, in its order, are those of every one
           └ gap └value   └ gap └ value

The separators ``,"`` of all texts are found at once, as many in each. Between two of them lie a name and a value; all that is no
value has to be the same bytes in every text. The values are then cut out and cast as whole columns. That is how
:mod:`tablestore.json.jsontext` writes rows.

Whatever is written otherwise (spaces, other orders, escapes, nested values, special numbers, strings that end with a comma, damage)
gives None: the caller reads it with a real JSON reader, which also says what is wrong. What a JSON reader accepts is read as it
would read it; beyond that only numbers such as 007 pass.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.json.jsonrows import carrier, from_carrier
from tablestore.json.jsontext import content
from tablestore.types.arrays import Mask, Places

Bytes = npt.NDArray[np.uint8]

_QUOTE, _COMMA, _NULL, _NINE = ord('"'), ord(","), ord("n"), ord("9")
_SEPARATOR = b',"'
_AT_ONCE_BYTES = 64 * 1024
# Arrow counts them in 32 bits.
_MOST_BYTES = 2**31 - 1


@dataclass(frozen=True, slots=True)
class _Values:
    """The places of the values of a column, without their quotation marks."""

    starts: Places
    ends: Places
    quoted: Mask
    nulls: Mask


def rows_alike(texts: Sequence[bytes], schema: pa.Schema, *, head: bytes = b"", tail: bytes = b"") -> pa.Table | None:
    """The objects between ``head`` and ``tail`` as rows of ``schema``; None unless every one is written like the first."""
    names = _names(texts[0][len(head) : len(texts[0]) - len(tail)]) if texts else None
    if names is None or not set(schema.names) <= set(names):
        return None
    joined, bounds = b"".join(texts), np.zeros(len(texts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)), out=bounds[1:])
    # A backslash may hide a quotation mark.
    if len(joined) > _MOST_BYTES or b"\\" in joined:
        return None
    data = pa.py_buffer(joined)
    values_by_name = _locate(data, bounds, names, head, tail)
    if values_by_name is None:
        return None
    try:
        columns = [_column(data, values_by_name[field.name], field.type) for field in schema]
    except (pa.ArrowException, ValueError):
        return None
    if any(column is None for column in columns):
        return None
    return pa.Table.from_arrays(columns, schema=pa.schema([field.with_nullable(True) for field in schema]))


def _names(text: bytes) -> tuple[str, ...] | None:
    try:
        first = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return tuple(first) if isinstance(first, dict) and first else None


def _locate(data: pa.Buffer, bounds: Places, names: Sequence[str], head: bytes, tail: bytes) -> dict[str, _Values] | None:
    """The places of the values of all columns; None if a text is not written as ``names`` say."""
    buffer: Bytes = np.frombuffer(data, dtype=np.uint8)
    begins, ends = bounds[:-1], bounds[1:] - len(tail)
    gaps = [b"," + json.dumps(name, ensure_ascii=False).encode() + b":" for name in names]
    gaps[0] = head + b"{" + gaps[0][1:]
    commas, seen = _commas(buffer, begins, in_each=[text.count(_SEPARATOR) for text in (head, b"".join(gaps[1:]), tail)])
    if commas is None or not _all_begin(data, ends - 1, b"}" + tail):
        return None
    quotes = sum(text.count(b'"') for text in (*gaps, tail)) * len(begins)
    values_by_name = {}
    for position, (name, gap) in enumerate(zip(names, gaps, strict=True)):
        before = commas[position - 1] if position else begins
        starts = before + len(gap)
        stops = commas[position] if position + 1 < len(names) else ends - 1
        if (starts >= stops).any() or not _all_begin(data, before, gap):
            return None
        first = buffer[starts]
        quoted = first == _QUOTE
        if quoted.any():
            # The text of a string has a quotation mark at each end, and they are two.
            if not ((buffer[stops - 1] == _QUOTE) & (stops - starts > 1) | ~quoted).all():
                return None
            quotes += 2 * int(np.count_nonzero(quoted))
            values_by_name[name] = _Values(starts + quoted, stops - quoted, quoted, first == _NULL)
        else:
            values_by_name[name] = _Values(starts, stops, quoted, first == _NULL)
    # All that there have to be were seen: if there are no more, none is inside of a value.
    return values_by_name if seen == quotes else None


def _commas(buffer: Bytes, begins: Places, *, in_each: Sequence[int]) -> tuple[Places | None, int]:
    """The places of the separators of the objects, as a row of positions for each, None if a text has another number of them
    than ``in_each`` (in its head, object and tail); and the number of quotation marks behind the first byte."""
    separators, quotes = [], 0
    for start in range(0, len(buffer), _AT_ONCE_BYTES):
        part = buffer[start : start + _AT_ONCE_BYTES + 1]
        quoted = part[1:] == _QUOTE
        quotes += int(np.count_nonzero(quoted))
        separators.append(np.flatnonzero((part[:-1] == _COMMA) & quoted) + start)
    before, inside, after = in_each
    each = before + inside + after
    places = np.concatenate(separators)
    if len(places) != each * len(begins):
        return None, quotes
    rows = places.reshape(len(begins), each)
    if each and ((rows[:, 0] < begins).any() or (rows[:-1, -1] >= begins[1:]).any()):
        return None, quotes
    return np.ascontiguousarray(rows.T[before : before + inside]), quotes


def _all_begin(data: pa.Buffer, places: Places, expected: bytes) -> bool:
    """True if the bytes at all ``places`` are the expected ones."""
    size = len(expected)
    if not size:
        return True
    if int(places.min()) < 0 or int(places.max()) + size > data.size:
        return False
    # Every place of the data as an item of so many bytes: what is compared is copied at once, not byte by byte.
    windows = np.ndarray((data.size - size + 1,), dtype=f"V{size}", buffer=data, strides=(1,))
    actual: bytes = windows[places].tobytes()
    return actual == expected * len(places)


def _column(data: pa.Buffer, values: _Values, kind: pa.DataType) -> pa.Array | None:
    """The values as an array of ``kind``; None if they are not written as :mod:`tablestore.json.jsontext` writes that type."""
    if pa.types.is_nested(kind):
        return None
    is_bare = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
    if not (values.nulls | (values.quoted != is_bare)).all():
        return None
    if values.nulls.any():
        places = values.starts[values.nulls]
        if not (values.ends[values.nulls] - places == 4).all() or not _all_begin(data, places, b"null"):
            return None
    texts = _cut_out(data, values)
    if pa.types.is_boolean(kind):
        true = pc.equal(texts, b"true")
        return true if pc.all(pc.or_(true, pc.equal(texts, b"false"))).as_py() in (True, None) else None
    # Arrow's casts take more than JSON has: hexadecimal numbers, nan.
    if pa.types.is_integer(kind) and int(content(texts).max(initial=0)) > _NINE:
        return None
    # The first cast looks at the encoding.
    array = from_carrier(texts.cast(pa.string()).cast(carrier(kind)), kind)
    if pa.types.is_floating(kind) and pc.all(pc.is_finite(array)).as_py() is False:
        return None
    return array


def _cut_out(data: pa.Buffer, values: _Values) -> pa.Array:
    """The bytes of the values, one after another, without those of nulls."""
    count = len(values.starts)
    # A value and what follows it, in turns, are neighbours, as Arrow wants it; every second of them is a value.
    cuts = np.empty(2 * count, dtype=np.int32)
    cuts[0::2], cuts[1::2] = values.starts, values.ends
    # Arrow believes them.
    if (cuts[1:] < cuts[:-1]).any() or cuts[0] < 0 or cuts[-1] > data.size:
        raise ValueError("values that overlap")
    pieces = pa.Array.from_buffers(pa.binary(), 2 * count - 1, [None, pa.py_buffer(cuts), data])
    return pieces.take(pa.array(np.arange(0, 2 * count, 2), mask=values.nulls if values.nulls.any() else None))
