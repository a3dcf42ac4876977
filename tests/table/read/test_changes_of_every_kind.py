"""Whatever a table does with its rows, its changes add up to what a query returns: with ``-U`` rows and without, for every
changelog producer, from every snapshot, and through ``consume``. The model is a dict and the rules of the engines in plain Python.
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from tablestore.format.snapshot import CommitKind
from tablestore.io.memory import MemoryFileStore
from tablestore.log.identity import Identity
from tablestore.log.position import StorePlace
from tablestore.table.table import Table
from tablestore.testing.lab import Lab
from tests.support.naivemerge import NaiveEngine, Record, Row

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int64()), ("m", pa.int32()), ("s", pa.string())])
NAMES = tuple(SCHEMA.names)
Rows = dict[int, Row]
SETS, ALL = ("+I", "+U"), ("+I", "-U", "+U", "-D")
PRODUCERS = ("none", "input", "lookup", "full-compaction")
SUMS = {"n": "sum", "m": "max", "s": "last_non_null_value"}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of table, the rules of its engine, and what may be written to it."""

    options: Mapping[str, str]
    rules: Mapping[str, Any] = field(default_factory=lambda: {"engine": "deduplicate"})
    kinds: tuple[str, ...] = ALL
    by_sequence: int = 0
    producers: tuple[str, ...] = PRODUCERS
    plain: bool = False

    def fold(self, records: list[Record]) -> Row | None:
        if self.by_sequence:
            records = sorted(records, key=lambda record: self.by_sequence * record[1]["m"])
        return NaiveEngine(key=("id",), columns=NAMES, **self.rules).fold(records)


def _vectors(**options: str) -> dict[str, str]:
    return {"deletion-vectors.enabled": "true", **options}


_SUMS = {"merge-engine": "aggregation", **{f"fields.{name}.aggregate-function": how for name, how in SUMS.items()}}
_AGGREGATION = {"engine": "aggregation", "functions": SUMS}
KINDS = {
    "plain": Kind(options={}, plain=True),
    "plain, a bucket of its own making": Kind(options={"bucket": "-1"}, plain=True),
    "sequence field": Kind(options={"sequence.field": "m"}, kinds=SETS, by_sequence=1),
    "sequence field, descending": Kind(
        options={"sequence.field": "m", "sequence.field.sort-order": "descending"}, kinds=SETS, by_sequence=-1
    ),
    "ignoring deletes": Kind(options={"ignore-delete": "true"}, rules={"engine": "deduplicate", "ignore_delete": True}),
    "first-row": Kind(
        options={"merge-engine": "first-row"}, rules={"engine": "first-row"}, kinds=SETS, producers=("none", "lookup")
    ),
    "partial-update": Kind(options={"merge-engine": "partial-update"}, rules={"engine": "partial-update"}, kinds=SETS),
    "partial-update, removing": Kind(
        options={"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        rules={"engine": "partial-update", "remove_on_delete": True},
    ),
    "sequence groups": Kind(
        options={"merge-engine": "partial-update", "fields.m.sequence-group": "n"},
        rules={"engine": "partial-update", "groups": {("m",): ("n",)}},
        kinds=SETS,
    ),
    "aggregation": Kind(options=_SUMS, rules=_AGGREGATION, kinds=SETS),
    "aggregation, removing": Kind(
        options=_SUMS | {"aggregation.remove-record-on-delete": "true"},
        rules=_AGGREGATION | {"remove_on_delete": True},
        kinds=(*SETS, "-D"),
    ),
    "deletion vectors": Kind(options=_vectors()),
    "deletion vectors, sequence field": Kind(options=_vectors(**{"sequence.field": "m"}), kinds=SETS, by_sequence=1),
    "deletion vectors, partial-update": Kind(
        options=_vectors(**{"merge-engine": "partial-update"}), rules={"engine": "partial-update"}, kinds=SETS
    ),
    "deletion vectors, aggregation": Kind(options=_vectors(**_SUMS), rules=_AGGREGATION, kinds=SETS),
}
CASES = [(kind, producer) for kind in KINDS for producer in KINDS[kind].producers]
STORES = count()


class Run:
    """A table and what its rows should be. A commit is seen when it lands; ``seen_late``: when it is compacted."""

    def __init__(self, name: str, producer: str, *, seed: int) -> None:
        self.kind, self.producer, self.rng = KINDS[name], producer, random.Random(seed)
        options = {
            "bucket": "2",
            **self.kind.options,
            "changelog-producer": producer,
            "write-only": "true",
            "target-file-size": self.rng.choice(["2 kb", "128 mb"]),
        }
        self.lab = Lab(MemoryFileStore(f"changes of every kind {next(STORES)}"), schema=SCHEMA, options=options)
        self.table: Table = self.lab.open()
        hides = "deletion-vectors.enabled" in options or options.get("merge-engine") == "first-row"
        self.seen_late = hides or producer in ("lookup", "full-compaction")
        self.records: dict[int, list[Record]] = {}
        self.rows: dict[int, Rows] = {0: {}}

    def commit(self) -> None:
        rng = self.rng
        with self.table.new_writer() as writer:
            for _ in range(rng.randrange(1, 4)):
                changes = [self._change() for _ in range(rng.randrange(1, 25))]
                rows = pa.Table.from_pylist([row for _, row in changes], schema=SCHEMA)
                writer.write(rows.append_column("_row_kind", pa.array([kind for kind, _ in changes])))
                writer.flush()
            writer.commit()
        self._note()

    def compact(self, *, full: bool) -> None:
        self.table.compact(full=full)
        self._note()

    def _note(self) -> None:
        """What the rows of the snapshots that landed since should be."""
        found = {key: self.kind.fold(records) for key, records in self.records.items()}
        now = {key: row for key, row in found.items() if row is not None}
        for snapshot in self.table.snapshots()[len(self.rows) - 1 :]:
            late = self.seen_late and snapshot.commit_kind is not CommitKind.COMPACT
            self.rows[snapshot.id] = self.rows[snapshot.id - 1] if late else now

    def _change(self) -> Record:
        rng = self.rng
        row: Row = {
            "id": rng.randrange(40),
            "n": rng.choice([None, rng.randrange(-50, 50)]),
            "m": rng.randrange(1000) if self.kind.by_sequence else rng.choice([None, rng.randrange(9)]),
            "s": rng.choice([None, "", "a", "é" * rng.randrange(9)]),
        }
        there = row["id"] in self.records
        kind = rng.choice(self.kind.kinds if there else SETS)
        self.records.setdefault(row["id"], []).append((kind, row))
        return kind, row


def driven(name: str, producer: str, seed: int) -> Run:
    run = Run(name, producer, seed=seed)
    for _ in range(5):
        run.commit()
        if run.producer != "full-compaction" and run.rng.random() < 0.5:
            run.compact(full=False)
        if run.rng.random() < 0.3:
            run.compact(full=True)
    run.compact(full=True)
    return run


def fold(state: Rows, changes: Iterator[Row], *, pairs: bool, exact: bool) -> None:
    """Apply changes; ``exact``: each has to fit what is there, also where the rows before are left out."""
    for row in changes:
        kind = row.pop("_row_kind")
        old = state.get(row["id"])
        if kind in ("-U", "-D"):
            assert pairs or kind == "-D", "a -U that nobody asked for"
            assert not exact or old == row, f"{kind} {row}, there was {old}"
            state.pop(row["id"], None)
            continue
        goes_away = kind == "+U" and not pairs
        assert not exact or (old is not None) == goes_away, f"{kind} {row}, there was {old}"
        state[row["id"]] = row


def is_exact(run: Run, *, pairs: bool) -> bool:
    """Stored rows of a plain table come as they were written."""
    return not run.kind.plain or run.producer in ("lookup", "full-compaction") or (run.producer == "none" and pairs)


@pytest.mark.deep
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 6))])
@pytest.mark.parametrize(("name", "producer"), CASES)
def test_changes_add_up_to_the_rows_of_each_snapshot_and_a_consumer_ends_with_them(name: str, producer: str, seed: int) -> None:
    run = driven(name, producer, seed)
    newest = len(run.table.snapshots())
    assert _all_in_frame(run, newest), "the last compaction took up everything"
    for pairs in (True, False):
        check_changes(run, pairs=pairs)
        for begin in (1, newest // 2, newest - 1):
            check_consumer(run, begin, pairs=pairs)


def check_changes(run: Run, *, pairs: bool) -> None:
    table, state, told = run.table, Rows(), 0
    for snapshot in table.snapshots():
        changes = table.changes(snapshot.id - 1, snapshot.id, pairs=pairs)
        rows = changes.to_arrow().to_pylist()
        assert changes.count() == len(rows)
        told += len(rows)
        fold(state, iter(rows), pairs=pairs, exact=is_exact(run, pairs=pairs))
        # What is outside of the frame comes with a later compaction.
        if _all_in_frame(run, snapshot.id):
            assert state == run.rows[snapshot.id], f"snapshot {snapshot.id}"
            assert state == rows_of(table.scan(snapshot_id=snapshot.id).to_arrow().to_pylist())
    assert told >= len(state) > 10


def check_consumer(run: Run, begin: int, *, pairs: bool) -> None:
    state = Rows()
    position = Identity(run.table.context).position(StorePlace(phase="frame", snapshot_id=begin))
    for batch in run.table.consume(position=position, pairs=pairs, follow=False):
        rows = batch.rows.to_pylist()
        fold(state, iter(rows), pairs=pairs, exact=not batch.in_frame and is_exact(run, pairs=pairs))
    assert state == run.rows[len(run.table.snapshots())], f"from snapshot {begin}"


def _all_in_frame(run: Run, snapshot_id: int) -> bool:
    snapshot = run.table.context.snapshots.read(snapshot_id)
    levels = {entry.file.level for entry in run.table.context.manifests.live(snapshot)}
    if run.producer == "full-compaction":
        return levels <= {5}
    return not run.seen_late or 0 not in levels


def rows_of(rows: list[Row]) -> Rows:
    found = {row["id"]: row for row in rows}
    assert len(found) == len(rows), "a key occurs twice"
    return found
