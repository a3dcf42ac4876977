"""Random operations on a table, against a plain dict or list; everything is compared after each step."""

from collections import Counter
from collections.abc import Callable, Mapping
from itertools import count
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tablestore.format.snapshot import Snapshot
from tablestore.io.memory import MemoryFileStore
from tablestore.table.table import Table
from tablestore.table.write.rowchange import RowChange
from tablestore.testing.lab import Lab
from tests.support import statements
from tests.support.model import Condition, ModelTable, Row

SCHEMA = pa.schema(
    [
        pa.field("id", pa.int64(), nullable=False),
        pa.field("day", pa.string(), nullable=False),
        pa.field("n", pa.int32()),
        pa.field("s", pa.string()),
    ]
)
DAYS = ("d0", "d1", "d/2=%")
NAMES = count()

ROWS = st.builds(
    lambda id, day, n, s: {"id": id, "day": day, "n": n, "s": s},
    id=st.integers(-3, 12),
    day=st.sampled_from(DAYS),
    n=st.none() | st.integers(-5, 5) | st.sampled_from([-(2**31), 2**31 - 1]),
    s=st.none() | st.sampled_from(["", "a", "b", "ab", "ä", "x" * 40]),
)
MANY = st.lists(ROWS, min_size=0, max_size=12)


def compare(name: str, test: Callable[[Any], bool]) -> Condition:
    return lambda row: None if row[name] is None else test(row[name])


def and_(one: Condition, other: Condition) -> Condition:
    def both(row: Row) -> bool | None:
        found = {one(row), other(row)}
        return False if False in found else None if None in found else True

    return both


def not_(inner: Condition) -> Condition:
    return lambda row: None if (found := inner(row)) is None else not found


SIMPLE: st.SearchStrategy[tuple[str, Condition]] = st.one_of(
    st.integers(-4, 13).map(lambda k: (f"id = {k}", compare("id", lambda v: v == k))),
    st.integers(-4, 13).map(lambda k: (f"id >= {k}", compare("id", lambda v: v >= k))),
    st.lists(st.integers(-4, 13), min_size=1, max_size=3).map(
        lambda ks: (f"id IN ({', '.join(map(str, ks))})", compare("id", lambda v: v in ks))
    ),
    st.integers(-6, 6).map(lambda k: (f"n < {k}", compare("n", lambda v: v < k))),
    st.integers(-6, 6).map(lambda k: (f"n <> {k}", compare("n", lambda v: v != k))),
    st.sampled_from(DAYS).map(lambda d: (f"day = '{d}'", compare("day", lambda v: v == d))),
    st.sampled_from(["a", "ab", "", "zz"]).map(lambda t: (f"s = '{t}'", compare("s", lambda v: v == t))),
    st.just(("n IS NULL", lambda row: row["n"] is None)),
    st.just(("s IS NOT NULL", lambda row: row["s"] is not None)),
)
CONDITIONS: st.SearchStrategy[tuple[str, Condition]] = st.one_of(
    SIMPLE,
    SIMPLE.map(lambda c: (f"NOT ({c[0]})", not_(c[1]))),
    st.tuples(SIMPLE, SIMPLE).map(lambda cs: (f"({cs[0][0]}) AND ({cs[1][0]})", and_(cs[0][1], cs[1][1]))),
    st.tuples(SIMPLE, SIMPLE).map(lambda cs: (f"({cs[0][0]}) OR ({cs[1][0]})", not_(and_(not_(cs[0][1]), not_(cs[1][1]))))),
)


def inverted(row: Row) -> int | None:
    """Another value of ``n``, in its range too."""
    return None if row["n"] is None else ~row["n"]


def as_bag(rows: list[Row], columns: tuple[str, ...] = ()) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[name] for name in columns or row) for row in rows)


class TableMachine(RuleBasedStateMachine):
    """One table. ``keyed`` by the subclass; partitioning, buckets and sizes are drawn."""

    keyed: bool
    options: Mapping[str, str] = MappingProxyType({})

    @initialize(
        partitioned=st.booleans(),
        buckets=st.sampled_from([1, 3]),
        tiny_buffer=st.booleans(),
        tiny_files=st.booleans(),
        merge=st.sampled_from([2, 30]),
        thin=st.booleans(),
    )
    def create(self, partitioned: bool, buckets: int, tiny_buffer: bool, tiny_files: bool, merge: int, thin: bool) -> None:
        options = {"manifest.merge-min-count": str(merge), **self.options}
        if tiny_buffer:
            options["write-buffer-size"] = "64 b"
        if tiny_files:
            options["target-file-size"] = "1 b"
        if self.keyed:
            options |= {"bucket": self.options.get("bucket", str(buckets)), "data-file.thin-mode": str(thin).lower()}
        elif buckets > 1:
            options |= {"bucket": str(buckets), "bucket-key": "id"}
        partition_by = ["day"] if partitioned else []
        key = ["id", "day"] if partitioned else ["id"]
        self.lab = Lab(
            MemoryFileStore(f"model-{next(NAMES)}"),
            keyed=self.keyed,
            schema=SCHEMA,
            primary_key=key,
            partition_by=partition_by,
            options=options,
        )
        self.table = self.lab.open()
        self.model = ModelTable(key=key if self.keyed else (), partition_by=partition_by)

    def landed(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            assert snapshot.id == len(self.model.history) + 1
            self.model.landed(snapshot.id)

    def arrow(self, rows: list[Row]) -> pa.Table:
        return pa.Table.from_pylist(rows, schema=SCHEMA)

    @rule(rows=MANY)
    def write(self, rows: list[Row]) -> None:
        snapshot = self.table.upsert(self.arrow(rows)) if self.keyed else self.table.append(self.arrow(rows))
        assert (snapshot is None) == (not rows)
        self.model.write(rows)
        self.landed(snapshot)

    @rule(batches=st.lists(MANY, max_size=4))
    def write_in_batches(self, batches: list[list[Row]]) -> None:
        with self.table.new_writer() as writer:
            for rows in batches:
                writer.write(self.arrow(rows))
                self.model.write(rows)
            self.landed(writer.commit())

    @rule(rows=MANY, kinds=st.lists(st.sampled_from(["+I", "-U", "+U", "-D"]), min_size=12, max_size=12))
    def write_changes(self, rows: list[Row], kinds: list[str]) -> None:
        kinds = kinds[: len(rows)] if self.keyed else ["+I"] * len(rows)
        table = self.arrow(rows).append_column("_row_kind", pa.array(kinds, pa.string()))
        snapshot = self.table.write_changes(table)
        self.model.change(zip(kinds, rows, strict=True))
        self.landed(snapshot)

    @precondition(lambda self: self.keyed)
    @rule(rows=MANY)
    def delete_by_key(self, rows: list[Row]) -> None:
        snapshot = self.table.delete(self.arrow(rows).select(list(self.model.key)))
        self.model.delete_keys(rows)
        self.landed(snapshot)

    @rule(condition=CONDITIONS)
    def delete_by_condition(self, condition: tuple[str, Condition]) -> None:
        matches = bool(self.model.find(condition[1]))
        snapshot = self.table.delete(condition[0])
        assert (snapshot is not None) == matches
        self.model.delete_where(condition[1])
        self.landed(snapshot)

    @rule(
        condition=CONDITIONS,
        verdicts=st.lists(st.sampled_from(["keep", "update", "delete"]), min_size=1, max_size=5),
        rows=MANY,
        tasks=st.integers(1, 3),
        apart=st.booleans(),
        meanwhile=st.none() | MANY,
    )
    def run_a_statement(
        self,
        condition: tuple[str, Condition],
        verdicts: list[str],
        rows: list[Row],
        tasks: int,
        apart: bool,
        meanwhile: list[Row] | None,
    ) -> None:
        """UPDATE, DELETE or MERGE: what becomes of a row that matches is drawn by its id; others write before it commits."""
        merge = RowChange(operation="MERGE", inserts=True, deletes=True, sets=("n",))
        act = {"update": lambda row: statements.updated(row, n=inverted(row)), "delete": statements.gone}

        def verdict(row: Row) -> str:
            return verdicts[row["id"] % len(verdicts)] if condition[1](row) is True else "keep"

        def new_rows(known: list[Row]) -> list[Row]:
            if not self.keyed:
                return rows
            fresh = {self.model.key_of(row): row for row in rows}
            return [fresh[key] for key in sorted(fresh.keys() - set(map(self.model.key_of, known)), key=repr)]

        def query(found: list[Row]) -> list[Row]:
            changed = [act[verdict(row)](row) for row in found if verdict(row) in act]
            return changed + [statements.added(row) for row in new_rows(found)]

        def write_once() -> None:
            nonlocal meanwhile
            given, meanwhile = meanwhile, None
            if given:
                self.landed(self.lab.write(self.lab.open(), *(tuple(row.values()) for row in given)))

        if meanwhile:
            self.model.write(meanwhile)
        before = self.model.rows
        snapshot = statements.run(self.table, merge, query, tasks=tasks, rewrite_apart=apart, before_commit=write_once)
        changed = bool(new_rows(before)) or any(verdict(row) in act for row in before)
        assert (snapshot is not None) == changed
        kept = [row for row in before if verdict(row) != "delete"]
        changed_rows = [{**row, "n": inverted(row)} if verdict(row) == "update" else row for row in kept]
        self.model.rows = changed_rows + [dict(row) for row in new_rows(before)]
        self.landed(snapshot)

    @rule(rows=MANY, everything=st.booleans())
    def overwrite(self, rows: list[Row], everything: bool) -> None:
        partition = {} if everything else None
        snapshot = self.table.overwrite(self.arrow(rows), partition)
        self.model.overwrite(rows, partition)
        self.landed(snapshot)

    @precondition(lambda self: bool(self.model.partition_by))
    @rule(rows=MANY, day=st.sampled_from(DAYS))
    def overwrite_a_partition(self, rows: list[Row], day: str) -> None:
        rows = [{**row, "day": day} for row in rows]
        snapshot = self.table.overwrite(self.arrow(rows), {"day": day})
        self.model.overwrite(rows, {"day": day})
        self.landed(snapshot)

    @rule()
    def open_again(self) -> None:
        self.table = self.lab.open()

    @rule(condition=st.none() | CONDITIONS, columns=st.permutations(SCHEMA.names), width=st.integers(1, 4), back=st.integers(0, 99))
    def scan(self, condition: tuple[str, Condition] | None, columns: list[str], width: int, back: int) -> None:
        """Now, or at any snapshot of the past."""
        chosen = tuple(columns[:width])
        ids = sorted(self.model.history)
        at = ids[back % len(ids)] if back and ids else None
        text, test = condition or (None, None)
        scan = self.table.scan(columns=list(chosen), filter=text, snapshot_id=at)
        found, expected = scan.to_arrow(), self.model.find(test, at)
        assert found.schema.names == list(chosen)
        assert as_bag(found.to_pylist(), chosen) == as_bag(expected, chosen)
        assert scan.count() == len(expected)

    @invariant()
    def agrees(self) -> None:
        assert as_bag(self.table.scan().to_arrow().to_pylist(), tuple(SCHEMA.names)) == as_bag(self.model.rows, tuple(SCHEMA.names))

    @invariant()
    def a_snapshot_counts_its_rows_or_says_nothing(self) -> None:
        before: int | None = None
        for snapshot in self.table.snapshots()[-2:]:
            rows = self.table.scan(snapshot_id=snapshot.id).count()
            assert snapshot.rows in (None, rows)
            assert before is None or snapshot.row_change in (None, rows - before)
            before = rows

    def teardown(self) -> None:
        if hasattr(self, "lab"):
            audited = Counter(self.lab.audited())
            assert audited == as_bag(self.model.rows, tuple(SCHEMA.names)), "the auditor sees other rows"
            assert self.lab.auditor.orphans() == set()


class KeyedMachine(TableMachine):
    keyed = True


class AppendMachine(TableMachine):
    keyed = False


class CompactingMachine(TableMachine):
    """Writes are followed by compactions, and what a write has done is looked at after these."""

    options = MappingProxyType({"deletion-vectors.enabled": "true", "write-only": "false"})

    def landed(self, snapshot: Snapshot | None) -> None:
        if snapshot is not None:
            self.model.landed(self.lab.auditor.ids()[-1])

    @rule(full=st.booleans())
    def compact(self, full: bool) -> None:
        self.table.compact(full=full)


class VectorAppendMachine(CompactingMachine):
    keyed = False


class VectorKeyedMachine(CompactingMachine):
    keyed = True

    def teardown(self) -> None:
        if hasattr(self, "lab"):
            auditor = self.lab.auditor
            auditor.check_metadata()
            live = Counter(tuple(row[name] for name in SCHEMA.names) for row in auditor.rows())
            assert live == as_bag(self.model.rows, tuple(SCHEMA.names)), "the auditor sees other rows"
            assert auditor.orphans() == set()


class DynamicMachine(CompactingMachine):
    """Buckets are made as keys arrive, three keys each."""

    keyed = True
    options = MappingProxyType({"bucket": "-1", "dynamic-bucket.target-row-num": "3", "write-only": "false"})

    def teardown(self) -> None:
        super().teardown()
        if hasattr(self, "lab"):
            self.lab.auditor.check_dynamic_buckets(self.model.key)


MACHINES = [KeyedMachine, AppendMachine, VectorAppendMachine, VectorKeyedMachine, DynamicMachine]


def run(machine: type[TableMachine], examples: int, steps: int) -> None:
    case = machine.TestCase
    case.settings = settings(settings.default, max_examples=examples, stateful_step_count=steps)
    case("runTest").runTest()


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_table_agrees_with_its_model(machine: type[TableMachine]) -> None:
    run(machine, 25, 12)


@pytest.mark.slow
@pytest.mark.parametrize("machine", MACHINES)
def test_a_table_agrees_with_its_model_for_long(machine: type[TableMachine]) -> None:
    # Every step reads the whole table, and every write adds files to it: a step gets dearer the more went before.
    run(machine, 100, 40)


def test_a_handle_of_before_sees_what_others_wrote() -> None:
    lab = Lab(MemoryFileStore("model-handles"))
    early: Table = lab.open()
    lab.write_new((1, "a"))
    assert early.scan().to_arrow().num_rows == 1
