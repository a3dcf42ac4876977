"""Random changes under every merge engine and changelog producer, against a plain dict.

After each commit the changes that the table tells, folded, must be the rows of the frame, and each must fit what was there; a
query must return what the dict holds, before and after every compaction. The seed is in the name of the test.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from tablestore.format.snapshot import CommitKind
from tablestore.io.memory import MemoryFileStore
from tablestore.table.table import Table
from tablestore.testing.lab import Lab

NAMES = count()
SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int64()), ("m", pa.int32()), ("s", pa.string())])
KINDED = pa.schema([("_row_kind", pa.string()), *SCHEMA])
Row = dict[str, Any]
Rows = dict[int, Row]
PRODUCERS = ("none", "input", "lookup", "full-compaction")


@dataclass(frozen=True)
class Engine:
    """How the dict does what the table's engine does: ``add`` gives the row of a key after one more ``+I``."""

    options: Mapping[str, str]
    add: Callable[[Row | None, Row], Row]
    deletes: bool = True
    producers: tuple[str, ...] = PRODUCERS

    def apply(self, state: Rows, kind: str, row: Row) -> None:
        if kind in ("+I", "+U"):
            state[row["id"]] = self.add(state.get(row["id"]), row)
        else:
            state.pop(row["id"], None)


def _last(_old: Row | None, new: Row) -> Row:
    return new


def _first(old: Row | None, new: Row) -> Row:
    return old or new


def _by_sequence(old: Row | None, new: Row) -> Row:
    return new if old is None or new["m"] >= old["m"] else old


def _partial(old: Row | None, new: Row) -> Row:
    return {name: (old or {}).get(name) if value is None else value for name, value in new.items()}


def _aggregate(old: Row | None, new: Row) -> Row:
    if old is None:
        return new

    def both(name: str, combine: Callable[[Any, Any], Any]) -> Any:
        values = [row[name] for row in (old, new) if row[name] is not None]
        return combine(*values) if len(values) == 2 else values[0] if values else None

    return {
        "id": new["id"],
        "n": both("n", lambda a, b: a + b),
        "m": both("m", max),
        "s": old["s"] if new["s"] is None else new["s"],
    }


ENGINES = {
    "deduplicate": Engine({}, _last),
    "deduplicated changes": Engine({"changelog-producer.row-deduplicate": "true"}, _last, producers=("lookup", "full-compaction")),
    "sequence field": Engine({"sequence.field": "m"}, _by_sequence, deletes=False),
    "first-row": Engine({"merge-engine": "first-row"}, _first, deletes=False, producers=("none", "lookup")),
    "partial-update": Engine({"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}, _partial),
    "aggregation": Engine(
        {
            "merge-engine": "aggregation",
            "fields.n.aggregate-function": "sum",
            "fields.m.aggregate-function": "max",
            "fields.s.aggregate-function": "last_non_null_value",
        },
        _aggregate,
        deletes=False,
    ),
}
CASES = [(name, producer) for name, engine in ENGINES.items() for producer in engine.producers]


class Run:
    """One table and its model, driven by one seed."""

    def __init__(self, engine: Engine, producer: str, seed: int, *, keys: int, small_files: str = "2 kb") -> None:
        self.rng = random.Random(seed)
        self.engine, self.producer, self.keys = engine, producer, keys
        options = {
            **engine.options,
            "changelog-producer": producer,
            "write-only": "false",
            "bucket": str(self.rng.choice([1, 2])),
            "target-file-size": self.rng.choice([small_files, "128 mb"]),
            "full-compaction.delta-commits": str(self.rng.choice([1, 4])),
        }
        self.lab = Lab(MemoryFileStore(f"changelog-model-{next(NAMES)}"), schema=SCHEMA, options=options)
        self.table: Table = self.lab.open()
        self.model: Rows = {}
        self.folded: Rows = {}
        self.seen = 0

    def commit(self, rows: int) -> None:
        rng = self.rng
        with self.table.new_writer() as writer:
            for _ in range(rng.choice([1, 1, 3])):
                changes = [self._change() for _ in range(rng.randrange(1, rows + 1))]
                writer.write(pa.Table.from_pylist([{"_row_kind": kind, **row} for kind, row in changes], schema=KINDED))
                for kind, row in changes:
                    self.engine.apply(self.model, kind, row)
                if rng.random() < 0.3:
                    writer.flush()
            writer.commit()
        self.check()

    def compact(self) -> None:
        self.table.compact(full=self.rng.random() < 0.3)
        self.check()

    def check(self) -> None:
        table = self.table
        for snapshot in table.snapshots()[self.seen :]:
            self._fold(table.changes(snapshot.id - 1, snapshot.id).to_arrow())
            self.seen = snapshot.id
            if self.producer in ("none", "input") or snapshot.commit_kind is CommitKind.COMPACT:
                self._compare_frame(snapshot.id)
        if not self._hides_new_rows():
            assert rows_of(table.scan().to_arrow()) == self.model

    def end(self) -> None:
        """After a full compaction nothing is left to be told."""
        self.table.compact(full=True)
        self.check()
        assert self.folded == rows_of(self.table.scan().to_arrow()) == self.model

    def _hides_new_rows(self) -> bool:
        return self.engine.options.get("merge-engine") == "first-row"

    def _compare_frame(self, snapshot_id: int) -> None:
        # Level 0 is outside of the frame, and at a compaction that may be all that is.
        context = self.table.context
        live = context.manifests.live(context.snapshots.read(snapshot_id))
        top = max((entry.file.level for entry in live), default=0)
        outside = {"lookup": lambda level: level == 0, "full-compaction": lambda level: level < 5}.get(self.producer)
        assert top <= 5
        if outside is None or not any(outside(entry.file.level) for entry in live):
            assert self.folded == rows_of(self.table.scan(snapshot_id=snapshot_id).to_arrow()), f"snapshot {snapshot_id}"

    def _fold(self, changes: pa.Table) -> None:
        for row in changes.to_pylist():
            kind = row.pop("_row_kind")
            if self.producer == "input" and not self.engine.options:
                # What was given: deletes of what is not there, new rows over old ones.
                self.engine.apply(self.folded, kind, row)
            elif kind in ("-U", "-D"):
                assert self.folded.pop(row["id"]) == row
            else:
                assert row["id"] not in self.folded
                self.folded[row["id"]] = row

    def _change(self) -> tuple[str, Row]:
        rng = self.rng
        row = {
            "id": rng.randrange(self.keys),
            "n": rng.choice([None, rng.randrange(-50, 50)]),
            "m": rng.randrange(1000) if "sequence.field" in self.engine.options else rng.choice([None, rng.randrange(9)]),
            "s": rng.choice([None, "", "a", "é" * rng.randrange(20)]),
        }
        return ("-D" if self.engine.deletes and rng.random() < 0.2 else "+I"), row


def rows_of(rows: pa.Table) -> Rows:
    found = {row["id"]: row for row in rows.to_pylist()}
    assert len(found) == rows.num_rows, "a key occurs twice"
    return found


def drive(name: str, producer: str, seed: int, *, commits: int, rows: int, keys: int, small_files: str = "2 kb") -> None:
    run = Run(ENGINES[name], producer, seed, keys=keys, small_files=small_files)
    for _ in range(commits):
        run.commit(rows)
        if run.rng.random() < 0.25:
            run.compact()
    run.end()


@pytest.mark.deep_after(2)
@pytest.mark.parametrize(("name", "producer"), CASES)
def test_changes_add_up_to_the_rows_at_each_snapshot(name: str, producer: str) -> None:
    drive(name, producer, seed=len(name) * 7 + len(producer), commits=8, rows=60, keys=70)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [20261])
@pytest.mark.parametrize(("name", "producer"), CASES)
def test_a_hundred_thousand_changes_add_up_at_each_of_three_hundred_commits(name: str, producer: str, seed: int) -> None:
    # A run of several files, as with few rows in files of 2 kB; hundreds of them would only be opened again and again.
    drive(name, producer, seed, commits=300, rows=400, keys=2_000, small_files="16 kb")
