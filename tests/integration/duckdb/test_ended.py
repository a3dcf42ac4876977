"""What goes wrong in functions of Python's, or in DuckDB itself, ends a query and never the session."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tablestore_duckdb.engine import DuckDBEngine

import tablestore as ts
from tablestore.testing.contracts.queryengine import bound, rows_of


@pytest.fixture
def env(tmp_path: Any) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(str(tmp_path), engine="duckdb") as env:
        env.execute_sql("CREATE DATABASE shop")
        env.execute_sql("CREATE TABLE shop.t (id BIGINT, parts ARRAY<STRUCT<x: INT>>)")
        env.execute_sql("INSERT INTO shop.t VALUES (1, array(named_struct('x', 1), NULL)), (2, NULL), (3, array(NULL))")
        yield env


class _Speechless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("it has no text")


def _raises(error: type[BaseException]) -> Callable[..., Any]:
    def call(value: Any) -> Any:
        raise error("of the function")

    return call


HOSTILE: dict[str, Callable[..., Any]] = {
    "raises": _raises(ValueError),
    "speechless": _raises(_Speechless),
    "exits": _raises(SystemExit),
    "recursive": lambda value: HOSTILE["recursive"](value),
    "text": lambda value: "no number",
    "huge": lambda value: 2**70,
    "object": lambda value: object(),
    "list": lambda value: [value],
}
BY_COLUMN: dict[str, Callable[..., Any]] = {
    "raises": _raises(ValueError),
    "scalar": lambda column: pa.scalar(1),
    "nothing": lambda column: None,
    "short": lambda column: column.slice(0, 1),
    "long": lambda column: pa.concat_arrays([column, column]),
    "texts": lambda column: pc.binary_join_element_wise("a", column.cast(pa.string()), ""),
}


@pytest.mark.deep_after(3)
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("argument", ["id", "parts"])
def test_a_hostile_function_ends_its_query_alone(env: ts.TableEnvironment, name: str, argument: str) -> None:
    types = {"id": "BIGINT", "parts": "ARRAY<STRUCT<x: INT>>"}
    env.create_temporary_function("hostile", HOSTILE[name], arguments=[types[argument]], returns="BIGINT")
    for query in (f"SELECT hostile({argument}) FROM shop.t", f"SELECT count(*) FROM shop.t WHERE hostile({argument}) > 1"):
        with pytest.raises(ts.InvalidInputError):
            env.execute_sql(query).to_arrow()
        assert env.execute_sql("SELECT count(*) AS n FROM shop.t").to_arrow().to_pylist() == [{"n": 3}]


@pytest.mark.deep_after(3)
@pytest.mark.parametrize("name", BY_COLUMN)
def test_a_hostile_function_by_column_ends_its_query_alone(env: ts.TableEnvironment, name: str) -> None:
    def hostile(column: pa.Array) -> pa.Array:
        return BY_COLUMN[name](column)

    env.create_temporary_function("hostile", hostile, arguments=["BIGINT"], returns="BIGINT")
    for query in ("SELECT hostile(id) FROM shop.t", "SELECT count(*) FROM shop.t WHERE hostile(id) > 1"):
        with pytest.raises(ts.InvalidInputError, match="function hostile raised"):
            env.execute_sql(query).to_arrow()
        assert env.execute_sql("SELECT count(*) AS n FROM shop.t").to_arrow().to_pylist() == [{"n": 3}]


@pytest.mark.deep_after(3)
@pytest.mark.parametrize(
    "expression",
    [
        "CAST(parts AS ARRAY<STRUCT<x: STRING>>)",
        "CAST(parts AS ARRAY<STRUCT<y: TINYINT>>)",
        "CAST(parts AS STRING)",
        "transform(parts, p -> 10 / (p.x - 1))",
        "filter(parts, p -> CAST(p.x AS STRING) = '1')",
        "CAST('a' || id AS INT)",
        "10 DIV (id - id)",
        "parts[7].x",
    ],
)
def test_what_fails_on_a_value_ends_its_query_alone(env: ts.TableEnvironment, expression: str) -> None:
    for query in (f"SELECT {expression} FROM shop.t", f"SELECT count({expression}), max(id) FROM shop.t GROUP BY {expression}"):
        with suppress(ts.InvalidInputError, ts.UnsupportedError):
            env.execute_sql(query).to_arrow()
        assert env.execute_sql("SELECT count(*) AS n FROM shop.t").to_arrow().to_pylist() == [{"n": 3}]


def test_rows_that_fail_while_they_are_read_end_their_query_alone(env: ts.TableEnvironment) -> None:
    table = env.catalog().table("shop.t")
    for file in Path(table.location).rglob("bucket-*/*"):  # type: ignore[union-attr]
        file.write_bytes(b"no Parquet")
    for query in ("SELECT * FROM shop.t", "SELECT count(parts) FROM shop.t WHERE id > 1"):
        with pytest.raises(ts.TablestoreError):
            env.execute_sql(query).to_arrow()
        assert env.execute_sql("SELECT 1 AS n").to_arrow().to_pylist() == [{"n": 1}]


def test_a_database_that_has_ended_is_opened_again_with_functions_and_settings(env: ts.TableEnvironment) -> None:
    env.create_temporary_function("plus", lambda value: value + 1, arguments=["BIGINT"], returns="BIGINT")
    env.execute_sql(
        "CREATE TEMPORARY VIEW v AS SELECT plus(id) AS id, CAST(TIMESTAMP '2024-01-01 12:00:00 UTC' AS STRING) AS at FROM shop.t"
    )
    env.execute_sql("SET 'timezone' = 'Europe/Berlin'")
    before = env.execute_sql("SELECT * FROM v ORDER BY id").to_arrow()
    assert before.to_pylist()[0] == {"id": 2, "at": "2024-01-01 13:00:00"}
    engine = env._session.engine_for("SELECT")
    assert isinstance(engine, DuckDBEngine)
    # As a fatal error of DuckDB's does: nothing runs on it any more.
    engine._sessions.connection.close()
    with pytest.raises(ts.StorageError, match="opened again"):
        env.execute_sql("SELECT * FROM v ORDER BY id").to_arrow()
    assert env.execute_sql("SELECT * FROM v ORDER BY id").to_arrow() == before
    env.execute_sql("INSERT INTO shop.t SELECT plus(id), NULL FROM shop.t")
    assert env.execute_sql("SELECT count(*) AS n FROM shop.t").to_arrow().to_pylist() == [{"n": 6}]


def test_a_connection_that_was_given_is_not_opened_again() -> None:
    connection = duckdb.connect()
    engine = DuckDBEngine(connection)
    assert rows_of(engine, bound("SELECT 1 AS a")) == [{"a": 1}]
    connection.close()
    for _ in range(2):
        with pytest.raises(ts.StorageError, match="give another one"):
            engine.query(bound("SELECT 1 AS a"))
    engine.close()
