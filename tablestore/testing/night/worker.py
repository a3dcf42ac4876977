"""Writers in processes of their own: to contend for one table, and to be killed.

A worker notes each commit that was acknowledged, as a line of JSON that is on disk before the next commit begins.
"""

import json
import os
import random
import resource
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

from tablestore.errors import NotFoundError, TablestoreError
from tablestore.io.local import LocalFileStore
from tablestore.store.context import open_context
from tablestore.table.table import Table

# What the local store asks the system to do; between any two of these a process may die.
SYSTEM_CALLS = ("open", "write", "fsync", "link", "replace", "unlink")


class AckFile:
    """Acknowledged commits, one JSON line each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Taken before a doomed process counts its calls: the note itself does not count.
        self._open, self._write, self._fsync = os.open, os.write, os.fsync

    def note(self, **what: Any) -> None:
        """Write a line and make it durable."""
        descriptor = self._open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
        try:
            self._write(descriptor, (json.dumps(what) + "\n").encode())
            self._fsync(descriptor)
        finally:
            os.close(descriptor)

    def read(self) -> list[dict[str, Any]]:
        """All lines so far; a torn last line was not acknowledged."""
        if not self._path.exists():
            return []
        text = self._path.read_text()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def open_local(path: str) -> Table:
    """The table in a directory."""
    return Table(open_context(LocalFileStore(path)), path)


def rows_of(table: Table, rows: Iterable[tuple[int, str]]) -> pa.Table:
    """Rows of a table with the columns id and v."""
    return pa.Table.from_pylist([{"id": key, "v": value} for key, value in rows], schema=table.schema)


def contend(path: str, worker: int, commits: int, acks: str, barrier: Any) -> None:
    """Commit ``commits`` times to the table at ``path``: a row that all workers write, and one of this worker's own."""
    table = open_local(path)
    log = AckFile(Path(acks))
    barrier.wait()
    for commit in range(commits):
        name = f"w{worker}c{commit}"
        rows = rows_of(table, [(0, name), (1 + worker * commits + commit, name)])
        snapshot = table.upsert(rows) if table.primary_key else table.append(rows)
        assert snapshot is not None
        log.note(snapshot=snapshot.id, uuid=snapshot.uuid, name=name)


def commit_until_killed(path: str, acks: str, seed: int, user: str | None) -> None:
    """Commit one row after the other, until a system call drawn from ``seed`` is this process's last.

    With a ``user`` the commits are numbered, and the first repeats the one that was not acknowledged.
    """
    log = AckFile(Path(acks))
    chance = random.Random(seed)
    table = open_local(path)
    number = len(log.read()) if user else seed * 1_000_000
    die_at(chance.randrange(1, 150), after=chance.random() < 0.5)
    while True:
        rows = rows_of(table, [(number, "x")])
        if user is None:
            snapshot = table.upsert(rows) if table.primary_key else table.append(rows)
        else:
            with table.new_writer(commit_user=user) as writer:
                writer.write(rows)
                snapshot = writer.commit(identifier=number)
        assert snapshot is not None
        log.note(id=number, snapshot=snapshot.id)
        number += 1


def die_at(n: int, *, after: bool) -> None:
    """SIGKILL this process at its ``n``-th system call from now on, before or after it has happened."""
    count = 0

    def dying(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **options: Any) -> Any:
            nonlocal count
            count += 1
            # Not only at the n-th: two threads may count at once.
            if count >= n and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = call(*args, **options)
            if count >= n:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return run

    for name in SYSTEM_CALLS:
        setattr(os, name, dying(getattr(os, name)))


def maintain_until_killed(path: str, acks: str, seed: int) -> None:
    """Upsert a new row and an old one, compact, expire, clean, until a system call drawn from ``seed`` is this process's last."""
    log = AckFile(Path(acks))
    chance = random.Random(seed)
    table = open_local(path)
    number = seed * 1_000
    die_at(chance.randrange(1, 600), after=chance.random() < 0.5)
    while True:
        rows = [(number, "new"), (seed % 5, f"{number}")]
        snapshot = table.upsert(rows_of(table, rows)) if table.primary_key else table.append(rows_of(table, rows[:1]))
        assert snapshot is not None
        log.note(rows=rows if table.primary_key else rows[:1])
        number += 1
        step = chance.random()
        if step < 0.3:
            table.compact(full=chance.random() < 0.5)
        elif step < 0.5:
            table.expire_snapshots(retain_min=1, retain_max=2)
        elif step < 0.6:
            table.remove_orphan_files(dry_run=False)


# What a reader may be told while others expire what it reads; the newest snapshot can be read again.
EXPIRED_KINDS = frozenset({"data-file-gone", "metadata-gone", "snapshot-expired", "no-such-snapshot"})


def mingle(path: str, worker: int, steps: int, acks: str, barrier: Any) -> None:
    """Write, compact, expire, clean and read beside others who do the same; every read is checked against what this one wrote."""
    table = open_local(path)
    log, chance = AckFile(Path(acks)), random.Random(worker)
    mine: dict[int, str] = {}
    barrier.wait()
    for step in range(steps):
        what = chance.random()
        if what < 0.5:
            rows = [(1 + worker * steps + chance.randrange(steps // 2), f"w{worker}s{step}"), (0, f"w{worker}s{step}")]
            if not table.primary_key:
                rows = [(1 + worker * steps + step, f"w{worker}s{step}")]
            snapshot = table.upsert(rows_of(table, rows)) if table.primary_key else table.append(rows_of(table, rows))
            assert snapshot is not None
            mine.update(row for row in rows if row[0])
            log.note(snapshot=snapshot.id, rows=rows)
        elif what < 0.65:
            table.compact(full=what < 0.55)
        elif what < 0.75:
            table.expire_snapshots(retain_min=1, retain_max=3)
        elif what < 0.78:
            with suppress_expired():
                table.remove_orphan_files(dry_run=False)
        else:
            rows = read_again(table)
            keys = [key for key, _ in rows]
            assert len(set(keys)) == len(keys), "rows were doubled"
            found = dict(rows)
            assert {key: found.get(key) for key in mine} == mine, "rows of this process are lost or old"


@contextmanager
def suppress_expired() -> Iterator[None]:
    """Let what others expire meanwhile be missed."""
    try:
        yield
    except NotFoundError as error:
        if error.kind not in EXPIRED_KINDS:
            raise


def read_again(table: Table, times: int = 50) -> list[tuple[int, str]]:
    """All rows of the newest snapshot; begun again where it expired under the reader."""
    for _ in range(times):
        with suppress_expired():
            return [(row["id"], row["v"]) for row in table.scan().to_arrow().to_pylist()]
    raise AssertionError(f"the newest snapshot expired {times} times under a reader")


def work_with_little(path: str, notes: Any, seed: int) -> None:
    """Upsert, compact, expire, clean and read with few open files, little memory, or files that may not grow, drawn from ``seed``.

    Every step succeeds or ends with an error of ours (or of memory); anything else ends this process with an error. ``notes`` is an
    open connection, which needs nothing of what is short: it gets each row with the times that its text is repeated, as tried and
    then as acknowledged.
    """
    chance = random.Random(seed)
    table = open_local(path)
    # What is loaded when it is first needed is loaded by then.
    table.upsert(rows_of(table, [(seed % 5, "0")])) if table.primary_key else table.append(rows_of(table, [(-seed * 1_000, "0")]))
    notes.send_bytes(json.dumps({"rows": [(seed % 5 if table.primary_key else -seed * 1_000, "0", 1)], "tried": False}).encode())
    table.compact(full=True)
    table.expire_snapshots(retain_min=1, retain_max=2)
    table.remove_orphan_files(dry_run=False)
    table.scan().to_arrow()
    _restrict(chance)
    for number in range(seed * 1_000, seed * 1_000 + 12):
        times = chance.choice((1, 1_000, 40_000))
        told = [(number, "new", times), *([(seed % 5, f"{number}", 1)] if table.primary_key else [])]
        rows = [(key, text * repeated) for key, text, repeated in told]
        # Told before, so that what landed without an answer is known.
        notes.send_bytes(json.dumps({"rows": told, "tried": True}).encode())
        try:
            snapshot = table.upsert(rows_of(table, rows)) if table.primary_key else table.append(rows_of(table, rows))
            assert snapshot is not None
            notes.send_bytes(json.dumps({"rows": told, "tried": False}).encode())
            step = chance.random()
            if step < 0.3:
                table.compact(full=chance.random() < 0.5)
            elif step < 0.5:
                table.expire_snapshots(retain_min=1, retain_max=2)
            elif step < 0.6:
                table.remove_orphan_files(dry_run=False)
            else:
                table.scan().to_arrow()
        except (TablestoreError, MemoryError):
            continue


def _restrict(chance: random.Random) -> None:
    """Take something away from this process, for good."""
    what = chance.choice(("files", "size", "memory"))
    if what == "files":
        most = len(os.listdir("/proc/self/fd")) + chance.randrange(1, 8)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    elif what == "size":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        most = chance.choice((1_000, 4_000, 20_000))
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    else:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * os.sysconf("SC_PAGE_SIZE") + chance.choice((1, 8, 32)) * 1024 * 1024
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
