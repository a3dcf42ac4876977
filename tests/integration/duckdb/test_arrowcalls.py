"""Arrow functions on DuckDB: registered where a query calls them, on any connection of it, and their errors are ours."""

from pathlib import Path

import duckdb
import pytest
from tablestore_duckdb import open_engine

import tablestore as ts
from tablestore.sql.duckdb.functions.arrowfunction import ARROW_PREFIX


def registered(connection: duckdb.DuckDBPyConnection) -> set[str]:
    names = connection.sql("SELECT DISTINCT function_name FROM duckdb_functions()").fetchall()
    return {name[len(ARROW_PREFIX) :].lower() for (name,) in names if name.upper().startswith(ARROW_PREFIX)}


def test_only_those_that_a_query_calls_are_registered_each_once(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        env = ts.TableEnvironment.create(tmp_path / "one", engine=open_engine(connection))
        env.execute_sql("SELECT 1").to_arrow()
        assert registered(connection) == set()
        for _ in range(2):
            assert env.execute_sql("SELECT crc32('Spark') AS c").to_arrow().to_pylist() == [{"c": 1557323817}]
        assert registered(connection) == {"crc32"}
        again = ts.TableEnvironment.create(tmp_path / "two", engine=open_engine(connection))
        assert again.execute_sql("SELECT crc32('Spark') AS c").to_arrow().to_pylist() == [{"c": 1557323817}]


def test_queries_at_one_time_call_the_same_function(tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path, engine="duckdb") as env:
        first = env.execute_sql("SELECT id FROM range(300000)").to_reader()
        assert env.execute_sql("SELECT hash(id) AS h FROM range(3)").to_arrow().num_rows == 3
        assert sum(batch.num_rows for batch in first) == 300_000
        assert env.execute_sql("SELECT hash(1) AS h").to_arrow().to_pylist() == [{"h": -559580957}]


def test_a_view_calls_one(tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path, engine="duckdb") as env:
        env.execute_sql("CREATE TEMPORARY VIEW v AS SELECT xxhash64(id) AS h FROM range(2)")
        assert env.execute_sql("SELECT count(DISTINCT h) AS n FROM v").to_arrow().to_pylist() == [{"n": 2}]


@pytest.mark.parametrize(
    ("query", "error", "message"),
    [
        ("SELECT parse_json(j) FROM VALUES ('{') AS t (j)", ts.InvalidInputError, "^expected a JSON text, found '{'"),
        ("SELECT parse_json(j) FROM VALUES ('1 x') AS t (j)", ts.UnsupportedError, "^DuckDB does not run JSON with something"),
    ],
)
def test_an_error_of_an_arrow_function_is_ours(query: str, error: type[Exception], message: str, tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path, engine="duckdb") as env, pytest.raises(error, match=message):
        env.execute_sql(query).to_arrow()
