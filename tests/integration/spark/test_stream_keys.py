"""A stream of changes goes into tables of other keys, orders and merge engines, or says at its start what it lacks."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark_tablestore
import pytest

from tablestore.table.catalog import Catalog
from tablestore.table.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SCHEMA = pa.schema(
    [pa.field("id", pa.int64(), nullable=False), pa.field("k", pa.int64(), nullable=False), ("ts", pa.int64()), ("v", pa.int64())]
)
SUM = {"merge-engine": "aggregation", "fields.v.aggregate-function": "sum", "fields.default-aggregate-function": "last_value"}
SINKS: dict[str, tuple[list[str], dict[str, str]]] = {
    "key": (["k"], {}),
    "order": (["id"], {"sequence.field": "ts"}),
    "sums": (["id"], SUM),
}


def table_of(catalog: Catalog, name: str, key: list[str], **options: str) -> Table:
    made = {"bucket": "1", "write-only": "true", **options}
    return catalog.create_table(f"shop.{name}", schema=SCHEMA, primary_key=key, options=made)


def row(id: int, k: int, ts: int, v: int) -> dict[str, Any]:
    return {"id": id, "k": k, "ts": ts, "v": v}


def content(table: Table) -> list[dict[str, Any]]:
    return sorted(table.refresh().scan().to_arrow().to_pylist(), key=lambda one: one["id"])


def run(spark: "SparkSession", source: Table, target: Table, checkpoint: Path, **options: str) -> None:
    stream = spark.readStream.format("tablestore").options(**{"row-kinds": "true", **options}).load(source.location)
    sink = stream.writeStream.format("tablestore").option("path", target.location).option("checkpointLocation", str(checkpoint))
    sink.trigger(availableNow=True).start().awaitTermination()


@pytest.mark.deep
def test_a_sink_of_another_key_or_order_asks_for_the_rows_before(spark: "SparkSession", catalog: Catalog, tmp_path: Path) -> None:
    source = table_of(catalog, "source", ["id"])
    targets = {name: table_of(catalog, name, key, **options) for name, (key, options) in SINKS.items()}
    source.upsert([row(1, 10, 5, 1), row(2, 20, 5, 2), row(3, 30, 5, 3)])
    for step in range(2):
        for name, target in targets.items():
            with pytest.raises(Exception, match=r"needs the rows before updates .*pairs = true"):
                run(spark, source, target, tmp_path / f"without {name}")
            run(spark, source, target, tmp_path / name, pairs="true")
        if not step:
            source.upsert([row(1, 11, 6, 4)])
            source.delete([{"id": 2}])
    expected = [row(1, 11, 6, 4), row(3, 30, 5, 3)]
    assert content(targets["key"]) == content(targets["order"]) == expected
    assert {one["id"]: one["v"] for one in content(targets["sums"])} == {1: 4, 2: 0, 3: 3}
    given = table_of(catalog, "given", ["id"], **{"changelog-producer": "input"})
    with pytest.raises(Exception, match=r"changelog-producer = input .*tablestore\.deliver"):
        run(spark, given, targets["key"], tmp_path / "given", pairs="true")


@pytest.mark.deep
def test_a_batch_of_deletes_by_key_reaches_a_table_with_an_order(spark: "SparkSession", catalog: Catalog) -> None:
    table = table_of(catalog, "ordered", ["id"], **{"sequence.field": "ts"})
    table.upsert([row(1, 10, 5, 1), row(2, 20, 5, 2), row(3, 30, 5, 3)])
    deletes = spark.createDataFrame(
        [(1, 0, None, None, "-D"), (2, 0, 4, None, "-D")], "id long, k long, ts long, v long, _row_kind string"
    )
    deletes.write.format("tablestore").mode("append").save(table.location)
    assert [one["id"] for one in content(table)] == [2, 3]
    pyspark_tablestore.write(deletes.filter("id = 1").selectExpr("2 AS id", "k", "ts", "v", "_row_kind"), table.location)
    assert [one["id"] for one in content(table)] == [3]
