"""A compaction moves rows and changes none: alone, in every race, at every failing call, and for every kind of table."""

import random
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.distributed.compact import CompactTask, commit_tasks, plan_compaction, run_task
from tablestore.distributed.spec import TableSpec
from tablestore.errors import InvalidInputError, StorageError, TablestoreError
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.format.snapshot import CommitKind
from tablestore.io.memory import MemoryFileStore
from tablestore.table.table import Table
from tablestore.table.upkeep.compaction import CompactReport
from tablestore.table.upkeep.compactplan import TaskPicker, live_buckets
from tablestore.testing.files import FileCall
from tablestore.testing.lab import Lab

NAMES = count()
PARTITIONED = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("day", pa.string(), nullable=False), pa.field("v", pa.string())]
)


def make(*, keyed: bool = True, **options: str) -> Lab:
    given = {"bucket": "1"} if keyed else {}
    return Lab(
        MemoryFileStore(f"compact-{next(NAMES)}"),
        keyed=keyed,
        options={**given, **{k.replace("_", "-"): v for k, v in options.items()}},
    )


def layers(lab: Lab, versions: int = 4, keys: int = 20) -> dict[int, str]:
    """Overlapping runs; what they hold together."""
    model: dict[int, str] = {}
    for version in range(versions):
        rows = [(key, f"{version}") for key in range(version, keys, version + 1)]
        lab.write_new(*rows)
        model.update(rows)
    return model


def run_counts(table: Table) -> list[int]:
    context = table.context
    latest = context.snapshots.latest()
    assert latest is not None
    picker = TaskPicker(context)
    return [picker.run_count(bucket) for bucket in live_buckets(context, latest).values()]


def data_files(lab: Lab) -> set[str]:
    return {info.name for info in lab.files.list("bucket-0")}


def live_files(lab: Lab) -> set[str]:
    return {path.rpartition("/")[2] for path in lab.open().files()["file_path"].to_pylist()}


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("keyed", [True, False])
def test_rows_are_the_same_after_each_of_many_writes_deletes_overwrites_and_compactions(keyed: bool, seed: int) -> None:
    chance = random.Random(seed)
    options = {
        "write-only": "false",
        "target-file-size": chance.choice(["1 kb", "128 mb"]),
        "num-sorted-run.compaction-trigger": "3",
    }
    lab = Lab(
        MemoryFileStore(f"compact-{next(NAMES)}"), keyed=keyed, options={**options, **({"bucket": "2"} if keyed else {})}, seed=seed
    )
    model: dict[int, str] = {}
    rows: list[tuple[int, str]] = []
    for step in range(20):
        batch = [(chance.randrange(60), f"{step}.{n}") for n in range(chance.randrange(1, 25))]
        table = lab.open()
        match chance.choice(["write"] * 5 + ["delete", "overwrite", "compact", "full"]):
            case "write":
                lab.write(table, *batch)
                model.update(batch)
                rows += batch
            case "delete":
                table.delete("id < 7")
                model = {k: v for k, v in model.items() if k >= 7}
                rows = [row for row in rows if row[0] >= 7]
            case "overwrite":
                table.overwrite(lab.rows(*dict(batch).items()), partition={})
                model, rows = dict(batch), list(dict(batch).items())
            case "compact":
                table.compact()
            case "full":
                table.compact(full=True)
                if keyed and model:
                    assert set(run_counts(table)) <= {1}
        assert lab.read() == sorted(model.items() if keyed else rows, key=repr), f"seed {seed}, step {step}"
        if keyed and table.snapshots():
            assert max(run_counts(table), default=0) <= 6, f"seed {seed}, step {step}"
    lab.check(list(model.items()) if keyed else rows)


def test_a_full_compaction_leaves_one_run_at_the_top_and_says_what_it_did() -> None:
    lab = make()
    model = layers(lab)
    report = lab.open().compact(full=True)
    assert (report.tasks, report.buckets, report.files_read, report.files_written, report.dropped) == (1, 1, 4, 1, 0)
    assert report.bytes_written == lab.open().files()["file_size_bytes"][0].as_py()
    assert lab.open().files()["level"].to_pylist() == [5]
    assert str(report).startswith("snapshot 5: 1 task(s) in 1 bucket(s), 4 file(s) of ")
    latest = lab.open().snapshots()[-1]
    assert (latest.commit_kind, latest.operation) == (CommitKind.COMPACT, "COMPACT")
    lab.check(list(model.items()))
    again = lab.open().compact(full=True)
    assert again == CompactReport() and str(again) == "nothing to compact"


def test_an_empty_table_has_nothing_to_compact() -> None:
    assert make().open().compact(full=True) == CompactReport()


def test_deleted_rows_are_gone_from_the_files_after_a_full_compaction() -> None:
    lab = make()
    layers(lab)
    lab.open().delete("id >= 10")
    lab.open().compact(full=True)
    assert lab.open().files()["row_count"].to_pylist() == [10]
    assert lab.open().files()["delete_row_count"].to_pylist() == [0]


def test_only_the_partitions_that_are_named_are_compacted() -> None:
    lab = Lab(
        MemoryFileStore(f"compact-{next(NAMES)}"),
        schema=PARTITIONED,
        primary_key=["id", "day"],
        partition_by=["day"],
        options={"bucket": "1"},
    )
    for version in range(3):
        lab.write_new(*((n, day, f"{version}") for n in range(4) for day in ("mon", "tue")))
    report = lab.open().compact(full=True, partitions=[{"day": "tue"}])
    assert report.buckets == 1
    levels = {(row["partition"].strip("/"), row["level"]) for row in lab.open().files().to_pylist()}
    assert levels == {("day=mon", 0), ("day=tue", 5)}
    with pytest.raises(InvalidInputError, match="not a partition column"):
        lab.open().compact(partitions=[{"dya": "tue"}])
    with pytest.raises(InvalidInputError, match="put a single one into a list"):
        lab.open().compact(partitions={"day": "tue"})  # type: ignore[arg-type]


def test_a_file_that_moves_is_deleted_at_its_old_level_before_it_is_added_at_the_new_one() -> None:
    lab = make(target_file_size="1 kb")
    for part in range(3):
        lab.write_new(*((part * 100 + n, "x" * 20) for n in range(100)))
    names = live_files(lab)
    report = lab.open().compact(full=True)
    assert (report.files_moved, report.files_read, report.files_written) == (3, 0, 0)
    assert live_files(lab) == names
    context = lab.open().context
    latest = context.snapshots.latest()
    assert latest is not None
    kinds = [entry.kind for entry in context.manifests.delta(latest)]
    assert kinds == [EntryKind.DELETE] * 3 + [EntryKind.ADD] * 3
    lab.expire(keep=1)
    lab.check([(n, "x" * 20) for n in range(300)])


def test_files_of_old_schemas_come_out_in_the_newest_one() -> None:
    lab = make()
    layers(lab, 2)
    lab.open().context.schemas.publish(_with_a_column(lab.open()))
    table = lab.open()
    table.upsert(pa.table({"id": [1], "v": ["new"], "w": [5]}))
    before = sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    table.compact(full=True)
    assert set(lab.open().files()["schema_id"].to_pylist()) == {1}
    after = sorted(lab.open().scan().to_arrow().to_pylist(), key=lambda row: row["id"])
    assert after == before and after[1] == {"id": 1, "v": "new", "w": 5} and after[2]["w"] is None


def test_a_handle_that_does_not_know_a_new_column_keeps_it() -> None:
    lab = make()
    layers(lab, 2)
    old = lab.open()
    lab.open().context.schemas.publish(_with_a_column(lab.open()))
    lab.open().upsert(pa.table({"id": [1], "v": ["new"], "w": [5]}))
    old.compact(full=True)
    assert lab.open().scan(filter="id = 1").to_arrow().to_pylist() == [{"id": 1, "v": "new", "w": 5}]


def _with_a_column(table: Table):
    from dataclasses import replace

    from tablestore.types.datatypes import AtomicType, Field, TypeRoot

    schema = table.table_schema
    column = Field(id=schema.highest_field_id + 1, name="w", type=AtomicType(root=TypeRoot.INT))
    return replace(schema, id=schema.id + 1, fields=(*schema.fields, column), highest_field_id=column.id)


# -- races


def _others(lab: Lab) -> dict[str, Callable[[dict[int, str]], dict[int, str]]]:
    def compact(model: dict[int, str]) -> dict[int, str]:
        lab.open().compact(full=True)
        return model

    def overwrite(model: dict[int, str]) -> dict[int, str]:
        lab.open().overwrite(lab.rows((1, "over")), partition={})
        return {1: "over"}

    def delete(model: dict[int, str]) -> dict[int, str]:
        lab.open().delete("id < 5")
        return {k: v for k, v in model.items() if k >= 5}

    def upsert(model: dict[int, str]) -> dict[int, str]:
        lab.write_new((2, "late"), (99, "late"))
        return {**model, 2: "late", 99: "late"}

    return {"compact": compact, "overwrite": overwrite, "delete": delete, "upsert": upsert}


@pytest.mark.deep_after(7)
@pytest.mark.parametrize("other", ["compact", "overwrite", "delete", "upsert"])
@pytest.mark.parametrize("op", ["publish_if_absent", "open_output", "open_input"])
def test_a_compaction_that_others_overtake_loses_nothing_and_leaves_no_file(other: str, op: str) -> None:
    lab = make()
    model = layers(lab)
    table, faults = lab.faulty()
    seen = False

    def meanwhile(call: FileCall) -> None:
        nonlocal seen, model
        if not seen and (op != "open_input" or call.path.startswith("bucket-0")):
            seen = True
            model = _others(lab)[other](model)

    faults.before(meanwhile, op=op)
    report = table.compact(full=True)
    assert seen
    lab.check(list(model.items()))
    stale = other in ("compact", "overwrite")
    assert report.dropped == (1 if stale else 0)
    context = lab.open().context
    named = {entry.file.file_name for snapshot in lab.open().snapshots() for entry in context.manifests.delta(snapshot)}
    assert data_files(lab) <= named, "a file is left that no snapshot names"


def test_two_compactions_of_the_same_files_make_one_snapshot() -> None:
    lab = make()
    model = layers(lab)
    table, faults = lab.faulty()
    faults.before(lambda call: lab.open().compact(full=True) and None if not lab_done(lab) else None, op="publish_if_absent")
    report = table.compact(full=True)
    assert report.dropped == 1 and report.snapshot_ids == ()
    assert [s.commit_kind for s in lab.open().snapshots()].count(CommitKind.COMPACT) == 1
    assert data_files(lab) - live_files(lab) == _inputs(lab), "the loser's file was removed"
    lab.check(list(model.items()))


def lab_done(lab: Lab) -> bool:
    return lab.open().snapshots()[-1].commit_kind is CommitKind.COMPACT


def _inputs(lab: Lab) -> set[str]:
    context = lab.open().context
    return {e.file.file_name for s in lab.open().snapshots()[:-1] for e in context.manifests.delta(s)}


@pytest.mark.deep
def test_every_failing_call_is_success_or_an_error_that_lost_nothing() -> None:
    failed = 0
    for number in range(1, 200):
        lab = make()
        model = layers(lab, 2)
        table, faults = lab.faulty()
        faults.fail_nth(number)
        try:
            table.compact(full=True)
        except TablestoreError:
            failed += 1
        assert lab.read() == sorted(model.items(), key=repr), f"call {number}"
        lab.open().compact(full=True)
        assert lab.read() == sorted(model.items(), key=repr) and run_counts(lab.open()) == [1], f"call {number}"
        if not faults.injected_total:
            assert failed > 5
            return
    pytest.fail("the compaction never ends")


# -- after writes


def test_a_writer_compacts_after_its_commit_unless_it_is_write_only() -> None:
    compacting, write_only = make(write_only="false"), make()
    for lab in (compacting, write_only):
        model = layers(lab, 6)
        lab.check(list(model.items()))
    assert max(run_counts(compacting.open())) < 5
    kinds = [s.commit_kind for s in compacting.open().snapshots()]
    assert CommitKind.COMPACT in kinds and kinds[-1] is not None
    assert run_counts(write_only.open()) == [6]


def test_a_compaction_that_fails_does_not_fail_the_commit_before_it() -> None:
    lab = make(write_only="false")
    layers(lab, 4)
    table, faults = lab.faulty()

    def fail(call: FileCall) -> None:
        if call.path.startswith("bucket-0"):
            raise StorageError("the disk is tired")

    faults.before(fail, op="open_input")
    snapshot = table.upsert(lab.rows((1, "there")))
    assert snapshot is not None and snapshot.commit_kind is CommitKind.APPEND
    assert lab.read(filter="id = 1") == [(1, "there")]
    assert run_counts(lab.open()) == [5]


def test_forced_compaction_follows_every_commit_without_bound() -> None:
    lab = Lab(
        MemoryFileStore(f"compact-{next(NAMES)}"),
        options={"bucket": "1", "write-only": "false", "commit.force-compact": "true", "num-sorted-run.compaction-trigger": "2"},
    )
    model = layers(lab, 4)
    assert run_counts(lab.open()) == [1]
    lab.check(list(model.items()))


def test_a_full_compaction_follows_every_so_many_commits() -> None:
    lab = Lab(
        MemoryFileStore(f"compact-{next(NAMES)}"),
        options={
            "bucket": "1",
            "write-only": "false",
            "full-compaction.delta-commits": "3",
            "num-sorted-run.compaction-trigger": "50",
        },
    )
    counts = []
    for number in range(7):
        lab.write_new((number % 2, f"{number}"))
        counts.append(run_counts(lab.open())[0])
    assert counts == [1, 2, 1, 2, 3, 1, 2]


def test_a_full_compaction_follows_a_commit_after_some_time() -> None:
    lab = Lab(
        MemoryFileStore(f"compact-{next(NAMES)}"),
        options={"bucket": "1", "write-only": "false", "compaction.optimization-interval": "1 h"},
    )
    counts = []
    for number in range(6):
        lab.write_new((number % 2, f"{number}"))
        counts.append(run_counts(lab.open())[0])
        lab.clock.advance(25 * 60)
    assert counts == [1, 2, 3, 1, 2, 3], "after 75 minutes, and then an hour after that one"


def test_small_files_of_an_append_table_become_one_in_the_order_of_their_rows() -> None:
    lab = make(keyed=False, write_only="false")
    for number in range(12):
        lab.write_new((number, "a"), (100 + number, "b"))
    assert lab.open().files().num_rows < 5
    assert [row["id"] for row in lab.open().scan().to_arrow().to_pylist()] == [n for i in range(12) for n in (i, 100 + i)]


# -- other processes


def test_tasks_run_anywhere_and_are_committed_by_the_driver(tmp_path: object) -> None:
    import tablestore as ts

    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("shop")
    table = catalog.create_table(
        "shop.t",
        schema=pa.schema([("id", pa.int64()), ("v", pa.int64())]),
        primary_key=["id"],
        options={"bucket": "4", "write-only": "true"},
    )
    for version in range(3):
        table.upsert(pa.table({"id": list(range(100)), "v": [version] * 100}))
    plan = plan_compaction(table, full=True)
    assert len(plan.tasks) == 4
    context = TableSpec(location=table.location, storage_options={}).open()
    sent = [CompactTask.from_bytes(task.to_bytes()) for task in plan.tasks]
    messages = [message for task in sent if (message := run_task(context, task)) is not None]
    table.upsert(pa.table({"id": [5], "v": [9]}))
    report = commit_tasks(table, messages, full=True)
    assert (report.tasks, report.buckets, report.dropped) == (4, 4, 0)
    assert sorted(table.scan().to_arrow()["v"].to_pylist()) == [2] * 99 + [9]
    assert commit_tasks(table, messages).dropped == 4, "done already"
    with pytest.raises(TablestoreError, match="not a compaction task"):
        CompactTask.from_bytes(b"{}")


@pytest.mark.parametrize("full", [True, False])
def test_progress_counts_the_bytes_of_the_buckets_up_to_all_of_them(full: bool) -> None:
    lab = make(bucket="4")
    model = layers(lab, versions=8, keys=200)
    context = lab.open().context
    size = sum(entry.file.file_size for entry in context.manifests.live(context.snapshots.latest()))
    told: list[tuple[int, int]] = []
    report = lab.open().compact(full=full, progress=lambda what, done, total: told.append((done, total)))
    assert report.tasks >= 4
    assert {total for _, total in told} == {size}
    done = [bytes_done for bytes_done, _ in told]
    assert done == sorted(done) and len(set(done)) == 4 and done[-1] == size
    assert dict(lab.read()) == model


@pytest.mark.deep
@pytest.mark.parametrize("key", [["id"], None], ids=["keyed", "append"])
def test_progress_moves_within_one_bucket_with_each_batch(key: list[str] | None, tmp_path: Path) -> None:
    catalog = ts.open_catalog(tmp_path)
    catalog.create_database("d")
    options = {"bucket": "1", "write-only": "true", "file.block-size": "64 kb"} | ({} if key else {"bucket-key": "id"})
    table = catalog.create_table("d.t", schema=pa.schema([("id", pa.int64()), ("v", pa.int64())]), primary_key=key, options=options)
    for value in range(2):
        rows = pa.table({"id": range(400_000), "v": range(value, 400_000 + value)})
        table.upsert(rows) if key else table.append(rows)
    context = table.context
    size = sum(entry.file.file_size for entry in context.manifests.live(context.snapshots.latest()))
    steps: list[tuple[int, int]] = []
    table.compact(full=True, progress=lambda what, done, total: steps.append((done, total)))
    done = [bytes_done for bytes_done, _ in steps]
    assert {total for _, total in steps} == {size}
    assert done == sorted(done) and done[-1] == size
    assert len(set(done)) >= 4 and 0 < done[0] < size / 2
