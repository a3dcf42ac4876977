"""Rows as text, column by column in Arrow: JSON lines, tab-separated lines, and columns that CSV can hold.

    to_json_lines(batch)    {"id":1,"price":"9.50","at":"2026-01-31T12:00:00.000000","raw":"AAE="}
    to_plain_lines(batch)   1 <tab> 9.50 <tab> 2026-01-31T12:00:00.000000 <tab> AAE=
    to_csv_columns(batch)   the same as Arrow columns that CSV can hold, NULL kept

No value becomes a Python object. Decimals are text with all their digits; times are ISO 8601, with ``Z`` where the type has a time
zone; bytes are base64; NaN and the infinities are text; a map with text keys is an object, any other a list of ``[key, value]``.
"""

from collections.abc import Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.cli.text.safetext import UNSAFE, UNSAFE_CLASS
from tablestore.json.jsontext import concat, content, plain_texts, rows_to_json, text_bytes
from tablestore.json.jsontimestamps import time_texts
from tablestore.types.arrays import text_scalar

# The texts of a slice stay below the 2 GiB that one Arrow array can hold, whatever the rows are and however they are escaped.
_SLICE_ROWS, _SLICE_BYTES = 8192, 256 << 20
_DEL = 0x7F
_NO_TEXT = text_scalar("")


def to_json_lines(batch: pa.RecordBatch) -> memoryview:
    """One JSON object a row, each with a line break behind it, as UTF-8."""
    if not batch.num_columns:
        return memoryview(b"{}\n" * batch.num_rows)
    return content(concat(_harmless(rows_to_json(batch.columns, batch.schema.names, _iso_times)), "\n")).data


def to_plain_lines(batch: pa.RecordBatch) -> memoryview:
    """One line of tab-separated values a row; NULL is empty, control characters are escapes."""
    parts: list[pa.Array | str] = []
    for position, column in enumerate(batch.columns):
        parts += ["\t" if position else "", pc.coalesce(escape_controls(plain_text(column)), _NO_TEXT)]
    return content(concat(*parts, "\n")).data if parts else memoryview(b"\n" * batch.num_rows)


def to_csv_columns(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with columns of :func:`csv_schema`; NULL stays NULL."""
    schema = csv_schema(batch.schema)
    arrays = [
        column if field.type == column.type else plain_text(column) for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def csv_schema(schema: pa.Schema) -> pa.Schema:
    """The schema of CSV: numbers and dates stay as Arrow writes them; everything else is text there, and so between quotes."""
    return pa.schema([pa.field(field.name, field.type if _is_csv(field.type) else pa.string()) for field in schema])


def plain_text(array: pa.Array) -> pa.Array:
    """Values as text without quotes; lists, maps and rows as JSON."""
    text = plain_texts(array, _iso_times)
    return _harmless(text) if pa.types.is_nested(array.type) else text


def escape_controls(text: pa.Array) -> pa.Array:
    """Control characters and marks of direction as escapes; other text is passed on as it is."""
    return _replace_controls(text, {"\t": "\\t", "\n": "\\n", "\r": "\\r"}, byte_escapes=True)


def slices(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch in pieces of bounded size."""
    rows = min(_SLICE_ROWS, max(1, _SLICE_BYTES * batch.num_rows // max(1, text_bytes(batch))))
    return (batch.slice(start, rows) for start in range(0, batch.num_rows, rows))


def _harmless(json: pa.Array) -> pa.Array:
    """JSON text that a terminal shows as it is. What it may not show is not ASCII, so it is inside of strings: an escape does."""
    return json if content(json).max(initial=0) < _DEL else _replace_controls(json, {}, byte_escapes=False)


def _replace_controls(text: pa.Array, short: Mapping[str, str], *, byte_escapes: bool) -> pa.Array:
    # One pass finds out whether there is anything to do, which is nearly never.
    if not pc.any(pc.match_substring_regex(text, UNSAFE_CLASS)).as_py():
        return text
    for char in UNSAFE:
        code = ord(char)
        escape = f"\\x{code:02x}" if byte_escapes and code < 0x100 else f"\\u{code:04x}"
        text = pc.replace_substring(text, char, short.get(char, escape))
    return text


def _iso_times(array: pa.Array) -> pa.Array:
    if pa.types.is_date(array.type):
        return time_texts(array)
    text = pc.replace_substring(array.cast(pa.string()), " ", "T", max_replacements=1)
    # Beyond the calendar that Arrow prints: the number of ticks is all there is to say.
    strange = pc.starts_with(text, "<")
    if not pc.any(strange).as_py():
        return text
    return pc.if_else(strange, concat(array.cast(pa.int64()).cast(pa.string()), array.type.unit), text)


def _is_csv(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_date(kind))
