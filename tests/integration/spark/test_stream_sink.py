"""Every batch of a streaming query is one snapshot of the table, once, whatever happens between the table and Spark's own notes."""

import random
import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark_tablestore
import pytest

import tablestore as ts
from tablestore import CommitKind, InvalidInputError, UnsupportedError
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table
from tablestore.types.evolution.schemachanges import AddColumn
from tests.distributed.smalldisk import small_disk
from tests.integration.spark.feed import Feed, forget_last

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

pytestmark = pytest.mark.spark

ROWS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("v", pa.int64())])
CHANGES = pa.schema([*ROWS, ("_row_kind", pa.string())])
OPTIONS = {"bucket": "2", "write-only": "true"}


@pytest.fixture
def feed(spark: "SparkSession", tmp_path: Path) -> Feed:
    (tmp_path / "feed").mkdir()
    return Feed(spark, tmp_path / "feed", ROWS)


@pytest.fixture
def keyed(catalog: Catalog) -> Table:
    return catalog.create_table("shop.keyed", schema=ROWS, primary_key=["id"], options=OPTIONS)


@pytest.fixture
def plain(catalog: Catalog) -> Table:
    return catalog.create_table("shop.plain", schema=ROWS, options={"write-only": "true"})


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def into(frame: "DataFrame", table: Table, checkpoint: Path, mode: str = "append", **options: str) -> "DataStreamWriter":
    sink = frame.writeStream.format("tablestore").outputMode(mode).options(**options)
    return sink.option("path", table.location).option("checkpointLocation", str(checkpoint))


def run(sink: "DataStreamWriter") -> "StreamingQuery":
    """All that is there, then the end."""
    query = sink.trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def ids(table: Table) -> list[int]:
    return sorted(table.scan().to_arrow()["id"].to_pylist())


def values(table: Table) -> dict[int, object]:
    return {row["id"]: row["v"] for row in table.scan().to_arrow().to_pylist()}


def numbers(table: Table) -> list[int]:
    return [one.commit_identifier for one in table.snapshots()]


def check_clean(table: Table) -> None:
    """What failed leaves no file that cannot be cleaned up."""
    table.remove_orphan_files(older_than=timedelta(0), dry_run=False)
    folder = Path(table.location)
    left = {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}
    assert left == set(table.files()["file_path"].to_pylist())


@pytest.mark.deep
@pytest.mark.since(4, 1)
def test_batches_are_snapshots_of_the_query_and_end_where_there_are_no_rows(feed: Feed, keyed: Table, checkpoint: Path) -> None:
    feed.add({1: 1, 2: 1})
    feed.add({})
    feed.add({2: 2, 3: 2})
    query = run(into(feed.read(), keyed, checkpoint))
    assert values(keyed) == {1: 1, 2: 2, 3: 2}
    assert numbers(keyed) == [0, 2]
    assert {one.commit_user for one in keyed.snapshots()} == {query.id}
    feed.add({1: 3})
    assert run(into(feed.read(), keyed, checkpoint)).id == query.id
    assert (values(keyed)[1], numbers(keyed)) == (3, [0, 2, 3])


@pytest.mark.deep
@pytest.mark.since(4, 1)
def test_row_kinds_are_changes_by_their_column_or_by_the_one_of_the_table(
    spark: "SparkSession", tmp_path: Path, catalog: Catalog, keyed: Table
) -> None:
    changes = Feed(spark, tmp_path / "changes", CHANGES)
    changes.add({1: 1, 2: 1, 3: 1}, _row_kind=["+I", "+I", "+I"])
    changes.add({1: None, 2: 5}, _row_kind=["-D", "+U"])
    run(into(changes.read(), keyed, tmp_path / "a"))
    assert values(keyed) == {2: 5, 3: 1}
    schema = pa.schema([*ROWS, ("kind", pa.string())])
    by_field = catalog.create_table("shop.kinds", schema=schema, primary_key=["id"], options={**OPTIONS, "rowkind.field": "kind"})
    run(into(changes.read().withColumnRenamed("_row_kind", "kind"), by_field, tmp_path / "b"))
    assert values(by_field) == {2: 5, 3: 1}
    last = changes.read().groupBy("_row_kind").max("id", "v").toDF("_row_kind", "id", "v")
    with pytest.raises(Exception, match="changes are applied with mode append"):
        run(into(last, keyed, tmp_path / "c", "complete"))


@pytest.mark.deep
@pytest.mark.since(4, 1)
def test_complete_mode_replaces_the_table_with_each_batch(feed: Feed, catalog: Catalog, checkpoint: Path) -> None:
    counts = catalog.create_table(
        "shop.counts", schema=pa.schema([("k", pa.int64()), ("n", pa.int64())]), options={"write-only": "true"}
    )
    feed.add({1: 0, 2: 0, 3: 0})
    feed.add({4: 0, 5: 0})
    run(into(feed.read().selectExpr("id % 2 AS k").groupBy("k").agg({"*": "count"}).toDF("k", "n"), counts, checkpoint, "complete"))
    assert {row["k"]: row["n"] for row in counts.scan().to_arrow().to_pylist()} == {0: 2, 1: 3}
    assert [one.commit_kind for one in counts.snapshots()] == [CommitKind.OVERWRITE] * 2


@pytest.mark.deep
@pytest.mark.parametrize("crashes", [20, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.since(4, 1)
def test_crashes_between_the_commit_and_sparks_note_of_it_double_and_lose_nothing(
    feed: Feed, plain: Table, checkpoint: Path, crashes: int
) -> None:
    feed.add({0: 0})
    run(into(feed.read(), plain, checkpoint))
    added = 1
    for crash in range(crashes):
        if crash % 5 == 4:
            feed.add({added: 0})
            added += 1
        if crash % 10 == 9:
            # The snapshots of the batches go, and that of the last one too, once another writer has one above it.
            plain.append(pa.table({"id": [-1], "v": [0]}, schema=ROWS))
            plain.expire_snapshots(retain_min=1, retain_max=1)
        forget_last(checkpoint)
        run(into(feed.read(), plain, checkpoint))
    others = crashes // 10
    assert ids(plain) == [-1] * others + list(range(added))
    assert plain.snapshots()[-1].id == added + others


@pytest.mark.deep
@pytest.mark.since(4, 1)
def test_checkpoint_of_another_table_or_of_another_place_is_refused_until_it_is_adopted(
    feed: Feed, catalog: Catalog, plain: Table, checkpoint: Path, tmp_path: Path
) -> None:
    feed.add({0: 0})
    run(into(feed.read(), plain, checkpoint))
    copy = tmp_path / "copy"
    shutil.copytree(checkpoint, copy)
    feed.add({1: 1})
    with pytest.raises(Exception, match=r"ConflictError: query .* writes to table .* from the checkpoint"):
        run(into(feed.read(), plain, copy))
    assert ids(plain) == [0]
    run(into(feed.read(), plain, Path(f"file:{checkpoint}/")))
    assert ids(plain) == [0, 1]
    catalog.drop_table("shop.plain")
    again = catalog.create_table("shop.plain", schema=ROWS)
    feed.add({2: 2})
    with pytest.raises(Exception, match=r"InvalidInputError: the checkpoint .* it was dropped and made again"):
        run(into(feed.read(), again, checkpoint))
    assert not list(Path(again.location).rglob("*.parquet"))
    run(into(feed.read(), again, checkpoint, **{"adopt-checkpoint": "true"}))
    feed.add({3: 3})
    run(into(feed.read(), again, checkpoint))
    assert ids(again) == [2, 3]


@pytest.mark.deep
@pytest.mark.since(4, 1)
def test_what_cannot_be_written_is_refused_with_a_way_out(feed: Feed, keyed: Table, checkpoint: Path) -> None:
    feed.add({0: 0})
    frame = feed.read()

    def refused(match: str, sink: Callable[[], "DataStreamWriter"]) -> None:
        with pytest.raises(Exception, match=match):
            run(sink())

    # Both by Spark itself, before any of ours runs.
    refused("checkpointLocation must be specified", lambda: frame.writeStream.format("tablestore").option("path", keyed.location))
    refused("does not support Update mode", lambda: into(frame, keyed, checkpoint, "update"))
    refused("numbers its batches itself", lambda: into(frame, keyed, checkpoint, **{"commit-user": "me", "commit-identifier": "1"}))
    refused("adopt-checkpoint: expected true or false", lambda: into(frame, keyed, checkpoint, **{"adopt-checkpoint": "maybe"}))
    refused("InvalidInputError", lambda: into(frame.selectExpr("id", "v AS w"), keyed, checkpoint))
    refused("InvalidInputError", lambda: into(frame.selectExpr("id", "current_date() AS v"), keyed, checkpoint))
    assert keyed.snapshots() == ()
    run(into(frame, keyed, checkpoint))
    assert values(keyed) == {0: 0}


@pytest.mark.deep
@pytest.mark.since(4, 1)
def test_tasks_that_are_tried_again_and_queries_that_are_stopped_leave_every_row_once(
    feed: Feed, plain: Table, checkpoint: Path, tmp_path: Path
) -> None:
    tries = tmp_path / "tries"
    tries.mkdir()
    folder = str(tries)

    def fail_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            try:
                Path(folder, str(batch["id"][0].as_py())).touch(exist_ok=False)
            except FileExistsError:
                continue
            raise RuntimeError("the first try of every task fails")

    for number in range(3):
        feed.add({number: 0, number + 100: 0})
    frame = feed.read().mapInArrow(fail_once, "id long, v long")
    query = into(frame, plain, checkpoint).start()
    while not plain.snapshots():
        assert query.exception() is None
        query.awaitTermination(0.02)
    query.stop()
    run(into(frame, plain, checkpoint))
    assert ids(plain) == [0, 1, 2, 100, 101, 102]
    assert numbers(plain) == [0, 1, 2]
    check_clean(plain)


@pytest.mark.slow
def test_disk_that_is_full_in_a_task_shows_nothing_and_the_batch_lands_once_there_is_room(
    feed: Feed, tmp_path: Path, checkpoint: Path
) -> None:
    with small_disk(tmp_path / "disk") as disk:
        catalog = ts.open_catalog(str(disk.folder / "warehouse"))
        catalog.create_database("d")
        table = catalog.create_table("d.t", schema=ROWS, options={"write-only": "true"})
        feed.add({0: 0})
        run(into(feed.read(), table, checkpoint))
        draw = random.Random(1)
        # A part of it fits.
        feed.add({number: draw.getrandbits(63) for number in range(1, 50_000)})
        disk.fill(but=50)
        for _ in range(2):
            with pytest.raises(Exception, match=r"(?s)StorageError: cannot .*No space left on device; .*\(kind exhausted\)"):
                run(into(feed.read(), table, checkpoint))
            assert ids(table) == [0]
        disk.clear()
        run(into(feed.read(), table, checkpoint))
        assert ids(table) == list(range(50_000))
        assert numbers(table) == [0, 1]
        check_clean(table)


@pytest.mark.deep
def test_batch_writer_upserts_the_rows_of_update_mode_once(feed: Feed, catalog: Catalog, checkpoint: Path) -> None:
    schema = pa.schema([pa.field("k", pa.int64(), nullable=False), ("n", pa.int64())])
    counts = catalog.create_table("shop.counts", schema=schema, primary_key=["k"], options=OPTIONS)
    writer = pyspark_tablestore.foreach_batch_writer(counts.location, cluster=True, missing_columns="keep")
    grouped = feed.read().selectExpr("id % 3 AS k").groupBy("k").agg({"*": "count"}).toDF("k", "n")

    def sink() -> "DataStreamWriter":
        started = grouped.writeStream.outputMode("update").foreachBatch(writer)
        return started.option("checkpointLocation", str(checkpoint))

    feed.add({0: 0, 1: 0, 3: 0})
    feed.add({4: 0})
    query = run(sink())
    assert {row["k"]: row["n"] for row in counts.scan().to_arrow().to_pylist()} == {0: 2, 1: 2}
    assert [(one.commit_user, one.commit_identifier) for one in counts.snapshots()] == [(query.id, 0), (query.id, 1)]
    forget_last(checkpoint)
    feed.add({2: 0})
    run(sink())
    assert {row["k"]: row["n"] for row in counts.scan().to_arrow().to_pylist()} == {0: 2, 1: 2, 2: 1}
    assert numbers(counts) == [0, 1, 2]
    # The schema may change while the writer is in use, the table may not.
    counts.alter(AddColumn("note", "STRING"))
    feed.add({5: 0})
    run(sink())
    assert numbers(counts) == [0, 1, 2, 3]
    catalog.drop_table("shop.counts")
    catalog.create_table("shop.counts", schema=schema, primary_key=["k"], options=OPTIONS)
    feed.add({8: 0})
    with pytest.raises(Exception, match="ConflictError"):
        run(sink())


def test_batch_writer_needs_a_query_with_a_checkpoint(feed: Feed, keyed: Table) -> None:
    feed.add({0: 0})
    writer = pyspark_tablestore.foreach_batch_writer(keyed.location)
    with pytest.raises(Exception, match="You should enable the checkpointing for sinking to managed table"):
        run(feed.read().writeStream.foreachBatch(writer))
    with pytest.raises(UnsupportedError, match="expected a batch of a streaming query"):
        writer(feed.spark.range(1).selectExpr("id", "id AS v"), 0)
    with pytest.raises(InvalidInputError, match="the mode append or overwrite"):
        pyspark_tablestore.foreach_batch_writer(keyed.location, mode="update")
    assert keyed.snapshots() == ()
