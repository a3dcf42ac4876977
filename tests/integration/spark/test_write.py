"""Spark's writes are the engine's: one snapshot each, upserts by key, and no row twice whatever tasks do."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyspark_tablestore
import pytest

from tablestore import CommitKind, InvalidInputError
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ROWS = pa.schema([("id", pa.int64()), ("day", pa.string()), ("price", pa.float64())])


@pytest.fixture
def keyed(catalog: Catalog) -> Table:
    return catalog.create_table("shop.keyed", schema=ROWS, primary_key=["id"], options={"bucket": "2"})


@pytest.fixture
def days(catalog: Catalog) -> Table:
    return catalog.create_table("shop.days", schema=ROWS, partition_by=["day"])


def some(spark: "SparkSession", start: int, end: int, price: float = 1.0, day: str = "mon") -> "DataFrame":
    return spark.range(start, end, 1, 2).selectExpr("id", f"'{day}' AS day", f"{price}D AS price")


def save(frame: "DataFrame", table: Table, mode: str = "append", **options: str) -> None:
    frame.write.format("tablestore").mode(mode).options(**options).save(table.location)


def by_id(table: Table) -> dict[int, float]:
    return {row["id"]: row["price"] for row in table.scan(columns=["id", "price"]).to_arrow().to_pylist()}


def data_files(table: Table) -> set[str]:
    return {path.name for path in Path(table.location).rglob("*.parquet")}


def named_files(table: Table) -> set[str]:
    return {Path(path).name for path in table.files()["file_path"].to_pylist()}


@pytest.mark.deep
def test_append_upserts_into_a_keyed_table_as_one_snapshot(spark: "SparkSession", keyed: Table) -> None:
    save(some(spark, 0, 20), keyed)
    save(some(spark, 10, 30, 2.0).select("price", "id"), keyed, **{"missing-columns": "null"})
    assert by_id(keyed) == {n: 1.0 if n < 10 else 2.0 for n in range(30)}
    assert [snapshot.id for snapshot in keyed.snapshots()] == [1, 2]
    assert keyed.scan(filter="id = 10").to_arrow()["day"].to_pylist() == [None]


def test_append_to_an_append_table_and_by_warehouse(spark: "SparkSession", days: Table, warehouse: str) -> None:
    save(some(spark, 0, 5), days)
    writer = some(spark, 0, 5, day="tue").write.format("tablestore").mode("append")
    writer.option("warehouse", warehouse).option("table", "shop.days").save()
    assert sorted(days.scan().to_arrow()["day"].to_pylist()) == ["mon"] * 5 + ["tue"] * 5


def test_no_rows_are_no_snapshot(spark: "SparkSession", keyed: Table) -> None:
    save(some(spark, 0, 0), keyed)
    assert keyed.snapshots() == ()


@pytest.mark.deep
def test_row_kinds_are_changes(spark: "SparkSession", keyed: Table, days: Table) -> None:
    save(some(spark, 0, 4), keyed)
    changes = spark.sql(
        "SELECT * FROM VALUES (0L, 'mon', 5D, '+U'), (1L, NULL, NULL, '-D'), (9L, 'tue', 9D, '+I') AS t(id, day, price, _row_kind)"
    )
    save(changes, keyed)
    assert by_id(keyed) == {0: 5.0, 2: 1.0, 3: 1.0, 9: 9.0}
    with pytest.raises(Exception, match="changes are applied with mode append"):
        save(changes, keyed, "overwrite")
    with pytest.raises(Exception, match=r"append tables take inserts \(\+I\) only"):
        save(changes.where("_row_kind = '-D'"), days)


def test_overwrite_replaces_touched_partitions_or_the_whole_unpartitioned_table(
    spark: "SparkSession", keyed: Table, days: Table
) -> None:
    save(some(spark, 0, 5).union(some(spark, 0, 3, day="tue")), days)
    save(some(spark, 7, 8, day="tue"), days, "overwrite")
    assert sorted(days.scan().to_arrow()["day"].to_pylist()) == ["mon"] * 5 + ["tue"]
    save(some(spark, 0, 5), keyed)
    save(some(spark, 3, 4, 3.0), keyed, "overwrite")
    assert by_id(keyed) == {3: 3.0}
    save(some(spark, 0, 0), keyed, "overwrite")
    assert by_id(keyed) == {}


def test_static_overwrite_by_table_option(spark: "SparkSession", catalog: Catalog) -> None:
    options = {"dynamic-partition-overwrite": "false"}
    table = catalog.create_table("shop.static", schema=ROWS, partition_by=["day"], options=options)
    save(some(spark, 0, 5).union(some(spark, 0, 3, day="tue")), table)
    save(some(spark, 7, 8, day="wed"), table, "overwrite")
    assert table.scan().to_arrow()["day"].to_pylist() == ["wed"]


def test_table_is_rewritten_from_itself(spark: "SparkSession", keyed: Table) -> None:
    save(some(spark, 0, 5), keyed)
    frame = spark.read.format("tablestore").load(keyed.location)
    save(frame.selectExpr("id + 100 AS id", "day", "price * 2 AS price"), keyed, "overwrite")
    assert by_id(keyed) == dict.fromkeys(range(100, 105), 2.0)


def test_commit_identifier_makes_a_repeated_job_harmless(spark: "SparkSession", days: Table) -> None:
    for _ in range(2):
        save(some(spark, 0, 5), days, **{"commit-user": "nightly", "commit-identifier": "3"})
    assert days.scan().count() == 5
    (snapshot,) = days.snapshots()
    assert (snapshot.commit_user, snapshot.commit_identifier) == ("nightly", 3)
    assert data_files(days) == named_files(days)


@pytest.mark.deep
def test_task_that_fails_after_writing_is_repeated_without_doubling(spark: "SparkSession", catalog: Catalog) -> None:
    # A tiny buffer: files are on disk long before the task fails.
    table = catalog.create_table("shop.retried", schema=ROWS, options={"write-buffer-size": "1 kb"})

    def fail_at_the_end_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        yield from batches
        context = TaskContext.get()
        assert context is not None
        if context.attemptNumber() == 0:
            raise RuntimeError("lost on purpose")

    frame = some(spark, 0, 1000)
    save(frame.mapInArrow(fail_at_the_end_once, frame.schema), table)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(1000))
    assert len(table.snapshots()) == 1


@pytest.mark.deep
def test_worker_that_dies_after_its_last_file_leaves_no_rows_behind(spark: "SparkSession", catalog: Catalog) -> None:
    from pyspark_tablestore import DefaultSource
    from pyspark_tablestore.writer import SparkTableWriter, Written

    # Nested classes travel by value, so workers need not import this test.
    class DyingWriter(SparkTableWriter):
        def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
            import os

            from pyspark import TaskContext

            message = super().write(iterator)
            context = TaskContext.get()
            if context is not None and context.attemptNumber() == 0:
                os._exit(1)
            return message

    class DyingSource(DefaultSource):
        @classmethod
        def name(cls) -> str:
            return "tablestore_dying"

        def writer(self, schema: object, overwrite: bool) -> SparkTableWriter:
            writer = super().writer(schema, overwrite)  # type: ignore[arg-type]
            return DyingWriter(writer._job, writer._options, overwrite=overwrite)

    table = catalog.create_table("shop.died", schema=ROWS)
    spark.dataSource.register(DyingSource)
    some(spark, 0, 100).write.format("tablestore_dying").mode("append").save(table.location)
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(100))
    # The files of the lost attempts are there, named by nobody, until orphans are removed.
    assert named_files(table) < data_files(table)


@pytest.mark.deep
def test_failed_job_publishes_nothing_and_removes_its_files(spark: "SparkSession", days: Table) -> None:
    def fail_in_one_task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        yield from batches
        if context.partitionId() == 1:
            raise RuntimeError("lost for good")

    save(some(spark, 0, 10), days)
    before = data_files(days)
    frame = some(spark, 10, 20)
    with pytest.raises(Exception, match="lost for good"):
        save(frame.mapInArrow(fail_in_one_task, frame.schema), days)
    assert days.scan().count() == 10
    assert len(days.snapshots()) == 1
    assert data_files(days) == before


@pytest.mark.deep
def test_commit_of_a_dropped_table_says_so(spark: "SparkSession", catalog: Catalog, keyed: Table) -> None:
    location = keyed.location

    def drop_meanwhile(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import shutil

        yield from batches
        shutil.rmtree(f"{location}/schema", ignore_errors=True)

    frame = some(spark, 0, 4).coalesce(1)
    with pytest.raises(Exception, match=r"tablestore\.errors\.NotFoundError"):
        save(frame.mapInArrow(drop_meanwhile, frame.schema), keyed)


def test_writes_from_threads_each_land(spark: "SparkSession", days: Table) -> None:
    from pyspark_tablestore import write

    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            write(some(spark, number * 10, number * 10 + 10), days.location)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert sorted(days.scan().to_arrow()["id"].to_pylist()) == list(range(30))
    assert sum(snapshot.commit_kind is CommitKind.APPEND for snapshot in days.snapshots()) == 3


@pytest.mark.deep
def test_columns_that_a_frame_lacks_are_refused_kept_or_null(spark: "SparkSession", catalog: Catalog) -> None:
    schema = pa.schema([pa.field("id", pa.int64(), nullable=False), ("n", pa.int64()), ("s", pa.string())])
    table = catalog.create_table("shop.lacking", schema=schema, primary_key=["id"], options={"bucket": "2"})
    table.upsert(pa.table({"id": [1, 2], "n": [1, 2], "s": ["a", "b"]}))
    given = spark.createDataFrame([(1, 10), (3, 30)], "id LONG, n LONG")
    with pytest.raises(InvalidInputError, match="lack s: ") as error:
        pyspark_tablestore.write(given, table.location)
    assert error.value.kind == "missing-columns"
    given.write.format("tablestore").mode("append").option("missing-columns", "keep").save(table.location)
    found = table.scan().to_arrow().sort_by("id").to_pylist()
    assert [tuple(row.values()) for row in found] == [(1, 10, "a"), (2, 2, "b"), (3, 30, None)]
    pyspark_tablestore.write(given.limit(1), table.location, missing_columns="null")
    assert table.scan(filter="id = 1").to_arrow()["s"].to_pylist() == [None]


def test_a_sink_commits_under_the_lock_that_its_options_name(spark: "SparkSession", keyed: Table, tmp_path: Path) -> None:
    lock = {"catalog.lock.type": "file", "catalog.lock.location": f"{tmp_path}/locks"}
    save(some(spark, 0, 20), keyed, **{f"storage.{key}": value for key, value in lock.items()})
    assert len(by_id(keyed)) == 20
    assert (tmp_path / "locks" / "shop.db" / "keyed" / "snapshot" / ".lock").exists()
