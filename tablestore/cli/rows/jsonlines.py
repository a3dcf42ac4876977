"""JSON lines as rows: blocks of whole lines, each read into columns at once.

    fast     Arrow's JSON reader, as :mod:`tablestore.json.jsonrows` asks it, and all fields, so that unknown ones are refused
    exact    its exact reader, for what the fast one does not take: maps, NaN, decimals that are numbers

Lines are cut off at line breaks, so memory is a few times a block, or the longest line.

To Arrow a field that a line lacks is NULL. Where NULL would take the place of what is stored (``lost``), a column that no line has
is left out of the rows, and lines that lack what others have are refused.
"""

import json
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tablestore.cli.rows.csvfaults import no_room
from tablestore.errors import FormatError, InvalidInputError
from tablestore.json.jsonrows import BadJson, carrier, from_carrier, has_map, read_objects, rows_one_by_one
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
    if (start := stream.read(len(BOM_UTF8))) != BOM_UTF8:
        pending = start
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
    if not any(has_map(column.type) for column in target):
        try:
            return _fast(block, target, others)
        except (pa.ArrowException, ValueError):
            # The exact reader takes more, and finds the line that is at fault.
            return _exact(line, block, where, target, others)
    return _exact(line, block, where, target, others)


def _fast(block: bytes, target: pa.Schema, others: bool) -> pa.Table:
    carriers = {column.name: carrier(column.type, zones=False) for column in target}
    # One block of Arrow's is one block of ours: lines never lie in two.
    table = read_objects(block, pa.schema(list(carriers.items())), others="ignore" if others else "infer", longest=len(block))
    columns = [
        # With more fields than the column it stays what it is, and is refused as that.
        from_carrier(column, target.field(name).type) if column.type == carriers.get(name) else column
        for name, column in zip(table.schema.names, table.columns, strict=True)
    ]
    return pa.table(columns, names=table.schema.names)


def _exact(line: int, block: bytes, where: str, target: pa.Schema, others: bool) -> pa.Table:
    lines = [text for text in block.split(b"\n") if text.strip()]
    try:
        table = rows_one_by_one(lines, target, zones=False)
    except BadJson as error:
        at = f"{where}, line {_line_of(block, line, error.position)}"
        raise FormatError(f"{at}: {error.reason}{no_room(error.number, error.expected)}", kind="bad-json") from error
    # This reader skips names that it does not know; an import must not lose them without a word.
    nested = [column for column in target if pa.types.is_nested(column.type)]
    for text in lines if nested or not others else ():
        fields = _parsed(text)
        for name in () if others else fields.keys() - set(target.names):
            raise InvalidInputError(
                f"{where} has a field {name!r} that the table does not have (columns: {', '.join(target.names)}); "
                "choose with --columns, or add the column",
                kind="unknown-column",
            )
        for column in nested:
            for name in _unknown_fields(fields.get(column.name), column.type):
                raise InvalidInputError(
                    f"{where} has a field {name!r} in {column.name!r} that the column does not have; drop it, or add it",
                    kind="unknown-column",
                )
    return table


def _parsed(text: bytes) -> dict[str, Any]:
    # Numbers may have more digits than Python reads; here names alone count.
    fields: dict[str, Any] = json.loads(text, parse_int=str)
    return fields


def _unknown_fields(value: Any, kind: pa.DataType) -> Iterator[str]:
    """The names of fields in a value that its type does not have."""
    match value:
        case dict() if pa.types.is_struct(kind):
            known = {field.name: field.type for field in kind.fields}
            yield from value.keys() - known.keys()
            for name in value.keys() & known.keys():
                yield from _unknown_fields(value[name], known[name])
        case dict() if pa.types.is_map(kind):
            for item in value.values():
                yield from _unknown_fields(item, kind.item_type)
        case list() if pa.types.is_list(kind):
            for item in value:
                yield from _unknown_fields(item, kind.value_type)


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
    return [place for place in nulls.filter(pc.invert(plain)).to_pylist() if name not in _parsed(lines[place])]


def _other(places: Sequence[int], lacking: Sequence[int]) -> int:
    """The first of the places that is not among those lacking."""
    return next(place for place in places if place not in set(lacking))


def _line_of(block: bytes, first: int, position: int) -> int:
    """The number of the line that holds the object at ``position``; empty lines count as lines only."""
    filled = [number for number, text in enumerate(block.split(b"\n"), first) if text.strip()]
    return filled[position] if position < len(filled) else first
