"""Tables on stores without conditional publish: written under a lock that all writers share, refused without one."""

import errno
import json
import os
import pickle
import subprocess
import sys
from pathlib import Path

import fsspec
import pyarrow as pa
import pytest
from fsspec.implementations.local import LocalFileSystem

import tablestore as ts
from tablestore.cli.command import parse_storage
from tablestore.distributed.read import pin_read
from tablestore.distributed.spec import TableSpec
from tablestore.errors import StorageError, UnsupportedError
from tablestore.io import rename
from tablestore.io.fsspec_store import FsspecFileStore
from tablestore.io.lock.lockedstore import LockedFileStore, lock_place
from tablestore.io.lock.sqllock import SqlCatalogLock
from tablestore.io.opening import open_store

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("who", pa.string())])
# Files that only fsspec knows how to reach, as those of a mounted SFTP server.
WRITER = """
import json, sys
import fsspec, pyarrow as pa
from fsspec.implementations.local import LocalFileSystem
import tablestore as ts

class Bare(LocalFileSystem):
    protocol = "bare"

fsspec.register_implementation("bare", Bare)
where, options, who, rounds = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3], int(sys.argv[4])
table = ts.open_table(where, **options)
print("ready", flush=True)
sys.stdin.readline()
for n in range(rounds):
    table.append(pa.table({"id": pa.array([n]), "who": [who]}, schema=table.scan().to_arrow().schema))
"""


class Bare(LocalFileSystem):
    """A protocol without a way to make a file only if it is absent."""

    protocol = "bare"


@pytest.fixture(autouse=True)
def bare() -> None:
    fsspec.register_implementation("bare", Bare, clobber=True)


@pytest.fixture(params=["file", pytest.param("sql", marks=pytest.mark.slow)])
def options(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, str]:
    location = f"{tmp_path}/locks" if request.param == "file" else f"sqlite:///{tmp_path}/locks.db"
    return {"catalog.lock.type": request.param, "catalog.lock.location": location, "catalog.lock.check-interval": "20 ms"}


def make_table(uri: str, options: dict[str, str], **given: object) -> ts.Table:
    catalog = ts.open_catalog(uri, **options)
    catalog.create_database("db")
    return catalog.create_table("db.t", SCHEMA, **given)


def files_in(path: Path) -> list[Path]:
    return sorted(found for found in path.rglob("*") if found.is_file())


def rows_of(table: ts.Table) -> list[tuple[int, str]]:
    found = table.scan().to_arrow()
    return sorted(zip(found["id"].to_pylist(), found["who"].to_pylist(), strict=True))


@pytest.mark.deep
def test_interleaved_commits_of_two_processes_lose_nothing(tmp_path: Path, options: dict[str, str]) -> None:
    make_table(f"bare://{tmp_path}/wh", options)
    # One names the table's directory in another way: the lock is the same.
    places = (f"bare://{tmp_path}/wh/db.db/t", f"bare://{tmp_path}//wh/db.db/t/")
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, place, json.dumps(options), who, "6"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for place, who in zip(places, "ab", strict=True)
    ]
    for writer in writers:
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=120)
        assert writer.returncode == 0
    table = ts.open_table(places[0], **options)
    assert rows_of(table) == [(n, who) for n in range(6) for who in "ab"]
    snapshots = table.snapshots()
    assert [snapshot.id for snapshot in snapshots] == list(range(1, len(snapshots) + 1))
    assert sum(snapshot.commit_kind == "APPEND" for snapshot in snapshots) == 12


def test_without_a_lock_the_table_is_read_and_a_write_is_refused_before_it_begins(tmp_path: Path, options: dict[str, str]) -> None:
    table = make_table(f"bare://{tmp_path}/wh", options, primary_key=["id"])
    table.upsert(pa.table({"id": [1], "who": ["x"]}, schema=SCHEMA))
    unlocked = ts.open_catalog(f"bare://{tmp_path}/wh").table("db.t")
    assert rows_of(unlocked) == [(1, "x")]
    before = files_in(tmp_path)
    for write in (
        lambda: unlocked.upsert(pa.table({"id": [2], "who": ["y"]}, schema=SCHEMA)),
        lambda: unlocked.delete("id = 1"),
        lambda: unlocked.compact(full=True),
        lambda: unlocked.create_tag("v1"),
        lambda: ts.open_catalog(f"bare://{tmp_path}/wh").create_database("other"),
    ):
        with pytest.raises(UnsupportedError, match=r"catalog\.lock\.type") as refused:
            write()
        assert refused.value.kind == "no-conditional-publish"
    assert files_in(tmp_path) == before


def test_all_that_publishes_works_under_the_lock(tmp_path: Path, options: dict[str, str]) -> None:
    table = make_table(f"bare://{tmp_path}/wh", options, primary_key=["id"])
    for n in range(4):
        table.upsert(pa.table({"id": [n % 2], "who": [str(n)]}, schema=SCHEMA))
    table.create_tag("v1")
    table.create_branch("b", tag="v1")
    table.compact(full=True)
    table.expire_snapshots(retain_max=1, retain_min=1)
    table.remove_orphan_files(dry_run=False)
    assert rows_of(table) == [(0, "2"), (1, "3")]
    assert not list(tmp_path.rglob("wh/**/.tmp-*"))


def test_a_task_of_another_process_finds_the_lock_by_its_options(tmp_path: Path, options: dict[str, str]) -> None:
    table = make_table(f"bare://{tmp_path}/wh", options)
    spec: TableSpec = pickle.loads(pickle.dumps(TableSpec(location=table.location, storage_options=options)))
    spec.table().append(pa.table({"id": [1], "who": ["x"]}, schema=SCHEMA))
    assert pin_read(table, spec).snapshot_id == 1
    files = pickle.loads(pickle.dumps(table.context.files))
    assert isinstance(files, LockedFileStore) and files.publish_if_absent("consumer/x", b"") is True


def test_a_local_file_system_without_links_and_exclusive_renames_is_written_under_a_lock(
    tmp_path: Path, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", link)
    monkeypatch.setattr(rename.ctypes, "CDLL", lambda *args, **kwargs: object())
    with pytest.raises(UnsupportedError, match=r"catalog\.lock\.type"):
        make_table(f"{tmp_path}/refused", {})
    table = make_table(f"{tmp_path}/wh", options)
    table.append(pa.table({"id": [1], "who": ["x"]}, schema=SCHEMA))
    assert rows_of(table) == [(1, "x")]
    assert open_store(table.location, options).publish_if_absent("snapshot/snapshot-1", b"") is False
    monkeypatch.setattr(os, "rename", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    with pytest.raises(StorageError) as full:
        open_store(table.location, options).publish_if_absent("snapshot/snapshot-2", b"")
    assert full.value.kind == "exhausted", "the name was certainly not made"
    with pytest.raises(UnsupportedError, match="no rename that does not replace"):
        ts.open_catalog(f"{tmp_path}/wh", **options).rename_table("db.t", "db.u")


def test_a_table_on_local_files_is_renamed_under_a_lock_as_without(tmp_path: Path, options: dict[str, str]) -> None:
    make_table(f"{tmp_path}/wh", options).append(pa.table({"id": [1], "who": ["x"]}, schema=SCHEMA))
    catalog = ts.open_catalog(f"{tmp_path}/wh", **options)
    catalog.rename_table("db.t", "db.u")
    assert rows_of(catalog.table("db.u")) == [(1, "x")] and catalog.list_tables("db") == ("u",)


def test_a_publish_whose_lock_was_lost_is_settled_by_looking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(f"bare://{tmp_path}/wh", {"catalog.lock.type": "sql", "catalog.lock.location": f"sqlite:///{tmp_path}/l.db"})
    held, lost = SqlCatalogLock.run_with_lock, []

    def lose(lock: SqlCatalogLock, place: str, run: object) -> object:
        found = held(lock, place, run)  # type: ignore[arg-type]
        if place.endswith("snapshot") and not lost:
            lost.append(place)
            raise StorageError("the lock was lost", kind="unknown-outcome")
        return found

    monkeypatch.setattr(SqlCatalogLock, "run_with_lock", lose)
    snapshot = table.append(pa.table({"id": [1], "who": ["x"]}, schema=SCHEMA))
    assert snapshot is not None and snapshot.id == 1 and len(lost) == 1
    assert [one.uuid for one in table.snapshots()] == [snapshot.uuid] and rows_of(table) == [(1, "x")]


def test_a_rename_whose_answer_is_lost_is_an_unknown_outcome_that_leaves_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FsspecFileStore(f"bare://{tmp_path}/wh")
    moved = Bare.mv

    def mv(*args: object, **given: object) -> None:
        moved(*args, **given)
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Bare, "mv", mv)
    with pytest.raises(StorageError) as failed:
        store.publish_alone("snapshot/snapshot-1", b"mine")
    assert failed.value.kind == "unknown-outcome"
    assert store.publish_alone("snapshot/snapshot-1", b"mine") is False and store.read("snapshot/snapshot-1") == b"mine"
    assert store.names("snapshot") == ["snapshot-1"]


@pytest.mark.parametrize(
    ("root", "path", "place"),
    [
        ("sftp://host/wh", "shop.db/orders/snapshot/snapshot-1", "shop.db/orders/snapshot"),
        ("sftp://host/wh/shop.db/orders", "snapshot/snapshot-1", "shop.db/orders/snapshot"),
        ("sftp://other-name/wh/shop.db//orders/", "snapshot/snapshot-1", "shop.db/orders/snapshot"),
        ("memory://name", "file", "name"),
        ("/", "file", "root"),
    ],
)
def test_however_a_place_is_spelt_its_lock_is_the_same(root: str, path: str, place: str) -> None:
    assert lock_place(root, path) == place


def test_a_link_to_a_table_has_the_lock_of_the_table(tmp_path: Path) -> None:
    (tmp_path / "wh" / "db.db" / "t").mkdir(parents=True)
    (tmp_path / "short").symlink_to(tmp_path / "wh" / "db.db" / "t")
    assert lock_place(f"{tmp_path}/short", "snapshot/snapshot-1") == "db.db/t/snapshot"


def test_the_command_line_takes_the_options_of_the_lock() -> None:
    assert parse_storage(["catalog.lock.type=file", "client_kwargs.region_name=x"]) == {
        "catalog.lock.type": "file",
        "client_kwargs": {"region_name": "x"},
    }
