"""Rows of Spark, of streams too, are joined with the rows that a table has now."""

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyspark_tablestore
import pytest

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table
from tests.integration.spark.feed import Feed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

PAGES = pa.schema([pa.field("page", pa.int64(), nullable=False), ("title", pa.string()), ("seen", pa.timestamp("us", tz="UTC"))])
AT = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
EVENTS = pa.schema([("id", pa.int64()), ("v", pa.int64())])


@pytest.fixture
def pages(catalog: Catalog) -> Table:
    table = catalog.create_table("shop.pages", schema=PAGES, primary_key=["page"], options={"bucket": "2"})
    table.upsert([title(n, f"page {n}") for n in range(100)])
    return table


def title(page: int, text: str) -> dict[str, Any]:
    return {"page": page, "title": text, "seen": AT}


@pytest.mark.deep
def test_batch_gets_the_columns_of_the_newest_snapshot(spark: "SparkSession", pages: Table, warehouse: str) -> None:
    visits = spark.createDataFrame([(1, 7, "x"), (2, 7, None), (3, 700, "y"), (4, None, "z")], "n INT, page INT, `a b` STRING")
    left = pyspark_tablestore.lookup(visits, pages.location, on="page")
    assert left.schema.simpleString() == "struct<n:int,page:int,a b:string,title:string,seen:timestamp>"
    # Spark makes local times of them.
    at = AT.astimezone().replace(tzinfo=None)
    found = [(1, 7, "x", "page 7", at), (2, 7, None, "page 7", at), (3, 700, "y", None, None), (4, None, "z", None, None)]
    assert sorted(map(tuple, left.collect())) == found
    # The same rows whenever it is asked, as a DataFrame that reads a table has.
    pages.upsert([title(7, "new")])
    assert left.where("page = 7").select("title").distinct().collect()[0].title == "page 7"
    given: dict[str, Any] = {"warehouse": warehouse, "on": {"p": "page"}, "columns": {"name": "title"}, "how": "inner"}
    inner = pyspark_tablestore.lookup(visits.selectExpr("n", "page AS p"), "shop.pages", **given)
    assert sorted(map(tuple, inner.collect())) == [(1, 7, "new"), (2, 7, "new")]
    assert pyspark_tablestore.lookup(visits.where("n > 9"), pages.location, on="page").count() == 0
    odd = visits.selectExpr("n AS a", "n AS a", "page AS `p.``q`")
    named = pyspark_tablestore.lookup(odd, pages.location, on={"p.`q": "page"}, columns={"t. `t": "title"}, how="inner")
    assert named.columns == ["a", "a", "p.`q", "t. `t"] and sorted(map(tuple, named.collect()))[0] == (1, 1, 7, "new")


@pytest.mark.deep
def test_each_batch_of_a_stream_sees_one_snapshot_the_next_a_newer_one(spark: "SparkSession", pages: Table, tmp_path: Path) -> None:
    feed = Feed(spark, tmp_path / "feed", EVENTS)
    for number in range(3):
        feed.add({number: number, number + 50: number})
    stream = pyspark_tablestore.lookup(feed.read().repartition(2), pages.location, on={"id": "page"}, columns=["title"])
    assert stream.isStreaming
    batches: list[list[tuple[Any, ...]]] = []

    def keep(rows: "DataFrame", number: int) -> None:
        # Lands while the batch is at work: none of its tasks sees it, however often the rows are asked for.
        first = sorted(map(tuple, rows.collect()))
        pages.upsert([title(n, f"after {number}") for n in range(100)])
        assert sorted(map(tuple, rows.collect())) == first
        batches.append(first)

    query = stream.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path / "checkpoint"))
    query.trigger(availableNow=True).start().awaitTermination()
    assert batches == [
        [(0, 0, "page 0"), (50, 0, "page 50")],
        [(1, 1, "after 0"), (51, 1, "after 0")],
        [(2, 2, "after 1"), (52, 2, "after 1")],
    ]


@pytest.mark.deep
def test_errors_name_what_is_wrong_and_a_stream_stops_where_its_table_is_another_one(
    spark: "SparkSession", catalog: Catalog, pages: Table, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    rows = spark.createDataFrame([("1", 2)], "page STRING, title INT")
    with pytest.raises(InvalidInputError, match=r"'page' is string, the key 'page' is bigint; cast it"):
        pyspark_tablestore.lookup(rows, pages.location, on="page", columns=["seen"])
    with pytest.raises(InvalidInputError, match="both sides have a column 'title'"):
        pyspark_tablestore.lookup(rows, pages.location, on="page")
    with pytest.raises(InvalidInputError, match="join on other columns read the table as a DataFrame"):
        pyspark_tablestore.lookup(rows, pages.location, on="title")
    with pytest.raises(UnsupportedError, match="is a system table, which has no key"):
        pyspark_tablestore.lookup(rows, f"{pages.location}$snapshots", on="page")
    feed = Feed(spark, tmp_path / "feed", EVENTS)
    feed.add({1: 1})
    stream = pyspark_tablestore.lookup(feed.read(), pages.location, on={"id": "page"})
    catalog.drop_table("shop.pages")
    catalog.create_table("shop.pages", schema=PAGES, primary_key=["page"])
    writer = stream.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
    with pytest.raises(StreamingQueryException, match=r"ConflictError: .* was dropped and created again"):
        writer.trigger(availableNow=True).start().awaitTermination()
