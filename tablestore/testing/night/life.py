"""Lives a plan, and checks what came out of it.

    report = live(draw_plan(7))          raises what is wrong, with the trace; the same plan gives the same trace

What must come out is worked out from the snapshots that the store really took, in order, on plain lists and dicts:

    no commit is lost or doubled           what was acknowledged is in the history, once; what was refused is not
    nothing is silently wrong              every reader saw the rows of its snapshot; table, branches and tags read as they should
    nothing unreadable                     nothing that anything leads to is missing; the table takes another row
    no orphan is left                      one clean, when all is over, removes whatever nothing leads to
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tablestore.errors import TablestoreError
from tablestore.format.snapshot import Snapshot
from tablestore.io.filestore import FileStore
from tablestore.store.context import open_context
from tablestore.table.table import Table
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.files import CapturedCall
from tablestore.testing.holdings import Holdings
from tablestore.testing.lab import Lab
from tablestore.testing.night.actor import Actor
from tablestore.testing.night.acts import ACTS, Effect, Rows, added, plain
from tablestore.testing.night.keepers import source_of
from tablestore.testing.night.lifeplan import UNSETTLED, ActorPlan, LifePlan, Strike
from tablestore.testing.night.powercut import VolatileFileStore
from tablestore.testing.night.world import MAIN, Place, SkewedClock, World
from tablestore.testing.scheduler import Scheduler

ORPHAN_AGE_H, LEAP_H = 10, 3
COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string()), pa.field("n", pa.int64())])
_OPTIONS: Mapping[str, Mapping[str, str]] = {
    "append": {},
    "append-vectors": {"deletion-vectors.enabled": "true", "compaction.min.file-num": "2"},
    "keyed": {"bucket": "1"},
    "keyed-eager": {"bucket": "2", "write-only": "false", "num-sorted-run.compaction-trigger": "2"},
    "dynamic": {"bucket": "-1", "dynamic-bucket.target-row-num": "2"},
    "vectors": {"bucket": "1", "deletion-vectors.enabled": "true", "compaction.min.file-num": "2", "write-only": "false"},
    "lookup": {"bucket": "1", "changelog-producer": "lookup", "write-only": "false"},
}
_TRACE = 60


@dataclass
class LifeReport:
    """Counts and trace of one life. ``struck``: the faults that happened, as a plan names them."""

    plan: LifePlan
    outcomes: Counter[str]
    faults: Counter[str]
    kills: Counter[str]
    states: int
    struck: tuple[Strike, ...]
    trace: list[str]


class LifeFailed(AssertionError):
    """A promise did not hold. ``report``: what had happened until then."""

    def __init__(self, report: LifeReport, error: BaseException) -> None:
        last = "\n  ".join(report.trace[-_TRACE:])
        super().__init__(f"seed {report.plan.seed}: {type(error).__name__}: {error}\nthe last steps were\n  {last}")
        self.report, self.error = report, error


def live(plan: LifePlan, *, own: FileStore | None = None) -> LifeReport:
    """Live a plan; ``own`` is the store of a life on a user's store. Raises LifeFailed."""
    folder = Path(tempfile.mkdtemp(prefix="tablestore-night-", dir=_scratch())) if plan.store == "local" else None
    life = Life(plan, folder=folder, own=own)
    try:
        life.run()
        return life.report()
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        raise LifeFailed(life.report(), error) from error
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def _scratch() -> str | None:
    # Files that need not last are kept in memory where there is such a place: a life waits for no disk.
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


@dataclass
class Life:
    """One life, while it is lived."""

    plan: LifePlan
    folder: Path | None = None
    own: FileStore | None = None
    effects: dict[str, Effect] = field(default_factory=dict)
    reads: list[tuple[str, int, Rows]] = field(default_factory=list)
    changed: list[tuple[int, int, list[dict[str, Any]]]] = field(default_factory=list)
    outcomes: Counter[str] = field(default_factory=Counter)
    late: list[CapturedCall] = field(default_factory=list)
    committing: set[str] = field(default_factory=set)
    states: int = 0

    def __post_init__(self) -> None:
        plan = self.plan
        self.is_keyed = not plan.table.startswith("append")
        self.has_new_columns = any(step.act == "add column" for actor in plan.actors for step in actor.steps)
        self.scheduler = Scheduler(plan.chance("turns", plan.turns), restlessness=plan.restlessness)
        self.clock = ManualClock()
        self.named = {(strike.actor, strike.step, strike.call): strike.kind for strike in plan.strikes or ()}
        self.world = World(
            plan.store, plan.seed, self.clock, lambda: self.scheduler.step("waits for the lock", rest=True), self.folder, self.own
        )
        self.volatile: VolatileFileStore | None = None
        if plan.power:
            self.volatile = self.world.make_volatile(plan.chance("power"))
        self._landed: dict[str, str] = {}
        self._heard: set[str] = set()
        self._refused: set[str] = set()
        self._doubtful: set[str] = set()
        self._settling = plan.chance("late")
        options = {
            "tablestore.orphan-age": f"{ORPHAN_AGE_H} h",
            "write-only": "true",
            **_OPTIONS[plan.table],
            **dict(plan.options),
        }
        self.lab = Lab(self.world.files, schema=COLUMNS, keyed=self.is_keyed, options=options, seed=plan.seed, clock=self.clock)
        self.full = self.world.make_full(plan.room_bytes) if plan.room_bytes else None
        self.actors = [Actor(self, actor, ACTS) for actor in plan.actors]

    def run(self) -> None:
        """Live it to its end, and check."""
        self.scheduler.run({actor.plan.name: actor.run for actor in self.actors})
        self.settle_late()
        if self.full is not None:
            # Somebody has made room.
            self.full.room[0] = 1 << 60
        self._check()

    def report(self) -> LifeReport:
        """The counts and the trace so far."""
        for actor in self.actors:
            actor.injected.update(actor.faults.injected)
            actor.faults.injected.clear()
        return LifeReport(
            plan=self.plan,
            outcomes=self.outcomes,
            faults=sum((actor.injected for actor in self.actors), self.full.refused.copy() if self.full else Counter[str]()),
            kills=sum((actor.kills for actor in self.actors), Counter[str]()),
            states=self.states,
            struck=tuple(strike for actor in self.actors for strike in actor.struck),
            trace=self.scheduler.trace,
        )

    # for actors

    def clock_of(self, actor: ActorPlan) -> Any:
        """The clock of an actor's host."""
        return SkewedClock(self.clock, actor.skew_s)

    def heard(self, operation: str, snapshot: Snapshot | None, *, once: bool = False) -> None:
        """An operation was acknowledged. ``once``: also where it says that it had landed before."""
        if snapshot is not None:
            assert snapshot.uuid is not None
            self._landed[snapshot.uuid] = operation
            self.outcomes["landed"] += 1
        if snapshot is not None or once:
            self._heard.add(operation)

    def refused(self, operation: str, act: str, error: TablestoreError) -> None:
        """An operation ended with an error that says that nothing of it landed."""
        self.outcomes[f"{act}: {error.kind}"] += 1
        if operation not in self._heard | self._doubtful:
            self._refused.add(operation)

    def in_doubt(self, operation: str, why: str) -> None:
        """Nobody knows whether this operation has landed: its process died, or was told that it is unknown."""
        self.outcomes[why] += 1
        self._doubtful.add(operation)

    def leap(self) -> None:
        """Some hours pass, unless somebody is between the check of its files' age and its publish."""
        # A request is under way for no hours.
        self.settle_late()
        if not self.committing:
            self.clock.advance(LEAP_H * 3600)
            self.outcomes["leaps"] += 1

    def settle_late(self) -> None:
        """Let what is under way arrive, in any order."""
        while self.late:
            late = self.late.pop(self._settling.randrange(len(self.late)))
            if not late.captured:
                continue
            self.outcomes["arrived late"] += 1
            try:
                late.apply()
            except TablestoreError:
                self.outcomes["arrived too late"] += 1

    def cut_power(self) -> None:
        """All processes die, and what was not synced may be gone."""
        for actor in self.actors:
            actor.faults.crashed = True
        self.late.clear()
        assert self.volatile is not None
        self.volatile.cut()
        self.outcomes["power cuts"] += 1

    # what must come out

    def _check(self) -> None:
        world, witness = self.world, self.world.witness
        assert sum(actor.open_handles for actor in self.actors) == 0, "files were left open"
        self._check_history()
        states = self._states()
        self._check_reads(states)
        missing = Holdings(world.files).missing()
        assert missing == {}, f"files that something leads to are gone: {missing}"
        table = self._open()
        if self.plan.table in UNSETTLED:
            table.compact()
        expected = states[witness.newest(MAIN)]
        self._same(_rows_of(table), expected, "the table")
        self._check_kept(table, states)
        self._check_by_hand(expected)
        row = {"id": 1000, "v": "still writable"}
        last = pa.Table.from_pylist([row], schema=table.schema)
        table.upsert(last) if self.is_keyed else table.append(last)
        # Whatever nobody holds is old by then.
        self.clock.advance(ORPHAN_AGE_H * 3600 + 1)
        if world.has_real_times:
            Table(open_context(world.files), "night").remove_orphan_files(0, dry_run=False)
        else:
            self._open().remove_orphan_files(dry_run=False)
        assert Holdings(world.files).missing() == {}, "the last clean deleted a live file"
        left = Holdings(world.files).unheld()
        assert left == set(), f"one clean left orphans: {sorted(left)}"
        if self.plan.table in UNSETTLED:
            self._open().compact()
        wanted = added(expected, rows=[row], keyed=self.is_keyed)
        self._same(_rows_of(self._open()), wanted, "the table after the clean")

    def _open(self) -> Table:
        return self.lab.open(self.world.files)

    def _check_history(self) -> None:
        witness = self.world.witness
        main = sorted(number for name, number in witness.history if name == MAIN)
        assert main == list(range(1, len(main) + 1)), f"ids were left out: {main}"
        uuids = Counter(content["uuid"] for content in witness.history.values())
        assert not [uuid for uuid, times in uuids.items() if times > 1], "a commit landed twice"
        lost = {operation for uuid, operation in self._landed.items() if uuid not in uuids}
        assert not lost, f"acknowledged commits are not in the history: {sorted(lost)}"
        times: Counter[str] = Counter()
        for content in witness.history.values():
            if content["commitKind"] != "COMPACT":
                times[witness.operations[content["uuid"]]] += 1
        doubled = [operation for operation, count in times.items() if count > 1]
        assert not doubled, f"these operations landed twice: {doubled}"
        unheard = {operation for operation in self._heard if not times[operation]}
        assert not unheard, f"these operations were acknowledged and did not land: {sorted(unheard)}"
        wrong = {operation for operation in self._refused - self._heard - self._doubtful if times[operation]}
        assert not wrong, f"these operations were refused and landed: {sorted(wrong)}"

    def _states(self) -> dict[Place, Rows]:
        """The rows of every snapshot that ever was, each from its parent, or from what it brought back."""
        history, states = self.world.witness.history, dict[Place, Rows]()
        states[MAIN, 0] = []
        waiting = sorted(history, key=lambda place: (history[place]["timeMillis"], place[1]))
        while waiting:
            for place in waiting:
                parent = self._on_main((place[0], place[1] - 1))
                source = source_of(history[place])
                source = self._on_main(source) if source is not None else None
                if parent in states and (source is None or source in states):
                    states[place] = list(states[source]) if source else self._after(history[place], states[parent])
                    waiting.remove(place)
                    break
            else:
                raise AssertionError(f"these snapshots follow from none that is known: {waiting}")
        return states

    def _on_main(self, place: Place) -> Place:
        """The same snapshot as main has it, for the one at which a branch began."""
        return (MAIN, place[1]) if self.world.witness.forks.get(place[0]) == place[1] else place

    def _after(self, content: dict[str, Any], state: Rows) -> Rows:
        if content["commitKind"] == "COMPACT":
            return state
        return self.effects[self.world.witness.operations[content["uuid"]]](state)

    def _check_reads(self, states: dict[Place, Rows]) -> None:
        for name, snapshot_id, rows in self.reads:
            if self.plan.table not in UNSETTLED:
                self._same(rows, states[name, snapshot_id], f"a reader of snapshot {snapshot_id}")
                continue
            seen = [row for (branch, i), state in states.items() if branch == name and i <= snapshot_id for row in state]
            wrong = [row for row in rows if row not in seen]
            assert not wrong, f"a reader of snapshot {snapshot_id} saw {wrong}, which no snapshot until then had"
            self.states += 1
        for first, last, changes in self.changed:
            self._check_changes(states[MAIN, first], states[MAIN, last], changes, f"from {first} to {last}")

    def _check_changes(self, before: Rows, after: Rows, changes: list[dict[str, Any]], where: str) -> None:
        """Each old row of a change must be there, each new one must not."""
        rows = list(before)
        for change in changes:
            kind, row = change["_row_kind"], plain([change])[0]
            del row["_row_kind"]
            if kind in ("-U", "-D"):
                assert row in rows, f"the changes {where}: {kind} {row} takes back what is not there"
                rows.remove(row)
            else:
                taken = self.is_keyed and any(other["id"] == row["id"] for other in rows)
                assert not taken, f"the changes {where}: {kind} {row}, and its key is there"
                rows.append(row)
        self._same(rows, after, f"the changes {where}")

    def _check_kept(self, table: Table, states: dict[Place, Rows]) -> None:
        if self.plan.table in UNSETTLED:
            return
        for tag in table.tags():
            self._same(_rows_of(table, tag=tag.name), states[MAIN, tag.snapshot.id], f"tag {tag.name}")
        for branch in table.branches():
            place = self.world.witness.newest(branch.name)
            self._same(_rows_of(table.branch(branch.name)), states[place], f"branch {branch.name}")

    def _check_by_hand(self, expected: Rows) -> None:
        """The files themselves, read the slow and simple way."""
        auditor = self.lab.auditor
        auditor.check_metadata()
        # Of a table that was brought back the files are numbered as they were.
        if self.plan.table in ("keyed", "keyed-eager", "dynamic"):
            self._same(plain(list(auditor.rows_by_key(("id",)).values())), expected, "the table, read by hand,")
        elif self.plan.table.startswith("append"):
            self._same(plain(auditor.rows()), expected, "the table, read by hand,")

    def _same(self, rows: Rows, expected: Rows, where: str) -> None:
        self.states += 1
        one, other = _counted(rows), _counted(expected)
        assert one == other, f"{where} lacks {list((other - one).elements())} and has too much {list((one - other).elements())}"


def _counted(rows: Rows) -> Counter[tuple[tuple[str, Any], ...]]:
    return Counter(tuple(sorted(row.items())) for row in rows)


def _rows_of(table: Table, **options: Any) -> Rows:
    return plain(table.scan(**options).to_arrow().to_pylist())
