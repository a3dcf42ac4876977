"""Materialized tables whose queries Spark runs: the whole way of one."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

import tablestore as ts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DEPLOY = """CREATE OR ALTER MATERIALIZED TABLE totals (PRIMARY KEY (day) NOT ENFORCED)
FRESHNESS = INTERVAL '5' MINUTE
AS SELECT day, count(*) AS orders, sum(v) AS total FROM orders WHERE v > 1 GROUP BY day"""
DAILY = """CREATE MATERIALIZED TABLE daily PARTITIONED BY (day) WITH ('partition.fields.day.date-formatter' = 'yyyy-MM-dd')
REFRESH_MODE = FULL AS SELECT id, day FROM orders"""


@pytest.fixture
def env(spark: "SparkSession", warehouse: str) -> Iterator[ts.TableEnvironment]:
    from pyspark_tablestore.engine import SparkEngine

    with ts.TableEnvironment.create(warehouse, engine=SparkEngine(spark)) as made:
        made.execute_sql("CREATE TABLE orders (id BIGINT, day STRING, v INT, PRIMARY KEY (id) NOT ENFORCED)")
        made.execute_sql("INSERT INTO orders VALUES (1, '2026-01-01', 1), (2, '2026-01-01', 2), (3, '2026-01-02', 3)")
        yield made


def rows(env: ts.TableEnvironment, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in env.execute_sql(text).to_arrow().to_pylist()]


def stamp(env: ts.TableEnvironment) -> tuple[Any, ...]:
    table = env.catalog().table("default.totals")
    assert isinstance(table, ts.Table)
    return table.table_schema.id, len(table.snapshots()), rows(env, "SHOW JOBS")


@pytest.mark.deep
def test_a_table_is_deployed_evolved_suspended_resumed_and_dropped(env: ts.TableEnvironment) -> None:
    env.execute_sql(DEPLOY)
    assert rows(env, "SELECT * FROM totals ORDER BY day") == [("2026-01-01", 1, 2), ("2026-01-02", 1, 3)]
    before = stamp(env)
    env.execute_sql(DEPLOY)
    env.execute_sql(DEPLOY.replace("\nAS SELECT", "\n-- once more\nAS select "))
    assert stamp(env) == before
    env.execute_sql(DEPLOY.replace("AS total", "AS total, max(v) AS most").replace("v > 1", "v > 0"))
    assert rows(env, "SELECT * FROM totals ORDER BY day") == [("2026-01-01", 2, 3, 2), ("2026-01-02", 1, 3, 3)]
    with pytest.raises(ts.InvalidInputError, match="drop column is unsupported"):
        env.execute_sql(DEPLOY)
    env.execute_sql("ALTER MATERIALIZED TABLE totals SUSPEND")
    env.execute_sql("INSERT INTO orders VALUES (1, '2026-01-02', 7)")
    env.execute_sql("ALTER MATERIALIZED TABLE totals RESUME WITH ('data-file.prefix' = 'resumed-')")
    totals = env.catalog().table("default.totals")
    assert isinstance(totals, ts.Table) and "data-file.prefix" not in totals.options()
    assert any(path.rpartition("/")[2].startswith("resumed-") for path in totals.files()["file_path"].to_pylist())
    assert rows(env, "SELECT * FROM totals ORDER BY day") == [("2026-01-01", 1, 2, 2), ("2026-01-02", 2, 10, 7)]
    (verified,) = env.execute_sql("ALTER MATERIALIZED TABLE totals REFRESH VERIFY").to_arrow().to_pylist()
    assert (verified["mode"], verified["missing"], verified["extra"]) == ("none", 0, 0)
    env.execute_sql("DROP MATERIALIZED TABLE totals")
    assert rows(env, "SHOW JOBS") == []


@pytest.mark.deep
def test_a_null_in_a_key_stops_the_refresh_and_names_the_column(env: ts.TableEnvironment) -> None:
    env.execute_sql("INSERT INTO orders VALUES (9, NULL, 9)")
    with pytest.raises(ts.InvalidInputError, match=r"column 'day' of table \S+\.totals is .*: a PRIMARY KEY takes no NULL"):
        env.execute_sql(DEPLOY)
    assert env.list_tables() == ("orders",) and rows(env, "SHOW JOBS") == []


@pytest.mark.deep
def test_a_partition_is_refreshed_as_one_commit(env: ts.TableEnvironment) -> None:
    env.execute_sql(DAILY)
    env.execute_sql("ALTER MATERIALIZED TABLE daily REFRESH PARTITION (day = '2026-01-01')")
    assert rows(env, "SELECT id FROM daily ORDER BY id") == [(1,), (2,)]
    with pytest.raises(ts.InvalidInputError, match="is a materialized table"):
        env.execute_sql("INSERT INTO daily VALUES (9, 'x')")


@pytest.mark.slow
def test_a_version_is_staged_compared_promoted_and_taken_back(env: ts.TableEnvironment) -> None:
    env.execute_sql(DEPLOY.replace("CREATE OR ALTER", "CREATE").replace("'5' MINUTE", "'1' DAY"))
    env.execute_sql("ALTER MATERIALIZED TABLE totals REFRESH")
    evolution = env.evolution("totals")
    evolution.stage("SELECT day, CAST(count(*) AS INT) AS orders, sum(v) AS total, max(v) AS most FROM orders GROUP BY day")
    report = evolution.compare()
    assert (report.columns_added, report.columns_retyped) == (("most INT",), ("orders BIGINT -> INT",))
    assert (report.only_current, report.only_other, report.changed) == (0, 0, 1)
    assert report.examples_changed is not None
    assert report.examples_changed.to_pylist() == [{"day": "2026-01-01", "total": 3}]
    evolution.promote()
    assert rows(env, "SELECT * FROM totals ORDER BY day") == [("2026-01-01", 2, 3, 2), ("2026-01-02", 1, 3, 3)]
    env.execute_sql("INSERT INTO orders VALUES (4, '2026-01-03', 9)")
    (verified,) = env.execute_sql("ALTER MATERIALIZED TABLE totals REFRESH VERIFY").to_arrow().to_pylist()
    assert (verified["mode"], verified["missing"], verified["extra"]) == ("incremental", 0, 0)
    evolution.rollback()
    assert rows(env, "SELECT * FROM totals ORDER BY day") == [("2026-01-01", 1, 2), ("2026-01-02", 1, 3), ("2026-01-03", 1, 9)]
    # Another layout, without a key: rows are compared as bags.
    evolution.stage("SELECT day, v AS orders FROM orders", primary_key=(), partitioned_by=("day",), options={"bucket": "-1"})
    report = evolution.compare()
    assert (report.changed, report.only_current, report.only_other) == (None, 0, 1)
    evolution.promote()
    assert len(rows(env, "SELECT * FROM totals")) == 4
    evolution.rollback()
    assert len(rows(env, "SELECT * FROM totals")) == 3


def test_a_table_has_the_same_columns_whichever_engine_runs_its_query(env: ts.TableEnvironment, warehouse: str) -> None:
    values = (
        "count(*)|count(v)|sum(v)|sum(id)|avg(v)|sum(n)|avg(n)|min(n)|max(d)|sum(f)|sum(n * n)|sum(v * n)|max(year(d))|"
        "max(month(d))|max(length(day))|max(datediff(d, d))|max(hour(t))|max(instr(day, 'a'))|max(v DIV 2)|max(n / 3)|max(sign(v))|"
        "count(DISTINCT v)|sum(v + id)|max(v / 2)|max(date_add(d, 1))|max(bit_count(v))|max(size(array(v)))"
    )
    columns = ", ".join(f"{value} AS c{place}" for place, value in enumerate(values.split("|")))
    env.execute_sql(
        "CREATE TABLE kinds (id BIGINT, v INT, n DECIMAL(10, 2), f DOUBLE, d DATE, t TIMESTAMP(6), day STRING, PRIMARY KEY (id) "
        "NOT ENFORCED)"
    )
    queries = (
        f"SELECT day, {columns} FROM kinds GROUP BY day",
        "SELECT id, q.place, total FROM (SELECT id, row_number() OVER (PARTITION BY day ORDER BY id) AS place, "
        "sum(n) OVER (PARTITION BY day) AS total FROM kinds) AS q WHERE place < 3",
    )
    for query in queries:
        text = f"EXPLAIN CREATE MATERIALIZED TABLE x AS {query}"
        with ts.TableEnvironment.create(warehouse, engine="duckdb") as other:
            wanted, found = (str(rows(one, text)[0][0]).splitlines()[1].split(", c") for one in (env, other))
        assert found == wanted
