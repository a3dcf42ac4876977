"""fsspec: which protocols publish without a lock, and what the errors of their clients mean."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import _registry

from tablestore.errors import AlreadyExistsError, NotFoundError, StorageError
from tablestore.io.fsspec_store import FsspecFileStore
from tablestore.testing.deterministic import ManualClock


class Cloud(MemoryFileSystem):
    """Stands for the file system of Google Cloud Storage: in memory, with errors on request."""

    protocol = "gs"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    after: ClassVar[list[Exception]] = []
    """Raised after the next requests were applied."""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(MemoryFileSystem._strip_protocol(path.replace("gs://", "memory://")))

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **_: Any) -> None:
        super().pipe_file(path, value, mode=mode)
        if self.after:
            raise self.after.pop()

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        if self.after:
            raise self.after.pop()
        return bytes(super().cat_file(path, start, end))


class ClientError(Exception):
    """No OSError, as those of many clients."""


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FsspecFileStore]:
    monkeypatch.setitem(_registry, "gs", Cloud)
    yield FsspecFileStore(f"gs://{tmp_path.name}", clock=ManualClock())
    Cloud.after.clear()


def test_a_cloud_store_publishes_without_a_lock_and_replaces_nothing(store: FsspecFileStore) -> None:
    assert store.can_publish and store.at("deeper").can_publish
    assert store.publish_if_absent("snapshot/1", b"mine") is True
    assert store.publish_if_absent("snapshot/1", b"mine") is False
    with pytest.raises(AlreadyExistsError):
        store.write("snapshot/1", b"other")
    assert store.read("snapshot/1") == b"mine"


@pytest.mark.parametrize("error", [ClientError("503"), TimeoutError("lost"), PermissionError("after a lost answer")])
def test_a_publish_that_fails_has_an_unknown_outcome(store: FsspecFileStore, error: Exception) -> None:
    Cloud.after.append(error)
    with pytest.raises(StorageError, match="same bytes") as failed:
        store.publish_if_absent("snapshot/1", b"mine")
    assert failed.value.kind == "unknown-outcome"
    assert store.publish_if_absent("snapshot/1", b"mine") is False


def test_a_write_that_meets_itself_has_succeeded(store: FsspecFileStore) -> None:
    store.publish_if_absent("manifest", b"mine")
    store.write("manifest", b"mine")


@pytest.mark.parametrize("verb", [lambda store: store.read("file"), lambda store: store.overwrite("file", b"y")])
def test_an_error_of_a_client_is_ours(store: FsspecFileStore, verb: Callable[[FsspecFileStore], object]) -> None:
    store.write("file", b"x")
    Cloud.after.extend(ClientError("503") for _ in range(5))
    with pytest.raises(StorageError, match="503"):
        verb(store)


def test_nothing_is_made_to_hold_a_file_that_cannot_be_written(store: FsspecFileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_bucket(*_: object, **__: object) -> None:
        raise FileNotFoundError("no such bucket")

    monkeypatch.setattr(Cloud, "pipe_file", no_bucket)
    monkeypatch.setattr(Cloud, "makedirs", lambda *_, **__: pytest.fail("made a bucket"))
    with pytest.raises(NotFoundError):
        store.publish_if_absent("snapshot/1", b"mine")
