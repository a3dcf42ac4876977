"""The union read gives the rows of a scan however files lie, and the write from the driver returns its snapshot."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tablestore import ConflictError, InvalidInputError, NotFoundError
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tablestore.format.snapshot import Snapshot

pytestmark = pytest.mark.spark

ROWS = pa.schema([("id", pa.int64()), ("day", pa.string()), ("price", pa.float64())])


def read(spark: "SparkSession", table: str, **how: Any) -> "DataFrame":
    # Imported late: without pyspark these tests are skipped, not broken.
    import pyspark_tablestore

    return pyspark_tablestore.read(spark, table, **how)


def write(frame: "DataFrame", table: str, *mode: str, **how: Any) -> "Snapshot | None":
    import pyspark_tablestore

    return pyspark_tablestore.write(frame, table, *mode, **how)


def rows(ids: range, price: float = 1.0, day: str = "mon") -> pa.Table:
    return pa.table({"id": list(ids), "day": [day] * len(ids), "price": [price] * len(ids)}, schema=ROWS)


@pytest.fixture
def mixed(catalog: Catalog) -> Table:
    """Partition ``plain`` needs no merge, ``merged`` does, ``gone`` holds only deletes."""
    table = catalog.create_table(
        "shop.mixed", schema=ROWS, primary_key=["day", "id"], partition_by=["day"], options={"bucket": "2"}
    )
    table.upsert(pa.concat_tables([rows(range(10), day="a{b}c 1%"), rows(range(20), day="plain"), rows(range(20), day="merged")]))
    table.upsert(rows(range(10, 30), price=2.0, day="merged"))
    table.delete(pa.table({"day": ["gone"], "id": [1]}))
    return table


def content(frame: "DataFrame") -> list[dict[str, object]]:
    return sorted(frame.toArrow().to_pylist(), key=str)


def scanned(table: Table, **how: object) -> list[dict[str, object]]:
    return sorted(table.scan(**how).to_arrow().to_pylist(), key=str)  # type: ignore[arg-type]


def scans(frame: "DataFrame") -> tuple[bool, bool]:
    """Whether Spark's Parquet scan and ours take part."""
    plan = frame._jdf.queryExecution().toString()
    return "FileScan parquet" in plan, "PythonScan" in plan or "BatchScan" in plan


def test_union_read_gives_the_rows_of_a_scan(spark: "SparkSession", mixed: Table, warehouse: str) -> None:
    frame = read(spark, mixed.location)
    assert content(frame) == scanned(mixed)
    assert frame.columns == ROWS.names
    named = read(spark, "shop.mixed", warehouse=warehouse, columns=["price", "day"])
    assert content(named) == scanned(mixed, columns=["price", "day"])
    assert content(frame.where("day = 'plain' AND id > 15")) == scanned(mixed, filter="day = 'plain' AND id > 15")


def test_union_read_takes_each_file_the_right_way(spark: "SparkSession", catalog: Catalog) -> None:
    table = catalog.create_table("shop.two", schema=ROWS, primary_key=["day", "id"], partition_by=["day"])
    table.upsert(pa.concat_tables([rows(range(10), day="plain"), rows(range(10), day="merged")]))
    assert scans(read(spark, table.location)) == (True, False)
    table.upsert(rows(range(5, 15), day="merged"))
    both = read(spark, table.location)
    assert scans(both) == (True, True)
    assert content(both) == scanned(table)
    table.upsert(rows(range(5, 15), day="plain"))
    assert scans(read(spark, table.location)) == (False, True)


def test_union_read_with_filter_time_travel_and_pin(spark: "SparkSession", mixed: Table) -> None:
    assert content(read(spark, mixed.location, filter="price > 1.5")) == scanned(mixed, filter="price > 1.5")
    assert content(read(spark, mixed.location, snapshot_id=1)) == scanned(mixed, snapshot_id=1)
    second = mixed.snapshots()[1]
    assert content(read(spark, mixed.location, timestamp_millis=second.time_millis)) == scanned(mixed, snapshot_id=2)
    before = read(spark, mixed.location)
    expected = scanned(mixed)
    mixed.upsert(rows(range(50), price=7.0, day="merged"))
    mixed.upsert(rows(range(50), price=7.0, day="plain"))
    assert content(before) == expected


@pytest.fixture
def upserted(catalog: Catalog) -> Table:
    """A compacted base under a few newer rows, some of them newer than others, and deletes."""
    table = catalog.create_table("shop.upserted", schema=ROWS, primary_key=["id"], options={"bucket": "2", "write-only": "true"})
    table.upsert(rows(range(1000)))
    table.compact(full=True)
    table.upsert(rows(range(5, 45), price=2.0))
    table.upsert(rows(range(40, 60), price=3.0))
    table.delete(pa.table({"id": [0, 41, 500]}))
    table.upsert(rows(range(41, 42), price=4.0))
    return table


@pytest.mark.deep
def test_files_under_a_few_newer_rows_are_read_natively(spark: "SparkSession", upserted: Table) -> None:
    on_key = ("id = 7", "id = 41", "id = 0", "id = 700")
    for filter in (None, *on_key, "price = 1", "price > 2", "price < 3 AND id > 42", "id < 0 OR price = 4"):
        frame = read(spark, upserted.location, filter=filter)
        assert scans(frame) == (True, False), filter
        assert content(frame) == scanned(upserted, filter=filter)
    frame = read(spark, upserted.location, columns=["price"])
    assert frame.columns == ["price"]
    assert content(frame) == scanned(upserted, columns=["price"])
    assert content(frame.where("price = 3")) == scanned(upserted, columns=["price"], filter="price = 3")
    whole = read(spark, upserted.location)
    assert whole.count() == 998
    assert whole.where("id = 41").collect()[0].price == 4.0
    twice = spark.sql("SELECT a.id FROM {t} a JOIN {t} b ON a.id = b.id WHERE a.price > 1 AND b.price < 3", t=whole)
    assert sorted(row.id for row in twice.collect()) == list(range(5, 40))
    before = content(whole)
    upserted.upsert(rows(range(100), price=9.0))
    assert content(whole) == before


@pytest.mark.deep
def test_what_is_kept_of_a_layer_serves_its_own_files_and_filter_only(
    spark: "SparkSession", catalog: Catalog, upserted: Table
) -> None:
    for filter in (None, "id = 41", None, "price > 2", "id = 41"):
        assert content(read(spark, upserted.location, filter=filter)) == scanned(upserted, filter=filter)
    one, other = (read(spark, upserted.location) for _ in range(2))
    both = one.join(other, one.id == other.id).where(one.price > 1).select(one.id, other.price)
    assert {row.id: row.price for row in both.collect()} == {
        row["id"]: row["price"] for row in scanned(upserted, filter="price > 1")
    }
    # The same name, the same numbers of snapshots, files, buckets and rows.
    catalog.drop_table("shop.upserted")
    again = catalog.create_table("shop.upserted", schema=ROWS, primary_key=["id"], options={"bucket": "2", "write-only": "true"})
    again.upsert(rows(range(1000)))
    again.compact(full=True)
    for ids, price in ((range(105, 145), 2.0), (range(140, 160), 3.0)):
        again.upsert(rows(ids, price=price))
        frame = read(spark, again.location)
        assert scans(frame) == (True, False)
        assert content(frame) == scanned(again)


@pytest.mark.deep
def test_what_was_read_before_is_two_relations_of_one_query(spark: "SparkSession", upserted: Table) -> None:
    """A kept scan has columns of its own each time: each side of a join keeps its rows, and its conditions."""
    for filter in (None, "id < 50"):
        one, other = (read(spark, upserted.location, filter=filter) for _ in range(2))
        pairs = one.join(other, one.id == other.id + 1).where((one.price > 1) & (other.price == 1)).select(one.id, other.id)
        assert [tuple(row) for row in pairs.collect()] == [(5, 4)]
    plain = upserted.location + "/same"
    read(spark, upserted.location).write.mode("overwrite").parquet(plain)
    left, right = (read(spark, upserted.location, columns=["price", "id"]) for _ in range(2))
    cached = right.cache()
    try:
        assert left.join(spark.read.parquet(plain), "id", "left_anti").count() == 0
        assert left.select("id").subtract(cached.select("id")).count() == 0
    finally:
        cached.unpersist()


@pytest.mark.deep
def test_a_session_keeps_few_scans(spark: "SparkSession", catalog: Catalog) -> None:
    from pyspark_tablestore.relation import MOST_KEPT, KeptScans

    table = catalog.create_table("shop.kept", schema=ROWS, primary_key=["id"], options={"bucket": "1", "write-only": "true"})
    table.upsert(rows(range(100)))
    kept = KeptScans.of(spark)
    for number in range(MOST_KEPT + 2):
        table.upsert(rows(range(number, number + 1), price=2.0))
        assert content(read(spark, table.location)) == scanned(table)
    assert len(kept.scans) == len(kept.layers) == MOST_KEPT
    assert KeptScans.of(spark) is kept
    assert KeptScans.of(spark.newSession()) is not kept


@pytest.mark.deep
def test_files_of_past_snapshots_and_branches_are_layered_too(spark: "SparkSession", upserted: Table) -> None:
    for snapshot in upserted.snapshots()[1:]:
        found = read(spark, upserted.location, snapshot_id=snapshot.id)
        assert scans(found) == (True, False)
        assert content(found) == scanned(upserted, snapshot_id=snapshot.id)
    upserted.create_tag("now")
    upserted.create_branch("side", tag="now")
    side = upserted.branch("side")
    side.upsert(rows(range(900, 910), price=5.0))
    found = read(spark, f"{upserted.location}$branch_side")
    assert scans(found) == (True, False)
    assert content(found) == scanned(side)


@pytest.mark.deep
@pytest.mark.parametrize("ansi", ["true", "false"])
def test_newer_rows_are_found_at_the_ends_of_every_key_type(spark: "SparkSession", catalog: Catalog, ansi: str) -> None:
    from tests.integration.spark.test_native import settings

    for bits in (8, 16, 32, 64):
        low, high = -(2 ** (bits - 1)), 2 ** (bits - 1)
        arrow = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}[bits]
        for number, near in enumerate((range(low, low + 200), range(high - 200, high), range(-100, 100))):
            name = f"shop.ends{bits}_{number}_{ansi}"
            schema = pa.schema([("i`d \u00fc", arrow), ("x", pa.int64())])
            table = catalog.create_table(name, schema=schema, primary_key=["i`d \u00fc"], options={"bucket": "1"})
            # A base that reaches to both ends: what is computed of its keys must not overflow.
            base = sorted({*near, low, high - 1})
            for version, ids in enumerate((base, [near[0], near[63], near[64]], [near[64], near[-1]])):
                table.upsert(pa.table({"i`d \u00fc": pa.array(ids, arrow), "x": [version] * len(ids)}))
            with settings(spark, ansi__enabled=ansi):
                found = read(spark, table.location)
                assert scans(found) == (True, False)
                assert content(found) == scanned(table)


def test_union_read_of_an_empty_table(spark: "SparkSession", catalog: Catalog) -> None:
    table = catalog.create_table("shop.empty", schema=ROWS)
    frame = read(spark, table.location)
    table.append(rows(range(3)))
    assert frame.collect() == []


def test_flipped_bit_is_found_by_the_native_scan(spark: "SparkSession", catalog: Catalog) -> None:
    table = catalog.create_table("shop.flipped", schema=ROWS, options={"file.compression": "none"})
    table.append(rows(range(2000)))
    (file,) = Path(table.location).glob("bucket-0/*.parquet")
    data = bytearray(file.read_bytes())
    data[len(data) // 3] ^= 0x10
    file.write_bytes(data)
    with pytest.raises(Exception, match=r"(?i)checksum|crc"):
        read(spark, table.location).selectExpr("sum(id)", "sum(price)", "max(day)").collect()


@pytest.mark.parametrize("cluster", [False, True])
def test_write_returns_its_snapshot(spark: "SparkSession", catalog: Catalog, cluster: bool) -> None:
    table = catalog.create_table("shop.written", schema=ROWS, primary_key=["id"], options={"bucket": "3"})
    frame = spark.range(0, 1000, 1, 4).selectExpr("id", "'mon' AS day", "1D AS price")
    snapshot = write(frame, table.location, cluster=cluster)
    assert snapshot == table.snapshots()[-1]
    assert sorted(table.scan().to_arrow()["id"].to_pylist()) == list(range(1000))
    # Clustered, each bucket is one sorted run, and nothing has to be merged.
    assert (table.files().num_rows == 3) == cluster
    assert not cluster or scans(read(spark, table.location)) == (True, False)
    assert write(frame.where("id < 0"), table.location, cluster=cluster) is None


def test_clustered_rows_of_composite_keys_of_other_types(spark: "SparkSession", catalog: Catalog) -> None:
    schema = pa.schema([("k", pa.int16()), ("name", pa.string()), ("at", pa.timestamp("ms", tz="UTC")), ("v", pa.int32())])
    table = catalog.create_table("shop.composite", schema=schema, primary_key=["k", "name", "at"], options={"bucket": "4"})
    frame = spark.range(500).selectExpr("cast(id AS int) AS k", "concat('n', id) AS name", "timestamp_millis(id) AS at", "1 AS v")
    write(frame, table.location, cluster=True)
    plain = table.scan().to_arrow()
    assert table.files().num_rows == 4
    table.upsert(plain)
    # Had a row gone to another bucket than the engine's own choice, it would be there twice.
    assert table.scan().count() == 500


def test_write_modes_and_errors_are_ours(spark: "SparkSession", mixed: Table, warehouse: str) -> None:
    frame = spark.range(3).selectExpr("id", "'new' AS day", "1D AS price")
    write(frame, "shop.mixed", "overwrite", warehouse=warehouse)
    assert mixed.scan(filter="day = 'new'").count() == 3
    assert mixed.scan(filter="day = 'plain'").count() == 20
    with pytest.raises(InvalidInputError, match="append or overwrite"):
        write(frame, mixed.location, "ignore")
    with pytest.raises(InvalidInputError, match="'extra'"):
        write(frame.selectExpr("*", "1 AS extra"), mixed.location)
    with pytest.raises(NotFoundError, match="no table"):
        write(frame, f"{mixed.location}-not")
    with pytest.raises(NotFoundError, match="no table"):
        read(spark, f"{mixed.location}-not")
    with pytest.raises(InvalidInputError, match="no column 'nope'"):
        read(spark, mixed.location, columns=["nope"])


def test_repeated_write_with_identifier_changes_nothing(spark: "SparkSession", mixed: Table) -> None:
    frame = spark.range(3).selectExpr("id", "'new' AS day", "1D AS price")
    first = write(frame, mixed.location, commit_user="job", commit_identifier=1)
    assert write(frame, mixed.location, commit_user="job", commit_identifier=1) == first
    with pytest.raises(InvalidInputError, match="give both"):
        write(frame, mixed.location, commit_user="job")


def test_cluster_needs_buckets(spark: "SparkSession", catalog: Catalog) -> None:
    table = catalog.create_table("shop.unaware", schema=ROWS)
    with pytest.raises(InvalidInputError, match="fixed number of buckets"):
        write(spark.range(3).selectExpr("id"), table.location, cluster=True)


def test_conflict_is_ours_and_leaves_no_files(spark: "SparkSession", catalog: Catalog) -> None:
    table = catalog.create_table("shop.replaced", schema=ROWS)
    warehouse = str(Path(table.location).parent.parent)

    def create_anew(batches: object) -> object:
        from tablestore import open_catalog

        other = open_catalog(warehouse)
        other.drop_table("shop.replaced")
        other.create_table("shop.replaced", schema=ROWS)
        yield from batches  # type: ignore[attr-defined]

    frame = spark.range(0, 3, 1, 1).selectExpr("id")
    with pytest.raises((ConflictError, NotFoundError)):
        write(frame.mapInArrow(create_anew, frame.schema), table.location)  # type: ignore[arg-type]
    assert catalog.table("shop.replaced").scan().count() == 0
