"""The environment with Spark as its engine: the statements of tests/environment/test_rows.py, as one story."""

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

import tablestore as ts
from tablestore.environment.rows.literalrows import literal_rows

pytestmark = pytest.mark.spark


@pytest.fixture
def env(spark: Any, tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path / "wh", spark=spark) as made:
        yield made


def rows_of(result: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in result.to_arrow().to_pylist()]


def test_statements_run_on_spark(env: ts.TableEnvironment, tmp_path: Path) -> None:
    env.execute_sql(
        "CREATE TABLE t (id BIGINT, day STRING, v INT, twice AS v * 2, PRIMARY KEY (id, day) NOT ENFORCED) PARTITIONED BY (day)"
    )
    env.execute_sql("CREATE TABLE log (id BIGINT, text STRING DEFAULT 'none')")
    env.execute_sql("INSERT INTO t VALUES (1, 'a', 10), (2, 'b', 20), (3, 'b', 30)")
    env.execute_sql("INSERT INTO log (id) SELECT id FROM t")
    assert rows_of(env.execute_sql("SELECT text, count(*) FROM log GROUP BY 1")) == [("none", 3)]
    assert rows_of(env.execute_sql("SELECT id, twice FROM t WHERE id = :id", id=2)) == [(2, 40)]
    env.execute_sql("UPDATE t SET v = v + ? WHERE twice = ?", 1, 40)
    env.execute_sql("DELETE FROM log WHERE id IN (SELECT id FROM t WHERE day = 'a')")
    env.execute_sql(
        "MERGE INTO t USING log ON t.id = log.id WHEN MATCHED AND t.id = 3 THEN DELETE WHEN MATCHED THEN UPDATE SET v = 7 "
        "WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0"
    )
    assert rows_of(env.execute_sql("SELECT id, v FROM t ORDER BY id")) == [(1, 0), (2, 7)]
    assert rows_of(env.execute_sql("SELECT v FROM t VERSION AS OF 1 WHERE id = 3")) == [(30,)]
    env.execute_sql("CREATE TEMPORARY VIEW v AS SELECT t.id, text FROM t JOIN log ON t.id = log.id")
    assert rows_of(env.execute_sql("SELECT * FROM v")) == [(2, "none")]
    env.execute_sql("INSERT OVERWRITE t PARTITION (day = 'b') VALUES (9, 9)")
    assert rows_of(env.execute_sql("SELECT id, day FROM t ORDER BY id")) == [(1, "a"), (9, "b")]
    assert rows_of(env.execute_sql("SELECT commit_kind FROM t$snapshots ORDER BY snapshot_id"))[-1] == ("OVERWRITE",)
    changes = rows_of(env.execute_sql("SELECT _row_kind, id FROM table_changes('t', 1, 2) ORDER BY 1"))
    assert changes == [("+U", 2), ("-U", 2)]
    env.execute_sql("ALTER TABLE t PARTITION (day = 'a') COMPACT")
    (plan,) = env.execute_sql("EXPLAIN SELECT text FROM log WHERE id = 1").to_arrow().column("plan").to_pylist()
    assert "all columns, filter id = 1" in plan
    env.execute_sql(f"CREATE TABLE f (id BIGINT, day STRING) USING csv OPTIONS (path '{tmp_path / 'f'}', header 'true')")
    env.execute_sql("INSERT INTO f SELECT id, day FROM t WHERE id > 1")
    env.execute_sql("INSERT OVERWRITE f (day, id) SELECT day, id FROM t")
    assert sorted(rows_of(env.execute_sql("SELECT * FROM f"))) == [(1, "a"), (9, "b")]
    env.execute_sql("SET 'spark.sql.shuffle.partitions' = '3'")
    assert rows_of(env.execute_sql("SET 'spark.sql.shuffle.partitions'")) == [("spark.sql.shuffle.partitions", "3")]
    env.execute_sql("RESET")
    with pytest.raises(ts.NotFoundError, match="did you mean 'log'"):
        env.execute_sql("SELECT * FROM logs")
    with pytest.raises(ts.TablestoreError, match="line 2, column"):
        env.execute_sql("SELECT id\n, nope FROM t")


@pytest.mark.deep
def test_subqueries_in_the_select_list_of_a_table_of_several_parts(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE c (id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED)")
    env.execute_sql("CREATE TABLE o (id BIGINT, c BIGINT, PRIMARY KEY (id) NOT ENFORCED)")
    env.execute_sql("INSERT INTO c VALUES (1, 'a'), (2, 'b')")
    # More newer rows than are layered: Spark's own scan and ours, in a union.
    env.execute_sql("ALTER TABLE o SET ('bucket' = '2')")
    env.execute_sql("INSERT INTO o SELECT id, 1 FROM range(100)")
    env.execute_sql("INSERT INTO o VALUES (1, 1), (2, 2), (3, 9)")
    env.execute_sql("CREATE TEMPORARY VIEW v AS SELECT id AS k, c FROM o")
    for query in (
        "SELECT id, (SELECT name FROM c WHERE c.id = o.c) FROM o WHERE id < 4 AND id > 0",
        "SELECT id, CASE WHEN EXISTS (SELECT 1 FROM c WHERE c.id = o.c) THEN (SELECT max(name) FROM c WHERE c.id = o.c) END FROM o "
        "WHERE id BETWEEN 1 AND 3",
        "SELECT k, (SELECT name FROM c WHERE c.id = v.c) FROM v WHERE k IN (1, 2) UNION ALL SELECT 3, NULL",
        "SELECT id, IF(o.c IN (SELECT c.id FROM c WHERE c.id < o.id + 5), chr(96 + CAST(o.c AS INT)), NULL) FROM o "
        "WHERE id IN (1, 2, 3)",
    ):
        assert sorted(rows_of(env.execute_sql(query))) == [(1, "a"), (2, "b"), (3, None)], query
    env.execute_sql("UPDATE o SET c = (SELECT max(c.id) FROM c WHERE c.id < o.id) WHERE id IN (2, 3)")
    assert rows_of(env.execute_sql("SELECT id, c FROM o WHERE id IN (2, 3) ORDER BY id")) == [(2, 1), (3, 2)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("SELECT a, (SELECT max(b) FROM u) FROM t", True),
        ("SELECT a, coalesce(1 + (WITH x AS (SELECT 1) SELECT * FROM x), 2) FROM t", True),
        ("FROM t |> EXTEND EXISTS (FROM u) AS there", True),
        ("SELECT * FROM (SELECT a, a IN (SELECT b FROM u) FROM t)", True),
        ("WITH w AS (SELECT a FROM t) SELECT count(*) FROM w JOIN (SELECT b FROM u) ON a = b WHERE a IN (SELECT c FROM x)", False),
        ("SELECT (a + 1), `(SELECT`, '(SELECT 1)' FROM t UNION ALL (SELECT b FROM u) ORDER BY a", False),
    ],
)
def test_which_queries_keep_projections_out_of_tables(text: str, found: bool) -> None:
    from pyspark_tablestore.query.sealing import lists_subqueries

    assert lists_subqueries(text) is found


def test_long_values_of_literals_have_spark_s_types(env: ts.TableEnvironment, spark: Any) -> None:
    row = "1, -3000000000, 2.50, 'it''s', TRUE, NULL, NULL, 0.005"
    other = "2.5, 1, 10., NULL, NULL, 2, NULL, -1"
    text = "VALUES " + ", ".join(f"({one})" for one in [row, other] * 60)
    found = literal_rows(text)
    assert found is not None
    assert from_arrow_schema(found.schema).simpleString() == spark.sql(text).schema.simpleString()
    env.execute_sql("CREATE TABLE t (a DOUBLE, b BIGINT, c DECIMAL(9, 1), d STRING, e BOOLEAN, f INT, g DATE, h STRING)")
    env.execute_sql(f"INSERT INTO t {text}")
    assert set(rows_of(env.execute_sql("SELECT * FROM t"))) == {
        (1.0, -3000000000, Decimal("2.5"), "it's", True, None, None, "0.005"),
        (2.5, 1, Decimal("10.0"), None, None, 2, None, "-1.000"),
    }


@pytest.mark.deep
def test_a_merge_looks_only_at_rows_that_its_source_can_match(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE m (id BIGINT, day DATE, v INT, PRIMARY KEY (id) NOT ENFORCED)")
    day = "date_add(DATE'2024-01-01', CAST(id % 3 AS INT))"
    env.execute_sql(f"INSERT INTO m SELECT id, {day}, 0 FROM range(100)")
    into = "MERGE INTO m AS t USING"
    then = "WHEN MATCHED THEN UPDATE SET v = t.v + {} WHEN NOT MATCHED THEN INSERT (id, v) VALUES (s.Id, -1)"

    def count(condition: str) -> int:
        ((found,),) = rows_of(env.execute_sql(f"SELECT count(*) FROM m WHERE {condition}"))
        return int(found)

    # Another time the same source would have other rows.
    some = "(SELECT id AS Id FROM range(100) ORDER BY rand() LIMIT 7)"
    env.execute_sql(f"{into} {some} AS s ON t.ID = s.id {then.format(1)}")
    assert (count("v = 1"), count("v = -1"), count("true")) == (7, 0, 100)
    # Keys as text, keys that are no key, and NULL.
    texts = "(SELECT * FROM VALUES (?), ('200'), (NULL)) AS s (Id)"
    env.execute_sql(f"{into} {texts} ON t.id = s.Id AND s.Id IS NOT NULL WHEN MATCHED THEN UPDATE SET v = ?", "5", 50)
    assert (count("v = 50"), count("true")) == (1, 100)
    env.execute_sql(
        f"{into} (SELECT {day} AS day, id AS Id FROM range(98, 102)) AS s ON t.day = s.day AND t.id = s.id {then.format(70)}"
    )
    assert (count("v >= 70"), count("v = -1"), count("day IS NULL")) == (2, 2, 2)
    env.execute_sql(f"{into} (SELECT 1 AS Id WHERE false) AS s ON t.id = s.Id {then.format(1)}")
    assert count("true") == 102
    env.execute_sql(f"{into} (SELECT DATE'-0044-03-15' AS day) AS s ON t.day = s.day WHEN MATCHED THEN DELETE")
    assert count("true") == 102
    # All rows of the target count here.
    env.execute_sql(f"{into} (SELECT 3 AS Id) AS s ON t.id = s.Id WHEN NOT MATCHED BY SOURCE AND t.id > 50 THEN DELETE")
    assert count("true") == 51
    everything = "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    columns = "CAST(id % 50 AS INT) AS id, DATE'2024-05-05' AS day, 9 AS v"
    with pytest.raises(ts.InvalidInputError, match="second one") as caught:
        env.execute_sql(f"{into} (SELECT {columns} FROM range(200, 251)) AS s ON t.id = s.id {everything}")
    assert (caught.value.kind, count("v = 9")) == ("second-match", 0)
    env.execute_sql(f"{into} (SELECT {columns} FROM range(249, 251)) AS s ON t.id = s.id {everything}")
    assert (count("v = 9 AND id IN (0, 49)"), count("v = 9"), count("true")) == (2, 2, 51)
    with pytest.raises(ts.InvalidInputError, match=r"line 2, column 9"):
        env.execute_sql(f"{into} (SELECT id,\n        nope FROM m) AS s ON t.id = s.id {then.format(1)}")


def test_parameters_are_values_on_spark_too(env: ts.TableEnvironment) -> None:
    strange: list[Any] = [object(), {1}, "\ud800", [object()]]
    for value in strange:
        for text in ("SELECT 1", "SELECT :p"):
            with pytest.raises(ts.InvalidInputError, match="the parameter :p has ") as caught:
                env.execute_sql(text, p=value)
            assert caught.value.kind == "parameters"
    moment = datetime(2024, 1, 31, 12)
    for given, found in [
        (UUID(int=7), str(UUID(int=7))),
        (memoryview(b"x"), b"x"),
        (np.int64(3), 3),
        (np.datetime64("2024-01-31T12"), moment),
        ((1, 2), [1, 2]),
        ([moment], [moment]),
        ([{"a": 1, "b c": [moment]}], [{"a": 1, "b c": [moment]}]),
    ]:
        assert rows_of(env.execute_sql("SELECT :p", p=given)) == [(found,)]
        assert rows_of(env.execute_sql("SELECT 1", p=given)) == [(1,)]


def test_lists_and_maps_of_no_type_come_back(env: ts.TableEnvironment) -> None:
    found = env.execute_sql("SELECT array() AS a, map() AS m, struct(array(array())) AS s, 1 AS s, :p AS p", p=[]).to_arrow()
    assert [column.to_pylist() for column in found.columns] == [[[]], [[]], [{"col1": [[]]}], [1], [[]]]
    assert found.column_names == ["a", "m", "s", "s", "p"]
