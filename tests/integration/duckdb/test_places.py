"""What a value makes an error says in which expression that is, and where in the text of the statement."""

import re
from collections.abc import Iterator

import pytest

import tablestore as ts


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(str(tmp_path_factory.mktemp("warehouse")), engine="duckdb") as env:
        env.execute_sql("CREATE DATABASE shop")
        env.execute_sql("USE shop")
        env.execute_sql("CREATE TABLE t (a INT, b BIGINT, s STRING, p DECIMAL(8, 2), arr ARRAY<INT>)")
        env.execute_sql("INSERT INTO t VALUES (1, 0, '12.5', 1.5, array(1, 2))")
        yield env


@pytest.mark.parametrize(
    ("text", "expression", "line", "column"),
    [
        ("SELECT a,\n   a  /  (b - b)\nFROM t", "a / (b - b)", 2, 4),
        ("SELECT 'x', p / b FROM t", "p / b", 1, 13),
        ("SELECT a DIV b, a + b FROM t", "a DIV b", 1, 8),
        ("SELECT t.a % t.b FROM shop.t", "t.a % t.b", 1, 8),
        ("SELECT mod(a, b) FROM t", "mod(a, b)", 1, 8),
        ("SELECT sum(a) / b FROM t GROUP BY b", "sum(a) / b", 1, 8),
        ("SELECT 1 FROM t WHERE `a`/`b` > 1", "`a`/`b`", 1, 23),
        ("SELECT arr[5] FROM t", "arr[5]", 1, 8),
        ("SELECT 1 + element_at(arr, 5) FROM t", "element_at(arr, 5)", 1, 12),
        ("SELECT map('k', array(1))['k'][3] FROM t", "map('k', array(1))['k'][3]", 1, 8),
        ("SELECT abs(CAST(s AS INT)) FROM t", "CAST(s AS INT)", 1, 12),
        ("SELECT upper(s), s::BIGINT FROM t", "s::BIGINT", 1, 18),
        ("SELECT CAST(CAST(s AS STRING) AS INT) FROM t", "CAST(CAST(s AS STRING) AS INT)", 1, 8),
        ("INSERT INTO t (a) SELECT CAST(a / b AS INT) FROM t", "a / b", 1, 31),
        ("UPDATE t SET a = a DIV b", "a DIV b", 1, 18),
        ("DELETE FROM t WHERE a / b > 1", "a / b", 1, 21),
    ],
)
def test_an_error_of_a_value_marks_its_expression(
    env: ts.TableEnvironment, text: str, expression: str, line: int, column: int
) -> None:
    with pytest.raises(ts.InvalidInputError, match=re.escape(f"in `{expression}`")) as raised:
        env.execute_sql(text).to_arrow()
    assert f"\nline {line}, column {column}:\n" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("SELECT a / b, a / b FROM t", "a / b"),
        ("WITH q AS (SELECT a / -- twice\n b AS c FROM t) SELECT * FROM q", "a / b"),
        ("SELECT c FROM v", "b / b"),
    ],
)
def test_without_one_place_the_expression_alone_is_said(env: ts.TableEnvironment, text: str, expression: str) -> None:
    env.execute_sql("CREATE OR REPLACE TEMPORARY VIEW v AS SELECT b / b AS c FROM t")
    with pytest.raises(ts.InvalidInputError) as raised:
        env.execute_sql(text).to_arrow()
    assert str(raised.value).endswith(f"in `{expression}`")


def test_an_expression_is_not_said_where_it_is_long_or_has_a_parameter_or_a_query(env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.InvalidInputError, match=r"division by zero$"):
        env.sql_query("SELECT a % ? FROM t", 0).to_arrow()
    with pytest.raises(ts.InvalidInputError, match=r"division by zero$"):
        env.execute_sql("SELECT 1 / (SELECT max(b) FROM t) FROM t").to_arrow()
    long = " + ".join(["a"] * 100)
    with pytest.raises(ts.InvalidInputError, match=r"division by zero$"):
        env.execute_sql(f"SELECT ({long}) % b FROM t").to_arrow()
