"""Pools file handles: reads more files side by side than a process may have open.

    many readers, each where it stands    a  b  c  d  e  f  …
    open at a time                        at most ``handles``: the next to read opens its file again, and the one least
                                          recently read is closed

Data files never change, so a file that is opened again goes on where it was left; one that was removed meanwhile is an error as it
is for any reader that comes late. Only reads are wrapped. One pool belongs to one merge, in one thread.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import BinaryIO, cast

import pyarrow as pa

from tablestore.io.ranged import RangedFile
from tablestore.io.wrapped import WrappedFileStore


@dataclass(frozen=True, eq=False)
class HandlePool(WrappedFileStore):
    """A file store whose inputs share ``handles`` open files; everything else is that of ``inner``."""

    handles: int
    # The inputs that have their file open, least recently read first.
    _open: "OrderedDict[_Input, pa.NativeFile]" = field(default_factory=OrderedDict, init=False)

    def open_input(self, path: str) -> "pa.NativeFile | BinaryIO":
        """A random-access file, as :meth:`FileStore.open_input`; it is open only while the pool has it open."""
        self._make_room()
        file = self.inner.open_input(path)
        # A file of a far store is asked for piece by piece: it holds nothing open.
        if not isinstance(file, pa.NativeFile):
            return file
        reader = _Input(self, path, size=file.size())
        self._open[reader] = file
        return cast(BinaryIO, reader)

    def file_of(self, reader: "_Input") -> pa.NativeFile:
        """The reader's file, opened again if it had to go meanwhile."""
        if reader in self._open:
            self._open.move_to_end(reader)
            return self._open[reader]
        self._make_room()
        file = self.inner.open_input(reader.path)
        assert isinstance(file, pa.NativeFile), "a store opens its files in one way"
        self._open[reader] = file
        return file

    def leave(self, reader: "_Input") -> None:
        """A reader is done."""
        if (file := self._open.pop(reader, None)) is not None:
            file.close()

    def _make_room(self) -> None:
        while len(self._open) >= self.handles:
            _, longest_ago = self._open.popitem(last=False)
            longest_ago.close()


class _Input(RangedFile):
    """One file, open while the pool has it open. ``round_trips``: no read is a request to a far store."""

    round_trips = False
    __hash__ = object.__hash__

    def __init__(self, pool: HandlePool, path: str, *, size: int) -> None:
        super().__init__(size=size, fetch=self._read_range)
        self._pool, self.path = pool, path

    def close(self) -> None:
        if not self.closed:
            self._pool.leave(self)
        super().close()

    def _read_range(self, start: int, end: int) -> bytes:
        file = self._pool.file_of(self)
        file.seek(start)
        data: bytes = file.read(end - start)
        return data
