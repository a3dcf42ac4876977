"""A read or write cut into tasks gives the same as one process does, whatever order the tasks run in, or how often."""

import json
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from tablestore import ConflictError, FormatError, InvalidInputError, NotFoundError, UnsupportedError, open_catalog, open_table
from tablestore.distributed.compact import commit_tasks, plan_compaction, run_task
from tablestore.distributed.read import ReadTask, at_newest, pin_read, pinned_fields, plan_read, read_task
from tablestore.distributed.spec import TableSpec
from tablestore.distributed.write import abort_messages, commit_messages, prepare_write, write_partition
from tablestore.store.commit.deduplication import LANDINGS_IN_SNAPSHOT
from tablestore.store.message import CommitMessage
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table

ROWS = pa.schema([("id", pa.int64()), ("day", pa.string()), ("price", pa.float64())])


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    catalog = open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def keyed(catalog: Catalog) -> Table:
    return catalog.create_table("shop.keyed", schema=ROWS, primary_key=["id"], options={"bucket": "4"})


def spec_of(table: Table) -> TableSpec:
    return TableSpec(location=table.location, storage_options={})


def rows(ids: range, price: float = 1.0, day: str = "mon") -> pa.Table:
    return pa.table({"id": list(ids), "day": [day] * len(ids), "price": [price] * len(ids)}, schema=ROWS)


def read_all(table: Table, **how: object) -> list[dict[str, object]]:
    spec = spec_of(table)
    plan = plan_read(pin_read(table, spec), **how)  # type: ignore[arg-type]
    found: list[dict[str, object]] = []
    for task in plan.tasks:
        # What travels is plain data.
        again = pickle.loads(pickle.dumps(spec))
        for batch in read_task(again, ReadTask.from_bytes(task.to_bytes())):
            assert batch.schema.equals(plan.schema)
            found += batch.to_pylist()
    return sorted(found, key=lambda row: str(row))


def sorted_scan(table: Table, **how: object) -> list[dict[str, object]]:
    return sorted(table.scan(**how).to_arrow().to_pylist(), key=lambda row: str(row))  # type: ignore[arg-type]


def write_tasks(table: Table, *parts: pa.Table) -> list[CommitMessage]:
    job = pickle.loads(pickle.dumps(prepare_write(table, spec_of(table), rows=ROWS)))
    written = (write_partition(job, part.to_batches(max_chunksize=7), index) for index, part in enumerate(parts))
    return [CommitMessage.from_bytes(message.to_bytes()) for message in written]


@pytest.mark.parametrize("task_bytes", [1, 128 << 20])
@pytest.mark.parametrize("parallelism", [1, 3])
def test_tasks_together_read_what_a_scan_reads(keyed: Table, task_bytes: int, parallelism: int) -> None:
    keyed.upsert(rows(range(100)))
    keyed.upsert(rows(range(50, 150), price=2.0))
    keyed.delete("id < 10")
    how = {"columns": ["price", "id"], "filter": "price > 1 OR id = 20"}
    assert read_all(keyed, task_bytes=task_bytes, parallelism=parallelism, **how) == sorted_scan(keyed, **how)
    plan = plan_read(pin_read(keyed, spec_of(keyed)), task_bytes=task_bytes, parallelism=parallelism)
    assert len(plan.tasks) == (4 if task_bytes == 1 else 1)


def test_pin_keeps_snapshot_and_schema_while_others_commit(keyed: Table) -> None:
    keyed.upsert(rows(range(10)))
    pin = pin_read(keyed, spec_of(keyed))
    keyed.upsert(rows(range(20), price=9.0))
    plan = plan_read(pin)
    assert plan.pin.snapshot_id == 1
    assert sum(batch.num_rows for task in plan.tasks for batch in read_task(pin.spec, task)) == 10
    assert [field.name for field in pinned_fields(pin, ["price"])] == ["price"]
    assert at_newest(pin).snapshot_id == 2


def test_a_pinned_snapshot_is_no_other_one_of_its_number(keyed: Table) -> None:
    for price in (1.0, 2.0):
        keyed.upsert(rows(range(3), price=price))
    pin = pickle.loads(pickle.dumps(pin_read(keyed, spec_of(keyed))))
    # As other engines roll back.
    Path(keyed.location, "snapshot", "snapshot-2").unlink()
    Path(keyed.location, "snapshot", "LATEST").write_text("1")
    open_table(keyed.location).upsert(rows(range(3), price=3.0))
    with pytest.raises(ConflictError, match=r"snapshot 2 .* was rolled back") as refused:
        plan_read(pin)
    assert refused.value.kind == "snapshot-replaced"


def test_pin_of_an_empty_table_stays_empty(keyed: Table) -> None:
    pin = pin_read(keyed, spec_of(keyed))
    keyed.upsert(rows(range(10)))
    assert plan_read(pin).tasks == ()


def test_small_batches_are_put_together(catalog: Catalog) -> None:
    table = catalog.create_table("shop.many", schema=ROWS)
    for start in range(5):
        table.append(rows(range(start, start + 3)))
    plan = plan_read(pin_read(table, spec_of(table)))
    batches = [batch for task in plan.tasks for batch in read_task(plan.pin.spec, task)]
    assert [batch.num_rows for batch in batches] == [15]


def test_plain_files_hold_the_rows_that_no_task_reads(catalog: Catalog) -> None:
    table = catalog.create_table("shop.parts", schema=ROWS, primary_key=["day", "id"], partition_by=["day"])
    table.upsert(pa.concat_tables([rows(range(10), day="a"), rows(range(10), day="b"), rows(range(10), day="c")]))
    table.upsert(rows(range(5, 15), price=2.0, day="b"))
    table.delete(pa.table({"day": ["d"], "id": [99]}))
    plan = plan_read(pin_read(table, spec_of(table)), plain_files=tuple)
    assert [path.split("/")[0] for path in plan.plain_files] == ["day=a", "day=c"]
    assert all(Path(table.location, path).is_file() for path in plan.plain_files)
    ours = [row for task in plan.tasks for batch in read_task(plan.pin.spec, task) for row in batch.to_pylist()]
    assert sorted((row["id"], row["price"]) for row in ours) == [
        *((n, 1.0) for n in range(5)),
        *((n, 2.0) for n in range(5, 15)),
    ]


def test_write_of_tasks_is_one_snapshot_and_later_tasks_win(keyed: Table) -> None:
    messages = write_tasks(keyed, rows(range(20)), rows(range(10, 30), price=2.0), rows(range(0)))
    assert keyed.snapshots() == ()
    snapshot = commit_messages(keyed, messages)
    assert snapshot is not None
    assert snapshot.id == 1
    assert {row["id"]: row["price"] for row in sorted_scan(keyed)} == {n: 1.0 if n < 10 else 2.0 for n in range(30)}


def test_task_that_ran_twice_counts_once(catalog: Catalog) -> None:
    table = catalog.create_table("shop.appended", schema=ROWS)
    job = prepare_write(table, spec_of(table))
    first = write_partition(job, rows(range(5)).to_batches(), 0)
    second = write_partition(job, rows(range(5)).to_batches(), 0)
    assert first != second
    commit_messages(table, [second])
    assert table.scan().count() == 5


def test_identifier_is_applied_once(keyed: Table) -> None:
    for price in (1.0, 2.0):
        snapshot = commit_messages(keyed, write_tasks(keyed, rows(range(3), price)), commit_user="job", identifier=7)
        assert snapshot is not None
        assert snapshot.id == 1
    assert [row["price"] for row in sorted_scan(keyed)] == [1.0] * 3
    assert keyed.files().num_rows == len(list(Path(keyed.location).glob("bucket-*/*.parquet")))


def test_nothing_to_commit_is_no_snapshot_but_overwrites(keyed: Table) -> None:
    assert commit_messages(keyed, []) is None
    keyed.upsert(rows(range(3)))
    assert commit_messages(keyed, write_tasks(keyed, rows(range(0)))) is None
    commit_messages(keyed, [write_partition(prepare_write(keyed, spec_of(keyed), overwrite=True), [], 0)], overwrite=True)
    assert keyed.scan().count() == 0


def test_an_overwrite_without_a_message_is_refused_unless_it_is_numbered(keyed: Table) -> None:
    """Committed again, it would remove what others wrote meanwhile."""
    keyed.upsert(rows(range(3)))
    for unknown in ({}, {"commit_user": "job"}, {"identifier": 1}):
        with pytest.raises(InvalidInputError, match="without a message") as refused:
            commit_messages(keyed, [], overwrite=True, **unknown)
        assert refused.value.kind == "no-identity"
    landed = commit_messages(keyed, [], overwrite=True, commit_user="job", identifier=1)
    keyed.upsert(rows(range(2)))
    assert commit_messages(keyed, [], overwrite=True, commit_user="job", identifier=1) == landed
    assert keyed.scan().count() == 2


def test_overwrite_replaces_only_the_partitions_that_rows_fall_into(catalog: Catalog) -> None:
    table = catalog.create_table("shop.days", schema=ROWS, partition_by=["day"])
    table.append(pa.concat_tables([rows(range(3), day="a"), rows(range(4), day="b")]))
    commit_messages(table, write_tasks(table, rows(range(1), day="b")), overwrite=True)
    assert sorted(row["day"] for row in sorted_scan(table)) == ["a", "a", "a", "b"]


def test_abort_removes_files_that_no_snapshot_names_and_no_others(keyed: Table) -> None:
    landed, lost = write_tasks(keyed, rows(range(10)), rows(range(10)))
    commit_messages(keyed, [landed])
    # A later snapshot no longer lists the files of the first; time travel still needs them.
    keyed.overwrite(rows(range(2)), partition={})
    before = set(Path(keyed.location).glob("bucket-*/*.parquet"))
    abort_messages(keyed, [landed, lost])
    after = set(Path(keyed.location).glob("bucket-*/*.parquet"))
    assert len(before) - len(after) == 4
    assert keyed.scan(snapshot_id=1).count() == 10
    assert keyed.scan().count() == 2


def test_rows_are_refused_before_anything_is_written(keyed: Table, tmp_path: Path) -> None:
    spec = spec_of(keyed)
    for schema, said in (
        (pa.schema([("id", pa.string())]), "'id'.*takes BIGINT.*found string"),
        (pa.schema([("id", pa.int64()), ("prize", pa.float64())]), "'prize'.*did you mean 'price'"),
        (pa.schema([("price", pa.float64())]), "lack the NOT NULL columns id"),
        (pa.schema([("id", pa.int64()), ("_row_kind", pa.int8())]), "expected text in the column _row_kind"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            prepare_write(keyed, spec, rows=schema)
    prepare_write(keyed, spec, rows=pa.schema([("_row_kind", pa.string()), ("id", pa.int32())]))
    assert not list(Path(keyed.location).glob("bucket-*"))
    shutil.copytree(Path(__file__).parent.parent / "golden" / "paimon" / "py_pk_postpone", tmp_path / "foreign")
    schema = tmp_path / "foreign" / "schema" / "schema-0"
    schema.write_text(schema.read_text().replace('"bucket": "-2"', '"bucket": "-2", "changelog-producer": "input"'))
    foreign = open_table(str(tmp_path / "foreign"))
    with pytest.raises(UnsupportedError, match="bucket"):
        prepare_write(foreign, spec_of(foreign))


def test_messages_of_a_table_that_was_created_anew_are_refused(keyed: Table, catalog: Catalog) -> None:
    messages = write_tasks(keyed, rows(range(3)))
    catalog.drop_table("shop.keyed")
    new = catalog.create_table("shop.keyed", schema=ROWS, primary_key=["id"], options={"bucket": "4"})
    with pytest.raises(ConflictError):
        commit_messages(new, messages)
    assert new.scan().count() == 0


@pytest.mark.parametrize("task", [b"", b"[]", b"{}", b'{"version": 1}', b"\xff", json.dumps({"version": 2}).encode()])
def test_bytes_that_are_no_task_are_a_format_error(task: bytes) -> None:
    with pytest.raises(FormatError):
        ReadTask.from_bytes(task)


def test_an_overwrite_without_rows_that_is_committed_again_changes_nothing(keyed: Table) -> None:
    keyed.upsert(rows(range(10)))
    messages = [write_partition(prepare_write(keyed, spec_of(keyed), overwrite=True), [], 0)]
    landed = commit_messages(keyed, messages, overwrite=True)
    assert landed is not None
    for number in range(LANDINGS_IN_SNAPSHOT + 1):
        job = prepare_write(keyed, spec_of(keyed))
        commit_messages(keyed, [write_partition(job, rows(range(number, number + 1)).to_batches(), 0)])
    again = commit_messages(keyed, messages, overwrite=True)
    assert again is not None and again.uuid == landed.uuid
    assert keyed.scan().count() == LANDINGS_IN_SNAPSHOT + 1


def test_an_epoch_without_rows_is_put_on_record_under_each_identifier(keyed: Table) -> None:
    messages = [write_partition(prepare_write(keyed, spec_of(keyed)), [], 0)]
    first = commit_messages(keyed, messages, commit_user="job", identifier=1)
    second = commit_messages(keyed, messages, commit_user="job", identifier=2)
    assert first is not None and second is not None and (first.commit_identifier, second.commit_identifier) == (1, 2)


def test_messages_of_writes_and_compactions_are_not_taken_for_each_other(catalog: Catalog) -> None:
    table = catalog.create_table("shop.t", schema=ROWS, options={"write-only": "true"})
    for number in range(3):
        table.append(rows(range(number, number + 1)))
    written = write_partition(prepare_write(table, spec_of(table)), rows(range(9, 10)).to_batches(), 0)
    compacted = run_task(table.context, plan_compaction(table, full=True).tasks[0])
    assert compacted is not None
    assert compacted is not None
    with pytest.raises(InvalidInputError, match="commit_messages"):
        commit_tasks(table, [written])
    with pytest.raises(InvalidInputError, match="use commit_tasks"):
        commit_messages(table, [compacted])
    # Neither took anything away.
    commit_tasks(table, [compacted])
    commit_messages(table, [written])
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2, 9]


def test_a_message_that_is_handed_over_twice_is_one(keyed: Table) -> None:
    job = prepare_write(keyed, spec_of(keyed))
    first, second = (write_partition(job, rows(range(n, n + 2)).to_batches(), n) for n in (0, 1))
    commit_messages(keyed, [first, first, second])
    assert sorted(keyed.scan().to_arrow()["id"].to_pylist()) == [0, 1, 2]


def test_a_task_whose_files_are_damaged_is_refused_by_name(keyed: Table) -> None:
    keyed.upsert(rows(range(3)))
    task = json.loads(plan_read(pin_read(keyed, spec_of(keyed))).tasks[0].to_bytes())
    task["splits"][0]["files"] = "no base64!"
    with pytest.raises(FormatError, match="not a read task"):
        ReadTask.from_bytes(json.dumps(task).encode())


def test_a_task_that_still_writes_when_its_staged_table_is_discarded_leaves_nothing(catalog: Catalog, tmp_path: Path) -> None:
    staged = catalog.stage_table("shop.staged", ROWS, ["id"], options={"bucket": "2"})
    job = prepare_write(staged.table, spec_of(staged.table))

    def late() -> Iterator[pa.RecordBatch]:
        yield from rows(range(5)).to_batches()
        staged.discard()
        yield from rows(range(5, 9)).to_batches()

    with pytest.raises(NotFoundError, match="was removed while a task wrote its rows"):
        write_partition(job, late(), 0)
    assert [path.name for path in (tmp_path / "warehouse").rglob("*") if path.is_file()] == ["_database"]
