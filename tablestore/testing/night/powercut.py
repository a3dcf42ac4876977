"""A store that forgets what was not synced when the power is cut.

    written, not synced     the content lasts, the name may be gone
    deleted, not synced     the name may be there again
    overwritten             lasting: it stays; else what it held before, or nothing

So :class:`~tablestore.io.filestore.FileStore` promises it, and no more: what each file holds afterwards is drawn.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO

from tablestore.errors import NotFoundError
from tablestore.io.filestore import FileStore
from tablestore.io.wrapped import WrappedFileStore
from tablestore.testing.auditor import walk


@dataclass(frozen=True)
class VolatileFileStore(WrappedFileStore):
    """``inner``, whose last changes are lost by :meth:`cut`: those of the paths that ``loses`` says."""

    loses: Callable[[str], bool]
    # What a file held when its directory was last synced; None: it was not there.
    unsynced: dict[str, bytes | None] = field(default_factory=dict)

    def write(self, path: str, data: bytes) -> None:
        self.inner.write(path, data)
        self._note(path, None)

    def write_all(self, files: Mapping[str, bytes]) -> None:
        for path, data in files.items():
            self.write(path, data)

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        with self.inner.open_output(path) as file:
            yield file
        self._note(path, None)

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        created = self.inner.publish_if_absent(path, data)
        self.sync(path.rpartition("/")[0])
        return created

    def overwrite(self, path: str, data: bytes, *, lasting: bool = True) -> None:
        before = self._content(path)
        self.inner.overwrite(path, data, lasting=lasting)
        if lasting:
            self.sync(path.rpartition("/")[0])
        else:
            self._note(path, before)

    def delete(self, path: str) -> bool:
        before = self._content(path)
        deleted = self.inner.delete(path)
        if deleted:
            self._note(path, before)
        return deleted

    def delete_directory(self, path: str) -> None:
        before = {other: self.inner.read(other) for other in walk(self.inner, path)}
        self.inner.delete_directory(path)
        for other, data in before.items():
            self._note(other, data)

    def sync(self, directory: str) -> None:
        self.inner.sync(directory)
        for path in [path for path in self.unsynced if path.rpartition("/")[0] == directory]:
            del self.unsynced[path]

    def at(self, path: str) -> FileStore:
        raise NotImplementedError("a power cut is one of the whole table")

    def cut(self) -> int:
        """The power is cut; returns how many changes were lost."""
        lost = 0
        for path, before in self.unsynced.items():
            if not self.loses(path):
                continue
            lost += 1
            if before is None:
                self.inner.delete(path)
            else:
                self.inner.overwrite(path, before)
        self.unsynced.clear()
        return lost

    def _note(self, path: str, before: bytes | None) -> None:
        self.unsynced.setdefault(path, before)

    def _content(self, path: str) -> bytes | None:
        try:
            return self.inner.read(path)
        except NotFoundError:
            return None
