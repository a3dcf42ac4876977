"""Writers in processes of their own: to contend for one table, and to be killed.

A worker notes each commit that was acknowledged, as a line of JSON that is on disk before the next commit begins.
"""

import json
import os
import random
import signal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

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
            if count == n and not after:
                os.kill(os.getpid(), signal.SIGKILL)
            result = call(*args, **options)
            if count == n:
                os.kill(os.getpid(), signal.SIGKILL)
            return result

        return run

    for name in SYSTEM_CALLS:
        setattr(os, name, dying(getattr(os, name)))
