"""Pools the open publishers of the tables of one catalog, with the circuit breakers of their logs and the folder of locks.

To open a publisher costs more than a small transaction, so a publisher stays open behind a commit, for the next one. It is closed
when it fails, on :meth:`Publishers.close`, and when nobody holds the catalog or table any more that it was opened for.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Protocol

from tablestore.log.publish.circuitbreaker import CircuitBreaker
from tablestore.log.publish.publisher import PublishReport
from tablestore.log.publish.slotlocks import SlotLocks

PublisherKey = tuple[str, str | None, str, int, int]
"""Address of the table, its uuid, the log's name, the number of slots, the slot."""


class SlotPublisher(Protocol):
    """Publishes one slot, which it keeps open between calls. Not thread-safe."""

    def publish(self, *, look: bool = False) -> PublishReport:
        """Send the changes that snapshots have and the log lacks."""
        ...

    def close(self) -> None:
        """Give up the slot."""
        ...


class Publishers:
    """The open publishers, by table, log and slot. Thread-safe; in a forked process it begins empty."""

    def __init__(self, locks: SlotLocks) -> None:
        self.locks, self.breaker = locks, CircuitBreaker()
        # By process too: a client does not live on in a forked process, and must not be closed there either.
        self._open: dict[tuple[int, PublisherKey], SlotPublisher] = {}
        self._lock = Lock()

    @contextmanager
    def use(self, key: PublisherKey, make: Callable[[], SlotPublisher]) -> Iterator[SlotPublisher]:
        """The publisher of a slot, for one thread at a time. One that fails is closed and made anew next time."""
        mine = os.getpid(), key
        with self._lock:
            open_publisher = self._open.pop(mine, None)
        # Outside of the lock: to open one takes as long as its broker does.
        publisher = open_publisher or make()
        try:
            yield publisher
        except BaseException:
            publisher.close()
            raise
        with self._lock:
            other = self._open.get(mine)
            self._open[mine] = publisher
        if other is not None:
            other.close()

    def close(self, address: str | None = None) -> None:
        """Close those of one table, or all."""
        pid = os.getpid()
        with self._lock:
            chosen = [(owner, key) for owner, key in self._open if owner == pid and address in (None, key[0])]
            closing = [self._open.pop(key) for key in chosen]
        for publisher in closing:
            publisher.close()
