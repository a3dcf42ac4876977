"""A definition that a stranger wrote into the warehouse does not act in the process that reads it."""

from pathlib import Path

import duckdb
import pytest
from tablestore_duckdb import open_engine

import tablestore as ts
from tests.support.sql.hostile import set_options, texts

QUERY = "materialized-table.definition-query"
ORIGINAL = "tablestore.materialized-table.original-query"
USES = (
    "ALTER MATERIALIZED TABLE t REFRESH",
    "ALTER MATERIALIZED TABLE t REFRESH VERIFY",
    "SELECT * FROM t",
    "EXPLAIN SELECT * FROM t",
    "CREATE TEMPORARY VIEW seen AS SELECT * FROM t",
    "SHOW CREATE MATERIALIZED TABLE t",
    "DESCRIBE EXTENDED t",
    "SHOW MATERIALIZED TABLES",
    "ALTER MATERIALIZED TABLE t STAGE AS SELECT id, v FROM s",
    "ALTER MATERIALIZED TABLE t SUSPEND",
    "ALTER MATERIALIZED TABLE t RESUME",
)


@pytest.fixture
def env(duck: ts.TableEnvironment) -> ts.TableEnvironment:
    duck.execute_sql("CREATE TABLE s (id BIGINT, v INT)")
    duck.execute_sql("INSERT INTO s VALUES (1, 1)")
    duck.execute_sql("CREATE MATERIALIZED TABLE t REFRESH_MODE = FULL AS SELECT id, v FROM s")
    duck.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    return duck


def outcome(env: ts.TableEnvironment, text: str) -> object:
    """The rows of a statement, or the error of ours that it gives."""
    try:
        return env.execute_sql(text).to_arrow().to_pylist()
    except ts.TablestoreError as error:
        return error


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("key", [QUERY, ORIGINAL])
def test_a_hostile_definition_gives_an_error_and_acts_nowhere(env: ts.TableEnvironment, tmp_path: Path, key: str) -> None:
    (tmp_path / "secret.csv").write_text("secret\n")
    before = env.execute_sql("SELECT * FROM s").to_arrow()
    for hostile in texts(str(tmp_path)):
        set_options(tmp_path / "wh" / "default.db" / "t", {key: hostile})
        for use in USES:
            found = outcome(env, use)
            assert not (tmp_path / "written").exists(), (hostile, use)
            assert "secret" not in str(found).replace("secret.csv", ""), (hostile, use, found)
        refused = outcome(env, "ALTER MATERIALIZED TABLE t REFRESH")
        assert isinstance(refused, ts.FormatError) and key in refused.message, (hostile, refused)
        assert outcome(env, "SELECT id, v FROM t") == [{"id": 1, "v": 1}], hostile
    assert env.execute_sql("SELECT * FROM s").to_arrow() == before


def test_a_table_of_a_hostile_definition_can_be_dropped(env: ts.TableEnvironment, tmp_path: Path) -> None:
    set_options(tmp_path / "wh" / "default.db" / "t", {QUERY: f"COPY (SELECT 1) TO '{tmp_path / 'written'}'"})
    with pytest.raises(ts.FormatError, match="DROP MATERIALIZED TABLE it, and create it anew"):
        env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    env.execute_sql("DROP MATERIALIZED TABLE t")
    assert not env.catalog().table_exists("default.t") and not (tmp_path / "written").exists()


def test_a_stored_definition_does_not_read_tables_of_the_engine(tmp_path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE private AS SELECT 7 AS id, 8 AS v")
        with ts.TableEnvironment.create(tmp_path / "wh", engine=open_engine(connection)) as env:
            env.execute_sql("CREATE TABLE s (id INT, v INT)")
            env.execute_sql("CREATE MATERIALIZED TABLE t REFRESH_MODE = FULL AS SELECT id, v FROM s")
            env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
            for name in ("private", "memory.main.private", "main.private"):
                set_options(tmp_path / "wh" / "default.db" / "t", {QUERY: f"SELECT id, v FROM {name}"})
                with pytest.raises(ts.NotFoundError):
                    env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
            assert outcome(env, "SELECT id FROM t") == []
            assert outcome(env, "SELECT id FROM private") == [{"id": 7}]


@pytest.mark.deep_after(3)
@pytest.mark.parametrize(
    "source", ["'SECRET'", '"SECRET"', "read_csv('SECRET')", "glob('SECRET')", "duckdb_settings()", "pragma_version()"]
)
def test_a_stored_definition_opens_no_file_of_the_host(env: ts.TableEnvironment, tmp_path: Path, source: str) -> None:
    (tmp_path / "secret.csv").write_text("id,v\n7,8\n")
    text = f"SELECT id, v FROM s UNION ALL SELECT * FROM {source.replace('SECRET', str(tmp_path / 'secret.csv'))}"
    set_options(tmp_path / "wh" / "default.db" / "t", {QUERY: text})
    with pytest.raises(ts.TablestoreError):
        env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    assert outcome(env, "SELECT id, v FROM t") == [{"id": 1, "v": 1}]
