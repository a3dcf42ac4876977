"""Keeps the access document of a service: in a file beside or apart from the warehouse, or in the database of a SQL catalog.

    file        WAREHOUSE/.tablestore/access.json, or another one by name; for its owner alone, replaced in one step under a lock
    database    table tablestore_access: a row a catalog

A reader sees each change at once: of a file it looks at inode, size and time of change, of a row at its version.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from filelock import FileLock, Timeout

from tablestore.catalog.settings import JDBC, METASTORE, parse_catalog_settings
from tablestore.errors import InvalidInputError, StorageError
from tablestore.ids import Ids
from tablestore.redaction import without_secrets
from tablestore.server.access.accessdocument import EMPTY, AccessDocument, Change, decode_access, encode_access
from tablestore.server.access.identities import TokenTable

FOLDER, FILE = ".tablestore", "access.json"
_OWNER_ALONE, _OWNER_FOLDER = 0o600, 0o700
_OTHERS = 0o077
LOCK_TIMEOUT_S = 30.0


class AccessStore(Protocol):
    """The place of one access document."""

    @property
    def where(self) -> str:
        """The place, as messages name it."""
        ...

    def read(self) -> AccessDocument:
        """The document as it is now; an empty one if there is none yet. Raises FormatError, StorageError."""
        ...

    def change(self, change: Change) -> AccessDocument:
        """Stores what ``change`` makes of the document, in one step; it may be called again if another one was faster."""
        ...


class FileAccessStore:
    """The document in a file that only its owner reads and writes."""

    def __init__(self, path: Path, ids: Ids, *, lock_timeout_s: float = LOCK_TIMEOUT_S) -> None:
        self._path, self._ids, self._lock_timeout_s = path, ids, lock_timeout_s
        self._cached: tuple[tuple[int, int, int], AccessDocument] | None = None

    @property
    def where(self) -> str:
        return str(self._path)

    def read(self) -> AccessDocument:
        try:
            status = os.stat(self._path)
        except FileNotFoundError:
            return EMPTY
        except OSError as error:
            raise self._failed(error) from error
        stamp = (status.st_ino, status.st_size, status.st_mtime_ns)
        cached = self._cached
        if cached is not None and cached[0] == stamp:
            return cached[1]
        return self._load()

    def change(self, change: Change) -> AccessDocument:
        try:
            self._path.parent.mkdir(mode=_OWNER_FOLDER, parents=True, exist_ok=True)
            lock = FileLock(f"{self._path}.lock", mode=_OWNER_ALONE, fallback_to_soft=False, is_singleton=False)
            with lock.acquire(timeout=self._lock_timeout_s):
                document = change(self._load())
                self._replace(encode_access(document))
                return document
        except Timeout as error:
            raise StorageError(
                f"{self.where} is locked by another process for more than {self._lock_timeout_s:g} s; repeat, or look for "
                "that process (fuser, lsof)",
                kind="lock",
            ) from error
        except OSError as error:
            if isinstance(error, StorageError):
                raise
            raise self._failed(error) from error

    def _load(self) -> AccessDocument:
        try:
            with open(self._path, "rb") as file:
                status = os.fstat(file.fileno())
                if status.st_mode & _OTHERS:
                    raise StorageError(
                        f"{self.where} is open to other users of this machine (mode {status.st_mode & 0o777:o}): who may "
                        f"write it may do anything; run: chmod 600 {self.where}",
                        kind="open-to-others",
                    )
                document = decode_access(file.read(), self.where)
        except FileNotFoundError:
            return EMPTY
        except StorageError:
            raise
        except OSError as error:
            raise self._failed(error) from error
        self._cached = (status.st_ino, status.st_size, status.st_mtime_ns), document
        return document

    def _replace(self, data: bytes) -> None:
        temporary = self._path.with_name(f".{self._path.name}.{self._ids.uuid()}")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, _OWNER_ALONE)
            with open(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self._path)
        finally:
            temporary.unlink(missing_ok=True)
        folder = os.open(self._path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _failed(self, error: OSError) -> StorageError:
        return StorageError(
            f"cannot open {self.where}: {error.strerror or error}; it belongs to whoever creates tokens, and the service runs as "
            "the same user",
            kind="denied" if isinstance(error, PermissionError) else None,
        )


class CurrentTokens:
    """The tokens of a store as a table for looking up, which is made anew when the document has changed."""

    def __init__(self, store: AccessStore) -> None:
        self._store = store
        self._latest: tuple[AccessDocument, TokenTable] = EMPTY, TokenTable.of(())

    def __call__(self) -> TokenTable:
        document = self._store.read()
        latest = self._latest
        if latest[0] is not document:
            latest = self._latest = document, TokenTable.of(document.tokens)
        return latest[1]


def open_access_store(options: Mapping[str, Any], ids: Ids, *, path: str | None = None) -> AccessStore:
    """The store at ``path``, or that of the catalog with these options: its database, or a folder inside of a local warehouse.

    Raises InvalidInputError for a warehouse elsewhere without a database.
    """
    if path is not None:
        return FileAccessStore(Path(path).expanduser(), ids)
    settings = parse_catalog_settings(options)
    if settings.metastore == JDBC:
        from tablestore.catalog.sqlcatalog import database_url  # SQLAlchemy is an extra
        from tablestore.server.access.sqlaccessstore import SqlAccessStore

        return SqlAccessStore(database_url(settings), settings.key)
    warehouse = (settings.warehouse or "").removeprefix("file://")
    if settings.warehouse is None or "://" in warehouse:
        raise InvalidInputError(
            f"expected a place for tokens: {without_secrets(settings.warehouse or settings.metastore)} has none; name a file with "
            f"--tokens, or keep the catalog in a database ({METASTORE.key}={JDBC})",
            kind="no-token-store",
        )
    return FileAccessStore(Path(warehouse).expanduser() / FOLDER / FILE, ids)
