"""Passes the bytes of a file that is written on to the store's output, and counts them."""

from typing import BinaryIO

import pyarrow as pa


class CountedSink:
    """A Python file that Arrow writes to. Closing and durability are the caller's; ``failure`` is what the store raised: libraries
    between lose its type."""

    closed = False

    def __init__(self, sink: BinaryIO | pa.NativeFile) -> None:
        self._sink = sink
        self.count = 0
        self.failure: BaseException | None = None

    def write(self, data: bytes) -> int:
        """Passes the bytes on."""
        try:
            self._sink.write(data)
        except BaseException as error:
            self.failure = error
            raise
        self.count += len(data)
        return len(data)

    def tell(self) -> int:
        """The bytes that were passed on so far."""
        return self.count

    def flush(self) -> None:
        """Durability is the caller's."""

    def seekable(self) -> bool:
        """False: files are written from beginning to end."""
        return False

    def readable(self) -> bool:
        """False."""
        return False

    def writable(self) -> bool:
        """True."""
        return True

    def close(self) -> None:
        """The sink is the caller's to close."""
