"""Encodes columns as JSON text, whole arrays at a time.

Each Arrow type has one text form, built with Arrow's string kernels over whole arrays:

    BOOLEAN, whole numbers   true, 12             DATE         "2024-01-31"
    FLOAT, DOUBLE            1.5 (shortest)       TIME         "12:30:00.123"
      NaN and infinities     "NaN", "Infinity"    TIMESTAMP    "2024-01-31 12:30:00.123456", with Z for local time zone
    DECIMAL                  "10.50", no exponent CHAR, STRING "text", escaped
    ARRAY                    [...]                BINARY       "aGk=" (base64)
    MAP with text keys       {"k": v}             ROW          {"name": v}
    other maps, MULTISET     [[k, v], ...]        null         null

Whoever writes times in another form hands in how (``times``). :func:`plain_texts` are the same values without quotation marks.

Memory: a few times the text of the batch handed in. A text of 2 GiB or more in one batch is refused by Arrow (hand in less).
"""

import json
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.json.jsontimestamps import time_texts
from tablestore.types.arrays import text_scalar

Bytes = npt.NDArray[np.uint8]
Lengths = npt.NDArray[np.int64]

_ESCAPES = {
    0x5C: "\\\\",
    0x22: '\\"',
    0x08: "\\b",
    0x09: "\\t",
    0x0A: "\\n",
    0x0C: "\\f",
    0x0D: "\\r",
    **{code: f"\\u{code:04x}" for code in (*range(8), 0x0B, *range(0x0E, 0x20))},
}
# A JSON reader that takes numbers without a point for integers would lose the sign of -0.
_FLOAT_NAMES = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity", "-0": "-0.0"}
# A safe estimate of a value of fixed width as text; and of how much longer a text becomes with quotation marks and escapes.
_VALUE_BYTES, _TEXT_GROWTH = 30, 2
# Bounds that no value of fixed width exceeds (38 digits, a time in nanoseconds), and no byte of a text (a control character).
_LONGEST_VALUE_BYTES, _LONGEST_ESCAPE = 64, 6
_BASE64 = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", dtype=np.uint8)


Times = Callable[[pa.Array], pa.Array]


def rows_to_json(columns: Sequence[pa.Array], names: Sequence[str], times: Times = time_texts) -> pa.Array:
    """One JSON object per row, with the columns in order. At least one column is needed to know how many rows there are."""
    parts: list[pa.Array | str] = []
    for position, (name, column) in enumerate(zip(names, columns, strict=True)):
        opening = "{" if position == 0 else ","
        parts += [f"{opening}{json.dumps(name, ensure_ascii=False)}:", to_json(column, times)]
    return concat(*parts, "}")


def text_bytes(rows: pa.Table | pa.RecordBatch) -> int:
    """The estimated bytes of text that the rows become: high for most, low where half of a text has to be escaped."""
    chunks = ((name, chunk) for name in rows.schema.names for chunk in _chunks(rows.column(name)))
    return sum(len(chunk) * (len(name.encode()) + 4) + _text_bytes(chunk) for name, chunk in chunks)


def _text_bytes(array: pa.Array) -> int:
    kind = array.type
    if pa.types.is_struct(kind):
        fields = zip(kind, array.flatten(), strict=True)
        return sum(len(array) * (len(field.name.encode()) + 4) + _text_bytes(part) for field, part in fields)
    if pa.types.is_map(kind):
        start, stop = array.offsets[0].as_py(), array.offsets[-1].as_py()
        parts = (array.keys.slice(start, stop - start), array.items.slice(start, stop - start))
        return 2 * len(array) + sum(_text_bytes(part) + 2 * len(part) for part in parts)
    if pa.types.is_list(kind):
        values = array.flatten()
        return 2 * len(array) + len(values) + _text_bytes(values)
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        return _TEXT_GROWTH * int(array.nbytes)
    return _VALUE_BYTES * len(array)


def text_bounds(rows: pa.Table | pa.RecordBatch) -> Lengths:
    """The JSON object of each row has at most so many bytes: told by lengths alone, no value is looked at."""
    bounds = np.full(rows.num_rows, 2, dtype=np.int64)
    for name in rows.schema.names:
        chunks = [_bounds(chunk) for chunk in _chunks(rows.column(name))]
        bounds += _name_bound(name) + (np.concatenate(chunks) if chunks else 0)
    return bounds


def _bounds(array: pa.Array) -> Lengths:
    kind = array.type
    if pa.types.is_struct(kind):
        parts = [_name_bound(field.name) + _bounds(part) for field, part in zip(kind, array.flatten(), strict=True)]
        return np.sum([np.full(len(array), 6, dtype=np.int64), *parts], axis=0)  # type: ignore[no-any-return]
    if pa.types.is_map(kind):
        offsets = np.asarray(array.offsets)
        start, stop = int(offsets[0]), int(offsets[-1])
        keys, items = array.keys.slice(start, stop - start), array.items.slice(start, stop - start)
        return _bounds_of_lists(_bounds(keys) + _bounds(items) + 4, np.diff(offsets).astype(np.int64))
    if pa.types.is_list(kind):
        return _bounds_of_lists(_bounds(array.flatten()) + 1, _lengths(array).astype(np.int64))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        lengths = pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
        return _LONGEST_ESCAPE * lengths + 4  # type: ignore[no-any-return]
    return np.full(len(array), _LONGEST_VALUE_BYTES, dtype=np.int64)


def _bounds_of_lists(items: Lengths, lengths: Lengths) -> Lengths:
    upto = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(items)])
    ends = np.cumsum(lengths)
    bounds: Lengths = upto[ends] - upto[ends - lengths] + 4
    return bounds


def _name_bound(name: str) -> int:
    return _LONGEST_ESCAPE * len(name.encode()) + 4


def _chunks(column: pa.Array | pa.ChunkedArray) -> Sequence[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def to_json(array: pa.Array, times: Times = time_texts) -> pa.Array:
    """The JSON text of each value, as an array of strings without nulls."""
    texts = _json(array, times)
    return texts if not array.null_count else pc.if_else(array.is_valid(), pc.fill_null(texts, "null"), "null")


def plain_texts(array: pa.Array, times: Times = time_texts) -> pa.Array:
    """The text of each value without quotation marks, nulls stay; lists, maps and rows as JSON."""
    kind, types = array.type, pa.types
    if types.is_nested(kind):
        return _with_validity(to_json(array, times), array)
    if types.is_floating(kind):
        return _floats(array)
    if types.is_decimal(kind):
        return _decimals(array)
    if types.is_temporal(kind) and not types.is_time(kind):
        return times(array)
    return encode_base64(array) if types.is_binary(kind) else array.cast(pa.string())


def concat(*parts: pa.Array | str) -> pa.Array:
    """Texts and arrays of texts put together row by row."""
    return pc.binary_join_element_wise(*(text_scalar(part) if isinstance(part, str) else part for part in parts), text_scalar(""))


def content(array: pa.Array) -> Bytes:
    """The bytes of all values of a string or binary array with 32-bit offsets, one after another."""
    _, offset_buffer, data = array.buffers()
    if data is None or not len(array):
        return np.empty(0, dtype=np.uint8)
    offsets = np.frombuffer(offset_buffer, dtype=np.int32, count=len(array) + 1, offset=4 * array.offset)
    return np.frombuffer(data, dtype=np.uint8)[int(offsets[0]) : int(offsets[-1])]


def _json(array: pa.Array, times: Times) -> pa.Array:
    kind, types = array.type, pa.types
    if types.is_string(kind):
        return _quoted_text(array)
    if types.is_list(kind):
        return _joined(to_json(array.flatten(), times), _lengths(array), "[", "]")
    if types.is_map(kind):
        return _maps(array, times)
    if types.is_struct(kind):
        # Flattened: what lies below a null is nobody's value.
        return rows_to_json(array.flatten(), [field.name for field in kind], times)
    texts = plain_texts(array, times)
    if types.is_integer(kind) or types.is_boolean(kind) or types.is_null(kind):
        return texts
    if types.is_floating(kind):
        finite = pc.is_finite(array)
        return texts if pc.all(finite).as_py() in (True, None) else pc.if_else(finite, texts, _quoted(texts))
    return _quoted(texts)


def _quoted(texts: pa.Array) -> pa.Array:
    return concat('"', texts, '"')


def _quoted_text(texts: pa.Array) -> pa.Array:
    present = np.bincount(content(texts), minlength=256) if len(texts) else np.zeros(256)
    # The backslash comes first: the others bring backslashes of their own.
    for code, escape in _ESCAPES.items():
        if present[code]:
            texts = pc.replace_substring(texts, chr(code), escape)
    return _quoted(texts)


def _floats(array: pa.Array) -> pa.Array:
    texts = array.cast(pa.string())
    place = pc.index_in(texts, value_set=pa.array(list(_FLOAT_NAMES)))
    if place.null_count == len(place):
        return texts
    return pc.if_else(place.is_valid(), pa.array(list(_FLOAT_NAMES.values())).take(place), texts)


def _decimals(array: pa.Array) -> pa.Array:
    scale = array.type.scale
    # Arrow writes small fractions with an exponent; the same digits as a whole number never have one.
    digits = pa.Array.from_buffers(pa.decimal128(38, 0), len(array), array.buffers(), offset=array.offset).cast(pa.string())
    if scale <= 0:
        return digits
    sign = pc.if_else(pc.starts_with(digits, "-"), "-", "")
    padded = pc.utf8_lpad(pc.utf8_ltrim(digits, "-"), scale + 1, "0")
    return concat(sign, pc.utf8_slice_codeunits(padded, 0, -scale), ".", pc.utf8_slice_codeunits(padded, -scale))


def _maps(array: pa.MapArray, times: Times) -> pa.Array:
    offsets = np.asarray(array.offsets)
    start, stop = int(offsets[0]), int(offsets[-1])
    keys, values = array.keys.slice(start, stop - start), array.items.slice(start, stop - start)
    lengths = np.diff(offsets).astype(np.int32)
    if pa.types.is_string(array.type.key_type):
        return _joined(concat(_quoted_text(keys), ":", to_json(values, times)), lengths, "{", "}")
    return _joined(concat("[", to_json(keys, times), ",", to_json(values, times), "]"), lengths, "[", "]")


def _lengths(array: pa.ListArray) -> npt.NDArray[np.int32]:
    lengths: npt.NDArray[np.int32] = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    return lengths.astype(np.int32, copy=False)


def _joined(texts: pa.Array, lengths: npt.NDArray[np.int32], opening: str, closing: str) -> pa.Array:
    """Neighbouring texts with commas between them, ``lengths[i]`` of them in row i."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int32)
    np.cumsum(lengths, out=offsets[1:])
    lists = pa.ListArray.from_arrays(pa.array(offsets), texts)
    return concat(opening, pc.binary_join(lists, ","), closing)


def encode_base64(array: pa.Array) -> pa.Array:
    """Standard base64 (RFC 4648) of each value of a binary array; nulls stay."""
    lengths = pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int64)
    groups = (lengths + 2) // 3
    ends = np.cumsum(groups)
    # Every value begins at a group of its own, filled up with zeros.
    padded = np.zeros(int(ends[-1]) * 3 if len(ends) else 0, dtype=np.uint8)
    padded[_spread(lengths, (ends - groups) * 3)] = content(array if not array.null_count else pc.fill_null(array, b""))
    words = padded.reshape(-1, 3).astype(np.uint32)
    bits = (words[:, 0] << 16) | (words[:, 1] << 8) | words[:, 2]
    text = _BASE64[np.stack([bits >> 18, (bits >> 12) & 63, (bits >> 6) & 63, bits & 63], axis=1)]
    missing = groups * 3 - lengths
    last = ends - 1
    text[last[missing >= 1], 3] = ord("=")
    text[last[missing == 2], 2] = ord("=")
    offsets = np.zeros(len(array) + 1, dtype=np.int32)
    offsets[1:] = ends * 4
    return _with_validity(pa.Array.from_buffers(pa.string(), len(array), [None, pa.py_buffer(offsets), pa.py_buffer(text)]), array)


def _spread(lengths: npt.NDArray[np.int64], starts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The places of all bytes when value i, ``lengths[i]`` long, begins at ``starts[i]``."""
    begins = np.cumsum(lengths) - lengths
    places: npt.NDArray[np.int64] = np.arange(int(lengths.sum()), dtype=np.int64) + np.repeat(starts - begins, lengths)
    return places


def _with_validity(texts: pa.Array, like: pa.Array) -> pa.Array:
    return texts if not like.null_count else pc.if_else(like.is_valid(), texts, pa.scalar(None, pa.string()))
