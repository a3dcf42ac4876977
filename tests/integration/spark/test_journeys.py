"""The journeys of an environment whose queries Spark runs."""

import threading
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import tablestore as ts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def env(spark: "SparkSession", warehouse: str) -> Iterator[ts.TableEnvironment]:
    from pyspark_tablestore.engine import SparkEngine

    with ts.TableEnvironment.create(warehouse, engine=SparkEngine(spark)) as made:
        made.execute_sql("CREATE TABLE t (id BIGINT, day STRING, v INT, PRIMARY KEY (id, day) NOT ENFORCED) PARTITIONED BY (day)")
        yield made


@pytest.fixture
def derby(spark: Any, tmp_path: Path) -> str:
    """The URL of a database. Derby comes with Spark; it would begin its log in the working directory."""
    spark._jvm.java.lang.System.setProperty("derby.stream.error.file", str(tmp_path / "derby.log"))
    return "jdbc:derby:memory:shop;create=true"


def rows(env: ts.TableEnvironment, text: str, **parameters: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in env.execute_sql(text, **parameters).to_arrow().to_pylist()]


def test_a_query_sees_what_was_written_and_older_snapshots_views_and_changes_beside_it(env: ts.TableEnvironment) -> None:
    result = env.execute_sql("INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20)")
    assert (result.kind, result.snapshot.id) == ("snapshot", 1)  # type: ignore[union-attr]
    env.execute_sql("INSERT INTO t (id, day) VALUES (1, 'a')")
    env.execute_sql("CREATE TEMPORARY VIEW w AS SELECT id, v FROM t WHERE v IS NOT NULL")
    joined = "SELECT id, t.v, w.v, x.v FROM t VERSION AS OF 1 AS x JOIN t USING (id) LEFT JOIN w USING (id) ORDER BY id"
    found = env.execute_sql(joined).to_arrow()
    assert [column.to_pylist() for column in found.columns] == [[1, 2], [None, 20], [None, 20], [10, 20]]
    assert rows(env, "SELECT id FROM t WHERE v = :v", v=20) == [(2,)]
    assert rows(env, "SELECT _row_kind, id FROM table_changes('t', 1, 2) ORDER BY _row_kind") == [("+U", 1), ("-U", 1)]


@pytest.mark.deep
def test_overwrite_and_statement_sets_replace_and_add_what_they_say(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE log (id BIGINT, text STRING DEFAULT 'none')")
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3)")
    env.execute_sql("INSERT OVERWRITE t VALUES (4, 'b', 4)")
    env.execute_sql("INSERT OVERWRITE t PARTITION (day = 'c') SELECT id, v FROM t WHERE false")
    assert rows(env, "SELECT id, day FROM t ORDER BY id") == [(1, "a"), (4, "b")]
    done = rows(
        env,
        "EXECUTE STATEMENT SET BEGIN INSERT INTO log (id) SELECT id FROM t; INSERT INTO t SELECT id + 10, day, v FROM t; END",
    )
    assert [len(done), rows(env, "SELECT * FROM log ORDER BY id"), rows(env, "SELECT count(*) FROM t")] == [
        2,
        [(1, "none"), (4, "none")],
        [(4,)],
    ]


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("table", ["keyed", "append", "vectors"])
def test_delete_update_and_merge_change_the_rows_that_they_name(env: ts.TableEnvironment, table: str) -> None:
    options = {"keyed": "'bucket' = '2'", "append": "'bucket' = '-1'", "vectors": "'deletion-vectors.enabled' = 'true'"}[table]
    key = ", PRIMARY KEY (id) NOT ENFORCED" if table == "keyed" else ""
    env.execute_sql(f"CREATE TABLE g (id BIGINT, day STRING, v INT{key}) WITH ({options})")
    env.execute_sql("INSERT INTO g VALUES (1, 'a', 1), (2, 'a', 2), (3, 'b', 3)")
    env.execute_sql("DELETE FROM g WHERE id = 1")
    env.execute_sql("UPDATE g AS x SET v = x.v * 10 WHERE v >= :least", least=3)
    env.execute_sql(
        """MERGE INTO g USING (SELECT * FROM VALUES (2, 'a', 7), (4, 'c', 8) AS s (id, day, v)) AS s ON g.id = s.id
        WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *
        WHEN NOT MATCHED BY SOURCE AND g.id = 3 THEN DELETE"""
    )
    assert rows(env, "SELECT * FROM g ORDER BY id") == [(2, "a", 7), (4, "c", 8)]
    with pytest.raises(ts.InvalidInputError) as caught:
        env.execute_sql(
            "MERGE INTO g USING (SELECT * FROM VALUES (2, 1), (2, 2) AS s (id, v)) s ON g.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = s.v"
        )
    assert caught.value.kind == "second-match"
    assert env.execute_sql("DELETE FROM g WHERE id = 99").snapshot is None
    engine = env.engine
    assert engine is not None
    real, calls = engine.change, []

    def overtaken(query: Any, target: Any) -> Any:
        calls.append(target.pin.snapshot_id)
        if len(calls) == 1:
            ours = pa.table({"id": [2], "day": ["a"], "v": pa.array([100], pa.int32())})
            target.table.delete("id = 2")
            target.table.append(ours) if table != "keyed" else target.table.upsert(ours)
        return real(query, target)

    engine.change = overtaken  # type: ignore[method-assign]
    env.execute_sql("UPDATE g SET v = v + CAST('1' AS INT) WHERE id = 2")
    assert len(calls) == 2
    assert rows(env, "SELECT v FROM g WHERE id = 2") == [(101,)]


@pytest.mark.slow_after(2)
@pytest.mark.deep
@pytest.mark.parametrize("file_format", ["parquet", "csv", "json", "orc"])
def test_files_are_tables_to_read_and_to_write(env: ts.TableEnvironment, tmp_path: Path, file_format: str) -> None:
    path = tmp_path / "files"
    env.execute_sql(
        f"CREATE TABLE f (id BIGINT, note STRING, at TIMESTAMP) "
        f"WITH ('connector' = 'filesystem', 'format' = '{file_format}', 'path' = '{path}')"
    )
    env.execute_sql("INSERT INTO f VALUES (1, 'a', TIMESTAMP '2024-02-29 01:02:03'), (2, NULL, NULL)")
    env.execute_sql("INSERT INTO f (note, id) VALUES ('c', 3)")
    env.execute_sql("INSERT INTO t SELECT id, 'x', id * 2 FROM f")
    found = "SELECT f.id, note, CAST(at AS STRING), v FROM f JOIN t USING (id) ORDER BY id"
    assert rows(env, found) == [(1, "a", "2024-02-29 01:02:03", 2), (2, None, None, 4), (3, "c", None, 6)]
    env.execute_sql("INSERT OVERWRITE f SELECT id, 'new', NULL FROM t WHERE id = 3")
    assert rows(env, "SELECT id, note FROM f") == [(3, "new")]


def test_columns_that_a_connector_does_not_store(env: ts.TableEnvironment, tmp_path: Path) -> None:
    where = f"'connector' = 'filesystem', 'format' = 'json', 'path' = '{tmp_path / 'files'}'"
    unstored = "twice AS id * 2, path STRING METADATA FROM 'file_path' VIRTUAL, `file_size` INT METADATA"
    env.execute_sql(f"CREATE TABLE f (id BIGINT, {unstored}, note STRING) WITH ({where})")
    env.execute_sql("INSERT INTO f VALUES (1, 'a'), (2, NULL)")
    assert [name for (name, *_) in rows(env, "DESCRIBE f")] == ["id", "twice", "path", "file_size", "note"]
    found = rows(env, "SELECT * FROM f WHERE twice > 1 ORDER BY id")
    assert [(id, twice, note) for id, twice, _, _, note in found] == [(1, 2, "a"), (2, 4, None)]
    sizes = {file.name: file.stat().st_size for file in (tmp_path / "files").glob("*.json")}
    assert all(sizes[path.rpartition("/")[2]] == size for _, _, path, size, _ in found)
    env.execute_sql("CREATE TABLE g LIKE f")
    assert rows(env, "SELECT twice FROM g ORDER BY 1") == [(2,), (4,)]
    env.execute_sql(f"CREATE TABLE h (id BIGINT, x STRING METADATA FROM 'file_pat') WITH ({where})")
    with pytest.raises(ts.InvalidInputError, match="no metadata 'file_pat'; did you mean 'file_path'"):
        env.execute_sql("SELECT * FROM h").to_arrow()


@pytest.mark.deep
def test_a_database_behind_jdbc_is_a_table_to_read_and_to_write(env: ts.TableEnvironment, derby: str) -> None:
    where = f"'connector' = 'jdbc', 'url' = '{derby}', 'dbtable' = 'orders'"
    env.execute_sql(f"CREATE TABLE j (id BIGINT, note STRING, price DECIMAL(9, 2), at TIMESTAMP) WITH ({where})")
    env.execute_sql("INSERT INTO j VALUES (1, 'a', 2.50, TIMESTAMP '2024-02-29 01:02:03'), (2, NULL, NULL, NULL)")
    env.execute_sql("INSERT INTO j (note, id) SELECT 'c', 3")
    env.execute_sql("INSERT INTO t SELECT id, note, CAST(price * 10 AS INT) FROM j WHERE note IS NOT NULL")
    assert rows(env, "SELECT id, day, v FROM t ORDER BY id") == [(1, "a", 25), (3, "c", None)]
    found = "SELECT j.id, note, price, CAST(at AS STRING) FROM j LEFT JOIN t ON j.id = t.id ORDER BY 1"
    assert rows(env, found) == [(1, "a", Decimal("2.50"), "2024-02-29 01:02:03"), (2, None, None, None), (3, "c", None, None)]
    env.execute_sql("INSERT OVERWRITE j SELECT id, 'new', 1, NULL FROM t WHERE id = 3")
    assert rows(env, "SELECT id, note, price FROM j") == [(3, "new", Decimal("1.00"))]
    env.execute_sql(f"CREATE TABLE k (id BIGINT, nope STRING) WITH ({where})")
    with pytest.raises(ts.InvalidInputError, match=r"declares the column 'nope', which 'jdbc' does not give"):
        env.execute_sql("SELECT * FROM k")
    env.execute_sql("CREATE TABLE gone (id BIGINT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:pigeon:x', 'dbtable' = 'o')")
    with pytest.raises(ts.TablestoreError, match="driver"):
        env.execute_sql("SELECT * FROM gone")


@pytest.mark.deep
def test_a_table_behind_jdbc_is_made_of_a_query(env: ts.TableEnvironment, derby: str) -> None:
    values = {
        "n": ("9223372036854775807L", 2**63 - 1),
        "i": ("-2147483648", -(2**31)),
        "s": ("-32768S", -(2**15)),
        "b": ("true", True),
        "f": ("CAST(0.1 AS FLOAT)", pa.scalar(0.1, pa.float32()).as_py()),
        "d": ("1e300D", 1e300),
        "m": ("CAST(-12345678901234567890123456789.01 AS DECIMAL(31, 2))", Decimal("-12345678901234567890123456789.01")),
        "t": ("'ü ''quoted'", "ü 'quoted"),
        "x": ("X'00FF'", b"\x00\xff"),
        "day": ("DATE '1969-12-31'", date(1969, 12, 31)),
        "at": ("TIMESTAMP_NTZ '2024-02-29 01:02:03.000004'", datetime(2024, 2, 29, 1, 2, 3, 4)),
        "zone": ("CAST('2024-02-29 01:02:03+02:00' AS TIMESTAMP_LTZ(6))", datetime(2024, 2, 28, 23, 2, 3, tzinfo=UTC)),
    }
    chosen = ", ".join(f"{text} AS {name}" for name, (text, _) in values.items())
    where = f"'connector' = 'jdbc', 'url' = '{derby}', 'dbtable' = 'made'"
    env.execute_sql(f"CREATE TABLE made WITH ({where}) AS SELECT {chosen} UNION ALL SELECT {', '.join(['NULL'] * len(values))}")
    found = rows(env, "SELECT * FROM made WHERE n IS NOT NULL")
    assert found == [tuple(value for _, value in values.values())]
    assert rows(env, "SELECT * FROM made WHERE n IS NULL") == [(None,) * len(values)]
    env.execute_sql("CREATE TABLE copy AS SELECT * FROM made")
    assert rows(env, "SELECT * FROM copy WHERE n IS NOT NULL") == found
    with pytest.raises(ts.AlreadyExistsError, match="made"):
        env.execute_sql(f"CREATE TABLE made WITH ({where}) AS SELECT 1 AS n")


def test_a_connector_that_spark_lacks_is_refused_by_its_name(env: ts.TableEnvironment) -> None:
    for name, options in (("pigeon", ""), ("kafka", ", 'subscribe' = 'x', 'kafka.bootstrap.servers' = 'localhost:1'")):
        env.execute_sql(f"CREATE TABLE {name} (id BIGINT) WITH ('connector' = '{name}'{options})")
        with pytest.raises(ts.UnsupportedError, match=name):
            env.execute_sql(f"SELECT * FROM {name}").to_arrow()
        with pytest.raises(ts.UnsupportedError, match=name):
            env.execute_sql(f"INSERT INTO {name} VALUES (1)")


@pytest.mark.deep
def test_statements_run_in_any_thread(env: ts.TableEnvironment, tmp_path: Path) -> None:
    failed: list[BaseException] = []

    def work() -> None:
        try:
            env.execute_sql("INSERT INTO t VALUES (1, 'a', 1)")
            env.execute_sql("UPDATE t SET v = 2 WHERE id = 1")
            env.execute_sql(f"CREATE TABLE f WITH ('connector' = 'filesystem', 'path' = '{tmp_path / 'f'}')")
            env.execute_sql("INSERT INTO f SELECT * FROM t")
            env.execute_sql("INSERT INTO t SELECT id + 1, day, v FROM f")
            env.execute_sql("ALTER TABLE t COMPACT")
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failed
    assert rows(env, "SELECT id, v FROM t ORDER BY id") == [(1, 2), (2, 2)]


def test_errors_mark_the_place_in_the_text_of_the_user(env: ts.TableEnvironment) -> None:
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 0)")
    for text, marked in (
        ("SELECT id,\n  t.nix\nFROM t", "line 2, column 3"),
        ("SELECT id FROM t WHERE\n  id + > 3", "line 2, column 8"),
        ("SELECT a.id FROM t VERSION AS OF 1 AS a, t AS b\nWHERE a.id / b.v > 1", "line 2, column 7"),
        ("SELECT id FROM t AS a WHERE no_such_function(id)", "line 1, column 29"),
    ):
        with pytest.raises(ts.TablestoreError, match=marked) as caught:
            env.execute_sql(text).to_arrow()
        assert "_pyspark_" not in str(caught.value)
        assert "{m" not in str(caught.value)
