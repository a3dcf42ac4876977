"""Reads just enough of the Thrift compact protocol to find places in Parquet's metadata (thrift-compact-protocol)."""

from tablestore.errors import FormatError

# The types of fields.
STOP, BOOL_TRUE, BOOL_FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT = range(13)
_MAX_DEPTH = 32


class CompactReader:
    """Reads values one after the other; ``at`` is the place of the next."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data = data
        self.at = at

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise FormatError("Parquet metadata that ends in the middle of a value")
        self.at += 1
        return self.data[self.at - 1]

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

    def binary(self) -> bytes:
        length = self.varint()
        self.at += length
        return self.data[self.at - length : self.at]

    def field(self, last: int) -> tuple[int, int, int]:
        """(field id, type, id to hand in for the next field)."""
        header = self.byte()
        kind, delta = header & 0x0F, header >> 4
        if kind == STOP:
            return 0, STOP, last
        field = last + delta if delta else self.zigzag()
        return field, kind, field

    def list_size(self) -> int:
        header = self.byte()
        return header >> 4 if header >> 4 < 15 else self.varint()

    def skip(self, kind: int, depth: int = 0, *, element: bool = False) -> None:
        if depth > _MAX_DEPTH:
            raise FormatError("Parquet metadata nested too deeply")
        if kind in (BOOL_TRUE, BOOL_FALSE):
            self.at += 1 if element else 0
        elif kind == BYTE:
            self.at += 1
        elif kind in (I16, I32, I64):
            self.varint()
        elif kind == DOUBLE:
            self.at += 8
        elif kind == BINARY:
            self.binary()
        elif kind in (LIST, SET):
            header = self.byte()
            size = header >> 4 if header >> 4 < 15 else self.varint()
            for _ in range(size):
                self.skip(header & 0x0F, depth + 1, element=True)
        elif kind == STRUCT:
            last = 0
            while True:
                _, inner, last = self.field(last)
                if inner == STOP:
                    return
                self.skip(inner, depth + 1)
        else:
            raise FormatError(f"Parquet metadata with an unexpected Thrift type {kind}")
