"""The n-th file operation of something fails, for every n: whatever it is, nothing may be lost, doubled or left over.

    scene   how the table is made, what is done to it, which rows it holds before and after
    n = 1, 2, …   a fresh copy of the table, the act with its n-th operation failing, the checks; until n is past its end

What must hold, whichever operation failed:

    the act succeeded, or raised an error of ours           the rows are those of before or of after: engine and auditor agree
    nothing that anything leads to is missing               no file is left open
    the table can be written                                one clean leaves nothing that nothing leads to
    the changes since, applied strictly, give the rows      (scenes that say so: each old row of a change must be there)
"""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tablestore.errors import CommitOutcomeUnknown, TablestoreError
from tablestore.io.memory import MemoryFileStore
from tablestore.table.table import Table
from tablestore.testing.auditor import Auditor, walk
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.files import Faults, SimulatedCrash
from tablestore.testing.holdings import Holdings
from tablestore.testing.lab import COLUMNS, Lab

Rows = list[tuple[Any, ...]]
Arm = Callable[[Faults, int], None]
Act = Callable[[Lab, Table], object]
LONGEST = 600

# Each copy has a store of its own.
_NAMES = itertools.count()


def last_rows(lab: Lab) -> Rows:
    """The rows as the auditor sees them, the last of each key; of columns that a file does not have, None."""
    names = lab.open().schema.names
    found = lab.auditor.rows_by_key(lab.primary_key).values() if lab.keyed else lab.auditor.rows()
    return sorted(tuple(row.get(name) for name in names) for row in found)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Something that is done to a table. ``after`` None: it changes no row.

    ``audit``: the rows worked out without the engine, None where that takes more than the last row of each key.
    ``follows_changes``: the changes since are applied too, once all is compacted. ``finish``: how what was interrupted is finished
    before anything else is possible; ``settles``: rows are seen only once a compaction has taken them. ``next_row`` None: the
    table is only read and compacted by us.
    """

    act: Act
    build: Callable[[Lab], object]
    before: Rows
    after: Rows | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    keyed: bool = True
    schema: pa.Schema = COLUMNS
    primary_key: tuple[str, ...] = ("id",)
    partition_by: tuple[str, ...] = ()
    audit: Callable[[Lab], Rows] | None = last_rows
    next_row: tuple[Any, ...] | None = (1000, "still writable")
    finish: Callable[[Table], object] | None = None
    settles: bool = False
    follows_changes: bool = False

    def lab(self, store: MemoryFileStore, clock: ManualClock, seed: int) -> Lab:
        """The scene's table, empty, in ``store``. The seed makes the ids of one copy others than those of what is copied."""
        return Lab(
            store,
            keyed=self.keyed,
            schema=self.schema,
            primary_key=self.primary_key,
            partition_by=self.partition_by,
            options={"write-only": "true", **self.options},
            clock=clock,
            seed=seed,
        )


class Sweep:
    """One scene, again and again."""

    def __init__(self, scene: Scene) -> None:
        self._scene, self._clock = scene, ManualClock()
        name = f"fault-sweep-{next(_NAMES)}"
        self._original = MemoryFileStore(name, clock=self._clock)
        lab = scene.lab(self._original, self._clock, seed=0)
        scene.build(lab)
        lab.open().expire_snapshots(retain_min=1, retain_max=1)
        self._base = lab.auditor.ids()[-1]
        self._files = {path: self._original.read(path) for path in walk(self._original)}
        assert self._read(lab) == scene.before, f"the scene is another one: {self._read(lab)}"
        MemoryFileStore.forget(name)

    def run(self, arm: Arm, *, step: int = 1) -> int:
        """Arm, act and check for n = 1, 2, … (every ``step``-th); returns how many operations the act has."""
        for n in range(1, LONGEST, step):
            name = f"fault-sweep-{next(_NAMES)}"
            if self._once(n, name, arm) == 0:
                return n - 1
        raise AssertionError("it never ended")

    def _once(self, n: int, name: str, arm: Arm) -> int:
        store = MemoryFileStore(name, clock=self._clock)
        lab = self._scene.lab(store, self._clock, seed=n)
        store.delete("schema/schema-0")
        for path, data in self._files.items():
            store.write(path, data)
        table, faults = lab.faulty()
        opening = len(faults.calls)
        arm(faults, n)
        succeeded = unknown = False
        try:
            self._scene.act(lab, table)
            succeeded = True
        except CommitOutcomeUnknown:
            unknown = True
        except (TablestoreError, SimulatedCrash):
            assert faults.injected_total == 1
        try:
            assert faults.open_handles == 0
            self._check(lab, succeeded=succeeded and not unknown)
        except BaseException as error:
            failed = faults.calls[opening + n - 1] if opening + n <= len(faults.calls) else "nothing"
            error.add_note(f"operation {n} failed: {failed}; the act {'succeeded' if succeeded else 'raised an error'}")
            raise
        MemoryFileStore.forget(name)
        assert succeeded or faults.injected_total == 1
        return faults.injected_total

    def _check(self, lab: Lab, *, succeeded: bool) -> None:
        scene = self._scene
        before, after = scene.before, scene.before if scene.after is None else scene.after
        found = self._read(lab)
        if succeeded and scene.settles and _alike(found, before):
            lab.open().compact()
            found = self._read(lab)
        if succeeded:
            assert _alike(found, after), f"it succeeded, and the table holds {found}, not {after}"
        else:
            assert _alike(found, before) or _alike(found, after), f"the table holds {found}, neither {before} nor {after}"
        # What follows would fail, or end in other rows, if a file were missing now.
        if scene.finish is not None:
            scene.finish(lab.open())
        if scene.next_row is not None:
            table = lab.open()
            row = dict(zip(table.schema.names, scene.next_row, strict=False))
            rows = pa.Table.from_pylist([row], schema=table.schema)
            table.upsert(rows) if lab.keyed else table.append(rows)
        lab.clock.advance(1)
        lab.open().remove_orphan_files(0, dry_run=False)
        assert Holdings(lab.files).unheld() == set(), "one clean left files"
        if scene.follows_changes:
            lab.open().compact(full=True)
        now = self._read(lab)
        self._check_files(lab, now)
        if scene.follows_changes:
            assert changed_rows(lab, self._base, before) == now, "the changes do not lead to the rows"
        if scene.next_row is not None:
            assert [row[0] for row in now if row not in found] == [scene.next_row[0]], "the table does not take rows any more"
        assert [row for row in now if row in found] == found, "a write or a clean changed other rows"

    def _check_files(self, lab: Lab, rows: Rows) -> None:
        assert Holdings(lab.files).missing() == {}, "a file that is needed is gone"
        auditor = Auditor(lab.files)
        auditor.check_metadata()
        if self._scene.audit is not None:
            assert self._scene.audit(lab) == rows, "engine and auditor see different rows"

    def _read(self, lab: Lab) -> Rows:
        return sorted(tuple(row.values()) for row in lab.open().scan().to_arrow().to_pylist())


def _alike(found: Rows, expected: Rows) -> bool:
    """Equal, but for columns that came on the right and are empty."""
    if not found or not expected:
        return found == expected
    width = len(expected[0])
    return [row[:width] for row in found] == expected and all(value is None for row in found for value in row[width:])


def changed_rows(lab: Lab, base: int, rows: Rows) -> Rows:
    """``rows`` with all changes since snapshot ``base`` applied; each old row must be there, each new one must not."""
    state = {row[0]: row for row in rows}
    for change in lab.open().changes(base).to_arrow().to_pylist():
        kind, *values = change.values()
        row = tuple(values)
        if kind in ("-U", "-D"):
            assert state.pop(row[0], None) == row, f"{kind} {row} takes back what is not there"
        else:
            assert row[0] not in state, f"{kind} {row}, and its key is there"
            state[row[0]] = row
    return sorted(state.values())
