"""Catalog locks: one at a time for each table, gone with their holder, and never a soft one."""

import errno
import os
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import filelock
import pytest

from tablestore.catalog.lock import FileCatalogLock, FileLockFactory, NoLock
from tablestore.errors import InvalidInputError, StorageError, UnsupportedError
from tablestore.testing.deterministic import ManualClock

HOLDER = """
import sys
from tablestore.catalog.lock import FileCatalogLock

def hold():
    print("held", flush=True)
    sys.stdin.read()

FileCatalogLock(sys.argv[1]).run_with_lock("db", "t", hold)
"""


@pytest.fixture
def lock(tmp_path: Path) -> FileCatalogLock:
    return FileCatalogLock(tmp_path / "locks", timeout_s=5, clock=ManualClock())


def test_the_result_and_the_error_of_what_ran_come_through(lock: FileCatalogLock) -> None:
    assert lock.run_with_lock("db", "t", lambda: 42) == 42
    with pytest.raises(ZeroDivisionError) as kept:  # its traceback keeps the frame, and all that is in it, alive
        lock.run_with_lock("db", "t", lambda: 1 // 0)
    assert lock.run_with_lock("db", "t", lambda: "free again") == "free again"
    assert kept.tb is not None


def test_one_at_a_time_among_threads(tmp_path: Path) -> None:
    lock = FileCatalogLock(tmp_path)
    inside = threading.Semaphore(1)
    total = 0

    def work() -> None:
        nonlocal total
        assert inside.acquire(blocking=False), "two were inside at once"
        total += 1
        inside.release()

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(lock.run_with_lock, "db", "t", work) for _ in range(40)]:
            done.result()
    assert total == 40


def test_tables_do_not_wait_for_each_other(lock: FileCatalogLock) -> None:
    def inner(database: str, table: str) -> str:
        return lock.run_with_lock(database, table, lambda: f"{database}.{table}")

    assert lock.run_with_lock("db", "t", lambda: inner("db", "u")) == "db.u"
    assert lock.run_with_lock("db", "t", lambda: inner("other", "t")) == "other.t"


def test_a_lock_that_is_not_free_ends_in_a_time_out_without_running(tmp_path: Path, lock: FileCatalogLock) -> None:
    ran: list[str] = []

    def attempt() -> None:
        # Another thread, as a second writer would be.
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lock.run_with_lock, "db", "t", lambda: ran.append("ran")).result()

    with pytest.raises(StorageError, match="5 s") as failed:
        lock.run_with_lock("db", "t", attempt)
    assert failed.value.kind == "lock-timeout"
    assert ran == []


def test_asking_again_while_holding_it_ends_in_a_time_out(lock: FileCatalogLock) -> None:
    with pytest.raises(StorageError) as failed:
        lock.run_with_lock("db", "t", lambda: lock.run_with_lock("db", "t", lambda: None))
    assert failed.value.kind == "lock-timeout"


def test_another_process_is_kept_out_and_its_death_frees_the_lock(tmp_path: Path) -> None:
    lock = FileCatalogLock(tmp_path, timeout_s=5, clock=ManualClock())
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StorageError, match="holder") as failed:
            lock.run_with_lock("db", "t", lambda: None)
        assert failed.value.kind == "lock-timeout"
        holder.kill()
        holder.wait()
        assert lock.run_with_lock("db", "t", lambda: "mine") == "mine"


def test_the_lock_is_never_a_soft_one(tmp_path: Path, lock: FileCatalogLock, monkeypatch: pytest.MonkeyPatch) -> None:
    assert filelock.FileLock is not filelock.SoftFileLock

    def flock(*args: Any) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("fcntl.flock", flock)
    with pytest.raises(UnsupportedError, match="flock") as refused:
        lock.run_with_lock("db", "t", lambda: pytest.fail("ran without a lock"))
    assert refused.value.kind == "no-file-locks"


def test_a_directory_that_cannot_be_written_is_a_typed_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StorageError, match="cannot lock"):
        FileCatalogLock(tmp_path / "file").run_with_lock("db", "t", lambda: None)


@pytest.mark.parametrize(("database", "table"), [("..", "t"), ("db", "../../t"), ("", "t"), ("db", "a\0b")])
def test_hostile_names_touch_nothing(tmp_path: Path, database: str, table: str) -> None:
    with pytest.raises(InvalidInputError):
        FileCatalogLock(tmp_path / "locks").run_with_lock(database, table, lambda: None)
    assert list(tmp_path.iterdir()) == []


def test_factories_cross_processes(tmp_path: Path) -> None:
    factory = pickle.loads(pickle.dumps(FileLockFactory(directory=str(tmp_path), timeout_s=1.5)))
    assert factory.create().run_with_lock("db", "t", lambda: 1) == 1
    assert (tmp_path / "db" / "t.lock").exists()
    assert pickle.loads(pickle.dumps(NoLock())).create().run_with_lock("db", "t", lambda: 2) == 2
