"""Deletion vectors: which rows of a data file are deleted, by position.

An index file of type DELETION_VECTORS holds one vector per data file of its bucket:

    file     = version(1 byte = 1) vector*
    vector   = length(int32 BE) payload crc(int32 BE, CRC-32 of the payload)
    payload  = magic(int32 BE = 1581511376) bitmap       a portable 32-bit Roaring bitmap
"""

import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from pyroaring import BitMap

from tablestore.errors import FormatError, UnsupportedError
from tablestore.format.limits import over_limit
from tablestore.format.manifest.indexmanifest import DeletionVectorRange
from tablestore.types.sortedsets import distinct

# Stored, never renumbered.
FILE_VERSION = 1
MAGIC = 1581511376
MAGIC_64 = 1581511377
OVERHEAD_BYTES = 8

MAX_POSITIONS = 1 << 28

_COOKIE_NO_RUNS, _COOKIE_RUNS = 12346, 12347
_NO_OFFSETS_BELOW = 4
_ARRAY_LIMIT, _BITSET_BYTES = 4096, 8192


def byte_range(vector: DeletionVectorRange) -> tuple[int, int]:
    """(offset, size) of the bytes that :func:`decode_deletion_vector` wants, within the index file."""
    return vector.offset, vector.length + OVERHEAD_BYTES


def check_file_version(data: bytes, name: str) -> None:
    """Refuse an index file of another version; ``data`` is its first byte or more."""
    if data[:1] != bytes([FILE_VERSION]):
        raise FormatError(
            f"{name}: expected a deletion vector file of version {FILE_VERSION}, found {data[:1].hex() or 'no bytes'}. "
            "Use a newer tablestore, or restore the file from a copy.",
            kind="too-new" if data[:1] > b"\1" else "corrupt",
        )


def decode_deletion_vector(data: bytes, name: str, *, row_count: int | None = None) -> npt.NDArray[np.uint32]:
    """The deleted positions, ascending.

    :param data: one vector: its length field, payload and checksum.
    :param name: the index file's name, for messages.
    :param row_count: rows of the data file; positions from there on are refused.
    :raises FormatError: if the bytes are damaged; UnsupportedError for 64-bit vectors.
    """
    length = int.from_bytes(data[:4], "big")
    payload, crc = data[4:-4], data[-4:]
    if len(data) < 16 or len(payload) != length:
        raise FormatError(
            f"{name}: expected a deletion vector of {length} bytes between its length and its checksum, found "
            f"{max(len(data) - OVERHEAD_BYTES, 0)}. The index file or its manifest is corrupt; restore it."
        )
    if zlib.crc32(payload) != int.from_bytes(crc, "big"):
        raise FormatError(
            f"{name}: expected a deletion vector with the CRC-32 {crc.hex()}, found {zlib.crc32(payload):08x}. The "
            "index file was damaged; restore it from a copy.",
            kind="checksum",
        )
    if int.from_bytes(payload[:4], "little") == MAGIC_64:
        raise UnsupportedError(
            f"{name}: 64-bit deletion vectors are not supported; set 'deletion-vectors.bitmap64' to 'false' and compact the table",
            kind="bitmap64",
        )
    if int.from_bytes(payload[:4], "big") != MAGIC:
        raise FormatError(f"{name}: expected a deletion vector ({MAGIC}), found {payload[:4].hex()}. Restore the file.")
    return _positions(payload[4:], name, row_count)


def encode_deletion_vector(positions: npt.NDArray[np.integer]) -> bytes:
    """One vector (length, payload, checksum) of these positions; equal sets give equal bytes."""
    bitmap = BitMap(distinct(positions.astype(np.uint32)))
    bitmap.run_optimize()
    payload = MAGIC.to_bytes(4, "big") + bitmap.serialize()
    return len(payload).to_bytes(4, "big") + payload + zlib.crc32(payload).to_bytes(4, "big")


def encode_vector_file(vectors: Mapping[str, tuple[bytes, int]]) -> tuple[bytes, tuple[DeletionVectorRange, ...]]:
    """An index file of these vectors, and where in it each lies.

    :param vectors: by data file, what :func:`encode_deletion_vector` made and how many positions that holds.
    """
    parts, ranges, offset = [bytes([FILE_VERSION])], [], 1
    for data_file, (vector, cardinality) in vectors.items():
        length = len(vector) - OVERHEAD_BYTES
        ranges.append(DeletionVectorRange(data_file=data_file, offset=offset, length=length, cardinality=cardinality))
        parts.append(vector)
        offset += len(vector)
    return b"".join(parts), tuple(ranges)


def _positions(data: bytes, name: str, row_count: int | None) -> npt.NDArray[np.uint32]:
    reader = _BitmapReader(data, name)
    count = 0
    parts: list[npt.NDArray[np.uint32]] = []
    for key, low in reader.containers():
        count += len(low)
        if count > MAX_POSITIONS:
            over_limit(name, "the number of deleted rows", f"above {MAX_POSITIONS}", MAX_POSITIONS)
        parts.append(low.astype(np.uint32) + np.uint32(key << 16))
        if row_count is not None and int(parts[-1][-1]) >= row_count:
            raise FormatError(
                f"{name}: expected positions below the file's {row_count} rows, found {int(parts[-1][-1])}. The vector "
                "belongs to another file, or is corrupt; restore the index file."
            )
    return np.concatenate(parts) if parts else np.empty(0, np.uint32)


class _BitmapReader:
    """Reads a portable Roaring bitmap, checking everything.

    Bounds checks of the library cover the buffer, not the claims within: a wrong cardinality makes it write past its
    own memory.

        cookie 12346: int32 size                            cookie 12347 | (size-1) << 16: one bit per run container
        size x (uint16 key, uint16 cardinality-1)           size x uint32 offset (with runs only if size >= 4)
        containers: uint16 values (cardinality <= 4096), 8192 bytes of bits, or uint16 n, n x (uint16 start, length-1)
    """

    def __init__(self, data: bytes, name: str) -> None:
        self.data, self.name, self.position = data, name, 0

    def containers(self) -> Iterator[tuple[int, npt.NDArray[np.uint16]]]:
        """(high 16 bits, ascending low 16 bits; never empty), in ascending order."""
        cookie = int(self._take("<u4", 1)[0])
        has_runs = cookie & 0xFFFF == _COOKIE_RUNS
        if not has_runs and cookie != _COOKIE_NO_RUNS:
            self._refuse(f"the cookie {cookie}")
        size = (cookie >> 16) + 1 if has_runs else int(self._take("<u4", 1)[0])
        if size > 1 << 16:
            self._refuse(f"{size} containers")
        runs = np.zeros(size, bool)
        if has_runs:
            runs = np.unpackbits(self._take("u1", (size + 7) // 8), bitorder="little")[:size].astype(bool)
        header = self._take("<u2", 2 * size).reshape(size, 2)
        if not has_runs or size >= _NO_OFFSETS_BELOW:
            self._take("<u4", size)
        if not _ascending(header[:, 0]):
            self._refuse("containers out of order")
        for (key, cardinality), is_run in zip(header.tolist(), runs.tolist(), strict=True):
            yield key, self._container(cardinality + 1, is_run)
        if self.position != len(self.data):
            self._refuse(f"{len(self.data) - self.position} bytes after its end")

    def _container(self, cardinality: int, is_run: bool) -> npt.NDArray[np.uint16]:
        if is_run:
            pairs = self._take("<u2", 2 * int(self._take("<u2", 1)[0])).reshape(-1, 2).astype(np.int64)
            starts, ends = pairs[:, 0], pairs[:, 0] + pairs[:, 1]
            if not len(pairs) or ends[-1] > 0xFFFF or bool(np.any(starts[1:] <= ends[:-1])):
                self._refuse("runs that overlap")
            marks = np.zeros((1 << 16) + 1, np.int8)
            marks[starts] += 1
            marks[ends + 1] -= 1
            values = np.flatnonzero(np.cumsum(marks, dtype=np.int8)[:-1])
        elif cardinality <= _ARRAY_LIMIT:
            values = self._take("<u2", cardinality)
            if not _ascending(values):
                self._refuse("values out of order")
        else:
            values = np.flatnonzero(np.unpackbits(self._take("u1", _BITSET_BYTES), bitorder="little"))
        if len(values) != cardinality:
            self._refuse(f"{len(values)} values in a container of {cardinality}")
        return values.astype(np.uint16)

    def _take(self, dtype: str, count: int) -> npt.NDArray[Any]:
        size = np.dtype(dtype).itemsize * count
        if self.position + size > len(self.data):
            self._refuse(f"{len(self.data)} bytes, too few")
        values = np.frombuffer(self.data, dtype, count, self.position)
        self.position += size
        return values

    def _refuse(self, found: str) -> NoReturn:
        raise FormatError(f"{self.name}: expected a Roaring bitmap, found {found}. Restore the index file from a copy.")


def _ascending(values: npt.NDArray[Any]) -> bool:
    return bool(np.all(values[1:] > values[:-1]))
