"""Temporary tables and views: names, what they hide, drops, lists; as FLIP-64 has them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts

Rows = Callable[[Any], list[tuple[Any, ...]]]
BLACKHOLE = {"connector": "blackhole"}


def test_a_view_of_text_query_arrow_pandas_and_scan_reads_as_rows(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.execute_sql("CREATE TABLE t (id INT, v STRING)")
    duck.execute_sql("INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    arrow = pa.table({"id": [1, 2], "v": ["a", "b"]})
    table = duck.catalog().table("default.t")
    for what in [
        "SELECT * FROM t",
        duck.sql_query("SELECT * FROM t"),
        duck.from_path("t"),
        arrow,
        arrow.to_reader(),
        arrow.to_pandas(),
        [{"id": 1, "v": "a"}, {"id": 2, "v": "b"}],
        table.scan(),
        duck.execute_sql("SELECT * FROM t"),
    ]:
        duck.create_temporary_view("w", what, replace=True)
        for _ in range(2):
            assert rows_of(duck.execute_sql("SELECT id, v FROM w ORDER BY id")) == [(1, "a"), (2, "b")]


def test_a_view_of_a_relation_of_the_engine_is_read_by_the_engine(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    assert duck.engine is not None
    native = duck.engine.execute("SELECT 1 AS a, 'x' AS b")
    assert native is not None
    duck.create_temporary_view("w", native.native)
    assert rows_of(duck.execute_sql("SELECT b, a FROM w")) == [("x", 1)]


def test_what_is_no_view_is_refused(duck: ts.TableEnvironment) -> None:
    for what, message in [
        (7, "expected rows as an Arrow table"),
        ("DROP TABLE t", "expected a query"),
        ("SELECT 1 FROM nowhere", "does not exist"),
        (duck.sql_query("SELECT :n AS n", n=[1]), "which no literal stands for"),
    ]:
        with pytest.raises(ts.TablestoreError, match=message):
            duck.create_temporary_view("w", what)
    assert duck.list_temporary_views() == ()


def test_a_view_keeps_the_names_that_its_query_had_when_it_was_made(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.execute_script("CREATE TABLE t (id INT); INSERT INTO t VALUES (1); CREATE DATABASE other")
    duck.create_temporary_view("w", duck.from_path("t"))
    duck.use_database("other")
    assert rows_of(duck.execute_sql("SELECT * FROM `default`.w")) == [(1,)]
    with pytest.raises(ts.NotFoundError):
        duck.execute_sql("SELECT * FROM w")


@pytest.mark.parametrize(
    ("path", "whole"),
    [
        ("t", "`tablestore`.`default`.`t`"),
        ("shop.t", "`tablestore`.`shop`.`t`"),
        ("lake.shop.t", "`lake`.`shop`.`t`"),
        ("`a.b`.`c``d`.`e f`", "`a.b`.`c``d`.`e f`"),
    ],
)
def test_paths_of_one_to_three_parts_are_filled_up_also_where_nothing_of_that_name_exists(
    env: ts.TableEnvironment, path: str, whole: str
) -> None:
    env.create_temporary_table(path, BLACKHOLE, pa.schema([("id", pa.int64())]), primary_key="id")
    with pytest.raises(ts.AlreadyExistsError, match="already exists") as error:
        env.create_temporary_table(whole, BLACKHOLE)
    assert f"Temporary table '{whole}' already exists" in str(error.value)
    env.create_temporary_table(whole, BLACKHOLE, ignore_if_exists=True)
    assert env.drop_temporary_table(whole) and not env.drop_temporary_table(path)


@pytest.mark.parametrize("path", ["", "a.", ".a", "a..b", "a.b.c.d", "`a", "a`", "``", "a b", "a.``"])
def test_paths_with_empty_parts_four_parts_or_open_backticks_are_errors(env: ts.TableEnvironment, path: str) -> None:
    for use in (
        lambda: env.create_temporary_table(path, BLACKHOLE),
        lambda: env.create_temporary_view(path, pa.table({"a": [1]})),
        lambda: env.drop_temporary_table(path),
        lambda: env.drop_temporary_view(path),
        lambda: env.from_path(path),
    ):
        with pytest.raises(ts.InvalidInputError):
            use()


def test_a_temporary_object_hides_the_permanent_table_for_reads_and_writes(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.execute_script("CREATE TABLE t (id INT); INSERT INTO t VALUES (1)")
    duck.create_temporary_view("t", pa.table({"id": [7]}))
    assert rows_of(duck.execute_sql("SELECT * FROM t")) == [(7,)]
    assert rows_of(duck.from_path("tablestore.`default`.t")) == [(7,)]
    with pytest.raises(ts.InvalidInputError, match="is a temporary view"):
        duck.execute_sql("INSERT INTO t VALUES (2)")
    duck.execute_sql("DROP TEMPORARY VIEW t")
    duck.execute_script("CREATE TEMPORARY TABLE t (id INT); INSERT INTO t VALUES (8)")
    assert rows_of(duck.execute_sql("SELECT * FROM t")) == [(8,)]
    assert duck.drop_temporary_table("t")
    assert rows_of(duck.execute_sql("SELECT * FROM t")) == [(1,)]


def test_a_permanent_table_is_not_dropped_while_a_temporary_object_has_its_name(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (id INT)")
    env.create_temporary_table("t", BLACKHOLE)
    message = "Temporary {} with identifier '`tablestore`.`default`.`t`' exists. Drop it first before removing the permanent {}."
    for statement in ("DROP TABLE t", "DROP TABLE IF EXISTS t", "DROP TABLE tablestore.`default`.t"):
        with pytest.raises(ts.InvalidInputError) as error:
            env.execute_sql(statement)
        assert message.format("table", "table") in str(error.value)
    with pytest.raises(ts.InvalidInputError) as error:
        env.execute_sql("DROP VIEW t")
    assert message.format("table", "view") in str(error.value)
    env.drop_temporary_table("t")
    env.create_temporary_view("t", pa.table({"a": [1]}))
    with pytest.raises(ts.InvalidInputError) as error:
        env.execute_sql("DROP TABLE t")
    assert message.format("view", "table") in str(error.value)
    env.execute_script("DROP TEMPORARY VIEW t; DROP TABLE t")
    assert env.list_tables() == ()


def test_drops_of_the_wrong_kind_find_nothing_and_touch_nothing(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE p (id INT)")
    env.create_temporary_table("t", BLACKHOLE)
    env.create_temporary_view("v", pa.table({"a": [1]}))
    for kind, name in [("View", "t"), ("Table", "v"), ("Table", "p"), ("View", "p"), ("View", "nothing"), ("Table", "nothing")]:
        with pytest.raises(ts.NotFoundError) as error:
            env.execute_sql(f"DROP TEMPORARY {kind} {name}")
        assert f"{kind} with identifier '`tablestore`.`default`.`{name}`' does not exist." in str(error.value)
        env.execute_sql(f"DROP TEMPORARY {kind} IF EXISTS {name}")
    assert not env.drop_temporary_view("t") and not env.drop_temporary_table("v") and not env.drop_temporary_table("p")
    assert (env.list_tables(), env.list_temporary_tables(), env.list_temporary_views()) == (("p",), ("t",), ("v",))


def test_lists_name_permanent_tables_only_unless_asked(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_script("CREATE TABLE p (id INT); CREATE TABLE c (id INT) WITH ('connector' = 'kafka')")
    env.create_temporary_table("b", BLACKHOLE)
    env.create_temporary_table("p", BLACKHOLE)
    env.create_temporary_view("a", pa.table({"a": [1]}))
    env.create_temporary_table("nowhere.shop.far", BLACKHOLE)
    assert env.list_tables() == ("c", "p")
    assert env.list_tables(include_temporary=True) == ("a", "b", "c", "p")
    assert (env.list_temporary_tables(), env.list_temporary_views()) == (("b", "p"), ("a",))
    for text, names in [
        ("SHOW TABLES", ["c", "p"]),
        ("SHOW TEMPORARY TABLES", ["b", "p"]),
        ("SHOW TEMPORARY TABLES LIKE 'b%'", ["b"]),
        ("SHOW TEMPORARY TABLES FROM nowhere.shop", ["far"]),
        ("SHOW TEMPORARY VIEWS", ["a"]),
    ]:
        assert [name for (name,) in rows_of(env.execute_sql(text))] == names, text


def test_or_replace_replaces_a_view_and_no_table(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.execute_sql("CREATE TEMPORARY VIEW v AS SELECT 1 AS a")
    with pytest.raises(ts.AlreadyExistsError, match=r"Temporary view '`tablestore`\.`default`\.`v`' already exists"):
        duck.execute_sql("CREATE TEMPORARY VIEW v AS SELECT 2 AS a")
    duck.execute_sql("CREATE TEMPORARY VIEW IF NOT EXISTS v AS SELECT 3 AS a")
    assert rows_of(duck.execute_sql("SELECT * FROM v")) == [(1,)]
    duck.execute_sql("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT 4 AS a")
    assert rows_of(duck.execute_sql("SELECT * FROM v")) == [(4,)]
    with pytest.raises(ts.AlreadyExistsError, match="Temporary view"):
        duck.execute_sql("CREATE TEMPORARY TABLE v (id INT)")
    duck.execute_sql("CREATE TEMPORARY TABLE t (id INT)")
    with pytest.raises(ts.AlreadyExistsError, match="Temporary table"):
        duck.execute_sql("CREATE OR REPLACE TEMPORARY VIEW t AS SELECT 1")


def test_a_view_that_would_read_itself_is_refused_and_the_old_one_kept(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.execute_script("CREATE TEMPORARY VIEW v AS SELECT 1 AS a; CREATE TEMPORARY VIEW w AS SELECT a + 1 AS b FROM v")
    for query in ("SELECT * FROM v", "SELECT 1 AS a WHERE 1 IN (SELECT a FROM default.v)", "SELECT b AS a FROM w"):
        with pytest.raises(ts.InvalidInputError, match="would read itself") as caught:
            duck.execute_sql(f"CREATE OR REPLACE TEMPORARY VIEW v AS {query}")
        assert caught.value.kind == "recursive-view"
        assert rows_of(duck.execute_sql("SELECT b FROM w")) == [(2,)]
    duck.execute_sql("CREATE TABLE t (a INT)")
    with pytest.raises(ts.InvalidInputError, match="would read itself"):
        duck.create_temporary_view("t", "SELECT * FROM t")
    assert duck.execute_sql("SELECT * FROM t").count() == 0
    duck.execute_sql("CREATE OR REPLACE TEMPORARY VIEW v AS WITH v AS (SELECT 7 AS a) SELECT * FROM v")
    assert rows_of(duck.execute_sql("SELECT * FROM v")) == [(7,)]


def test_a_temporary_table_is_properties_that_are_resolved_when_it_is_used(
    duck: ts.TableEnvironment, rows_of: Rows, tmp_path: Path
) -> None:
    folder = tmp_path / "later"
    options = {"connector": "filesystem", "path": str(folder / "*.csv"), "format": "csv"}
    duck.create_temporary_table("t", options, pa.schema([("a", "int32")]))
    pairs = ", ".join(f"'{key}' = '{value}'" for key, value in options.items())
    duck.execute_sql(f"CREATE TEMPORARY TABLE u (a INT) WITH ({pairs})")
    duck.create_temporary_table("odd", {"connector": "nobody knows it"})
    folder.mkdir()
    (folder / "one.csv").write_text("5\n6\n")
    assert rows_of(duck.execute_sql("SELECT sum(a) FROM t")) == rows_of(duck.execute_sql("SELECT sum(a) FROM u")) == [(11,)]
    with pytest.raises(ts.UnsupportedError, match="nobody knows it"):
        duck.execute_sql("SELECT * FROM odd")


def test_a_managed_temporary_table_takes_all_that_a_table_takes(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    duck.execute_sql("CREATE TEMPORARY TABLE nowhere.shop.t (id INT, v STRING, w AS upper(v), PRIMARY KEY (id) NOT ENFORCED)")
    duck.execute_script(
        """
        INSERT INTO nowhere.shop.t VALUES (1, 'a'), (2, 'b');
        UPDATE nowhere.shop.t SET v = 'c' WHERE id = 2;
        DELETE FROM nowhere.shop.t WHERE id = 1;
        ALTER TABLE nowhere.shop.t ADD COLUMN n INT;
        ALTER TABLE nowhere.shop.t COMPACT
        """
    )
    assert rows_of(duck.execute_sql("SELECT id, v, w, n FROM nowhere.shop.t")) == [(2, "c", "C", None)]
    assert rows_of(duck.execute_sql("SELECT count(*) > 0 FROM nowhere.shop.t$snapshots")) == [(True,)]
    assert "CREATE" in str(rows_of(duck.execute_sql("SHOW CREATE TABLE nowhere.shop.t")))
    with pytest.raises(ts.UnsupportedError, match="keeps its name"):
        duck.execute_sql("ALTER TABLE nowhere.shop.t RENAME TO u")


def test_a_managed_temporary_table_leaves_its_storage_and_dropping_it_deletes_it(tmp_path: Path, rows_of: Rows) -> None:
    storage = tmp_path / "wh" / "temporary.db" / "tablestore-default-a--b"
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as env:
        env.execute_script("CREATE TEMPORARY TABLE `a-b` (id INT); INSERT INTO `a-b` VALUES (1)")
    assert storage.is_dir()
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as env:
        assert env.list_temporary_tables() == ()
        with pytest.raises(ts.AlreadyExistsError, match="already exists; CREATE TEMPORARY TABLE IF NOT EXISTS takes it as it is"):
            env.execute_sql("CREATE TEMPORARY TABLE `a-b` (id INT)")
        env.execute_sql("CREATE TEMPORARY TABLE IF NOT EXISTS `a-b` (id INT)")
        assert rows_of(env.execute_sql("SELECT * FROM `a-b`")) == [(1,)]
        env.execute_sql("DROP TEMPORARY TABLE `a-b`")
        assert not storage.exists()
        env.create_temporary_table("`a-b`", schema=pa.schema([("id", "int32")]))
        assert storage.is_dir() and env.drop_temporary_table("`a-b`") and not storage.exists()


def test_a_temporary_table_as_a_query_is_refused_and_points_to_a_view(duck: ts.TableEnvironment) -> None:
    with pytest.raises(ts.UnsupportedError, match="CREATE TEMPORARY VIEW"):
        duck.execute_sql("CREATE TEMPORARY TABLE t AS SELECT 1 AS a")
    with pytest.raises(ts.UnsupportedError, match="CREATE OR REPLACE TEMPORARY TABLE"):
        duck.execute_sql("CREATE OR REPLACE TEMPORARY TABLE t (a INT)")


def test_dropping_a_database_with_all_its_tables_leaves_temporary_objects(env: ts.TableEnvironment) -> None:
    env.execute_script("CREATE DATABASE d; CREATE TABLE d.t (id INT)")
    env.create_temporary_table("d.t", schema=pa.schema([("id", "int32")]))
    env.execute_sql("DROP DATABASE d CASCADE")
    assert env.drop_temporary_table("d.t")


def test_deprecated_names_work_and_warn_with_the_new_name(duck: ts.TableEnvironment, rows_of: Rows) -> None:
    rows = pa.table({"id": [1]})
    calls: list[tuple[str, str, tuple[Any, ...]]] = [
        ("register_table", "create_temporary_view", ("a.b", rows)),
        ("register_data_stream", "create_temporary_view", ("s", rows)),
        ("register_data_set", "create_temporary_view", ("d", rows)),
        ("register_table_source", "create_temporary_table", ("source", BLACKHOLE)),
        ("register_table_sink", "create_temporary_table", ("sink", BLACKHOLE)),
    ]
    for old, new, arguments in calls:
        with pytest.warns(DeprecationWarning, match=f"{old} is deprecated: use {new}"):
            getattr(duck, old)(*arguments)
    with pytest.warns(DeprecationWarning, match="scan is deprecated: use from_path"):
        assert rows_of(duck.scan("tablestore", "default", "a.b")) == [(1,)]
    assert duck.list_temporary_views() == ("a.b", "d", "s")
    assert duck.list_temporary_tables() == ("sink", "source")
