"""A text of SQL reads tables, and nothing else of the machine that it runs on."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from tablestore_duckdb import open_engine

import tablestore as ts
from tests.support.sql.filetexts import file_texts, host_texts

SECRET = "4711"


@pytest.fixture
def env(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as env:
        env.execute_sql("CREATE TABLE t (id BIGINT, v STRING)")
        env.execute_sql("INSERT INTO t VALUES (1, 'a')")
        yield env


@pytest.fixture
def secret(tmp_path: Path) -> str:
    (tmp_path / "secret.csv").write_text(f"a,b\n1,{SECRET}\n")
    return str(tmp_path / "secret.csv")


def refused(env: ts.TableEnvironment, text: str) -> ts.TablestoreError:
    """The error of a statement. The rows of one that runs are shown."""
    try:
        rows = env.execute_sql(text).to_arrow()
    except ts.TablestoreError as error:
        return error
    raise AssertionError(f"{text}: {rows.to_pylist()}")


@pytest.mark.deep
def test_a_text_in_the_place_of_a_table_opens_no_file(env: ts.TableEnvironment, secret: str) -> None:
    for text in file_texts(secret):
        assert SECRET not in str(refused(env, text)), text
    assert env.list_tables() == ("t",)
    assert env.execute_sql("SELECT * FROM t").to_arrow().to_pylist() == [{"id": 1, "v": "a"}]


def test_no_call_or_name_of_duckdb_tells_of_the_host(env: ts.TableEnvironment, secret: str) -> None:
    variable_of_the_caller = pa.table({"q": [1]})
    for text in host_texts(secret):
        assert SECRET not in str(refused(env, text)), text
    assert variable_of_the_caller.num_rows == 1


def test_the_error_names_the_place_and_how_files_are_read(env: ts.TableEnvironment, secret: str) -> None:
    error = refused(env, f"SELECT *\nFROM t, '{secret}'")
    assert error.kind == "no-such-table" and "'connector' = 'filesystem'" in str(error) and "line 2, column 9" in str(error)
    options = f"'connector' = 'filesystem', 'path' = '{secret}', 'format' = 'csv', 'header' = 'true'"
    env.execute_sql(f"CREATE TEMPORARY TABLE files (a INT, b INT) WITH ({options})")
    assert env.execute_sql("SELECT b FROM files").to_arrow().to_pylist() == [{"b": int(SECRET)}]


@pytest.mark.deep
def test_a_connection_of_ones_own_opens_no_files_by_texts_either(tmp_path: Path, secret: str) -> None:
    connection = duckdb.connect()
    connection.sql("CREATE TABLE colours AS SELECT 'ink' AS item")
    variable_of_the_caller = pa.table({"q": [1]})
    with ts.TableEnvironment.create(tmp_path / "wh", engine=open_engine(connection)) as env:
        env.execute_sql("CREATE TABLE t (id BIGINT, v STRING)")
        for text in (*file_texts(secret), *host_texts(secret)):
            assert SECRET not in str(refused(env, text)), text
        assert env.execute_sql("SELECT item FROM memory.main.colours AS c").to_arrow().num_rows == 1
        assert env.execute_sql("SELECT item FROM colours").to_arrow().num_rows == 1
        # Names of the engine's tables are names, not texts.
        assert refused(env, "SELECT item FROM 'colours'").kind == "no-such-table"
    assert variable_of_the_caller.num_rows == 1


def test_a_connection_of_our_own_fetches_and_loads_no_code_of_others(env: ts.TableEnvironment) -> None:
    assert env.engine is not None
    closed = ["autoinstall_known_extensions", "autoload_known_extensions", "allow_community_extensions"]
    closed.append("python_enable_replacements")
    rows = env.engine.execute(f"SELECT {', '.join(f'current_setting({name!r}) AS {name}' for name in closed)}")
    assert rows is not None
    assert rows.to_reader().read_all().to_pylist() == [dict.fromkeys(closed, False)]
    options = "'connector' = 'filesystem', 'path' = 'http://127.0.0.1:9/x.csv', 'format' = 'csv'"
    env.execute_sql(f"CREATE TEMPORARY TABLE far (a INT) WITH ({options})")
    assert "httpfs" in str(refused(env, "SELECT * FROM far"))


@pytest.mark.parametrize(
    ("bound", "named"), [("\u017f.csv", "s.csv"), ("ß.csv", "ss.csv"), ("\u212a.csv", "k.csv"), ("\u0131.csv", "i.csv")]
)
def test_a_query_of_a_with_is_no_other_one_whose_letters_have_its_case_elsewhere(
    env: ts.TableEnvironment, tmp_path: Path, bound: str, named: str
) -> None:
    (tmp_path / named).write_text(f"a,b\n1,{SECRET}\n")
    (tmp_path / bound).write_text(f"a,b\n1,{SECRET}\n")
    for name, other in ((bound, named), (named, bound)):
        refused(env, f"WITH `{tmp_path}/{name}` AS (SELECT 1) SELECT * FROM `{tmp_path}/{other}`")


@pytest.mark.deep_after(3)
@pytest.mark.parametrize("name", ["duckdb_databases", "sqlite_master", "pragma_database_list", "a.csv", "Straße", "t", "one two"])
def test_a_query_of_a_with_may_have_any_name_and_has_it_alone(env: ts.TableEnvironment, name: str) -> None:
    rows = env.execute_sql(f"WITH `{name}` AS (SELECT 1 AS x) SELECT `{name}`.x, q.x AS y FROM `{name}` JOIN `{name}` AS q ON true")
    assert rows.to_arrow().to_pylist() == [{"x": 1, "y": 1}]
    deep = (
        f"WITH RECURSIVE `{name}` AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM `{name}` WHERE n < 3), "
        f"w AS (WITH `{name}` AS (SELECT max(n) AS m FROM `{name}`) SELECT * FROM `{name}`) "
        f"SELECT sum(n) AS s, (SELECT m FROM w) AS m FROM `{name}`"
    )
    assert env.execute_sql(deep).to_arrow().to_pylist() == [{"s": 6, "m": 3}]
    refused(env, f"WITH RECURSIVE `{name}` AS (SELECT * FROM `{name}`) SELECT * FROM `{name}`")


def test_two_queries_of_one_with_have_two_names(env: ts.TableEnvironment) -> None:
    for text in (
        "WITH x AS (SELECT 1 AS a), X AS (SELECT 2 AS a) SELECT * FROM x",
        "INSERT INTO t WITH a AS (SELECT 100 AS id, 'b' AS v), a AS (SELECT 200 AS id, 'c' AS v) SELECT * FROM a",
        "SELECT * FROM (WITH a AS (SELECT 1), b AS (SELECT 2), A AS (SELECT 3) SELECT * FROM b)",
    ):
        assert "two queries of one WITH" in str(refused(env, text)), text
    assert env.execute_sql("SELECT id FROM t").to_arrow().to_pylist() == [{"id": 1}]


def test_a_lateral_names_no_table(env: ts.TableEnvironment) -> None:
    assert refused(env, "SELECT * FROM t, LATERAL t").kind == "query"


def test_using_of_a_column_that_no_table_has_is_an_error_of_ours(env: ts.TableEnvironment) -> None:
    assert "nosuch" in str(refused(env, "SELECT * FROM t JOIN t AS u USING (nosuch)"))
