"""Finds, digests and edits the footer of a Parquet file as bytes, where Arrow cannot.

    PAR1 | pages … | footer (Thrift compact, FileMetaData) | length, 4 bytes little-endian | PAR1

Arrow writes either all timestamps of a file as INT96 or none. The format wants INT96 for TIMESTAMP(7-9) and INT64 with
its unit for the others, so a file with both is written with the latter as plain INT64, and ``annotate_timestamps``
adds their logical type to the footer before it reaches the file. (parquet-format, parquet.thrift: SchemaElement,
LogicalType, TimestampType; thrift-compact-protocol.)
"""

import hashlib
from collections.abc import Mapping

from tablestore.errors import FormatError
from tablestore.format.parquet.thriftcompact import BINARY, BOOL_FALSE, BOOL_TRUE, I32, STOP, STRUCT, CompactReader

PARQUET_MAGIC = b"PAR1"
# Stored in the key-value metadata; never renamed.
FILE_NAME_KEY = "tablestore.file-name"
# Key of the bytes in memory that the rows of the largest row group take, in decimal digits.
GROUP_BYTES_KEY = "tablestore.row-group-bytes"
TAIL_BYTES = 8


def footer_digest(footer: bytes) -> bytes:
    """SHA-256 of the footer without its length and magic."""
    return hashlib.sha256(footer).digest()


def footer_length(tail: bytes, *, file_size: int, name: str) -> int:
    """The footer's length from the last 8 bytes of a file; FormatError if they cannot end a Parquet file."""
    if len(tail) != TAIL_BYTES or tail[4:] != PARQUET_MAGIC:
        raise FormatError(
            f"{name}: expected a Parquet file that ends in {PARQUET_MAGIC!r}, found {tail[-4:]!r}; the file is truncated or not "
            "Parquet"
        )
    length = int.from_bytes(tail[:4], "little")
    if not 0 < length <= file_size - TAIL_BYTES - len(PARQUET_MAGIC):
        raise FormatError(f"{name}: the footer claims {length} bytes of a file of {file_size}; the file is damaged")
    return length


def renamed_footer(footer: bytes, old: str, new: str, where: str) -> bytes:
    """The footer of the same file under another name. One that does not hold its name (others write none) is returned as it is.

    Nothing else in a footer depends on its length: offsets count from the beginning of the file.
    """
    key = _thrift_text(1, FILE_NAME_KEY)
    if key not in footer:
        return footer
    held = key + _thrift_text(1, old)
    if footer.count(held) != 1:
        raise FormatError(
            f"{where}: expected a footer that holds the name {old!r} once, found another; the file was swapped or damaged",
            kind="swapped",
        )
    return footer.replace(held, key + _thrift_text(1, new))


def _thrift_text(delta: int, text: str) -> bytes:
    """A text field of a Thrift compact struct, ``delta`` above the field before it."""
    data = text.encode()
    length, remaining = bytearray(), len(data)
    while remaining >= 0x80:
        length.append(remaining & 0x7F | 0x80)
        remaining >>= 7
    length.append(remaining)
    return bytes([delta << 4 | BINARY]) + bytes(length) + data


def annotate_timestamps(footer: bytes, units: Mapping[int, tuple[str, bool]]) -> bytes:
    """The footer with a timestamp type on plain INT64 columns: field id -> (``ms`` or ``us``, adjusted to UTC)."""
    reader = CompactReader(footer)
    out = bytearray()
    last = 0
    while True:
        field, kind, last = reader.field(last)
        if kind == STOP:
            raise FormatError("a Parquet footer without a schema")
        if field != 2:
            reader.skip(kind)
            continue
        break
    count = reader.list_size()
    out += footer[: reader.at]
    for _ in range(count):
        start = reader.at
        field_id = _element_field_id(reader)
        out += footer[start : reader.at - 1]
        if field_id is not None and field_id in units:
            out += _timestamp_type(*units[field_id])
        out.append(STOP)
    return bytes(out + footer[reader.at :])


def _element_field_id(reader: CompactReader) -> int | None:
    """Read over a SchemaElement; its field id (which is always the last field of a plain column)."""
    last, field_id = 0, None
    while True:
        field, kind, last = reader.field(last)
        if kind == STOP:
            return field_id
        if field == 9 and kind == I32:
            field_id = reader.zigzag()
        else:
            field_id = None
            reader.skip(kind)


def _timestamp_type(unit: str, utc: bool) -> bytes:
    """SchemaElement field 10, following field 9: LogicalType.TIMESTAMP(isAdjustedToUTC, unit)."""
    return bytes(
        [
            0x10 | STRUCT,  # field 10: LogicalType
            0x80 | STRUCT,  # its alternative 8: TimestampType
            0x10 | (BOOL_TRUE if utc else BOOL_FALSE),  # field 1: isAdjustedToUTC
            0x10 | STRUCT,  # field 2: TimeUnit
            (0x10 if unit == "ms" else 0x20) | STRUCT,  # alternative 1 MILLIS, 2 MICROS: empty structs
            STOP,
            STOP,
            STOP,
            STOP,
        ]
    )
