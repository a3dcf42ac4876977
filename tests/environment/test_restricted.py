"""A restricted environment runs texts of others: they read tables, and end within limits."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.environment.restricted.restrictions import Restrictions
from tablestore.sql.parse.statement import parse_statement
from tablestore.sql.statements.anystatement import Statement
from tablestore.sql.statements.session import Describe, ShowKind
from tablestore.sql.stored.sparkreach import HOST_FUNCTIONS, HOST_WORDS
from tests.support.sql.filetexts import file_texts, format_texts, host_texts

ENGINES = ("duckdb", pytest.param("spark", marks=pytest.mark.spark))
# One text at least of each class of statements that there is.
READING = (
    *("SELECT * FROM t", "USE default", "EXPLAIN SELECT * FROM t", "SHOW TABLES", "DESCRIBE t", "SHOW TBLPROPERTIES t"),
    "DESCRIBE HISTORY t",
)
OTHERS = (
    *("INSERT INTO t VALUES (2, 'b')", "INSERT OVERWRITE t SELECT * FROM t", "DELETE FROM t", "UPDATE t SET v = 'x'"),
    "MERGE INTO t USING t AS s ON t.id = s.id WHEN MATCHED THEN DELETE",
    "EXECUTE STATEMENT SET BEGIN INSERT INTO t VALUES (2, 'b'); END",
    *("CREATE TABLE u (id INT)", "CREATE TABLE u AS SELECT * FROM t", "CREATE TEMPORARY TABLE u (id INT)"),
    "CREATE TEMPORARY TABLE u (id INT) WITH ('connector' = 'filesystem', 'path' = '/etc', 'format' = 'csv')",
    *("CREATE TEMPORARY VIEW w AS SELECT 1", "CREATE TEMPORARY FUNCTION f AS 'os.system' LANGUAGE PYTHON"),
    *("DROP TABLE t", "DROP VIEW w", "DROP FUNCTION f", "ALTER TABLE t SET ('bucket' = '1')", "TRUNCATE TABLE t"),
    *("RESTORE TABLE t TO VERSION AS OF 1", "ANALYZE TABLE t COMPUTE STATISTICS"),
    *("CREATE DATABASE d", "DROP DATABASE d", "CREATE CATALOG c WITH ('warehouse' = '/tmp')", "DROP CATALOG c"),
    *("CREATE MATERIALIZED TABLE m AS SELECT * FROM t", "ALTER MATERIALIZED TABLE m REFRESH", "DROP MATERIALIZED TABLE m"),
    *("SET 'a' = 'b'", "SET threads", "SET", "RESET 'a'", "RESET", "SET VARIABLE a = 1", "SET TIME ZONE 'UTC'"),
    *("CALL sys.compact('t')", "CALL sys.rollback_to('t', 1)", "EXPLAIN INSERT INTO t VALUES (1, 'a')", "EXPLAIN DELETE FROM t"),
    *("ATTACH '/x.db'", "DETACH x", "LOAD httpfs", "INSTALL httpfs", "PRAGMA database_list", "SUMMARIZE t"),
    *("ADD JAR '/x.jar'", "ADD FILE '/etc/passwd'", "LIST JARS", "CACHE TABLE t", "REFRESH TABLE t", "DECLARE a INT"),
    *("EXECUTE IMMEDIATE 'SELECT 1'", "CREATE TEMPORARY VIEW w USING csv OPTIONS (path '/etc/passwd')"),
    *("SHOW CREATE CATALOG c", "SHOW JOBS", "DESCRIBE CATALOG tablestore", "DESCRIBE FUNCTION upper"),
    *("ALTER VIEW w AS SELECT 1", "ALTER FUNCTION f AS 'os.system' LANGUAGE PYTHON"),
)


@pytest.fixture(scope="module", params=ENGINES)
def env(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    folder = tmp_path_factory.mktemp("restricted")
    (folder / "secret.csv").write_text("a,b\n1,4711\n")
    with ts.TableEnvironment.create(folder / "wh", engine="duckdb") as own:
        own.execute_sql("CREATE TABLE t (id BIGINT, v STRING)")
        own.execute_sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    with ts.TableEnvironment.create(folder / "wh", engine=request.param, restricted=True) as env:
        yield env


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM read_csv('x')",
        "SUMMARIZE t",
        "SELECT epoch_ms(v) FROM t",
        "INSERT OR IGNORE INTO t VALUES (1, 'a')",
        "REFRESH MATERIALIZED VIEW m",
        "ALTER TABLE t EXECUTE optimize",
        "SELECT {'a': nope} FROM t",
    ],
)
def test_a_message_names_no_way_that_is_refused(env: ts.TableEnvironment, text: str) -> None:
    for run in (env.execute_sql, env.execute_script, env.sql_query):
        with pytest.raises(ts.TablestoreError) as caught:
            run(text).to_arrow()
        for word in ("table.sql-dialect", "csv.`", "INSERT INTO", "MERGE INTO", "COMPACT", "REFRESH,"):
            assert f"here it is {word}" not in str(caught.value) and "table.sql-dialect" not in str(caught.value)
        assert "csv.`" not in str(caught.value)


def test_a_message_of_a_session_that_may_change_rows_names_how(tmp_path: Path) -> None:
    changing = ts.TableEnvironment.create(tmp_path, engine="duckdb", restricted=Restrictions(changes=True))
    with changing as env, pytest.raises(ts.TablestoreError, match="MERGE INTO"):
        env.execute_sql("INSERT OR IGNORE INTO t VALUES (1, 'a')")


def refused(env: ts.TableEnvironment, text: str, **parameters: Any) -> ts.TablestoreError:
    try:
        rows = env.execute_sql(text, **parameters).to_arrow()
    except ts.TablestoreError as error:
        return error
    raise AssertionError(f"{text}: {rows.to_pylist()}")


def test_only_statements_that_read_run_and_every_class_of_statements_is_decided(env: ts.TableEnvironment) -> None:
    for text in READING:
        env.execute_sql(text).to_arrow()
    for text in OTHERS:
        assert refused(env, text).kind == "restricted", text
    assert {type(parse_statement(text)) for text in (*READING, *OTHERS)} == set(get_args(Statement))
    assert env.list_tables() == ("t",)
    with pytest.raises(ts.UnsupportedError, match="is not run in a restricted environment"):
        env.execute_script("SELECT 1; DROP TABLE t; SELECT 2")


def test_a_kind_of_statement_that_is_new_is_refused() -> None:
    class Merge2:
        """What somebody adds tomorrow."""

    for statement in (Merge2(), None, "SELECT 1"):
        with pytest.raises(ts.UnsupportedError, match="restricted"):
            Restrictions().check(statement)  # type: ignore[arg-type]
    shown = {kind.name for kind in ShowKind} - {"CREATE_CATALOG", "JOBS"}
    assert len(shown) == len(ShowKind) - 2
    with pytest.raises(ts.UnsupportedError, match="DESCRIBE CATALOG"):
        Restrictions().check(parse_statement("DESCRIBE CATALOG c"))
    assert isinstance(parse_statement("DESCRIBE DATABASE d"), Describe)


@pytest.mark.deep_after(1)
def test_queries_of_tables_of_the_catalog_run_as_ever(env: ts.TableEnvironment) -> None:
    def rows(text: str, **parameters: Any) -> list[dict[str, Any]]:
        return env.execute_sql(text, **parameters).to_arrow().to_pylist()

    assert rows("SELECT id, upper(v) AS v FROM t WHERE id = :id", id=1) == [{"id": 1, "v": "A"}]
    assert rows("WITH c AS (SELECT id FROM t) SELECT count(*) AS n FROM c JOIN t AS o USING (id)") == [{"n": 2}]
    assert rows("SELECT count(*) AS n FROM t VERSION AS OF 1 CROSS JOIN range(3) CROSS JOIN VALUES (1), (2)") == [{"n": 12}]
    assert rows("SELECT e FROM t LATERAL VIEW explode(array(id)) x AS e ORDER BY e") == [{"e": 1}, {"e": 2}]
    assert rows("SELECT count(*) AS n FROM table_changes('t', 0)") == [{"n": 2}]
    assert rows("SELECT count(*) AS n FROM t$snapshots") == [{"n": 1}]
    assert rows("SELECT CAST(id AS DECIMAL(10, 2)) AS d, CAST(v AS STRING) AS s FROM t ORDER BY id LIMIT 1")[0]["s"] == "a"
    assert env.sql_query("SELECT id FROM t ORDER BY id").to_arrow()["id"].to_pylist() == [1, 2]


def test_a_query_reaches_nothing_but_tables(env: ts.TableEnvironment, request: pytest.FixtureRequest) -> None:
    catalog = env.execute_sql("DESCRIBE EXTENDED t").to_arrow().to_pylist()
    location = next(str(row) for row in catalog if "restricted" in str(row))
    secret = f"{location[location.index('/') : location.index('/wh')]}/secret.csv"
    assert Path(secret).read_text().startswith("a,b")
    texts = [*file_texts(secret), *format_texts(secret), *host_texts(secret)]
    texts += [f"SELECT * FROM {name}.`{secret}`" for name in ("parquet", "text", "binaryFile", "org.apache.spark.sql.csv", "json")]
    texts += [
        "SELECT reflect('java.lang.System', 'getenv', 'HOME')",
        "SELECT java_method('java.lang.System', 'getProperty', 'user.home')",
        "SELECT try_reflect('java.lang.System', 'getenv', 'HOME')",
        "SELECT * FROM t VERSION AS OF CAST(reflect('java.lang.Integer', 'parseInt', '1') AS INT)",
        "SELECT * FROM table_changes('t', CAST(reflect('java.lang.Integer', 'parseInt', '1') AS INT))",
        f"SELECT * FROM t VERSION AS OF (SELECT count(*) FROM text.`{secret}`) - 1",
        "SELECT TRANSFORM(id) USING 'cat' AS (x STRING) FROM t",
        "FROM t MAP id USING 'cat' AS x",
        "SELECT '${env:HOME}' AS home",
        "SELECT `${env:HOME}` FROM t",
        "SELECT IDENTIFIER('ref' || 'lect')('java.lang.System', 'getenv', 'HOME')",
        f"SELECT * FROM IDENTIFIER('csv.`' || '{secret}`')",
        f"SELECT * FROM IDENTIFIER(concat('csv.`', '{secret}', '`'))",
        f"SELECT * FROM STREAM csv.`{secret}`",
        f"SELECT (TABLE csv.`{secret}`)",
        f"FROM t |> JOIN csv.`{secret}` ON true",
        "SELECT spark_catalog.default.f(1)",
        "SELECT nobody_knows_this(1)",
        "SELECT from_avro(v, '{}', map('avroSchemaUrl', 'file:///etc/passwd')) FROM t",
        "SELECT schema_of_xml('<a/>', map('rowValidationXSDPath', '/etc/passwd'))",
        "FROM t INSERT INTO t SELECT *",
        "WITH c AS (SELECT 1) INSERT INTO t SELECT 1, 'x'",
        "SELECT @@x",
        "SELECT * FROM global_temp.x",
        "SELECT * FROM spark_catalog.information_schema.tables",
    ]
    for text in texts:
        assert "4711" not in str(refused(env, text)), text
    assert env.execute_sql("SELECT count(*) AS n FROM t").to_arrow()["n"].to_pylist() == [2]


def test_a_result_of_too_many_rows_is_refused_with_the_limit(tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path, engine="duckdb", restricted=Restrictions(rows=10)) as env:
        assert env.execute_sql("SELECT * FROM range(10)").to_arrow().num_rows == 10
        error = refused(env, "SELECT * FROM range(11)")
        assert error.kind == "limit-exceeded" and "rows = 10" in str(error)


def test_a_query_that_takes_too_long_is_ended_with_the_limit(tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path, engine="duckdb", restricted=Restrictions(time_s=0.3)) as env:
        endless = "SELECT count(*) AS n FROM range(1000000) a CROSS JOIN range(1000000) b WHERE a.id * b.id % 7 = 3"
        error = refused(env, endless)
        assert error.kind == "limit-exceeded" and "time_s = 0.3" in str(error)
        assert env.execute_sql("SELECT 1 AS one").to_arrow()["one"].to_pylist() == [1]


def test_a_query_that_takes_too_much_memory_is_ended_with_the_limit(tmp_path: Path) -> None:
    limits = Restrictions(memory_bytes=60_000_000, threads=1)
    with ts.TableEnvironment.create(tmp_path, engine="duckdb", restricted=limits) as env:
        error = refused(env, "SELECT array_agg(repeat('x', 1000)) AS a FROM range(5000000)")
        assert error.kind == "limit-exceeded" and "memory_bytes = 60,000,000" in str(error)
        error = refused(env, "SELECT repeat('x', 1000) AS a FROM range(500000)")
        assert error.kind == "limit-exceeded" and "for its result" in str(error)


@pytest.mark.parametrize(
    "value",
    [
        "repeat('x', 1000000000)",
        "repeat(repeat('x', 10000), 10000)",
        "lpad('x', 2000000000, 'y')",
        "repeat('x', id)",
        "repeat('x', (SELECT max(id) FROM t))",
        "size(sequence(1, 1000000000))",
        "size(sequence(1, id))",
        "printf('%2000000000d', 1)",
        "printf(v, 1)",
    ],
)
def test_one_value_that_is_as_long_as_a_number_says_is_refused(env: ts.TableEnvironment, value: str) -> None:
    error = refused(env, f"SELECT {value} AS x FROM t")
    assert error.kind == "restricted" and "how long one value is" in str(error)


TWO_THOUSAND = "a" * 2000
LONG_VALUES = (
    f"replace(replace('{TWO_THOUSAND}', 'a', '{TWO_THOUSAND}'), 'a', '{TWO_THOUSAND}')",
    f"regexp_replace(regexp_replace('{TWO_THOUSAND}', 'a', '{TWO_THOUSAND}'), 'a', '{TWO_THOUSAND}')",
    "replace(v, 'a', v)",
    "regexp_replace(v, 'a', v)",
    "levenshtein(v, v || 'x')",
    "levenshtein(repeat('a', 60000), repeat('b', 60000))",
    "jaro_winkler_similarity(v, v)",
    "jaro_winkler_similarity(repeat('a', 60000), repeat('b', 60000))",
    "size(array_distinct(split(v, '')))",
    "size(array_intersect(split(v, ''), array('a', v)))",
    "arrays_overlap(sequence(1, 200000), sequence(2, 200000))",
    "size(array_sort(split(v, ''), (a, b) -> length(a) - length(b)))",
    "reduce(sequence(1, 40), 'x', (a, x) -> a || a)",
    "aggregate(sequence(1, 32), array(1), (a, x) -> flatten(array(a, a)))",
    "aggregate(split(v, ''), '', (a, x) -> concat(a, x))",
    "array_join(transform(sequence(1, 1000000), x -> 'abcdefghij'), 'yyyyyyyyyy')",
    "array_join(split(v, ','), v)",
    "concat_ws(v, split(v, ','))",
    "transform(split(v, ''), x -> concat(x, v))",
    "filter(split(v, ''), x -> upper(v) = x)",
    "regexp_replace(v, '(?=(.*))', '$1')",
    "(SELECT max(s || s) FROM (SELECT repeat('x', 15000) AS s FROM t))",
    "(SELECT max(s || s) FROM t)",
    # In length they are short, in time they are a product.
    "size(filter(split(v, ''), x -> array_contains(split(v, ''), x || 'y')))",
    "size(filter(split(v, ''), x -> instr(v, x) > 0))",
    "size(filter(split(v, ''), x -> v LIKE x))",
)


@pytest.mark.deep_after(19)
@pytest.mark.parametrize("value", LONG_VALUES)
def test_what_multiplies_values_without_a_bound_is_refused_by_its_name(env: ts.TableEnvironment, value: str) -> None:
    error = refused(env, f"SELECT {value} AS x FROM (SELECT id, v, repeat('x', 15000) AS s FROM t) AS t")
    assert error.kind == "restricted" and "how long one value is: expected" in str(error)
    if "(SELECT" not in value:
        error = refused(env, f"SELECT id FROM t ORDER BY {value}")
        assert error.kind == "restricted"


def test_what_grows_from_one_query_to_the_next_is_refused(env: ts.TableEnvironment) -> None:
    doubled = ", ".join(f"c{i + 1} AS (SELECT s || s || s || s AS s FROM c{i})" for i in range(8))
    recursive = "WITH RECURSIVE r AS (SELECT 'x' AS s, 1 AS n UNION ALL SELECT s || s, n + 1 FROM r WHERE n < 40) SELECT s FROM r"
    for text in (
        f"WITH c0 AS (SELECT repeat('x', 100) AS s FROM t), {doubled} SELECT length(s) AS n FROM c8",
        f"WITH c0 AS (SELECT v AS s FROM t), {doubled} SELECT length(s) AS n FROM c8",
        "SELECT repeat('x', 10000) AS a, a || a AS b, b || b AS c, c || c AS d, d || d AS e FROM t",
        "SELECT b || b FROM (SELECT repeat('x', 15000) FROM t) AS a(b)",
        "SELECT length(s) FROM (SELECT 'a' AS s UNION ALL SELECT repeat('x', 15000) FROM t) WHERE s || s = 'b'",
        recursive,
        # A value that is computed once is copied for each row that it stands beside.
        "SELECT t.id FROM t JOIN (SELECT 0 AS k, sequence(1, 200000) AS s) AS q ON t.id = q.k WHERE array_contains(s, t.id)",
        "SELECT t.id FROM t, (VALUES (sequence(1, 200000))) AS q(s)",
        "WITH q AS (SELECT sequence(1, 200000) AS s) SELECT t.id FROM t CROSS JOIN q",
        "SELECT explode(sequence(1, 1000)) AS i, sequence(1, 200000) AS s",
    ):
        assert refused(env, text).kind == "restricted", text


def test_ordinary_texts_and_lists_are_computed_within_the_limits(tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path, engine="duckdb") as own:
        own.execute_sql("CREATE TABLE t (id BIGINT, v STRING, w STRING)")
        own.execute_sql("INSERT INTO t VALUES (1, 'a&b', 'c')")
    with ts.TableEnvironment.create(tmp_path, engine="duckdb", restricted=True) as env:
        for value, wanted in (
            ("replace(replace(replace(replace(v, '&', '&amp;'), '<', '&lt;'), '\"', '&quot;'), '>', '&gt;')", "a&amp;b"),
            ("replace(v, 'a', left(w, 10))", "c&b"),
            ("levenshtein(v, 'a')", 2),
            ("levenshtein(left(v, 100), left(w, 100))", 3),
            ("array_join(transform(split(v, '&'), x -> upper(x)), ', ')", "A, B"),
            ("aggregate(array(id, 2), 0L, (a, x) -> a + x)", 3),
            ("aggregate(array(id, 2), 0L, (a, x) -> greatest(a, x))", 2),
            ("aggregate(array(id, 2), '', (a, x) -> a || 'x')", "xx"),
            ("CASE WHEN v LIKE 'a%' THEN v || w ELSE w END", "a&bc"),
            ("length(repeat('x', 1000000))", 1_000_000),
            ("transform(array(named_struct('a', v, 'b', id)), x -> x.a)", ["a&b"]),
            ("size(filter(array(named_struct('a', v, 'b', id)), x -> x.b > 0 AND x.a LIKE 'a%'))", 1),
        ):
            assert env.execute_sql(f"SELECT {value} AS x FROM t").to_arrow()["x"].to_pylist() == [wanted], value
        steps = "SELECT 1, '/' UNION ALL SELECT n + 1, p || n || '/' FROM r WHERE n < 3"
        path = f"WITH RECURSIVE r(n, p) AS ({steps}) SELECT max(p) AS p FROM r"
        assert env.execute_sql(path).to_arrow()["p"].to_pylist() == ["/1/2/"]


@pytest.mark.deep_after(1)
def test_a_text_that_is_too_long_to_be_translated_is_refused_before_it_is(env: ts.TableEnvironment) -> None:
    for text in (
        f"SELECT count(*) FROM t WHERE id IN ({','.join(map(str, range(20_000)))})",
        f"SELECT {', '.join(f'id + {i} AS a{i}' for i in range(5000))} FROM t",
        "SELECT " + "/*+ a */ " * 20_001 + "id FROM t",
    ):
        error = refused(env, text)
        assert error.kind == "limit-exceeded" and "words = 20,000" in str(error)
    for run in (env.execute_sql, env.execute_script, env.sql_query):
        with pytest.raises(ts.UnsupportedError, match="characters = 1,000,000"):
            run(f"SELECT '{'x' * 1_000_000}'")


def test_a_text_computes_few_snapshots_of_tables(env: ts.TableEnvironment) -> None:
    one = "(SELECT 1 FROM t VERSION AS OF length('a'))"
    error = refused(env, f"SELECT {', '.join([one] * 9)}")
    assert error.kind == "limit-exceeded" and "VERSION AS OF" in str(error)
    error = refused(env, "SELECT * FROM t VERSION AS OF length(replace(repeat('a', 100000), 'a', repeat('b', 1000)))")
    assert error.kind == "restricted"


@pytest.mark.parametrize("name", sorted(HOST_FUNCTIONS))
def test_a_query_calls_nothing_that_tells_of_the_host(env: ts.TableEnvironment, name: str) -> None:
    words = (
        f"SELECT {name} AS x FROM t",
        f"SELECT id FROM t WHERE {name} = 'root'",
        f"SELECT {name}, 1 AS {name} FROM t",
        f"SELECT id FROM t LEFT SEMI JOIN (SELECT 1 AS {name}) AS s ON true WHERE {name} = 'root'",
        f"SELECT * FROM (SELECT 1 AS {name}) AS s WHERE EXISTS (SELECT 1 FROM t WHERE {name} = 'root')",
    )
    for text in (f"SELECT {name}() AS x FROM t", *(words if name in HOST_WORDS else ())):
        assert refused(env, text).kind in ("restricted", "sql-syntax"), text


def test_a_column_may_have_the_name_of_a_word_that_tells_of_the_host(env: ts.TableEnvironment) -> None:
    text = "SELECT user, s.user AS again FROM (SELECT id AS user FROM t) AS s WHERE user = 1 ORDER BY user"
    assert env.execute_sql(text).to_arrow().to_pylist() == [{"user": 1, "again": 1}]


def test_values_of_a_written_length_are_made(tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path, engine="duckdb", restricted=True) as env:
        text = "SELECT repeat('ab', least(id, 2)) AS r, lpad('x', 3, '-') AS l, size(sequence(1, 100)) AS s FROM range(3)"
        assert env.execute_sql(text).to_arrow().to_pylist()[2] == {"r": "abab", "l": "--x", "s": 100}
        text = "SELECT size(sequence(DATE '2024-01-01', DATE '2024-01-31', INTERVAL 1 DAY)) AS n"
        assert env.execute_sql(text).to_arrow().to_pylist() == [{"n": 31}]


def test_results_come_in_small_batches_so_that_their_size_is_looked_at_early(tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path, engine="duckdb", restricted=True) as env:
        batches = env.execute_sql("SELECT * FROM range(10000)").to_arrow().to_batches()
        assert max(batch.num_rows for batch in batches) == 2048
    with ts.TableEnvironment.create(tmp_path, engine="duckdb") as env:
        env.execute_sql("SET 'duckdb.batch-rows' = '4096'")
        assert max(one.num_rows for one in env.execute_sql("SELECT * FROM range(10000)").to_arrow().to_batches()) == 4096
        env.execute_sql("RESET 'duckdb.batch-rows'")
        assert env.execute_sql("SELECT * FROM range(10000)").to_arrow().to_batches()[0].num_rows == 10_000
        with pytest.raises(ts.InvalidInputError, match="a whole number above 0"):
            env.execute_sql("SET 'duckdb.batch-rows' = '0'")


def test_limits_are_numbers_above_zero_and_an_open_engine_is_not_restricted(tmp_path: Path) -> None:
    for wrong in ({"rows": 0}, {"time_s": -1}, {"memory_bytes": "much"}, {"threads": 0}, {"characters": 0}, {"words": 0}):
        with pytest.raises(ts.InvalidInputError, match="above 0"):
            Restrictions(**wrong)  # type: ignore[arg-type]
    with pytest.raises(ts.InvalidInputError, match="True, False or Restrictions"):
        ts.TableEnvironment.create(tmp_path, restricted="yes")  # type: ignore[arg-type]
    with ts.TableEnvironment.create(tmp_path, engine="duckdb") as env, pytest.raises(ts.InvalidInputError, match="is open"):
        ts.TableEnvironment.create(tmp_path, engine=env.engine, restricted=True)


def test_what_the_program_registers_may_be_called_and_read(tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path, engine="duckdb", restricted=True) as env:
        env.create_temporary_function("twice", lambda x: 2 * x, arguments=[pa.int64()], returns=pa.int64())
        assert env.execute_sql("SELECT twice(21) AS n").to_arrow()["n"].to_pylist() == [42]
        assert env.execute_sql("SELECT 1 AS one").schema.names == ["one"]


@pytest.mark.deep
@pytest.mark.spark
def test_spark_refuses_limits_that_it_cannot_keep_and_keeps_those_of_time_and_rows(tmp_path: Path) -> None:
    with pytest.raises(ts.UnsupportedError, match="threads is a limit"):
        ts.TableEnvironment.create(tmp_path, engine="spark", restricted=Restrictions(threads=1))
    with ts.TableEnvironment.create(tmp_path, engine="spark", restricted=Restrictions(time_s=3, rows=10)) as env:
        error = refused(env, "SELECT id FROM range(11)")
        assert error.kind == "limit-exceeded" and "rows = 10" in str(error)
        error = refused(env, "SELECT count(*) AS n FROM range(1000000) a CROSS JOIN range(1000000) b WHERE a.id * b.id % 7 = 3")
        assert error.kind == "limit-exceeded" and "time_s = 3" in str(error)


CHANGES = (
    *("INSERT INTO t VALUES (2, 'b')", "INSERT OVERWRITE t SELECT * FROM t", "UPDATE t SET v = 'x' WHERE id = 1"),
    "MERGE INTO t USING (SELECT 7 AS id, 'm' AS v) AS s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
    *("DELETE FROM t WHERE id = 7", "TRUNCATE TABLE t", "RESTORE TABLE t TO VERSION AS OF 1"),
    *("CREATE DATABASE d", "CREATE TABLE d.u (id INT DEFAULT 1, v STRING COMMENT 'c') WITH ('bucket' = '2', 'bucket-key' = 'id')"),
    *("CREATE TABLE d.w AS SELECT * FROM t", "CREATE OR REPLACE TABLE d.w AS SELECT id FROM t", "ALTER TABLE d.u ADD COLUMN n INT"),
    *("ALTER TABLE d.u RENAME COLUMN n TO m", "ALTER TABLE d.u DROP COLUMN m", "ALTER TABLE d.u RENAME TO d.x"),
    *("ALTER TABLE t SET ('target-file-size' = '64 mb')", "DROP TABLE d.x", "DROP DATABASE d CASCADE"),
)
NO_PLAIN_CHANGES = (
    *("CREATE TABLE u (a INT, b AS a + 1)", "CREATE TABLE u (a INT, CONSTRAINT c CHECK (a > 0))", "CREATE TABLE u LIKE t"),
    *("CREATE TABLE u (a INT) USING csv", "CREATE TABLE u (a INT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:x:y')"),
    *("CREATE TABLE u (a INT) WITH ('log.system' = 'kafka')", "ALTER TABLE t SET ('log.kafka.bootstrap.servers' = 'h:1')"),
    *("ALTER TABLE t SET ('data-file.external-paths' = '/tmp')", "ALTER TABLE t ADD CONSTRAINT c CHECK (id > 0)"),
    *("CREATE DATABASE d WITH ('location' = '/tmp')", "ALTER TABLE t COMPACT", "DROP TEMPORARY TABLE t", "DROP FUNCTION f"),
    "CREATE TABLE u (at TIMESTAMP(3), WATERMARK FOR at AS at)",
)


@pytest.fixture
def changing(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb", restricted=Restrictions(changes=True)) as env:
        env.execute_sql("CREATE TABLE t (id BIGINT, v STRING)")
        env.execute_sql("INSERT INTO t VALUES (1, 'a')")
        yield env


def test_restrictions_that_allow_changes_run_plain_ones_and_refuse_all_else(changing: ts.TableEnvironment) -> None:
    for text in (*READING, *CHANGES):
        changing.execute_sql(text).to_arrow()
    assert changing.execute_sql("SELECT * FROM t").to_arrow().to_pylist() == [{"id": 1, "v": "a"}]
    ran = {type(parse_statement(text)) for text in (*READING, *CHANGES)}
    others = [text for text in OTHERS if type(parse_statement(text)) not in ran]
    assert len(others) > 30
    for text in (*others, *NO_PLAIN_CHANGES):
        assert refused(changing, text).kind == "restricted", text
    assert changing.list_tables() == ("t",)


@pytest.mark.deep
def test_the_queries_of_changes_reach_nothing_but_tables(changing: ts.TableEnvironment, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a,b\n1,4711\n")
    before = changing.execute_sql("SELECT count(*) AS n FROM t$snapshots").to_arrow()["n"].to_pylist()
    for text in (*file_texts(str(secret)), *format_texts(str(secret)), *host_texts(str(secret))):
        for change in (f"INSERT INTO t {text}", f"CREATE TABLE u AS {text}", f"DELETE FROM t WHERE id IN ({text})"):
            refused(changing, change)
    for value in ("reflect('java.lang.System', 'getenv', 'HOME')", "current_user()", "getenv('HOME')", "repeat('x', 1000000000)"):
        for change in (
            *(f"INSERT INTO t SELECT 1, {value}", f"INSERT INTO t VALUES (1, {value})", f"UPDATE t SET v = {value}"),
            *(f"DELETE FROM t WHERE v <> {value}", f"CREATE TABLE u AS SELECT {value} AS v"),
            f"MERGE INTO t USING t AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = {value}",
        ):
            refused(changing, change)
    assert changing.execute_sql("SELECT count(*) AS n FROM t$snapshots").to_arrow()["n"].to_pylist() == before
    assert changing.list_tables() == ("t",)


def test_a_change_that_takes_too_long_is_ended_and_lands_nothing(tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path, engine="duckdb") as own:
        own.execute_sql("CREATE TABLE t (n BIGINT)")
    with ts.TableEnvironment.create(tmp_path, engine="duckdb", restricted=Restrictions(time_s=0.3, changes=True)) as env:
        endless = "SELECT count(*) AS n FROM range(1000000) a CROSS JOIN range(1000000) b WHERE a.id * b.id % 7 = 3"
        error = refused(env, f"INSERT INTO t {endless}")
        assert error.kind == "limit-exceeded" and "time_s = 0.3" in str(error)
    assert ts.open_catalog(tmp_path).table("default.t").snapshots() == ()


def test_whether_changes_are_allowed_is_a_boolean() -> None:
    with pytest.raises(ts.InvalidInputError, match="True or False as changes"):
        Restrictions(changes=1)  # type: ignore[arg-type]
