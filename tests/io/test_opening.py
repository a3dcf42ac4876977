"""Which store a URI opens."""

import subprocess
import sys
from pathlib import Path
from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.io.fsspec_store import FsspecFileStore
from tablestore.io.local import LocalFileStore
from tablestore.io.memory import MemoryFileStore
from tablestore.io.opening import open_store
from tablestore.io.s3 import S3FileStore


@pytest.mark.parametrize("form", ["{}", "file://{}", "file://localhost{}", "local://{}"])
def test_a_path_or_file_url_opens_local_files(tmp_path: Path, form: str) -> None:
    store = open_store(form.format(tmp_path))
    assert isinstance(store, LocalFileStore)
    assert store.root_uri == str(tmp_path)
    store.write("file", b"x")
    assert (tmp_path / "file").read_bytes() == b"x"


def test_a_path_object_and_a_home_directory_open_local_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert open_store(tmp_path / "wh").root_uri == f"{tmp_path}/wh"
    assert open_store("~/wh").root_uri == f"{tmp_path}/wh"


def test_a_file_url_is_unquoted_and_has_no_query(tmp_path: Path) -> None:
    assert open_store(f"file://{tmp_path}/a%20b?c#d").root_uri == f"{tmp_path}/a b?c#d"


def test_opening_creates_nothing(tmp_path: Path) -> None:
    open_store(tmp_path / "not" / "yet")
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_refused_as_a_root(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for uri in (str(tmp_path / "file"), f"file://{tmp_path}/file"):
        with pytest.raises(InvalidInputError, match="found a file"):
            open_store(uri)


@pytest.mark.parametrize("uri", ["", "file://host/share", "file://relative", "memory://", "memory://a/../b", "s3://"])
def test_a_uri_without_a_usable_place_is_refused(uri: str) -> None:
    with pytest.raises(InvalidInputError):
        open_store(uri)


def test_a_memory_url_opens_a_named_space(tmp_path: Path) -> None:
    store = open_store(f"memory://{tmp_path.name}/wh/db")
    assert isinstance(store, MemoryFileStore)
    store.write("file", b"x")
    assert open_store(f"memory://{tmp_path.name}").read("wh/db/file") == b"x"
    MemoryFileStore.forget(tmp_path.name)
    assert not store.exists("file")


@pytest.mark.parametrize("scheme", ["s3", "s3a"])
def test_an_s3_url_opens_s3_without_asking_it_anything(scheme: str) -> None:
    store = open_store(f"{scheme}://bucket/wh", {"key": "k", "secret": "s", "endpoint_url": "http://127.0.0.1:1"})
    assert isinstance(store, S3FileStore)
    assert store.root_uri == f"{scheme}://bucket/wh"


class Elsewhere(MemoryFileSystem):
    """A protocol that only fsspec knows."""

    protocol = "elsewhere"
    store: ClassVar[dict[str, object]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(MemoryFileSystem._strip_protocol(path.replace("elsewhere://", "memory://")))


def test_other_protocols_go_through_fsspec_and_need_a_lock_to_publish(tmp_path: Path) -> None:
    fsspec.register_implementation("elsewhere", Elsewhere, clobber=True)
    uri = f"elsewhere://{tmp_path.name}/wh"
    store = open_store(uri)
    assert isinstance(store, FsspecFileStore)
    with pytest.raises(UnsupportedError):
        store.publish_if_absent("snapshot/one", b"x")
    locked = open_store(uri, {"catalog.lock.type": "file", "catalog.lock.location": str(tmp_path)})
    assert locked.at("snapshot").publish_if_absent("one", b"x")
    assert (tmp_path / tmp_path.name / "wh" / "snapshot" / ".lock").exists()
    assert store.read("snapshot/one") == b"x"
    assert list(Elsewhere.store) == [f"/{tmp_path.name}/wh/snapshot/one"]


def test_chained_urls_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="chain"):
        open_store(f"dir::file://{tmp_path}")


def test_an_unknown_protocol_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="known protocols"):
        open_store("nonsense://place")


def test_credentials_in_a_url_are_not_shown() -> None:
    store = FsspecFileStore("memory://user:canary@place/wh")
    assert "canary" not in f"{store!r} {store.root_uri}"


def test_local_stores_do_not_load_the_clients_of_remote_ones() -> None:
    code = (
        "import sys; from tablestore.io.opening import open_store; open_store('/tmp');"
        "print({'fsspec', 'filelock', 'sqlalchemy', 's3fs', 'botocore', 'tenacity'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
