"""CREATE TABLE … AS and jobs in Spark."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.environment.jobs import JobStatus
from tablestore.testing.kafka import KafkaBroker
from tests.integration.kafka.topics import messages, topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SLOW = "SELECT count(*) AS n FROM range(100000) AS a, range(100000) AS b WHERE sin(a.id + b.id) = 2"


@pytest.fixture
def env(spark: "SparkSession", tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    from pyspark_tablestore.engine import SparkEngine

    with ts.TableEnvironment.create(tmp_path / "wh", engine=SparkEngine(spark)) as made:
        yield made


def rows_of(env: ts.TableEnvironment, text: str) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in env.execute_sql(text).to_arrow().to_pylist()]


def left(tmp_path: Path) -> list[str]:
    found = (name for _, _, names in os.walk(tmp_path / "wh") for name in names)
    return sorted(name for name in found if name != "_database")


@pytest.mark.deep
def test_tables_of_sparks_own_tables_and_dataframes_atomic_or_not(
    env: ts.TableEnvironment, spark: "SparkSession", tmp_path: Path
) -> None:
    spark.range(7).createOrReplaceTempView("sparks_own")
    env.create_temporary_view("frame", spark.createDataFrame([(1, "a")], "id INT NOT NULL, name STRING"))
    for atomic in ("false", "true"):
        env.get_config().set("table.ctas.atomicity-enabled", atomic)
        env.execute_sql(f"CREATE TABLE o_{atomic} AS SELECT id, id % 2 AS odd FROM sparks_own WHERE id > 2")
        assert rows_of(env, f"SELECT sum(id), max(odd) FROM o_{atomic}") == [(18, 1)]
        pipeline = env.from_path("frame").save_as(f"f_{atomic}").option("bucket", 2).primary_key("id").create()
        assert pipeline.execute().snapshot is not None
        table = env.catalog().table(f"default.f_{atomic}")
        assert [(field.name, field.nullable) for field in table.scan().schema] == [("id", False), ("name", True)]
        assert rows_of(env, f"SELECT * FROM f_{atomic}") == [(1, "a")]
    assert "_ctas" not in os.listdir(tmp_path / "wh") or not os.listdir(tmp_path / "wh" / "_ctas")
    spark.catalog.dropTempView("sparks_own")


@pytest.mark.deep
def test_a_task_that_fails_or_dies_leaves_nothing_of_an_atomic_table(env: ts.TableEnvironment, tmp_path: Path) -> None:
    env.get_config().set("table.ctas.atomicity-enabled", "true")

    def die(x: int) -> int:
        if x > 400:
            os._exit(1)
        return x

    env.create_temporary_function("die", die, arguments=["BIGINT"], returns="BIGINT")
    for query in (
        "SELECT id, 1 / (id - 400) AS x FROM range(0, 500, 1, 4)",
        "SELECT die(id) AS id FROM range(0, 500, 1, 4)",
    ):
        with pytest.raises(ts.TablestoreError):
            env.execute_sql(f"CREATE TABLE t AS {query}")
        assert env.list_tables() == ()
        # Spark lets the other tasks of a job that it gave up run on: these remove what they write themselves.
        for _ in range(600):
            if not left(tmp_path):
                break
            SystemClock().sleep(0.1)
        assert left(tmp_path) == []


@pytest.mark.deep
def test_a_job_is_canceled_and_others_go_on(env: ts.TableEnvironment, tmp_path: Path) -> None:
    env.get_config().set("table.ctas.atomicity-enabled", "true").set("table.dml-sync", "false")
    job = env.execute_sql(f"CREATE TABLE t AS {SLOW}").job
    assert job is not None
    other = env.execute_sql("CREATE TABLE u AS SELECT 1 AS id").job
    assert other is not None and other.result(120).snapshot.id == 1  # type: ignore[union-attr]
    while not job.wait(0.1):
        job.cancel()
    with pytest.raises(ts.UnsupportedError) as refused:
        job.result()
    assert (refused.value.kind, job.status) == ("cancelled", JobStatus.CANCELED)
    assert env.list_tables() == ("u",)


@pytest.mark.deep
def test_tables_with_a_connector_are_filled_and_of_any_format_of_sparks(env: ts.TableEnvironment, tmp_path: Path) -> None:
    for name, clause in (
        ("p", f"WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/p', 'format' = 'parquet')"),
        ("c", f"USING csv OPTIONS ('path' '{tmp_path}/c', 'header' 'true')"),
        ("o", f"USING orc LOCATION '{tmp_path}/o'"),
    ):
        env.execute_sql(f"CREATE TABLE {name} {clause} AS SELECT id, concat('n', id) AS name FROM range(3)")
        assert rows_of(env, f"SELECT count(*), max(name) FROM {name}") == [(3, "n2")]
        env.execute_sql(f"CREATE TABLE from_{name} AS SELECT * FROM {name}")
        assert rows_of(env, f"SELECT count(*), max(name) FROM from_{name}") == [(3, "n2")]
    env.get_config().set("table.ctas.atomicity-enabled", "true")
    with pytest.raises(ts.TablestoreError):
        env.execute_sql(f"CREATE TABLE x USING parquet LOCATION '{tmp_path}/x' AS SELECT 1 / (id - 1) AS n FROM range(3)")
    with pytest.raises(ts.NotFoundError):
        env.execute_sql("SELECT * FROM x")
    with pytest.raises(ts.UnsupportedError, match="the connector 'jdbc' cannot be taken back"):
        env.execute_sql("CREATE TABLE x WITH ('connector' = 'jdbc') AS SELECT 1 AS n")


@pytest.mark.slow_after(1)
@pytest.mark.deep
@pytest.mark.parametrize("file_format", ["parquet", "csv"])
def test_an_overwrite_of_a_table_of_files_that_fails_or_reads_it_loses_no_row(
    env: ts.TableEnvironment, tmp_path: Path, file_format: str
) -> None:
    columns = "id BIGINT, v STRING"
    env.execute_sql(
        f"CREATE TABLE f ({columns}) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/f', 'format' = '{file_format}')"
    )
    env.execute_sql("INSERT INTO f VALUES (1, 'a'), (2, 'b')")
    before = sorted(path.name for path in (tmp_path / "f").iterdir())
    for query in (
        "SELECT id, CASE WHEN id > 900 THEN raise_error('late') ELSE 'x' END AS v FROM range(1000)",
        "SELECT CAST(v AS BIGINT) AS id, v FROM f",
    ):
        with pytest.raises(ts.TablestoreError):
            env.execute_sql(f"INSERT OVERWRITE f {query}")
        assert rows_of(env, "SELECT id, v FROM f ORDER BY id") == [(1, "a"), (2, "b")]
        assert sorted(path.name for path in (tmp_path / "f").iterdir()) == before, "nothing is left behind"
    env.execute_sql("INSERT OVERWRITE f SELECT id + 10 AS id, v FROM f")
    assert rows_of(env, "SELECT id, v FROM f ORDER BY id") == [(11, "a"), (12, "b")]
    env.execute_sql("INSERT OVERWRITE f SELECT * FROM f WHERE false")
    assert rows_of(env, "SELECT count(*) FROM f") == [(0,)]


@pytest.mark.slow_after(2)
@pytest.mark.deep
@pytest.mark.parametrize("file_format", ["parquet", "csv", "json", "orc"])
def test_a_partitioned_table_of_files_is_made_filled_and_overwritten_by_partition(
    env: ts.TableEnvironment, tmp_path: Path, file_format: str
) -> None:
    where = f"PARTITIONED BY (day, `a b`) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/f', 'format' = '{file_format}')"
    rows = "(1L, DATE '2024-01-01', 1, '01'), (2L, DATE '2024-01-02', 2, 'x/=%'), (3L, NULL, 3, NULL)"
    env.execute_sql(f"CREATE TABLE f {where} AS SELECT * FROM (VALUES {rows}) AS r (id, day, v, `a b`)")
    folders = [path.name for path in (tmp_path / "f").iterdir() if path.is_dir()]
    assert sorted(folders) == ["day=2024-01-01", "day=2024-01-02", "day=__HIVE_DEFAULT_PARTITION__"]

    def found(engine: ts.TableEnvironment = env) -> list[tuple[Any, ...]]:
        return rows_of(engine, "SELECT id, CAST(day AS STRING), v, `a b` FROM f ORDER BY id")

    second, third = (2, "2024-01-02", 2, "x/=%"), (3, None, 3, None)
    assert found() == [(1, "2024-01-01", 1, "01"), second, third]
    env.execute_sql("INSERT INTO f PARTITION (day = DATE '2024-01-01', `a b` = '01') SELECT 4L, 4")
    env.execute_sql("INSERT OVERWRITE f PARTITION (day = DATE '2024-01-01', `a b` = '01') (v, id) SELECT v, id FROM f WHERE id = 4")
    assert found() == [second, third, (4, "2024-01-01", 4, "01")], "it reads what it replaces"
    env.execute_sql("INSERT OVERWRITE f PARTITION (day = '2024-01-02', `a b`) SELECT 5L, 5, 'new'")
    env.execute_sql("INSERT OVERWRITE f SELECT 6L, NULL, 6, NULL")
    assert found() == [second, (4, "2024-01-01", 4, "01"), (5, "2024-01-02", 5, "new"), (6, None, 6, None)]
    env.execute_sql("INSERT OVERWRITE f PARTITION (day = DATE '2024-01-02', `a b` = 'x/=%') SELECT 7L, 7 WHERE false")
    env.execute_sql("INSERT OVERWRITE f PARTITION (day = NULL, `a b` = NULL) SELECT 7L, 7 WHERE false")
    assert found() == [(4, "2024-01-01", 4, "01"), (5, "2024-01-02", 5, "new")]
    with pytest.raises(ts.InvalidInputError, match=r"expected partition columns of tablestore\.default\.f .*day, a b"):
        env.execute_sql("INSERT OVERWRITE f PARTITION (v = 1) SELECT 7L, 'x', 'y'")
    with ts.TableEnvironment.create(tmp_path / "other", engine="duckdb") as duck:
        duck.execute_sql(f"CREATE TABLE f (id BIGINT, day DATE, v INT, `a b` STRING) {where}")
        env.execute_sql("INSERT INTO f VALUES (8, NULL, 8, NULL), (9, DATE '2024-01-02', 9, '09')")
        assert found(duck) == found()
        duck.execute_sql("INSERT OVERWRITE f PARTITION (day = DATE '2024-01-02', `a b` = '09') SELECT 10L, 10")
        assert found(duck) == found() and (10, "2024-01-02", 10, "09") in found()


@pytest.mark.deep
@pytest.mark.parametrize("atomic", ["true", "false"])
def test_a_write_into_files_that_fails_leaves_no_folder_that_it_made(env: ts.TableEnvironment, tmp_path: Path, atomic: str) -> None:
    env.get_config().set("table.ctas.atomicity-enabled", atomic)
    query = "SELECT id, 1 / (id - 1) AS n FROM range(3)"
    for clause in ("", "PARTITIONED BY (id)"):
        with pytest.raises(ts.TablestoreError):
            env.execute_sql(f"CREATE TABLE x {clause} WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/x') AS {query}")
        assert not (tmp_path / "x").exists()
        env.execute_sql("DROP TABLE IF EXISTS x")
    for there in ((), ("a",), ("a", "b")):
        tmp_path.joinpath(*there).mkdir(parents=True, exist_ok=True)
        with pytest.raises(ts.TablestoreError):
            env.execute_sql(f"CREATE TABLE y WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/a/b/c/d') AS {query}")
        assert [path.relative_to(tmp_path).parts for path in tmp_path.rglob("*") if path.name in "abcd"] == [
            there[:depth] for depth in range(1, len(there) + 1)
        ]
        env.execute_sql("DROP TABLE IF EXISTS y")
    env.execute_sql(
        f"CREATE TABLE x PARTITIONED BY (n) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/x') AS SELECT 1 AS id, 2 AS n"
    )
    with pytest.raises(ts.TablestoreError):
        env.execute_sql(f"INSERT OVERWRITE x {query.replace('id, 1', 'CAST(id AS INT), 1')}")
    assert rows_of(env, "SELECT * FROM x") == [(1, 2)]
    for by, message in (("y", "has no such column"), ("id, n", "leaves no data")):
        with pytest.raises(ts.InvalidInputError, match=message):
            env.execute_sql(
                f"CREATE TABLE y (id INT, n INT) PARTITIONED BY ({by}) WITH ('connector' = 'filesystem', 'path' = '/y')"
            )


@pytest.mark.slow
@pytest.mark.kafka
def test_rows_become_messages_of_a_topic_all_of_a_job_or_none(env: ts.TableEnvironment, broker: KafkaBroker) -> None:
    where = f"'connector' = 'kafka', 'value.format' = 'json', 'properties.bootstrap.servers' = '{broker.servers}', 'topic' ="
    query = "SELECT id, concat('ü', id) AS name, DATE '2026-01-31' AS at FROM range(0, 5000, 1, 4)"
    assert (
        env.execute_sql(f"CREATE TABLE k (PRIMARY KEY (id) NOT ENFORCED) WITH ({where} 'spark-filled') AS {query}").kind
        == "nothing"
    )
    first = {(one, f"ü{one}", "2026-01-31") for one in range(5000)}
    assert sent(broker, "spark-filled") == sorted(first)
    env.execute_sql("INSERT INTO k (name, id) SELECT * FROM VALUES ('c', 5000)")
    assert sent(broker, "spark-filled")[5000:] == [(5000, "c", None)]
    with pytest.raises(ts.TablestoreError, match="Division by zero"):
        env.execute_sql("INSERT INTO k (id, name) SELECT id, CAST(1 / (id - 400) AS STRING) FROM range(0, 500, 1, 4)")
    assert len(sent(broker, "spark-filled")) == 5001
    with pytest.raises(ts.UnsupportedError, match="cannot be taken back"):
        env.get_config().set("table.ctas.atomicity-enabled", "true")
        env.execute_sql(f"CREATE TABLE x WITH ({where} 'spark-atomic') AS SELECT 1 AS id")
    assert "spark-atomic" not in topics(broker.servers)


def sent(broker: KafkaBroker, topic: str) -> list[tuple[Any, ...]]:
    """The rows of the committed messages of a topic whose key is ``id``, by it."""
    found: list[Any] = messages(broker.servers, topic)
    assert all(key == {"id": row["id"]} for key, row in found)
    return sorted((row["id"], row["name"], row.get("at")) for _, row in found)


@pytest.mark.deep
def test_what_fails_while_rows_are_written_is_named_in_the_users_text(env: ts.TableEnvironment) -> None:
    def refuse(x: int) -> int:
        raise ValueError(f"{x} is odd here")

    env.create_temporary_function("refuse", refuse)
    env.execute_sql("CREATE TABLE t (i INT)")
    env.execute_sql("CREATE TABLE s AS SELECT 10000000000 AS n, 'x' AS w")
    for statement in ("INSERT INTO t {}", "CREATE TABLE u AS {}"):
        for query, message in (
            ("SELECT CAST(w AS INT) AS i FROM s", "cannot be cast to"),
            ("SELECT CAST(n AS INT) AS i FROM s", "cannot be cast to"),
            ("SELECT refuse(n) AS i FROM s", "function refuse raised ValueError: 10000000000 is odd here"),
        ):
            text, column = statement.format(query), len(statement) - 1 + len("SELECT ") - 1 + 1
            with pytest.raises(ts.InvalidInputError, match=message) as refused:
                env.execute_sql(text)
            assert f"line 1, column {column}:\n  {text}\n" in str(refused.value)
            env.execute_sql("DROP TABLE IF EXISTS u")
    with pytest.raises(ts.InvalidInputError, match=r"due to an overflow.*\(column 'i'\)"):
        env.execute_sql("INSERT INTO t SELECT n FROM s")


@pytest.mark.deep
def test_a_query_finds_a_table_that_was_replaced_or_says_so(env: ts.TableEnvironment) -> None:
    def replaced(query: str) -> ts.environment.result.Result:
        env.execute_sql("CREATE OR REPLACE TABLE t (PRIMARY KEY (id) NOT ENFORCED) AS SELECT 1 AS id, 'old' AS v")
        env.execute_sql("INSERT INTO t VALUES (1, 'older'), (2, 'x')")
        found = env.execute_sql(query)
        clause = "(PRIMARY KEY (id) NOT ENFORCED) WITH ('bucket' = '2')"
        env.execute_sql(f"CREATE OR REPLACE TABLE t {clause} AS SELECT 2 AS id, 'new' AS v")
        return found

    # Files that Spark reads itself, and files that are merged.
    assert replaced("SELECT * FROM t").to_arrow().to_pylist() == [{"id": 2, "v": "new"}]
    assert replaced("SELECT * FROM t VERSION AS OF 1").to_arrow().to_pylist() == [{"id": 2, "v": "new"}]
    found = replaced("SELECT * FROM t")
    env.execute_sql("CREATE OR REPLACE TABLE t (PRIMARY KEY (k) NOT ENFORCED) AS SELECT 'a' AS k")
    with pytest.raises(ts.ConflictError, match="open the table again") as refused:
        found.to_arrow()
    assert refused.value.kind == "table-replaced"


@pytest.mark.deep
def test_a_stream_in_a_batch_query_is_refused_with_the_way_out(env: ts.TableEnvironment, spark: "SparkSession") -> None:
    env.create_temporary_view("stream", spark.readStream.format("rate").load())
    env.execute_sql("CREATE TABLE t (id BIGINT)")
    for statement in (
        "SELECT * FROM stream",
        "EXPLAIN SELECT * FROM stream",
        "INSERT INTO t SELECT value FROM stream",
        "CREATE TABLE u AS SELECT value FROM stream",
        "DELETE FROM t WHERE id IN (SELECT value FROM stream)",
    ):
        with pytest.raises(ts.UnsupportedError, match=r"does not end[:.] SET 'execution.runtime-mode' = 'streaming'") as refused:
            env.execute_sql(statement).to_arrow()
        assert refused.value.kind == "streaming" and "writeStream" not in str(refused.value)
