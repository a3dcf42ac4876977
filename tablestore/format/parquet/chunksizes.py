"""Estimates the decoded size of the rows of a Parquet file, before they are read.

The metadata holds encoded sizes: decoded, a dictionary or a run may be thousands of times larger. What bounds the decoded size
of a row group, the cheapest first:

    our own files       no row group is larger than their key-value metadata says
    fixed widths        values x width
    plain text          at most the uncompressed bytes of the pages
    other text          the bytes that the writer counted (SizeStatistics, in the footer since Arrow 19), if it did
    else                no value is longer than its whole column chunk

Pure. Sizes are rather too high than too low.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import pyarrow.parquet as pq

from tablestore.errors import FormatError
from tablestore.format.parquet.footer import GROUP_BYTES_KEY
from tablestore.format.parquet.thriftcompact import I64, LIST, STOP, STRUCT, CompactReader
from tablestore.lazy import lazy

# Offset and validity of a text value; a number, or a decimal of up to 38 digits, with its validity.
_TEXT_OVERHEAD_BYTES = 5
_NUMBER_BYTES, _DECIMAL_BYTES = 9, 17
_PLAIN = frozenset({"PLAIN", "RLE", "BIT_PACKED"})
# Reading sizes takes some microseconds a column chunk: of a footer with more they are not looked for.
_MOST_CHUNKS = 4096
# Fields of parquet.thrift: FileMetaData.row_groups, RowGroup.columns, ColumnChunk.meta_data, ColumnMetaData.size_statistics,
# SizeStatistics.unencoded_byte_array_data_bytes.
_PATH_TO_SIZES = (4, 1, 3, 16, 1)


@dataclass(frozen=True, slots=True)
class DecodedSize:
    """The decoded size of some columns of a row group, None if unknown; and a bound for each row."""

    total_bytes: int | None
    largest_row_bytes: int


class DecodedSizes:
    """The decoded sizes of one file's row groups. ``footer`` is called for the footer's bytes, where nothing cheaper will do.
    ``ours``: this project wrote the file."""

    def __init__(self, metadata: pq.FileMetaData, footer: Callable[[], bytes], *, ours: bool = False) -> None:
        self._metadata, self._footer = metadata, footer
        size_text = (metadata.metadata or {}).get(GROUP_BYTES_KEY.encode(), b"") if ours else b""
        self._most = int(size_text) if size_text.isdigit() else None
        self._leaves: dict[tuple[str, ...], list[int]] = {}

    def of(self, group: int, names: Collection[str], enough: int) -> DecodedSize:
        """The size of the columns ``names`` in a row group. One that is certainly within ``enough`` is not found out exactly."""
        if self._most is not None and self._most <= enough:
            return DecodedSize(self._most, self._most)
        row_group = self._metadata.row_group(group)
        rows = row_group.num_rows
        total, largest = 0, 0
        unknown: dict[int, int] = {}
        for position in self._leaves_of(names):
            chunk, leaf = row_group.column(position), self._metadata.schema.column(position)
            values = chunk.num_values
            # A row of lists holds all values at worst.
            in_a_row = values if leaf.max_repetition_level else 1
            if chunk.physical_type != "BYTE_ARRAY":
                width = _width(leaf)
                total += values * width
                largest += in_a_row * width
                continue
            size = max(chunk.total_uncompressed_size, 0)
            total += values * _TEXT_OVERHEAD_BYTES
            largest += in_a_row * (size + _TEXT_OVERHEAD_BYTES)
            if _PLAIN.issuperset(chunk.encodings):
                total += size
            else:
                unknown[position] = size * values
        if total + sum(unknown.values()) > enough:
            for position in unknown:
                if (counted := self._text_bytes.get((group, position))) is None:
                    return DecodedSize(None, largest)
                unknown[position] = counted
        total += sum(unknown.values())
        return DecodedSize(total, min(largest, total) if rows else 0)

    def _leaves_of(self, names: Collection[str]) -> list[int]:
        key = tuple(names)
        if (leaves := self._leaves.get(key)) is None:
            roots = tuple(f"{name}." for name in key)
            schema = self._metadata.schema
            leaves = (
                [i for i in range(self._metadata.num_columns) if f"{schema.column(i).path}.".startswith(roots)] if roots else []
            )
            self._leaves[key] = leaves
        return leaves

    @lazy
    def _text_bytes(self) -> Mapping[tuple[int, ...], int]:
        """Per row group and leaf the bytes of text that the writer counted."""
        if self._metadata.num_columns * self._metadata.num_row_groups > _MOST_CHUNKS:
            return {}
        try:
            return _text_bytes(self._footer())
        except (FormatError, IndexError):
            # Arrow has read this footer; what we cannot read in it are only sizes.
            return {}


def _text_bytes(footer: bytes) -> dict[tuple[int, ...], int]:
    sizes: dict[tuple[int, ...], int] = {}
    _follow(CompactReader(footer), _PATH_TO_SIZES, (), sizes)
    return sizes


def _follow(reader: CompactReader, path: Sequence[int], place: tuple[int, ...], sizes: dict[tuple[int, ...], int]) -> None:
    """Read a struct to its end, and in it the numbers at the end of ``path``; ``place``: the lists' members on the way there."""
    last = 0
    while True:
        field, kind, last = reader.field(last)
        if kind == STOP:
            return
        if field == path[0] and kind == LIST:
            for member in range(reader.list_size()):
                _follow(reader, path[1:], (*place, member), sizes)
        elif field == path[0] and kind == STRUCT:
            _follow(reader, path[1:], place, sizes)
        elif field == path[0] and kind == I64:
            sizes[place] = reader.zigzag()
        else:
            reader.skip(kind)


def _width(leaf: pq.ColumnSchema) -> int:
    if leaf.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return max(int(leaf.length), _DECIMAL_BYTES)
    return _DECIMAL_BYTES if leaf.precision > 0 else _NUMBER_BYTES
