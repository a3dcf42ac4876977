"""Changes are exact: each says what a row was and what it became, and together they lead from one snapshot to the other."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.format.parquet.parquetfile import DataFileOptions
from tablestore.format.snapshot import CommitKind
from tablestore.io.memory import MemoryFileStore
from tablestore.store.scan.splitreader import SplitReader
from tablestore.table.table import Table
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.expirer import expire
from tablestore.testing.lab import Lab

PRODUCERS = ("none", "input", "lookup", "full-compaction")
PART = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("day", pa.string(), nullable=False), ("v", pa.string())])


@pytest.fixture
def files(request: pytest.FixtureRequest) -> MemoryFileStore:
    return MemoryFileStore(request.node.name)


def make(files: MemoryFileStore, producer: str = "none", options: Mapping[str, str] | None = None, **more: Any) -> Lab:
    return Lab(files, options={"write-only": "false", "changelog-producer": producer, **(options or {})}, **more)


def told(table: Table, start: int, stop: int | None = None, **options: Any) -> list[str]:
    """Changes as short texts."""
    rows = table.changes(start, stop, **options).to_arrow().to_pylist()
    return [" ".join(str(value) for value in row.values()) for row in rows]


def apply(state: dict[Any, Any], changes: pa.Table, key: tuple[str, ...], *, exact: bool = True) -> None:
    """Fold changes into ``state``; with ``exact`` each must fit what is there."""
    for row in changes.to_pylist():
        kind = row.pop("_row_kind")
        place = tuple(row[name] for name in key)
        if kind in ("-U", "-D"):
            found = state.pop(place, None)
            assert not exact or found == row, f"{kind} {row}, there was {found}"
        else:
            assert not exact or place not in state, f"{kind} {row}, there was {state.get(place)}"
            state[place] = row


def rows_at(table: Table, snapshot_id: int | None = None) -> dict[Any, Any]:
    rows = table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist()
    return {tuple(row[name] for name in table.primary_key): row for row in rows}


# -- who tells changes, and when


def test_without_a_producer_each_write_tells_what_its_rows_were_and_became(files: MemoryFileStore) -> None:
    lab = make(files)
    table = lab.open()
    table.upsert(lab.rows((1, "a"), (2, "b"), (1, "aa")))
    table.upsert(lab.rows((1, "A"), (3, "c")))
    table.delete(pa.table({"id": [2, 9]}))
    table.write_changes(pa.table({"_row_kind": ["-D", "+I"], "id": [1, 1], "v": ["A", "again"]}))
    assert told(table, 0, 1) == ["+I 1 aa", "+I 2 b"]
    assert told(table, 1, 2) == ["-U 1 aa", "+U 1 A", "+I 3 c"]
    assert told(table, 2, 3) == ["-D 2 b"], "a key that was not there is not told"
    assert told(table, 3) == ["-U 1 A", "+U 1 again"]
    assert told(table, 1, 3) == told(table, 1, 2) + told(table, 2, 3)
    assert told(table, 4) == []


def test_several_files_of_one_commit_tell_their_changes_one_after_the_other(files: MemoryFileStore) -> None:
    lab = make(files)
    table = lab.open()
    table.upsert(lab.rows((1, "a")))
    with table.new_writer() as writer:
        writer.write(lab.rows((1, "b"), (5, "x")))
        writer.flush()
        writer.write(lab.rows((1, "c"), (2, "y")))
        writer.commit()
    assert told(table, 1) == ["-U 1 a", "+U 1 b", "+I 5 x", "-U 1 b", "+U 1 c", "+I 2 y"]


def test_the_upsert_log_has_the_rows_as_they_were_written_and_looks_nothing_up(files: MemoryFileStore) -> None:
    lab = make(files)
    table = lab.open()
    table.upsert(lab.rows((1, "a"), (2, "b")))
    table.upsert(lab.rows((1, "A")))
    table.delete(pa.table({"id": [2]}))
    assert told(table, 0, pairs=False) == ["+I 1 a", "+I 2 b", "+I 1 A", "-D 2 None"]
    assert table.changes(0, pairs=False).count() == 4


def test_input_keeps_every_row_as_it_was_written_beside_the_write(files: MemoryFileStore) -> None:
    lab = make(files, "input")
    table = lab.open()
    table.upsert(lab.rows((2, "b"), (1, "a"), (1, "aa")))
    changes = pa.table({"_row_kind": ["-U", "+U", "-D", "+I"], "id": [1, 1, 2, 2], "v": ["aa", "A", "b", "again"]})
    table.write_changes(changes)
    assert told(table, 0, 1) == ["+I 1 a", "+I 1 aa", "+I 2 b"]
    assert told(table, 1, 2) == ["-U 1 aa", "+U 1 A", "-D 2 b", "+I 2 again"]
    first, second = table.snapshots()[:2]
    assert (first.commit_kind, first.changelog_record_count) == (CommitKind.APPEND, 3)
    assert second.changelog_record_count == 4
    assert told(table, 0, pairs=False) == ["+I 1 a", "+I 1 aa", "+I 2 b", "+U 1 A", "-D 2 b", "+I 2 again"]


def test_input_that_is_ignored_is_not_told(files: MemoryFileStore) -> None:
    lab = make(files, "input", {"ignore-delete": "true"})
    table = lab.open()
    table.write_changes(pa.table({"_row_kind": ["+I", "-D", "-U", "+U"], "id": [1, 1, 2, 2], "v": ["a", "a", "b", "c"]}))
    assert told(table, 0) == ["+I 1 a", "+I 2 c"]


def test_rows_as_written_to_a_table_that_folds_them_are_not_its_changes(files: MemoryFileStore) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int64())])
    lab = make(files, "input", {"merge-engine": "aggregation", "fields.n.aggregate-function": "sum"}, schema=schema)
    table = lab.open()
    table.upsert(lab.rows((1, 5), (2, 1)))
    table.upsert(lab.rows((1, 3)))
    assert told(table, 0) == ["+I 1 5", "+I 2 1", "-U 1 5", "+U 1 8"]
    assert told(table, 0, pairs=False) == ["+I 1 5", "+I 2 1", "+U 1 8"]
    assert [snapshot.changelog_record_count for snapshot in table.snapshots()] == [2, 1], "other engines read them as they were"


@pytest.mark.parametrize("producer", ["none", "input"])
def test_a_row_that_is_taken_back_and_not_replaced_is_a_delete_where_pairs_are_left_out(
    files: MemoryFileStore, producer: str
) -> None:
    table = make(files, producer).open()
    table.write_changes(pa.table({"_row_kind": ["+I", "+I", "+I"], "id": [1, 2, 3], "v": ["a", "b", "c"]}))
    table.write_changes(pa.table({"_row_kind": ["-U", "-U", "+U", "-U"], "id": [1, 2, 2, 3], "v": ["a", "b", "B", None]}))
    found = told(table, 1, pairs=False)
    assert found == ["-D 1 a", "+U 2 B", "-D 3 None"]
    assert told(table, 1, pairs=False, columns=["v"]) == ["-D a", "+U B", "-D None"]
    assert told(table, 1, pairs=False, filter="v = 'B'") == ["-D 1 a", "+U 2 B" if producer == "none" else "+I 2 B", "-D 3 None"]
    assert [row["id"] for row in table.scan().to_arrow().to_pylist()] == [2]


def test_lookup_tells_changes_with_the_compaction_that_follows_each_write(files: MemoryFileStore) -> None:
    lab = make(files, "lookup")
    table = lab.open()
    for rows in (((1, "a"), (2, "b")), ((1, "A"), (3, "c")), ((1, "A"),)):
        table.upsert(lab.rows(*rows))
    table.delete(pa.table({"id": [2, 9]}))
    kinds = [(snapshot.commit_kind.value, snapshot.changelog_record_count) for snapshot in table.snapshots()]
    assert kinds[::2] == [("APPEND", None)] * 4
    assert kinds[1::2] == [("COMPACT", 2), ("COMPACT", 3), ("COMPACT", 2), ("COMPACT", 1)]
    assert told(table, 0) == ["+I 1 a", "+I 2 b", "-U 1 a", "+U 1 A", "+I 3 c", "-U 1 A", "+U 1 A", "-D 2 b"]


def test_full_compaction_tells_changes_with_full_compactions_only(files: MemoryFileStore) -> None:
    lab = make(files, "full-compaction", {"full-compaction.delta-commits": "100"})
    table = lab.open()
    table.upsert(lab.rows((1, "a"), (2, "b")))
    table.upsert(lab.rows((1, "A"), (2, "b"), (3, "c")))
    assert told(table, 0) == []
    table.compact(full=True)
    assert told(table, 0) == ["+I 1 A", "+I 2 b", "+I 3 c"]
    table.upsert(lab.rows((1, "x")))
    table.delete(pa.table({"id": [3]}))
    table.upsert(lab.rows((1, "y"), (4, "d")))
    assert told(table, 3) == []
    table.compact(full=True)
    assert told(table, 3) == ["-U 1 A", "+U 1 y", "-D 3 c", "+I 4 d"]
    table.compact(full=True)
    assert len(told(table, 0)) == 7, "a compaction that changes nothing tells nothing"


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_a_file_that_only_moves_into_the_frame_tells_its_rows(files: MemoryFileStore, producer: str) -> None:
    lab = make(files, producer, {"target-file-size": "1 kb", "full-compaction.delta-commits": "100"})
    table = lab.open()
    table.upsert(lab.rows((1, "a"), (2, "b")))
    table.compact(full=True)
    compacted = next(snapshot for snapshot in table.snapshots() if snapshot.commit_kind is CommitKind.COMPACT)
    delta = table.context.manifests.delta(compacted)
    assert len({entry.file.file_name for entry in delta}) == 1, "the file was rewritten, so this proves nothing"
    assert told(table, 0) == ["+I 1 a", "+I 2 b"]


def test_changes_carry_the_number_of_the_row_that_went_and_of_the_one_that_came(files: MemoryFileStore) -> None:
    lab = make(files, "lookup")
    table = lab.open()
    table.upsert(lab.rows((1, "a"), (2, "b")))
    table.upsert(lab.rows((1, "A"), (3, "c")))
    table.delete(pa.table({"id": [2]}))
    context = table.context
    numbers = []
    for snapshot in table.snapshots():
        for entry in context.manifests.changelog(snapshot):
            reader = SplitReader.of(context, (), None)
            path = f"{reader.directory(entry.partition, entry.bucket)}/{entry.file.file_name}"
            opened = reader.open_file(path, entry.file)
            rows = pa.Table.from_batches(list(opened.read(None))).to_pylist()
            opened.close()
            found = [row["_SEQUENCE_NUMBER"] for row in rows]
            assert (min(found), max(found)) == (entry.file.min_sequence_number, entry.file.max_sequence_number)
            assert entry.file.delete_row_count == sum(row["_VALUE_KIND"] in (1, 3) for row in rows)
            assert entry.file.file_name.startswith("changelog-")
            numbers.append([(row["_VALUE_KIND"], row["id"], row["_SEQUENCE_NUMBER"]) for row in rows])
    (first, second, _) = (s.file.min_sequence_number for n in (1, 3, 5) for s in context.manifests.delta(table.snapshots()[n - 1]))
    assert numbers == [
        [(0, 1, first), (0, 2, first)],
        [(1, 1, first), (2, 1, second), (0, 3, second)],
        [(3, 2, first)],
    ]


def test_rows_that_stay_equal_are_left_out_on_request_and_ignored_columns_do_not_count(files: MemoryFileStore) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("seen", pa.int32())])
    options = {
        "changelog-producer.row-deduplicate": "true",
        "changelog-producer.row-deduplicate-ignore-fields": "seen",
    }
    lab = make(files, "lookup", options, schema=schema)
    table = lab.open()
    table.upsert(lab.rows((1, "a", 1), (2, None, 1), (3, "c", 1)))
    table.upsert(lab.rows((1, "a", 2), (2, None, 2), (3, "C", 2)))
    assert told(table, 2) == ["-U 3 c 1", "+U 3 C 2"]


def test_first_row_tells_the_first_row_of_a_key_and_nothing_after_it(files: MemoryFileStore) -> None:
    lab = make(files, "lookup", {"merge-engine": "first-row"})
    table = lab.open()
    table.upsert(lab.rows((1, "a"), (2, "b")))
    table.upsert(lab.rows((1, "late"), (3, "c")))
    table.upsert(lab.rows((3, "late"), (1, "later")))
    assert told(table, 0) == ["+I 1 a", "+I 2 b", "+I 3 c"]


def test_a_row_that_comes_too_late_by_its_sequence_field_is_no_change(files: MemoryFileStore) -> None:
    lab = make(files, "lookup", {"sequence.field": "v"})
    table = lab.open()
    table.upsert(lab.rows((1, "m"), (2, "m")))
    table.upsert(lab.rows((1, "a"), (2, "z")))
    assert told(table, 2) == ["-U 2 m", "+U 2 z"]


def test_write_only_writers_leave_the_changelog_to_the_compaction(files: MemoryFileStore) -> None:
    lab = make(files, "lookup", {"write-only": "true"})
    table = lab.open()
    table.upsert(lab.rows((1, "a")))
    table.upsert(lab.rows((1, "b"), (2, "c")))
    assert told(table, 0) == []
    table.compact()
    assert told(table, 0) == ["+I 1 b", "+I 2 c"], "the net change of what was compacted together"


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("producer", ["none", "lookup"])
@pytest.mark.parametrize("engine", ["deduplicate", "first-row"])
def test_tables_with_deletion_vectors_tell_what_their_readers_see(files: MemoryFileStore, producer: str, engine: str) -> None:
    lab = make(files, producer, {"deletion-vectors.enabled": "true", "merge-engine": engine})
    table = lab.open()
    state: dict[Any, Any] = {}
    for step in range(5):
        table.upsert(lab.rows(*((i % 40, f"{step}") for i in range(step * 9, step * 9 + 25))))
        if engine == "deduplicate":
            table.delete(pa.table({"id": [step, step * 7, 99]}))
    for snapshot in table.snapshots():
        apply(state, table.changes(snapshot.id - 1, snapshot.id).to_arrow(), ("id",))
        assert state == rows_at(table, snapshot.id), f"snapshot {snapshot.id}"
    assert len(state) > 20


def test_postponed_rows_are_told_when_they_come_into_their_buckets(tmp_path: Path, project: Path) -> None:
    shutil.copytree(project / "tests" / "golden" / "paimon" / "py_pk_postpone", tmp_path / "t")
    table = ts.open_table(str(tmp_path / "t"))
    assert told(table, 0) == []
    before = table.snapshots()[-1].id
    table.compact()
    state: dict[Any, Any] = {}
    apply(state, table.changes(before).to_arrow(), table.primary_key)
    assert state == rows_at(table) and state


# -- order, partitions, evolution


@pytest.mark.deep
@pytest.mark.parametrize("producer", PRODUCERS)
def test_changes_of_all_partitions_and_buckets_add_up_at_each_snapshot(files: MemoryFileStore, producer: str) -> None:
    options = {"bucket": "3", "data-file.thin-mode": "false"}
    lab = make(files, producer, options, schema=PART, primary_key=("id", "day"), partition_by=("day",))
    table = lab.open()
    for step in range(6):
        rows = [(i % 17, f"d{i % 3}", f"{step}") for i in range(step * 5, step * 5 + 20)]
        table.upsert(lab.rows(*rows))
        table.delete(pa.table({"id": [step, step + 3], "day": ["d0", "d1"]}))
    state: dict[Any, Any] = {}
    for snapshot in table.snapshots():
        changes = table.changes(snapshot.id - 1, snapshot.id, snapshot_ids=True).to_arrow()
        assert set(changes.column("_snapshot_id").to_pylist()) <= {snapshot.id}
        apply(state, changes.drop_columns(["_snapshot_id"]), table.primary_key, exact=producer != "input")
        if producer in ("none", "input") or snapshot.commit_kind is CommitKind.COMPACT:
            assert state == rows_at(table, snapshot.id)
    assert state == rows_at(table)


def test_the_changes_of_a_snapshot_come_by_partition_and_bucket_and_file(files: MemoryFileStore) -> None:
    lab = make(files, schema=PART, primary_key=("id", "day"), partition_by=("day",))
    table = lab.open()
    with table.new_writer() as writer:
        writer.write(lab.rows((1, "e1", "a"), (2, "d1", "b")))
        writer.flush()
        writer.write(lab.rows((0, "d1", "c"), (0, "e1", "d")))
        writer.commit()
    assert told(table, 0) == ["+I 2 d1 b", "+I 0 d1 c", "+I 1 e1 a", "+I 0 e1 d"]


@pytest.mark.parametrize("producer", PRODUCERS)
def test_changes_from_before_an_evolution_have_the_columns_of_today(files: MemoryFileStore, producer: str) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.string()), ("gone", pa.int32()), ("n", pa.int32())])
    lab = make(files, producer, schema=schema)
    table = lab.open()
    table.upsert(lab.rows((1, "a", 1, 10), (2, "b", 2, 20)))
    table = table.alter(
        [ts.RenameColumn("v", to="text"), ts.DropColumn("gone"), ts.AddColumn("late", pa.string()), ts.ChangeType("n", pa.int64())]
    )
    table.upsert(pa.table({"id": [1, 3], "text": ["A", "c"], "n": [11, 30], "late": ["x", "y"]}))
    found = table.changes(0, filter="n > 10 or id = 1", columns=["late", "text", "n"]).to_arrow()
    assert found.schema.field("n").type == pa.int64()
    after = ["+I None a 10", "+I None b 20"], ["-U None a 10", "+U x A 11", "+I y c 30"]
    if producer == "input":
        after = after[0], ["+I x A 11", "+I y c 30"]
    assert [" ".join(str(v) for v in row.values()) for row in found.to_pylist()] == [*after[0], *after[1]]


def test_append_tables_tell_their_rows(files: MemoryFileStore) -> None:
    lab = make(files, keyed=False)
    table = lab.open()
    table.append(lab.rows((2, "b"), (1, "a")))
    table.append(lab.rows((2, "b")))
    assert told(table, 0) == ["+I 2 b", "+I 1 a", "+I 2 b"]
    for pairs in (True, False):
        assert told(table, 0, filter="id = 2", columns=["v"], pairs=pairs) == ["+I b", "+I b"]
    assert table.changes(0).count() == 3


# -- what is asked for


def _filtered(files: MemoryFileStore, producer: str) -> Table:
    lab = make(files, producer)
    table = lab.open()
    table.upsert(lab.rows((1, "in"), (2, "out"), (3, "in"), (4, "out")))
    table.upsert(lab.rows((1, "out"), (2, "in"), (3, "in2"), (4, "out2")))
    table.delete(pa.table({"id": [2, 4]}))
    return table


@pytest.mark.parametrize("producer", ["none", "lookup", "full-compaction"])
def test_a_row_that_leaves_a_filter_is_deleted_and_one_that_enters_is_inserted(files: MemoryFileStore, producer: str) -> None:
    table = _filtered(files, producer)
    changes = table.changes(0, filter="v like 'in%'")
    assert [" ".join(map(str, row.values())) for row in changes.to_arrow().to_pylist()] == [
        *("+I 1 in", "+I 3 in"),
        *("-D 1 in", "+I 2 in", "-U 3 in", "+U 3 in2"),
        "-D 2 in",
    ]
    assert changes.count() == 7


@pytest.mark.parametrize("producer", ["input", "none"])
def test_where_the_row_before_is_not_known_a_filter_passes_what_may_remove_it(files: MemoryFileStore, producer: str) -> None:
    table = _filtered(files, producer)
    state: dict[Any, Any] = {}
    apply(state, table.changes(0, filter="v like 'in%'", pairs=False).to_arrow(), ("id",), exact=False)
    assert state == {(3,): {"id": 3, "v": "in2"}}
    by_key = told(table, 0, filter="id >= 3", pairs=False)
    assert by_key[:4] == ["+I 3 in", "+I 4 out", "+I 3 in2", "+I 4 out2"], "what a filter on the key leaves out never came"


def test_a_pair_is_one_change_also_where_batches_end_between_its_rows(files: MemoryFileStore) -> None:
    lab = make(files, "lookup")
    opened = lab.open()
    settings = replace(opened.context.settings, data_files=DataFileOptions(row_group_rows=3))
    table = Table(replace(opened.context, settings=settings), "small groups")
    table.upsert(lab.rows(*((i, "in") for i in range(20))))
    table.upsert(lab.rows(*((i, "out") for i in range(20))))
    assert told(table, 2, filter="v = 'in'") == [f"-D {i} in" for i in range(20)]
    assert told(table, 2, filter="v = 'out'") == [f"+I {i} out" for i in range(20)]


def test_changes_convert_like_a_scan(files: MemoryFileStore) -> None:
    lab = make(files)
    table = lab.open()
    table.upsert(lab.rows((1, "a"), (2, "b")))
    table.upsert(lab.rows((1, "A")))
    changes = table.changes(0, columns=["v"], snapshot_ids=True)
    expected = [("+I", 1, "a"), ("+I", 1, "b"), ("-U", 2, "a"), ("+U", 2, "A")]
    assert changes.schema.names == ["_row_kind", "_snapshot_id", "v"]
    assert [tuple(row.values()) for row in changes.to_arrow().to_pylist()] == expected
    assert [tuple(row) for row in changes.to_pandas().itertuples(index=False)] == expected
    assert changes.to_polars().rows() == expected
    with duckdb.connect() as connection:
        assert changes.to_duckdb(connection, "c").fetchall() == expected
    assert pa.RecordBatchReader.from_stream(changes).read_all().num_rows == changes.count() == 4
    assert changes.to_reader().schema == changes.schema
    assert repr(changes) == "Changes(from_snapshot=0, to_snapshot=2, columns=['v'], filter=None)"
    assert (changes.from_snapshot, changes.to_snapshot) == (0, 2)
    kinds = table.changes(0, columns=[]).to_arrow()
    assert kinds.column("_row_kind").to_pylist() == ["+I", "+I", "-U", "+U"]


def test_changes_of_one_table_can_be_written_to_another(files: MemoryFileStore) -> None:
    lab, copy = make(files), Lab(MemoryFileStore("the copy of test_changes"))
    table, other = lab.open(), copy.open()
    table.upsert(lab.rows((1, "a"), (2, "b"), (3, "c")))
    table.delete(pa.table({"id": [2]}))
    table.upsert(lab.rows((1, "A")))
    other.write_changes(table.changes(0))
    assert copy.read() == lab.read() == [(1, "A"), (3, "c")]


@pytest.mark.parametrize("wrong", [(-1, None), ("1", None), (1, "2"), (True, None), (2, 1)])
def test_snapshots_that_make_no_range_are_refused(files: MemoryFileStore, wrong: tuple[Any, Any]) -> None:
    lab = make(files)
    for i in range(3):
        lab.write_new((i, "x"))
    with pytest.raises(ts.InvalidInputError, match="snapshot"):
        lab.open().changes(*wrong)


def test_an_unknown_column_snapshot_or_way_is_refused_by_name(files: MemoryFileStore) -> None:
    lab = make(files)
    lab.write_new((1, "x"))
    table = lab.open()
    with pytest.raises(ts.NotFoundError, match="has no snapshot 7: the latest is 1"):
        table.changes(0, 7)
    with pytest.raises(ts.NotFoundError, match="has no snapshot 7"):
        table.changes(7)
    with pytest.raises(ts.InvalidInputError, match="no column 'w'"):
        table.changes(0, columns=["w"])
    with pytest.raises(ts.InvalidInputError, match="on_discontinuity"):
        table.changes(0, on_discontinuity="ignore")  # type: ignore[arg-type]


def test_an_empty_table_has_no_changes(files: MemoryFileStore) -> None:
    assert make(files).open().changes(0).to_arrow().num_rows == 0


# -- where changes are not known


@pytest.mark.parametrize("producer", PRODUCERS)
def test_an_overwrite_is_a_discontinuity_that_names_its_snapshot(files: MemoryFileStore, producer: str) -> None:
    lab = make(files, producer)
    table = lab.open()
    table.upsert(lab.rows((1, "a")))
    overwritten = table.overwrite(lab.rows((1, "b"), (2, "c")))
    assert overwritten is not None
    with pytest.raises(
        ts.NotFoundError, match=rf"snapshot {overwritten.id} of kind OVERWRITE.*from_snapshot={overwritten.id}"
    ) as e:
        table.changes(0).to_arrow()
    assert e.value.kind == "discontinuity"
    table.upsert(lab.rows((3, "d")))
    table.compact(full=True)
    assert [found.snapshot_id for found in table.changes(0).discontinuities()] == [overwritten.id]
    assert "+I 3 d" in told(table, 0, on_discontinuity="skip")
    assert told(table, overwritten.id)[-1] == "+I 3 d"


@pytest.mark.parametrize("producer", PRODUCERS)
def test_an_overwrite_is_told_row_by_row_where_the_table_says_so(files: MemoryFileStore, producer: str) -> None:
    lab = make(files, producer, {"streaming-read-overwrite": "true"})
    table = lab.open()
    table.upsert(lab.rows((1, "a"), (2, "b"), (3, "c")))
    table.upsert(lab.rows((2, "B")))
    table.overwrite(lab.rows((2, "B"), (3, "d"), (4, "e")))
    table.compact(full=True)
    state: dict[Any, Any] = {}
    apply(state, table.changes(0).to_arrow(), ("id",), exact=producer != "input")
    assert state == rows_at(table)


def test_an_overwritten_append_table_tells_old_and_new_rows_where_it_says_so(files: MemoryFileStore) -> None:
    lab = make(files, options={"streaming-read-overwrite": "true"}, keyed=False)
    table = lab.open()
    table.append(lab.rows((1, "a")))
    table.overwrite(lab.rows((2, "b")))
    assert told(table, 0) == ["+I 1 a", "-D 1 a", "+I 2 b"]


def test_untracked_writes_are_a_discontinuity_whatever_the_table_says_later(files: MemoryFileStore) -> None:
    lab = make(files, options={"change-tracking": "false"})
    table = lab.open()
    table.upsert(lab.rows((1, "a")))
    table = table.alter(ts.SetOption("change-tracking", "true"))
    table.upsert(lab.rows((1, "b")))
    with pytest.raises(ts.NotFoundError, match=r"snapshot 1 of kind APPEND .*change-tracking"):
        table.changes(0).to_arrow()
    assert told(table, 1) == ["-U 1 a", "+U 1 b"]


def test_changes_that_have_expired_are_refused_with_what_is_retained(files: MemoryFileStore) -> None:
    lab = make(files, options={"write-only": "true"})
    table = lab.open()
    for i in range(5):
        table.upsert(lab.rows((1, str(i))))
    before = table.changes(1)
    expire(files, keep=2)
    with pytest.raises(ts.NotFoundError, match="snapshot 2 have expired; retained are those of 4 to 5") as error:
        table.changes(1)
    assert error.value.kind == "snapshot-expired"
    with pytest.raises(ts.NotFoundError, match="have expired"):
        before.to_arrow()
    assert told(table, 3) == ["-U 1 2", "+U 1 3", "-U 1 3", "+U 1 4"]


def test_changes_see_what_another_writer_landed_in_between(files: MemoryFileStore) -> None:
    lab = make(files, "input")
    one, other = lab.open(), lab.open()
    one.upsert(lab.rows((1, "a")))
    with one.new_writer() as writer:
        writer.write(lab.rows((1, "late"), (2, "x")))
        writer.flush()
        other.upsert(lab.rows((1, "b")))
        writer.commit()
    assert told(one, 1) == ["+I 1 b", "+I 1 late", "+I 2 x"]
    state: dict[Any, Any] = {}
    apply(state, one.changes(0).to_arrow(), ("id",), exact=False)
    assert state == rows_at(one)


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("producer", ["input", "lookup"])
def test_whichever_file_operation_fails_the_changes_still_add_up_and_one_clean_leaves_no_file(producer: str, stride: int) -> None:
    step, failed = 1, True
    while failed:
        clock = ManualClock()
        store = MemoryFileStore(f"{producer} {stride} {step}", clock=clock)
        lab = make(store, producer, clock=clock)
        lab.write_new((0, "first"), (1, "a"))
        table, faults = lab.faulty()
        faults.fail_nth(step)
        with suppress(ts.TablestoreError):
            table.upsert(lab.rows((0, "second"), (2, "b")))
        failed = faults.injected_total > 0
        healthy = lab.open()
        healthy.upsert(lab.rows((3, "c")))
        healthy.compact(full=True)
        state: dict[Any, Any] = {}
        apply(state, healthy.changes(0).to_arrow(), ("id",), exact=producer != "input")
        assert state == rows_at(healthy), f"operation {step}"
        clock.advance(3 * 86_400)
        healthy.remove_orphan_files(dry_run=False)
        live = {entry.file.file_name for s in healthy.snapshots() for entry in healthy.context.manifests.changelog(s)}
        there = {info.name.rpartition("/")[2] for info in store.list("bucket-0", prefix="changelog-")}
        assert there == live, f"operation {step}"
        step += stride
    assert step > 20, "hardly an operation was tried"


# -- what may be declared and changed


def test_producers_that_a_table_cannot_have_are_refused_at_creation(tmp_path: Any) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("db")
    schema = pa.schema([pa.field("id", pa.int64()), ("v", pa.string())])
    for name, key, options, match in (
        ("a", [], {"changelog-producer": "lookup"}, "no primary key"),
        ("b", ["id"], {"changelog-producer": "input", "merge-engine": "first-row"}, "first-row"),
        ("c", ["id"], {"changelog-producer": "full-compaction", "merge-engine": "first-row"}, "first-row"),
        ("d", ["id"], {"changelog-producer": "lookup", "changelog-producer.row-deduplicate-ignore-fields": "w"}, "names w"),
        ("e", ["id"], {"changelog-producer": "everything"}, "changelog-producer"),
    ):
        with pytest.raises(ts.TablestoreError, match=match):
            catalog.create_table(f"db.{name}", schema, primary_key=key, options=options)
    assert not catalog.list_tables("db")


@pytest.mark.parametrize(
    ("option", "old", "new"),
    [
        ("changelog-producer", "lookup", "none"),
        ("changelog-producer", "none", "lookup"),
        ("changelog-producer", "full-compaction", "lookup"),
        ("merge-engine", "deduplicate", "first-row"),
        ("sequence.field", "v", "id"),
    ],
)
def test_what_decides_over_changes_is_not_changed_before_all_is_compacted(
    files: MemoryFileStore, option: str, old: str, new: str
) -> None:
    lab = Lab(files, options={"write-only": "true", option: old})
    table = lab.open()
    table.upsert(lab.rows((1, "a")))
    table.upsert(lab.rows((1, "b")))
    with pytest.raises(ts.UnsupportedError, match="full compaction") as error:
        table.alter(ts.SetOption(option, new))
    assert error.value.kind == "outside-frame"
    assert table.refresh().options()[option] == old
    table.compact(full=True)
    assert table.alter(ts.SetOption(option, new)).options()[option] == new


def test_commit_times_and_ids_of_changes_are_those_of_their_snapshots(files: MemoryFileStore) -> None:
    lab = make(files)
    table = lab.open()
    table.upsert(lab.rows((1, "a")))
    lab.clock.advance(60_000)
    table.upsert(lab.rows((2, "b")))
    first = table.snapshots()[0]
    moment = datetime.fromtimestamp(first.time_millis / 1000, UTC)
    base = table.scan(timestamp=moment).snapshot_id
    assert base == 1
    assert told(table, base, snapshot_ids=True) == ["+I 2 2 b"]
