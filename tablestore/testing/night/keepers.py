"""Everything that removes beside everything that keeps, interleaved call by call; all of it follows from one seed.

Actors on one table: writers that sleep, a compactor, an expirer, a cleaner, makers of tags and branches, one that rolls back, and
time, which passes in leaps. The rules of the game are those of the product: a commit whose files are older than half of the
orphan age is refused, and nobody sleeps for that long between this check and the publish.

What must come out is worked out from the snapshots that the store really took, in order, on plain lists and dicts: each branch
and each tag has to read exactly as it should, nothing that anything needs may be missing, and one clean at the end leaves no
orphan.
"""

import itertools
import json
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tablestore.errors import AlreadyExistsError, CommitOutcomeUnknown, ConflictError, InvalidInputError, NotFoundError
from tablestore.format.snapshot import Snapshot
from tablestore.format.tagfile import Tag
from tablestore.io.filestore import FileStore
from tablestore.io.memory import MemoryFileStore
from tablestore.table.table import Table
from tablestore.table.write.committing import Origin
from tablestore.table.write.overwrite import commit_overwrite
from tablestore.table.write.writer import TableWriter
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.files import Faults, FaultyFileStore, FileCall
from tablestore.testing.holdings import Holdings
from tablestore.testing.lab import Lab
from tablestore.testing.scheduler import Scheduler

Rows = list[tuple[Any, ...]]
Effect = Callable[[Rows], Rows]
Place = tuple[str, int]
"""A snapshot: the branch it is on, and its id."""

# Each play has a store of its own.
_NAMES = itertools.count()
ORPHAN_AGE_H = 10
LEAP_H = 3
_SNAPSHOT = re.compile(r"(?:branch/branch-([^/]+)/)?snapshot/snapshot-(\d+)")
# What may come of racing with others; anything else is a bug.
REFUSALS = (ConflictError, NotFoundError, AlreadyExistsError, InvalidInputError)
EXPECTED_KINDS = frozenset(
    {
        "commit-timeout", "too-old", "not-a-fast-forward", "no-such-snapshot", "no-such-tag", "no-such-branch", "no-such-table",
        "tag-exists", "branch-exists", "tag-in-use", "data-file-gone", "metadata-gone", "conflict",
    }
)  # fmt: skip


class _Witness(FaultyFileStore):
    """Sees which publish of an id was applied first: that one is the history, whatever anybody was told."""

    def __init__(self, inner: FileStore) -> None:
        super().__init__(inner)
        self.history: dict[Place, dict[str, Any]] = {}
        self.forks: dict[str, int] = {}

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        created = self.inner.publish_if_absent(path, data)
        match = _SNAPSHOT.fullmatch(path)
        if created and match is not None:
            self.history.setdefault((match[1] or "main", int(match[2])), json.loads(data))
        return created

    def write(self, path: str, data: bytes) -> None:
        self.inner.write(path, data)
        match = _SNAPSHOT.fullmatch(path)
        if match is not None and match[1]:
            self.forks[match[1]] = int(match[2])


@dataclass
class KeepersReport:
    """Counts and trace of one schedule."""

    seed: int
    outcomes: Counter[str] = field(default_factory=Counter)
    trace: list[str] = field(default_factory=list)


@dataclass
class Keepers:
    """One schedule."""

    seed: int
    rounds: int = 3

    def run(self) -> KeepersReport:
        """Play it and check what came out; the seed is in every failure."""
        chance = self._chance = random.Random(self.seed)
        self._scheduler = Scheduler(chance, restlessness=0.25)
        self._clock = ManualClock()
        self._witness = _Witness(MemoryFileStore(f"keepers-{next(_NAMES)}", clock=self._clock))
        self._keyed = chance.random() < 0.6
        options = {
            # Leaps of hours are not what a commit gives up for.
            "commit.timeout": "1000 h",
            "tablestore.orphan-age": f"{ORPHAN_AGE_H} h",
            "manifest.merge-min-count": str(chance.choice((2, 3, 30))),
            "write-only": "true",
        }
        if self._keyed:
            options["bucket"] = "1"
            if self.seed % 4 == 3:
                # Snapshots lead to changelog files, which tags do not keep.
                options["changelog-producer"] = "input"
        self._lab = Lab(self._witness, keyed=self._keyed, options=options, seed=self.seed, clock=self._clock)
        self._effects: dict[str, Effect] = {}
        self._landed: set[str] = set()
        self._committing: set[str] = set()
        self._tagged: dict[str, int] = {}
        self._report = KeepersReport(self.seed)
        self._write(self._lab.open(), "first", [(0, "first"), (1, "first")])
        actors: dict[str, Callable[[], None]] = {
            "writer 1": lambda: self._writer("w1"),
            "writer 2": lambda: self._writer("w2"),
            "overwriter": self._overwriter,
            "compactor": self._compactor,
            "expirer": self._expirer,
            "cleaner": self._cleaner,
            "tagger": self._tagger,
            "brancher": self._brancher,
            "roller": self._roller,
            "time": self._time,
        }
        try:
            self._scheduler.run(actors)
            self._check()
        except BaseException as error:
            error.add_note(f"seed {self.seed}; the last steps were\n  " + "\n  ".join(self._scheduler.trace[-60:]))
            raise
        self._report.trace = self._scheduler.trace
        return self._report

    # actors

    def _open(self, name: str) -> Table:
        faults = Faults()

        def before(call: FileCall) -> None:
            # Its age was checked just before: from here on the publish takes no hours.
            if call.op == "publish_if_absent":
                self._committing.add(name)
            if call.op not in ("input.read", "output.write", "output.close", "sync", "open_output", "size"):
                self._scheduler.step(f"{call.op} {call.path}")

        def after(_: FileCall) -> None:
            self._committing.discard(name)

        faults.before(before)
        faults.after(after, op="publish_if_absent")
        return self._lab.open(FaultyFileStore(self._witness, faults))

    def _attempt(self, name: str, what: str, act: Callable[[], Any]) -> Any:
        """Performs an act that may lose a race."""
        try:
            result = act()
        except CommitOutcomeUnknown:
            self._report.outcomes[f"{what}: unknown"] += 1
            return None
        except REFUSALS as error:
            if error.kind not in EXPECTED_KINDS:
                raise
            self._report.outcomes[f"{what}: {error.kind}"] += 1
            return None
        finally:
            self._committing.discard(name)
        self._report.outcomes[what] += 1
        return result

    def _write(self, table: Table, what: str, rows: Rows) -> None:
        self._effects[what] = self._adds(rows)
        with table.new_writer(commit_user=what) as writer:
            writer.write(self._lab.rows(*rows))
            writer.flush()
            self._scheduler.step("sleep with files", rest=self._chance.random() < 0.5)
            snapshot = writer.commit()
        self._heard(snapshot)

    def _heard(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None and snapshot.uuid is not None:
            self._landed.add(snapshot.uuid)

    def _adds(self, rows: Rows) -> Effect:
        if not self._keyed:
            return lambda state: [*state, *rows]
        return lambda state: [*[row for row in state if row[0] not in {new[0] for new in rows}], *rows]

    def _writer(self, name: str) -> None:
        table = self._open(name)
        for number in range(self.rounds + 1):
            what = f"{name}c{number}"
            rows: Rows = [(0, what), (10 + number, what)]
            self._attempt(name, "write", partial(self._write, table, what, rows))

    def _overwriter(self) -> None:
        table = self._open("overwriter")
        for number in range(self.rounds - 1):
            self._scheduler.step("overwrite", rest=True)
            self._attempt("overwriter", "overwrite", partial(self._overwrite, table, f"o{number}"))

    def _overwrite(self, table: Table, what: str) -> None:
        rows: Rows = [(0, what), (50, what)]
        self._effects[what] = lambda state: list(rows)
        with TableWriter(table.context, table.change_log, commit_user=what, replaces=True) as writer:
            writer.write(self._lab.rows(*rows))
            self._heard(commit_overwrite(table.context, table.change_log, writer.prepare(), {}, Origin(user=what)))

    def _compactor(self) -> None:
        table = self._open("compactor")
        for _ in range(self.rounds):
            self._scheduler.step("compact", rest=True)
            self._attempt("compactor", "compact", lambda: table.compact(full=True))

    def _expirer(self) -> None:
        table = self._open("expirer")
        for _ in range(self.rounds + 1):
            self._scheduler.step("expire", rest=True)
            keep = self._chance.choice((1, 1, 2, 3))
            self._attempt("expirer", "expire", partial(table.expire_snapshots, retain_min=keep, retain_max=keep))

    def _cleaner(self) -> None:
        table = self._open("cleaner")
        for _ in range(self.rounds + 1):
            self._scheduler.step("clean", rest=True)
            report = self._attempt("cleaner", "clean", lambda: table.remove_orphan_files(dry_run=False))
            self._report.outcomes["orphans"] += len(report.orphans) if report is not None else 0

    def _tagger(self) -> None:
        table = self._open("tagger")
        for number in range(self.rounds + 1):
            self._scheduler.step("tag", rest=self._chance.random() < 0.5)
            name = f"t{number}"
            tag = self._attempt("tagger", "tag", partial(self._tag, table, name))
            if tag is not None:
                self._tagged[name] = tag.snapshot.id
            if self._tagged and self._chance.random() < 0.5:
                old = self._chance.choice(sorted(self._tagged))
                if self._chance.random() < 0.3:
                    self._attempt("tagger", "rename tag", partial(table.rename_tag, old, f"{old}r"))
                else:
                    self._attempt("tagger", "delete tag", partial(table.delete_tag, old))

    def _brancher(self) -> None:
        table = self._open("brancher")
        for number in range(self.rounds - 1):
            self._scheduler.step("branch", rest=True)
            name = f"b{number}"
            tags = [tag.name for tag in table.tags()]
            chosen = self._chance.choice(tags) if tags and self._chance.random() < 0.5 else None
            made = self._attempt("brancher", "branch", partial(table.create_branch, name, tag=chosen))
            if made is None:
                continue
            branch = self._attempt("brancher", "open branch", partial(table.branch, name))
            if self._chance.random() < 0.3:
                # As an engine does that knows nothing of branches: from here on the branch has to hold its own.
                for path in (f"tag/tag-{made.created_from_tag}", f"branch/branch-{name}/tag/tag-{made.created_from_tag}"):
                    self._witness.inner.delete(path)
                self._report.outcomes["fork tag deleted"] += 1
            what = f"{name}c0"
            self._attempt("brancher", "write branch", partial(self._write, branch, what, [(0, what), (70, what)]))
            end = self._chance.random()
            if end < 0.3:
                self._attempt("brancher", "expire branch", partial(branch.expire_snapshots, retain_min=1, retain_max=1))
            elif end < 0.6:
                self._attempt("brancher", "fast-forward", partial(self._fast_forward, table, name))
            elif end < 0.8:
                self._attempt("brancher", "delete branch", partial(table.delete_branch, name))

    def _tag(self, table: Table, name: str) -> Tag:
        return table.create_tag(name, self._some_snapshot())

    def _fast_forward(self, table: Table, branch: str) -> None:
        self._heard(table.fast_forward(branch, discard_newer=True))

    def _roll_back(self, table: Table, tag: str) -> None:
        self._heard(table.rollback_to(tag=tag))

    def _roller(self) -> None:
        table = self._open("roller")
        for _ in range(self.rounds - 1):
            self._scheduler.step("roll back", rest=True)
            tags = [tag.name for tag in table.tags()]
            if tags and self._chance.random() < 0.5:
                name = self._chance.choice(tags)
                self._attempt("roller", "rollback", partial(self._roll_back, table, name))
            else:
                self._attempt("roller", "rollback", lambda: self._heard(table.rollback_to(self._some_snapshot())))

    def _time(self) -> None:
        for _ in range(3 * self.rounds):
            self._scheduler.step("time passes", rest=True)
            if not self._committing:
                self._clock.advance(LEAP_H * 3600)
                self._report.outcomes["leaps"] += 1

    def _some_snapshot(self) -> int:
        newest = max(i for branch, i in self._witness.history if branch == "main")
        return max(newest - self._chance.randrange(4), 1)

    # what must come out

    def _check(self) -> None:
        assert Holdings(self._witness.inner).missing() == {}, "a live file was deleted"
        history = self._witness.history
        assert self._landed <= {content["uuid"] for content in history.values()}, "an acknowledged commit is not in the history"
        states = self._states()
        table = self._lab.open()
        expected = states[self._newest("main")]
        assert _rows_of(table) == sorted(expected), "the table does not read as its history says"
        for tag in table.tags():
            assert _rows_of(table, tag=tag.name) == sorted(states["main", tag.snapshot.id]), f"tag {tag.name}"
        for branch in table.branches():
            assert _rows_of(table.branch(branch.name)) == sorted(states[self._newest(branch.name)]), f"branch {branch.name}"
        self._lab.write_new((1000, "still writable"))
        self._clock.advance(ORPHAN_AGE_H * 3600 + 1)
        table.remove_orphan_files(dry_run=False)
        assert Holdings(self._witness.inner).missing() == {}, "the last clean deleted a live file"
        assert Holdings(self._witness.inner).unheld() == set(), "one clean left orphans"
        assert _rows_of(self._lab.open()) == sorted(self._adds([(1000, "still writable")])(expected))

    def _newest(self, branch: str) -> Place:
        ids = [i for name, i in self._witness.history if name == branch]
        return (branch, max(ids)) if ids else ("main", self._witness.forks[branch])

    def _on_main(self, place: Place) -> Place:
        """The same snapshot as main has it, for the one at which a branch began."""
        return ("main", place[1]) if self._witness.forks.get(place[0]) == place[1] else place

    def _states(self) -> dict[Place, Rows]:
        """The rows of every snapshot that ever was, each from its parent, or from what it brought back."""
        history, states = self._witness.history, dict[Place, Rows]()
        states["main", 0] = []
        waiting = sorted(history, key=lambda place: history[place]["timeMillis"])
        while waiting:
            for place in waiting:
                branch, snapshot_id = place
                parent = self._on_main((branch, snapshot_id - 1))
                source = source_of(history[place])
                source = self._on_main(source) if source is not None else None
                if parent in states and (source is None or source in states):
                    states[place] = list(states[source]) if source else self._applied(history[place], states[parent])
                    waiting.remove(place)
                    break
            else:
                raise AssertionError(f"these snapshots follow from none that is known: {waiting}")
        return states

    def _applied(self, content: dict[str, Any], state: Rows) -> Rows:
        if content["commitKind"] == "COMPACT":
            return state
        # Every commit of rows has a user of its own.
        return self._effects[content["commitUser"]](state)


def source_of(content: dict[str, Any]) -> Place | None:
    """The snapshot that a rollback or a fast-forward brought back."""
    for key in ("tablestore.rollback", "tablestore.fast-forward"):
        if key in content.get("properties", {}):
            pointer = json.loads(content["properties"][key])
            return pointer["branch"], pointer["snapshot"]
    return None


def _rows_of(table: Table, **options: Any) -> Rows:
    return sorted(tuple(row.values()) for row in table.scan(**options).to_arrow().to_pylist())
