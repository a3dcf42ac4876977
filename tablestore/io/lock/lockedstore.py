"""Wraps a file store so that it publishes under a lock, for stores without a conditional write.

    publish_if_absent(path)   lock of the directory of path -> as the store itself does it, or, where it cannot:
                              look -> temporary name -> rename (or put), which is safe while nobody else publishes there

All else is as the store does it. The lock is named after the directory that holds the file, by its last three names: however a
warehouse's address is spelt, and whether a table is opened by name or by path, the writers of one table ask for one lock. Tables
whose last names are equal wait for each other, which costs time and no rows.
"""

import os
from dataclasses import dataclass

from tablestore.errors import UnsupportedError
from tablestore.io.filestore import PublishesAlone, check_path
from tablestore.io.lock.cataloglock import CatalogLock
from tablestore.io.wrapped import WrappedFileStore

_NAMES = 3


@dataclass(frozen=True)
class LockedFileStore(WrappedFileStore):
    """The file store ``inner``, which publishes under ``lock``, as all of its writers do."""

    lock: CatalogLock

    def __post_init__(self) -> None:
        self.keep_abilities()

    @property
    def can_publish(self) -> bool:
        return True

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


def lock_place(root_uri: str, path: str) -> str:
    """The place whose lock guards the file ``path`` of the store at ``root_uri``."""
    root = root_uri.partition("://")[2] if "://" in root_uri else os.path.realpath(root_uri)
    directory = f"{root}/{path}".rpartition("/")[0]
    return "/".join([name for name in directory.split("/") if name][-_NAMES:]) or "root"
