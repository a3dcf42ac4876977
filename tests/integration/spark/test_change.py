"""Spark runs the query of a statement, its tasks write the changes, and the commit is made beside the driver."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from tablestore import InvalidInputError
from tablestore.distributed.change import pin_change, prepare_change
from tablestore.distributed.read import ReadPin
from tablestore.distributed.spec import TableSpec
from tablestore.store.commit.conflict import StalePlan
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table
from tablestore.table.write.changetasks import commit_changes
from tablestore.table.write.rowchange import RowChange

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tablestore.format.snapshot import Snapshot

pytestmark = pytest.mark.spark

ROWS = pa.schema([("id", pa.int64()), ("price", pa.float64())])
MERGE = RowChange(operation="MERGE", inserts=True, deletes=True, sets=("price",))
POSITIONS = "_data_file, _row_position"
# Deletes ids that 7 divides, adds 1 to those of the source, inserts the others of the source.
QUERY = """
SELECT CASE WHEN t.id IS NULL THEN '+I' WHEN t.id % 7 = 0 THEN '-D' ELSE '+U' END AS _row_kind,
       coalesce(t.id, s.id) AS id, coalesce(t.price + 1, 0) AS price {positions}
FROM {target} t FULL JOIN {source} s ON t.id = s.id
WHERE t.id IS NULL OR t.id % 7 = 0 OR s.id IS NOT NULL
"""


def target(spark: "SparkSession", pin: ReadPin, *, positions: bool) -> "DataFrame":
    from pyspark_tablestore.relation import read_pinned

    return read_pinned(spark, pin, positions=positions)


def commit(rows: "DataFrame", table: Table, pin: ReadPin) -> "Snapshot | None":
    from pyspark_tablestore.change import change_messages

    job = prepare_change(table, pin, MERGE)
    messages = change_messages(rows, pin.spec, job, table)
    return commit_changes(table.context, table.change_log, job, messages, prepared=True)


def merged(spark: "SparkSession", table: Table, ids: range, *, copies: int = 1) -> "tuple[DataFrame, ReadPin]":
    pin = pin_change(table, TableSpec(location=table.location, storage_options={}), MERGE, table.context.snapshots.latest())
    source = spark.range(ids.start, ids.stop)
    for _ in range(copies - 1):
        source = source.union(spark.range(ids.start, ids.stop))
    positions = "" if table.primary_key else f", {POSITIONS}"
    return spark.sql(
        QUERY.replace("{positions}", positions), target=target(spark, pin, positions=not table.primary_key), source=source
    ), pin


def rows(ids: range) -> pa.Table:
    return pa.table({"id": list(ids), "price": [float(number) for number in ids]}, schema=ROWS)


@pytest.mark.slow_after(2)
@pytest.mark.deep
@pytest.mark.parametrize(
    ("keyed", "options"),
    [
        (True, {"bucket": "3"}),
        (True, {"bucket": "-1"}),
        (False, {}),
        (False, {"data-file.prefix": "da ta"}),
        (False, {"deletion-vectors.enabled": "true"}),
    ],
)
def test_a_merge_by_a_query_of_spark(spark: "SparkSession", catalog: Catalog, keyed: bool, options: dict[str, Any]) -> None:
    table = catalog.create_table("shop.t", schema=ROWS, primary_key=["id"] if keyed else [], options=options)
    write = table.upsert if keyed else table.append
    write(rows(range(50)))
    write(rows(range(50, 100)))
    expected = {number: float(number) for number in range(100)}
    for ids in (range(40, 60), range(90, 120)):
        query, pin = merged(spark, table, ids)
        snapshot = commit(query, table, pin)
        assert snapshot is not None and snapshot.operation == "MERGE"
        before = expected
        expected = {number: price + (number in ids) for number, price in before.items() if number % 7}
        expected |= {number: 0.0 for number in ids if number not in before}
        found = table.scan().to_arrow().to_pylist()
        assert {row["id"]: row["price"] for row in found} == expected
        assert len(found) == len(expected)
    query, pin = merged(spark, table, range(40, 60))
    write(rows(range(200, 201)))
    with pytest.raises(StalePlan):
        commit(query, table, pin)
    query, pin = merged(spark, table, range(40, 60), copies=2)
    with pytest.raises(InvalidInputError, match=r"id = \d+" if keyed else r"row \d+ of data file") as caught:
        commit(query, table, pin)
    assert caught.value.kind == "second-match"
    assert table.scan(filter="id < 200").count() == len(expected)


@pytest.mark.deep
def test_positions_are_those_of_the_files_whoever_reads_them(spark: "SparkSession", catalog: Catalog) -> None:
    table = catalog.create_table("shop.t", schema=ROWS, options={"deletion-vectors.enabled": "true"})
    table.append(rows(range(300)))
    table.append(rows(range(300, 310)))
    table.delete("id = 301")
    pin = pin_change(table, TableSpec(location=table.location, storage_options={}), MERGE, table.context.snapshots.latest())
    frame = target(spark, pin, positions=True).where("id > 250")
    found = sorted(tuple(row) for row in frame.collect())
    assert found == sorted(tuple(row.values()) for row in table.scan(filter="id > 250", positions=True).to_arrow().to_pylist())
