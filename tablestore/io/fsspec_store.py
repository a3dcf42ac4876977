"""Stores files behind any fsspec protocol (Google Cloud Storage, Azure, SFTP, HDFS, …).

The file systems of Google Cloud Storage and Azure make a file only if it is absent, in one request, when asked for
``mode="create"``. Others look first and write then, which loses a race, or have no such mode: there nothing is published
but under a lock (:mod:`tablestore.io.lock`).

``open_output`` looks first everywhere, and whether a half-written file can be seen depends on the protocol: names that nobody
knows yet make up for both.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any, BinaryIO, TypeVar, cast

import fsspec
from fsspec.core import url_to_fs
from fsspec.spec import AbstractFileSystem

from tablestore.clock import Clock, SystemClock
from tablestore.errors import (
    AlreadyExistsError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    TablestoreError,
    UnsupportedError,
)
from tablestore.ids import Ids, SystemIds
from tablestore.io.filestore import READ_LIMIT_BYTES, TEMPORARY_PREFIX, FileInfo, check_path, join_directory, join_inside
from tablestore.io.oserrors import is_gone, no_conditional_publish, occupied, too_large, translated, unknown_outcome
from tablestore.io.ranged import RangedFile
from tablestore.io.retry import retried
from tablestore.lazy import missing_package
from tablestore.redaction import without_secrets
from tablestore.secretnames import resolved

T = TypeVar("T")

# How often a request that changes nothing is sent at most.
FSSPEC_ATTEMPTS = 5

_CONDITIONAL = frozenset({"gs", "gcs", "abfs", "abfss", "az"})
# Packages to install for protocols that are not called as they are.
_PACKAGES = {
    **dict.fromkeys(("gs", "gcs"), "gcsfs"),
    **dict.fromkeys(("abfs", "abfss", "az", "adl"), "adlfs"),
    **dict.fromkeys(("http", "https"), "aiohttp requests"),
    **dict.fromkeys(("sftp", "ssh"), "paramiko"),
    **dict.fromkeys(("webhdfs", "github", "databricks", "dbfs", "jupyter", "jlab"), "requests"),
    "hf": "huggingface_hub",
    "oss": "ossfs",
    "oci": "ocifs",
    "smb": "smbprotocol",
    "dropbox": "dropboxdrivefs",
    "gdrive": "gdrive-fsspec",
}
_TIME_KEYS = ("mtime", "LastModified", "last_modified", "updated", "modified", "created")


class FsspecFileStore:
    """A :class:`~tablestore.io.filestore.FileStore` below any fsspec URL.

    ``options`` are those of the fsspec file system; they may hold secrets and appear in no message or ``repr``.
    """

    def __init__(
        self,
        url: str,
        options: Mapping[str, Any] | None = None,
        *,
        clock: Clock | None = None,
        ids: Ids | None = None,
    ) -> None:
        if "::" in url:
            # A chain has a root of its own in each link, so a path could be joined at the wrong one.
            raise InvalidInputError(
                f"expected the URL of one file system, like sftp://host/path, found the chain {url!r}", kind="path"
            )
        self._url = url.rstrip("/")
        self._options = dict(options or {})
        self._clock = clock or SystemClock()
        self._ids = ids or SystemIds()
        self._forget()
        self._connected()

    @property
    def can_publish(self) -> bool:
        return self._url.partition("://")[0] in _CONDITIONAL

    @property
    def root_uri(self) -> str:
        # By hand: urlunsplit drops the slashes of an address without a host.
        protocol, separator, place = self._url.partition("://")
        host, slash, path = place.partition("/")
        return f"{protocol}{separator}{host.rpartition('@')[2]}{slash}{path}"

    def __repr__(self) -> str:
        return f"FsspecFileStore({self.root_uri!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_filesystem", "_root", "_pid")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def at(self, path: str) -> "FsspecFileStore":
        return FsspecFileStore(
            join_inside(self._url, path),
            self._options,
            clock=self._clock,
            ids=self._ids,
        )

    # ---- reading

    def read(self, path: str, *, max_bytes: int = READ_LIMIT_BYTES) -> bytes:
        size = self.size(path)
        if size > max_bytes:
            raise too_large(self._where(path), size=size, max_bytes=max_bytes)
        return bytes(self._retry("read", path, lambda fs, full: fs.cat_file(full)))

    def size(self, path: str) -> int:
        return int(self._info(path)["size"])

    def exists(self, path: str) -> bool:
        try:
            self._info(path)
        except NotFoundError:
            return False
        return True

    def open_input(self, path: str) -> BinaryIO:
        def fetch(start: int, end: int) -> bytes:
            return bytes(self._retry("read", path, lambda fs, full: fs.cat_file(full, start=start, end=end)))

        return cast(BinaryIO, RangedFile(size=self.size(path), fetch=fetch))

    def list(self, directory: str, prefix: str = "") -> Sequence[FileInfo]:
        def ls(fs: Any, full: str) -> Sequence[Mapping[str, Any]]:
            fs.invalidate_cache()  # a listing from a cache would hide other writers' commits
            try:
                return cast(Sequence[Mapping[str, Any]], fs.ls(full, detail=True))
            except OSError as error:
                if is_gone(error):
                    return []
                raise

        infos = []
        root = self._full(directory)
        for info in self._retry("list", directory, ls):
            parent, _, name = str(info["name"]).rstrip("/").rpartition("/")
            # A file that is listed as if it were a directory answers with itself.
            if name.startswith(prefix) and name and parent.strip("/") == root.strip("/"):
                infos.append(_file_info(name, info))
        return sorted(infos, key=lambda info: info.name)

    def names(self, directory: str, prefix: str = "") -> Sequence[str]:
        return [info.name for info in self.list(directory, prefix)]

    # ---- writing

    def write(self, path: str, data: bytes) -> None:
        # Equal bytes may be our own: a client that repeats a request whose answer was lost meets what it made.
        if not self._created(path, data) and not (self.can_publish and self.read(path) == data):
            raise occupied(self._where(path))

    def write_all(self, files: Mapping[str, bytes]) -> None:
        for path, data in files.items():
            self.write(path, data)

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        check_path(path)
        if not self.can_publish:
            raise no_conditional_publish(self.root_uri, "its store has no way to make a file only if it is absent")
        try:
            return self._created(path, data)
        except StorageError as error:
            # Clients repeat requests by themselves: the last answer does not say what became of the first request.
            raise unknown_outcome(self._where(path), error.message) from error

    def publish_alone(self, path: str, data: bytes) -> bool:
        if self.exists(path):
            return False
        if type(self._connected()).mv is AbstractFileSystem.mv:
            # An object store: nothing can be renamed, and what is put appears whole.
            temporary = path
        else:
            directory, slash, _ = path.rpartition("/")
            temporary = f"{directory}{slash}{TEMPORARY_PREFIX}{self._ids.uuid()}"
        try:
            self._create(temporary, lambda fs, full: fs.pipe_file(full, data))
            if temporary != path:
                self._once("publish", path, lambda fs, full: fs.mv(self._full(temporary), full))
        except StorageError as error:
            if error.kind in ("denied", "exhausted"):
                raise
            raise unknown_outcome(self._where(path), error.message) from error
        return True

    def overwrite(self, path: str, data: bytes, *, lasting: bool = True) -> None:
        self._create(path, lambda fs, full: fs.pipe_file(full, data))

    def copy_file(self, old: str, new: str) -> None:
        check_path(old)
        self._create(new, lambda fs, full: fs.cp_file(self._full(old), full))

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        if self.exists(path):
            raise occupied(self._where(path))
        file = self._create(path, lambda fs, full: fs.open(full, "wb"))
        try:
            yield cast(BinaryIO, file)
            file.close()
        except BaseException as error:
            with suppress(Exception):
                file.discard()  # what was uploaded in parts
            with suppress(Exception):
                file.close()
            with suppress(TablestoreError):
                self.delete(path)
            if isinstance(error, OSError) and not isinstance(error, TablestoreError):
                raise translated(error, verb="write", where=self._where(path)) from error
            raise

    # ---- removing

    def delete(self, path: str) -> bool:
        def remove(fs: Any, full: str) -> bool:
            try:
                fs.rm_file(full)
            except OSError as error:
                if is_gone(error):
                    return False
                raise
            return True

        # Looked at first: some file systems report the removal of nothing as a success.
        return self.exists(path) and self._once("delete", path, remove)

    def delete_directory(self, path: str) -> None:
        check_path(path)
        # Name by name, because fsspec's own recursive removal takes "*" and "?" in names for patterns.
        for info in self.list(path):
            below = f"{path}/{info.name}"
            if info.is_dir:
                self.delete_directory(below)
            else:
                self.delete(below)

        def remove(fs: Any, full: str) -> None:
            with suppress(FileNotFoundError, NotImplementedError):
                fs.rmdir(full)

        self._once("delete directory", path, remove)

    def sync(self, directory: str) -> None:
        """Nothing can be done: fsspec has no verb for it."""
        if directory:
            check_path(directory)

    # ---- helpers

    def _forget(self) -> None:
        self._filesystem: Any = None
        self._root = ""
        self._pid = 0

    def _connected(self) -> Any:
        if self._pid != os.getpid():
            protocol = self._url.partition("://")[0]
            resolved_options = {key: resolved(value, f"option {key}") for key, value in self._options.items()}
            try:
                self._filesystem, self._root = url_to_fs(self._url, **resolved_options)
            except ImportError as error:
                raise missing_package(f"{self.root_uri} cannot be opened ({error})", _PACKAGES.get(protocol, protocol)) from error
            except ValueError as error:
                protocols = ", ".join(sorted(fsspec.available_protocols()))
                raise InvalidInputError(
                    f"cannot open {self.root_uri}: {error}; known protocols: {protocols}", kind="path"
                ) from error
            except OSError as error:
                if protocol in ("hdfs", "arrow_hdfs", "viewfs") and error.errno is None:
                    raise UnsupportedError(
                        f"{self.root_uri} cannot be opened: {str(error).splitlines()[0]}; install Java and the native library of "
                        "Hadoop (libhdfs), and set JAVA_HOME, HADOOP_HOME and CLASSPATH to them, or use webhdfs://",
                        kind="missing-library",
                    ) from error
                raise translated(error, verb="open", where=self.root_uri) from error
            except Exception as error:  # every client has errors of its own
                options = f" with the options {', '.join(sorted(self._options))}" if self._options else ""
                raise InvalidInputError(
                    f"cannot open {self.root_uri}{options}: {type(error).__name__}, {_without(error, resolved_options)}; correct "
                    "them",
                    kind="option",
                ) from error
            self._pid = os.getpid()
        return self._filesystem

    def _full(self, path: str) -> str:
        self._connected()
        return join_directory(self._root, path)

    def _where(self, path: str) -> str:
        return join_directory(self.root_uri, path)

    def _once(self, verb: str, path: str, run: Callable[[Any, str], T]) -> T:
        full = self._full(path)
        try:
            return run(self._filesystem, full)
        except OSError as error:
            raise translated(error, verb=verb, where=self._where(path)) from error
        except Exception as error:  # every client has errors of its own
            raise StorageError(
                f"cannot {verb} {self._where(path)}: {error}; check the credentials and options, and whether the store is well"
            ) from error

    def _retry(self, verb: str, path: str, run: Callable[[Any, str], T]) -> T:
        """Like ``_once``, for verbs that change nothing: repeated while the error is transient."""
        return retried(
            lambda: self._once(verb, path, run),
            is_transient=lambda error: isinstance(error, StorageError) and error.kind == "storage",
            clock=self._clock,
            ids=self._ids,
            attempts=FSSPEC_ATTEMPTS,
        )

    def _create(self, path: str, run: Callable[[Any, str], T]) -> T:
        check_path(path)

        def create(fs: Any, full: str) -> T:
            try:
                return run(fs, full)
            except FileNotFoundError:
                # Only where directories are things; an object store might make a bucket of it.
                if self.can_publish:
                    raise
                fs.makedirs(full.rpartition("/")[0], exist_ok=True)
                return run(fs, full)

        return self._once("write", path, create)

    def _info(self, path: str) -> Mapping[str, Any]:
        check_path(path)

        def info(fs: Any, full: str) -> Mapping[str, Any]:
            fs.invalidate_cache()
            return cast(Mapping[str, Any], fs.info(full))

        entry = self._retry("look at", path, info)
        if entry.get("type") != "file":
            raise NotFoundError(f"expected a file at {self._where(path)}, found a directory; check the path")
        return entry

    def _created(self, path: str, data: bytes) -> bool:
        """Make a file; False if there is one. In one step only where that is possible."""
        if not self.can_publish and self.exists(path):
            return False
        mode = {"mode": "create"} if self.can_publish else {}
        try:
            self._create(path, lambda fs, full: fs.pipe_file(full, data, **mode))
        except AlreadyExistsError:
            return False
        return True


def _file_info(name: str, info: Mapping[str, Any]) -> FileInfo:
    is_dir = info.get("type") == "directory"
    moment = next((info[key] for key in _TIME_KEYS if info.get(key)), 0)
    if isinstance(moment, datetime):
        moment = moment.timestamp()
    modified_ms = round(moment * 1000) if isinstance(moment, int | float) else 0
    size = 0 if is_dir else int(info.get("size") or 0)
    return FileInfo(name=name, size=size, modified_ms=modified_ms, is_dir=is_dir)


def _without(error: Exception, options: Mapping[str, Any]) -> str:
    """The text of an error without the values of the options, which may be secrets."""
    return without_secrets(str(error).partition("\n")[0], [str(value) for value in options.values()])
