"""Stores files in the memory of this process: for tests, for examples, and for tables that need not outlive the program.

Stores of one name share one space, so that a store that was pickled inside the process finds its files again. A private store has
a space of its own, which is gone with the last store that knows it, and is not pickled.
A file appears whole, when it is finished; what :mod:`tablestore.io.local` gets from the file system (atomic
names, fresh listings) a lock gives here.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from threading import Lock
from typing import BinaryIO

import pyarrow as pa

from tablestore.clock import Clock, SystemClock
from tablestore.errors import AlreadyExistsError, NotFoundError, UnsupportedError
from tablestore.io.filestore import READ_LIMIT_BYTES, FileInfo, check_path, join_inside
from tablestore.io.oserrors import occupied, too_large


@dataclass(frozen=True, slots=True)
class _File:
    data: bytes
    modified_ms: int


@dataclass(slots=True)
class _Space:
    lock: Lock = field(default_factory=Lock)
    files: dict[str, _File] = field(default_factory=dict)


_spaces: dict[str, _Space] = {}
_spaces_lock = Lock()


class MemoryFileStore:
    """A :class:`~tablestore.io.filestore.FileStore` in memory; ``name`` says which space."""

    can_publish = True

    def __init__(self, name: str, *, clock: Clock | None = None, _prefix: str = "", _private: _Space | None = None) -> None:
        check_path(name)
        self._name = name
        self._prefix = _prefix
        self._private = _private
        self._clock = clock or SystemClock()

    @classmethod
    def private(cls, name: str, *, clock: Clock | None = None) -> "MemoryFileStore":
        """A store with files that no other store of that name sees; the name is for messages."""
        return cls(name, clock=clock, _private=_Space())

    @staticmethod
    def forget(name: str) -> None:
        """Drop the space of that name and all its files."""
        with _spaces_lock:
            _spaces.pop(name, None)

    @property
    def root_uri(self) -> str:
        return f"memory://{self._name}/{self._prefix}".rstrip("/")

    def __repr__(self) -> str:
        return f"MemoryFileStore({self.root_uri!r})"

    def at(self, path: str) -> "MemoryFileStore":
        return MemoryFileStore(self._name, clock=self._clock, _prefix=self._key(path) + "/", _private=self._private)

    def __reduce__(self) -> tuple[object, ...]:
        if self._private is not None:
            raise UnsupportedError(
                f"{self.root_uri} is private memory of this process, which no other one sees; use files that every process sees",
                kind="not-serializable",
            )
        return _unpickled, (self._name, self._clock, self._prefix)

    # ---- reading

    def read(self, path: str, *, max_bytes: int = READ_LIMIT_BYTES) -> bytes:
        data = self._file(path).data
        if len(data) > max_bytes:
            raise too_large(self._where(path), size=len(data), max_bytes=max_bytes)
        return data

    def size(self, path: str) -> int:
        return len(self._file(path).data)

    def exists(self, path: str) -> bool:
        space = self._space()
        with space.lock:
            return self._key(path) in space.files

    def open_input(self, path: str) -> pa.NativeFile:
        return pa.BufferReader(self._file(path).data)

    def list(self, directory: str, prefix: str = "") -> Sequence[FileInfo]:
        below = self._key(directory) + "/" if directory else self._prefix
        infos: dict[str, FileInfo] = {}
        space = self._space()
        with space.lock:
            for key, file in space.files.items():
                if not key.startswith(below + prefix):
                    continue
                name, is_dir, _ = key[len(below) :].partition("/")
                if is_dir:
                    infos[name] = FileInfo(name=name, size=0, modified_ms=0, is_dir=True)
                else:
                    infos[name] = FileInfo(name=name, size=len(file.data), modified_ms=file.modified_ms)
        return [infos[name] for name in sorted(infos)]

    def names(self, directory: str, prefix: str = "") -> Sequence[str]:
        return [info.name for info in self.list(directory, prefix)]

    # ---- writing

    def write(self, path: str, data: bytes) -> None:
        if not self.publish_if_absent(path, data):
            raise occupied(self._where(path))

    def write_all(self, files: Mapping[str, bytes]) -> None:
        for path, data in files.items():
            self.write(path, data)

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        key = self._key(path)
        file = _File(bytes(data), self._clock.now_ms())
        space = self._space()
        with space.lock:
            return space.files.setdefault(key, file) is file

    def copy_file(self, old: str, new: str) -> None:
        self.write(new, self._file(old).data)

    def overwrite(self, path: str, data: bytes, *, lasting: bool = True) -> None:
        key = self._key(path)
        file = _File(bytes(data), self._clock.now_ms())
        space = self._space()
        with space.lock:
            space.files[key] = file

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        if self.exists(path):
            raise occupied(self._where(path))
        with _Output() as buffer:
            yield buffer
            self.write(path, buffer.finished())

    # ---- removing

    def delete(self, path: str) -> bool:
        key = self._key(path)
        space = self._space()
        with space.lock:
            return space.files.pop(key, None) is not None

    def delete_directory(self, path: str) -> None:
        below = self._key(path) + "/"
        space = self._space()
        with space.lock:
            for key in [key for key in space.files if key.startswith(below)]:
                del space.files[key]

    def rename_directory(self, old: str, new: str) -> None:
        below, target = self._key(old) + "/", self._key(new) + "/"
        space = self._space()
        with space.lock:
            if any(key.startswith(target) for key in space.files):
                raise AlreadyExistsError(f"cannot rename {self._where(old)} to {self._where(new)}: it exists; choose another name")
            moved = [key for key in space.files if key.startswith(below)]
            if not moved:
                raise NotFoundError(f"cannot rename {self._where(old)} to {self._where(new)}: expected a directory, found none")
            for key in moved:
                space.files[target + key.removeprefix(below)] = space.files.pop(key)

    def exchange_directories(self, one: str, other: str) -> None:
        first, second = self._key(one) + "/", self._key(other) + "/"
        space = self._space()
        with space.lock:
            moved: dict[str, _File] = {}
            for name, below, target in ((one, first, second), (other, second, first)):
                renamed = {target + key.removeprefix(below): file for key, file in space.files.items() if key.startswith(below)}
                if not renamed:
                    raise NotFoundError(f"cannot exchange {self._where(name)}: expected a directory, found none")
                moved |= renamed
            for key in [key for key in space.files if key.startswith((first, second))]:
                del space.files[key]
            space.files.update(moved)

    def sync(self, directory: str) -> None:
        if directory:
            check_path(directory)

    # ---- helpers

    def _space(self) -> _Space:
        if self._private is not None:
            return self._private
        with _spaces_lock:
            return _spaces.setdefault(self._name, _Space())

    def _key(self, path: str) -> str:
        return join_inside(self._prefix, path) if self._prefix else join_inside("/", path)[1:]

    def _where(self, path: str) -> str:
        return f"memory://{self._name}/{self._key(path)}"

    def _file(self, path: str) -> _File:
        space = self._space()
        with space.lock:
            file = space.files.get(self._key(path))
        if file is None:
            where = self._where(path)
            raise NotFoundError(f"expected a file at {where}, found none; check the path or whether it was expired")
        return file


def _unpickled(name: str, clock: Clock, prefix: str) -> MemoryFileStore:
    return MemoryFileStore(name, clock=clock, _prefix=prefix)


class _Output(BytesIO):
    """A buffer that keeps its bytes when the writer closes it before we look."""

    _data: bytes | None = None

    def close(self) -> None:
        if not self.closed:
            self._data = self.getvalue()
        super().close()

    def finished(self) -> bytes:
        self.close()
        assert self._data is not None
        return self._data
