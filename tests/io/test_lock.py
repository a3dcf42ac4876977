"""Catalog locks: one at a time for each place, gone with their holder, and never a soft one."""

import errno
import os
import pickle
import sqlite3
from pathlib import Path
from typing import Any

import filelock
import pytest

from tablestore.errors import InvalidInputError, StorageError, UnsupportedError
from tablestore.io.lock.cataloglock import CatalogLock
from tablestore.io.lock.filelock import FileCatalogLock
from tablestore.io.lock.lockoptions import OPTIONS, parse_lock
from tablestore.io.lock.sqllock import SqlCatalogLock
from tablestore.testing.contracts.cataloglock import CatalogLockContract
from tablestore.testing.deterministic import ManualClock


class TestFileLock(CatalogLockContract):
    @pytest.fixture
    def lock(self, tmp_path: Path) -> CatalogLock:
        return FileCatalogLock(directory=str(tmp_path / "locks"), longest_wait_s=0.01)

    @pytest.fixture
    def impatient(self, tmp_path: Path) -> CatalogLock:
        return FileCatalogLock(directory=str(tmp_path / "locks"), timeout_s=5, clock=ManualClock())


class TestSqlLock(CatalogLockContract):
    test_places_do_not_wait_for_each_other = None  # SQLite has one lock for all of a database

    @pytest.fixture
    def lock(self, tmp_path: Path) -> CatalogLock:
        return SqlCatalogLock(url=f"sqlite:///{tmp_path}/locks.db", longest_wait_s=0.01)

    @pytest.fixture
    def impatient(self, tmp_path: Path) -> CatalogLock:
        return SqlCatalogLock(url=f"sqlite:///{tmp_path}/locks.db", timeout_s=5, clock=ManualClock())


@pytest.mark.parametrize("kind", ["file", "sql"])
def test_a_time_out_names_the_option_that_raises_it(tmp_path: Path, kind: str) -> None:
    clock = ManualClock()
    lock: CatalogLock = FileCatalogLock(directory=str(tmp_path), timeout_s=5, clock=clock)
    if kind == "sql":
        lock = SqlCatalogLock(url=f"sqlite:///{tmp_path}/locks.db", timeout_s=5, clock=clock)
    with pytest.raises(StorageError, match=r"5 s.*catalog\.lock\.acquire-timeout"):
        lock.run_with_lock("db/t", lambda: lock.run_with_lock("db/t", lambda: None))


# ---- files


def test_the_lock_is_never_a_soft_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert filelock.FileLock is not filelock.SoftFileLock

    def flock(*args: Any) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(UnsupportedError, match="flock") as refused:
        FileCatalogLock(directory=str(tmp_path)).run_with_lock("db/t", lambda: pytest.fail("ran without a lock"))
    assert refused.value.kind == "no-file-locks"


def test_a_directory_that_cannot_be_written_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="cannot lock"):
        FileCatalogLock(directory=str(tmp_path / "file")).run_with_lock("db/t", lambda: None)


@pytest.mark.parametrize("place", ["../t", "db/../../t", "/t", "db/a\0b", ""])
def test_hostile_places_touch_nothing(tmp_path: Path, place: str) -> None:
    with pytest.raises(InvalidInputError):
        FileCatalogLock(directory=str(tmp_path / "locks")).run_with_lock(place, lambda: None)
    assert list(tmp_path.iterdir()) == []


# ---- databases


def test_a_lock_that_is_lost_while_it_is_held_is_an_unknown_outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlalchemy as sa

    def commit(connection: sa.Connection) -> None:
        raise sa.exc.OperationalError("COMMIT", None, ConnectionError("server closed the connection"))

    lock = SqlCatalogLock(url=f"sqlite:///{tmp_path}/locks.db")
    ran: list[str] = []
    with pytest.raises(StorageError, match="server closed") as failed:

        def publish() -> None:
            ran.append("published")
            monkeypatch.setattr(sa.Connection, "commit", commit)

        lock.run_with_lock("db/t", publish)
    assert failed.value.kind == "unknown-outcome" and ran == ["published"]
    monkeypatch.undo()
    assert lock.run_with_lock("db/t", lambda: "free again") == "free again"


def test_every_holder_leaves_a_higher_token_and_only_that(tmp_path: Path) -> None:
    lock = SqlCatalogLock(url=f"sqlite:///{tmp_path}/locks.db")
    for place in ("a", "a", "é" * 300, "a"):
        lock.run_with_lock(place, lambda: None)
    with pytest.raises(ZeroDivisionError):
        lock.run_with_lock("a", lambda: 1 // 0)
    database = sqlite3.connect(tmp_path / "locks.db")
    try:
        assert dict(database.execute("select place, token from tablestore_locks")) == {"a": 3, "é" * 255: 1}
    finally:
        database.close()


def test_no_message_shows_the_password_of_the_database(tmp_path: Path) -> None:
    lock = SqlCatalogLock(url=f"sqlite://user:canary@/{tmp_path}/locks.db", timeout_s=0)
    assert "canary" not in repr(lock)
    with pytest.raises(InvalidInputError, match=r"catalog\.lock\.location") as refused:
        SqlCatalogLock(url="nonsense-canary", timeout_s=0)
    assert "canary" not in str(refused.value)
    with pytest.raises(InvalidInputError, match=r"catalog\.lock\.location") as refused:
        SqlCatalogLock(url="sqlite://user:canary@/locks.db", timeout_s=0)
    assert "canary" not in str(refused.value)


def test_a_database_that_cannot_be_reached_is_a_time_out_that_says_why(tmp_path: Path) -> None:
    lock = SqlCatalogLock(url=f"sqlite:///{tmp_path}/no/such/directory.db", timeout_s=1, clock=ManualClock())
    with pytest.raises(StorageError, match="unable to open database file") as failed:
        lock.run_with_lock("a", lambda: None)
    assert failed.value.kind == "lock-timeout"


# ---- options


def test_options_make_the_lock_and_leave_the_rest(tmp_path: Path) -> None:
    given = {
        "catalog.lock.type": "file",
        "catalog.lock.location": str(tmp_path),
        "catalog.lock.acquire-timeout": "2 min",
        "catalog.lock.check-interval": "50 ms",
        "key": "k",
    }
    lock, rest = parse_lock(given)
    assert isinstance(lock, FileCatalogLock) and rest == {"key": "k"}
    assert (lock.directory, lock.timeout_s, lock.longest_wait_s) == (str(tmp_path), 120, 0.05)
    assert pickle.loads(pickle.dumps(lock)).run_with_lock("db/t", lambda: 1) == 1
    sql, _ = parse_lock({"catalog.lock.type": "SQL", "catalog.lock.location": "sqlite:////x.db"})
    assert isinstance(sql, SqlCatalogLock) and (sql.timeout_s, sql.longest_wait_s) == (60, 0.25)
    assert parse_lock({"key": "k"}) == (None, {"key": "k"})


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"catalog.lock.type": "file"}, r"without catalog\.lock\.location"),
        ({"catalog.lock.location": "/x"}, r"without catalog\.lock\.type"),
        ({"catalog.lock.type": "hive", "catalog.lock.location": "/x"}, "file"),
        ({"catalog.lock.type": "file", "catalog.lock.location": None}, r"without catalog\.lock\.location"),
        ({"catalog.lock.type": None, "catalog.lock.location": "/x"}, r"without catalog\.lock\.type"),
        ({"catalog.lock.typ": "file"}, "did you mean 'catalog.lock.type'"),
        ({"catalog.lock.typ": None}, "did you mean 'catalog.lock.type'"),
        ({"catalog.lock.type": "file", "catalog.lock.location": "/x", "catalog.lock.acquire-timeout": "soon"}, "duration"),
        ({"catalog.lock.type": "file", "catalog.lock.location": "/x", "catalog.lock.check-interval": "0"}, "at least 1"),
    ],
)
def test_options_that_make_no_lock_are_refused(given: dict[str, str | None], named: str) -> None:
    with pytest.raises(InvalidInputError, match=named):
        parse_lock(given)


def test_an_option_that_is_none_counts_as_not_given(tmp_path: Path) -> None:
    lock, _ = parse_lock({**dict.fromkeys(OPTIONS), "catalog.lock.type": "file", "catalog.lock.location": tmp_path})
    assert isinstance(lock, FileCatalogLock)
    assert (lock.directory, lock.timeout_s, lock.longest_wait_s) == (str(tmp_path), 60, 0.25)
    assert parse_lock({**dict.fromkeys(OPTIONS), "key": None}) == (None, {"key": None})


@pytest.mark.parametrize(
    ("kind", "location"),
    [
        *(("file", location) for location in ("locks", "../locks", "~nobody-has-this-name/locks", "file:///locks", " /x")),
        *(("sql", location) for location in ("sqlite:///locks.db", "sqlite:///./locks.db", "sqlite:///file:locks.db?uri=true")),
        *(("sql", location) for location in ("sqlite://", "sqlite:///:memory:", "sqlite:///file::memory:?uri=true")),
    ],
)
def test_a_location_that_differs_between_working_directories_is_refused(kind: str, location: str) -> None:
    with pytest.raises(InvalidInputError, match=r"catalog\.lock\.location.*every writer must see the same") as refused:
        parse_lock({"catalog.lock.type": kind, "catalog.lock.location": location})
    assert refused.value.kind == "invalid-option"


def test_locations_below_the_home_directory_and_urls_of_files_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    lock, _ = parse_lock({"catalog.lock.type": "file", "catalog.lock.location": "~/a/../locks"})
    assert isinstance(lock, FileCatalogLock) and lock.directory == f"{tmp_path}/locks"
    url = f"sqlite:///file:{tmp_path}/locks.db?uri=true"
    sql, _ = parse_lock({"catalog.lock.type": "sql", "catalog.lock.location": url})
    assert sql is not None and sql.run_with_lock("db/t", lambda: 1) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["locks.db"]
