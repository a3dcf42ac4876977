"""Statements that are nested deeply: they work, or a limit is named. Messages speak of the user's text alone."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import tablestore as ts
from tablestore.errors import InvalidInputError, NotFoundError, UnsupportedError

Rows = Callable[[Any], list[tuple[Any, ...]]]


@pytest.mark.deep
@pytest.mark.parametrize(
    "condition",
    [
        "NOT (" * 250 + "i = 1" + ")" * 250,
        # DuckDB's time to plan this grows with nearly the fourth power of its depth.
        "(i = 1 AND NOT (i = 7 OR " * 31 + "i = 9" + "))" * 31,
        "(i = 1 AND coalesce(i = 7 OR " * 141 + "i = 1" + ", false))" * 141,
        "NOT " * 600 + "(i = 1)",
        " OR ".join(["i = 1"] * 900),
    ],
)
def test_conditions_may_be_nested_hundreds_of_levels_deep(duck: ts.TableEnvironment, rows_of: Rows, condition: str) -> None:
    duck.execute_sql("CREATE TABLE t (i INT)")
    duck.execute_sql("INSERT INTO t VALUES (1), (2)")
    assert rows_of(duck.execute_sql(f"SELECT i FROM t WHERE {condition}")) == [(1,)]
    duck.execute_sql(f"DELETE FROM t WHERE {condition}")
    assert rows_of(duck.execute_sql("SELECT i FROM t")) == [(2,)]
    duck.execute_sql("CREATE TABLE c (i INT, j AS " + "(" * 250 + "i" + ")" * 250 + ")")


@pytest.mark.deep
@pytest.mark.parametrize("statement", ["SELECT {} AS x", "DELETE FROM t WHERE {}", "UPDATE t SET i = 1 WHERE {}"])
def test_what_is_nested_too_deep_is_refused_with_the_limit(duck: ts.TableEnvironment, statement: str) -> None:
    duck.execute_sql("CREATE TABLE t (i INT)")
    for nested in ("(" * 1000 + "true" + ")" * 1000, "NOT " * 5000 + "true"):
        with pytest.raises(InvalidInputError, match="at most 300 levels") as refused:
            duck.execute_sql(statement.format(nested))
        assert refused.value.kind == "limit"


@pytest.mark.deep_after(9)
@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("SELECT * FROM t WHERE", "near `WHERE`"),
        ("SELECT * FROM", "cannot be parsed"),
        ("SELECT i # 2 FROM t", "misplaced near `#`\nline 1, column 10:"),
        ("SELECT i AS a \\", "misplaced near `\\`\nline 1, column 15:"),
        ("DELETE FROM t WHERE i ~ 2", "misplaced near `~`\nline 1, column 23:"),
        ("UPDATE t SET i = nope", "line 1, column 18:\n  UPDATE t SET i = nope"),
        ("DELETE FROM t WHERE nope = 1", "line 1, column 21:\n  DELETE FROM t WHERE nope = 1"),
        ("UPDATE t SET i = '12'", "'i' is INT and takes no STRING; write CAST(… AS INT)\nline 1, column 18:\n"),
        ("UPDATE t SET i = CAST(v AS INT)", "'x'"),
        ("UPDATE t SET v = 1, i = (SELECT max(v) FROM t)", "takes no STRING; write CAST(… AS INT)\nline 1, column 25:\n"),
        ("MERGE INTO t USING t AS s ON t.i = s.i WHEN MATCHED THEN UPDATE SET i = s.v", "takes no STRING"),
        ("MERGE INTO t USING (SELECT 'a' AS i) s ON false WHEN NOT MATCHED THEN INSERT (i) VALUES (i)", "line 1, column 90:"),
        ("MERGE INTO t USING (SELECT v AS i, v FROM t) s ON t.v = s.v WHEN MATCHED THEN UPDATE SET *", "'i' is INT and takes no"),
        ("MERGE INTO t USING (SELECT 1 AS i) ON t.i = b.i WHEN MATCHED THEN DELETE", '"b" not found'),
        ("INSERT INTO t VALUES (99999999999, 'a')", "out of range"),
        ("SELECT i,, v FROM t", "line 1, column 9:"),
        ("SELECT t.nope FROM t", "line 1, column 10:"),
        ("SELECT x.i FROM t", "line 1, column 8:"),
        ("SELECT sum(i) FROM t JOIN t AS u USING (nope)", "line 1, column 41:"),
        ("SELECT abs(v) FROM t", "line 1, column 8:"),
        ("SELECT v + 1 FROM t", "line 1, column 8:"),
        ("SELECT abs(i, i) FROM t", "the function `abs` takes more or fewer arguments\nline 1, column 8:"),
        ("SELECT DATE '2024-13-45'", "line 1, column 14:"),
        ("SELECT i FROM t ORDER BY 7", "line 1, column 17:"),
        ("INSERT INTO k (v) VALUES ('x')", "line 1, column 13:"),
        ("ALTER TABLE k SET ('bucket' = '7')", "line 1, column 13:"),
        ("SELECT (i, ) FROM t", "either side of the comma"),
        ("SELECT i, FROM t", "line 1, column 9:"),
        ("SELECT i FROM t, WHERE i = 1", "line 1, column 16:"),
        ("SELECT i FROM t GROUP BY i, ORDER BY i", "line 1, column 27:"),
        ("SELECT i FROM t ORDER BY i,", "line 1, column 27:"),
        ("INSERT INTO t VALUES (1, 'x'),", "either side of the comma"),
        ("SELECT a.vv FROM t a", "does not have a column named \"vv\"; did you mean 'v'?\nline 1, column 10:"),
        (
            "SELECT * FROM table_changes(t, 1)",
            "the table's name between quotes, as in table_changes('t', 1, 2)\nline 1, column 15:",
        ),
        ("RESET 'table-storage.buckte'", "did you mean 'table-storage.bucket'"),
        ("SELECT 1 +", "near `+`\nline 1, column 10:"),
        ("SELECT 1 = = 2 FROM t", "near `=`\nline 1, column 12:"),
        ("SELECT * FROM t WHERE\n i = 1 AND AND i = 2", "near `AND`\nline 2, column 12:"),
        ("SELECT i FROM t a JOIN t b ON a.i = b.i ORDER BY i i i", "near `i`\nline 1, column 52:"),
        ("SELECT CASE WHEN true THEN 2 FROM t", "line 1, column 28:"),
        ("UPDATE t SET i = = 2", "the query cannot be parsed\nline 1, column 8:"),
        ("DELETE FROM t WHERE i i i", "near `i`\nline 1, column 25:"),
        ("CREATE TABLE u AS SELECT 1 +", "near `+`\nline 1, column 28:"),
        ("SELECT * FROM t a JOIN t b ON", "expected a condition behind ON\nline 1, column 28:"),
        ("SELECT * FROM t a JOIN t b USING WHERE b.i = 1", "expected columns in parentheses behind USING"),
        ("SELECT * FROM t WHERE i IN", "expected values in parentheses behind IN\nline 1, column 25:"),
        ("SELECT i FROM t GROUP BY", "expected an expression behind BY\nline 1, column 23:"),
        ("SELECT sum(i) OVER (PARTITION BY ORDER BY i) FROM t", "behind BY\nline 1, column 31:"),
        ("SELECT * EXCEPT FROM t", "in parentheses behind EXCEPT\nline 1, column 10:"),
        ("SELECT * FROM t VERSION AS OF v1", "found 'v1'; a name stands between quotes"),
        ("SELECT * FROM t FOR VERSION AS OF", "expected a value"),
        ("SELECT * FROM table_changes('t', :f)", "found ':f'; a name stands between quotes, and a parameter needs a value"),
    ],
)
def test_messages_speak_of_the_users_text_alone(duck: ts.TableEnvironment, statement: str, message: str) -> None:
    duck.execute_sql("CREATE TABLE t (i INT, v STRING)")
    duck.execute_sql("INSERT INTO t VALUES (1, 'x')")
    duck.execute_sql("CREATE TABLE k (i INT NOT NULL, v STRING, PRIMARY KEY (i) NOT ENFORCED)")
    duck.execute_sql("INSERT INTO k VALUES (1, 'x')")
    with pytest.raises((InvalidInputError, UnsupportedError)) as refused:
        duck.execute_sql(statement).to_arrow()
    assert message in str(refused.value)
    for inner in ("sqlglot", "Token", "\033", "_tablestore_", "_row_position", "_c0"):
        assert inner not in str(refused.value)


def test_there_is_no_snapshot_at_the_beginning_of_the_calendar(duck: ts.TableEnvironment) -> None:
    duck.execute_sql("CREATE TABLE t (i INT)")
    duck.execute_sql("INSERT INTO t VALUES (1)")
    with pytest.raises(NotFoundError, match=r"at or before 0001-01-01 .* UTC; the earliest retained one is 1, of 20.* UTC"):
        duck.execute_sql("SELECT * FROM t TIMESTAMP AS OF '0001-01-01 00:00:00'")


def refuse_two(value: int) -> int:
    if value == 2:
        raise ValueError("two is odd here")
    return value


@pytest.mark.parametrize("statement", ["INSERT INTO t (i) {}", "CREATE TABLE made AS {}"])
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT refuse_two(n) AS i FROM s", "function refuse_two raised ValueError: two is odd here ({file}, line "),
        ("SELECT CAST(w AS INT) AS i FROM s", "'x' to INT32 when casting from source column w\nline 1, column "),
    ],
)
def test_what_fails_while_rows_are_written_is_named_with_its_place(
    duck: ts.TableEnvironment, statement: str, query: str, message: str
) -> None:
    duck.execute_sql("CREATE TABLE t (i INT, v STRING)")
    duck.execute_sql("CREATE TABLE s AS SELECT * FROM (VALUES (1, '1'), (2, 'x')) AS r (n, w)")
    duck.create_temporary_function("refuse_two", refuse_two)
    with pytest.raises(InvalidInputError) as refused:
        duck.execute_sql(statement.format(query))
    assert message.format(file=__file__) in str(refused.value) and statement.format(query) in str(refused.value)
    assert refused.value.kind == "query"


def test_a_value_that_does_not_go_into_a_column_names_it(duck: ts.TableEnvironment) -> None:
    duck.execute_sql("CREATE TABLE t (i INT, v STRING)")
    duck.execute_sql("CREATE TABLE s AS SELECT CAST(1000000000000 AS BIGINT) AS n")
    with pytest.raises(InvalidInputError, match=r"1000000000000 .*source column i$"):
        duck.execute_sql("INSERT INTO t SELECT n, 'a' FROM s")


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1 AS ``",
        "SELECT `` FROM t",
        "SELECT * FROM ``",
        "SELECT * FROM db.``",
        "CREATE TABLE `` AS SELECT 1 AS i",
        "CREATE TABLE u AS SELECT 1 AS ``",
        "INSERT INTO t (``) VALUES (1)",
        "CREATE TEMPORARY VIEW `` AS SELECT 1 AS i",
        "DROP TABLE ``.t",
    ],
)
def test_an_empty_name_is_refused_at_its_place(duck: ts.TableEnvironment, statement: str) -> None:
    duck.execute_sql("CREATE TABLE t (i INT)")
    column = statement.index("``") + 1
    with pytest.raises(InvalidInputError, match=f"found an empty name\nline 1, column {column}:\n  {re.escape(statement)}"):
        duck.execute_sql(statement)


def test_messages_call_functions_as_the_user_does_and_views_have_as_many_columns_as_their_query(duck: ts.TableEnvironment) -> None:
    duck.create_temporary_function("refuse_two", refuse_two)
    for query in ("SELECT refuse_two(1, 2)", "SELECT refuse_two(1) OVER ()"):
        with pytest.raises(InvalidInputError, match="refuse_two") as refused:
            duck.execute_sql(query).to_arrow()
        assert "__tablestore" not in str(refused.value)
    for columns in ("(a)", "(a, b, c)"):
        with pytest.raises(InvalidInputError, match=r"its query gives 2 \(x, y\)\nline 1, column 23:") as refused:
            duck.execute_sql(f"CREATE TEMPORARY VIEW v {columns} AS SELECT 1 AS x, 2 AS y")
        assert refused.value.kind == "columns"
    assert duck.list_temporary_views() == ()


@pytest.mark.parametrize("engine", ["duckdb", pytest.param("spark", marks=pytest.mark.spark)])
def test_files_by_their_path_are_no_target_and_stand_in_no_stored_text(tmp_path: Path, engine: str) -> None:
    pa.parquet.write_table(pa.table({"a": [1, 2]}), tmp_path / "x.parquet")
    with ts.TableEnvironment.create(tmp_path / "wh", engine=engine) as env:
        for text, place in {
            "INSERT INTO parquet.`{}/x.parquet` SELECT 1": 13,
            "DESCRIBE parquet.`{}/x.parquet`": 10,
            "CREATE MATERIALIZED TABLE m FRESHNESS = INTERVAL '1' HOUR AS SELECT a FROM parquet.`{}/x.parquet`": 76,
        }.items():
            with pytest.raises(ts.UnsupportedError, match=rf"(?s)names files by their path.*line 1, column {place}:") as refused:
                env.execute_sql(text.format(tmp_path)).to_arrow()
            assert refused.value.kind == "files"
        with pytest.raises(ts.UnsupportedError, match="does not reach out of its tables"):
            env.execute_sql(f"CREATE VIEW v AS SELECT a FROM parquet.`{tmp_path}/x.parquet`")
        with pytest.raises(ts.UnsupportedError) as refused:
            env.execute_sql(f"DESCRIBE parquet.`{tmp_path}/x.parquet`")
        declaration = refused.value.message.partition("opens: ")[2].partition(" declares")[0]
        env.execute_sql(declaration)
        assert env.execute_sql("SELECT sum(a) AS s FROM name").to_arrow()["s"].to_pylist() == [3]
        # Names of no path are those of tables.
        with pytest.raises(ts.NotFoundError, match="no database 'csv'"):
            env.execute_sql("SELECT * FROM csv.x")


@pytest.mark.parametrize(
    ("statement", "way_out"),
    [
        ("ATTACH 'other.db' AS other", "a DuckDB connection of your own"),
        ("DETACH other", "a DuckDB connection of your own"),
        ("INSTALL json", "a DuckDB connection of your own"),
        ("load json", "a DuckDB connection of your own"),
        ("CREATE TYPE mood AS ENUM ('glad')", "write the type where it is used"),
        ("CREATE MACRO twice(a) AS a * 2", "CREATE TEMPORARY FUNCTION"),
        ("CREATE SECRET s (TYPE S3)", "a DuckDB connection of your own"),
        ("DROP TYPE mood", "a DuckDB connection of your own"),
        ("PRAGMA database_list", "SET reads and changes settings"),
        ("SUMMARIZE t", "DESCRIBE lists columns"),
        ("CACHE TABLE t", "run it on the engine spark"),
        ("EXECUTE IMMEDIATE 'ATTACH ''other.db'''", "run it on the engine spark"),
        ("COPY t TO 'o.csv'", "tablestore table read --output"),
        ("EXPORT DATABASE 'folder'", "tablestore table read --output"),
        ("IMPORT DATABASE 'folder'", "tablestore import"),
        ("VACUUM", "sys.expire_snapshots"),
        ("CHECKPOINT", "a statement that has ended is on disk"),
    ],
)
def test_a_statement_of_duckdbs_own_is_refused_by_its_name_with_the_way_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, duck: ts.TableEnvironment, statement: str, way_out: str
) -> None:
    monkeypatch.chdir(tmp_path)
    name = " ".join(statement.upper().split()[: 2 if statement.startswith(("CREATE", "DROP")) else 1])
    with pytest.raises(ts.UnsupportedError, match=rf"(?s){name} is not .*{way_out}.*line 1, column 1:"):
        duck.execute_sql(statement)
    assert [path.name for path in tmp_path.iterdir() if path.name != "wh"] == []
