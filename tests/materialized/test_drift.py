"""A table that a materialized table reads is altered or made anew: what drifted is said, and how to go on."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts

Rows = Callable[[Any], list[tuple[Any, ...]]]
QUERIES = ("SELECT id, v FROM t", "SELECT * FROM t")
BIG = "INSERT INTO t VALUES (3, 5000000000)"


@pytest.fixture
def env(tmp_path: Path) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path / "wh", engine="duckdb") as made:
        made.execute_sql("CREATE TABLE t (id INT, v INT, PRIMARY KEY (id) NOT ENFORCED)")
        made.execute_sql("INSERT INTO t VALUES (1, 1), (2, 2)")
        yield made


def script(query: str, mode: str = "FULL", key: str = "id") -> str:
    return f"CREATE OR ALTER MATERIALIZED TABLE m (PRIMARY KEY ({key}) NOT ENFORCED) REFRESH_MODE = {mode} AS {query}"


def explained(env: ts.TableEnvironment, text: str) -> str:
    return str(env.execute_sql(f"EXPLAIN {text}").to_arrow().column(0)[0].as_py())


def refresh(env: ts.TableEnvironment) -> dict[str, Any]:
    return dict(env.execute_sql("ALTER MATERIALIZED TABLE m REFRESH").to_arrow().to_pylist()[0])


def make_anew(env: ts.TableEnvironment, columns: str, values: str) -> None:
    env.execute_sql("DROP TABLE t")
    env.execute_sql(f"CREATE TABLE t ({columns}, PRIMARY KEY (id) NOT ENFORCED)")
    env.execute_sql(f"INSERT INTO t VALUES {values}")


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("mode", ["FULL", "CONTINUOUS"])
@pytest.mark.parametrize("query", QUERIES)
def test_a_column_that_got_wider_is_widened_by_the_same_statement(
    env: ts.TableEnvironment, rows_of: Rows, query: str, mode: str
) -> None:
    env.execute_sql(script(query, mode))
    refresh(env)
    env.execute_sql("ALTER TABLE t ALTER COLUMN v TYPE BIGINT")
    env.execute_sql(BIG)
    with pytest.raises(ts.InvalidInputError, match=r"column `v` was INT, and is BIGINT now \(CREATE OR ALTER .* widens it\)"):
        refresh(env)
    assert explained(env, script(query, mode)).splitlines()[2:] == ["MODIFY COLUMN `v` BIGINT (was INT)"]
    env.execute_sql(script(query, mode))
    refresh(env)
    assert rows_of(env.execute_sql("SELECT * FROM m ORDER BY id")) == [(1, 1), (2, 2), (3, 5000000000)]
    assert explained(env, script(query, mode)).endswith("no change")


def test_a_refresh_whose_values_still_fit_says_what_drifted(env: ts.TableEnvironment) -> None:
    env.execute_sql(script(QUERIES[0]))
    env.execute_sql("ALTER TABLE t ALTER COLUMN v TYPE BIGINT")
    assert "column `v` was INT, and is BIGINT now" in refresh(env)["reason"]


@pytest.mark.deep_after(1)
@pytest.mark.parametrize(("kind", "value"), [("DOUBLE", "2.7D"), ("STRING", "'7'"), ("BIGINT", "5")])
def test_a_partition_is_not_refreshed_with_values_that_would_be_cast(
    env: ts.TableEnvironment, rows_of: Rows, kind: str, value: str
) -> None:
    make_anew(env, "id INT, v INT, s STRING", "(1, 1, 'x')")
    env.execute_sql("CREATE MATERIALIZED TABLE m PARTITIONED BY (s) REFRESH_MODE = FULL AS SELECT id, v, s FROM t")
    env.execute_sql("ALTER MATERIALIZED TABLE m REFRESH PARTITION (s = 'x')")
    make_anew(env, f"id INT, v {kind}, s STRING", f"(1, {value}, 'x')")
    with pytest.raises(ts.InvalidInputError, match=rf"column `v` was INT, and is {kind} now"):
        env.execute_sql("ALTER MATERIALIZED TABLE m REFRESH PARTITION (s = 'x')")
    assert rows_of(env.execute_sql("SELECT * FROM m")) == [(1, 1, "x")]


def test_a_wider_column_is_widened_together_with_a_mode_and_a_query(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql(script(QUERIES[0], "CONTINUOUS"))
    env.execute_sql("ALTER TABLE t ALTER COLUMN v TYPE BIGINT")
    env.execute_sql(BIG)
    env.execute_sql(script(QUERIES[0]))
    env.execute_sql(script(QUERIES[0], "CONTINUOUS"))
    assert len(rows_of(env.execute_sql("SELECT * FROM m"))) == 3
    env.execute_sql("ALTER TABLE t ALTER COLUMN v TYPE DECIMAL(30, 2)")
    env.execute_sql("INSERT INTO t VALUES (4, 0.25)")
    env.execute_sql(script("SELECT id, v, v > 1 AS more FROM t", "CONTINUOUS"))
    assert str(rows_of(env.execute_sql("SELECT * FROM m WHERE id = 4"))) == "[(4, Decimal('0.25'), False)]"


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(
    ("columns", "values", "drifted"),
    [
        ("id INT, v STRING", "(1, '7')", "column `v` was INT, and is STRING now"),
        ("id INT, v DOUBLE", "(1, 2.7D)", "column `v` was INT, and is DOUBLE now"),
        ("id INT, v ARRAY<INT>", "(1, array(7))", "column `v` was INT, and is ARRAY<INT> now"),
    ],
)
def test_a_source_that_was_made_anew_with_another_type_is_named_by_all_three(
    env: ts.TableEnvironment, rows_of: Rows, query: str, columns: str, values: str, drifted: str
) -> None:
    if "DOUBLE" in columns:
        # INT goes into DOUBLE as it is, BIGINT does not.
        make_anew(env, "id INT, v BIGINT", "(1, 1)")
        drifted = drifted.replace("was INT", "was BIGINT")
    env.execute_sql(script(query))
    refresh(env)
    make_anew(env, columns, values)
    before = rows_of(env.execute_sql("SELECT * FROM m ORDER BY id"))
    for statement in (f"EXPLAIN {script(query)}", script(query), "ALTER MATERIALIZED TABLE m REFRESH"):
        with pytest.raises(ts.InvalidInputError) as raised:
            env.execute_sql(statement)
        assert drifted in str(raised.value), statement
        assert "ALTER MATERIALIZED TABLE … AS a query" in str(raised.value) and "STAGE AS query, then PROMOTE" in str(raised.value)
    assert rows_of(env.execute_sql("SELECT * FROM m ORDER BY id")) == before


def test_both_ways_out_of_a_drift_are_there(env: ts.TableEnvironment, rows_of: Rows) -> None:
    env.execute_sql(script(QUERIES[0]))
    refresh(env)
    make_anew(env, "id INT, v STRING", "(1, '7')")
    env.execute_sql("ALTER MATERIALIZED TABLE m AS SELECT id, CAST(v AS INT) AS v FROM t")
    refresh(env)
    assert rows_of(env.execute_sql("SELECT * FROM m")) == [(1, 7)]
    env.execute_sql("ALTER MATERIALIZED TABLE m STAGE AS SELECT id, v FROM t")
    env.execute_sql("ALTER MATERIALIZED TABLE m PROMOTE")
    assert rows_of(env.execute_sql("SELECT * FROM m")) == [(1, "7")]
    assert explained(env, script(QUERIES[0])).endswith("no change")


def test_a_key_keeps_its_type_and_another_version_is_the_way_out(env: ts.TableEnvironment) -> None:
    make_anew(env, "id INT, v INT", "(1, 1)")
    env.execute_sql(script(QUERIES[0]))
    refresh(env)
    make_anew(env, "id BIGINT, v INT", "(5000000000, 1)")
    for statement in (f"EXPLAIN {script(QUERIES[0])}", script(QUERIES[0])):
        with pytest.raises(ts.UnsupportedError, match=r"column `id` was INT, and is BIGINT now.* STAGE AS query, then PROMOTE"):
            env.execute_sql(statement)


def test_a_narrower_source_changes_nothing(env: ts.TableEnvironment, rows_of: Rows) -> None:
    make_anew(env, "id INT, v BIGINT", "(1, 5000000000)")
    env.execute_sql(script(QUERIES[0]))
    make_anew(env, "id INT, v SMALLINT", "(1, 5)")
    assert explained(env, script(QUERIES[0])).endswith("no change")
    assert refresh(env)["mode"] == "full" and rows_of(env.execute_sql("SELECT * FROM m")) == [(1, 5)]


def test_a_column_that_is_gone_is_named_with_the_way_out(env: ts.TableEnvironment) -> None:
    env.execute_sql(script(QUERIES[0]))
    make_anew(env, "id INT, z INT", "(1, 1)")
    for statement in (f"EXPLAIN {script(QUERIES[0])}", script(QUERIES[0]), "ALTER MATERIALIZED TABLE m REFRESH"):
        with pytest.raises(ts.InvalidInputError, match=r'"v" not found[\s\S]*was altered, or made anew\. ALTER MATERIALIZED TABLE'):
            env.execute_sql(statement)


def test_a_star_that_lost_a_column_is_no_dropped_column_of_a_query(env: ts.TableEnvironment) -> None:
    env.execute_sql(script(QUERIES[1]))
    make_anew(env, "id INT, z INT", "(1, 1)")
    with pytest.raises(ts.InvalidInputError, match="column `v` INT is not there any more; column `z` INT is new"):
        env.execute_sql(script(QUERIES[1]))
