"""A table's files as one of its branches sees them.

    schema/ snapshot/ tag/ changelog/ consumer/ and our own notes   ->  branch/branch-<name>/…
    manifest/ index/ statistics/ and all data files                 ->  where those of the main branch lie

So a branch is a table like any other to everything that is built on a :class:`FileStore`: it is read, written, expired and
tagged by the same code. Only what looks at *all* branches (which files are in use?) starts from ``TableContext.main_files``.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from tablestore.clock import Clock
from tablestore.format.paths import (
    CHANGELOG_DIR,
    CONSUMER_DIR,
    MAIN_BRANCH,
    SCHEMA_DIR,
    SNAPSHOT_DIR,
    TAG_DIR,
    branch_directory,
)
from tablestore.ids import Ids
from tablestore.io.filestore import READ_LIMIT_BYTES, FileInfo, FileStore
from tablestore.store.context import TableContext, open_context
from tablestore.store.followup import UNDONE_DIR
from tablestore.store.history.expiryintents import EXPIRY_DIR
from tablestore.store.history.holds import HOLDS_DIR
from tablestore.store.replay import MARKS_DIR

if TYPE_CHECKING:
    import pyarrow as pa

# What belongs to one history and not to the table.
OWN_DIRECTORIES = frozenset(
    {SCHEMA_DIR, SNAPSHOT_DIR, TAG_DIR, CHANGELOG_DIR, CONSUMER_DIR, MARKS_DIR, EXPIRY_DIR, UNDONE_DIR, HOLDS_DIR}
)


@dataclass(frozen=True, slots=True)
class BranchFiles:
    """The files of the table in ``main`` as its branch ``branch`` sees them."""

    main: FileStore
    branch: str

    @property
    def root_uri(self) -> str:
        """The table's own place: data files are named below it."""
        return self.main.root_uri

    @property
    def can_publish(self) -> bool:
        """As the table's."""
        return self.main.can_publish

    def read(self, path: str, *, max_bytes: int = READ_LIMIT_BYTES) -> bytes:
        """As :meth:`FileStore.read`."""
        return self.main.read(self._real(path), max_bytes=max_bytes)

    def size(self, path: str) -> int:
        """As :meth:`FileStore.size`."""
        return self.main.size(self._real(path))

    def exists(self, path: str) -> bool:
        """As :meth:`FileStore.exists`."""
        return self.main.exists(self._real(path))

    def open_input(self, path: str) -> "pa.NativeFile | BinaryIO":
        """As :meth:`FileStore.open_input`."""
        return self.main.open_input(self._real(path))

    def open_output(self, path: str) -> AbstractContextManager[BinaryIO]:
        """As :meth:`FileStore.open_output`."""
        return self.main.open_output(self._real(path))

    def write(self, path: str, data: bytes) -> None:
        """As :meth:`FileStore.write`."""
        self.main.write(self._real(path), data)

    def write_all(self, files: Mapping[str, bytes]) -> None:
        """As :meth:`FileStore.write_all`."""
        self.main.write_all({self._real(path): data for path, data in files.items()})

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        """As :meth:`FileStore.publish_if_absent`."""
        return self.main.publish_if_absent(self._real(path), data)

    def overwrite(self, path: str, data: bytes, *, lasting: bool = True) -> None:
        """As :meth:`FileStore.overwrite`."""
        self.main.overwrite(self._real(path), data, lasting=lasting)

    def list(self, directory: str, prefix: str = "") -> Sequence[FileInfo]:
        """As :meth:`FileStore.list`."""
        return self.main.list(self._real(directory), prefix)

    def names(self, directory: str, prefix: str = "") -> Sequence[str]:
        """As :meth:`FileStore.names`."""
        return self.main.names(self._real(directory), prefix)

    def delete(self, path: str) -> bool:
        """As :meth:`FileStore.delete`."""
        return self.main.delete(self._real(path))

    def delete_directory(self, path: str) -> None:
        """As :meth:`FileStore.delete_directory`."""
        self.main.delete_directory(self._real(path))

    def sync(self, directory: str) -> None:
        """As :meth:`FileStore.sync`."""
        self.main.sync(self._real(directory))

    def at(self, path: str) -> FileStore:
        """As :meth:`FileStore.at`."""
        return self.main.at(self._real(path))

    def _real(self, path: str) -> str:
        return f"{branch_directory(self.branch)}/{path}" if path.partition("/")[0] in OWN_DIRECTORIES else path


def branch_files(main: FileStore, branch: str) -> FileStore:
    """The files of the table in ``main`` as ``branch`` sees them."""
    return main if branch == MAIN_BRANCH else BranchFiles(main, branch)


def open_branch(main: FileStore, branch: str, *, clock: Clock | None = None, ids: Ids | None = None) -> TableContext:
    """Open a branch of the table in ``main``. Raises what :func:`~tablestore.store.context.open_context` raises."""
    return open_context(branch_files(main, branch), main_files=main, branch=branch, clock=clock, ids=ids)
