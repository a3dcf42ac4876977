"""Who may commit to a table right now? A :class:`CatalogLock` says, around the publish of one snapshot.

    lock = factory.create()
    lock.run_with_lock("shop", "orders", lambda: store.publish_if_absent(path, data))

Where the store publishes conditionally the lock is an optimisation: it saves lost races, and a lock wrongly
believed to be held loses nothing. Where the store cannot (``FileStore.can_publish`` is false) the lock is what
keeps commits apart, so it has to be one that the operating system takes back when its holder dies: never a mere
file whose existence means "locked", which a crash leaves behind and a cleaner removes under a sleeping holder.

What crosses processes is the factory, a plain value; a lock that is held never does.
"""

import errno
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from filelock import FileLock, Timeout

from tablestore.clock import Clock, SystemClock
from tablestore.errors import StorageError, UnsupportedError
from tablestore.io.filestore import join_inside

T = TypeVar("T")

LOCK_TIMEOUT_S = 60.0
_NO_LOCKS = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK})
_FIRST_WAIT_S = 0.005
_LONGEST_WAIT_S = 0.25


class CatalogLock(Protocol):
    """Runs one thing at a time for each table."""

    def run_with_lock(self, database: str, table: str, run: Callable[[], T]) -> T:
        """What ``run`` returns, run while no other holder of this table's lock runs.

        StorageError of kind "lock-timeout" if the lock cannot be had in time; ``run`` was not called then.
        Not re-entrant: ``run`` must not ask for the same table's lock again.
        """
        ...


class CatalogLockFactory(Protocol):
    """Makes locks, and is picklable, so that every process of a job makes its own."""

    def create(self) -> CatalogLock: ...


class NoLock:
    """Runs at once: for stores whose conditional publish is safety enough. Its own factory."""

    def run_with_lock(self, database: str, table: str, run: Callable[[], T]) -> T:
        return run()

    def create(self) -> "NoLock":
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLockFactory:
    """Makes a :class:`FileCatalogLock` in any process that sees ``directory``."""

    directory: str
    timeout_s: float = LOCK_TIMEOUT_S

    def create(self) -> "FileCatalogLock":
        return FileCatalogLock(self.directory, timeout_s=self.timeout_s)


class FileCatalogLock:
    """An operating system lock on ``<directory>/<database>/<table>.lock``.

    It serves all processes of one machine, and of several where the file system has real ``flock``. The kernel
    drops it when its holder dies; the file stays, since removing a file that others wait on would let two in.
    """

    def __init__(self, directory: str | Path, *, timeout_s: float = LOCK_TIMEOUT_S, clock: Clock | None = None) -> None:
        self._directory = str(directory)
        self._timeout_s = timeout_s
        self._clock = clock or SystemClock()

    def run_with_lock(self, database: str, table: str, run: Callable[[], T]) -> T:
        path = join_inside(self._directory, f"{database}/{table}.lock")
        lock = self._acquired(path)
        try:
            return run()
        finally:
            lock.release()

    def _acquired(self, path: str) -> FileLock:
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
            # A lock of its own for each call, because a shared one would let a second thread in. It must not turn
            # into a soft lock where the file system lacks flock, which is what the library does unless told.
            lock = FileLock(path, fallback_to_soft=False, is_singleton=False)
            give_up_s = self._clock.steady_s() + self._timeout_s
            wait_s = _FIRST_WAIT_S
            while True:
                try:
                    lock.acquire(blocking=False)
                    return lock
                except Timeout:
                    if self._clock.steady_s() >= give_up_s:
                        raise self._timed_out(path) from None
                self._clock.sleep(wait_s)
                wait_s = min(2 * wait_s, _LONGEST_WAIT_S)
        except StorageError:
            raise
        except OSError as error:
            if error.errno in _NO_LOCKS:
                raise _no_real_locks(path) from error
            raise StorageError(
                f"cannot lock {path}: {error.strerror or error}; check that the directory is writable, or name another one",
                kind="denied" if isinstance(error, PermissionError) else None,
            ) from error

    def _timed_out(self, path: str) -> StorageError:
        return StorageError(
            f"the lock {path} was not free within {self._timeout_s:g} s: another commit to this table is running "
            "or hangs; repeat, raise the lock timeout, or find its holder (fuser, lsof). Removing the file does "
            "not help and is not safe",
            kind="lock-timeout",
        )


def _no_real_locks(path: str) -> UnsupportedError:
    return UnsupportedError(
        f"the file system of {path} has no file locks (flock); put the lock directory on a local disk that all "
        "writers share, or use another catalog lock",
        kind="no-file-locks",
    )
