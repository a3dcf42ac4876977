"""Random operations under every merge engine, against the rules in plain Python; queried after each commit and compaction.

Several flushes a commit, several commits, compactions of all sizes in between, narrow reads, and reads of older snapshots.
The seed is in the name of the test.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from tablestore.io.memory import MemoryFileStore
from tablestore.testing.lab import Lab
from tests.support.naivemerge import NaiveEngine, Record, Row

NAMES = count()
COLUMNS: dict[str, tuple[pa.DataType, Callable[[random.Random], Any]]] = {
    "n": (pa.int64(), lambda rng: rng.randrange(-50, 50)),
    "m": (pa.int32(), lambda rng: rng.randrange(9)),
    "s": (pa.string(), lambda rng: rng.choice(["", "a", "b", "é" * rng.randrange(9)])),
    "tags": (pa.list_(pa.string()), lambda rng: rng.choices("xyz", k=rng.randrange(3))),
    "d": (pa.decimal128(10, 2), lambda rng: rng.randrange(100)),
    "g": (pa.int32(), lambda rng: rng.randrange(5)),
    "h": (pa.int32(), lambda rng: rng.randrange(5)),
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A table and what is written to it. ``in_order``: columns that never go back for a key; ``late`` ones may."""

    columns: tuple[str, ...]
    options: Mapping[str, str]
    rules: Mapping[str, Any]
    kinds: tuple[str, ...] = ("+I", "+U")
    in_order: tuple[str, ...] = ()

    @property
    def engine(self) -> NaiveEngine:
        return NaiveEngine(key=("id",), columns=("id", *self.columns), **self.rules)


def _aggregation(functions: dict[str, str], kinds: tuple[str, ...] = ("+I", "+U"), **options: str) -> Case:
    removes = bool(options)
    return Case(
        columns=tuple(functions),
        options={
            "merge-engine": "aggregation",
            **{f"fields.{name}.aggregate-function": function for name, function in functions.items()},
            **options,
        },
        rules={"engine": "aggregation", "functions": functions, "remove_on_delete": removes},
        kinds=kinds,
    )


GROUPS = {"merge-engine": "partial-update", "fields.g.sequence-group": "n,s", "fields.h.sequence-group": "d"}
GROUP_RULES = {"engine": "partial-update", "groups": {("g",): ("n", "s"), ("h",): ("d",)}}
ALL = ("+I", "-U", "+U", "-D")
CASES = {
    "deduplicate": Case(columns=("n", "s", "tags"), options={}, rules={"engine": "deduplicate"}, kinds=ALL),
    "deduplicate, ignoring deletes": Case(
        columns=("n", "s"), options={"ignore-delete": "true"}, rules={"engine": "deduplicate", "ignore_delete": True}, kinds=ALL
    ),
    "first-row": Case(columns=("n", "s"), options={"merge-engine": "first-row"}, rules={"engine": "first-row"}),
    "partial-update": Case(
        columns=("n", "m", "s", "tags"), options={"merge-engine": "partial-update"}, rules={"engine": "partial-update"}
    ),
    "partial-update, removing": Case(
        columns=("n", "m", "s", "tags"),
        options={"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
        rules={"engine": "partial-update", "remove_on_delete": True},
        kinds=ALL,
    ),
    "sequence groups": Case(columns=("n", "s", "g", "d", "h", "m"), options=GROUPS, rules=GROUP_RULES, kinds=ALL),
    "sequence groups, a sum": Case(
        columns=("n", "s", "g", "d", "h"),
        options=GROUPS | {"fields.n.aggregate-function": "sum"},
        rules=GROUP_RULES | {"functions": {"n": "sum"}},
        kinds=ALL,
    ),
    "sequence groups, removing": Case(
        columns=("n", "s", "g", "d", "h", "m"),
        options=GROUPS | {"partial-update.remove-record-on-sequence-group": "g"},
        rules=GROUP_RULES | {"removing": frozenset({"g"})},
        kinds=ALL,
        in_order=("g", "h"),
    ),
    "aggregation": _aggregation({"n": "sum", "m": "max", "s": "listagg", "d": "min", "h": "first_value"}),
    "aggregation with retractions": _aggregation({"n": "sum", "d": "sum", "s": "last_value"}, kinds=ALL),
    "aggregation, retractions kept apart": _aggregation({"n": "sum", "tags": "collect", "s": "last_non_null_value"}, kinds=ALL),
    "aggregation, removing": _aggregation(
        {"n": "sum", "m": "max", "s": "listagg"}, kinds=("+I", "+U", "-D"), **{"aggregation.remove-record-on-delete": "true"}
    ),
}


class Run:
    """One table and its model, driven by one seed."""

    def __init__(self, case: Case, seed: int, *, keys: int, small_files: str = "2 kb") -> None:
        self.rng = random.Random(seed)
        self.case, self.engine, self.keys = case, case.engine, keys
        self.schema = pa.schema(
            [pa.field("id", pa.int64(), nullable=False), *(pa.field(name, COLUMNS[name][0]) for name in case.columns)]
        )
        options = {
            **case.options,
            "bucket": str(self.rng.choice([1, 3])),
            "target-file-size": self.rng.choice([small_files, "128 mb"]),
            "write-only": self.rng.choice(["true", "false"]),
        }
        self.table = Lab(MemoryFileStore(f"engines-{next(NAMES)}"), schema=self.schema, options=options).open()
        self.records: dict[int, list[Record]] = {}
        self.rows: dict[int, Row] = {}
        self.last: dict[tuple[str, int], int] = {}
        self.history: dict[int, dict[int, Row]] = {}

    def commit(self, count: int) -> None:
        with self.table.new_writer() as writer:
            for _ in range(self.rng.choice([1, 1, 3])):
                changes = [self._change() for _ in range(self.rng.randrange(1, count + 1))]
                rows = pa.Table.from_pylist([row for _, row in changes], schema=self.schema)
                writer.write(rows.append_column("_row_kind", pa.array([kind for kind, _ in changes])))
                if self.rng.random() < 0.3:
                    writer.flush()
            writer.commit()
        self.check()

    def compact(self) -> None:
        self.table.compact(full=self.rng.random() < 0.2)
        self.check()

    def check(self) -> None:
        if self.case.rules["engine"] == "first-row":
            # Readers of such tables see what a compaction has taken up.
            self.table.compact(full=True)
        snapshots = self.table.snapshots()
        self.history[snapshots[-1].id] = dict(self.rows)
        assert snapshots[-1].rows in (None, len(self.rows)), "a snapshot counts its rows, or says nothing"
        self._compare(self.table.scan().to_arrow(), self.rows)
        some = self.rng.sample(self.case.columns, self.rng.randrange(1, len(self.case.columns) + 1))
        self._compare(self.table.scan(columns=["id", *some]).to_arrow(), self.rows)
        at = self.rng.choice(list(self.history))
        if self.rng.random() < 0.2 and at >= snapshots[0].id:
            self._compare(self.table.scan(snapshot_id=at).to_arrow(), self.history[at])

    def _compare(self, found: pa.Table, expected: dict[int, Row]) -> None:
        rows = {row["id"]: row for row in found.to_pylist()}
        assert len(rows) == found.num_rows, "a key occurs twice"
        names = found.schema.names
        assert rows == {key: {name: row[name] for name in names} for key, row in expected.items()}

    def _change(self) -> Record:
        rng, key = self.rng, self.rng.randrange(self.keys)
        row: Row = {"id": key}
        for name in self.case.columns:
            # A row that begins anew says where it stands: what a removed one left behind is gone after a compaction.
            given = name in self.case.in_order and key not in self.rows
            row[name] = None if not given and rng.random() < 0.25 else COLUMNS[name][1](rng)
            if name in self.case.in_order and row[name] is not None:
                row[name] = self.last[name, key] = self.last.get((name, key), 0) + rng.randrange(2)
        # What is taken back was there: a retraction of nothing means something until a compaction drops it.
        nothing = key not in self.rows and (self.engine.functions or self.engine.groups)
        kind = rng.choice(("+I", "+U") if nothing else self.case.kinds)
        records = self.records.setdefault(key, [])
        records.append((kind, row))
        folded = self.engine.fold(records)
        if folded is None:
            self.rows.pop(key, None)
        else:
            self.rows[key] = folded
        return kind, row


def drive(name: str, seed: int, *, commits: int, rows: int, keys: int, small_files: str = "2 kb") -> None:
    run = Run(CASES[name], seed, keys=keys, small_files=small_files)
    for _ in range(commits):
        run.commit(rows)
        if run.rng.random() < 0.25:
            run.compact()
    run.table.compact(full=True)
    run.check()


@pytest.mark.deep_after(3)
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", CASES)
def test_a_table_of_every_engine_agrees_with_the_rules(name: str, seed: int) -> None:
    drive(name, seed, commits=7, rows=50, keys=60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [20262])
@pytest.mark.parametrize("name", CASES)
def test_a_hundred_thousand_operations_in_three_hundred_commits_agree_with_the_rules(name: str, seed: int) -> None:
    # A run of several files, as with few rows in files of 2 kB; hundreds of them would only be opened again and again.
    drive(name, seed, commits=300, rows=400, keys=4_000, small_files="16 kb")
