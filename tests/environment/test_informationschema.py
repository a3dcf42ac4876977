"""``information_schema`` describes a catalog to whoever looks around in it, on every engine."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts
from tablestore.environment.inspection.informationschema import SCHEMAS
from tablestore.environment.session.session import Session

ENGINES = ("duckdb", pytest.param("spark", marks=pytest.mark.spark))


@pytest.fixture(scope="module", params=ENGINES)
def env(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    where = tmp_path_factory.mktemp("wh")
    with ts.TableEnvironment.create(where, engine=request.param) as env:
        env.execute_sql("CREATE DATABASE shop")
        env.execute_sql(
            "CREATE TABLE shop.t (id BIGINT COMMENT 'the id', k VARCHAR(5) DEFAULT 'x', d DECIMAL(10, 2), at TIMESTAMP(3), "
            "c AS id + 1, PRIMARY KEY (id) NOT ENFORCED) COMMENT 'hello'"
        )
        env.execute_sql("CREATE TABLE other (x INT)")
        env.execute_sql("CREATE TEMPORARY VIEW v AS SELECT id, k FROM shop.t")
        env.execute_sql("CREATE TABLE f (a INT) WITH ('connector' = 'filesystem', 'path' = '/nowhere', 'format' = 'csv')")
        env.execute_sql("CREATE MATERIALIZED TABLE mt AS SELECT k, count(*) AS n FROM shop.t GROUP BY k")
        # Its refreshes open tables too.
        env.execute_sql("ALTER MATERIALIZED TABLE mt SUSPEND")
        yield env


def rows(env: ts.TableEnvironment, text: str, **options: Any) -> list[tuple[object, ...]]:
    return sorted((tuple(row.values()) for row in env.execute_sql(text, **options).to_arrow().to_pylist()), key=repr)


@pytest.mark.deep_after(1)
def test_tables_are_listed_with_their_kind(env: ts.TableEnvironment) -> None:
    assert rows(env, "SELECT table_schema, table_name, table_type, is_insertable_into FROM information_schema.tables") == [
        ("default", "f", "FOREIGN", "YES"),
        ("default", "mt", "MATERIALIZED TABLE", "NO"),
        ("default", "other", "BASE TABLE", "YES"),
        ("default", "v", "VIEW", "NO"),
        ("shop", "t", "BASE TABLE", "YES"),
    ]
    text = "SELECT table_catalog, TABLE_COMMENT FROM tablestore.INFORMATION_SCHEMA.Tables WHERE table_name = 't'"
    assert rows(env, text) == [("tablestore", "hello")]


@pytest.mark.deep_after(1)
def test_columns_are_those_of_the_standard(env: ts.TableEnvironment) -> None:
    text = (
        "SELECT column_name, ordinal_position, column_default, is_nullable, data_type, character_maximum_length AS l, "
        "numeric_precision AS p, numeric_scale AS s, datetime_precision AS dp, is_generated AS g, column_comment AS c "
        "FROM information_schema.columns WHERE table_schema = 'shop' AND table_name LIKE 't%' ORDER BY ordinal_position"
    )
    assert [tuple(row.values()) for row in env.execute_sql(text).to_arrow().to_pylist()] == [
        ("id", 1, None, "NO", "BIGINT", None, 64, 0, None, "NEVER", "the id"),
        ("k", 2, "x", "YES", "VARCHAR(5)", 5, None, None, None, "NEVER", None),
        ("d", 3, None, "YES", "DECIMAL(10, 2)", None, 10, 2, None, "NEVER", None),
        ("at", 4, None, "YES", "TIMESTAMP(3)", None, None, None, 3, "NEVER", None),
        ("c", 5, None, "YES", "BIGINT", None, None, None, None, "ALWAYS", None),
    ]
    assert rows(env, "SELECT column_name FROM information_schema.columns WHERE table_name = 'v'") == [("id",), ("k",)]


def test_schemata_views_and_routines_are_listed(env: ts.TableEnvironment) -> None:
    assert rows(env, "SELECT catalog_name, schema_name FROM information_schema.schemata") == [
        ("tablestore", "default"),
        ("tablestore", "shop"),
    ]
    assert rows(env, "SELECT table_name, view_definition FROM information_schema.views") == [("v", "SELECT id, k FROM shop.t")]
    text = "SELECT routine_schema, routine_type FROM information_schema.routines WHERE routine_name = 'compact'"
    assert rows(env, text) == [("sys", "PROCEDURE")]


def test_only_what_a_query_wants_is_opened(env: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    open_table = Session.open_table

    def noting(self: Session, path: Any) -> Any:
        opened.append(str(path))
        return open_table(self, path)

    def opened_by(text: str) -> list[str]:
        opened.clear()
        env.execute_sql(text).to_arrow()
        return [one for one in opened if "information_schema" not in one]

    monkeypatch.setattr(Session, "open_table", noting)
    assert opened_by("SELECT table_name FROM information_schema.tables") == []
    assert opened_by("SELECT table_type FROM information_schema.tables WHERE table_name = 't'") == ["tablestore.shop.t"]
    where = "table_schema = 'default' AND table_name IN ('other', 'nosuch')"
    assert opened_by(f"SELECT column_name FROM information_schema.columns WHERE {where}") == ["tablestore.default.other"]


def test_it_is_described_joined_and_left_alone(env: ts.TableEnvironment) -> None:
    assert [row[0] for row in rows(env, "DESCRIBE information_schema.views")] == sorted(SCHEMAS["views"].names)
    text = (
        "SELECT c.column_name FROM information_schema.columns AS c JOIN information_schema.tables AS t "
        "ON c.table_name = t.table_name WHERE t.table_type = 'VIEW'"
    )
    assert rows(env, text) == [("id",), ("k",)]
    with pytest.raises(ts.InvalidInputError, match="can only be read"):
        env.execute_sql("INSERT INTO information_schema.tables SELECT 1")
    with pytest.raises(ts.NotFoundError, match="information_schema has no table 'tabels'; did you mean 'tables'"):
        env.execute_sql("SELECT * FROM information_schema.tabels")
    with pytest.raises(ts.UnsupportedError, match="describes a catalog"):
        env.execute_sql("CREATE MATERIALIZED TABLE m2 AS SELECT table_name FROM information_schema.tables")


def test_functions_are_listed_by_patterns(env: ts.TableEnvironment) -> None:
    env.create_temporary_function("uppity", lambda text: text, arguments=["STRING"], returns="STRING")
    assert rows(env, "SHOW USER FUNCTIONS") == [("uppity",)]
    assert rows(env, "SHOW SYSTEM FUNCTIONS LIKE 'upp*'") == [("upper",)]
    assert ("upper",) in rows(env, "SHOW FUNCTIONS LIKE 'upp*'")
    text = "SELECT routine_name, routine_type FROM information_schema.routines WHERE routine_schema = 'default'"
    assert rows(env, text) == [("uppity", "FUNCTION")]
    env.drop_temporary_function("uppity")


@pytest.fixture
def alone(tmp_path: Path) -> Callable[..., ts.TableEnvironment]:
    return lambda **options: ts.TableEnvironment.create(tmp_path, engine="duckdb", **options)


def test_a_database_of_this_name_comes_first(alone: Callable[..., ts.TableEnvironment]) -> None:
    with alone() as env:
        env.execute_sql("CREATE DATABASE information_schema")
        env.execute_sql("CREATE TABLE information_schema.tables (x INT)")
        env.execute_sql("INSERT INTO information_schema.tables VALUES (7)")
        assert rows(env, "SELECT * FROM information_schema.tables") == [(7,)]
        assert rows(env, "SELECT table_name FROM information_schema.columns") == [("tables",)]
        with pytest.raises(ts.NotFoundError, match="does not exist"):
            env.execute_sql("SELECT * FROM information_schema.nosuch")


def test_a_restricted_environment_looks_around_too(alone: Callable[..., ts.TableEnvironment]) -> None:
    with alone() as env:
        env.execute_sql("CREATE TABLE t (x INT)")
    with alone(restricted=True) as env:
        assert rows(env, "SELECT table_name, table_type FROM information_schema.tables") == [("t", "BASE TABLE")]
        assert rows(env, "SHOW FUNCTIONS LIKE 'upper'") == [("upper",)]


def test_duckdbs_words_see_it_as_well(alone: Callable[..., ts.TableEnvironment]) -> None:
    with alone(sql_dialect="duckdb") as env:
        env.execute_sql("CREATE TABLE t (x INT)")
        assert rows(env, "FROM information_schema.columns SELECT column_name, data_type") == [("x", "INT")]
        assert ("list_aggregate",) in rows(env, "SHOW FUNCTIONS LIKE 'list_a*'")
        assert rows(env, "SHOW FUNCTIONS LIKE 'getenv|duckdb_*|current_database'") == []


def test_a_table_that_cannot_be_read_hides_no_other(alone: Callable[..., ts.TableEnvironment], tmp_path: Path) -> None:
    with alone() as env:
        env.execute_sql("CREATE TABLE bad (x INT)")
        env.execute_sql("CREATE TABLE good (x INT)")
        (schema,) = (tmp_path / "default.db" / "bad" / "schema").glob("schema-*")
        schema.write_text("{")
    with alone() as env:
        assert rows(env, "SELECT table_name, table_type FROM information_schema.tables") == [("bad", None), ("good", "BASE TABLE")]
        assert rows(env, "SELECT table_name FROM information_schema.columns") == [("good",)]


def test_a_folder_that_no_statement_can_name_is_in_the_way_of_nothing(tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path, engine="duckdb") as env:
        env.execute_sql("CREATE TABLE p (id INT)")
        (tmp_path / "we ird.db" / "x").mkdir(parents=True)
        found = env.execute_sql("SELECT table_schema, table_name FROM information_schema.tables").to_arrow().to_pylist()
        assert found == [{"table_schema": "default", "table_name": "p"}]
