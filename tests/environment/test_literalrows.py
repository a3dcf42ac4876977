"""Long VALUES of literals are read without an engine, as the rows and types that Spark gives them."""

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.environment.rows.literalrows import LEAST_ROWS, literal_rows


def values(*rows: str) -> str:
    """These rows again and again, so often that they are worth it."""
    return "VALUES " + ", ".join(f"({row})" for row in rows * -(-LEAST_ROWS // len(rows)))


@pytest.mark.parametrize(
    ("rows", "data_type", "first"),
    [
        (("1", "-2147483648", "NULL"), pa.int32(), 1),
        (("2147483648", "1"), pa.int64(), 2147483648),
        (("-9223372036854775808",), pa.int64(), -(2**63)),
        (("2.50", "-10.", ".005"), pa.decimal128(5, 3), Decimal("2.500")),
        (("1", "2.5"), pa.decimal128(11, 1), Decimal("1.0")),
        (("3000000000", "0.25"), pa.decimal128(22, 2), Decimal("3000000000.00")),
        (("'it''s'", '"two\\nlines"', "r'\\n'", "''"), pa.string(), "it's"),
        (("TRUE", "false", "null"), pa.bool_(), True),
        (("DATE '2024-02-29'", "NULL"), pa.date32(), dt.date(2024, 2, 29)),
        (("NULL",), pa.null(), None),
    ],
)
def test_literals_have_the_types_that_spark_gives(rows: tuple[str, ...], data_type: pa.DataType, first: object) -> None:
    found = literal_rows(values(*rows))
    assert found is not None and found.num_rows >= LEAST_ROWS
    assert (found.column_names, found.schema.types) == (["col1"], [data_type])
    assert found.column(0)[0].as_py() == first


@pytest.mark.parametrize(
    "text",
    [
        values("1", "'a'"),
        values("TRUE", "1"),
        values("1 + 1"),
        values("1e3"),
        values("1L"),
        values("9223372036854775808"),
        values("99999999999999999999999999999.5", "0.0000000001"),
        values("DATE '2024-1-1'"),
        values("DATE '2024-02-30'"),
        values("DATE '2024-01-01'", "'2024-01-01'"),
        values("DATE x"),
        values("- DATE '2024-01-01'"),
        values("TIMESTAMP '2024-01-01'"),
        values("- 'a'"),
        values("'a' 'b'"),
        values(":x"),
        values("1", "1, 2"),
        values("1") + " AS t (a)",
        values("1") + ",",
        values("1,"),
        values(""),
        values("1")[:-1],
        "SELECT " + ", ".join("(1)" for _ in range(LEAST_ROWS)),
        "VALUES (1), (2)",
    ],
)
def test_all_else_is_for_the_engine(text: str) -> None:
    assert literal_rows(text) is None


def test_a_long_insert_writes_what_short_ones_write(tmp_path: Path) -> None:
    rows = ["1, 'a', 2.5, NULL, DEFAULT, TRUE", "-2, 'b, (c)', 10, NULL, DEFAULT, NULL", "3, NULL, .125, NULL, 'given', FALSE"] * 50
    columns = "(id BIGINT, name STRING, v DOUBLE, n DATE, d STRING DEFAULT 'none', b BOOLEAN)"
    with ts.TableEnvironment.create(tmp_path, engine="duckdb") as env:
        for name in ("long", "short"):
            env.execute_sql(f"CREATE TABLE {name} {columns}")
        env.execute_sql(f"INSERT INTO long VALUES {', '.join(f'({row})' for row in rows)}")
        for start in range(0, len(rows), 50):
            env.execute_sql(f"INSERT INTO short VALUES {', '.join(f'({row})' for row in rows[start : start + 50])}")
        found = [env.execute_sql(f"SELECT * FROM {name} ORDER BY id, name").to_arrow() for name in ("long", "short")]
        assert found[0].equals(found[1]) and found[0].num_rows == 150
        with pytest.raises(ts.InvalidInputError, match="'b' is BOOLEAN and takes no INT"):
            env.execute_sql(f"INSERT INTO long (b) {values('1')}")
        with pytest.raises(ts.InvalidInputError, match=r"expected 1 columns \(b\), found 2 \(col1, col2\)"):
            env.execute_sql(f"INSERT INTO long (b) {values('TRUE, 1')}")
        with pytest.raises(ts.InvalidInputError, match=r"INT32|out of range"):
            env.execute_sql("CREATE TABLE small (i INT)")
            env.execute_sql(f"INSERT INTO small {values('3000000000')}")
