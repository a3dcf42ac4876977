"""The Parquet footer as bytes: its digest, its place in the file, and the one edit that Arrow cannot do.

    PAR1 | pages … | footer (Thrift compact, FileMetaData) | length, 4 bytes little-endian | PAR1

Arrow writes either all timestamps of a file as INT96 or none. The format wants INT96 for TIMESTAMP(7-9) and INT64 with
its unit for the others, so a file with both is written with the latter as plain INT64, and ``annotate_timestamps``
adds their logical type to the footer before it reaches the file. (parquet-format, parquet.thrift: SchemaElement,
LogicalType, TimestampType; thrift-compact-protocol.)
"""

import hashlib
from collections.abc import Mapping

from tablestore.errors import FormatError

MAGIC = b"PAR1"
# Stored in the key-value metadata; never renamed.
FILE_NAME_KEY = "tablestore.file-name"
TAIL_BYTES = 8

# Thrift compact types.
_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
_MAX_DEPTH = 32


def footer_digest(footer: bytes) -> bytes:
    """SHA-256 of the footer without its length and magic."""
    return hashlib.sha256(footer).digest()


def footer_length(tail: bytes, *, file_size: int, name: str) -> int:
    """The footer's length from the last 8 bytes of a file; FormatError if they cannot end a Parquet file."""
    if len(tail) != TAIL_BYTES or tail[4:] != MAGIC:
        raise FormatError(
            f"{name}: expected a Parquet file ending in {MAGIC!r}, found {tail[-4:]!r}; the file is truncated or not Parquet"
        )
    length = int.from_bytes(tail[:4], "little")
    if not 0 < length <= file_size - TAIL_BYTES - len(MAGIC):
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
    length, rest = bytearray(), len(data)
    while rest >= 0x80:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    length.append(rest)
    return bytes([delta << 4 | _BINARY]) + bytes(length) + data


def annotate_timestamps(footer: bytes, units: Mapping[int, tuple[str, bool]]) -> bytes:
    """The footer with a timestamp type on plain INT64 columns: field id -> (``ms`` or ``us``, adjusted to UTC)."""
    reader = _Compact(footer)
    out = bytearray()
    last = 0
    while True:
        field, kind, last = reader.field(last)
        if kind == _STOP:
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
        out.append(_STOP)
    return bytes(out + footer[reader.at :])


def _element_field_id(reader: "_Compact") -> int | None:
    """Read over a SchemaElement; its field id (which is always the last field of a plain column)."""
    last, found = 0, None
    while True:
        field, kind, last = reader.field(last)
        if kind == _STOP:
            return found
        if field == 9 and kind == _I32:
            found = reader.zigzag()
        else:
            found = None
            reader.skip(kind)


def _timestamp_type(unit: str, utc: bool) -> bytes:
    """SchemaElement field 10, following field 9: LogicalType.TIMESTAMP(isAdjustedToUTC, unit)."""
    return bytes(
        [
            0x10 | _STRUCT,  # field 10: LogicalType
            0x80 | _STRUCT,  # its alternative 8: TimestampType
            0x10 | (_TRUE if utc else _FALSE),  # field 1: isAdjustedToUTC
            0x10 | _STRUCT,  # field 2: TimeUnit
            (0x10 if unit == "ms" else 0x20) | _STRUCT,  # alternative 1 MILLIS, 2 MICROS: empty structs
            _STOP,
            _STOP,
            _STOP,
            _STOP,
        ]
    )


class _Compact:
    """Reads just enough of the Thrift compact protocol to find places in it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def byte(self) -> int:
        if self.at >= len(self._data):
            raise FormatError("a Parquet footer that ends in the middle of a value")
        self.at += 1
        return self._data[self.at - 1]

    def varint(self) -> int:
        value, shift = 0, 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80 or shift > 63:
                return value
            shift += 7

    def zigzag(self) -> int:
        value = self.varint()
        return (value >> 1) ^ -(value & 1)

    def field(self, last: int) -> tuple[int, int, int]:
        """(field id, type, id to hand in for the next field)."""
        header = self.byte()
        kind, delta = header & 0x0F, header >> 4
        if kind == _STOP:
            return 0, _STOP, last
        field = last + delta if delta else self.zigzag()
        return field, kind, field

    def list_size(self) -> int:
        header = self.byte()
        return header >> 4 if header >> 4 < 15 else self.varint()

    def skip(self, kind: int, depth: int = 0, *, element: bool = False) -> None:
        if depth > _MAX_DEPTH:
            raise FormatError("a Parquet footer nested too deeply")
        if kind in (_TRUE, _FALSE):
            self.at += 1 if element else 0
        elif kind == _BYTE:
            self.at += 1
        elif kind in (_I16, _I32, _I64):
            self.varint()
        elif kind == _DOUBLE:
            self.at += 8
        elif kind == _BINARY:
            length = self.varint()
            self.at += length
        elif kind in (_LIST, _SET):
            header = self.byte()
            size = header >> 4 if header >> 4 < 15 else self.varint()
            for _ in range(size):
                self.skip(header & 0x0F, depth + 1, element=True)
        elif kind == _STRUCT:
            last = 0
            while True:
                _, inner, last = self.field(last)
                if inner == _STOP:
                    return
                self.skip(inner, depth + 1)
        else:
            raise FormatError(f"a Parquet footer with an unexpected Thrift type {kind}")
