"""Checks the page headers of a Parquet file, which page checksums do not cover.

    PAR1 | chunk: header, page, header, page … | chunk … | footer

A checksum covers the content of a page, and the digest in the manifest covers the footer. Headers are not covered: a flipped
bit in a number of values shifts rows without an error. :func:`check_pages` checks that the values of the pages add up to those
of the chunk in the footer, that the pages fill the chunk, and in our files that each header is what the writer writes, except
for statistics, which readers ignore. :func:`check_values` checks the numbers of values only, the one damage that decoders do
not notice; every read does that.

A header is a Thrift struct: fields as (id, type, value). Source: parquet-format, parquet.thrift, PageHeader.
"""

import re
import zlib
from collections.abc import Collection, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from tablestore.errors import FormatError
from tablestore.format.parquet.footer import PARQUET_MAGIC
from tablestore.format.parquet.thriftcompact import BINARY, BOOL_FALSE, BOOL_TRUE, I32, I64, STOP, STRUCT, CompactReader

# PageHeader.
_TYPE, _UNCOMPRESSED, _COMPRESSED, _CRC, _DATA, _INDEX, _DICTIONARY, _DATA_V2 = range(1, 9)
# DataPageHeader, DictionaryPageHeader.
_VALUES, _ENCODING, _DEFINITION, _REPETITION, _STATISTICS = range(1, 6)
_SORTED = 3
# The head of a field: a struct, whose number is that of the field before and one.
_FIRST_STRUCT = 0x10 | STRUCT
_RLE = 3
# Header, data page header, statistics.
_DEPTH = 2
_ENCODINGS = {
    0: "PLAIN",
    2: "PLAIN_DICTIONARY",
    3: "RLE",
    4: "BIT_PACKED",
    5: "DELTA_BINARY_PACKED",
    6: "DELTA_LENGTH_BYTE_ARRAY",
    7: "DELTA_BYTE_ARRAY",
    8: "RLE_DICTIONARY",
    9: "BYTE_STREAM_SPLIT",
}

Struct = Mapping[int, Any]
# Most headers are shorter; long ones have texts as their statistics.
_HEADER_BYTES = 256
# A number of 32 bits that takes no more bytes than it needs.
_NUMBER = rb"[\x00-\x7f]|[\x80-\xff]{1,3}[\x01-\x7f]|[\x80-\xff]{4}[\x01-\x0f]"
_SKIPPED_NUMBER = re.compile(_NUMBER)
# A data page of version 1 up to its statistics: type, sizes and checksum; values, encoding and levels. Field by field, each one
# behind the one before.
_DATA_PAGE = re.compile(
    rb"\x15\x00\x15(?:%b)\x15(?P<compressed>%b)\x15(?:%b)\x1c\x15(?P<values>%b)\x15(?:%b)\x15\x06\x15\x06"
    % (_NUMBER, _NUMBER, _NUMBER, _NUMBER, _NUMBER)
)


def check_pages(
    source: pa.NativeFile,
    metadata: pq.FileMetaData,
    file_name: str,
    *,
    ours: bool,
    columns: Collection[str] | None = None,
    content: bool = False,
) -> int:
    """Check the page headers of an open file; how many there are. ``ours``: written by ``ParquetFileWriter``, so in one way only.

    ``columns``: only of these. ``content``: also the checksums of the pages, for a reader that does not.
    Raises FormatError. Memory: one column of a row group, compressed.
    """
    roots = None if columns is None else tuple(f"{name}." for name in columns)
    source.seek(0)
    if source.read(len(PARQUET_MAGIC)) != PARQUET_MAGIC:
        raise FormatError(f"{file_name}: expected a Parquet file to begin with {PARQUET_MAGIC!r}; it is damaged", kind="checksum")
    pages = 0
    for group in range(metadata.num_row_groups):
        for position in range(metadata.num_columns):
            column = metadata.row_group(group).column(position)
            if roots is not None and not f"{column.path_in_schema}.".startswith(roots):
                continue
            source.seek(column.dictionary_page_offset or column.data_page_offset)
            chunk = source.read(column.total_compressed_size)
            try:
                pages += _check_chunk(chunk, column, ours=ours, content=content)
            except FormatError as error:
                raise FormatError(
                    f"{file_name}: the pages of column {column.path_in_schema} in row group {group} are damaged: {error}; restore "
                    "the file from a copy",
                    kind="checksum",
                ) from error
    return pages


def check_values(source: pa.NativeFile, column: pq.ColumnChunkMetaData, file_name: str) -> None:
    """Check that the pages of one chunk have as many values as the footer says: two short reads a page, the pages are passed over.

    Raises FormatError.
    """
    at = column.dictionary_page_offset or column.data_page_offset
    end, values = at + column.total_compressed_size, 0
    try:
        while at < end:
            start = source.read_at(min(_HEADER_BYTES, end - at), at)
            if (page := plain_page(start)) is None:
                header, length = _header_at(source, start, at, end)
                page = _values_in(header), header[_COMPRESSED], length
            count, compressed, length = page
            values += count
            at += length + compressed
        _check_sum(values, column)
    except FormatError as error:
        raise FormatError(
            f"{file_name}: the page headers of column {column.path_in_schema} are damaged: {error}; restore the file from a copy",
            kind="checksum",
        ) from error


def plain_page(data: bytes) -> tuple[int, int, int] | None:
    """The values, the compressed bytes and the length of the header of a data page as Arrow writes most of them; None of others.

    Reads what :func:`read_header` reads, in a few steps: each read of a table looks at all pages.
    """
    if (match := _DATA_PAGE.match(data)) is None:
        return None
    values, compressed = _decoded(match["values"]), _decoded(match["compressed"])
    # Odd numbers are negative ones.
    if values & 1 or compressed & 1:
        return None
    at = match.end()
    try:
        if data[at] == _FIRST_STRUCT:
            at = _behind_statistics(data, at + 1)
        return (values >> 1, compressed >> 1, at + 2) if at and data[at] == data[at + 1] == STOP else None
    except IndexError:
        return None


def _behind_statistics(data: bytes, at: int) -> int:
    """The place behind a struct of short texts, numbers and booleans; 0 for any other. Raises IndexError for one that is cut."""
    while (head := data[at]) != STOP:
        kind = head & 0x0F
        if head < 0x10:
            return 0
        if kind == BINARY and data[at + 1] < 0x80:
            at += 2 + data[at + 1]
        elif kind in (BOOL_TRUE, BOOL_FALSE):
            at += 1
        elif kind in (I32, I64) and (number := _SKIPPED_NUMBER.match(data, at + 1)) is not None:
            at = number.end()
        else:
            return 0
    return at + 1


def _decoded(number: bytes) -> int:
    value = 0
    for byte in reversed(number):
        value = value << 7 | byte & 0x7F
    return value


def _header_at(source: pa.NativeFile, start: bytes, at: int, end: int) -> tuple[Struct, int]:
    """The header at a position of the file, of which the first bytes were read, and its length."""
    try:
        return read_header(start, 0)
    except FormatError:
        if len(start) == end - at:
            raise
    return read_header(source.read_at(end - at, at), 0)


def _values_in(header: Struct) -> int:
    return sum(header[kind][_VALUES] for kind in (_DATA, _DATA_V2) if kind in header)


def _check_sum(values: int, column: pq.ColumnChunkMetaData) -> None:
    if values != column.num_values:
        raise FormatError(f"expected {column.num_values} values, found {values}")


def _check_chunk(chunk: bytes, column: pq.ColumnChunkMetaData, *, ours: bool, content: bool) -> int:
    at = pages = values = 0
    while at < len(chunk):
        header, end = read_header(chunk, at)
        if ours:
            _check_own(header, column)
        values += _values_in(header)
        at = end + header[_COMPRESSED]
        if content and _CRC in header and zlib.crc32(memoryview(chunk)[end:at]) != header[_CRC] & 0xFFFF_FFFF:
            raise FormatError(f"page {pages} does not match its checksum")
        pages += 1
    if at != len(chunk):
        raise FormatError(f"expected them to fill {len(chunk)} bytes, found {at}")
    _check_sum(values, column)
    return pages


def _check_own(header: Struct, column: pq.ColumnChunkMetaData) -> None:
    is_data = header[_TYPE] == 0
    body = header.get(_DATA if is_data else _DICTIONARY)
    expected = (_TYPE, _UNCOMPRESSED, _COMPRESSED, _CRC, _DATA if is_data else _DICTIONARY)
    if body is None or tuple(header) != expected or _ENCODINGS.get(body.get(_ENCODING)) not in column.encodings:
        raise FormatError("a header that does not say what the writer says")
    if is_data:
        levels = (body.get(_DEFINITION), body.get(_REPETITION)) == (_RLE, _RLE)
        sound = levels and set(body) <= set(range(_VALUES, _STATISTICS + 1)) and isinstance(body.get(_STATISTICS, {}), dict)
    else:
        sound = tuple(body) == (_VALUES, _ENCODING, _SORTED) and body[_SORTED] is False
    if column.compression == "UNCOMPRESSED":
        sound = sound and header[_COMPRESSED] == header[_UNCOMPRESSED]
    if not sound:
        raise FormatError("a header that does not say what the writer says")


def read_header(data: bytes, at: int) -> tuple[Struct, int]:
    """The page header at a place, and where it ends. Raises FormatError."""
    reader = CompactReader(data, at)
    header = _struct(reader)
    needed: list[Any] = [header.get(_TYPE), header.get(_COMPRESSED)]
    needed += [header[kind].get(_VALUES) for kind in (_DATA, _DATA_V2) if isinstance(header.get(kind), dict)]
    if not all(isinstance(value, int) and value >= 0 for value in needed):
        raise FormatError("a page header without its sizes")
    if any(kind in header and not isinstance(header[kind], dict) for kind in (_DATA, _INDEX, _DICTIONARY, _DATA_V2)):
        raise FormatError("a page header without its parts")
    return header, reader.at


def _struct(reader: CompactReader, depth: int = 0) -> dict[int, Any]:
    """A struct in the one way that Thrift writes it: fields ascend by short steps, numbers take no more than they need."""
    fields: dict[int, Any] = {}
    last = 0
    while True:
        start = reader.at
        field, kind, current = reader.field(last)
        if kind == STOP and reader.data[start] == 0:
            return fields
        if kind == STOP or not last < field <= last + 15:
            raise FormatError("a page header with fields that are not in order")
        last = current
        if kind in (BOOL_TRUE, BOOL_FALSE):
            fields[field] = kind == BOOL_TRUE
        elif kind in (I32, I64):
            fields[field] = _number(reader, bits=32 if kind == I32 else 64)
        elif kind == BINARY:
            fields[field] = reader.binary()
        elif kind == STRUCT and depth < _DEPTH:
            fields[field] = _struct(reader, depth + 1)
        else:
            raise FormatError(f"a page header with an unexpected Thrift type {kind}")


def _number(reader: CompactReader, *, bits: int) -> int:
    start = reader.at
    value = reader.varint()
    if value >> bits or reader.at - start != max(-(-value.bit_length() // 7), 1):
        raise FormatError("a page header with a number that is longer than it has to be")
    return (value >> 1) ^ -(value & 1)
