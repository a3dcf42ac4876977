"""Locks by the operating system, on a file in a directory that all writers see.

It serves all processes of one machine, and of several where the file system has real ``flock``. The kernel frees it when its holder
dies, and a holder that sleeps keeps it. The file stays, since removing a file that others wait on would let two in.
"""

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from filelock import FileLock, Timeout

from tablestore.clock import Clock, SystemClock
from tablestore.errors import StorageError, UnsupportedError
from tablestore.io.filestore import join_inside
from tablestore.io.lock.cataloglock import LONGEST_WAIT_S, TIMEOUT_S, timed_out, wait_for

T = TypeVar("T")

LOCK_FILE = ".lock"
_NO_LOCKS = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK})


@dataclass(frozen=True, slots=True, kw_only=True)
class FileCatalogLock:
    """A :class:`~tablestore.io.lock.cataloglock.CatalogLock` on ``<directory>/<place>/.lock``."""

    directory: str
    timeout_s: float = TIMEOUT_S
    longest_wait_s: float = LONGEST_WAIT_S
    clock: Clock = field(default_factory=SystemClock)

    def run_with_lock(self, place: str, run: Callable[[], T]) -> T:
        path = join_inside(self.directory, f"{place}/{LOCK_FILE}")
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

            def attempt() -> FileLock | None:
                try:
                    lock.acquire(blocking=False)
                except Timeout:
                    return None
                return lock

            file_lock = wait_for(attempt, clock=self.clock, timeout_s=self.timeout_s, longest_wait_s=self.longest_wait_s)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                raise _no_real_locks(path) from error
            raise StorageError(
                f"cannot lock {path}: {error.strerror or error}; check that the directory is writable, or name another one in "
                "catalog.lock.location",
                kind="denied" if isinstance(error, PermissionError) else None,
            ) from error
        if file_lock is None:
            raise timed_out(path, self.timeout_s, "find its holder (fuser, lsof). Removing the file does not help and is not safe")
        return file_lock


def _no_real_locks(path: str) -> UnsupportedError:
    return UnsupportedError(
        f"the file system of {path} has no file locks (flock); name a directory on a local disk that all writers share in "
        "catalog.lock.location, or use catalog.lock.type = sql",
        kind="no-file-locks",
    )
