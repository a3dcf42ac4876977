"""Decodes JSON objects into rows.

    fast    Arrow's JSON reader into the types that JSON has, then casts over whole columns (text to decimal, date, …)
    exact   Python's JSON reader, value by value: for what the fast one does not take (maps, NaN, objects over several lines)

The fast way is tried first, unless the columns hold maps; whatever it does not take is read by the exact one, which also finds
the text that is at fault. Both accept what other writers of Debezium JSON send: unknown names are skipped, missing ones are
null.
"""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from tablestore.errors import FormatError
from tablestore.json.jsontimestamps import times_from_texts, times_with_or_without_zone
from tablestore.json.jsonvalues import WrittenNumber, parse_object
from tablestore.types.arrowtypes import from_arrow_type
from tablestore.types.numbercast import to_decimal, to_float
from tablestore.types.requiredfields import cast_required
from tablestore.types.typestring import type_to_sql

# Two, because with one literal to begin with it is searched for fast, without one at each byte.
_NULL_AT_START, _NULL_FOR_OBJECT = re.compile(rb"[ \t\r\n]*null"), re.compile(rb"}[ \t\r\n]*null")
_BLOCK_BYTES = 16 * 1024 * 1024
_WRONG_VALUE = (ValueError, TypeError, KeyError, OverflowError, pa.ArrowException)
_SPECIAL_FLOATS = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}
_REVERSE_BASE64 = np.full(256, 255, dtype=np.uint8)
_REVERSE_BASE64[np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", dtype=np.uint8)] = np.arange(64)
_REVERSE_BASE64[ord("=")] = 0


class _WrongValue(ValueError):
    """A value that is not of its column, of which nothing else is to be said."""


class BadJson(FormatError):
    """A text that does not fit the columns: the one at ``position``, for the ``reason``.

    Where a value is not of its column: ``expected`` is the type, and ``number`` the value if it is one.
    """

    default_kind = "bad-json"

    def __init__(
        self, message: str, *, kind: str | None = None, position: int = 0, reason: str = "", expected: str = "", number: str = ""
    ) -> None:
        super().__init__(message, kind=kind)
        self.position, self.reason, self.expected, self.number = position, reason, expected, number


def rows_from_json(texts: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    """The objects in ``texts`` as rows of ``schema``. Raises :class:`BadJson` for a text that does not fit it."""
    if not texts:
        return schema.empty_table()
    if not any(has_map(field.type) for field in schema):
        try:
            return _fast(texts, schema)
        except (pa.ArrowException, ValueError):
            return rows_one_by_one(texts, schema)
    return rows_one_by_one(texts, schema)


def _fast(texts: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    table = read_objects(
        b"\n".join(texts),
        pa.schema([pa.field(f.name, carrier(f.type)) for f in schema]),
        others="ignore",
        longest=max(map(len, texts)),
        count=len(texts),
    )
    columns = [from_carrier(table.column(f.name).combine_chunks(), f.type) for f in schema]
    return pa.Table.from_arrays(columns, schema=pa.schema([f.with_nullable(True) for f in schema]))


def read_objects(
    data: bytes,
    carriers: pa.Schema | None = None,
    *,
    others: Literal["ignore", "infer"] = "infer",
    longest: int = 0,
    count: int | None = None,
) -> pa.Table:
    """Objects behind each other as columns of the types ``carriers``, and as what they look like where ``others`` are inferred.

    ``longest``: the bytes of the longest object; ``count``: how many there have to be. Raises ValueError (ArrowInvalid is one).
    """
    # Where an object has to be, a null makes Arrow crash the process.
    if _NULL_AT_START.match(data) or _NULL_FOR_OBJECT.search(data):
        raise ValueError("expected JSON objects, found null")
    # Arrow does not look at the encoding of texts.
    data.decode()
    table = pj.read_json(
        pa.BufferReader(data),
        read_options=pj.ReadOptions(use_threads=False, block_size=max(_BLOCK_BYTES, 2 * longest)),
        parse_options=pj.ParseOptions(explicit_schema=carriers, unexpected_field_behavior=others),
    )
    if count not in (None, table.num_rows):
        raise ValueError("not one object per text")
    return table


def carrier(kind: pa.DataType, *, zones: bool = True) -> pa.DataType:
    """The type in which JSON carries values of ``kind``. Without ``zones`` a text may have a zone or none, as Arrow reads it."""
    if pa.types.is_list(kind):
        return pa.list_(carrier(kind.value_type, zones=zones))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, carrier(field.type, zones=zones)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(carrier(kind.key_type, zones=zones), carrier(kind.item_type, zones=zones))
    if pa.types.is_timestamp(kind) and not zones:
        return kind
    if pa.types.is_floating(kind):
        # Arrow's reader makes infinity of a number that is too large for 32 bits.
        return pa.float64()
    return kind if pa.types.is_integer(kind) or pa.types.is_boolean(kind) else pa.string()


def from_carrier(array: pa.Array | pa.ChunkedArray, kind: pa.DataType, *, zones: bool = True) -> pa.Array:
    """Values as JSON carries them, as values of ``kind``. ``zones`` as for :func:`carrier`."""
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    if array.type.equals(kind) and not pa.types.is_nested(kind):
        return array
    if pa.types.is_list(kind):
        values = from_carrier(array.values, kind.value_type, zones=zones)
        validity, offsets = array.buffers()[:2]
        return pa.Array.from_buffers(
            pa.list_(kind.value_field.with_nullable(True)), len(array), [validity, offsets], offset=array.offset, children=[values]
        ).cast(kind)
    if pa.types.is_struct(kind):
        fields = [kind.field(i).with_nullable(True) for i in range(kind.num_fields)]
        children = [from_carrier(child, field.type, zones=zones) for child, field in zip(_children(array), fields, strict=True)]
        rows = pa.StructArray.from_arrays(children, fields=fields, mask=array.is_null() if array.null_count else None)
        return cast_required(rows, kind)
    if pa.types.is_map(kind):
        entries = pa.StructArray.from_arrays(
            [from_carrier(array.keys, kind.key_type, zones=zones), from_carrier(array.items, kind.item_type, zones=zones)],
            fields=[kind.key_field, kind.item_field],
        )
        validity, offsets = array.buffers()[:2]
        return pa.Array.from_buffers(kind, len(array), [validity, offsets], offset=array.offset, children=[entries])
    if pa.types.is_binary(kind):
        return decode_base64(array)
    if pa.types.is_time(kind):
        return _times(array, kind)
    if pa.types.is_timestamp(kind) and not zones:
        return times_with_or_without_zone(array, kind)
    if pa.types.is_temporal(kind):
        return times_from_texts(array, kind)
    if pa.types.is_decimal(kind):
        return to_decimal(pc.utf8_trim_whitespace(array) if pa.types.is_string(array.type) else array, kind)
    if pa.types.is_floating(kind):
        return to_float(array, kind)
    return array.cast(kind)


def _children(array: pa.Array) -> Sequence[pa.Array]:
    """The children of a struct, flattened: below a null there may be values that fit no column, an empty text for a date."""
    children: list[pa.Array] = array.flatten()
    return children


def _times(array: pa.Array, kind: pa.DataType) -> pa.Array:
    # Arrow casts no text to a time of day, but to a time of the first day.
    whole = pc.binary_join_element_wise("1970-01-01 ", array, "")
    return whole.cast(pa.timestamp("ms")).cast(pa.int64()).cast(pa.int32()).cast(kind)


def decode_base64(array: pa.Array) -> pa.Array:
    """The bytes of base64 texts; nulls stay. Raises ValueError for a text that is not base64."""
    if not len(array) or array.buffers()[2] is None:
        return array.cast(pa.binary())
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    offsets: npt.NDArray[np.int32] = np.frombuffer(
        array.buffers()[1], dtype=np.int32, count=len(array) + 1, offset=4 * array.offset
    )
    lengths = np.diff(offsets).astype(np.int64)
    text = np.frombuffer(array.buffers()[2], dtype=np.uint8)[int(offsets[0]) : int(offsets[-1])]
    codes = _REVERSE_BASE64[text]
    if (lengths % 4).any() or (codes == 255).any():
        raise ValueError("expected base64")
    ends = np.cumsum(lengths)
    filled = (text == ord("=")).astype(np.int64)
    full = lengths > 0
    padding = np.zeros(len(array), dtype=np.int64)
    padding[full] = filled[ends[full] - 1] + filled[ends[full] - 2]
    # The last place is filled up first, and no other one but that in front of it.
    if filled.sum() != padding.sum() or (filled[ends[full] - 2] > filled[ends[full] - 1]).any():
        raise ValueError("expected base64")
    words = codes.reshape(-1, 4).astype(np.uint32)
    bits = (words[:, 0] << 18) | (words[:, 1] << 12) | (words[:, 2] << 6) | words[:, 3]
    data = np.stack([bits >> 16, bits >> 8, bits], axis=1).astype(np.uint8).reshape(-1)
    sizes = lengths // 4 * 3 - padding
    keep = np.ones(len(data), dtype=np.bool_)
    data_ends = np.cumsum(lengths // 4 * 3)
    keep[data_ends[padding >= 1] - 1] = False
    keep[data_ends[padding == 2] - 2] = False
    new_offsets = np.zeros(len(array) + 1, dtype=np.int32)
    np.cumsum(sizes, out=new_offsets[1:])
    mask = None if valid.all() else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(pa.binary(), len(array), [mask, pa.py_buffer(new_offsets), pa.py_buffer(data[keep])])


def rows_one_by_one(texts: Sequence[bytes], schema: pa.Schema, *, zones: bool = True) -> pa.Table:
    """The same, read exactly. Without ``zones`` the text of a timestamp may have a zone or none (:func:`carrier`).

    Value by value, because no library reads maps and special numbers into columns. Ordinary messages never come here.
    """
    parsed = [_object(text, position) for position, text in enumerate(texts)]
    columns = [_exact_column([row.get(field.name) for row in parsed], field, zones) for field in schema]
    return pa.Table.from_arrays(columns, schema=pa.schema([f.with_nullable(True) for f in schema]))


def _exact_column(values: Sequence[Any], field: pa.Field, zones: bool) -> pa.Array:
    try:
        return values_to_array(values, field.type, zones=zones)
    except _WRONG_VALUE as error:
        for position, value in enumerate(values):
            try:
                values_to_array([value], field.type, zones=zones)
            except _WRONG_VALUE as cause:
                raise _bad_value(position, field, value, cause) from error
        raise


def _bad_value(position: int, field: pa.Field, value: Any, cause: Exception) -> BadJson:
    expected = _sql(field.type)
    shown = str(value).lower() if isinstance(value, bool) else f"{value!r:.100}"
    reason = f"column {field.name!r}: expected {expected}, found {shown}{_why(cause)}"
    number = str(value) if isinstance(value, (int, WrittenNumber)) and not isinstance(value, bool) else ""
    return _bad(position, reason, expected=expected, number=number)


def _sql(kind: pa.DataType) -> str:
    return type_to_sql(from_arrow_type(kind, True, lambda: 0))


def _why(cause: Exception) -> str:
    """The reason that an error of ours adds; those of others speak of what a value has become on its way."""
    return "" if isinstance(cause, (pa.ArrowException, KeyError, OverflowError, _WrongValue)) else f" ({cause})"


def values_to_array(values: Sequence[Any], kind: pa.DataType, *, zones: bool = True) -> pa.Array:
    """Values as Python's JSON reader gives them as an array of ``kind``. Raises ValueError and others for those that do not fit."""
    take = _reader(kind)
    return from_carrier(pa.array([None if value is None else take(value) for value in values], carrier(kind)), kind, zones=zones)


def _object(text: bytes, position: int) -> dict[str, Any]:
    try:
        return parse_object(text)
    except ValueError as error:
        raise _bad(position, str(error)) from error


def _reader(kind: pa.DataType) -> Callable[[Any], Any]:
    """The conversion of a parsed JSON value to what Arrow takes for the carrier of ``kind``."""
    if pa.types.is_list(kind):
        item = _reader(kind.value_type)
        return lambda value: [None if v is None else item(v) for v in _expect(value, list)]
    if pa.types.is_map(kind):
        key, item = _reader(kind.key_type), _reader(kind.item_type)
        return lambda value: [(key(k), None if v is None else item(v)) for k, v in _entries(value)]
    if pa.types.is_struct(kind):
        parts = {kind.field(i).name: _reader(kind.field(i).type) for i in range(kind.num_fields)}
        return lambda value: {
            name: None if _expect(value, dict).get(name) is None else read(value[name]) for name, read in parts.items()
        }
    if pa.types.is_floating(kind):
        return _float
    if pa.types.is_integer(kind):
        return lambda value: _expect(value, int)
    if pa.types.is_boolean(kind):
        return lambda value: _expect(value, bool)
    if pa.types.is_decimal(kind):
        # Others send decimals as numbers.
        return lambda value: str(value)
    if pa.types.is_binary(kind):
        return _base64
    # A number with a point is a text too.
    return lambda value: str(_expect(value, str))


def _float(value: Any) -> float:
    if isinstance(value, str) and value in _SPECIAL_FLOATS:
        return _SPECIAL_FLOATS[value]
    # Python reads 1_0, and the digits of every script.
    if isinstance(value, bool) or (isinstance(value, str) and ("_" in value or not value.isascii())):
        raise _WrongValue
    if math.isinf(number := float(value)) and not isinstance(value, float):
        raise _WrongValue if isinstance(value, WrittenNumber) else ValueError("it is too large")
    return number


def _base64(value: Any) -> str:
    if isinstance(value, WrittenNumber):
        raise _WrongValue
    return str(_expect(value, str))


def _entries(value: Any) -> Any:
    return value.items() if isinstance(value, dict) else _expect(value, list)


def _expect(value: Any, kind: type) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise _WrongValue
    return value


def has_map(kind: pa.DataType) -> bool:
    """True of maps and of what holds one: Arrow reads none."""
    if pa.types.is_map(kind):
        return True
    return pa.types.is_nested(kind) and any(has_map(kind.field(i).type) for i in range(kind.num_fields))


def _bad(position: int, reason: str, *, expected: str = "", number: str = "") -> BadJson:
    return BadJson(f"text {position}: {reason}", position=position, reason=reason, expected=expected, number=number)
