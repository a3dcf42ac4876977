"""Spark over the catalog of a service: environments, the data source in both directions, streams, and rules for queries."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.server.access.queryrules import QueryRule
from tablestore.server.access.roles import Resource, Role
from tests.support.servers.serverthread import RuledService, ruled_service

pytestmark = pytest.mark.spark

ORDERS = Resource("shop", "orders")
RULE = QueryRule(
    table=ORDERS,
    roles=(Role.READER, Role.WRITER),
    row_filter="region = 'eu'",
    column_masks=(("card", None), ("item", "upper(item)")),
)
ROWS = pa.table({"id": [1, 2, 3], "item": ["a", "b", "c"], "region": ["eu", "us", "eu"], "card": ["x", "y", "z"]})
SEEN = [{"id": 1, "item": "A", "region": "eu", "card": None}, {"id": 3, "item": "C", "region": "eu", "card": None}]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RuledService]:
    catalog = ts.open_catalog(str(tmp_path / "wh"))
    catalog.create_database("shop")
    with ruled_service(catalog) as service:
        yield service


def options_of(service: RuledService, who: str, table: str) -> dict[str, str]:
    """The options of the data source."""
    storage = {f"storage.{key}": value for key, value in service.options(who).items()}
    return {**storage, "warehouse": "lake", "table": table}


def rows_of(frame: Any) -> list[dict[str, Any]]:
    return [row.asDict() for row in frame.sort("id").collect()]


def test_statements_of_spark_go_through_the_service(spark: Any, service: RuledService) -> None:
    with ts.TableEnvironment.create(service.options("admin"), spark=spark) as env:
        env.execute_sql("CREATE TABLE shop.t (id BIGINT, v STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2')")
        before = service.commits()
        env.execute_sql("INSERT INTO shop.t SELECT id, concat('v', id) FROM range(8)")
        assert service.commits() == before + 1
        env.execute_sql("UPDATE shop.t SET v = upper(v) WHERE id % 2 = 0 AND length(v) > 1")
        env.execute_sql(
            "MERGE INTO shop.t USING (SELECT id + 6 AS id FROM range(4)) s ON t.id = s.id "
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.id, 'new')"
        )
        assert service.commits() == before + 3
        env.execute_sql("CREATE TABLE shop.copied AS SELECT id, v FROM shop.t WHERE id > 3")
        rows = env.execute_sql("SELECT id, v FROM shop.copied ORDER BY id").to_arrow().to_pylist()
    assert [(row["id"], row["v"]) for row in rows] == [(4, "V4"), (5, "v5"), (8, "new"), (9, "new")]


@pytest.mark.deep
def test_the_data_source_reads_and_writes_through_the_service_and_its_tasks_commit_nothing(
    spark: Any, service: RuledService
) -> None:
    service.catalog("admin").create_table("shop.t", "id BIGINT, v STRING", primary_key=["id"])
    options = options_of(service, "admin", "shop.t")
    rows = spark.range(100).selectExpr("id", "concat('v', id) AS v").repartition(4)
    before = service.commits()
    rows.write.format("tablestore").options(**options).mode("append").save()
    assert service.commits() == before + 1
    read = spark.read.format("tablestore").options(**options).load()
    assert read.count() == 100 and read.where("id = 7").collect()[0].v == "v7"


@pytest.mark.deep
@pytest.mark.since(4, 2)
def test_a_stream_of_spark_reads_and_writes_through_the_service(spark: Any, service: RuledService, tmp_path: Path) -> None:
    catalog = service.catalog("admin")
    table = catalog.create_table("shop.t", "id BIGINT, v STRING", primary_key=["id"])
    assert isinstance(table, ts.Table)
    catalog.create_table("shop.out", "id BIGINT, v STRING", primary_key=["id"])
    table.upsert(pa.table({"id": [1, 2], "v": ["a", "b"]}))
    source = spark.readStream.format("tablestore").options(**options_of(service, "admin", "shop.t")).load()
    for more in (None, pa.table({"id": [2, 3], "v": ["bb", "c"]})):
        if more is not None:
            table.upsert(more)
        before = service.commits()
        query = (
            source.writeStream.format("tablestore")
            .options(**options_of(service, "admin", "shop.out"), checkpointLocation=str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        assert service.commits() == before + 1
    rows = rows_of(spark.read.format("tablestore").options(**options_of(service, "admin", "shop.out")).load())
    assert [(row["id"], row["v"]) for row in rows] == [(1, "a"), (2, "bb"), (3, "c")]


@pytest.fixture
def ruled(service: RuledService) -> RuledService:
    """Rows, and a rule over them for readers and writers."""
    table = service.catalog("admin").create_table("shop.orders", ROWS.schema, primary_key=["id"])
    assert isinstance(table, ts.Table)
    table.upsert(ROWS)
    service.rules.append(RULE)
    return service


def test_sql_on_spark_shows_what_rules_let_through(spark: Any, ruled: RuledService) -> None:
    with ts.TableEnvironment.create(ruled.options("reader"), spark=spark) as env:

        def rows(query: str) -> list[dict[str, Any]]:
            return env.execute_sql(query).to_arrow().to_pylist()

        assert rows("SELECT * FROM shop.orders ORDER BY id") == SEEN
        assert rows("SELECT count(*) AS n, max(id) AS m, count(card) AS c FROM shop.orders") == [{"n": 2, "m": 3, "c": 0}]
        assert rows("SELECT id FROM shop.orders WHERE item = 'a' OR card = 'x' OR region = 'us'") == []
        assert rows("SELECT id FROM shop.orders WHERE item = 'A' AND card IS NULL") == [{"id": 1}]
        assert "masked: card, item" in rows("EXPLAIN SELECT * FROM shop.orders WHERE id = 2")[0]["plan"]
    with ts.TableEnvironment.create(ruled.options("admin"), spark=spark) as env:
        assert env.execute_sql("SELECT count(*) AS n FROM shop.orders").to_arrow()["n"].to_pylist() == [3]


@pytest.mark.deep
def test_the_data_source_shows_what_rules_let_through(spark: Any, ruled: RuledService) -> None:
    read = spark.read.format("tablestore").options(**options_of(ruled, "reader", "shop.orders"))
    frame = read.load()
    assert rows_of(frame) == SEEN
    assert frame.count() == 2 and frame.where("item = 'a'").count() == 0 and frame.where("item = 'A'").count() == 1
    assert rows_of(read.option("filter", "item = 'A'").option("columns", "id").load()) == [{"id": 1}]
    admins = spark.read.format("tablestore").options(**options_of(ruled, "admin", "shop.orders")).load()
    assert admins.count() == 3


@pytest.mark.deep
@pytest.mark.since(4, 2)
def test_a_stream_of_spark_shows_what_rules_let_through(spark: Any, ruled: RuledService, tmp_path: Path) -> None:
    table = ruled.catalog("admin").table("shop.orders")
    assert isinstance(table, ts.Table)
    source = (
        spark.readStream.format("tablestore").options(**options_of(ruled, "reader", "shop.orders"), **{"row-kinds": "true"}).load()
    )

    def batch() -> list[tuple[Any, ...]]:
        place = tmp_path / "out"
        out = (
            source.writeStream.format("json").option("path", str(place)).option("checkpointLocation", str(tmp_path / "checkpoint"))
        )
        out.trigger(availableNow=True).start().awaitTermination()
        return sorted((row["id"], row["_row_kind"], row["item"]) for row in spark.read.json(str(place)).collect())

    assert batch() == [(1, "+I", "A"), (3, "+I", "C")]
    # One row leaves what is seen, one enters it, one is changed where nobody sees it.
    table.upsert(pa.table({"id": [1, 2, 4], "item": ["a", "b", "d"], "region": ["us", "eu", "us"], "card": ["x", "y", "w"]}))
    assert batch() == [(1, "+I", "A"), (1, "-D", "A"), (2, "+I", "B"), (3, "+I", "C")]


def test_row_level_statements_on_spark_are_refused_where_rules_hide_rows(spark: Any, ruled: RuledService) -> None:
    with ts.TableEnvironment.create(ruled.options("writer"), spark=spark) as env:
        for statement in (
            "UPDATE shop.orders SET item = reverse(item)",
            "DELETE FROM shop.orders WHERE length(card) = 1",
            "MERGE INTO shop.orders o USING (SELECT 2L AS id) s ON o.id = s.id WHEN MATCHED THEN DELETE",
            "INSERT OVERWRITE shop.orders SELECT * FROM shop.orders",
        ):
            with pytest.raises(ts.UnsupportedError, match="rules of its catalog service"):
                env.execute_sql(statement)
        env.execute_sql("INSERT INTO shop.orders SELECT 9L, 'n', 'us', 'k'")
    table = ruled.catalog("admin").table("shop.orders")
    assert isinstance(table, ts.Table) and table.scan().count() == 4
