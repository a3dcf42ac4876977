"""The stores that a life is lived on, and what is seen of them.

    memory        files appear whole, listings are fresh
    local         files of this machine
    conditional   as object stores do: a write arrives whole or not at all, times are in whole seconds
    renaming      a store without conditional writes, which publishes by look and rename under a lock
    own           whatever its user names by a URI

Each process of a life has a store of its own, over the same files, and all of them tell the :class:`Witness` what was published:
the publish of an id that was applied first is the history, whatever anybody was told.
"""

import json
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from tablestore.errors import StorageError, UnsupportedError
from tablestore.io.filestore import FileInfo, FileStore
from tablestore.io.local import LocalFileStore
from tablestore.io.lock.lockedstore import LockedFileStore
from tablestore.io.memory import MemoryFileStore
from tablestore.io.wrapped import WrappedFileStore
from tablestore.testing.deterministic import ManualClock, SeededIds
from tablestore.testing.night.fulldisk import FullFileStore
from tablestore.testing.night.powercut import VolatileFileStore

T = TypeVar("T")
Place = tuple[str, int]
"""A snapshot: the branch it is on, and its id."""
MAIN = "main"
Pause = Callable[[str], None]

_SNAPSHOT = re.compile(r"(?:branch/branch-([^/]+)/)?snapshot/snapshot-(\d+)")


@dataclass(frozen=True, slots=True)
class SkewedClock:
    """``clock``, ahead by so many seconds; its steady time is the same."""

    clock: ManualClock
    ahead_s: int

    def now_ms(self) -> int:
        return self.clock.now_ms() + self.ahead_s * 1000

    def steady_s(self) -> float:
        return self.clock.steady_s()

    def sleep(self, seconds: float) -> None:
        self.clock.sleep(seconds)


@dataclass
class Witness:
    """Takes note of what is published. ``operations``: who asked for the publish of a snapshot, by its uuid."""

    history: dict[Place, dict[str, Any]] = field(default_factory=dict)
    forks: dict[str, int] = field(default_factory=dict)
    operations: dict[str, str] = field(default_factory=dict)

    def asked_for(self, data: bytes, operation: str, path: str) -> None:
        """Note who wants to publish, before it happens."""
        if _SNAPSHOT.fullmatch(path) is not None:
            self.operations.setdefault(json.loads(data)["uuid"], operation)

    def applied(self, path: str, data: bytes) -> None:
        """Note a publish that made a file."""
        match = _SNAPSHOT.fullmatch(path)
        if match is not None:
            self.history.setdefault((match[1] or MAIN, int(match[2])), json.loads(data))

    def written(self, path: str) -> None:
        """Note a snapshot file that a branch begins with."""
        match = _SNAPSHOT.fullmatch(path)
        if match is not None and match[1]:
            self.forks[match[1]] = int(match[2])

    def newest(self, branch: str) -> Place:
        """The newest snapshot of a branch; of one that has none of its own, the one on main that it began with."""
        ids = [number for name, number in self.history if name == branch]
        return (branch, max(ids)) if ids else (MAIN, self.forks.get(branch, 0))


@dataclass(frozen=True)
class WitnessedFileStore(WrappedFileStore):
    """``inner``, whose publishes a witness sees."""

    witness: Witness

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        created = self.inner.publish_if_absent(path, data)
        if created:
            self.witness.applied(path, data)
        return created

    def write(self, path: str, data: bytes) -> None:
        self.inner.write(path, data)
        self.witness.written(path)


@dataclass(frozen=True)
class ConditionalFileStore(WrappedFileStore):
    """An object store as its clients see it: what a client that died was writing never appears. ``is_dead``: this one has died."""

    is_dead: Callable[[], bool]

    def list(self, directory: str, prefix: str = "") -> Sequence[FileInfo]:
        return [replace(info, modified_ms=info.modified_ms // 1000 * 1000) for info in self.inner.list(directory, prefix)]

    @contextmanager
    def open_output(self, path: str) -> Iterator[BinaryIO]:
        output = self.inner.open_output(path)
        file = output.__enter__()
        try:
            yield file
        except BaseException as error:
            if not output.__exit__(type(error), error, error.__traceback__):
                raise
            return
        gone = _ClientGone() if self.is_dead() else None
        output.__exit__(type(gone) if gone else None, gone, None)


class _ClientGone(Exception):
    """The upload was never completed."""


@dataclass(frozen=True)
class RenamingFileStore(WrappedFileStore):
    """A store that cannot publish conditionally. ``pause`` comes between its look and its rename."""

    pause: Pause

    @property
    def can_publish(self) -> bool:
        return False

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        raise UnsupportedError(f"cannot publish {path}: no conditional writes here", kind="no-conditional-publish")

    def publish_alone(self, path: str, data: bytes) -> bool:
        if self.inner.exists(path):
            return False
        self.pause(path)
        self.inner.overwrite(path, data)
        return True


class TurnLock:
    """A lock of processes that take turns: who finds it taken lets the others go on."""

    def __init__(self, rest: Callable[[], None]) -> None:
        self._rest = rest
        self._held: set[str] = set()

    def run_with_lock(self, place: str, run: Callable[[], T]) -> T:
        """See :class:`~tablestore.io.lock.cataloglock.CatalogLock`."""
        tries = 0
        while place in self._held:
            tries += 1
            if tries > 1000:
                raise StorageError(f"the lock {place} was not free in time; its holder hangs", kind="lock-timeout")
            self._rest()
        self._held.add(place)
        try:
            return run()
        finally:
            self._held.discard(place)


@dataclass
class World:
    """The files of one life and its clock. ``own``: the store of a user, for lives on ``own``; ``folder``: for files of this
    machine."""

    store: str
    seed: int
    clock: ManualClock
    rest: Callable[[], None]
    folder: Path | None = None
    own: FileStore | None = None
    witness: Witness = field(default_factory=Witness)

    def __post_init__(self) -> None:
        self._lock = TurnLock(self.rest)
        self._opened = 0
        self._memory: FileStore = MemoryFileStore.private(f"night-{self.seed}", clock=self.clock)

    def make_volatile(self, chance: random.Random) -> VolatileFileStore:
        """From now on the files are forgotten when the power is cut, as far as they were not synced."""
        volatile = VolatileFileStore(self._memory, lambda _: chance.random() < 0.5)
        self._memory = volatile
        return volatile

    def make_full(self, room_bytes: int) -> FullFileStore:
        """From now on the disk has so much room left."""
        full = FullFileStore(self._memory, [room_bytes])
        self._memory = full
        return full

    @property
    def has_real_times(self) -> bool:
        """True if files carry the time of this machine and not the life's."""
        return self.store in ("local", "own")

    @property
    def files(self) -> FileStore:
        """The files as they are."""
        if self.store == "own":
            assert self.own is not None
            return self.own
        if self.store == "local":
            assert self.folder is not None
            self._opened += 1
            return LocalFileStore(self.folder, ids=SeededIds(self.seed * 7_919 + self._opened))
        return self._memory

    def open(self, *, is_dead: Callable[[], bool], pause: Pause) -> FileStore:
        """The store of one process."""
        files = self.files
        if self.store == "conditional":
            files = ConditionalFileStore(files, is_dead)
        elif self.store == "renaming":
            files = LockedFileStore(RenamingFileStore(files, pause), self._lock)
        return WitnessedFileStore(files, self.witness)
