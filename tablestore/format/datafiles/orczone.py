"""Finds the calendar and the time zone by which an ORC file counts, which Arrow's reader keeps to itself.

    … stripe: rows, footer {…, 3: zone} …
    footer {3: stripe {offset, index, data, footer: their bytes} …, 11: calendar}   postscript   its length

An ORC timestamp is what a clock of its writer's zone shows. Spark writes moments so, in the zone of the JVM.
"""

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import pyarrow as pa

from tablestore.errors import FormatError, UnsupportedError

_NONE, _ZLIB, _SNAPPY, _ZSTD = 0, 1, 2, 5
_MOST_BYTES = 64 << 20
# Numbers of fields, as the format has them.
_FOOTER_BYTES, _COMPRESSION = 1, 2
_STRIPE, _CALENDAR = 3, 11
_OFFSET, _INDEX_BYTES, _DATA_BYTES, _STRIPE_FOOTER_BYTES = 1, 2, 3, 4
_ZONE = 3
_PROLEPTIC = 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


@dataclass(frozen=True, slots=True)
class OrcClock:
    """The zones that the stripes of a file name, and whether its dates are of today's calendar whatever the year."""

    zones: frozenset[str]
    is_proleptic: bool


def orc_clock(source: BinaryIO, file_name: str) -> OrcClock:
    """That of a file. Raises FormatError for another file, UnsupportedError for a compression that is not read."""
    try:
        size = source.seek(0, 2)
        length = _at(source, size - 1, 1)[0]
        postscript = dict(_fields(_at(source, size - 1 - length, length)))
        footer_bytes, compression = _number(postscript, _FOOTER_BYTES), _number(postscript, _COMPRESSION)
        footer = _unpacked(_at(source, size - 1 - length - footer_bytes, footer_bytes), compression, file_name)
        zones, calendar = set(), 0
        for number, value in _fields(footer):
            if number == _CALENDAR and isinstance(value, int):
                calendar = value
            if number == _STRIPE and isinstance(value, bytes):
                stripe = dict(_fields(value))
                start = sum(_number(stripe, part) for part in (_OFFSET, _INDEX_BYTES, _DATA_BYTES))
                content = _unpacked(_at(source, start, _number(stripe, _STRIPE_FOOTER_BYTES)), compression, file_name)
                zones |= {zone.decode() for part, zone in _fields(content) if part == _ZONE and isinstance(zone, bytes)}
        return OrcClock(frozenset(zones), calendar == _PROLEPTIC)
    except (ValueError, IndexError, zlib.error, pa.ArrowException) as error:
        raise FormatError(f"{file_name}: expected a readable ORC file, found: {error}; restore it from a copy") from error


def _at(source: BinaryIO, start: int, length: int) -> bytes:
    if start < 0 or not 0 <= length <= _MOST_BYTES:
        raise ValueError(f"{length} bytes at {start}")
    source.seek(start)
    data = source.read(length)
    if len(data) < length:
        raise ValueError(f"it ends before {length} bytes at {start}")
    return data


def _number(message: dict[int, int | bytes], number: int) -> int:
    value = message.get(number, 0)
    if not isinstance(value, int):
        raise ValueError(f"no number in field {number}")
    return value


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message of protobuf: numbers and bytes by their numbers."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _VARINT:
            value, at = _varint(data, at)
            yield tag >> 3, value
        elif kind == _BYTES:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise ValueError("a field ends behind its message")
            yield tag >> 3, data[at : at + length]
            at += length
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise ValueError(f"a field of kind {kind}")


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number of more than 64 bits")


def _unpacked(data: bytes, compression: int, file_name: str) -> bytes:
    """The content of what is compressed in chunks, each behind its length."""
    if compression == _NONE:
        return data
    parts, at = [], 0
    while at < len(data):
        head = int.from_bytes(data[at : at + 3], "little")
        chunk = data[at + 3 : at + 3 + (head >> 1)]
        at += 3 + (head >> 1)
        parts.append(chunk if head & 1 else _chunk(chunk, compression, file_name))
    return b"".join(parts)


def _chunk(chunk: bytes, compression: int, file_name: str) -> bytes:
    if compression == _ZLIB:
        return zlib.decompressobj(-15).decompress(chunk, _MOST_BYTES)
    if compression == _ZSTD:
        return bytes(pa.CompressedInputStream(pa.BufferReader(chunk), "zstd").read(_MOST_BYTES))
    if compression == _SNAPPY:
        size, _ = _varint(chunk, 0)
        if size > _MOST_BYTES:
            raise ValueError(f"a chunk of {size} bytes")
        return bytes(pa.Codec("snappy").decompress(chunk, decompressed_size=size, asbytes=True))
    raise UnsupportedError(
        f"{file_name}: expected a compression by zlib, snappy or zstd, found that of number {compression}, and its timestamps "
        "are those of a clock whose zone is not known; write the file with one of these",
        kind="file-format",
    )
