"""Queries in DuckDB's own words: over tables whose names are resolved as ever, and over nothing else."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
import tablestore_duckdb
from tablestore_duckdb import ownwords

import tablestore as ts
from tablestore.sql.parse.script import split_script
from tablestore.sql.query.tablereferences import find_references
from tablestore.sql.sqldialect import SqlDialect
from tests.support.sql.received import Received


@pytest.fixture
def env(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as env:
        env.execute_sql("CREATE DATABASE shop")
        env.execute_sql("USE shop")
        env.execute_sql("CREATE TABLE t (id BIGINT, k STRING, v INT, l ARRAY<INT>, s ROW<a INT>, PRIMARY KEY (id) NOT ENFORCED)")
        env.execute_sql("INSERT INTO t VALUES (1, 'a', 2, array(1, 2, 3), struct(7)), (2, 'b', 3, array(4), struct(8))")
        env.execute_sql("SET 'table.sql-dialect' = 'duckdb'")
        yield env


# What DuckDB's words may send, and sqlglot's tree of it does not show: a name of WITH, files that a user reads by herself.
WORDS = re.compile(r"what is not one query in: (?:UN)?PIVOT |the table [pt] in:\s+WITH |the call read_csv in: |cannot be parsed")


@pytest.fixture(autouse=True)
def knows_duckdbs_words(received: Received) -> Iterator[None]:
    """Leaves to the watch over DuckDB what no text in its words may send."""
    yield
    received.violations = [one for one in received.violations if not WORDS.search(one)]


def rows(env: ts.TableEnvironment, text: str, *args: object, **params: object) -> list[tuple[object, ...]]:
    table = env.execute_sql(text, *args, **params).to_arrow()
    return sorted((tuple(row.values()) for row in table.to_pylist()), key=repr)


@pytest.mark.deep_after(4)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FROM t SELECT id, k", [(1, "a"), (2, "b")]),
        ("SELECT shop.t.id, s.a FROM shop.t", [(1, 7), (2, 8)]),
        ("SELECT id, list_aggregate(l, 'sum') FROM tablestore.shop.t", [(1, 6), (2, 4)]),
        ("SELECT [x * 2 FOR x IN l] FROM t", [([2, 4, 6],), ([8],)]),
        ("SELECT l[1:2] FROM t", [([1, 2],), ([4],)]),
        ("SELECT id FROM t QUALIFY row_number() OVER (ORDER BY v DESC) = 1", [(2,)]),
        ("SELECT COLUMNS('i.*') FROM t", [(1,), (2,)]),
        ("SELECT column_name FROM (DESCRIBE t) WHERE column_type = 'BIGINT'", [("id",)]),
        ("SELECT DISTINCT pg_typeof(v) FROM t", [("integer",)]),
        ("SELECT column_name, count FROM (SUMMARIZE t) WHERE column_name = 'v'", [("v", 2)]),
        ("PIVOT (SELECT id, k, v FROM t) ON k IN ('a', 'b') USING sum(v)", [(1, 2, None), (2, None, 3)]),
        ("PIVOT (SELECT id, k, v FROM t) ON k USING sum(v)", [(1, 2, None), (2, None, 3)]),
        ("PIVOT t ON k, id USING count(*) GROUP BY v", [(2, 1, 0, 0, 0), (3, 0, 0, 0, 1)]),
        ("UNPIVOT (SELECT id, v::BIGINT AS v FROM t) ON id, v INTO NAME n VALUE w", [("id", 1), ("id", 2), ("v", 2), ("v", 3)]),
        ("SELECT a.id, b.v FROM t a ASOF JOIN t b ON a.k = b.k AND a.v >= b.v", [(1, 2), (2, 3)]),
        ("FROM x: t SELECT x.id", [(1,), (2,)]),
        ('SELECT "id" FROM "t"', [(1,), (2,)]),
        ("SELECT id, FROM t,", [(1,), (2,)]),
        ("SELECT id FROM t AT (VERSION => 1)", [(1,), (2,)]),
        ("SELECT id FROM t /*+ OPTIONS('scan.snapshot-id' = '1') */ AS o", [(1,), (2,)]),
        ("SELECT count(*) FROM t$snapshots", [(1,)]),
        ("SELECT id FROM table_changes('t', 0)", [(1,), (2,)]),
        ("SELECT t FROM (SELECT id FROM t) AS t", [({"id": 1},), ({"id": 2},)]),
        ("SELECT o.v FROM t AS o WHERE o.id = 1", [(2,)]),
        ("WITH t AS (SELECT 5 AS q) FROM t", [(5,)]),
        ("WITH t AS MATERIALIZED (FROM t) SELECT count(*) FROM t", [(2,)]),
        ("WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) FROM t", [(1,), (2,), (3,)]),
        ("SELECT (SELECT max(id) FROM t)", [(2,)]),
        ("SELECT #3 FROM t", [(2,), (3,)]),
        ("SELECT count(*) FROM t WHERE 1 = 1", [(2,)]),
        ("SELECT v AS id FROM t WHERE id = 1", [(2,)]),
        ("SELECT sum(v) OVER (ORDER BY id)::INT FROM t", [(2,), (5,)]),
        ("SELECT CASE WHEN v > 2 THEN k ELSE lower(k) END || k FROM t GROUP BY ALL", [("aa",), ("bb",)]),
        ("FROM range(2)", [(0,), (1,)]),
        ("TABLE t ORDER BY ALL LIMIT 0", []),
        ("SELECT 'a\\', $$it's$$, e'\\x41'", [("a\\", "it's", "A")]),
        ("SELECT 1::HUGEINT, 200::UTINYINT, TIME '12:00:00'::VARCHAR, 'a'::ENUM('a', 'b')", [(1, 200, "12:00:00", "a")]),
    ],
)
def test_a_query_is_duckdbs_over_our_tables(env: ts.TableEnvironment, text: str, expected: list[tuple[object, ...]]) -> None:
    assert rows(env, text) == expected


@pytest.mark.deep_after(4)
@pytest.mark.parametrize(
    "value",
    [
        "'infinity'::DATE", "'-infinity'::DATE", "'infinity'::TIMESTAMP", "'-infinity'::TIMESTAMPTZ", "['infinity'::DATE]",
        "{'a': 'infinity'::TIMESTAMP}", "MAP {1: 'infinity'::DATE}",
    ],
)  # fmt: skip
def test_infinite_dates_are_no_values_of_a_result(env: ts.TableEnvironment, value: str) -> None:
    with pytest.raises(ts.InvalidInputError, match=r"column 'd' of the query has an infinite date.*isfinite\(d\)"):
        env.execute_sql(f"SELECT {value} AS d").to_arrow()
    assert rows(env, f"SELECT DATE '9999-12-31' AS d, NULL::TIMESTAMP, ({value})::VARCHAR LIKE '%infinity%'")[0][2] is True


def test_the_row_of_a_table_has_all_of_its_columns(env: ts.TableEnvironment) -> None:
    assert [sorted(row[0]) for row in rows(env, "SELECT o FROM t AS o")] == [["id", "k", "l", "s", "v"]] * 2
    assert [sorted(row[0]) for row in rows(env, "SELECT t FROM t WHERE id = 1")] == [["id", "k", "l", "s", "v"]]


def test_only_the_columns_that_are_used_are_read(env: ts.TableEnvironment) -> None:
    assert "columns    id, v\n" in env.execute_sql("EXPLAIN SELECT id FROM t WHERE v > 2").text
    assert "columns    id, k, v, l, s\n" in env.execute_sql("EXPLAIN SELECT * FROM t WHERE v > 2").text


@pytest.mark.deep_after(2)
@pytest.mark.parametrize(
    ("where", "condition"),
    [
        ("FROM p WHERE day = 'a' AND upper(day) = 'A'", "day = 'a'"),
        ("SELECT x.id FROM p AS x WHERE 3 >= x.id AND x.id IN (1, 2)", "id <= 3 AND id IN (1, 2)"),
        ("FROM p WHERE id BETWEEN 1 AND 2 AND day IS NULL", "id >= 1 AND id <= 2 AND day IS NULL"),
        ("SELECT p.id FROM p JOIN t ON p.id = t.id WHERE p.day = 'a' AND k = 'a'", "day = 'a'"),
        ("SELECT 'ä', id FROM p WHERE id > -3", "id > -3"),
        ("SELECT p.id FROM p LEFT JOIN t ON p.id = t.id WHERE p.day = 'a'", "(none)"),
        ("FROM p WHERE day = 'a' OR id = 1", "(none)"),
        ("FROM p WHERE day = 5::VARCHAR AND NOT id = 1", "(none)"),
        ("FROM p TABLESAMPLE 100% WHERE day = 'a'", "(none)"),
        ("FROM p AS p (day, id) WHERE day = 1", "(none)"),
        ("WITH p AS (FROM p) FROM p WHERE day = 'a'", "(none)"),
        ("FROM p WHERE day = ?", "(none)"),
    ],
)
def test_conditions_on_a_table_leave_its_files_out(
    env: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch, where: str, condition: str
) -> None:
    env.execute_sql("CREATE TABLE p (id INT, day STRING) PARTITIONED BY (day)")
    env.execute_sql("INSERT INTO p VALUES (1, 'a'), (2, 'b'), (3, NULL)")
    arguments = ["a"] * where.count("?")
    plan = env.execute_sql(f"EXPLAIN {where}", *arguments).text
    assert plan is not None
    assert f"  filter     {condition}\n" in plan
    chosen = rows(env, where, *arguments)
    monkeypatch.setattr(ownwords, "filter_of", lambda *_, **__: None)
    assert rows(env, where, *arguments) == chosen


def test_another_order_of_texts_leaves_no_files_out(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE p (id INT, day STRING) PARTITIONED BY (day)")
    env.execute_sql("INSERT INTO p VALUES (1, 'a'), (2, 'A')")
    assert rows(env, "FROM p SELECT id WHERE day = 'a'") == [(1,)]
    env.execute_sql("SET 'default_collation' = 'nocase'")
    assert rows(env, "FROM p SELECT id WHERE day = 'a'") == [(1,), (2,)]


@pytest.mark.deep_after(6)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT * FROM 'x.csv'", "a file is no table: read it with read_csv"),
        ("SELECT * FROM read_csv('/etc/passwd')", "in the folders of tables alone"),
        ("FROM duckdb_settings()", "tells of what DuckDB has itself"),
        ("FROM query('SELECT 1')", "tells of what DuckDB has itself"),
        ("FROM query_table('t')", "tells of what DuckDB has itself"),
        ("SELECT current_database()", "tells of what DuckDB has itself"),
        ("SELECT getenv('HOME')", "tells of what DuckDB has itself"),
        ("SELECT getvariable('x')", "tells of what DuckDB has itself"),
        ("FROM icu_calendar_names()", "is not known to read nothing but"),
        ("WITH x AS (DELETE FROM t RETURNING *) FROM x", "changes rows"),
        ("SELECT 1; SELECT 2", "found another behind the ';'"),
        ("FROM nosuch", "does not exist (known: t)\nline 1, column 6"),
        ("SELECT nosuch FROM t", "line 1, column 8"),
        ("SELECT 1 +", "DuckDB refuses the query: syntax error"),
        ("COPY t TO 'x'", "COPY is not supported"),
        ("ATTACH 'x.db'", "ATTACH is not run"),
        ("PRAGMA version", "PRAGMA is not run"),
        ("FROM (PIVOT t ON k USING sum(v))", "name the values"),
        ("PIVOT (FROM t WHERE id > 9) ON k USING sum(v)", "there are none: name the values"),
        ("SELECT id FROM t AT (VERSION => id)", "expected a number, a text or a parameter"),
        ("SELECT id FROM t WHERE id = $x", "x"),
    ],
)
def test_what_leads_elsewhere_is_refused(env: ts.TableEnvironment, text: str, message: str) -> None:
    with pytest.raises(ts.TablestoreError) as raised:
        env.execute_sql(text).to_arrow()
    assert message in raised.value.message


def test_a_name_that_nobody_resolved_leads_to_no_table_of_a_connection(tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE own AS SELECT 42 AS x").complete()
    engine = tablestore_duckdb.open_engine(connection)
    file = tmp_path / "x.csv"
    file.write_text("a,b\n1,2\n")
    with ts.TableEnvironment.create(tmp_path / "wh", engine=engine, sql_dialect="duckdb") as env:
        env.execute_sql("CREATE TABLE own (y INT)")
        assert rows(env, "SELECT y FROM own") == []
        env.execute_sql("DROP TABLE own")
        # The session's rule for names that no catalog has.
        assert rows(env, "FROM own") == [(42,)]
        assert rows(env, f"FROM read_csv('{file}')") == [(1, 2)]
        with pytest.raises(ts.UnsupportedError, match="a file is no table"):
            env.execute_sql(f"FROM '{file}'")
        with pytest.raises(ts.UnsupportedError, match="query_table"):
            env.execute_sql("FROM query_table('own')")


def test_a_declared_file_is_a_table(env: ts.TableEnvironment, tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("1,x\n")
    env.execute_sql(
        f"CREATE TABLE f (a INT, b STRING) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '{tmp_path}/x.csv')"
    )
    assert rows(env, "FROM f SELECT b, a") == [("x", 1)]
    assert rows(env, f"FROM read_csv('{tmp_path}/x.csv', header = false)") == [(1, "x")]


def test_parameters_are_those_of_duckdb(env: ts.TableEnvironment) -> None:
    assert rows(env, "SELECT id FROM t WHERE id = $id AND l[1:1] = [1]", id=1) == [(1,)]
    assert rows(env, "SELECT id FROM t WHERE k = ?", "b") == [(2,)]
    assert rows(env, "SELECT $2, $1, $1", 1, 2) == [(2, 1, 1)]
    assert rows(env, "SELECT id FROM t AT (VERSION => $v) WHERE v > $least", v=1, least=2) == [(2,)]
    with pytest.raises(ts.InvalidInputError, match="2 parameters"):
        env.execute_sql("SELECT $2, $1", 1)


def test_functions_of_the_user_are_called(env: ts.TableEnvironment) -> None:
    env.create_temporary_function("twice", lambda text: text * 2, arguments=["STRING"], returns="STRING")
    assert rows(env, "SELECT twice(k) FROM t") == [("aa",), ("bb",)]


def test_statements_stay_ours_around_a_query(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE c AS FROM t SELECT k, v + 1 AS v WHERE v > $least", least=2)
    assert rows(env, "FROM c") == [("b", 4)]
    env.execute_sql("INSERT INTO t (id, k) SELECT id + 10, k || $tail FROM t", tail="\\'")
    env.execute_sql("INSERT INTO t BY NAME SELECT 99 AS id")
    env.execute_sql("INSERT INTO t (id, v) VALUES (?, 1::TINYINT)", 100)
    assert rows(env, "SELECT id, k, v FROM t WHERE id > 9") == [
        (100, None, 1),
        (11, "a\\'", None),
        (12, "b\\'", None),
        (99, None, None),
    ]
    # Expressions of changes are in the words of our own statements.
    env.execute_sql("UPDATE t SET k = concat('it', '\\'s') WHERE id = 1")
    env.execute_sql("DELETE FROM t WHERE id > 9")
    assert rows(env, "SELECT id, k FROM t") == [(1, "it's"), (2, "b")]
    env.execute_sql("EXECUTE STATEMENT SET BEGIN INSERT INTO c SELECT 'x\\', 1; INSERT INTO c FROM t SELECT k, v; END")
    assert rows(env, "SELECT count(*) FROM c") == [(4,)]


@pytest.mark.deep_after(5)
@pytest.mark.parametrize("head", ["INSERT INTO t (id)\n", "CREATE TABLE c AS\n", "CREATE TEMPORARY VIEW w AS\n", "EXPLAIN\n"])
@pytest.mark.parametrize(("query", "column"), [("FROM t SELECT nosuch", 15), ("FROM nosuch", 6), ("SELECT getenv('x')", 8)])
def test_a_place_is_one_of_the_statement(env: ts.TableEnvironment, head: str, query: str, column: int) -> None:
    with pytest.raises(ts.TablestoreError, match=f"line 2, column {column}:"):
        env.execute_sql(head + query).to_arrow()


def test_a_view_keeps_its_dialect(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TEMPORARY VIEW w AS FROM t SELECT k, list(v) AS l GROUP BY k")
    env.execute_sql("CREATE TEMPORARY VIEW named (a, b) AS FROM t SELECT k, v")
    env.create_temporary_view("filled", env.sql_query("SELECT k FROM t WHERE k = $k", k="a'\\"))
    env.execute_sql("RESET 'table.sql-dialect'")
    assert rows(env, "SELECT w.k, size(w.l) FROM w JOIN t ON t.k = w.k") == [("a", 1), ("b", 1)]
    assert rows(env, "SELECT a FROM named WHERE b > 2") == [("b",)]
    assert rows(env, "SELECT * FROM filled") == []
    script = env.execute_sql("SHOW CREATE VIEW w").text
    assert script.startswith("SET 'table.sql-dialect' = 'duckdb';\nCREATE TEMPORARY VIEW")
    # In the words of another dialect the text might mean something else, so it is no single statement.
    with pytest.raises(ts.InvalidInputError, match="one statement"):
        env.execute_sql(script)
    before = rows(env, "SELECT k, size(l) FROM w ORDER BY k")
    env.execute_sql("DROP TEMPORARY VIEW w")
    for statement in split_script(script):
        env.execute_sql(statement.text)
    assert env.execute_sql("SHOW CREATE VIEW w").text == script
    assert rows(env, "SELECT k, size(l) FROM w ORDER BY k") == before
    env.execute_sql("CREATE TEMPORARY VIEW plain AS SELECT size(l) AS n FROM t")
    env.execute_sql("SET 'table.sql-dialect' = 'duckdb'")
    assert rows(env, "FROM plain SELECT n") == [(1,), (3,)]


@pytest.mark.deep
def test_a_materialized_table_keeps_its_dialect(env: ts.TableEnvironment, tmp_path: Path) -> None:
    query = "FROM t SELECT k, list_aggregate(list(v), 'sum')::BIGINT AS s GROUP BY k"
    plan = env.execute_sql(f"EXPLAIN CREATE MATERIALIZED TABLE m (PRIMARY KEY (k) NOT ENFORCED) AS {query}").text
    assert plan is not None
    assert plan.endswith("in the dialect duckdb: each refresh computes all of it")
    env.execute_sql(f"CREATE MATERIALIZED TABLE m (PRIMARY KEY (k) NOT ENFORCED) AS {query}")
    env.execute_sql("RESET 'table.sql-dialect'")
    env.execute_sql("INSERT INTO t (id, k, v) VALUES (3, 'a', 10)")
    # Another process, of another dialect.
    program = (
        "import tablestore as ts\n"
        f"env = ts.TableEnvironment.create({str(tmp_path / 'wh')!r}, engine='duckdb')\n"
        "print(env.execute_sql('ALTER MATERIALIZED TABLE shop.m REFRESH').to_arrow().to_pylist()[0]['reason'])\n"
        "print(env.execute_sql('ALTER MATERIALIZED TABLE shop.m REFRESH').to_arrow().to_pylist()[0]['mode'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "its query is in the dialect duckdb, which is computed as a whole\nfull\n"
    assert rows(env, "SELECT * FROM m") == [("a", 12), ("b", 3)]
    assert f"\nAS {query}" in env.execute_sql("SHOW CREATE MATERIALIZED TABLE m").text
    details = {row["name"]: row["value"] for row in env.execute_sql("DESCRIBE EXTENDED m").to_arrow().to_pylist()}
    assert details["sql-dialect"] == "duckdb"
    # Without the dialect it is another query.
    env.execute_sql("ALTER MATERIALIZED TABLE m AS SELECT k, sum(v) AS s FROM t GROUP BY k")
    assert not env.execute_sql("SHOW CREATE MATERIALIZED TABLE m").text.startswith("--")
    assert env.execute_sql("ALTER MATERIALIZED TABLE m REFRESH").to_arrow().to_pylist()[0]["mode"] == "none"


def test_a_partition_of_a_materialized_table_is_computed_in_its_dialect(env: ts.TableEnvironment) -> None:
    env.execute_sql(
        "CREATE MATERIALIZED TABLE m (PRIMARY KEY (id, k) NOT ENFORCED) PARTITIONED BY (k) FRESHNESS = INTERVAL '2' HOUR "
        "REFRESH_MODE = FULL AS FROM t SELECT id, k, l[1:2] AS l"
    )
    env.execute_sql("ALTER MATERIALIZED TABLE m REFRESH PARTITION (k = 'a')")
    assert rows(env, "FROM m") == [(1, "a", [1, 2])]


@pytest.mark.parametrize("query", ["FROM read_csv('/x.csv')", "FROM '/x.csv'", "FROM glob('*')", "SELECT getenv('HOME') AS h"])
def test_a_stored_query_reads_tables_of_catalogs_alone(env: ts.TableEnvironment, query: str) -> None:
    with pytest.raises(ts.UnsupportedError):
        env.execute_sql(f"CREATE MATERIALIZED TABLE m AS {query}")


def test_a_script_changes_its_dialect(env: ts.TableEnvironment) -> None:
    env.execute_sql("RESET 'table.sql-dialect'")
    results: list[object] = []
    env.execute_script(
        "SET 'table.sql-dialect' = 'duckdb'; SELECT 'a\\' AS x; FROM t SELECT count(*); RESET 'table.sql-dialect'; SELECT 'a\\';b'",
        lambda _, result: results.append(result.to_arrow().to_pylist()[0].popitem()[1] if result.kind == "rows" else None),
    )
    assert results == [None, "a\\", 2, None, "a';b"]


def test_a_dialect_is_chosen_for_an_environment_or_a_statement(env: ts.TableEnvironment, tmp_path: Path) -> None:
    env.execute_sql("RESET 'table.sql-dialect'")
    with pytest.raises(ts.InvalidInputError, match="there is no function"):
        env.execute_sql("SELECT list_aggregate(l, 'sum') FROM t")
    assert rows(env, "SELECT list_aggregate(l, 'sum') FROM t", sql_dialect="duckdb") == [(4,), (6,)]
    assert sorted(env.sql_query("FROM t SELECT l[1:1][1]", sql_dialect="duckdb").to_arrow().column(0).to_pylist()) == [1, 4]
    with pytest.raises(ts.InvalidInputError, match=r"table\.sql-dialect"):
        env.execute_sql("SELECT 1", sql_dialect="mysql")
    with pytest.raises(ts.InvalidInputError, match="are one setting"):
        ts.TableEnvironment.create(tmp_path, sql_dialect="duckdb", config={"table.sql-dialect": "duckdb"})


def test_a_restricted_environment_stays_in_sparks_words(env: ts.TableEnvironment, tmp_path: Path) -> None:
    with pytest.raises(ts.UnsupportedError, match="Spark's words alone"):
        ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb", restricted=True, sql_dialect="duckdb")
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb", restricted=True) as restricted:
        with pytest.raises(ts.UnsupportedError, match="Spark's words alone"):
            restricted.execute_sql("SELECT 1", sql_dialect="duckdb")
        with pytest.raises(ts.UnsupportedError):
            restricted.execute_sql("SET 'table.sql-dialect' = 'duckdb'")


def test_another_engine_refuses_the_dialect_by_name(tmp_path: Path) -> None:
    class Other:
        name = "other"

        def set_option(self, key: str, value: str | None) -> None:
            raise AssertionError(key)

        def cancel(self, thread: int | None = None) -> None:
            raise AssertionError("nothing runs")

    with pytest.raises(ts.UnsupportedError, match="the engine other does not run queries in the dialect duckdb"):
        ts.TableEnvironment.create(tmp_path, engine=Other(), sql_dialect="duckdb")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SUMMARIZE a.b", ["a.b"]),
        ("PIVOT a ON x USING sum(y)", ["a"]),
        ("FROM (SUMMARIZE a), b", ["a", "b"]),
        ("FROM x: a.b JOIN y: c USING (id)", ["a.b", "c"]),
        ("SELECT pivot, summarize FROM a", ["a"]),
        ("FROM a POSITIONAL JOIN b", ["a", "b"]),
        ("SELECT 'FROM x', \"FROM\" FROM a -- FROM y", ["a"]),
        ("WITH x AS NOT MATERIALIZED (FROM a) FROM x, b", ["a", "b"]),
    ],
)
def test_tables_of_duckdbs_words_are_found(text: str, names: list[str]) -> None:
    assert [str(reference.path) for reference in find_references(text, dialect=SqlDialect.DUCKDB)] == names


def test_a_script_in_duckdbs_words_is_split_where_they_end() -> None:
    pieces = split_script("SELECT 'a\\'; SELECT \"b;c\"; SELECT $$;$$", SqlDialect.DUCKDB)
    assert [piece.text for piece in pieces] == ["SELECT 'a\\'", 'SELECT "b;c"', "SELECT $$;$$"]


def test_a_column_without_an_alias_is_named_after_the_text(env: ts.TableEnvironment) -> None:
    for text in ("SELECT (SELECT max(id) FROM t) FROM t", "SELECT EXISTS (FROM t WHERE id = 9)"):
        (name,) = env.execute_sql(text).to_arrow().column_names
        assert "__tablestore" not in name and " t" in name
    env.execute_sql("CREATE TABLE named AS SELECT (SELECT max(id) FROM t) FROM t")
    assert "__tablestore" not in env.execute_sql("FROM named").to_arrow().column_names[0]


@pytest.mark.parametrize("value", ["340282366920938463463374607431768211455::UHUGEINT", "'101'::BIT", "[TIMETZ '12:00:00+02']"])
def test_a_type_that_arrow_has_no_words_for_is_refused(env: ts.TableEnvironment, value: str) -> None:
    with pytest.raises(ts.UnsupportedError, match="cast it"):
        env.execute_sql(f"SELECT {value} AS x").to_arrow()
    assert rows(env, "SELECT {'BIT': 1, 'uhugeint': 2} AS s") == [({"BIT": 1, "uhugeint": 2},)]


def test_macros_that_name_a_table_by_an_argument_are_refused(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE own AS SELECT 42 AS x")
        with ts.TableEnvironment.create(tmp_path, engine=tablestore_duckdb.open_engine(connection), sql_dialect="duckdb") as env:
            for text in ("FROM histogram_values(own, x)", "FROM histogram(own, x)"):
                with pytest.raises(ts.TablestoreError, match="histogram"):
                    env.execute_sql(text).to_arrow()
            assert rows(env, "SELECT histogram(x) AS h FROM (VALUES (1), (1)) AS v(x)") != []
