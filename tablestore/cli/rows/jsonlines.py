"""JSON lines as rows: blocks of whole lines, each read into columns at once.

    fast     Arrow's JSON reader with the types of the table's columns
    exact    the reader of the change log, for what the fast one does not take: maps, NaN, decimals that are numbers, bytes in lists

Lines are cut off at line breaks, so memory is a few times a block, or the longest line.
"""

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.json

from tablestore.cli.rows.numberroom import no_room
from tablestore.errors import FormatError, InvalidInputError
from tablestore.log.json.jsonrows import BadJson, decode_base64, read_objects, rows_from_json
from tablestore.types.numbercast import to_decimal, to_float

BLOCK_BYTES = 4 << 20


def json_batches(
    stream: Any, where: str, target: pa.Schema | None, *, others: bool = False
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema of the first block, and all rows; ``others``: fields beside the target's are skipped, not refused.

    Raises FormatError that names the line.
    """
    blocks = _blocks(stream)
    first = next(blocks, (0, b""))
    if not first[1].strip():
        return target if target is not None else pa.schema([]), iter(())
    table = _table(*first, where, target, others)

    def rows() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches()
        for line, block in blocks:
            yield from _table(line, block, where, target, others).to_batches()

    return table.schema, rows()


def _blocks(stream: Any) -> Iterator[tuple[int, bytes]]:
    """Blocks that end with a line break, each with the number of its first line."""
    pending, line = b"", 1
    while chunk := stream.read(BLOCK_BYTES):
        cut = chunk.rfind(b"\n")
        if cut < 0:
            pending += chunk
            continue
        block = pending + chunk[: cut + 1]
        pending = chunk[cut + 1 :]
        yield line, block
        line += block.count(b"\n")
    if pending.strip():
        yield line, pending


def _table(line: int, block: bytes, where: str, target: pa.Schema | None, others: bool) -> pa.Table:
    if not block.strip():
        return (target or pa.schema([])).empty_table()
    if target is None:
        try:
            return read_objects(block)
        except (pa.ArrowException, ValueError) as error:
            raise FormatError(f"{where}: {error}; expected one JSON object a line", kind="bad-json") from error
    if not any(_needs_exact(column.type) for column in target):
        try:
            return _fast(block, target, others)
        except (pa.ArrowException, ValueError):
            # The exact reader takes more, and finds the line that is at fault.
            return _exact(line, block, where, target, others)
    return _exact(line, block, where, target, others)


def _fast(block: bytes, target: pa.Schema, others: bool) -> pa.Table:
    carriers = pa.schema([pa.field(column.name, _carrier(column.type)) for column in target])
    parse = pyarrow.json.ParseOptions(
        explicit_schema=carriers, newlines_in_values=False, unexpected_field_behavior="ignore" if others else "infer"
    )
    # One block of Arrow's is one block of ours: types are settled by the schema, and lines never lie in two.
    read = pyarrow.json.ReadOptions(block_size=len(block) + 1)
    table = read_objects(block, read_options=read, parse_options=parse)
    known = {column.name: column.type for column in target}
    columns = [_from_carrier(table.column(name).combine_chunks(), known.get(name)) for name in table.schema.names]
    if any(map(_has_infinity, columns)):
        # Of a number that is too large, or of a word for it: the exact reader sees which.
        raise ValueError("infinity")
    return pa.table(columns, names=table.schema.names)


def _exact(line: int, block: bytes, where: str, target: pa.Schema, others: bool) -> pa.Table:
    lines = [text for text in block.split(b"\n") if text.strip()]
    try:
        table = rows_from_json(lines, target)
    except BadJson as error:
        at = f"{where}, line {_line_of(block, line, error.position)}"
        raise FormatError(f"{at}: {error.reason}{no_room(error.number, error.expected)}", kind="bad-json") from error
    # This reader skips names that it does not know; an import must not lose them without a word.
    for name in () if others else {name for text in lines for name in json.loads(text)} - set(target.names):
        raise InvalidInputError(
            f"{where} has a field {name!r} that the table does not have (columns: {', '.join(target.names)}); "
            "choose with --columns, or add the column",
            kind="unknown-column",
        )
    return table


def _line_of(block: bytes, first: int, position: int) -> int:
    """The number of the line that holds the object at ``position``; empty lines count as lines only."""
    filled = [number for number, text in enumerate(block.split(b"\n"), first) if text.strip()]
    return filled[position] if position < len(filled) else first


def _needs_exact(kind: pa.DataType) -> bool:
    if pa.types.is_map(kind):
        return True
    if pa.types.is_list(kind):
        return _carrier(kind.value_type) != kind.value_type or _needs_exact(kind.value_type)
    if pa.types.is_struct(kind):
        return any(_carrier(part.type) != part.type or _needs_exact(part.type) for part in kind)
    return False


def _has_infinity(array: pa.Array) -> bool:
    if pa.types.is_list(array.type):
        return _has_infinity(array.values)
    if pa.types.is_struct(array.type):
        return any(_has_infinity(array.field(place)) for place in range(array.type.num_fields))
    return pa.types.is_float32(array.type) and bool(pa.compute.any(pa.compute.is_inf(array)).as_py())


def _carrier(kind: pa.DataType) -> pa.DataType:
    """Dates, times and bytes are text in JSON; Arrow's reader wants numbers for them."""
    return pa.string() if pa.types.is_date(kind) or pa.types.is_time(kind) or is_text_first(kind) else kind


def is_text_first(kind: pa.DataType) -> bool:
    """Types that are read as text and made by :func:`from_text`: bytes, and decimals, of which Arrow's readers may make others."""
    return bool(pa.types.is_binary(kind) or pa.types.is_decimal(kind))


def _from_carrier(array: Any, kind: pa.DataType | None) -> pa.Array:
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    return array if kind is None else from_text(array, kind)


def from_text(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column that was read as text as ``kind``; one that was not is passed on."""
    if array.type == kind or not pa.types.is_string(array.type):
        return array
    if pa.types.is_binary(kind):
        try:
            return decode_base64(array)
        except ValueError as error:
            raise pa.ArrowInvalid(f"bytes are base64 text ({error})") from error
    if pa.types.is_time(kind):
        # Arrow casts no text to a time of day, but to a moment of a day.
        moments = pa.compute.binary_join_element_wise("1970-01-01T", array, "")
        return moments.cast(pa.timestamp(kind.unit)).cast(kind)
    if pa.types.is_floating(kind):
        return to_float(array, kind)
    if pa.types.is_decimal(kind):
        return to_decimal(pa.compute.utf8_trim_whitespace(array), kind)
    return array.cast(kind)
