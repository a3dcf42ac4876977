"""Constraints in SQL: CREATE TABLE, ALTER TABLE, what shows them, and statements whose rows violate them."""

from collections.abc import Callable
from typing import Any

import pytest

import tablestore as ts

RowsOf = Callable[[Any], list[tuple[Any, ...]]]
CREATE = (
    "CREATE TABLE t (id BIGINT, price DOUBLE CONSTRAINT positive CHECK (price > 0) COMMENT 'net', low INT CHECK (low >= 0), "
    "high INT CONSTRAINT there NOT NULL, CHECK (low < high), CONSTRAINT `a b` CHECK (id <> 7 -- never\n OR low = 1), "
    "PRIMARY KEY (id) NOT ENFORCED)"
)
CHECKS = {
    "a b": "id <> 7 OR low = 1",
    "low_check": "low >= 0",
    "positive": "price > 0",
    "row_check": "low < high",
    "there": "high IS NOT NULL",
}


def checks(env: ts.TableEnvironment, name: str = "t") -> dict[str, str]:
    table = env.catalog().table(f"default.{name}")
    prefix = "tablestore.constraint."
    return {key.removeprefix(prefix): text for key, text in sorted(table.options().items()) if key.startswith(prefix)}


def test_a_table_is_created_with_named_and_nameless_constraints(env: ts.TableEnvironment) -> None:
    env.execute_sql(CREATE)
    assert checks(env) == CHECKS


def test_what_shows_a_table_shows_its_constraints_and_show_create_makes_the_same(env: ts.TableEnvironment, rows_of: RowsOf) -> None:
    env.execute_sql(CREATE)
    ((text,),) = rows_of(env.execute_sql("SHOW CREATE TABLE t"))
    assert "CONSTRAINT `positive` CHECK (price > 0)" in text
    assert "tablestore.constraint" not in text
    env.execute_sql("DROP TABLE t")
    env.execute_sql(text)
    assert checks(env) == CHECKS
    described = {name: value for name, _, value in rows_of(env.execute_sql("DESCRIBE EXTENDED t"))}
    assert described["constraint positive"] == "CHECK (price > 0)"


def test_like_takes_the_constraints_unless_it_is_told_not_to(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (x INT CONSTRAINT c CHECK (x > 0))")
    env.execute_sql("CREATE TABLE u (CONSTRAINT d CHECK (x < 9)) LIKE t")
    env.execute_sql("CREATE TABLE v LIKE t (EXCLUDING CONSTRAINTS)")
    assert (checks(env, "u"), checks(env, "v")) == ({"c": "x > 0", "d": "x < 9"}, {})
    with pytest.raises(ts.InvalidInputError, match="there is a constraint 'c' already"):
        env.execute_sql("CREATE TABLE w (CONSTRAINT c CHECK (x < 9)) LIKE t")


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO t VALUES (2, 3.0, 1, 2), (3, -2.0, 1, 2)",
        "INSERT INTO t SELECT id + 2, price - 4, low, high FROM t",
        "INSERT OVERWRITE t SELECT id + 2, price - 4, low, high FROM t",
        "UPDATE t SET price = price - 4 WHERE id = 1",
        "UPDATE t SET price = -price",
        "MERGE INTO t USING (SELECT 1 AS id, -2.0D AS price) s ON t.id = s.id WHEN MATCHED THEN UPDATE SET price = s.price",
        "MERGE INTO t USING (SELECT 3 AS id, -2.0D AS price, 1 AS low, 2 AS high) s ON t.id = s.id WHEN NOT MATCHED THEN INSERT *",
        "CREATE TABLE u (CONSTRAINT positive CHECK (price > 0)) AS SELECT id, price - 4 AS price FROM t",
    ],
)
def test_every_statement_that_writes_refuses_a_row_that_violates_a_constraint(
    statement: str, duck: ts.TableEnvironment, rows_of: RowsOf
) -> None:
    duck.execute_sql(CREATE)
    duck.execute_sql("INSERT INTO t VALUES (1, 2.0, 1, 2)")
    with pytest.raises(ts.InvalidInputError, match=r"'positive', CHECK \(price > 0\): price = -2.0") as error:
        duck.execute_sql(statement)
    assert error.value.kind == "constraint"
    assert rows_of(duck.execute_sql("SELECT * FROM t")) == [(1, 2.0, 1, 2)]


def test_constraints_are_added_and_dropped(duck: ts.TableEnvironment) -> None:
    duck.execute_sql("CREATE TABLE t (x INT, y INT)")
    duck.execute_sql("INSERT INTO t VALUES (1, NULL)")
    with pytest.raises(ts.InvalidInputError, match="x = 1, y = NULL violates the constraint 'big'"):
        duck.execute_sql("ALTER TABLE t ADD CONSTRAINT big CHECK (x > 1)")
    for statement in ("ADD CONSTRAINT big CHECK (x > 0)", "ADD CHECK (y > 0)", "ADD CONSTRAINT there NOT NULL x"):
        duck.execute_sql(f"ALTER TABLE t {statement}")
    assert checks(duck) == {"big": "x > 0", "row_check": "y > 0", "there": "x IS NOT NULL"}
    for statement in ("DROP CONSTRAINT BIG", "DROP CONSTRAINT IF EXISTS big", "DROP CONSTRAINT IF EXISTS row_check"):
        duck.execute_sql(f"ALTER TABLE t {statement}")
    assert checks(duck) == {"there": "x IS NOT NULL"}
    with pytest.raises(ts.NotFoundError, match="there is no constraint 'big'"):
        duck.execute_sql("ALTER TABLE t DROP CONSTRAINT big")


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("CREATE TABLE u (x INT CHECK (y > 0))", "'y', which does not exist"),
        ("CREATE TABLE u (x INT CHECK (x > rand()))", "is not one that every writer could check"),
        ("CREATE TABLE u (x INT CHECK (x > 0) NOT ENFORCED)", "leave NOT ENFORCED out"),
        ("CREATE TABLE u (x INT CHECK x > 0)", "expected (, found 'x'"),
        ("CREATE TABLE u (x INT, CONSTRAINT a CHECK (x > 0), CONSTRAINT A CHECK (x > 1))", "stands here twice"),
        ("CREATE TABLE u (x INT, CONSTRAINT a PRIMARY KEY (x) NOT ENFORCED, CONSTRAINT a CHECK (x > 1))", "'a' already"),
        ("CREATE TABLE u (x INT) WITH ('tablestore.constraint.a' = 'x > 0')", "write CONSTRAINT name CHECK"),
        ("CREATE TABLE u (x INT CHECK (x > 0)) WITH ('connector' = 'filesystem', 'path' = '/x', 'format' = 'csv')", "'filesystem'"),
        ("ALTER TABLE t SET ('tablestore.constraint.a' = 'x > 0')", "ADD or DROP CONSTRAINT"),
        ("ALTER TABLE t RESET ('tablestore.constraint.c')", "ADD or DROP CONSTRAINT"),
        ("ALTER TABLE t DROP CONSTRAINT k", "is the primary key"),
        ("ALTER TABLE t ADD CONSTRAINT k CHECK (x > 1)", "the primary key"),
        ("ALTER TABLE t ADD COLUMN y INT CHECK (y > 0)", "ADD CONSTRAINT name CHECK"),
        ("ALTER TABLE t RENAME y TO z", "looks at it"),
        ("ALTER TABLE t DROP COLUMN y", "looks at it"),
    ],
)
def test_what_is_no_constraint_is_refused_with_a_way_out(statement: str, words: str, env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE t (x INT, y INT CONSTRAINT c CHECK (y > 0), CONSTRAINT k PRIMARY KEY (x) NOT ENFORCED)")
    with pytest.raises(ts.TablestoreError) as error:
        env.execute_sql(statement)
    assert words in str(error.value)
    assert checks(env) == {"c": "y > 0"}
    assert env.catalog().list_tables("default") == ("t",)
