"""A folder of SQL files: what it would change, changing it, and changing nothing the second time."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.materialized.folder.folderplan import Action

SOURCE = "CREATE TABLE IF NOT EXISTS orders (id BIGINT, item STRING, price DOUBLE, PRIMARY KEY (id) NOT ENFORCED);"
MADE = "CREATE OR ALTER MATERIALIZED TABLE {} FRESHNESS = INTERVAL '1' HOUR AS SELECT {}"
FILES = {
    # The first file by name reads what the last one makes.
    "a_totals.sql": MADE.format("totals", "item, sum(price) AS total FROM cheap GROUP BY item"),
    "b_source.sql": SOURCE,
    "sub/cheap.sql": "-- what we can afford\n" + MADE.format("cheap", "id, item, price FROM orders WHERE price < 10"),
}


@pytest.fixture
def env(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path) -> Callable[[Mapping[str, str]], Path]:
    def write(files: Mapping[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / "tables" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path / "tables"

    return write


Folder = Callable[[Mapping[str, str]], Path]


def actions(env: ts.TableEnvironment, folder: Path) -> list[tuple[str, str]]:
    return [(one.name.rpartition(".")[2], str(one.action)) for one in env.plan_folder(folder).statements]


def test_a_folder_is_applied_in_the_order_of_its_queries_and_once(env: ts.TableEnvironment, folder: Folder) -> None:
    tables = folder(FILES)
    everything = [(name, "create") for name in ("orders", "cheap", "totals")]
    assert actions(env, tables) == everything
    assert env.list_tables() == ()
    assert [(one.name.rpartition(".")[2], str(one.action)) for one in env.apply_folder(tables)] == everything
    assert actions(env, tables) == [(name, "no change") for name, _ in everything]
    folder({"a_totals.sql": FILES["a_totals.sql"].replace("SELECT item, ", "select   item ,\n")})
    schemas = [env.catalog().table(f"default.{name}").schema_history() for name in env.list_tables()]
    assert [one.action for one in env.apply_folder(tables)] == [Action.NOTHING] * 3
    assert [env.catalog().table(f"default.{name}").schema_history() for name in env.list_tables()] == schemas


def test_a_plan_shows_what_changes_and_what_is_known_later(env: ts.TableEnvironment, folder: Folder) -> None:
    tables = folder(FILES)
    list(env.apply_folder(tables))
    folder(
        {
            "a_totals.sql": FILES["a_totals.sql"].replace("AS total", "AS total, max(day) AS newest"),
            "sub/cheap.sql": FILES["sub/cheap.sql"]
            .replace("price FROM", "price, current_date() AS day FROM")
            .replace("'1'", "'2'"),
        }
    )
    plan = env.plan_folder(tables)
    assert [str(one.action) for one in plan.statements] == ["no change", "alter", "known later"]
    assert [line.split(" ")[0:2] for line in plan.statements[1].changes] == [["MODIFY", "QUERY"], ["SET", "FRESHNESS"]]
    assert plan.statements[2].changes == ("once tablestore.default.cheap is as declared",)
    assert [str(one.action) for one in env.apply_folder(tables)] == ["no change", "alter", "alter"]
    assert plan.undeclared == ()
    (tables / "a_totals.sql").unlink()
    assert [path.name for path in env.plan_folder(tables).undeclared] == ["totals"]


def test_another_query_or_key_is_staged_and_readers_keep_the_table_until_it_is_promoted(
    env: ts.TableEnvironment, folder: Folder
) -> None:
    tables = folder(FILES)
    list(env.apply_folder(tables))
    env.execute_sql("ALTER MATERIALIZED TABLE cheap REFRESH")
    totals = FILES["a_totals.sql"].replace("totals FRESHNESS", "totals (PRIMARY KEY (item) NOT ENFORCED) FRESHNESS")
    folder({"a_totals.sql": totals.replace("item, sum(price) AS total", "coalesce(item, '') AS item, count(*) AS pieces")})
    with pytest.raises(ts.TablestoreError, match="STAGE AS query, then PROMOTE"):
        env.plan_folder(tables)
    folder({"sub/cheap.sql": FILES["sub/cheap.sql"].replace("'1'", "'2'")})
    before = env.materialized_table("totals")
    planned = [Action.NOTHING, Action.ALTER, Action.STAGE]
    assert [one.action for one in env.plan_folder(tables, blue_green=True).statements] == planned
    assert [one.action for one in env.apply_folder(tables, blue_green=True)] == planned
    assert env.materialized_table("totals") == before
    (again,) = (one for one in env.plan_folder(tables, blue_green=True).statements if one.changes)
    assert (again.action, again.changes) == (Action.NOTHING, ("it is staged: COMPARE it, then PROMOTE it",))
    assert env.plan_folder(tables, blue_green=True).undeclared == ()
    env.evolution("totals").promote()
    assert env.materialized_table("totals").primary_key == ("item",)
    assert actions(env, tables) == [(name, "no change") for name in ("orders", "cheap", "totals")]


def test_a_database_is_declared_too(env: ts.TableEnvironment, folder: Folder) -> None:
    tables = folder(
        {
            "tables.sql": "CREATE DATABASE IF NOT EXISTS shop; "
            + SOURCE.replace("orders", "shop.orders")
            + MADE.format("shop.copy", "id FROM shop.orders")
        }
    )
    assert [action for _, action in actions(env, tables)] == ["create"] * 3
    list(env.apply_folder(tables))
    assert [action for _, action in actions(env, tables)] == ["no change"] * 3


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            {"a.sql": MADE.format("a", "id FROM b"), "b.sql": MADE.format("b", "id FROM a")},
            r"read each other: .*\(a.sql\).*\(b.sql\)",
        ),
        ({"a.sql": MADE.format("a", "id FROM a")}, r"read each other"),
        ({"a.sql": MADE.format("t", "1 AS x"), "b.sql": MADE.format("T2, t", "1")}, "b.sql: "),
        ({"a.sql": MADE.format("t", "1 AS x"), "b.sql": MADE.format("t", "2 AS x")}, "declared twice: in a.sql and in b.sql"),
        ({"a.sql": "DROP TABLE t"}, "a.sql: expected CREATE OR ALTER MATERIALIZED TABLE.*line 1"),
        ({"a.sql": "CREATE TABLE t (id BIGINT)"}, "IF NOT EXISTS"),
        ({"a.sql": MADE.format("t", "id FROM missing")}, "a.sql: .*missing.*line 1"),
        ({"a.sql": SOURCE, "b.sql": MADE.format("orders", "1 AS x")}, "declared twice"),
        ({"a.txt": ""}, "holds no file"),
    ],
)
def test_what_a_folder_cannot_declare_is_refused_with_its_file(
    env: ts.TableEnvironment, folder: Folder, files: Mapping[str, str], message: str
) -> None:
    with pytest.raises(ts.TablestoreError, match=f"(?s){message}"):
        env.plan_folder(folder(files))
    assert env.list_tables() == ()


def test_a_statement_that_fails_names_its_file_and_what_ran_before_stays(env: ts.TableEnvironment, folder: Folder) -> None:
    tables = folder({**FILES, "a_totals.sql": MADE.format("totals", "nothing FROM cheap")})
    with pytest.raises(ts.TablestoreError, match=r"(?s)a_totals.sql: .*nothing"):
        list(env.apply_folder(tables))
    assert env.list_tables() == ("cheap", "orders")
    folder(FILES)
    assert [str(one.action) for one in env.apply_folder(tables)] == ["no change", "no change", "create"]
