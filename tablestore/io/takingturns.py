"""How can more files be read side by side than a process may have open?

    many readers, each where it stands    a  b  c  d  e  f  …
    open at a time                        at most ``handles``: who reads next opens its file again, and who read longest ago
                                          is closed

Data files never change, so a file that is opened again goes on where it was left; one that was removed meanwhile is an error as it
is for any reader that comes late. Only reads are wrapped. One set of turns belongs to one merge, in one thread.
"""

import io
from collections import OrderedDict
from typing import Any, BinaryIO

import pyarrow as pa

from tablestore.io.filestore import FileStore


class TakingTurns:
    """A file store whose inputs share ``handles`` open files; everything else is that of ``store``."""

    def __init__(self, store: FileStore, handles: int) -> None:
        self._store = store
        self._turns = _Turns(handles)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def open_input(self, path: str) -> "pa.NativeFile | BinaryIO":
        """A random-access file, as :meth:`FileStore.open_input`; it is open only while it has its turn."""
        found = self._store.open_input(path)
        # A file of a far store is asked for piece by piece: it holds nothing open.
        return _Input(self._store, path, self._turns, found) if isinstance(found, pa.NativeFile) else found


class _Turns:
    """Who has a file open, least recently read first."""

    def __init__(self, handles: int) -> None:
        self._handles = handles
        self._open: OrderedDict[_Input, None] = OrderedDict()

    def take(self, reader: "_Input") -> None:
        """Make room for a reader that is about to open its file, or note that it reads again."""
        if reader not in self._open and len(self._open) >= self._handles:
            longest_ago, _ = self._open.popitem(last=False)
            longest_ago.let_go()
        self._open[reader] = None
        self._open.move_to_end(reader)

    def leave(self, reader: "_Input") -> None:
        """A reader is done."""
        self._open.pop(reader, None)


class _Input(io.RawIOBase):
    """One file, open while it has its turn. ``round_trips``: no read is a request to a far store."""

    round_trips = False

    def __init__(self, store: FileStore, path: str, turns: _Turns, file: pa.NativeFile) -> None:
        super().__init__()
        self._store, self._path, self._turns = store, path, turns
        self._file: pa.NativeFile | BinaryIO | None = file
        self._size: int = file.size()
        self._position = 0
        turns.take(self)

    __hash__ = object.__hash__

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def size(self) -> int:
        """Bytes of the whole file."""
        return self._size

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        if self.closed:
            raise ValueError("read of a closed file")
        if self._position >= self._size:
            return b""
        file = self._opened()
        file.seek(self._position)
        data: bytes = file.read(self._size - self._position if size is None or size < 0 else size)
        self._position += len(data)
        return data

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, buffer: Any) -> int:
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def let_go(self) -> None:
        """Close the file until the next read."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def close(self) -> None:
        if not self.closed:
            self._turns.leave(self)
            self.let_go()
        super().close()

    def _opened(self) -> "pa.NativeFile | BinaryIO":
        self._turns.take(self)
        if self._file is None:
            self._file = self._store.open_input(self._path)
        return self._file
