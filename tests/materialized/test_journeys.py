"""The journeys of the design of materialized tables: one script, deployed again and again."""

from collections.abc import Callable
from typing import Any

import pytest

import tablestore as ts
from tablestore.materialized.materializedtable import RefreshStatus, definition_of, upkeep_of

Rows = Callable[[Any], list[tuple[Any, ...]]]

DEPLOY = """CREATE OR ALTER MATERIALIZED TABLE high_value_orders
FRESHNESS = INTERVAL '5' MINUTE
AS
SELECT
  user_id,
  product_id,
  price
FROM orders
WHERE price > 1000;"""
WITH_DESCRIPTION = DEPLOY.replace("  price\n", "  price,\n  description\n")


@pytest.fixture
def env(duck: ts.TableEnvironment) -> ts.TableEnvironment:
    duck.execute_sql("CREATE TABLE orders (user_id BIGINT, product_id INT, price DECIMAL(10, 2), description STRING)")
    duck.execute_sql("INSERT INTO orders VALUES (1, 10, 1500, 'large'), (2, 20, 700, 'mid'), (3, 30, 100, NULL)")
    return duck


def table_of(env: ts.TableEnvironment, name: str = "high_value_orders") -> ts.Table:
    found = env.catalog().table(f"default.{name}")
    assert isinstance(found, ts.Table)
    return found


def stamp(env: ts.TableEnvironment) -> tuple[Any, ...]:
    """What any action would change: schema, snapshots, job."""
    table = table_of(env)
    jobs = env.execute_sql("SHOW JOBS").to_arrow()["job_id"].to_pylist()
    return table.table_schema.id, len(table.snapshots()), jobs


def test_the_first_deployment_makes_the_table_and_starts_its_job(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql(DEPLOY)
    table = table_of(env)
    assert rows_of(env.sql_query("SELECT user_id, product_id FROM high_value_orders")) == [(1, 10)]
    assert upkeep_of(table.table_schema).status is RefreshStatus.ACTIVATED
    (job,) = env.execute_sql("SHOW JOBS").to_arrow().to_pylist()
    handler = upkeep_of(table.table_schema).handler
    assert handler is not None and job["job_id"] in handler.summary and job["status"] == "RUNNING"
    definition = definition_of(table.table_schema)
    assert definition.get_original_query().startswith("SELECT\n  user_id") and definition.get_original_query().endswith("> 1000")
    assert "FROM `tablestore`.`default`.`orders`" in definition.get_expanded_query()
    assert table.options()["type"] == "materialized-table"


def test_the_same_script_again_does_nothing_and_so_does_one_that_is_written_otherwise(env: ts.TableEnvironment) -> None:
    env.execute_sql(DEPLOY)
    before = stamp(env)
    env.execute_sql(DEPLOY)
    env.execute_sql(DEPLOY.replace("\n", " ").replace("SELECT", "select /* all */").replace("FROM orders", "from `default`.orders"))
    assert stamp(env) == before


def test_a_column_is_appended_and_the_job_begins_anew(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql(DEPLOY)
    _, snapshots, jobs = stamp(env)
    env.execute_sql(WITH_DESCRIPTION)
    after = stamp(env)
    assert after[1] == snapshots + 1 and after[2] != jobs and len(after[2]) == 1
    assert table_of(env).schema.names == ["user_id", "product_id", "price", "description"]
    assert table_of(env).schema.field("description").nullable
    assert rows_of(env.sql_query("SELECT user_id, description FROM high_value_orders")) == [(1, "large")]


def test_a_star_takes_the_columns_of_its_table_when_the_script_runs_again(env: ts.TableEnvironment, rows_of: Rows) -> None:
    script = "CREATE OR ALTER MATERIALIZED TABLE high_value_orders FRESHNESS = INTERVAL '1' DAY AS SELECT * FROM orders o"
    env.execute_sql(script)
    refresh = "ALTER MATERIALIZED TABLE high_value_orders REFRESH"
    env.execute_sql(refresh)
    env.execute_sql("ALTER TABLE orders ADD COLUMN note STRING")
    env.execute_sql("INSERT INTO orders VALUES (4, 40, 2000, 'huge', 'new')")
    with pytest.raises(ts.InvalidInputError, match=r"'note'.*CREATE OR ALTER MATERIALIZED TABLE"):
        env.execute_sql(refresh)
    assert "adds `note` STRING" in env.execute_sql(f"EXPLAIN {script}").to_arrow()["plan"][0].as_py()
    env.execute_sql(script)
    env.execute_sql(refresh)
    assert rows_of(env.sql_query("SELECT user_id, note FROM high_value_orders WHERE note IS NOT NULL")) == [(4, "new")]
    before = stamp(env)
    env.execute_sql(script)
    assert stamp(env) == before


def test_values_of_a_new_column_never_come_under_the_name_of_a_dropped_one(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql("CREATE MATERIALIZED TABLE high_value_orders FRESHNESS = INTERVAL '1' DAY AS SELECT * FROM orders")
    env.execute_sql("ALTER MATERIALIZED TABLE high_value_orders REFRESH")
    env.execute_sql("ALTER TABLE orders DROP COLUMN description")
    env.execute_sql("ALTER TABLE orders ADD COLUMN note STRING")
    env.execute_sql("INSERT INTO orders VALUES (4, 40, 2000, 'a note')")
    with pytest.raises(ts.InvalidInputError, match=r"'note' now.*'description'"):
        env.execute_sql("ALTER MATERIALIZED TABLE high_value_orders REFRESH")
    assert rows_of(env.sql_query("SELECT description FROM high_value_orders WHERE user_id = 1")) == [("large",)]


def test_another_filter_makes_the_rows_anew(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql(DEPLOY)
    env.execute_sql(DEPLOY.replace("> 1000", "> 500"))
    assert rows_of(env.sql_query("SELECT user_id FROM high_value_orders ORDER BY user_id")) == [(1,), (2,)]
    assert definition_of(table_of(env).table_schema).original_query.endswith("> 500")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            "user_id, product_id, price",
            "Failed to modify query because drop column is unsupported. When modifying a query, you can only append new columns at "
            "the end of original schema. The original schema has 4 columns, but the newly derived schema from the query has 3 "
            "columns.",
        ),
        (
            "user_id, price, product_id, description",
            "When modifying the query of a materialized table, currently only support appending columns at the end of original "
            "schema, dropping, renaming, and reordering columns are not supported.\nColumn mismatch at position 1: Original column "
            "is [`product_id` INT], but new column is [`price` DECIMAL(10,2)].",
        ),
        (
            "user_id, product_id, CAST(price AS INT) AS price, description",
            "Column mismatch at position 2: Original column is [`price` DECIMAL(10,2)], but new column is [`price` INT].",
        ),
    ],
)
def test_columns_that_go_move_or_change_are_refused_and_nothing_has_happened(
    env: ts.TableEnvironment, columns: str, message: str
) -> None:
    env.execute_sql(WITH_DESCRIPTION)
    before = stamp(env)
    statement = f"MATERIALIZED TABLE high_value_orders FRESHNESS = INTERVAL '5' MINUTE AS SELECT {columns} FROM orders"
    with pytest.raises(ts.InvalidInputError) as error:
        env.execute_sql(f"CREATE OR ALTER {statement}")
    assert message in str(error.value) and "line 1" in str(error.value)
    with pytest.raises(ts.InvalidInputError) as error:
        env.execute_sql(f"ALTER MATERIALIZED TABLE high_value_orders AS SELECT {columns} FROM orders")
    assert message in str(error.value)
    assert stamp(env) == before


def test_create_makes_and_create_or_alter_makes_or_alters(env: ts.TableEnvironment) -> None:
    plain = "CREATE MATERIALIZED TABLE t AS SELECT user_id FROM orders"
    env.execute_sql(plain)
    with pytest.raises(ts.AlreadyExistsError, match="CREATE OR ALTER MATERIALIZED TABLE"):
        env.execute_sql(plain)
    env.execute_sql(plain.replace("CREATE", "CREATE OR ALTER"))
    message = (
        "Table tablestore.default.orders is not a materialized table. Only materialized table support create or alter operation."
    )
    with pytest.raises(ts.InvalidInputError) as error:
        env.execute_sql("CREATE OR ALTER MATERIALIZED TABLE orders AS SELECT 1 AS a")
    assert str(error.value).startswith(message)


def test_properties_change_without_a_restart_and_those_that_are_left_out_are_set_back(env: ts.TableEnvironment) -> None:
    def deploy(clauses: str) -> None:
        env.execute_sql(DEPLOY.replace("FRESHNESS", f"{clauses} FRESHNESS"))

    deploy("COMMENT 'a' WITH ('snapshot.num-retained.max' = '20', 'write-only' = 'true')")
    _, snapshots, jobs = stamp(env)
    deploy("COMMENT 'b' WITH ('snapshot.num-retained.max' = '30', 'file.compression' = 'lz4')")
    options = table_of(env).options()
    assert options["snapshot.num-retained.max"] == "30" and options["file.compression"] == "lz4" and "write-only" not in options
    assert table_of(env).comment == "b"
    assert stamp(env)[1:] == (snapshots, jobs)
    deploy("")
    assert table_of(env).comment is None and "file.compression" not in table_of(env).options()


def test_freshness_and_mode_change_and_what_refreshes_with_them(env: ts.TableEnvironment) -> None:
    env.execute_sql(DEPLOY)
    env.execute_sql(DEPLOY.replace("'5' MINUTE", "'1' HOUR"))
    table = table_of(env)
    handler = upkeep_of(table.table_schema).handler
    assert handler is not None and "0 0 0/1 * * ? *" in handler.summary
    assert stamp(env)[2] == []
    env.execute_sql(DEPLOY.replace("'5' MINUTE", "'1' HOUR\nREFRESH_MODE = CONTINUOUS"))
    assert len(stamp(env)[2]) == 1
    before = stamp(env)
    env.execute_sql(DEPLOY.replace("'5' MINUTE", "'1' HOUR\nREFRESH_MODE = CONTINUOUS"))
    assert stamp(env) == before


def test_explain_prints_the_plan_and_does_nothing(env: ts.TableEnvironment) -> None:
    def plan(text: str) -> str:
        return str(env.execute_sql(f"EXPLAIN {text}").to_arrow()["plan"][0].as_py())

    assert plan(DEPLOY).startswith("== Creates ==\ntablestore.default.high_value_orders: user_id BIGINT, product_id INT")
    assert "high_value_orders" not in env.list_tables()
    env.execute_sql(DEPLOY)
    before = stamp(env)
    assert "no change" in plan(DEPLOY)
    changed = plan(WITH_DESCRIPTION.replace("'5' MINUTE", "'2' MINUTE"))
    assert "adds `description` STRING" in changed and "SET FRESHNESS = INTERVAL '2' MINUTE" in changed
    assert "the refresh begins anew" in changed
    assert stamp(env) == before


def test_key_comment_distribution_and_partitions_are_those_of_the_statement(env: ts.TableEnvironment, rows_of: Rows) -> None:
    text = (
        "CREATE OR ALTER MATERIALIZED TABLE t (CONSTRAINT mine PRIMARY KEY (user_id, description) NOT ENFORCED) COMMENT 'all' "
        "DISTRIBUTED BY HASH (user_id) INTO 2 BUCKETS PARTITIONED BY (description) WITH ('write-only' = 'true') "
        "FRESHNESS = INTERVAL '10' SECOND AS SELECT user_id, product_id, description FROM orders WHERE description IS NOT NULL"
    )
    env.execute_sql(text)
    table = table_of(env, "t")
    assert (table.primary_key, table.partition_by, table.comment) == (("user_id", "description"), ("description",), "all")
    assert (table.options()["bucket"], table.options()["bucket-key"]) == ("2", "user_id")
    schema = table.table_schema.id
    env.execute_sql(text)
    assert table_of(env, "t").table_schema.id == schema
    (shown,) = rows_of(env.execute_sql("SHOW CREATE MATERIALIZED TABLE t"))[0]
    env.execute_sql(str(shown).replace("CREATE MATERIALIZED", "CREATE OR ALTER MATERIALIZED"))
    assert table_of(env, "t").table_schema.id == schema
    with pytest.raises(ts.UnsupportedError, match="PARTITIONED BY cannot be altered"):
        env.execute_sql(text.replace("PARTITIONED BY (description)", ""))
    with pytest.raises(ts.UnsupportedError, match="PRIMARY KEY cannot be altered"):
        env.execute_sql(text.replace("(user_id, description)", "(description, user_id)"))
    env.execute_sql(text.replace("mine", "yours"))
    assert table_of(env, "t").table_schema.id == schema + 1
