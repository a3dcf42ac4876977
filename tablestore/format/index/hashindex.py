"""Hash index files: the key hashes of each bucket of a partition with dynamic buckets.

One file of type HASH per bucket. It holds the hash of every key that the bucket was ever given:

    file = int32 BE *            the Murmur hash of the trimmed primary key (see :mod:`tablestore.format.bucket`), each once
"""

import numpy as np

from tablestore.errors import FormatError
from tablestore.format.bucket import Hashes
from tablestore.types.sortedsets import distinct


def encode_hash_index(hashes: Hashes) -> bytes:
    """The file's bytes; equal sets give equal bytes."""
    return distinct(hashes).astype(">i4").tobytes()


def decode_hash_index(data: bytes, name: str, *, row_count: int | None = None) -> Hashes:
    """The hashes, ascending; ``row_count``: how many the index manifest says. Raises FormatError."""
    if len(data) % 4 or (row_count is not None and len(data) != 4 * row_count):
        raise FormatError(
            f"{name}: expected {'whole' if row_count is None else row_count} hashes of 4 bytes, found {len(data)} bytes. The index "
            "file is damaged: restore it from a copy, or overwrite the partition, which builds it anew."
        )
    return distinct(np.frombuffer(data, ">i4").astype(np.int32))
