"""Several writers, readers and an expirer on one table, interleaved call by call; all of it follows from one seed.

Each actor is a thread, but only one runs at a time: at every call of its store it hands the turn back, and the scheduler draws
who goes on. Priorities change now and then, so that an actor may sleep at any call while others commit, and expire, past it.
The store may also answer a publish wrongly: applied then reported failed, not applied, applied late.

What must come out is worked out from the publishes that the store really applied, in the order of their ids, on plain lists
and dicts: every reader and the auditor have to see exactly that, and every acknowledged commit has to be in it, once.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tablestore.distributed.write import commit_messages
from tablestore.errors import CommitOutcomeUnknown, ConflictError, NotFoundError, StorageError
from tablestore.format.snapshot import Snapshot
from tablestore.io.filestore import FileStore
from tablestore.store.message import CommitMessage
from tablestore.table.table import Table
from tablestore.testing.expirer import expire
from tablestore.testing.files import CapturedCall, Faults, FaultyFileStore, FileCall
from tablestore.testing.lab import Lab, is_snapshot
from tablestore.testing.scheduler import Scheduler

Rows = list[tuple[Any, ...]]
Effect = Callable[[Rows], Rows]


class _Witness(FaultyFileStore):
    """Sees which publish of an id was applied first: that one is the history, whatever anybody was told."""

    def __init__(self, inner: FileStore) -> None:
        super().__init__(inner)
        self.history: dict[int, dict[str, Any]] = {}

    def publish_if_absent(self, path: str, data: bytes) -> bool:
        created = self.inner.publish_if_absent(path, data)
        if created and path.startswith("snapshot/snapshot-"):
            self.history.setdefault(int(path.rpartition("-")[2]), json.loads(data))
        return created


@dataclass
class Report:
    """Counts and trace of one schedule."""

    seed: int
    outcomes: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    trace: list[str] = field(default_factory=list)


@dataclass
class Play:
    """One schedule. ``ambiguous`` is the chance that a publish is answered wrongly.

    ``keyed`` None: drawn. ``options`` are the table's. ``compactions``: how many an actor of its own makes.
    """

    seed: int
    files: FileStore
    ambiguous: float = 0.0
    writers: int = 3
    commits: int = 2
    keyed: bool | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    compactions: int = 0

    def run(self) -> Report:
        """Play it and check what came out; the seed is in every failure."""
        chance = random.Random(self.seed)
        self._chance = chance
        self._scheduler = Scheduler(chance)
        self._witness = _Witness(self.files)
        drawn = chance.random() < 0.5
        self._keyed = drawn if self.keyed is None else self.keyed
        options = {"commit.timeout": "20 s", "manifest.merge-min-count": str(chance.choice((2, 3, 30)))}
        if self._keyed:
            options["bucket"] = str(chance.choice((1, 2)))
        self._lab = Lab(self._witness, keyed=self._keyed, options={**options, **self.options}, seed=self.seed)
        self._effects: dict[str, Effect] = {}
        self._landed: set[str] = set()
        self._same: list[set[str]] = []
        self._reads: list[tuple[int, Rows]] = []
        self._late: list[CapturedCall] = []
        self._report = Report(self.seed)
        actors: dict[str, Callable[[], None]] = {f"writer {n}": self._writer(n) for n in range(self.writers)}
        actors["expirer"] = self._expirer
        actors["reader"] = self._reader
        if self.compactions:
            actors["compactor"] = self._compactor
        try:
            self._scheduler.run(actors)
            for late in self._late:
                late.apply()
            self._check()
        except BaseException as error:
            error.add_note(f"seed {self.seed}; the last steps were\n  " + "\n  ".join(self._scheduler.trace[-40:]))
            raise
        self._report.trace = self._scheduler.trace
        return self._report

    # actors

    def _open(self) -> tuple[Table, Faults]:
        faults = Faults()
        faults.before(lambda call: self._scheduler.step(f"{call.op} {call.path}") if _worth_a_pause(call) else None)
        return self._lab.open(FaultyFileStore(self._witness, faults)), faults

    def _writer(self, number: int) -> Callable[[], None]:
        def act() -> None:
            table, faults = self._open()
            self._answer_wrongly(faults)
            for commit in range(self.commits):
                self._commit(table, f"w{number}c{commit}", 100 + number * 100 + commit * 10)

        return act

    def _commit(self, table: Table, name: str, first_id: int) -> None:
        """One commit of a kind drawn by chance; its rows carry its ``name``."""
        kind = self._chance.choices(("write", "delete", "overwrite", "numbered", "messages"), (6, 2, 1, 2, 2))[0]
        rows: Rows = [(0, name), (first_id, name), (first_id + 1, name)]
        try:
            if kind == "write":
                self._effects[name] = self._adds(rows)
                self._heard(name, self._write(table, name, rows, None))
            elif kind == "numbered":
                self._effects[name] = self._adds(rows)
                self._heard(name, self._write(table, name, rows, 5))
                # Replayed at once, as a job does that did not hear the answer.
                self._write(table, name, rows, 5)
            elif kind == "messages":
                self._effects[name] = self._adds(rows)
                self._commit_messages(table, name, rows)
            elif kind == "delete":
                gone = f"w{self._chance.randrange(self.writers)}c0"
                self._effects[name] = lambda state: [row for row in state if row[1] != gone]
                self._heard(name, table.delete(f"v = '{gone}'"))
            else:
                self._effects[name] = lambda state: list(rows)
                self._heard(name, table.overwrite(self._lab.rows(*rows), {}))
        except CommitOutcomeUnknown as error:
            found = re.search(r"uuid ([0-9a-f-]{36})", str(error))
            if found is None:
                raise AssertionError(f"the error names no uuid: {error}") from error
            self._report.outcomes["unknown"] += 1
            self._effects[found[1]] = self._effects.pop(name)
        except ConflictError as error:
            if error.kind != "commit-timeout":
                raise
            self._report.outcomes["refused"] += 1
            del self._effects[name]

    def _write(self, table: Table, user: str, rows: Rows, identifier: int | None) -> Snapshot | None:
        with table.new_writer(commit_user=user) as writer:
            writer.write(self._lab.rows(*rows))
            return writer.commit(identifier)

    def _commit_messages(self, table: Table, name: str, rows: Rows) -> None:
        """Commit messages, and again, as a job does that did not hear the answer: one of the tries may land."""
        writer = table.new_writer()
        writer.write(self._lab.rows(*rows))
        messages = [CommitMessage.from_bytes(writer.prepare().to_bytes())]
        unheard: set[str] = set()
        for _ in range(3):
            try:
                snapshot = commit_messages(table, messages)
            except CommitOutcomeUnknown as error:
                self._report.outcomes["unknown"] += 1
                unheard.add(str(error).partition("uuid ")[2][:36])
                continue
            if snapshot is not None:
                assert snapshot.uuid is not None
                unheard.add(snapshot.uuid)
                if name in self._effects:
                    self._heard(name, snapshot)
                    self._report.outcomes["replayed"] += 1
        effect = self._effects.pop(name, None)
        if effect is not None:
            self._effects.update(dict.fromkeys(unheard, effect))
        self._same.append(unheard)

    def _heard(self, name: str, snapshot: Snapshot | None) -> None:
        effect = self._effects.pop(name)
        if snapshot is None:
            return
        assert snapshot.uuid is not None
        self._effects[snapshot.uuid] = effect
        self._landed.add(snapshot.uuid)
        self._report.outcomes["landed"] += 1

    def _adds(self, rows: Rows) -> Effect:
        if not self._keyed:
            return lambda state: [*state, *rows]
        return lambda state: [*[row for row in state if row[0] not in {new[0] for new in rows}], *rows]

    def _expirer(self) -> None:
        _, faults = self._open()
        files = FaultyFileStore(self._witness, faults)
        for _ in range(4):
            self._scheduler.step("expire", rest=True)
            self._report.outcomes["expired"] += expire(
                files, keep=self._chance.choice((1, 1, 2, 3)), hint=self.ambiguous > 0 or self._chance.random() < 0.5
            )

    def _reader(self) -> None:
        table, _ = self._open()
        for _ in range(3):
            self._scheduler.step("read", rest=True)
            try:
                scan = table.scan()
                found = [tuple(row.values()) for row in scan.to_arrow().to_pylist()]
            except NotFoundError as error:
                if error.kind not in ("data-file-gone", "metadata-gone", "no-such-snapshot"):
                    raise
                self._report.outcomes["read expired"] += 1
                continue
            self._report.outcomes["read"] += 1
            self._reads.append((scan.snapshot_id or 0, found))

    def _compactor(self) -> None:
        table, _ = self._open()
        for _ in range(self.compactions):
            self._scheduler.step("compact", rest=True)
            try:
                report = table.compact(full=self._chance.random() < 0.3)
            except CommitOutcomeUnknown:
                # Others committed and expired past it. Landed or not, the rows are the same.
                self._report.outcomes["unknown"] += 1
                continue
            self._report.outcomes["compacted"] += len(report.snapshot_ids)
            self._report.outcomes["dropped"] += report.dropped

    # faults

    def _answer_wrongly(self, faults: Faults) -> None:
        def before(call: FileCall) -> None:
            if self._late and self._chance.random() < 0.2:
                self._late.pop(self._chance.randrange(len(self._late))).apply()
            if not is_snapshot(call) or self._chance.random() >= self.ambiguous:
                return
            fault = self._chance.choice(("not applied", "applied late", "applied, reported failed"))
            self._report.faults[fault] += 1
            if fault == "not applied":
                raise StorageError(f"{fault}: {call.path}; this is a test", kind="unknown-outcome")
            if fault == "applied late":
                self._late.append(faults.capture_publish())
            else:
                faults.fail_nth(1, when="after", op="publish_if_absent")

        faults.before(before, op="publish_if_absent")

    # what must come out

    def _check(self) -> None:
        history = self._witness.history
        assert sorted(history) == list(range(1, len(history) + 1)), f"ids were left out: {sorted(history)}"
        uuids = [history[i]["uuid"] for i in sorted(history)]
        assert len(set(uuids)) == len(uuids), "a commit landed twice"
        assert self._landed <= set(uuids), "an acknowledged commit is not in the history"
        assert all(len(same & set(uuids)) <= 1 for same in self._same), "messages landed twice"
        moves = {found["uuid"] for found in history.values() if found["commitKind"] == "COMPACT"}
        assert set(uuids) - moves <= set(self._effects), "a commit that was refused is in the history"
        states: dict[int, Rows] = {0: []}
        for snapshot_id in sorted(history):
            uuid = history[snapshot_id]["uuid"]
            before = states[snapshot_id - 1]
            states[snapshot_id] = before if uuid in moves else self._effects[uuid](before)
        self._check_rows(states)

    def _check_rows(self, states: dict[int, Rows]) -> None:
        """Compare what was read, and what is there now, with the rows of each snapshot."""
        for snapshot_id, found in self._reads:
            assert sorted(found) == sorted(states[snapshot_id]), f"a reader of snapshot {snapshot_id} saw {sorted(found)}"
        self._lab.check(states[max(states)])


class UnsettledPlay(Play):
    """A schedule on a table whose level 0 is not read: a reader sees the rows of some snapshot of before, for each key."""

    def _check_rows(self, states: dict[int, Rows]) -> None:
        for snapshot_id, found in self._reads:
            seen = {row for i in range(snapshot_id + 1) for row in states[i]}
            assert set(found) <= seen, f"a reader of snapshot {snapshot_id} saw {sorted(set(found) - seen)}"
            assert len({row[0] for row in found}) == len(found), f"a reader of snapshot {snapshot_id} saw a key twice"
        self._lab.open().compact()
        wanted, auditor = sorted(states[max(states)]), self._lab.auditor
        auditor.check_metadata()
        assert self._lab.read() == sorted(wanted, key=repr)
        assert sorted((row["id"], row["v"]) for row in auditor.rows()) == wanted, "the auditor sees other rows"


def _worth_a_pause(call: FileCall) -> bool:
    return call.op not in ("input.read", "output.write", "output.close", "sync", "open_output")
