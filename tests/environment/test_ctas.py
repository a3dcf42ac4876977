"""CREATE TABLE … AS and ``save_as``: what the table looks like, what it holds, and what is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts

Rows = Callable[[Any], list[tuple[Any, ...]]]


@pytest.fixture
def env(duck: ts.TableEnvironment) -> ts.TableEnvironment:
    duck.execute_sql("CREATE TABLE s (id BIGINT, name STRING, price DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED)")
    duck.execute_sql("INSERT INTO s VALUES (1, 'a', 1.5), (2, 'b', NULL)")
    return duck


def schema_of(env: ts.TableEnvironment, name: str) -> Any:
    table = env.catalog().table(f"default.{name}")
    return {field.name: str(field.type) + ("" if field.nullable else " not null") for field in table.scan().schema}


def test_a_table_has_the_names_and_types_of_its_query_and_its_rows(env: ts.TableEnvironment, rows_of: Rows) -> None:
    result = env.execute_sql("CREATE TABLE t AS SELECT id, upper(name) AS loud, price FROM s WHERE id > :least", least=1)
    assert (result.kind, result.snapshot.id) == ("snapshot", 1)  # type: ignore[union-attr]
    assert schema_of(env, "t") == {"id": "int64", "loud": "string", "price": "decimal128(10, 2)"}
    assert rows_of(env.execute_sql("SELECT id, loud FROM t")) == [(2, "B")]


def test_the_table_is_what_create_and_insert_make(env: ts.TableEnvironment, rows_of: Rows) -> None:
    clauses = "COMMENT 'all of it' PARTITIONED BY (name) WITH ('bucket' = '2')"
    env.execute_sql(f"CREATE TABLE a (PRIMARY KEY (id, name) NOT ENFORCED) {clauses} AS SELECT * FROM s")
    env.execute_sql(f"CREATE TABLE b (id BIGINT, name STRING, price DECIMAL(10, 2), PRIMARY KEY (id, name) NOT ENFORCED) {clauses}")
    env.execute_sql("INSERT INTO b SELECT * FROM s")
    made, wanted = (str(rows_of(env.execute_sql(f"SHOW CREATE TABLE {name}"))[0][0]) for name in "ab")
    assert made == wanted.replace("`b`", "`a`")
    assert rows_of(env.execute_sql("SELECT * FROM a ORDER BY id")) == rows_of(env.execute_sql("SELECT * FROM b ORDER BY id"))


def test_key_columns_are_not_null_and_a_null_in_the_rows_is_refused(env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.InvalidInputError, match="price"):
        env.execute_sql("CREATE TABLE k (PRIMARY KEY (price) NOT ENFORCED) AS SELECT id, price FROM s")
    assert schema_of(env, "k") == {"id": "int64", "price": "decimal128(10, 2) not null"}


def test_columns_that_are_written_come_first_and_their_types_hold(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql(
        "CREATE TABLE t (note STRING DEFAULT 'none', ID INT, twice AS ID * 2, PRIMARY KEY (ID) NOT ENFORCED) "
        "AS SELECT id, name FROM s"
    )
    assert schema_of(env, "t") == {"note": "string", "ID": "int32 not null", "name": "string"}
    assert rows_of(env.execute_sql("SELECT * FROM t ORDER BY ID")) == [("none", 1, 2, "a"), ("none", 2, 4, "b")]


def test_names_alone_put_the_columns_of_the_query_in_order(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("CREATE TABLE t (price, id, name) AS SELECT id, name, price FROM s WHERE id = 2")
    assert list(schema_of(env, "t")) == ["price", "id", "name"]
    assert rows_of(env.execute_sql("SELECT * FROM t")) == [(None, 2, "b")]


def test_a_table_of_no_rows_is_made_too(env: ts.TableEnvironment, rows_of: Rows) -> None:
    result = env.execute_sql("CREATE TABLE t AS SELECT * FROM s WHERE id > 7")
    assert (result.snapshot, rows_of(result)) == (None, [(None, 0, 0, 0, 0)])
    assert rows_of(env.execute_sql("SELECT count(*) FROM t")) == [(0,)]


LEFT_AS_IT_IS = [("already-there", "table tablestore.default.t is there already; nothing was done")]


def notices_of(result: Any) -> list[tuple[str, str]]:
    return [(str(notice.kind), notice.message) for notice in result.notices]


@pytest.mark.parametrize("settings", [{}, {"table.ctas.atomicity-enabled": "true"}, {"table.dml-sync": "false"}])
def test_if_not_exists_does_nothing_where_a_table_is_there_and_says_so(
    env: ts.TableEnvironment, rows_of: Rows, settings: dict[str, str]
) -> None:
    for key, value in settings.items():
        env.get_config().set(key, value)
    made = env.execute_sql("CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS id")
    assert (rows_of(made), notices_of(made)) == ([(1, 1, 1, 0, 0)], [])
    # The query is not even looked at.
    for query in ("SELECT 2 AS id", "SELECT 1 AS other", "SELECT * FROM missing", "SELECT CAST('b' AS INT) AS id"):
        result = env.execute_sql(f"CREATE TABLE IF NOT EXISTS t AS {query}")
        assert (result.kind, result.job, result.snapshot, rows_of(result)) == ("snapshot", None, None, [(None, 0, 0, 0, 0)])
        assert notices_of(result) == LEFT_AS_IT_IS
    assert "is there already" in env.execute_sql("EXPLAIN CREATE TABLE IF NOT EXISTS t AS SELECT 2 AS id").text  # type: ignore[operator]
    table = env.catalog().table("default.t")
    assert (table.scan().to_arrow().to_pylist(), len(table.snapshots())) == ([{"id": 1}], 1)  # type: ignore[union-attr]


def test_if_not_exists_needs_no_engine_where_a_table_is_there(tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path / "plain") as env:
        env.execute_sql("CREATE TABLE t (id INT)")
        assert notices_of(env.execute_sql("CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS id")) == LEFT_AS_IT_IS
        assert notices_of(env.execute_sql("CREATE TABLE IF NOT EXISTS t (id INT)")) == LEFT_AS_IT_IS


def test_if_not_exists_leaves_a_table_with_a_connector_and_temporary_ones_as_they_are(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (id INT) WITH ('connector' = 'blackhole')")
    for atomic in ("false", "true"):
        env.execute_sql(f"SET 'table.ctas.atomicity-enabled' = '{atomic}'")
        result = env.execute_sql("CREATE TABLE IF NOT EXISTS t WITH ('connector' = 'blackhole') AS SELECT 1 AS id")
        assert (result.kind, notices_of(result)) == ("nothing", LEFT_AS_IT_IS)
    assert notices_of(env.execute_sql("CREATE TABLE IF NOT EXISTS t (id INT)")) == LEFT_AS_IT_IS
    assert notices_of(env.execute_sql("CREATE TEMPORARY TABLE IF NOT EXISTS s (id INT)")) == []
    assert len(env.execute_sql("CREATE TEMPORARY TABLE IF NOT EXISTS s (id INT)").notices) == 1


def test_a_pipeline_of_a_table_that_is_there_does_nothing_however_often_it_runs(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("CREATE TABLE t AS SELECT 7 AS id")
    for atomic in ("false", "true"):
        env.execute_sql(f"SET 'table.ctas.atomicity-enabled' = '{atomic}'")
        pipeline = env.sql_query("SELECT 9 AS id").save_as("t").create(ignore_if_exists=True)
        assert "is there already" in pipeline.explain()
        for run in (pipeline.execute, lambda: pipeline.execute_async().result(60), pipeline.execute):  # noqa: B023
            assert notices_of(run()) == LEFT_AS_IT_IS
    assert rows_of(env.from_path("t")) == [(7,)]


@pytest.mark.parametrize("atomic", ["false", "true"])
def test_a_pipeline_that_made_its_table_adds_rows_to_it_from_then_on(env: ts.TableEnvironment, rows_of: Rows, atomic: str) -> None:
    env.execute_sql(f"SET 'table.ctas.atomicity-enabled' = '{atomic}'")
    pipeline = env.sql_query("SELECT 9 AS id").save_as("t").create(ignore_if_exists=True)
    assert [pipeline.execute().snapshot.id, pipeline.execute().snapshot.id] == [1, 2]  # type: ignore[union-attr]
    assert rows_of(env.from_path("t")) == [(9,), (9,)]


def test_changes_make_a_table_of_what_they_come_to(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("DELETE FROM s WHERE id = 1")
    env.execute_sql("CREATE TABLE t (PRIMARY KEY (id) NOT ENFORCED) AS SELECT * FROM table_changes('s', 0)")
    assert rows_of(env.execute_sql("SELECT id, name FROM t")) == [(2, "b")]


def test_rows_of_temporary_objects_are_stored_and_a_temporary_name_does_not_take_them(
    env: ts.TableEnvironment, rows_of: Rows
) -> None:
    env.create_temporary_function("plus", lambda x: x + 1, arguments=["BIGINT"], returns="BIGINT")
    env.create_temporary_view("t", env.sql_query("SELECT plus(id) AS n FROM s"))
    env.execute_sql("CREATE TABLE t AS SELECT n FROM t")
    env.drop_temporary_view("t")
    assert rows_of(env.execute_sql("SELECT n FROM t ORDER BY n")) == [(2,), (3,)]


@pytest.mark.parametrize("atomic", ["false", "true"])
@pytest.mark.parametrize("hides", ["CREATE TEMPORARY VIEW t AS SELECT 7 AS n", "CREATE TEMPORARY TABLE t (n INT)"])
def test_rows_are_not_added_to_a_table_that_a_temporary_object_hides(
    env: ts.TableEnvironment, rows_of: Rows, hides: str, atomic: str
) -> None:
    """INSERT INTO t would find the temporary one, and a reader after it."""
    env.execute_sql(f"SET 'table.ctas.atomicity-enabled' = '{atomic}'")
    pipeline = env.sql_query("SELECT 1 AS n").save_as("t").create(ignore_if_exists=True)
    pipeline.execute()
    env.execute_sql(hides)
    before = rows_of(env.execute_sql("SELECT n FROM t"))
    refused = "Temporary (view|table) with identifier '`tablestore`.`default`.`t`' exists. Drop it first before adding rows to the"
    with pytest.raises(ts.InvalidInputError, match=refused):
        pipeline.execute()
    assert notices_of(env.execute_sql("CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS n")) == LEFT_AS_IT_IS
    assert rows_of(env.execute_sql("SELECT n FROM t")) == before
    assert env.drop_temporary_view("t") or env.drop_temporary_table("t")
    pipeline.execute()
    assert rows_of(env.execute_sql("SELECT n FROM t")) == [(1,), (1,)]


def test_a_query_that_fails_leaves_an_empty_table_where_atomicity_is_off(env: ts.TableEnvironment, rows_of: Rows) -> None:
    with pytest.raises(ts.InvalidInputError, match="'b'"):
        env.execute_sql("CREATE TABLE t AS SELECT CAST(v AS INT) AS n FROM (VALUES ('1'), ('b')) AS r (v)")
    assert rows_of(env.execute_sql("SELECT count(*) FROM t")) == [(0,)]


REFUSED = [
    ("CREATE TABLE t AS SELECT id, count(*) FROM s GROUP BY id", "unnamed-column", r"count\(\*\) has none.*\n.*column 30"),
    ("CREATE TABLE t AS WITH q AS (SELECT 1) SELECT DISTINCT id, id + 1 FROM s", "unnamed-column", r"id \+ 1 has none"),
    ("CREATE TABLE t AS VALUES (1, 'a')", "unnamed-column", "needs a name"),
    ("CREATE TABLE t AS SELECT a.id, b.id FROM s AS a, s AS b", "duplicate-column", "gives 'id' twice.*\n.*column 32"),
    ("CREATE TABLE t AS SELECT id, name AS ID FROM s", "duplicate-column", "gives 'ID' twice"),
    ("CREATE TABLE t (x AS id, id INT) AS SELECT id, name AS x FROM s", "duplicate-column", "duplicate column names: x"),
    ("CREATE TABLE t AS SELECT NULL AS x", "column-type", r"the type of the column 'x' is not known"),
    ("CREATE TABLE t AS SELECT INTERVAL 1 DAY AS x", "unsupported-type", "no table can hold"),
    ("CREATE TABLE s AS SELECT 1 AS x", "table-exists", "Table '`tablestore`.`default`.`s`' already exists.*\n.*column 14"),
    ("CREATE TABLE t (b, id) AS SELECT id, name FROM s", "unknown-column", "gives no column 'b'.*\n.*column 17"),
    ("CREATE TABLE t (id) AS SELECT id, name FROM s", "columns", "lacks 'name'"),
    ("CREATE TABLE t (id BOOLEAN) AS SELECT id FROM s", "columns", "'id' is BOOLEAN and takes no BIGINT.*\n.*column 14"),
    ("CREATE TABLE t (x INT NOT NULL) AS SELECT id FROM s", "columns", "'x' is NOT NULL, and the query does not give it"),
    ("CREATE TABLE t (x INT, PRIMARY KEY (x) NOT ENFORCED) AS SELECT id FROM s", "columns", "'x' is NOT NULL"),
    ("CREATE TABLE t (PRIMARY KEY (nope) NOT ENFORCED) AS SELECT id FROM s", None, "nope"),
    ("CREATE TABLE t PARTITIONED BY (nope) AS SELECT id FROM s", None, "nope"),
    ("CREATE TABLE t AS SELECT * FROM nowhere", "no-such-table", "does not exist"),
    ("CREATE TABLE nowhere.t AS SELECT 1 AS a", "no-such-database", "no database 'nowhere'"),
    ("CREATE TABLE t WITH ('bukcet' = '1') AS SELECT 1 AS a", "unknown-option", "did you mean 'bucket'"),
    ("CREATE TABLE `t$files` AS SELECT 1 AS a", "invalid-name", "the name of a part of a table"),
    ("CREATE TABLE t WITH ('connector' = 'kafka') AS SELECT 1 AS a", "engine", "does not write"),
    ("CREATE TABLE t AS SELECT :n AS a", "parameters", "has no value"),
    ("CREATE TEMPORARY TABLE t AS SELECT 1 AS a", "temporary-object", "CREATE TEMPORARY VIEW"),
]


def test_what_cannot_be_a_table_is_refused_and_nothing_is_made(env: ts.TableEnvironment) -> None:
    for statement, kind, message in REFUSED:
        with pytest.raises(ts.TablestoreError, match=message) as refused:
            env.execute_sql(statement)
        assert kind in (None, refused.value.kind), statement
        assert env.list_tables() == ("s",), statement


def test_a_computed_column_over_a_temporary_function_is_refused_where_it_would_be_stored(env: ts.TableEnvironment) -> None:
    env.create_temporary_function("plus", lambda x: x + 1, arguments=["BIGINT"], returns="BIGINT")
    env.create_temporary_function("other.plus", lambda x: x + 1, arguments=["BIGINT"], returns="BIGINT")
    for statement, name in (
        ("CREATE TABLE t (more AS plus(id)) AS SELECT id FROM s", "plus"),
        ("CREATE TABLE t (id BIGINT, more AS 1 + other.plus(id))", "other.plus"),
        ("CREATE TABLE t (at TIMESTAMP(3), WATERMARK FOR at AS plus(at))", "plus"),
    ):
        column = statement.index(f"{name}(") + 1
        with pytest.raises(ts.UnsupportedError, match=rf"{name} is a temporary function.*\nline 1, column {column}:") as refused:
            env.execute_sql(statement)
        assert refused.value.kind == "temporary-object"
    assert env.list_tables() == ("s",)


def test_without_an_engine_and_in_streaming_mode_the_way_out_is_named(env: ts.TableEnvironment, tmp_path: Any) -> None:
    with ts.TableEnvironment.create(tmp_path / "other") as bare, pytest.raises(ts.UnsupportedError) as refused:
        bare.execute_sql("CREATE TABLE t AS SELECT 1 AS a")
    assert refused.value.kind == "no-engine"
    env.execute_sql("SET 'execution.runtime-mode' = 'streaming'")
    with pytest.raises(ts.UnsupportedError, match="streaming"):
        env.execute_sql("CREATE TABLE t AS SELECT 1 AS a")


def test_explain_says_what_is_made_and_makes_nothing(env: ts.TableEnvironment, rows_of: Rows) -> None:
    plan = str(
        rows_of(env.execute_sql("EXPLAIN CREATE TABLE t (PRIMARY KEY (id) NOT ENFORCED) AS SELECT id FROM s WHERE id = 1"))[0][0]
    )
    assert "== Creates ==\ntablestore.default.t: id BIGINT" in plan
    assert "tablestore.default.s: snapshot 1, columns id, filter id = 1" in plan
    assert env.list_tables() == ("s",)


def test_save_as_makes_nothing_before_create_and_writes_when_its_pipeline_runs(env: ts.TableEnvironment, rows_of: Rows) -> None:
    builder = env.sql_query("SELECT id, name FROM s WHERE id < :most", most=2).save_as("t").option("bucket", 2)
    builder.options({"write-only": True}).primary_key("id", "name").partitioned_by("name").comment("of s")
    assert env.list_tables() == ("s",)
    pipeline = builder.create()
    table = env.catalog().table("default.t")
    assert (table.options()["bucket"], table.primary_key, table.partition_by) == ("2", ("id", "name"), ("name",))
    assert table.scan().count() == 0
    assert "tablestore.default.s" in pipeline.explain()
    assert pipeline.execute().snapshot.id == 1  # type: ignore[union-attr]
    assert rows_of(env.from_path("t")) == [(1, "a")]
    assert pipeline.execute_async().result(60).snapshot.id == 2  # type: ignore[union-attr]
    with pytest.raises(ts.AlreadyExistsError):
        builder.create()
    assert rows_of(env.execute_sql("SELECT id FROM t ORDER BY id")) == [(1,)]


def test_create_table_of_a_query_is_short_for_save_as(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.create_table("t", {"bucket": "1", "bucket-key": "id"}, "SELECT id FROM s").execute()
    env.create_table("u", {}, env.from_path("t")).execute()
    assert rows_of(env.execute_sql("SELECT t.id FROM t JOIN u ON t.id = u.id ORDER BY t.id")) == [(1,), (2,)]


def test_wrong_options_and_paths_are_refused_at_once(env: ts.TableEnvironment) -> None:
    for key, value in [(1, "x"), ("bucket", None), ("bucket", b"1")]:
        with pytest.raises(ts.InvalidInputError, match="expected an option as two texts"):
            env.from_path("s").save_as("t").option(key, value)  # type: ignore[arg-type]
    for path in ("", "a.b.c.d", "a..b", "`t", "t`", "t u"):
        with pytest.raises(ts.InvalidInputError):
            env.from_path("s").save_as(path)


def test_with_dml_sync_off_the_table_is_there_at_once_and_the_job_fills_it(env: ts.TableEnvironment) -> None:
    env.get_config().set("table.dml-sync", "false")
    result = env.execute_sql("CREATE TABLE t AS SELECT * FROM s")
    assert "t" in env.list_tables()
    assert result.job is not None and result.job.result(60).snapshot is not None
    assert env.catalog().table("default.t").scan().count() == 2
