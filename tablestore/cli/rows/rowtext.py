"""Rows as text, column by column in Arrow: JSON lines, tab-separated lines, and columns that CSV can hold.

    to_json_lines(batch)    {"id":1,"price":"9.50","at":"2026-01-31T12:00:00.000000","raw":"AAE="}
    to_plain_lines(batch)   1 <tab> 9.50 <tab> 2026-01-31T12:00:00.000000 <tab> AAE=
    to_csv_columns(batch)   the same as Arrow columns that CSV can hold, NULL kept

No value becomes a Python object. Decimals are text with all their digits; times are ISO 8601, with ``Z`` where the type has a time
zone; bytes are base64; NaN and the infinities are text; a map with text keys is an object, any other a list of ``[key, value]``.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tablestore.cli.text.safetext import UNSAFE, UNSAFE_CLASS
from tablestore.log.json.jsontext import encode_base64
from tablestore.log.json.jsontimes import time_texts

# Texts of one slice stay far below what one Arrow array can hold, whatever the rows are.
SLICE_ROWS = 8192

_TEXT = pa.large_string()
_SHORT_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def to_json_lines(batch: pa.RecordBatch) -> memoryview:
    """One JSON object a row, each with a line break behind it, as UTF-8."""
    parts: list[object] = []
    for position, name in enumerate(batch.schema.names):
        parts.append(_scalar(("," if position else "{") + _json_name(name) + ":"))
        parts.append(json_text(batch.column(position)))
    if not parts:
        return memoryview(b"{}\n" * batch.num_rows)
    return _bytes_of(_join(*parts, _scalar("}\n")))


def to_plain_lines(batch: pa.RecordBatch) -> memoryview:
    """One line of tab-separated values a row; NULL is empty, control characters are escapes."""
    parts: list[object] = []
    for position, column in enumerate(batch.columns):
        if position:
            parts.append(_scalar("\t"))
        parts.append(pc.fill_null(escape_controls(plain_text(column)), ""))
    return _bytes_of(_join(*parts, _scalar("\n"))) if parts else memoryview(b"\n" * batch.num_rows)


def to_csv_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with columns of :func:`csv_schema`; NULL stays NULL."""
    schema = csv_schema(batch.schema)
    arrays = [
        column if field.type == column.type else plain_text(column) for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def csv_schema(schema: pa.Schema) -> pa.Schema:
    """What Arrow writes to CSV as numbers and dates stays as it is; everything else is text there, and so between quotes."""
    return pa.schema([pa.field(field.name, field.type if _is_csv(field.type) else _TEXT) for field in schema])


def plain_text(array: pa.Array) -> pa.Array:
    """Values as large_string without quotes; lists, maps and rows as JSON."""
    kind = array.type
    if pa.types.is_nested(kind):
        text = json_text(array)
        return pc.if_else(array.is_valid(), text, pa.scalar(None, _TEXT)) if array.null_count else text
    return _atomic_text(array)


def json_text(array: pa.Array) -> pa.Array:
    """Values as JSON in large_string; ``null`` for NULL, so nothing in it is null."""
    kind = array.type
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        text = _list_text(array, json_text(array.flatten()), "[", "]")
    elif pa.types.is_map(kind):
        text = _map_text(array)
    elif pa.types.is_struct(kind):
        text = _struct_text(array)
    elif _is_bare(kind):
        text = _atomic_text(array)
        if pa.types.is_floating(kind):
            text = pc.if_else(pc.is_finite(array), text, _quoted(text))
    else:
        text = _quoted(_escape(_atomic_text(array)) if _is_text(kind) else _atomic_text(array))
    return pc.fill_null(text, "null")


def escape_controls(text: pa.Array) -> pa.Array:
    """Control characters and marks of direction as escapes; other text is passed on as it is."""
    return _replace_controls(text, {"\t": "\\t", "\n": "\\n", "\r": "\\r"}, byte_escapes=True)


def _atomic_text(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_null(kind):
        return pa.nulls(len(array), _TEXT)
    if pa.types.is_dictionary(kind):
        return _atomic_text(array.dictionary_decode())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return encode_base64(array.cast(pa.binary())).cast(_TEXT)
    if pa.types.is_timestamp(kind):
        return _timestamp_text(array)
    if pa.types.is_date32(kind):
        return time_texts(array).cast(_TEXT)
    text = array.cast(_TEXT)
    if pa.types.is_floating(kind):
        # A reader that takes numbers without a point for integers would lose the sign of -0.
        for arrow, name in (("nan", "NaN"), ("-inf", "-Infinity"), ("inf", "Infinity"), ("-0", "-0.0")):
            text = pc.if_else(pc.equal(text, _scalar(arrow)), _scalar(name), text)
    if pa.types.is_decimal(kind):
        text = _without_exponents(array, text)
    return text


def _timestamp_text(array: pa.Array) -> pa.Array:
    text = pc.replace_substring(array.cast(_TEXT), " ", "T", max_replacements=1)
    # Beyond the calendar that Arrow prints: the number of ticks is all there is to say.
    strange = pc.starts_with(text, "<")
    if not pc.any(strange).as_py():
        return text
    ticks = _join(array.cast(pa.int64()).cast(_TEXT), _scalar(array.type.unit))
    return pc.if_else(strange, ticks, text)


def _without_exponents(array: pa.Array, text: pa.Array) -> pa.Array:
    strange = pc.match_substring(text, "E")
    if not pc.any(strange).as_py():
        return text
    # Arrow writes very small decimals with an exponent. They are rare: these few go through Python's own formatting.
    values = [None if value is None else format(value, "f") for value in array.filter(strange).to_pylist()]
    return pc.replace_with_mask(text, pc.fill_null(strange, False), pa.array(values, _TEXT))


def _list_text(array: pa.Array, elements: pa.Array, opening: str, closing: str) -> pa.Array:
    """The texts of flattened elements, joined per list."""
    lengths = pc.fill_null(pc.list_value_length(array), 0).cast(pa.int64())
    offsets = np.concatenate(([0], np.cumsum(lengths.to_numpy(zero_copy_only=False)))).astype(np.int64)
    lists = pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), elements)
    joined = _join(_scalar(opening), _binary_join(lists), _scalar(closing))
    return pc.if_else(array.is_valid(), joined, pa.scalar(None, _TEXT)) if array.null_count else joined


def _binary_join(lists: pa.LargeListArray) -> pa.Array:
    # Arrow's kernel knows lists with 32-bit offsets; a slice of rows is far from needing more.
    return pc.binary_join(lists.cast(pa.list_(_TEXT)), pa.scalar(",", _TEXT))


def _map_text(array: pa.Array) -> pa.Array:
    kind = array.type
    as_list = array.cast(pa.list_(pa.struct([kind.key_field, kind.item_field])))
    entries = as_list.flatten()
    keys, values = json_text(entries.field(0)), json_text(entries.field(1))
    if _is_text(kind.key_type):
        return _list_text(as_list, _join(keys, _scalar(":"), values), "{", "}")
    return _list_text(as_list, _join(_scalar("["), keys, _scalar(","), values, _scalar("]")), "[", "]")


def _struct_text(array: pa.Array) -> pa.Array:
    parts: list[object] = []
    for position, field in enumerate(array.type):
        parts.append(_scalar(("," if position else "{") + _json_name(field.name) + ":"))
        parts.append(json_text(array.field(position)))
    text = _join(*parts, _scalar("}")) if parts else pa.repeat(_scalar("{}"), len(array))
    return pc.if_else(array.is_valid(), text, pa.scalar(None, _TEXT)) if array.null_count else text


def _escape(text: pa.Array) -> pa.Array:
    """What stands between the quotes of a JSON text."""
    if _any_match(text, '["\\\\]'):
        text = pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"')
    return _replace_controls(text, _SHORT_ESCAPES, byte_escapes=False)


def _replace_controls(text: pa.Array, short: Mapping[str, str], *, byte_escapes: bool) -> pa.Array:
    # One pass finds out whether there is anything to do, which is nearly never.
    if not _any_match(text, UNSAFE_CLASS):
        return text
    for char in UNSAFE:
        code = ord(char)
        escape = f"\\x{code:02x}" if byte_escapes and code < 0x100 else f"\\u{code:04x}"
        text = pc.replace_substring(text, char, short.get(char, escape))
    return text


def _any_match(text: pa.Array, pattern: str) -> bool:
    return bool(pc.any(pc.match_substring_regex(text, pattern)).as_py())


def _quoted(text: pa.Array) -> pa.Array:
    return _join(_scalar('"'), text, _scalar('"'))


def _join(*parts: object) -> pa.Array:
    return pc.binary_join_element_wise(*parts, _scalar(""))


@lru_cache(maxsize=1024)
def _scalar(text: str) -> pa.Scalar:
    # Not made where the module is imported: it brings in pandas, where that is installed.
    return pa.scalar(text, _TEXT)


def _json_name(name: str) -> str:
    return str(json_text(pa.array([name], _TEXT))[0].as_py())


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_bare(kind: pa.DataType) -> bool:
    """Types whose JSON is written without quotes."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind))


def _is_csv(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_date(kind))


def _bytes_of(lines: pa.Array) -> memoryview:
    """The bytes of all texts, one behind the other: they lie like that in the array."""
    offsets = np.frombuffer(lines.buffers()[1], np.int64)[lines.offset : lines.offset + len(lines) + 1]
    data = lines.buffers()[2]
    return memoryview(data)[int(offsets[0]) : int(offsets[-1])] if data is not None else memoryview(b"")


def slices(batch: pa.RecordBatch) -> Sequence[pa.RecordBatch]:
    """A batch in pieces of bounded size."""
    return [batch.slice(start, SLICE_ROWS) for start in range(0, batch.num_rows, SLICE_ROWS)]
