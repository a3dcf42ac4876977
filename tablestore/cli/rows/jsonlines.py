"""JSON lines as rows: blocks of whole lines, each read into columns at once.

    fast     Arrow's JSON reader with the types of the table's columns
    exact    the reader of the change log, for what the fast one does not take: maps, NaN, decimals that are numbers, bytes in lists

Lines are cut off at line breaks, so memory is a few times a block, or the longest line.

To Arrow a field that a line lacks is NULL. Where NULL would take the place of what is stored (``lost``), a column that no line has
is left out of the rows, and lines that lack what others have are refused.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from tablestore.cli.rows.numberroom import no_room
from tablestore.errors import FormatError, InvalidInputError
from tablestore.log.json.jsonrows import BadJson, decode_base64, read_objects, rows_from_json
from tablestore.types.numbercast import to_decimal, to_float
from tablestore.types.rowkind import ROW_KIND_COLUMN

BLOCK_BYTES = 4 << 20

MissingValues = Callable[[Collection[str]], Collection[str]]
"""Of rows with these columns only: the columns whose stored values NULL would replace."""


def json_batches(
    stream: Any, where: str, target: pa.Schema | None, *, others: bool = False, lost: MissingValues | None = None
) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
    """The schema of the first block, and all rows; ``others``: fields beside the target's are skipped, not refused.

    ``lost`` None: columns that lines lack are NULL. Raises FormatError that names the line, InvalidInputError.
    """
    blocks = _blocks(stream)
    first = next(blocks, (0, b""))
    if not first[1].strip():
        return target if target is not None else pa.schema([]), iter(())

    held = None if target is None or lost is None else _Held(where, target.names, lost)

    def read(line: int, block: bytes) -> pa.Table:
        table = _table(line, block, where, target, others)
        return table if held is None else held.columns(table, line, block)

    table = read(*first)

    def rows() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches()
        for line, block in blocks:
            yield from read(line, block).to_batches()

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
    target_types = {column.name: column.type for column in target}
    columns = [_from_carrier(table.column(name).combine_chunks(), target_types.get(name)) for name in table.schema.names]
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


class _Held:
    """Finds out which columns the lines of one file have: all lines the same, of those whose stored values would be lost."""

    def __init__(self, where: str, names: Sequence[str], lost: MissingValues) -> None:
        self._where, self._names, self._lost = where, names, lost
        self._absent: frozenset[str] | None = None

    def columns(self, table: pa.Table, line: int, block: bytes) -> pa.Table:
        """The rows of a block without the columns that its lines lack. Raises InvalidInputError where others have them."""
        with_nulls = {name for name in self._names if table.column(name).null_count}
        with_nulls &= set(self._lost([name for name in self._names if name not in with_nulls]))
        lines = [text for text in block.split(b"\n") if text.strip()]
        if len(lines) != table.num_rows or not lines:
            return table
        adding = _adding(table)
        places = adding or range(len(lines))
        without = {name: _without(name, lines, table.column(name), places) for name in with_nulls}
        absent = frozenset(name for name, lacking in without.items() if len(lacking) == len(places))
        if not adding:
            return table.drop_columns(sorted(absent))
        if self._absent is None:
            self._absent = absent
        for name in self._names:
            if name in self._absent and name not in absent:
                raise self._uneven(name, _line_of(block, line, _other(places, without.get(name, []))), "has")
            if name not in self._absent and without.get(name):
                raise self._uneven(name, _line_of(block, line, without[name][0]), "has no")
        return table.drop_columns(sorted(absent))

    def _uneven(self, name: str, line: int, has: str) -> InvalidInputError:
        other = "lack" if has == "has" else "have"
        return InvalidInputError(
            f"{self._where}, line {line} {has} {name!r}, which other lines {other}: NULL would take the place of what is stored "
            "there. Give it in every line, as null where that is meant, or load lines with the same fields together; "
            "--missing-columns null writes NULL for those that lack it",
            kind="missing-columns",
        )


def _adding(table: pa.Table) -> Sequence[int]:
    """Places of the rows that put values in place of stored ones: all but those that take rows back."""
    if ROW_KIND_COLUMN not in table.column_names:
        return range(table.num_rows)
    kinds = table.column(ROW_KIND_COLUMN)
    retracts = pc.is_in(kinds, pa.array(["-U", "-D"], kinds.type))
    return list(pc.indices_nonzero(pc.invert(retracts)).to_pylist())


def _without(name: str, lines: Sequence[bytes], values: pa.ChunkedArray, places: Sequence[int]) -> list[int]:
    """Those of the places whose lines have no field of this name. Only a NULL can be one."""
    nulls = pc.indices_nonzero(values.is_null())
    nulls = nulls if len(places) == len(lines) else nulls.filter(pc.is_in(nulls, pa.array(places, nulls.type)))
    texts = pa.array(lines, pa.large_binary()).take(nulls)
    # A line with one brace has no object inside, where the name might stand too. Only the others are read, one by one.
    field = re.escape(json.dumps(name, ensure_ascii=False)) + r"\s*:"
    plain = pc.and_(pc.match_substring_regex(texts, field), pc.equal(pc.count_substring(texts, b"{"), 1))
    return [place for place in nulls.filter(pc.invert(plain)).to_pylist() if name not in json.loads(lines[place])]


def _other(places: Sequence[int], lacking: Sequence[int]) -> int:
    """The first of the places that is not among those lacking."""
    return next(place for place in places if place not in set(lacking))


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
