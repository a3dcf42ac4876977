"""Every file store keeps the contract of file stores: local, memory, S3 (over HTTP), fsspec protocols, and what wraps others."""

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tablestore.errors import NotFoundError, UnsupportedError
from tablestore.ids import SystemIds
from tablestore.io.filestore import FileStore
from tablestore.io.fsspec_store import FsspecFileStore
from tablestore.io.local import LocalFileStore
from tablestore.io.lock.filelock import FileCatalogLock
from tablestore.io.lock.lockedstore import LockedFileStore
from tablestore.io.memory import MemoryFileStore
from tablestore.io.opening import open_store
from tablestore.testing.contracts.filestore import FileStoreContract, PublishContract
from tablestore.testing.files import FaultyFileStore
from tests.support.services import require_service


class TestLocal(FileStoreContract, PublishContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> FileStore:
        return LocalFileStore(tmp_path / "root")


class TestMemory(FileStoreContract, PublishContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[FileStore]:
        yield MemoryFileStore(tmp_path.name)
        MemoryFileStore.forget(tmp_path.name)


class TestS3(FileStoreContract, PublishContract):
    races = 10

    @pytest.fixture
    def store(self, s3_root: FileStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FileStore:
        monkeypatch.setenv("MOTO_S3_DEFAULT_MAX_KEYS", "10")  # a real S3 has pages of 1000
        return s3_root.at(tmp_path.name)


class TestFaultyWithoutFaults(FileStoreContract, PublishContract):
    test_a_store_survives_pickling = None  # a test's own handle on faults stays in its process

    @pytest.fixture
    def store(self, tmp_path: Path) -> FileStore:
        return FaultyFileStore(LocalFileStore(tmp_path / "root"))


class TestFsspecLocal(FileStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> FileStore:
        return FsspecFileStore(f"file://{tmp_path}/root")


class TestFsspecMemory(FileStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> FileStore:
        return FsspecFileStore(f"memory://{tmp_path.name}")


class TestFsspecLocalUnderALock(FileStoreContract, PublishContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> FileStore:
        return locked(FsspecFileStore(f"file://{tmp_path}/root"), tmp_path)


class TestFsspecMemoryUnderALock(FileStoreContract, PublishContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> FileStore:
        return locked(FsspecFileStore(f"memory://{tmp_path.name}"), tmp_path)


if GIVEN := os.environ.get("TABLESTORE_TEST_STORE"):  # one of your own, as CONTRIBUTING.md says

    class TestGiven(FileStoreContract, PublishContract):
        races = 10

        @pytest.fixture
        def store(self) -> FileStore:
            options = json.loads(os.environ.get("TABLESTORE_TEST_STORE_OPTIONS", "{}"))
            return open_store(f"{GIVEN}/{SystemIds().uuid()}", options)


@pytest.fixture(scope="module")
def s3_root() -> Iterator[FileStore]:
    try:
        from tablestore.io.s3 import S3FileStore
        from tests.support.s3 import FakeS3

        server = FakeS3().__enter__()
    except ImportError as error:
        require_service(f"no S3 to test with ({error})", "pip install 'managed-tablestore[dev]'", env=os.environ)
    try:
        yield S3FileStore(server.make_bucket("conformance"), server.options)
    finally:
        server.__exit__(None, None, None)


def locked(store: FileStore, directory: Path) -> FileStore:
    return LockedFileStore(store, FileCatalogLock(directory=f"{directory}/locks", longest_wait_s=0.01))


@pytest.mark.parametrize("protocol", ["memory", "file"])
def test_a_store_that_cannot_publish_safely_refuses_and_names_the_lock(tmp_path: Path, protocol: str) -> None:
    store = FsspecFileStore(f"{protocol}://{tmp_path}/root")
    assert not store.can_publish
    with pytest.raises(UnsupportedError, match=r"catalog\.lock\.type") as refused:
        store.publish_if_absent("snapshot/snapshot-1", b"mine")
    assert refused.value.kind == "no-conditional-publish"
    assert not store.list("")


def test_no_secret_is_shown() -> None:
    store = FsspecFileStore("memory://place", {"password": "canary"})
    with pytest.raises(NotFoundError) as gone:
        store.read("missing")
    assert "canary" not in f"{store!r} {store.root_uri} {gone.value} {vars(gone.value)}"
