"""Texts beside numbers on DuckDB: what Spark 4.3 answered, or that it refused (by its error's name)."""

from pathlib import Path

import pytest

import tablestore as ts

ROUNDED_IN_SILENCE = (
    "'1.5' = 2", "'1.5' + 2", "'2.7' * 1", "2 > '1.5'", "'1.5' IN (2)", "2 IN ('1.5')", "2 BETWEEN '1.5' AND '2.5'",
    "coalesce('1.5', 2)", "CASE WHEN true THEN '1.5' ELSE 2 END", "if(true, '1.5', 2)", "nvl('1.5', 2)", "array('1.5', 2)",
    "substring('abcdef', '2.7')", "repeat('a', '2.6')", "date_add('2020-01-01', '1.7')", "'1.5' <=> 2", "'1.5' < id", "id = '1.5'",
    "id + '1.5'", "id IN ('1.5', '2')", "id = (SELECT '1.5')", "CASE id WHEN '1.5' THEN 1 END", "element_at(array(1, 2), '1.6')",
    "left('abc', '1.5')", "lpad('a', '2.5', 'x')", "round(1.25, '0.6')", "'a' = 1",
)  # fmt: skip
"""Of these Spark says CAST_INVALID_INPUT, of the place of an element DATATYPE_MISMATCH."""
OF_OTHER_KINDS = ("1 = true", "id = true", "id IN (true)", "greatest('10', 9)", "bit_count('5')")
"""Of these Spark says DATATYPE_MISMATCH."""
EQUAL = (
    ("'2' = id", True, "bool"),
    ("'2' * 1", 2, "int64"),
    ("'5' % 3", 2, "int64"),
    ("'5' DIV 2", 2, "int64"),
    ("'1.5' = 1.5D", True, "bool"),
    ("'1.50' = 1.5BD", True, "bool"),
    ("word = id", True, "bool"),
    ("word > 1.5", True, "bool"),
    ("word IN (1, 2)", True, "bool"),
    ("id BETWEEN '1' AND word", True, "bool"),
    ("date_sub(DATE '2020-01-02', '1') = DATE '2020-01-01'", True, "bool"),
    ("substring('abcdef', '2', word)", "bc", "string"),
    ("'2020-01-01' = DATE '2020-01-01'", True, "bool"),
    ("true = 'true'", True, "bool"),
    ("'1' || 2", "12", "string"),
    ("decode(word, '1', 1, '2', 2, 3)", 2, "int32"),
)


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> ts.TableEnvironment:
    return ts.TableEnvironment.create(tmp_path_factory.mktemp("texts"), engine="duckdb")


def query(expression: str) -> str:
    return f"SELECT {expression} AS x FROM VALUES (2, '2') t(id, word)"


@pytest.mark.parametrize("expression", [*ROUNDED_IN_SILENCE, *OF_OTHER_KINDS])
def test_what_spark_refuses_is_no_value(env: ts.TableEnvironment, expression: str) -> None:
    with pytest.raises((ts.InvalidInputError, ts.UnsupportedError), match=r"expected|convert|a place that is a STRING"):
        env.execute_sql(query(expression)).to_arrow()


@pytest.mark.parametrize(("expression", "value", "kind"), EQUAL)
def test_a_text_is_the_number_that_it_says(env: ts.TableEnvironment, expression: str, value: object, kind: str) -> None:
    found = env.execute_sql(query(expression)).to_arrow()
    assert (found["x"].to_pylist(), str(found.schema.field("x").type)) == ([value], kind)


@pytest.mark.parametrize("expression", ["nullif('1.5', 2)", "decode('1.5', 2, 'x')"])
def test_what_cannot_be_cast_in_its_place_is_refused_by_name(env: ts.TableEnvironment, expression: str) -> None:
    with pytest.raises(ts.UnsupportedError, match="DuckDB does not run"):
        env.execute_sql(query(expression)).to_arrow()


def test_statements_find_no_rows_by_rounded_texts(tmp_path: Path) -> None:
    env = ts.TableEnvironment.create(tmp_path, engine="duckdb")
    env.execute_sql("CREATE TABLE k (id BIGINT, f DOUBLE, PRIMARY KEY (id) NOT ENFORCED)")
    env.execute_sql("INSERT INTO k VALUES (1, 1.5D), (2, 2.5D)")
    for statement in ("DELETE FROM k WHERE id = '1.5'", "UPDATE k SET f = 0 WHERE id = '1.6'"):
        with pytest.raises(ts.InvalidInputError, match="expected the digits of a whole number"):
            env.execute_sql(statement)
    env.execute_sql("UPDATE k SET f = f + '1' WHERE id = '1'")
    env.execute_sql("MERGE INTO k USING (SELECT '2' AS id, 9 AS f) s ON k.id = s.id WHEN MATCHED THEN UPDATE SET f = s.f")
    assert env.execute_sql("SELECT * FROM k ORDER BY id").to_arrow()["f"].to_pylist() == [2.5, 9.0]
