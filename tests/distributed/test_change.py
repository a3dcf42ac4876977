"""UPDATE, DELETE and MERGE below SQL: what they leave, what they refuse, and who wins against other writers."""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from functools import partial
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from tablestore import ConflictError, FormatError, InvalidInputError, UnsupportedError, open_catalog
from tablestore.distributed.change import decode_messages, encode_message, pin_change, plan_rewrites, prepare_change
from tablestore.distributed.spec import TableSpec
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.io.filestore import FileStore
from tablestore.store.commit.conflict import StalePlan
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table
from tablestore.table.write.changetasks import ChangeJob, abort_changes, commit_changes, write_changes
from tablestore.table.write.rowchange import RowChange
from tablestore.types.evolution.schemachanges import ChangeDefault
from tablestore.types.filter.filters import parse_filter
from tablestore.types.filter.predicate import Comparison
from tests.support.statements import Row, added, attempt, change_schema, gone, run, updated

ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("day", pa.string()), ("n", pa.int64())])
DELETE = RowChange(operation="DELETE", deletes=True)
UPDATE = RowChange(operation="UPDATE", sets=("n",))
MERGE = RowChange(operation="MERGE", inserts=True, deletes=True, sets=("n",))
NAMES = count()
KEYED: Mapping[str, str] = {"bucket": "2"}
VECTORS = {"deletion-vectors.enabled": "true"}
# Each kind of table: whether it has a key, and its options.
TABLES = {
    "keyed": (True, KEYED),
    "dynamic": (True, {"bucket": "-1", "dynamic-bucket.target-row-num": "3"}),
    "merge-on-write": (True, {**KEYED, **VECTORS}),
    "lookup": (True, {**KEYED, "changelog-producer": "lookup"}),
    "input": (True, {**KEYED, "changelog-producer": "input"}),
    "partial-update": (True, {"merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}),
    "small buffer": (True, {**KEYED, "write-buffer-size": "64 b"}),
    "append": (False, {}),
    "append buckets": (False, {"bucket": "2", "bucket-key": "id"}),
    "append vectors": (False, VECTORS),
}


@pytest.fixture
def catalog() -> Catalog:
    catalog = open_catalog(f"memory://changes-{next(NAMES)}")
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def make(catalog: Catalog) -> Callable[..., Table]:
    def made(keyed: bool = True, options: Mapping[str, str] | None = None, **how: Any) -> Table:
        how = {"schema": ROWS, "primary_key": ["id"] if keyed else [], **how}
        return catalog.create_table("shop.t", options=dict(options or {}), **how)

    return made


@pytest.fixture(params=TABLES)
def table(request: pytest.FixtureRequest, make: Callable[..., Table]) -> Table:
    keyed, options = TABLES[request.param]
    return make(keyed, options)


@pytest.fixture(params=["append", "append vectors"])
def append(request: pytest.FixtureRequest, make: Callable[..., Table]) -> Table:
    return make(*TABLES[request.param])


def write(table: Table, *rows: tuple[Any, ...]) -> None:
    given = pa.Table.from_pylist([dict(zip(table.schema.names, row, strict=True)) for row in rows], schema=table.schema)
    table.upsert(given) if table.primary_key else table.append(given)


def read(table: Table) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in table.scan().to_arrow().to_pylist()), key=repr)


def orphans(table: Table) -> set[str]:
    """Data, changelog and index files that no snapshot names."""
    context = table.refresh().context
    manifests, named = context.manifests, set()
    for snapshot in table.refresh().snapshots():
        named |= {entry.file.file_name for entry in (*manifests.delta(snapshot), *manifests.changelog(snapshot))}
        named |= {entry.file_name for entry in manifests.read_index(snapshot)}
    files = {path.rpartition("/")[2] for path in files_below(context.files, "") if not path.startswith("manifest/")}
    return {name for name in files if name.startswith(("data-", "changelog-", "index-"))} - named


def files_below(files: FileStore, directory: str) -> Iterator[str]:
    for info in files.list(directory):
        path = f"{directory}/{info.name}".lstrip("/")
        yield from files_below(files, path) if info.is_dir else (path,)


def spec_of(table: Table) -> TableSpec:
    return TableSpec(location=table.location, storage_options={})


def task(table: Table, job: ChangeJob, rows: Iterable[pa.RecordBatch]) -> bytes:
    """The message of a task in another process."""
    there = spec_of(table).table(job.schema_id)
    return encode_message(write_changes(there.context, there.change_log, job, rows))


def commit(table: Table, job: ChangeJob, *messages: bytes) -> Snapshot | None:
    return commit_changes(table.context, table.change_log, job, decode_messages(messages), prepared=True)


def add_ten(rows: list[Row]) -> list[Row]:
    return [updated(row, n=row["n"] + 10) for row in rows]


def merge(rows: list[Row]) -> list[Row]:
    """Deletes row 1, adds ten to row 2, inserts row 9."""
    changes = {1: gone, 2: lambda row: updated(row, n=row["n"] + 10)}
    return [*(changes[row["id"]](row) for row in rows if row["id"] in changes), added({"id": 9, "day": "z", "n": 9})]


@pytest.mark.deep_after(6)
@pytest.mark.parametrize("tasks", [1, 3])
def test_a_merge_lands_as_one_snapshot_in_every_kind_of_table(table: Table, tasks: int) -> None:
    write(table, (1, "a", 1), (2, "b", 2), (3, None, 3), (4, "d", 4))
    write(table, (5, "a", 5))
    snapshot = run(table, MERGE, merge, tasks=tasks, rewrite_apart=tasks > 1)
    assert snapshot is not None
    assert snapshot.operation == "MERGE"
    assert snapshot.commit_kind is (CommitKind.APPEND if table.primary_key else CommitKind.OVERWRITE)
    assert read(table) == [(2, "b", 12), (3, None, 3), (4, "d", 4), (5, "a", 5), (9, "z", 9)]
    run(table, DELETE, lambda rows: [gone(row) for row in rows if row["id"] > 3])
    run(table, UPDATE, add_ten, tasks=tasks)
    assert read(table) == [(2, "b", 22), (3, None, 13)]
    table.compact(full=True)
    assert read(table) == [(2, "b", 22), (3, None, 13)]
    assert not orphans(table)


def test_a_statement_that_changes_no_row_publishes_nothing(table: Table) -> None:
    assert run(table, UPDATE, add_ten) is None
    write(table, (1, "a", 1))
    before = table.snapshots()
    assert run(table, DELETE, lambda _: []) is None
    assert run(table, MERGE, lambda _: [], tasks=0) is None
    assert table.snapshots() == before


def test_a_merge_into_a_table_without_a_snapshot_inserts(table: Table) -> None:
    assert run(table, MERGE, lambda rows: [added({"id": 1, "day": None, "n": 1}), *rows]) is not None
    assert read(table) == [(1, None, 1)]


@pytest.mark.deep_after(5)
def test_rows_written_between_the_query_and_the_commit_are_not_lost(table: Table) -> None:
    write(table, (1, "a", 1), (2, "b", 2))
    others = iter([lambda: write(table.refresh(), (7, "late", 7)), lambda: table.refresh().delete("id = 1")])
    snapshot = run(table, UPDATE, add_ten, before_commit=lambda: next(others, lambda: None)())
    assert snapshot is not None
    assert read(table) == [(2, "b", 12), (7, "late", 17)]
    assert not orphans(table)


def test_a_plan_that_others_overtook_is_stale_and_leaves_no_file(table: Table) -> None:
    write(table, (1, "a", 1), (2, "b", 2))
    with pytest.raises(StalePlan, match="came after the plan"):
        attempt(table, UPDATE, add_ten, before_commit=lambda: write(table.refresh(), (7, "late", 7)))
    assert read(table) == [(1, "a", 1), (2, "b", 2), (7, "late", 7)]
    assert not orphans(table)


@pytest.mark.parametrize("kind", ["keyed", "dynamic", "lookup", "input"])
def test_a_compaction_between_the_query_and_the_commit_of_a_keyed_table_does_not_matter(
    kind: str, make: Callable[..., Table]
) -> None:
    keyed, options = TABLES[kind]
    table = make(keyed, {**options, "write-only": "true"})
    for number in range(3):
        write(table, (1, "a", number), (number + 2, "b", number))
    attempt(table, UPDATE, add_ten, before_commit=lambda: table.refresh().compact(full=True))
    assert read(table) == [(1, "a", 12), (2, "b", 10), (3, "b", 11), (4, "b", 12)]
    table.compact(full=True)
    assert read(table) == [(1, "a", 12), (2, "b", 10), (3, "b", 11), (4, "b", 12)]


def test_a_compaction_that_moved_the_rows_of_an_append_table_makes_the_plan_stale(append: Table) -> None:
    for number in range(12):
        write(append, (number, "a", number))
    attempts = []

    def compact_once() -> None:
        if not attempts:
            assert append.refresh().compact(full=True).tasks
        attempts.append(1)

    assert run(append, UPDATE, add_ten, before_commit=compact_once) is not None
    assert len(attempts) == 2
    assert read(append) == sorted(((number, "a", number + 10) for number in range(12)), key=repr)
    assert not orphans(append)


def test_a_table_that_was_dropped_and_made_again_meanwhile_is_refused(table: Table, catalog: Catalog) -> None:
    write(table, (1, "a", 1))

    def make_again() -> None:
        catalog.drop_table("shop.t")
        other = catalog.create_table("shop.t", schema=ROWS, primary_key=list(table.primary_key))
        write(other, (5, "new", 5))

    with pytest.raises(ConflictError, match="dropped and created again"):
        run(table, UPDATE, add_ten, before_commit=make_again)
    assert read(catalog.table("shop.t")) == [(5, "new", 5)]


def test_writers_that_never_pause_end_in_a_conflict_and_not_in_a_wrong_table(make: Callable[..., Table]) -> None:
    table = make(options={"commit.timeout": "1 ms"})
    write(table, (1, "a", 1))
    with pytest.raises(ConflictError, match="changed under this statement 1 times"):
        run(table, UPDATE, add_ten, before_commit=lambda: write(table.refresh(), (1, "b", 2)))
    assert read(table) == [(1, "b", 2)]


@pytest.mark.parametrize(
    ("keyed", "reads", "row", "is_stale"),
    [
        (True, "id = 1", (2, "a", 1), False),
        (True, "id = 1", (1, "a", 2), True),
        # A row of another value may have taken the place of one that was read.
        (True, "n = 1", (1, "a", 2), True),
        (True, "id = 1 OR n = 1", (2, "a", 2), True),
        (False, "n = 1", (1, "a", 2), False),
        (False, "n = 1", (2, "a", 1), True),
        (False, None, (1, "a", 2), True),
    ],
)
def test_a_write_that_cannot_hold_what_was_read_does_not_make_a_plan_stale(
    make: Callable[..., Table], keyed: bool, reads: str | None, row: tuple[Any, ...], is_stale: bool
) -> None:
    table = make(keyed)
    write(table, (1, "a", 1))
    change = RowChange(operation="UPDATE", sets=("n",), reads=parse_filter(reads, table.table_schema.fields))

    def update() -> None:
        attempt(table, change, lambda rows: [updated(row, n=5) for row in rows], before_commit=lambda: write(table.refresh(), row))

    if is_stale:
        with pytest.raises(StalePlan):
            update()
    else:
        update()
        assert read(table) == sorted([(1, "a", 5), row])


# a second match


def twice(rows: list[Row], second: Callable[[Row], Row]) -> list[Row]:
    return [*(updated(row, n=9) for row in rows), *(second(row) for row in rows if row["id"] == 2)]


@pytest.mark.deep_after(12)
@pytest.mark.parametrize("tasks", [1, 2])
def test_a_row_that_is_changed_twice_is_refused_by_its_key(table: Table, tasks: int) -> None:
    write(table, (1, "a", 1), (2, "b", 2), (3, "c", 3))
    named = "id = 2" if table.primary_key else r"row \d of data file data-"
    for second in (gone, lambda row: updated(row, n=8)):
        query = partial(twice, second=second)
        with pytest.raises(InvalidInputError, match=named) as caught:
            attempt(table, MERGE, query, tasks=tasks)
        assert caught.value.kind == "second-match"
    assert read(table) == [(1, "a", 1), (2, "b", 2), (3, "c", 3)]
    assert len(table.snapshots()) == len(table.refresh().snapshots())
    assert not orphans(table)


def test_a_key_that_is_inserted_twice_is_refused_across_tasks_and_partitions(make: Callable[..., Table]) -> None:
    schema = ROWS.set(1, pa.field("day", pa.string(), nullable=False))
    table = make(schema=schema, primary_key=["id", "day"], partition_by=["day"], options={"bucket": "3"})
    rows = [{"id": number, "day": day, "n": 0} for number in range(20) for day in ("x", "y/z")]
    assert attempt(table, MERGE, lambda _: map(added, rows), tasks=3) is not None
    again = [*rows, {"id": 13, "day": "y/z", "n": 1}]
    with pytest.raises(InvalidInputError, match="id = 13, day = 'y/z'"):
        attempt(table, MERGE, lambda _: map(added, again), tasks=7)


def test_tasks_that_give_a_new_key_different_buckets_are_refused_too(make: Callable[..., Table]) -> None:
    table = make(options={"bucket": "-1", "dynamic-bucket.target-row-num": "2"})
    rows = [{"id": number, "day": None, "n": 0} for number in (*range(10), 5)]
    with pytest.raises(InvalidInputError, match="id = 5"):
        attempt(table, MERGE, lambda _: map(added, rows), tasks=2)
    assert not orphans(table)


@pytest.mark.parametrize(
    ("data_type", "keys"),
    [
        (pa.float64(), [math.nan, -0.0, 0.0, math.inf, -math.inf, 5e-324]),
        (pa.decimal128(38, 2), [Decimal("-999999999999999999999999999999999999.99"), Decimal("0.00"), Decimal("0.01")]),
        (pa.string(), ["", "a", "a\x00", "ä", "x" * 200]),
        (pa.timestamp("us"), [datetime(1, 1, 1), datetime(1970, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999999)]),
        (pa.bool_(), [False, True]),
    ],
)
@pytest.mark.parametrize("tasks", [1, 2])
def test_keys_of_any_type_are_updated_and_a_second_match_of_them_is_found(
    make: Callable[..., Table], data_type: pa.DataType, keys: list[Any], tasks: int
) -> None:
    values = pa.array(keys, data_type)
    schema = pa.schema([pa.field("k", data_type, nullable=False), ("n", pa.int64())])
    table = make(schema=schema, primary_key=["k"])
    table.upsert(pa.table({"k": values, "n": [0] * len(values)}, schema=schema))
    with pytest.raises(InvalidInputError) as caught:
        attempt(table, UPDATE, lambda rows: [updated(row, n=1) for row in (*rows, rows[0])], tasks=tasks)
    assert caught.value.kind == "second-match"
    assert attempt(table, UPDATE, lambda rows: [updated(row, n=1) for row in rows], tasks=tasks) is not None
    assert table.scan().to_arrow().column("n").to_pylist() == [1] * len(values)


# merge engines


@pytest.mark.parametrize(
    ("options", "change", "why"),
    [
        ({"merge-engine": "first-row"}, UPDATE, "keeps the first row"),
        ({"merge-engine": "first-row"}, DELETE, "keeps the first row"),
        ({"merge-engine": "aggregation"}, UPDATE, "combines a new row"),
        ({"merge-engine": "aggregation"}, DELETE, "takes its values back"),
        ({"merge-engine": "partial-update"}, DELETE, "partial-update lets a -D remove"),
        ({"merge-engine": "partial-update", "fields.n.sequence-group": "day"}, UPDATE, "decides by n"),
        ({"ignore-delete": "true"}, DELETE, "skips them"),
        ({}, RowChange(operation="UPDATE", sets=("n", "id")), "sets id, which identifies a row"),
        ({}, RowChange(operation="UPDATE", sets=("m",)), "names the column 'm', which does not exist"),
        ({}, RowChange(operation="DELETE", deletes=True, reads=Comparison("=", "m", 1)), "'m'"),
    ],
)
def test_what_a_table_cannot_do_is_refused_by_name(
    make: Callable[..., Table], options: dict[str, str], change: RowChange, why: str
) -> None:
    table = make(options=options)
    with pytest.raises((InvalidInputError, LookupError), match=why):
        pin_change(table, spec_of(table), change, table.context.snapshots.latest())


def test_a_merge_that_only_inserts_works_with_every_merge_engine(make: Callable[..., Table], catalog: Catalog) -> None:
    for engine in ("deduplicate", "first-row", "aggregation", "partial-update"):
        table = make(options={"merge-engine": engine})
        write(table, (1, "a", 1))
        inserts = RowChange(operation="MERGE", inserts=True)
        run(table, inserts, lambda rows: [added({"id": len(rows) + 1, "day": "b", "n": 2})])
        assert read(table) == [(1, "a", 1), (2, "b", 2)]
        catalog.drop_table("shop.t")


def test_an_update_to_null_is_refused_where_null_keeps_the_stored_value(make: Callable[..., Table]) -> None:
    table = make(options={"merge-engine": "partial-update"})
    write(table, (1, "a", 1), (2, None, 2))
    with pytest.raises(InvalidInputError, match="cannot set 'n' to NULL") as caught:
        run(table, UPDATE, lambda rows: [updated(row, n=None) for row in rows])
    assert caught.value.kind == "update-null"
    run(table, UPDATE, add_ten)
    assert read(table) == [(1, "a", 11), (2, None, 12)]


@pytest.mark.parametrize("order", ["ascending", "descending"])
def test_an_update_wins_over_the_row_that_it_read_with_the_same_sequence(make: Callable[..., Table], order: str) -> None:
    table = make(options={"sequence.field": "day", "sequence.field.sort-order": order})
    write(table, (1, "b", 1), (2, None, 2))
    run(table, UPDATE, add_ten)
    assert read(table) == [(1, "b", 11), (2, None, 12)]
    # A merge that sets the sequence sets none that loses.
    sets_all = RowChange(operation="MERGE", sets=("day", "n"))
    wins, loses = ("c", "a") if order == "ascending" else ("a", "c")
    with pytest.raises(InvalidInputError, match=f"sets day = '{loses}' in the row with id = 1, which has day = 'b'") as caught:
        run(table, sets_all, lambda rows: [updated(rows[0], day=loses, n=0)])
    assert caught.value.kind == "update-order"
    assert read(table)[0] == (1, "b", 11)
    run(table, sets_all, lambda rows: [updated(rows[0], day=wins, n=0)])
    assert read(table)[0] == (1, wins, 0)
    run(table, DELETE, lambda rows: map(gone, rows))
    assert read(table) == []
    table.compact(full=True)
    assert read(table) == []


@pytest.mark.parametrize("buffer", ["64 b", "256 mb"])
def test_a_changelog_of_the_input_has_the_old_row_before_the_new_one(make: Callable[..., Table], buffer: str) -> None:
    table = make(options={**TABLES["input"][1], "write-buffer-size": buffer})
    write(table, (1, "a", 1), (2, None, 2), (3, "c", 3))
    base = table.snapshots()[-1].id
    snapshot = run(table, MERGE, merge, tasks=2)
    assert snapshot is not None
    changes = table.changes(base, snapshot.id).to_arrow().to_pylist()
    by_key: dict[int, list[tuple[Any, ...]]] = {}
    for row in changes:
        by_key.setdefault(row["id"], []).append((row["_row_kind"], row["day"], row["n"]))
    assert by_key == {
        1: [("-D", "a", 1)],
        2: [("-U", None, 2), ("+U", None, 12)],
        9: [("+I", "z", 9)],
    }


def test_changes_of_a_statement_are_followed_like_those_of_any_write(make: Callable[..., Table]) -> None:
    table = make(options=KEYED)
    write(table, (1, "a", 1), (2, "b", 2), (3, "c", 3))
    base = table.snapshots()[-1].id
    run(table, MERGE, merge)
    changes = table.changes(base).to_arrow().to_pylist()
    assert sorted((row["_row_kind"], row["id"], row["n"]) for row in changes) == [
        ("+I", 9, 9),
        ("+U", 2, 12),
        ("-D", 1, 1),
        ("-U", 2, 2),
    ]


def test_nulls_of_updated_rows_stay_null_where_inserted_ones_take_the_default(make: Callable[..., Table], catalog: Catalog) -> None:
    for keyed in (True, False):
        table = make(keyed)
        write(table, (1, None, 1))
        table = table.alter(ChangeDefault("day", "x"))
        run(table, MERGE, lambda rows: [updated(rows[0], n=2), added({"id": 2, "day": None, "n": None})])
        assert read(table) == [(1, None, 2), (2, "x", None)]
        catalog.drop_table("shop.t")


# append tables


def test_positions_name_the_rows_of_files_that_were_marked_or_not(append: Table) -> None:
    write(append, *((number, "ab"[number % 2], number) for number in range(6)))
    write(append, (6, "b", 6))
    append.delete("id IN (0, 3)")
    found = append.scan(["id"], "day = 'b'", positions=True).to_arrow()
    assert found.column_names == ["id", "_data_file", "_row_position"]
    assert sorted(found.column("id").to_pylist()) == [1, 5, 6]
    positions = dict(zip(found.column("id").to_pylist(), found.column("_row_position").to_pylist(), strict=True))
    marked = append.options().get("deletion-vectors.enabled") == "true"
    assert positions == ({1: 1, 5: 5, 6: 0} if marked else {1: 0, 5: 3, 6: 0})
    run(append, DELETE, lambda rows: [gone(row) for row in rows if row["day"] == "b"])
    assert read(append) == [(2, "a", 2), (4, "a", 4)]
    assert not orphans(append)


def test_rows_of_keyed_tables_have_no_positions(make: Callable[..., Table]) -> None:
    table = make()
    with pytest.raises(UnsupportedError, match="no positions in data files: it has a primary key"):
        table.scan(positions=True)


def test_the_columns_of_positions_are_reserved(make: Callable[..., Table]) -> None:
    for name in ("_data_file", "_row_position", "_row_before"):
        with pytest.raises(InvalidInputError, match="reserved"):
            make(False, schema=pa.schema([(name, pa.string())]))


@pytest.mark.parametrize("options", [{}, VECTORS])
def test_an_update_moves_rows_of_append_tables_to_other_partitions(make: Callable[..., Table], options: dict[str, str]) -> None:
    table = make(False, options, partition_by=["day"])
    write(table, (1, "x", 1), (2, "x", 2), (3, None, 3))
    moves = RowChange(operation="UPDATE", sets=("day",))
    run(table, moves, lambda rows: [updated(row, day="y") for row in rows if row["id"] != 2], tasks=2)
    assert read(table) == [(1, "y", 1), (2, "x", 2), (3, "y", 3)]
    assert sorted(row["partition"] for row in table.partitions().to_pylist()) == ["day=x", "day=y"]
    assert not orphans(table)


def test_a_delete_needs_no_values_of_an_append_table(append: Table) -> None:
    write(append, (1, "a", 1), (2, "b", 2))
    spec = spec_of(append)
    job = prepare_change(append, pin_change(append, spec, DELETE, append.context.snapshots.latest()), DELETE)
    place = append.scan(["id"], "id = 1", positions=True).to_arrow().drop_columns(["id"])
    rows = place.append_column("_row_kind", pa.array(["-D"]))
    assert commit(append, job, task(append, job, rows.to_batches())) is not None
    assert read(append) == [(2, "b", 2)]


def test_files_are_written_again_by_whoever_has_the_time(make: Callable[..., Table]) -> None:
    table = make(False)
    for number in range(4):
        write(table, *((10 * number + digit, "a", digit) for digit in range(3)))
    run(table, DELETE, lambda rows: [gone(row) for row in rows if row["n"] == 0], tasks=3, rewrite_apart=True)
    assert read(table) == sorted(((10 * number + digit, "a", digit) for number in range(4) for digit in (1, 2)), key=repr)
    assert not orphans(table)


# bad rows and bytes


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ([{"_row_kind": "-U"}], "an update is one row of kind"),
        ([{"_row_kind": None}], "expected a row kind"),
        ([{"_row_kind": "+U"}], "found nulls"),
        ([{"_row_kind": "+I", "_data_file": "f", "_row_position": 0}], "expected NULL in _data_file"),
        ([{"_row_kind": "+U", "_data_file": "f", "_row_position": -1}], "expected positions from 0"),
        ([{"_row_kind": "+I", "id": None}], "NOT NULL"),
    ],
)
def test_rows_that_say_no_clear_change_are_refused_and_leave_nothing(append: Table, rows: list[Row], why: str) -> None:
    given = [{"id": 1, "day": "a", "n": 1, "_data_file": None, "_row_position": None, **row} for row in rows]
    with pytest.raises(InvalidInputError, match=why):
        attempt(append, MERGE, lambda _: given)
    assert not orphans(append)


def test_positions_of_no_file_and_of_no_row_are_refused(append: Table) -> None:
    write(append, (1, "a", 1))
    with pytest.raises(InvalidInputError, match="expected positions below 1 in data file"):
        attempt(append, UPDATE, lambda rows: [updated({**rows[0], "_row_position": 1}, n=2)])
    with pytest.raises(StalePlan, match="data file f"):
        attempt(append, UPDATE, lambda rows: [updated({**rows[0], "_data_file": "f"}, n=2)])
    assert not orphans(append)


def test_rows_that_lack_columns_are_refused_by_name(table: Table) -> None:
    job = prepare_change(table, pin_change(table, spec_of(table), MERGE, table.context.snapshots.latest()), MERGE)
    lacking = change_schema(table).empty_table().drop_columns(["n"])
    with pytest.raises(InvalidInputError, match="lack the columns n;"):
        task(table, job, [pa.RecordBatch.from_pylist([], schema=lacking.schema)])


def test_a_statement_without_updates_needs_no_old_rows_and_takes_no_updates(make: Callable[..., Table]) -> None:
    table = make(*TABLES["input"])
    write(table, (1, "a", 1), (2, "b", 2))
    job = prepare_change(table, pin_change(table, spec_of(table), DELETE, table.context.snapshots.latest()), DELETE)
    rows = table.scan(filter="id = 1").to_arrow()
    gone_rows, updates = (rows.append_column("_row_kind", pa.array([kind])) for kind in ("-D", "+U"))
    with pytest.raises(InvalidInputError, match="DELETE sets no column"):
        task(table, job, updates.to_batches())
    assert commit(table, job, task(table, job, gone_rows.to_batches())) is not None
    assert read(table) == [(2, "b", 2)]


def test_bytes_that_are_no_message_are_a_format_error() -> None:
    for data in (b"", b"{}", b"\xff", b'{"kind": "change message", "version": 1}'):
        with pytest.raises(FormatError):
            decode_messages([data])


def test_a_message_that_is_handed_over_twice_is_one(table: Table) -> None:
    write(table, (1, "a", 1))
    job = prepare_change(table, pin_change(table, spec_of(table), MERGE, table.context.snapshots.latest()), MERGE)
    rows = pa.Table.from_pylist([added({"id": 5, "day": "a", "n": 1})], schema=change_schema(table))
    message = task(table, job, rows.to_batches())
    assert commit(table, job, message, message) is not None
    assert read(table) == [(1, "a", 1), (5, "a", 1)]


def test_what_tasks_wrote_is_removed_where_a_job_failed(table: Table) -> None:
    write(table, (1, "a", 1))
    job = prepare_change(table, pin_change(table, spec_of(table), MERGE, table.context.snapshots.latest()), MERGE)
    rows = pa.Table.from_pylist([added({"id": 5, "day": "a", "n": 1})], schema=change_schema(table))
    message = task(table, job, rows.to_batches())
    assert orphans(table)
    abort_changes(table.context, decode_messages([message]))
    assert not orphans(table)
    assert plan_rewrites(table, job, []) == ()
