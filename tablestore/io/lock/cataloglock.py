"""The catalog lock protocol, :class:`CatalogLock`: mutual exclusion of all writers around the publish of one file.

    lock.run_with_lock("shop.db/orders/snapshot", lambda: store.publish_alone(path, data))

Where the store publishes conditionally the lock only saves lost races, and one that is wrongly believed to be held loses nothing.
Where the store cannot, the lock is what keeps commits apart. So it is one that its holder's death frees (a lock of the operating
system, a transaction of a database), never a mere file whose existence means "locked": a crash leaves that behind, and a cleaner
removes it under a sleeping holder.

A lock is a plain value, its settings: it is pickled to other processes, and what is held never is.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

from tablestore.clock import Clock
from tablestore.errors import StorageError

T = TypeVar("T")

TIMEOUT_S = 60.0
LONGEST_WAIT_S = 0.25
_FIRST_WAIT_S = 0.005


class CatalogLock(Protocol):
    """Runs one thing at a time for each place."""

    def run_with_lock(self, place: str, run: Callable[[], T]) -> T:
        """Calls ``run`` while no other holder of the lock of ``place`` runs, and returns its result.

        StorageError of kind "lock-timeout" if the lock cannot be had in time; ``run`` was not called then. StorageError of kind
        "unknown-outcome" if the lock was lost while ``run`` ran. Not re-entrant: ``run`` must not ask for the same lock again.
        """
        ...


def wait_for(attempt: Callable[[], T | None], *, clock: Clock, timeout_s: float, longest_wait_s: float) -> T | None:
    """Calls ``attempt`` until it gives a value, and returns that; None when the time is over."""
    give_up_s = clock.steady_s() + timeout_s
    wait_s = min(_FIRST_WAIT_S, longest_wait_s)
    while (value := attempt()) is None and clock.steady_s() < give_up_s:
        clock.sleep(wait_s)
        wait_s = min(2 * wait_s, longest_wait_s)
    return value


def timed_out(lock: str, timeout_s: float, reason: str) -> StorageError:
    """The error for a lock that could not be had; ``reason`` says what to look at."""
    return StorageError(
        f"the lock {lock} was not free within {timeout_s:g} s: another commit to this table is running or hangs; repeat, raise "
        f"catalog.lock.acquire-timeout, or {reason}",
        kind="lock-timeout",
    )
