"""A file store that publishes under a lock, so that one without conditional publish can be written to.

    publish_if_absent(path)   lock of the directory of path -> as the store itself does it, or, where it cannot:
                              look -> temporary name -> rename (or put), which is safe while nobody else publishes there

All else is as the store does it. The lock is named after the directory that holds the file, by its last three names: however a
warehouse's address is spelt, and whether a table is opened by name or by path, the writers of one table ask for one lock. Tables
whose last names are equal wait for each other, which costs time and no rows.
"""

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, BinaryIO

from tablestore.errors import UnsupportedError
from tablestore.io.filestore import READ_LIMIT_BYTES, FileInfo, FileStore, PublishesAlone, RenamesDirectories, check_path
from tablestore.io.lock.cataloglock import CatalogLock

if TYPE_CHECKING:
    import pyarrow as pa

_NAMES = 3


class LockedFileStore:
    """``inner``, which publishes while ``lock`` is held by every one who does."""

    can_publish = True

    def __init__(self, inner: FileStore, lock: CatalogLock) -> None:
        self.inner, self.lock = inner, lock
        if isinstance(inner, RenamesDirectories):
            self.rename_directory = inner.rename_directory

    @property
    def root_uri(self) -> str:
        return self.inner.root_uri

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        check_path(path)
        return self.lock.run_with_lock(lock_place(self.root_uri, path), lambda: self._publish(path, data))

    def _publish(self, path: str, data: bytes) -> bool:
        try:
            return self.inner.publish_if_absent(path, data)
        except UnsupportedError as error:
            if error.kind != "no-conditional-publish" or not isinstance(self.inner, PublishesAlone):
                raise
        return self.inner.publish_alone(path, data)

    def at(self, path: str) -> "LockedFileStore":
        return LockedFileStore(self.inner.at(path), self.lock)

    def read(self, path: str, *, max_bytes: int = READ_LIMIT_BYTES) -> bytes:
        return self.inner.read(path, max_bytes=max_bytes)

    def size(self, path: str) -> int:
        return self.inner.size(path)

    def exists(self, path: str) -> bool:
        return self.inner.exists(path)

    def open_input(self, path: str) -> "pa.NativeFile | BinaryIO":
        return self.inner.open_input(path)

    def open_output(self, path: str) -> AbstractContextManager[BinaryIO]:
        return self.inner.open_output(path)

    def write(self, path: str, data: bytes) -> None:
        self.inner.write(path, data)

    def write_all(self, files: Mapping[str, bytes]) -> None:
        self.inner.write_all(files)

    def overwrite(self, path: str, data: bytes, *, lasting: bool = True) -> None:
        self.inner.overwrite(path, data, lasting=lasting)

    def list(self, directory: str, prefix: str = "") -> Sequence[FileInfo]:
        return self.inner.list(directory, prefix)

    def names(self, directory: str, prefix: str = "") -> Sequence[str]:
        return self.inner.names(directory, prefix)

    def delete(self, path: str) -> bool:
        return self.inner.delete(path)

    def delete_directory(self, path: str) -> None:
        self.inner.delete_directory(path)

    def sync(self, directory: str) -> None:
        self.inner.sync(directory)


def lock_place(root_uri: str, path: str) -> str:
    """The place whose lock guards the file ``path`` of the store at ``root_uri``."""
    root = root_uri.partition("://")[2] if "://" in root_uri else os.path.realpath(root_uri)
    directory = f"{root}/{path}".rpartition("/")[0]
    return "/".join([name for name in directory.split("/") if name][-_NAMES:]) or "root"
