"""The base of file stores around another one: what it does not change, it hands on, under the path that the inner store knows."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from tablestore.io.filestore import (
    READ_LIMIT_BYTES,
    CopiesFiles,
    ExchangesDirectories,
    FileInfo,
    FileStore,
    RenamesDirectories,
)

if TYPE_CHECKING:
    import pyarrow as pa

_ABILITIES = (
    (RenamesDirectories, "rename_directory"),
    (ExchangesDirectories, "exchange_directories"),
    (CopiesFiles, "copy_file"),
)


@dataclass(frozen=True)
class WrappedFileStore:
    """``inner``, with every verb as it is there; subclasses change some, or the paths."""

    inner: FileStore

    def keep_abilities(self) -> None:
        """Has what ``inner`` can beyond the protocol, under the same paths: callers look whether it is there."""
        for ability, verb in _ABILITIES:
            if isinstance(self.inner, ability):
                object.__setattr__(self, verb, getattr(self.inner, verb))

    def real_path(self, path: str) -> str:
        """The path of a file or directory in ``inner``."""
        return path

    @property
    def root_uri(self) -> str:
        return self.inner.root_uri

    @property
    def can_publish(self) -> bool:
        return self.inner.can_publish

    def read(self, path: str, *, max_bytes: int = READ_LIMIT_BYTES) -> bytes:
        return self.inner.read(self.real_path(path), max_bytes=max_bytes)

    def size(self, path: str) -> int:
        return self.inner.size(self.real_path(path))

    def exists(self, path: str) -> bool:
        return self.inner.exists(self.real_path(path))

    def open_input(self, path: str) -> "pa.NativeFile | BinaryIO":
        return self.inner.open_input(self.real_path(path))

    def open_output(self, path: str) -> AbstractContextManager[BinaryIO]:
        return self.inner.open_output(self.real_path(path))

    def write(self, path: str, data: bytes) -> None:
        self.inner.write(self.real_path(path), data)

    def write_all(self, files: Mapping[str, bytes]) -> None:
        self.inner.write_all({self.real_path(path): data for path, data in files.items()})

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        return self.inner.publish_if_absent(self.real_path(path), data)

    def overwrite(self, path: str, data: bytes, *, lasting: bool = True) -> None:
        self.inner.overwrite(self.real_path(path), data, lasting=lasting)

    def list(self, directory: str, prefix: str = "") -> Sequence[FileInfo]:
        return self.inner.list(self.real_path(directory), prefix)

    def names(self, directory: str, prefix: str = "") -> Sequence[str]:
        return self.inner.names(self.real_path(directory), prefix)

    def delete(self, path: str) -> bool:
        return self.inner.delete(self.real_path(path))

    def delete_directory(self, path: str) -> None:
        self.inner.delete_directory(self.real_path(path))

    def sync(self, directory: str) -> None:
        self.inner.sync(self.real_path(directory))

    def at(self, path: str) -> FileStore:
        return self.inner.at(self.real_path(path))
