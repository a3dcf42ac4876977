"""A disk that is full: what does not fit fails and leaves nothing behind, whatever is deleted makes room."""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO

from tablestore.errors import StorageError
from tablestore.io.filestore import FileStore
from tablestore.io.wrapped import WrappedFileStore


@dataclass(frozen=True)
class FullFileStore(WrappedFileStore):
    """``inner`` on a disk with so many bytes of ``room``. ``refused``: how often something did not fit, by verb."""

    room: list[int]
    sizes: dict[str, int] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)

    def write(self, path: str, data: bytes) -> None:
        with self._taken("write", path, len(data)):
            self.inner.write(path, data)

    def write_all(self, files: Mapping[str, bytes]) -> None:
        for path, data in files.items():
            self.write(path, data)

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        if self.inner.exists(path):
            return False
        with self._taken("publish_if_absent", path, len(data)):
            return self.inner.publish_if_absent(path, data)

    def overwrite(self, path: str, data: bytes, *, lasting: bool = True) -> None:
        with self._taken("overwrite", path, len(data)):
            self.inner.overwrite(path, data, lasting=lasting)

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        with self.inner.open_output(path) as file:
            yield file
            size = file.tell()
            with self._taken("open_output", path, size):
                pass

    def delete(self, path: str) -> bool:
        deleted = self.inner.delete(path)
        self.room[0] += self.sizes.pop(path, 0)
        return deleted

    def delete_directory(self, path: str) -> None:
        self.inner.delete_directory(path)
        for other in [other for other in self.sizes if other.startswith(f"{path}/")]:
            self.room[0] += self.sizes.pop(other)

    def at(self, path: str) -> FileStore:
        raise NotImplementedError("a disk is full for the whole table")

    @contextmanager
    def _taken(self, verb: str, path: str, size: int) -> Iterator[None]:
        if size > self.room[0]:
            self.refused[f"{verb} full"] += 1
            raise StorageError(f"cannot write {path}: no space left on device; free some, then repeat", kind="no-space")
        yield
        self.room[0] -= size - self.sizes.get(path, 0)
        self.sizes[path] = size
