"""Seals the blocks of a manifest one by one, so that few entries are read and checked without the rest of the file.

    header | block | block | …        of each: where it ends, and the first 16 bytes of its SHA-256

A sidecar has the digests of its manifest, under its own seal. Whoever reads a block compares it with its digest: what the sidecar
says of the entries then holds for these bytes. Where it does not, the manifest is read whole, which has the messages.
"""

import base64
import binascii
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tablestore.errors import FormatError

BLOCKS_KEY = b"tablestore.blocks"
"""The key of the footer that has the digests."""

_DIGEST_BYTES = 16
# Stored, low byte first.
_END = np.dtype("<u4")

ReadRange = Callable[[int, int], bytes]
"""Reads the bytes of a file from one place to another."""


@dataclass(frozen=True, slots=True)
class BlockDigests:
    """The digests of a file's header and of its blocks. ``ends``: where each of them ends, the last one with the file."""

    ends: npt.NDArray[np.int64]
    digests: bytes

    @classmethod
    def of(cls, data: bytes, starts: Sequence[int]) -> "BlockDigests":
        """Those of a file whose blocks begin at ``starts``."""
        ends, view = [*starts, len(data)], memoryview(data)
        pieces = (view[start:end] for start, end in zip([0, *starts], ends, strict=True))
        return cls(np.array(ends, np.int64), b"".join(map(_digest, pieces)))

    @property
    def size_bytes(self) -> int:
        """Bytes in memory."""
        return int(self.ends.nbytes) + len(self.digests)

    def encode(self) -> bytes:
        """The digests as a footer has them."""
        return base64.b64encode(self.ends.astype(_END).tobytes() + self.digests)

    @classmethod
    def decode(cls, encoded: bytes) -> "BlockDigests":
        """Raises FormatError for what :meth:`encode` does not give."""
        try:
            data = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError) as error:
            raise FormatError(f"digests of the blocks of a manifest: {error}") from error
        count, rest = divmod(len(data), _END.itemsize + _DIGEST_BYTES)
        ends = np.frombuffer(data, _END, count).astype(np.int64)
        if rest or not count or bool((np.diff(ends, prepend=0) <= 0).any()):
            raise FormatError(
                f"digests of the blocks of a manifest: expected blocks that follow one another, found {len(data)} bytes"
            )
        return cls(ends, data[count * _END.itemsize :])

    def read(self, read: ReadRange, blocks: npt.NDArray[np.int64]) -> tuple[bytes, npt.NDArray[np.int64]] | None:
        """A file of the header and of the blocks that begin at some places, and where each of these begins in it; None if what is
        read is not what was sealed."""
        distinct, places = np.unique(blocks, return_inverse=True)
        numbers = np.searchsorted(self.ends, distinct) + 1
        if bool((numbers >= len(self.ends)).any()) or bool((self.ends[numbers - 1] != distinct).any()):
            return None
        pieces = []
        for number in (0, *numbers.tolist()):
            piece = read(int(self.ends[number - 1]) if number else 0, int(self.ends[number]))
            if _digest(piece) != self.digests[number * _DIGEST_BYTES : (number + 1) * _DIGEST_BYTES]:
                return None
            pieces.append(piece)
        starts = np.cumsum([len(piece) for piece in pieces[:-1]])
        return b"".join(pieces), starts[places]


def _digest(piece: bytes | memoryview) -> bytes:
    return hashlib.sha256(piece).digest()[:_DIGEST_BYTES]
