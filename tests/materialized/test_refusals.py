"""What a materialized table does not take: rows of users, plain statements, sources that do not last, circles."""

from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.store.history.retentionleases import RetentionLeases
from tablestore.types.evolution.schemachanges import RequireOption

TABLE = "CREATE MATERIALIZED TABLE t (PRIMARY KEY (id) NOT ENFORCED) REFRESH_MODE = FULL AS SELECT id, v FROM s"


@pytest.fixture
def env(duck: ts.TableEnvironment) -> ts.TableEnvironment:
    duck.execute_sql("CREATE TABLE s (id BIGINT, v INT)")
    duck.execute_sql(TABLE)
    return duck


def error_of(env: ts.TableEnvironment, text: str) -> str:
    with pytest.raises(ts.TablestoreError) as error:
        env.execute_sql(text)
    return str(error.value)


def table_of(env: ts.TableEnvironment, name: str) -> ts.Table:
    found = env.catalog().table(f"default.{name}")
    assert isinstance(found, ts.Table)
    return found


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t VALUES (1, 2)",
        "INSERT OVERWRITE t VALUES (1, 2)",
        "DELETE FROM t WHERE id = 1",
        "UPDATE t SET v = 1",
        "MERGE INTO t USING s ON t.id = s.id WHEN MATCHED THEN DELETE",
        "TRUNCATE TABLE t",
    ],
)
def test_rows_of_users_are_refused_with_the_way_out(env: ts.TableEnvironment, text: str) -> None:
    message = error_of(env, text)
    assert "tablestore.default.t is a materialized table" in message and "line 1" in message
    assert "change the tables that it reads, and ALTER MATERIALIZED TABLE … REFRESH it" in message


@pytest.mark.parametrize("call", ["CALL sys.rollback_to('default.t', 1)", "rollback_to", "fast_forward"])
def test_rows_of_the_past_are_refused_too(env: ts.TableEnvironment, call: str) -> None:
    env.execute_sql("INSERT INTO s VALUES (1, 1)")
    env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    table_of(env, "t").create_branch("old")
    env.execute_sql("INSERT INTO s VALUES (2, 2)")
    env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    with pytest.raises(ts.InvalidInputError, match="its rows are those of its query"):
        if call == "rollback_to":
            table_of(env, "t").rollback_to(1)
        elif call == "fast_forward":
            table_of(env, "t").fast_forward("old", discard_newer=True)
        else:
            env.execute_sql(call)
    assert table_of(env, "t").scan().count() == 2


def test_create_if_not_exists_leaves_a_materialized_table_as_it_is(env: ts.TableEnvironment) -> None:
    env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    before = table_of(env, "t").scan().to_arrow()
    (notice,) = env.execute_sql("CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS id, 2 AS v").notices
    assert notice.message == "table tablestore.default.t is there already; nothing was done"
    assert table_of(env, "t").scan().to_arrow() == before


@pytest.mark.parametrize(
    ("text", "way_out"),
    [
        ("DROP TABLE t", "DROP MATERIALIZED TABLE drops it"),
        ("DROP TABLE IF EXISTS t", "DROP MATERIALIZED TABLE drops it"),
        ("ALTER TABLE t ADD COLUMN w INT", "ALTER MATERIALIZED TABLE and CREATE OR ALTER MATERIALIZED TABLE change its definition"),
        ("ALTER TABLE t SET ('write-only' = 'true')", "ALTER MATERIALIZED TABLE and CREATE OR ALTER MATERIALIZED TABLE"),
        ("ALTER TABLE t RENAME TO u", "ALTER MATERIALIZED TABLE and CREATE OR ALTER MATERIALIZED TABLE change its definition"),
        ("COMMENT ON TABLE t IS 'x'", "ALTER MATERIALIZED TABLE and CREATE OR ALTER MATERIALIZED TABLE change its definition"),
        ("CREATE OR REPLACE TABLE t AS SELECT 1 AS id", "CREATE OR ALTER MATERIALIZED TABLE change its definition"),
        ("SHOW CREATE TABLE t", "SHOW CREATE MATERIALIZED TABLE shows its statement"),
    ],
)
def test_statements_for_plain_tables_name_the_right_one(env: ts.TableEnvironment, text: str, way_out: str) -> None:
    message = error_of(env, text)
    assert "tablestore.default.t is a materialized table" in message and way_out in message and "line 1" in message


def test_python_does_not_write_its_rows_either(env: ts.TableEnvironment) -> None:
    table, rows = table_of(env, "t"), pa.table({"id": pa.array([1], pa.int64()), "v": pa.array([1], pa.int32())})
    for write in (
        lambda: table.upsert(rows),
        lambda: table.overwrite(rows, {}),
        lambda: table.delete(rows.select(["id"])),
        lambda: table.write_changes(rows.append_column("_row_kind", pa.array(["+I"]))),
    ):
        with pytest.raises(ts.InvalidInputError, match="is a materialized table: its rows are those of its query"):
            write()
    assert table.snapshots() == ()


def test_what_only_moves_rows_is_allowed(env: ts.TableEnvironment) -> None:
    env.execute_sql("INSERT INTO s VALUES (1, 1)")
    env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    env.execute_sql("ALTER TABLE t COMPACT")
    (row,) = env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH").to_arrow().to_pylist()
    assert row["mode"] == "none"


@pytest.mark.deep_after(7)
@pytest.mark.parametrize(
    ("setup", "query", "message"),
    [
        ("CREATE TEMPORARY VIEW v AS SELECT * FROM s", "SELECT * FROM v", "is a temporary view of this session"),
        ("CREATE TEMPORARY TABLE x (id BIGINT)", "SELECT * FROM x", "is a temporary table of this session"),
        ("CREATE TEMPORARY VIEW s AS SELECT 1 AS id", "SELECT * FROM s", "is a temporary view of this session"),
        ("CREATE TABLE c (id INT) WITH ('connector' = 'x')", "SELECT * FROM c", "whose changes nobody knows"),
        ("SELECT 1", "SELECT id FROM nowhere", "Table with identifier '`tablestore`.`default`.`nowhere`' does not exist"),
        ("SELECT 1", "SELECT id FROM table_changes('s', 0)", "table_changes gives changes between two snapshots"),
        ("SELECT 1", "SELECT wrong FROM s", "wrong"),
        ("SELECT 1", "SELECT id, id FROM s", "duplicate column names"),
        ("SELECT 1", "SELECT id + 1 FROM s", "a column of the table needs a name"),
        ("SELECT 1", "SELECT NULL AS n FROM s", "the type of the column 'n' is not known"),
        ("SELECT 1", "SELECT id FROM s WHERE v = :v", "v"),
        ("SELECT 1", "SELECT id FROM t2", "does not exist"),
    ],
)
def test_a_query_that_does_not_outlive_the_session_or_makes_no_table_is_refused(
    env: ts.TableEnvironment, setup: str, query: str, message: str
) -> None:
    env.execute_sql(setup)
    for kind in ("", "OR ALTER "):
        found = error_of(env, f"CREATE {kind}MATERIALIZED TABLE t2 REFRESH_MODE = FULL\nAS {query}")
        assert message in found and "line 2" in found
    assert "t2" not in env.list_tables()


def test_a_function_of_the_session_is_refused(env: ts.TableEnvironment) -> None:
    def twice(v: int) -> int:
        return 2 * v

    env.create_temporary_system_function("twice", twice)
    message = error_of(env, "CREATE MATERIALIZED TABLE x AS SELECT twice(v) AS w FROM s")
    assert "the function twice is a temporary one of this session" in message and "column 39" in message


def test_circles_are_refused(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE MATERIALIZED TABLE u REFRESH_MODE = FULL AS SELECT id, v FROM t")
    env.execute_sql("CREATE MATERIALIZED TABLE w REFRESH_MODE = FULL AS SELECT id, v FROM u")
    for query in ("SELECT id, v FROM t", "SELECT id, v FROM u", "SELECT s.id, s.v FROM s JOIN w ON s.id = w.id"):
        message = error_of(env, f"ALTER MATERIALIZED TABLE t AS {query}")
        assert "a materialized table cannot be made from itself: tablestore.default.t reads" in message


@pytest.mark.parametrize(
    "text",
    [
        "CREATE TABLE x (id INT) WITH ('type' = 'materialized-table')",
        "CREATE TABLE x (id INT) WITH ('materialized-table.definition-query' = 'SELECT 1')",
        "CREATE TABLE x (id INT) WITH ('tablestore.materialized-table.epoch' = '1')",
        "ALTER TABLE s SET ('materialized-table.refresh-mode' = 'FULL')",
        "ALTER MATERIALIZED TABLE t SET ('materialized-table.refresh-status' = 'SUSPENDED')",
        "ALTER MATERIALIZED TABLE t RESET ('tablestore.materialized-table.epoch')",
        "CREATE MATERIALIZED TABLE x WITH ('type' = 'table') REFRESH_MODE = FULL AS SELECT id FROM s",
    ],
)
def test_nobody_writes_the_definition_by_hand(env: ts.TableEnvironment, text: str) -> None:
    assert "is where the definition of a materialized table is kept" in error_of(env, text)


def test_a_table_like_a_materialized_one_is_a_plain_one(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE copy LIKE t")
    env.execute_sql("INSERT INTO copy VALUES (1, 1)")
    assert "type" not in table_of(env, "copy").options()


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("FRESHNESS = INTERVAL '1' MONTH", "Materialized table freshness only supports SECOND, MINUTE, HOUR, DAY"),
        ("FRESHNESS = INTERVAL '0' DAY", "The freshness interval currently only supports positive integer type values"),
        (
            "FRESHNESS = INTERVAL '7' HOUR",
            "In full refresh mode, only freshness that are factors of 24 are currently supported when the time unit is HOUR.",
        ),
        ("PARTITIONED BY (day)", "Partition column 'day' not defined in the query's schema. Available columns: [id, v]."),
        ("WITH ('partition.fields.v.date-formatter' = 'yyyy')", "referenced by materialized table option"),
        ("WITH ('no.such' = '1')", "unknown table option 'no.such'"),
    ],
)
def test_clauses_that_cannot_be_are_refused_before_anything_is_made(env: ts.TableEnvironment, clauses: str, message: str) -> None:
    assert message in error_of(env, f"CREATE MATERIALIZED TABLE x {clauses} AS SELECT id, v FROM s")
    assert "x" not in env.list_tables()


def test_lists_show_materialized_tables(env: ts.TableEnvironment) -> None:
    names = env.execute_sql("SHOW MATERIALIZED TABLES").to_arrow()["materialized_table"].to_pylist()
    assert (names, env.list_tables()) == (["t"], ("s", "t"))
    assert env.execute_sql("SHOW MATERIALIZED TABLES LIKE 'x%'").to_arrow().num_rows == 0


def test_the_definition_is_given_in_python(env: ts.TableEnvironment) -> None:
    definition = env.materialized_table("t")
    assert definition.get_original_query() == "SELECT id, v FROM s"
    assert definition.get_expanded_query() == "SELECT id, v FROM `tablestore`.`default`.`s`"
    with pytest.raises(ts.InvalidInputError, match="is not a materialized table"):
        env.materialized_table("s")


def test_a_table_that_is_what_is_declared_writes_nothing_to_the_store(
    env: ts.TableEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tablestore.io.local import LocalFileStore

    env.execute_sql(TABLE.replace("CREATE", "CREATE OR ALTER"))
    written: list[str] = []

    def spied(name: str) -> Any:
        original = getattr(LocalFileStore, name)

        def spy(self: Any, path: str, *args: Any, **more: Any) -> Any:
            written.append(f"{name} {path}")
            return original(self, path, *args, **more)

        return spy

    for name in ("publish_if_absent", "overwrite", "write", "delete", "delete_directory"):
        if hasattr(LocalFileStore, name):
            monkeypatch.setattr(LocalFileStore, name, spied(name))
    env.execute_sql(TABLE.replace("CREATE", "CREATE OR ALTER"))
    env.execute_sql(TABLE.replace("CREATE", "CREATE OR ALTER").replace("SELECT id, v", "select /* same */\n`id` ,v"))
    assert written == []
    env.execute_sql(TABLE.replace("CREATE", "CREATE OR ALTER").replace("FROM s", "FROM s WHERE v > 1"))
    assert written != []


def test_python_changes_columns_and_options_with_the_definition_only(env: ts.TableEnvironment) -> None:
    env.execute_sql("INSERT INTO s VALUES (1, 1)")
    env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    table, before = table_of(env, "t"), table_of(env, "t").table_schema.id
    for change in (
        ts.AddColumn("w", "INT"),
        ts.DropColumn("v"),
        ts.RenameColumn("v", to="w"),
        ts.MoveColumn("v", first=True),
        ts.ChangeType("v", "BIGINT"),
        ts.ChangeNullability("v", nullable=False),
        ts.ChangeDefault("v", "1"),
        ts.SetOption("write-only", "true"),
        ts.SetOption("materialized-table.refresh-status", "SUSPENDED"),
        ts.RemoveOption("tablestore.materialized-table.epoch"),
        ts.SetTableComment("x"),
    ):
        for alter in (table.alter, lambda one: env.catalog().alter_table("default.t", one)):
            with pytest.raises(ts.InvalidInputError, match=rf"{type(change).__name__} is not for a materialized table") as error:
                alter([ts.ChangeComment("v", "first"), change])
            assert error.value.kind == "materialized-table" and "ALTER MATERIALIZED TABLE … AS query" in str(error.value)
    assert table_of(env, "t").table_schema.id == before
    table.alter(ts.ChangeComment("v", "how much"))
    env.execute_sql("ALTER TABLE t ALTER COLUMN id COMMENT 'which'")
    assert [one.description for one in table.refresh().table_schema.fields] == ["which", "how much"]
    env.execute_sql("INSERT INTO s VALUES (2, 2)")
    (row,) = env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH VERIFY").to_arrow().to_pylist()
    assert (row["mode"], row["missing"], row["extra"]) == ("incremental", 0, 0)
    env.execute_sql(f"CREATE OR ALTER {TABLE.removeprefix('CREATE ')}")
    env.execute_sql("ALTER MATERIALIZED TABLE t AS SELECT id, v, v + 1 AS w FROM s")
    assert table.refresh().schema.names == ["id", "v", "w"]


def test_python_does_not_drop_rename_or_replace_one(env: ts.TableEnvironment) -> None:
    catalog = env.catalog()
    with pytest.raises(ts.InvalidInputError, match=r"DROP MATERIALIZED TABLE default\.t drops it, and ends what refreshes it"):
        catalog.drop_table("default.t", ignore_if_not_exists=True)
    with pytest.raises(ts.InvalidInputError, match="DROP DATABASE default CASCADE drops it"):
        catalog.drop_database("default", cascade=True)
    with pytest.raises(ts.InvalidInputError, match="is a materialized table, which keeps its name"):
        catalog.rename_table("default.t", "default.u")
    with pytest.raises(ts.InvalidInputError, match="a plain one does not take its place"):
        catalog.stage_replacement("default.t", "id BIGINT")
    assert env.list_tables() == ("s", "t") and catalog.list_creations() == ()
    env.execute_sql("DROP MATERIALIZED TABLE t")
    assert env.list_tables() == ("s",)


def test_a_database_goes_with_its_materialized_tables_and_what_refreshes_them(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE DATABASE mart")
    env.execute_sql("INSERT INTO s VALUES (1, 1)")
    env.execute_sql("CREATE MATERIALIZED TABLE mart.a FRESHNESS = INTERVAL '1' MINUTE AS SELECT id, v FROM s")
    env.execute_sql("CREATE MATERIALIZED TABLE mart.b FRESHNESS = INTERVAL '1' DAY AS SELECT id FROM mart.a")
    env.execute_sql("ALTER MATERIALIZED TABLE mart.b STAGE AS SELECT id, v FROM mart.a")
    env.execute_sql("CREATE TABLE mart.plain (id INT)")
    holds = RetentionLeases(table_of(env, "s").context.files)
    assert len(holds.all()) == env.execute_sql("SHOW JOBS").to_arrow().num_rows == 1
    assert "database 'mart' holds 4 table(s)" in error_of(env, "DROP DATABASE mart")
    env.execute_sql("DROP DATABASE mart CASCADE")
    assert holds.all() == () and env.execute_sql("SHOW JOBS").to_arrow().num_rows == 0
    env.execute_sql("DROP DATABASE IF EXISTS mart CASCADE")
    assert "mart" in error_of(env, "DROP DATABASE mart CASCADE")


def test_a_table_whose_definition_is_damaged_is_dropped(env: ts.TableEnvironment) -> None:
    env.execute_sql("INSERT INTO s VALUES (1, 1)")
    env.execute_sql("ALTER MATERIALIZED TABLE t REFRESH")
    # By another engine.
    epoch = RequireOption("tablestore.materialized-table.epoch", "1")
    table_of(env, "t").alter([epoch, ts.SetOption("tablestore.materialized-table.declared", "{")])
    assert "damaged" in error_of(env, "ALTER MATERIALIZED TABLE t REFRESH")
    assert list(table_of(env, "t").context.files.list("schema"))
    env.execute_sql("DROP MATERIALIZED TABLE t")
    assert env.list_tables() == ("s",) and RetentionLeases(table_of(env, "s").context.files).all() == ()
