"""Decodes many blocks of Avro records side by side, straight into Arrow columns.

Where a record begins is known only when the one before it has been read, so one block cannot be decoded faster than a value at a
time. But blocks do not depend on each other: with one position for each, a step reads the same field of one record of *every* block
with a few numpy operations. Manifests have hundreds of blocks, and so a step costs little more than a single value would.

    block 0   rec 0  rec 1  rec 2 ...        step 0: field by field of all rec 0
    block 1   rec 0  rec 1 ...               step 1: field by field of all rec 1
    block 2   rec 0  rec 1  rec 2 ...        ...

Positions are checked to lie inside their blocks. All that is out of the ordinary raises :class:`IrregularBlocks`, without saying
what is wrong: the caller decodes such a file record by record, which knows more forms and has the messages.

Memory: the blocks, 16 bytes for each text or number of a record, and the columns. Texts that nobody asks for are not checked to be
UTF-8.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tablestore.format.rowcolumns import slices_of
from tablestore.types.arrays import mask_array, places_array

Path = tuple[str, ...]
"""The names of the fields from the record to a value."""
RECORD: Path = ()
"""The record itself: its bytes, as they are stored."""
RECORD_START: Path = ("",)
"""Where a record begins in its block."""
Ints = npt.NDArray[np.int64]
Lanes = slice | Ints
"""The blocks that a step reads from."""

# An array that is in one view must be addressed by 32 bits.
_MOST_BYTES = (1 << 31) - 64
_PADDING = bytes(64)
# Steps that bring fewer bytes than that, long arrays for example, cost more than the same values record by record.
_BYTES_OF_READ = 64
_FREE_READS = 5_000


class IrregularBlocks(Exception):
    """The blocks hold something that is not decoded side by side: a rare form, or damage."""


def decode_columns(
    blocks: Sequence[tuple[int, bytes]], schema: Any, paths: Collection[Path], *, most_reads: int | None = None
) -> dict[Path, pa.Array]:
    """The columns ``paths`` of the records in ``blocks`` (pairs of a record count and the decompressed bytes), in order.

    ``schema``: the cleaned Avro schema of one record. Whole numbers come as int64, text as string, arrays as lists of these,
    :data:`RECORD` as binary, :data:`RECORD_START` as int64; a path that the schema lacks is left out, and one below a null record
    is null.
    ``most_reads``: the steps after which record by record would be faster, unless given by the number of bytes. Raises
    IrregularBlocks.
    """
    counts = np.array([count for count, _ in blocks], np.int64)
    sizes = np.array([len(body) for _, body in blocks], np.int64)
    # Each record takes a byte at least.
    if int(sizes.sum()) > _MOST_BYTES or bool(((counts > sizes) | (counts < 0)).any()):
        raise IrregularBlocks
    rows = int(counts.sum())
    ends = np.cumsum(sizes)
    # The blocks with most records first: those that still have one are then always the first few.
    order = np.argsort(-counts, kind="stable")
    reader = _Reader(b"".join((*(body for _, body in blocks), _PADDING)), (ends - sizes)[order], ends[order], most_reads)
    first_rows = (np.cumsum(counts) - counts)[order]
    row_counts, counts = counts, counts[order]
    root = _node(schema, (), frozenset(paths) - {RECORD, RECORD_START}, rows)
    starts = np.zeros(rows if RECORD in paths or RECORD_START in paths else 0, np.int64)
    stops = np.zeros_like(starts)
    try:
        for step in range(int(counts[0]) if len(counts) else 0):
            active = int(np.searchsorted(-counts, -step, side="left"))
            numbers = first_rows[:active] + step
            if len(starts):
                starts[numbers] = reader.positions[:active]
            root.read(reader, slice(0, active), numbers)
            reader.check(active)
            if len(starts):
                stops[numbers] = reader.positions[:active]
        if not np.array_equal(reader.positions, reader.ends):
            raise IrregularBlocks
        columns: dict[Path, pa.Array] = {}
        root.finish(reader, columns)
        if RECORD in paths:
            columns[RECORD] = reader.texts(starts, stops - starts, np.ones(rows, np.bool_))
        if RECORD_START in paths:
            columns[RECORD_START] = places_array(starts - np.repeat(ends - sizes, row_counts))
    except (IndexError, OverflowError, ValueError, pa.ArrowException) as error:
        raise IrregularBlocks from error
    return columns


class _Reader:
    """A position in each of the blocks, which lie one behind the other in one buffer."""

    def __init__(self, data: bytes, positions: Ints, ends: Ints, most_reads: int | None) -> None:
        self.data = pa.py_buffer(data)
        self.bytes = np.frombuffer(data, np.uint8)
        self.positions, self.ends = positions.copy(), ends
        self._reads_left = _FREE_READS + len(data) // _BYTES_OF_READ if most_reads is None else most_reads

    def check(self, active: int) -> None:
        """Raise IrregularBlocks if one of the first ``active`` positions is behind the end of its block."""
        if bool((self.positions[:active] > self.ends[:active]).any()):
            raise IrregularBlocks

    def longs(self, lanes: Lanes) -> Ints:
        """Read a zigzag number from each block."""
        self._reads_left -= 1
        if self._reads_left < 0:
            raise IrregularBlocks
        at = self.positions[lanes]
        first = self.bytes[at]
        at = at + 1
        value = first.astype(np.uint64)
        more = first >= 0x80
        if more.any():
            value &= np.uint64(0x7F)
            lane, shift = np.flatnonzero(more), 7
            while lane.size:
                if shift > 63:
                    raise IrregularBlocks
                part = self.bytes[at[lane]]
                value[lane] |= (part & 0x7F).astype(np.uint64) << np.uint64(shift)
                at[lane] += 1
                lane, shift = lane[part >= 0x80], shift + 7
        self.positions[lanes] = at
        number: Ints = (value >> np.uint64(1)).view(np.int64) ^ -(value & np.uint64(1)).view(np.int64)
        return number

    def skip(self, lanes: Lanes, sizes: Ints | int) -> Ints:
        """Step over ``sizes`` bytes of each block; returns where they begin."""
        start = self.positions[lanes].copy()
        end = start + sizes
        if bool((end > self.ends[lanes]).any()) or bool((end < start).any()):
            raise IrregularBlocks
        self.positions[lanes] = end
        return start

    def texts(self, starts: Ints, sizes: Ints, valid: npt.NDArray[np.bool_]) -> pa.Array:
        """The bytes at ``starts``, as an array of binary; null where not ``valid``."""
        return slices_of(self.data, starts, sizes, valid)


class _Node:
    """One type of the schema."""

    def read(self, reader: _Reader, lanes: Lanes, rows: Ints) -> None:
        """Read one value from each of ``lanes``, of the records ``rows``."""
        raise NotImplementedError

    def finish(self, reader: _Reader, columns: dict[Path, pa.Array]) -> None:
        """Add the columns that were read."""


class _Null(_Node):
    def read(self, reader: _Reader, lanes: Lanes, rows: Ints) -> None:
        pass


class _Skipped(_Node):
    """A value of fixed size that nobody reads."""

    def __init__(self, size: int) -> None:
        self._size = size

    def read(self, reader: _Reader, lanes: Lanes, rows: Ints) -> None:
        reader.skip(lanes, self._size)


class _Value(_Node):
    """A number or a text: of a record one at the most, kept where ``path`` is set."""

    def __init__(self, path: Path | None, rows: int, *, text: str | None) -> None:
        self._path, self._text = path, text
        kept = 0 if path is None else rows
        self._numbers = np.zeros(kept, np.int64)
        self._starts = np.zeros(kept if text else 0, np.int64)
        self._valid = np.zeros(kept, np.bool_)

    def read(self, reader: _Reader, lanes: Lanes, rows: Ints) -> None:
        numbers = reader.longs(lanes)
        starts = None
        if self._text:
            if numbers.size and int(numbers.min()) < 0:
                raise IrregularBlocks
            starts = reader.skip(lanes, numbers)
        if self._path is not None:
            self._numbers[rows], self._valid[rows] = numbers, True
            if starts is not None:
                self._starts[rows] = starts

    def finish(self, reader: _Reader, columns: dict[Path, pa.Array]) -> None:
        if self._path is not None:
            columns[self._path] = _array(reader, self._text, self._numbers, self._starts, self._valid)


class _Items(_Node):
    """The numbers or texts inside of an array: of a record any number. ``null_branch``: the place of null in their union."""

    def __init__(self, text: str | None, null_branch: int | None) -> None:
        self._text, self._null_branch = text, null_branch
        self._parts: list[tuple[Ints, Ints, Ints, npt.NDArray[np.bool_]]] = []

    def read(self, reader: _Reader, lanes: Lanes, rows: Ints) -> None:
        valid = np.ones(len(rows), np.bool_)
        numbers, starts = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
        if self._null_branch is not None:
            tags = reader.longs(lanes)
            valid = tags != self._null_branch
            if bool(((tags < 0) | (tags > 1)).any()):
                raise IrregularBlocks
            if not valid.all():
                lanes = (np.arange(lanes.stop) if isinstance(lanes, slice) else lanes)[valid]
        read = reader.longs(lanes)
        numbers[valid] = read
        if self._text:
            if read.size and int(read.min()) < 0:
                raise IrregularBlocks
            starts[valid] = reader.skip(lanes, read)
        self._parts.append((rows, numbers, starts, valid))

    def column(self, reader: _Reader) -> pa.Array:
        """All items, ordered by record."""
        if not self._parts:
            return pa.nulls(0, _type_of(self._text))
        rows, numbers, starts, valid = (np.concatenate(part) for part in zip(*self._parts, strict=True))
        order = np.argsort(rows, kind="stable")
        return _array(reader, self._text, numbers[order], starts[order], valid[order])


class _Array(_Node):
    """A list of values: groups with a count in front, an empty one at the end. ``values``: the item, if it is to be kept."""

    def __init__(self, path: Path | None, rows: int, item: _Node, values: _Items | None) -> None:
        self._path, self._item, self._values = path, item, values
        kept = 0 if path is None else rows
        self._sizes = np.zeros(kept, np.int64)
        self._valid = np.zeros(kept, np.bool_)

    def read(self, reader: _Reader, lanes: Lanes, rows: Ints) -> None:
        if self._path is not None:
            self._valid[rows] = True
        while True:
            counts = reader.longs(lanes)
            going = counts != 0
            if not going.any():
                return
            if not going.all():
                lanes, rows, counts = _lanes(lanes)[going], rows[going], counts[going]
            if int(counts.min()) < 0:
                # The size of the group in bytes is behind a negative count.
                reader.longs(_lanes(lanes)[counts < 0])
                counts = np.abs(counts)
            self._group(reader, lanes, rows, counts)

    def _group(self, reader: _Reader, lanes: Lanes, rows: Ints, left: Ints) -> None:
        if int(left.max()) > len(reader.bytes):
            raise IrregularBlocks
        while left.size:
            self._item.read(reader, lanes, rows)
            if self._path is not None:
                self._sizes[rows] += 1
            left = left - 1
            if not left.all():
                more = left > 0
                lanes, rows, left = _lanes(lanes)[more], rows[more], left[more]

    def finish(self, reader: _Reader, columns: dict[Path, pa.Array]) -> None:
        if self._path is None or self._values is None:
            return
        offsets = np.zeros(len(self._sizes) + 1, np.int64)
        np.cumsum(self._sizes, out=offsets[1:])
        mask = None if self._valid.all() else mask_array(~self._valid)
        columns[self._path] = pa.ListArray.from_arrays(
            places_array(offsets).cast(pa.int32()), self._values.column(reader), mask=mask
        )


class _Union(_Node):
    def __init__(self, branches: list[_Node]) -> None:
        self._branches = branches

    def read(self, reader: _Reader, lanes: Lanes, rows: Ints) -> None:
        tags = reader.longs(lanes)
        first = int(tags[0]) if tags.size else 0
        if not 0 <= first < len(self._branches):
            raise IrregularBlocks
        if (tags == first).all():
            self._branches[first].read(reader, lanes, rows)
            return
        for tag in np.unique(tags).tolist():
            if not 0 <= tag < len(self._branches):
                raise IrregularBlocks
            chosen = tags == tag
            self._branches[tag].read(reader, _lanes(lanes)[chosen], rows[chosen])

    def finish(self, reader: _Reader, columns: dict[Path, pa.Array]) -> None:
        for branch in self._branches:
            branch.finish(reader, columns)


class _Record(_Node):
    def __init__(self, fields: list[_Node]) -> None:
        self._fields = fields

    def read(self, reader: _Reader, lanes: Lanes, rows: Ints) -> None:
        for field in self._fields:
            field.read(reader, lanes, rows)

    def finish(self, reader: _Reader, columns: dict[Path, pa.Array]) -> None:
        for field in self._fields:
            field.finish(reader, columns)


_FIXED_BYTES = {"boolean": 1, "float": 4, "double": 8}
_WHOLE_NUMBERS = ("int", "long")
_TEXTS = ("string", "bytes")


def _node(schema: Any, path: Path, paths: frozenset[Path], rows: int) -> _Node:
    wanted = path if path in paths else None
    if isinstance(schema, list):
        if wanted is not None and len([branch for branch in schema if branch != "null"]) > 1:
            raise IrregularBlocks
        return _Union([_node(branch, path, paths, rows) for branch in schema])
    if isinstance(schema, Mapping) and schema["type"] == "record":
        return _Record([_node(field["type"], (*path, field["name"]), paths, rows) for field in schema["fields"]])
    if isinstance(schema, Mapping) and schema["type"] == "array":
        values = None if wanted is None else _items(schema["items"])
        # What is inside of an array has no path of its own.
        item = values or _node(schema["items"], (*path, ""), paths, 0)
        return _Array(wanted, rows, item, values)
    if schema == "null":
        return _Null()
    if schema in _WHOLE_NUMBERS or schema in _TEXTS:
        return _Value(wanted, rows, text=schema if schema in _TEXTS else None)
    if isinstance(schema, str) and schema in _FIXED_BYTES and wanted is None:
        return _Skipped(_FIXED_BYTES[schema])
    raise IrregularBlocks


def _items(schema: Any) -> _Items:
    null_branch = None
    if isinstance(schema, list) and len(schema) == 2 and "null" in schema:
        null_branch = schema.index("null")
        schema = schema[1 - null_branch]
    if not isinstance(schema, str) or schema not in (*_WHOLE_NUMBERS, *_TEXTS):
        raise IrregularBlocks
    return _Items(schema if schema in _TEXTS else None, null_branch)


def _lanes(lanes: Lanes) -> Ints:
    return np.arange(lanes.stop) if isinstance(lanes, slice) else lanes


def _type_of(text: str | None) -> pa.DataType:
    if text is None:
        return pa.int64()
    return pa.string() if text == "string" else pa.binary()


def _array(reader: _Reader, text: str | None, numbers: Ints, starts: Ints, valid: npt.NDArray[np.bool_]) -> pa.Array:
    if text is None:
        mask = None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))
        return pa.Array.from_buffers(pa.int64(), len(numbers), [mask, pa.py_buffer(np.ascontiguousarray(numbers))])
    return reader.texts(starts, np.where(valid, numbers, 0), valid).cast(_type_of(text))
