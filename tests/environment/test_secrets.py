"""A secret that a statement holds is in nothing that is printed, kept or stored."""

import itertools
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tablestore import TableEnvironment
from tablestore.errors import TablestoreError
from tests.sql.test_statementmask import PLACES, VALUES
from tests.support.attacks.canary import CANARY, SECRETS, URLS

pytest.importorskip("duckdb")

QUERIES = ("SHOW CREATE TABLE c", "DESCRIBE EXTENDED c", "DESCRIBE c", "SHOW OPTIONS c", "SHOW TABLES", "SHOW CREATE VIEW v")


def printed(env: TableEnvironment, statement: str) -> str:
    """What a statement says: its rows as text, or its error with all that it came from."""
    try:
        result = env.execute_sql(statement)
        return str(result.to_reader().read_all().to_pylist()) + repr(result)
    except TablestoreError as error:
        chain: list[str] = []
        at: BaseException | None = error
        while at is not None:
            chain += [str(at), repr(at)]
            at = at.__cause__ or at.__context__
        return "\n".join(chain)


def stored(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def env(tmp_path: Path) -> TableEnvironment:
    return TableEnvironment.create(engine="duckdb", warehouse=str(tmp_path / "wh"))


def test_a_table_with_a_connector_shows_no_secret(env: TableEnvironment, tmp_path: Path) -> None:
    options = ", ".join(f"'{key}' = '{CANARY}'" for key in SECRETS if key != "tablestore.password")
    env.execute_sql(f"CREATE TEMPORARY TABLE c (id INT) WITH ('connector' = 'jdbc', 'url' = '{URLS[0]}', {options})")
    pq.write_table(pa.table({"id": [1]}), tmp_path / "f.parquet")
    env.execute_sql(f"CREATE TABLE f (id INT) WITH ('connector' = 'filesystem', 'path' = '{tmp_path}/f.parquet')")
    env.execute_sql(f"CREATE TEMPORARY VIEW v AS SELECT * FROM f /*+ OPTIONS('password' = '{CANARY}') */")
    for query in (*QUERIES, "SELECT * FROM c", "EXPLAIN SELECT * FROM c", "INSERT INTO c VALUES (1)", "SELECT * FROM v"):
        assert CANARY not in printed(env, query), query
    assert "'password' = '***'" in env.execute_sql("SHOW CREATE TABLE c").to_reader().read_all().column(0)[0].as_py()
    assert CANARY not in repr(env._session.objects.temporary_tables())


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("key", ["password", "sasl.jaas.config", "spark.hadoop.fs.s3a.secret.key", "k", "execution.pin"])
def test_a_statement_that_fails_does_not_repeat_a_value_of_its_options(env: TableEnvironment, key: str) -> None:
    env.execute_sql("CREATE TABLE there (id INT)")
    for value, place in itertools.product(VALUES, PLACES):
        statement = place.format(key=key, value=value)
        assert CANARY not in printed(env, statement), statement


@pytest.mark.deep_after(7)
@pytest.mark.parametrize("key", SECRETS)
def test_a_managed_table_takes_no_secret(env: TableEnvironment, tmp_path: Path, key: str) -> None:
    for statement in (
        f"CREATE TABLE t (id INT) WITH ('bucket' = '1', '{key}' = '{CANARY}')",
        f"CREATE TABLE t WITH ('{key}' = '{CANARY}') AS SELECT 1 AS id",
        f"CREATE MATERIALIZED TABLE t WITH ('{key}' = '{CANARY}') AS SELECT 1 AS id",
        f"SET 'table-storage.{key}' = '{CANARY}'",
        f"ALTER TABLE there SET ('{key}' = '{CANARY}')",
        f"SELECT * FROM there /*+ OPTIONS('{key}' = '{CANARY}') */",
    ):
        if statement.startswith("ALTER"):
            env.execute_sql("CREATE TABLE there (id INT)")
        said = printed(env, statement)
        assert "Error" in said and CANARY not in said, statement
    assert CANARY.encode() not in stored(tmp_path)
