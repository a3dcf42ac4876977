"""EXPLAIN says of each managed table what is read, what was left out, who reads it and what is merged, before anything runs."""

from collections.abc import Iterator

import pytest

import tablestore as ts

ENGINES = ("duckdb", pytest.param("spark", marks=pytest.mark.spark))


@pytest.fixture(scope="module", params=ENGINES)
def env(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    where = tmp_path_factory.mktemp("wh")
    with ts.TableEnvironment.create(where, engine=request.param) as env:
        env.execute_sql("CREATE TABLE t (id BIGINT, day STRING, v INT, PRIMARY KEY (id, day) NOT ENFORCED) PARTITIONED BY (day)")
        env.execute_sql("INSERT INTO t VALUES (1, 'mon', 1), (2, 'tue', 2)")
        env.execute_sql("ALTER TABLE t COMPACT")
        env.execute_sql("CREATE TABLE merged (k STRING, v INT, PRIMARY KEY (k) NOT ENFORCED)")
        env.execute_sql("INSERT INTO merged VALUES ('a', 1), ('b', 2)")
        env.execute_sql("INSERT INTO merged VALUES ('a', 3)")
        env.execute_sql("CREATE TEMPORARY VIEW w AS SELECT id, v FROM t WHERE day = 'mon'")
        yield env


@pytest.mark.deep_after(1)
def test_a_pruned_table_says_what_is_left_and_who_reads_it(env: ts.TableEnvironment) -> None:
    assert env.engine is not None
    name = {"duckdb": "DuckDB", "spark": "Spark"}[env.engine.name]
    plan = env.execute_sql("EXPLAIN SELECT v FROM t WHERE day = 'mon'").text
    assert plan is not None
    for line in (
        "columns day, v, filter day = 'mon'\n",
        "  files      1 of 2 read, 0 of them merged",
        "  buckets    1, in 1 partition\n",
        f"  read by    {name} 1 files, tablestore 0 files",
    ):
        assert line in plan


@pytest.mark.deep_after(1)
def test_a_table_with_newer_rows_says_what_is_merged(env: ts.TableEnvironment) -> None:
    assert env.engine is not None
    name = {"duckdb": "DuckDB", "spark": "Spark"}[env.engine.name]
    plan = env.execute_sql("EXPLAIN SELECT k FROM merged").text
    assert plan is not None
    assert "  files      2 of 2 read, 2 of them merged" in plan
    assert f"  read by    {name} 0 files, tablestore 2 files" in plan


@pytest.mark.deep_after(1)
def test_a_dialect_that_the_engine_does_not_run_is_refused_by_name(env: ts.TableEnvironment) -> None:
    assert env.engine is not None
    if env.engine.name == "spark":
        for text in ("SET 'table.sql-dialect' = 'duckdb'", "SUMMARIZE t"):
            with pytest.raises(ts.UnsupportedError, match="the engine spark does not run queries in the dialect duckdb"):
                env.execute_sql(text, sql_dialect="duckdb")


@pytest.mark.deep_after(1)
def test_tables_of_views_are_explained_too(env: ts.TableEnvironment) -> None:
    plan = env.execute_sql("EXPLAIN SELECT w.v FROM w JOIN merged ON w.v = merged.v").text
    assert plan is not None
    assert plan.count("  read by    ") == 2
