"""The n-th file operation fails, for every n, of everything that removes or keeps: expiry, clean, tags, branches, rollback.

Whatever fails, the operation succeeds or raises a typed error; the rows are those of before or of after, the tag and the branch
read as they did, nothing that anything needs is missing, the table can be written, and one clean leaves no orphan.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tablestore.errors import CommitOutcomeUnknown, TablestoreError
from tablestore.io.memory import MemoryFileStore
from tablestore.table.table import Table
from tablestore.testing.auditor import walk
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.files import SimulatedCrash
from tablestore.testing.holdings import Holdings
from tablestore.testing.lab import Lab

Rows = list[tuple[Any, ...]]
NOW: Rows = [(0, "a"), (3, "c"), (8, "z")]
THEN: Rows = [(0, "a"), (1, "b")]
WORK: Rows = [(0, "a"), (1, "b"), (5, "branch")]
OTHER: Rows = [(7, "other")]


@dataclass(frozen=True)
class Scene:
    """An operation, and what the table may hold after it: ``after`` if it succeeded, ``NOW`` or that if it did not."""

    run: Callable[[Lab, Table], Any]
    after: Rows
    drops: frozenset[str] = frozenset()
    eager: bool = False


def expire(lab: Lab, table: Table) -> Any:
    return table.expire_snapshots(retain_min=1, retain_max=1)


EAGER = {"write-only": "false", "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}
LAZY = {"write-only": "true"}


SCENES: dict[str, Scene] = {
    "expire": Scene(expire, NOW),
    "commit, then expire": Scene(lambda lab, table: table.upsert(lab.rows((3, "new"))), [*NOW[:1], (3, "new"), NOW[2]], eager=True),
    "clean": Scene(lambda lab, table: table.remove_orphan_files(0, dry_run=False), NOW),
    "create tag": Scene(lambda lab, table: table.create_tag("new"), NOW),
    "rename tag": Scene(lambda lab, table: table.rename_tag("other", "renamed"), NOW, frozenset({"other"})),
    "delete tag": Scene(lambda lab, table: table.delete_tag("other"), NOW, frozenset({"other"})),
    "create branch": Scene(lambda lab, table: table.create_branch("new", tag="then"), NOW),
    "delete branch": Scene(lambda lab, table: table.delete_branch("work"), NOW, frozenset({"work"})),
    "fast-forward": Scene(lambda lab, table: table.fast_forward("work", discard_newer=True), WORK),
    "rollback": Scene(lambda lab, table: table.rollback_to(tag="then"), THEN),
    "overwrite": Scene(lambda lab, table: table.overwrite(lab.rows((4, "over")), {}), [(4, "over")]),
}


def build(clock: ManualClock, options: dict[str, str]) -> MemoryFileStore:
    """History, tags ``then`` and ``other`` of expired snapshots, a branch ``work`` that went on, and an orphan."""
    store = MemoryFileStore(f"retention-faults-{options['write-only']}", clock=clock)
    lab = Lab(store, options={"bucket": "1", **options}, clock=clock)
    lab.write_new((0, "a"), (1, "b"))
    lab.open().create_tag("then")
    lab.open().create_branch("work")
    lab.open().branch("work").upsert(lab.rows((5, "branch")))
    lab.open().overwrite(lab.rows((7, "other")), {})
    lab.open().create_tag("other")
    lab.open().overwrite(lab.rows((0, "a"), (8, "z")), {})
    lab.open().expire_snapshots(retain_min=1, retain_max=1)
    lab.write_new((2, "b"), (3, "c"))
    lab.open().delete("id = 2")
    lab.open().compact(full=True)
    store.write("bucket-0/stray.parquet", b"x")
    return store


class Copies:
    """The same table again and again, each in a store of its own."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self._built = {True: build(self.clock, EAGER), False: build(self.clock, LAZY)}
        self._count = 0

    def one(self, *, eager: bool = False) -> Lab:
        self._count += 1
        store = MemoryFileStore(f"retention-faults-{id(self)}-{self._count}", clock=self.clock)
        # The seed makes its ids others than those of what is copied.
        lab = Lab(store, options=EAGER if eager else LAZY, clock=self.clock, seed=self._count)
        store.delete("schema/schema-0")
        for path in walk(self._built[eager]):
            store.write(path, self._built[eager].read(path))
        return lab


@pytest.fixture(scope="module")
def copies() -> Copies:
    return Copies()


def read(table: Table, **options: Any) -> Rows:
    return sorted(tuple(row.values()) for row in table.scan(**options).to_arrow().to_pylist())


def check(lab: Lab, scene: Scene, *, succeeded: bool, unknown: bool) -> None:
    table = lab.open()
    found = read(table)
    wanted = [scene.after] if succeeded and not unknown else [NOW, scene.after]
    assert found in wanted
    if "work" not in scene.drops:
        assert read(table.branch("work")) == WORK
    assert read(table, tag="then") == THEN
    if "other" not in scene.drops:
        assert read(table, tag="other") == OTHER
    for branch in table.branches():
        table.branch(branch.name).scan().count()
    for tag in table.tags():
        table.scan(tag=tag.name).count()
    assert Holdings(lab.files).missing() == {}
    lab.write_new((100, "still writable"))
    lab.clock.advance(1)
    lab.open().remove_orphan_files(0, dry_run=False)
    assert Holdings(lab.files).missing() == {}
    assert Holdings(lab.files).unheld() == set()
    assert read(lab.open()) == sorted([*found, (100, "still writable")])


def sweep(copies: Copies, scene: Scene, arm: Callable[[Any, int], None]) -> int:
    """Run the scene until the n-th operation is past its end; returns how many operations it has."""
    for n in range(1, 400):
        lab = copies.one(eager=scene.eager)
        table, faults = lab.faulty()
        arm(faults, n)
        succeeded, unknown = False, False
        try:
            scene.run(lab, table)
            succeeded = True
        except CommitOutcomeUnknown:
            unknown = True
        except (TablestoreError, SimulatedCrash):
            assert faults.injected_total == 1
        try:
            check(lab, scene, succeeded=succeeded, unknown=unknown)
        except BaseException as error:
            error.add_note(f"operation {n}: {faults.calls[n - 1] if n <= len(faults.calls) else 'none'}")
            raise
        assert faults.open_handles == 0
        if faults.injected_total == 0:
            assert succeeded
            return n - 1
    raise AssertionError("it never ended")


@pytest.mark.slow_after(4)
@pytest.mark.deep
@pytest.mark.parametrize("name", SCENES)
def test_every_failing_operation_loses_nothing(copies: Copies, name: str) -> None:
    assert sweep(copies, SCENES[name], lambda faults, n: faults.fail_nth(n)) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_every_operation_that_is_applied_and_fails_loses_nothing(copies: Copies, name: str) -> None:
    assert sweep(copies, SCENES[name], lambda faults, n: faults.fail_nth(n, when="after")) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_every_crash_loses_nothing(copies: Copies, name: str) -> None:
    assert sweep(copies, SCENES[name], lambda faults, n: faults.crash_nth(n)) >= 3
