"""Once a snapshot has landed nothing may raise: every file operation behind it fails in turn, and the writer hears of its snapshot.

A caller who hears an error repeats its write, which doubles the rows of an append. So whatever fails behind the link (hints,
marks, compaction, tags, expiry), and with whatever class of error, the commit returns its snapshot, and the next one leaves
nothing undone.
"""

import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from tablestore.errors import StorageError
from tablestore.format.snapshot import Snapshot
from tablestore.io.memory import MemoryFileStore
from tablestore.store.commit.committer import Committer
from tablestore.store.postcommit import PostCommit, read_undone
from tablestore.table.table import Table
from tablestore.table.upkeep import aftercommit as aftercommit_module
from tablestore.testing.auditor import walk
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.files import Faults, FileCall
from tablestore.testing.holdings import Holdings
from tablestore.testing.lab import Lab
from tests.support.changelogs import commitsweep

Rows = list[tuple[Any, ...]]
Write = Callable[[Lab, Table], object]

BUSY = {"write-only": "false", "sink.process-time-zone": "UTC", **commitsweep.BUSY}
_NAMES = itertools.count()


def numbered(lab: Lab, table: Table) -> object:
    with table.new_writer(commit_user="job") as writer:
        writer.write(lab.rows((1, "new"), (5, "new")))
        return writer.commit(identifier=8)


def compact(_: Lab, table: Table) -> object:
    return table.compact(full=True)


NEW: Rows = [(0, "a"), (1, "new"), (2, "a"), (5, "new")]
OLD: Rows = [(0, "a"), (1, "b"), (2, "a"), (3, "b")]
WRITES: dict[str, tuple[Write, Rows]] = {
    "upsert": (lambda lab, table: table.upsert(lab.rows((1, "new"), (5, "new"))), sorted([*NEW, (3, "b")])),
    "numbered": (numbered, sorted([*NEW, (3, "b")])),
    "delete by key": (lambda lab, table: table.delete(lab.rows((1, "b")).select(["id"])), [OLD[0], *OLD[2:]]),
    "delete by condition": (lambda _, table: table.delete("id = 1"), [OLD[0], *OLD[2:]]),
    "overwrite": (lambda lab, table: table.overwrite(lab.rows((4, "over")), {}), [(4, "over")]),
    "rollback": (lambda _, table: table.rollback_to(tag="then"), [(0, "a"), (1, "a"), (2, "a")]),
    "fast-forward": (lambda _, table: table.fast_forward("work", discard_newer=True), [(0, "a"), (1, "a"), (2, "a"), (9, "work")]),
    "compact": (compact, OLD),
}
ERRORS: dict[str, Callable[[str], Exception]] = {"ours": lambda message: StorageError(message), "foreign": commitsweep.Foreign}

# So that there is something to compact on demand.
LATER = {**BUSY, "num-sorted-run.compaction-trigger": "5"}


def busy(store: MemoryFileStore, clock: ManualClock, seed: int, write: Write) -> Lab:
    return Lab(store, options=LATER if write is compact else BUSY, clock=clock, seed=seed)


def build(clock: ManualClock, write: Write) -> dict[str, bytes]:
    name = f"after-landing-{next(_NAMES)}"
    store = MemoryFileStore(name, clock=clock)
    lab = busy(store, clock, 0, write)
    lab.write_new((0, "a"), (1, "a"), (2, "a"))
    lab.open().create_tag("then")
    lab.open().create_branch("work", tag="then")
    lab.open().branch("work").upsert(lab.rows((9, "work")))
    clock.advance(7_200)
    lab.write_new((1, "b"), (3, "b"))
    clock.advance(7_200)
    files = {path: store.read(path) for path in walk(store)}
    MemoryFileStore.forget(name)
    return files


class Run:
    """One write to a fresh copy of the table, with the ``n``-th call behind the link failing (0: none)."""

    def __init__(
        self, files: dict[str, bytes], clock: ManualClock, write: Write, n: int, error: Callable[[str], BaseException]
    ) -> None:
        self.name = f"after-landing-{next(_NAMES)}"
        self.store = MemoryFileStore(self.name, clock=clock)
        self.lab = busy(self.store, clock, 1000 + n, write)
        self.store.delete("schema/schema-0")
        for path, data in files.items():
            self.store.write(path, data)
        table, faults = self.lab.faulty()
        self.behind: list[FileCall] = []
        self._arm(faults, n, error)
        self.made = write(self.lab, table)

    def _arm(self, faults: Faults, n: int, error: Callable[[str], BaseException]) -> None:
        linked = False

        def look(call: FileCall) -> None:
            nonlocal linked
            linked = linked or (call.op == "publish_if_absent" and call.path.startswith("snapshot/snapshot-"))

        def strike(call: FileCall) -> None:
            if linked:
                self.behind.append(call)
                if len(self.behind) == n:
                    raise error(f"{call.op} {call.path}")

        faults.before(strike)
        faults.after(look)


@pytest.mark.slow_after(4)
@pytest.mark.deep
@pytest.mark.parametrize(("what", "error"), [("upsert", "ours"), *((what, "foreign") for what in WRITES)])
def test_whatever_fails_behind_a_landed_commit_the_writer_hears_of_its_snapshot(what: str, error: str) -> None:
    clock, (write, after) = ManualClock(), WRITES[what]
    files = build(clock, write)
    noted: set[str] = set()
    # Each operation of two kinds of write; of the others, whose follow-up is the same, every third.
    step = 1 if what in ("upsert", "numbered") else 3
    for n in itertools.count(1, step):
        run = Run(files, clock, write, n, ERRORS[error])
        failed = run.behind[n - 1] if len(run.behind) >= n else None
        assert what == "compact" or isinstance(run.made, Snapshot), f"{failed} failed: it returned {run.made}"
        assert run.lab.read() == after, f"{failed} failed"
        if undone := {one.task for one in read_undone(run.store)} - noted:
            noted |= undone
            run.lab.write_new((100, "next"))
            assert read_undone(run.store) == (), f"{failed} failed, and the next write left it undone"
        assert Holdings(run.store).missing() == {}
        MemoryFileStore.forget(run.name)
        if failed is None:
            break
    assert n > 10 and len(noted) > 1, f"{n} operations, notes of {noted}"


def test_what_ends_the_process_passes() -> None:
    clock, write = ManualClock(), WRITES["upsert"][0]
    with pytest.raises(KeyboardInterrupt):
        Run(build(clock, write), clock, write, 12, lambda _: KeyboardInterrupt())


def _raises(self: PostCommit, _: object, step: Callable[[], object]) -> bool:
    step()
    return True


def _raises_what_is_not_ours(self: PostCommit, _: object, step: Callable[[], object]) -> bool:
    with suppress(StorageError):
        step()
    return True


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("planted", ["every error", "foreign errors", "the hint"])
def test_a_follow_up_that_raises_is_caught_by_the_sweep(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if planted == "the hint":
        monkeypatch.setattr(Committer, "_acknowledge", lambda self, _, snapshot, __: self.snapshots.write_latest_hint(snapshot.id))
    else:
        monkeypatch.setattr(PostCommit, "do", _raises if planted == "every error" else _raises_what_is_not_ours)
    with pytest.raises((commitsweep.Foreign, StorageError)):
        test_whatever_fails_behind_a_landed_commit_the_writer_hears_of_its_snapshot("upsert", "foreign")


def test_a_compaction_that_cannot_be_done_is_said_where_the_table_is_described(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    lab = Lab(MemoryFileStore(f"after-landing-{next(_NAMES)}", clock=ManualClock()), options=BUSY)
    with monkeypatch.context() as broken:

        def overflow(*_: object, **__: object) -> None:
            raise commitsweep.Foreign("offset overflow while concatenating arrays, of user hunter2")

        broken.setattr(aftercommit_module, "compact_after_write", overflow)
        made = lab.write_new((1, "a"))
    (undone,) = read_undone(lab.files)
    assert (undone.task, undone.snapshot_id, undone.error_kind) == ("compaction", made.id, "Foreign")
    assert "offset overflow" in caplog.text and "hunter2" not in undone.error
    lab.write_new((2, "b"))
    assert read_undone(lab.files) == ()
