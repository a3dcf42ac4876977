"""Deletion vectors: the positions of the deleted rows of a data file.

An index file of type DELETION_VECTORS holds one vector per data file of its bucket:

    file     = version(1 byte = 1) vector*
    vector   = length(int32 BE) payload crc(int32 BE, CRC-32 of the payload)
    payload  = magic(int32 BE = 1581511376) bitmap       a portable 32-bit Roaring bitmap
"""

import zlib
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tablestore.errors import FormatError, UnsupportedError
from tablestore.format.limits import over_limit
from tablestore.format.manifest.indexmanifest import DeletionVectorRange
from tablestore.types.sortedsets import distinct

# Stored, never renumbered.
FILE_VERSION = 1
VECTOR_MAGIC = 1581511376
VECTOR_MAGIC_64 = 1581511377
OVERHEAD_BYTES = 8

MAX_POSITIONS = 1 << 28


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

    ``data``: one vector in the index file ``name``: length, payload and checksum. ``row_count``: rows of the data file. Raises
    FormatError if the bytes are damaged or a position is beyond the file, UnsupportedError for 64-bit vectors.
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
    if int.from_bytes(payload[:4], "little") == VECTOR_MAGIC_64:
        raise UnsupportedError(
            f"{name}: 64-bit deletion vectors are not supported; set 'deletion-vectors.bitmap64' to 'false' and compact the table",
            kind="bitmap64",
        )
    if int.from_bytes(payload[:4], "big") != VECTOR_MAGIC:
        raise FormatError(f"{name}: expected a deletion vector ({VECTOR_MAGIC}), found {payload[:4].hex()}. Restore the file.")
    return _positions(payload[4:], name, row_count)


def encode_deletion_vector(positions: npt.NDArray[np.integer]) -> bytes:
    """One vector (length, payload, checksum) of these positions; equal sets give equal bytes."""
    from pyroaring import BitMap  # loaded for tables that have such vectors

    bitmap = BitMap(distinct(positions.astype(np.uint32)))
    bitmap.run_optimize()
    payload = VECTOR_MAGIC.to_bytes(4, "big") + bitmap.serialize()
    return len(payload).to_bytes(4, "big") + payload + zlib.crc32(payload).to_bytes(4, "big")


def encode_vector_file(vectors: Mapping[str, tuple[bytes, int]]) -> tuple[bytes, tuple[DeletionVectorRange, ...]]:
    """An index file of ``vectors`` (by data file: the encoded vector, and its number of positions), and where in it each lies."""
    parts, ranges, offset = [bytes([FILE_VERSION])], [], 1
    for data_file, (vector, cardinality) in vectors.items():
        length = len(vector) - OVERHEAD_BYTES
        ranges.append(DeletionVectorRange(data_file=data_file, offset=offset, length=length, cardinality=cardinality))
        parts.append(vector)
        offset += len(vector)
    return b"".join(parts), tuple(ranges)


def _positions(data: bytes, name: str, row_count: int | None) -> npt.NDArray[np.uint32]:
    from pyroaring import BitMap

    try:
        bitmap = BitMap.deserialize(data)
    except (ValueError, IndexError) as error:
        raise _no_bitmap(name, str(error)) from error
    if len(bitmap) > MAX_POSITIONS:
        over_limit(name, "the number of deleted rows", f"above {MAX_POSITIONS}", MAX_POSITIONS)
    # The library checks what it reads, but not that this is all there is.
    if bitmap.serialize() != data:
        raise _no_bitmap(name, "bytes that are not part of it")
    if row_count is not None and bitmap and bitmap.max() >= row_count:
        raise FormatError(
            f"{name}: expected positions below the file's {row_count} rows, found {bitmap.max()}. The vector "
            "belongs to another file, or is corrupt; restore the index file."
        )
    return np.frombuffer(bitmap.to_array(), np.uint32)


def _no_bitmap(name: str, fault: str) -> FormatError:
    return FormatError(f"{name}: expected a Roaring bitmap, found: {fault}. Restore the index file from a copy.")
