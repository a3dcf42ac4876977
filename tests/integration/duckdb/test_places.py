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


@pytest.mark.deep_after(9)
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
        ("SELECT a DIV b AS q, q + 1 AS r FROM t", "a DIV b", 1, 8),
        ("SELECT count(*) OVER (PARTITION BY a DIV b) FROM t", "a DIV b", 1, 36),
        ("SELECT count(*) OVER (PARTITION BY CAST(s AS INT)) FROM t", "CAST(s AS INT)", 1, 36),
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


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("DELETE FROM t WHERE a b", "misplaced near `b`", 23),
        ("UPDATE t SET a = a b", "misplaced near `b`", 20),
        ("UPDATE t SET a = 1 WHERE a b", "misplaced near `b`", 28),
        ("MERGE INTO t USING t s ON t.a x WHEN MATCHED THEN DELETE", "misplaced near `x`", 31),
        ("SELECT * FROM t WHERE (a b)", "misplaced near `b`", 26),
        ("SELECT x'zz' FROM t", "hexadecimal digits", 8),
        ("DELETE FROM t WHERE s = X'0g'", "hexadecimal digits", 25),
        ("INSERT INTO t (a) SELECT x'zz'", "hexadecimal digits", 28),
        ("SELECT -1e400", "1e400 is out of the range of a DOUBLE", 9),
        ("SELECT a FROM t WHERE a > 1.5e309D", "1.5e309D is out of the range of a DOUBLE", 27),
        ("DELETE FROM t WHERE a < 1e400", "1e400 is out of the range of a DOUBLE", 25),
        ("SELECT 1e39f", "1e39f is out of the range of a FLOAT", 8),
        ("SELECT 9223372036854775808L", "out of the range of a BIGINT", 8),
        ("SELECT 128Y", "out of the range of a TINYINT, which ends at 127", 8),
        ("SELECT 1e38BD", "has 39 digits, and a DECIMAL has 38 at most", 8),
        ("SELECT 1, " + "9" * 5_000, "has 5000 digits, and a DECIMAL has 38 at most", 11),
        ("SELECT 0." + "0" * 38 + "1", "has 39 digits, and a DECIMAL has 38 at most", 8),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else None,
)
def test_what_cannot_be_read_is_refused_with_its_place(env: ts.TableEnvironment, text: str, message: str, column: int) -> None:
    with pytest.raises(ts.InvalidInputError, match=message) as raised:
        env.execute_sql(text).to_arrow()
    assert raised.value.kind == "sql-syntax"
    assert f"\nline 1, column {column}:\n" in str(raised.value)


def test_numbers_and_bytes_to_the_ends_of_their_types_are_read(env: ts.TableEnvironment) -> None:
    text = f"SELECT 1e308, 1e-400, 3e38F, 9223372036854775807L, -9223372036854775808, 127Y, 1e37BD, {'9' * 38}, x'', X'aB', x'1'"
    (row,) = env.execute_sql(text).to_arrow().to_pylist()
    assert list(row.values())[-4:] == [10**38 - 1, b"", b"\xab", b"\x01"]


@pytest.mark.parametrize(("written", "least"), [("-128Y", -(2**7)), ("- 32768S", -(2**15)), ("-9223372036854775808L", -(2**63))])
def test_the_least_number_of_a_type_has_a_sign(env: ts.TableEnvironment, written: str, least: int) -> None:
    assert env.execute_sql(f"SELECT {written} AS x").to_arrow().to_pylist() == [{"x": least}]
