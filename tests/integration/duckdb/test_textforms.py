"""Texts as dates, timestamps, booleans and floats on DuckDB: what Spark 4.3 answered in UTC, or that it refused."""

import pytest

import tablestore as ts

READ = (
    ("TRY_CAST({} AS TIMESTAMP)", "2024/01/31", None),
    ("TRY_CAST({} AS TIMESTAMP)", "2024", "2024-01-01 00:00:00"),
    ("TRY_CAST({} AS TIMESTAMP)", "2024-1", "2024-01-01 00:00:00"),
    ("TRY_CAST({} AS TIMESTAMP)", " 2024-01-31 ", "2024-01-31 00:00:00"),
    ("TRY_CAST({} AS TIMESTAMP)", "+2024-01-31 10:11:12", "2024-01-31 10:11:12"),
    ("TRY_CAST({} AS TIMESTAMP)", "2024-01-31 10:11:12+5", "2024-01-31 05:11:12"),
    ("TRY_CAST({} AS TIMESTAMP)", "2024-01-31 10:11:12 +05:30", "2024-01-31 04:41:12"),
    ("TRY_CAST({} AS TIMESTAMP)", "2024-01-31 10:11:12UTC", "2024-01-31 10:11:12"),
    ("TRY_CAST({} AS TIMESTAMP)", "2018-11-04 01:30:00 America/New_York", "2018-11-04 05:30:00"),
    ("TRY_CAST({} AS TIMESTAMP)", "2024-01-31 10:11:12.9999999", "2024-01-31 10:11:12.999999"),
    ("TRY_CAST({} AS TIMESTAMP)", "2024-01-31 24:00:00", None),
    ("TRY_CAST({} AS TIMESTAMP)", "2024-01-31 10:11Z", None),
    ("TRY_CAST({} AS TIMESTAMP)", "2024-01-31  10:11:12", None),
    ("TRY_CAST({} AS TIMESTAMP)", "infinity", None),
    ("TRY_CAST({} AS TIMESTAMP)", "224-01-01", None),
    ("CAST({} AS TIMESTAMP)", "2024-01-31 10", "2024-01-31 10:00:00"),
    ("try_to_timestamp({})", "2024/01/31", None),
    ("try_to_timestamp({})", "2024", "2024-01-01 00:00:00"),
    ("TRY_CAST({} AS TIMESTAMP_NTZ)", "2024/01/31", None),
    ("TRY_CAST({} AS TIMESTAMP_NTZ)", "2024-01-31 10:11:12+5", "2024-01-31 10:11:12"),
    ("try_to_date({})", "2024", "2024-01-01"),
    ("try_to_date({})", "2024-01", "2024-01-01"),
    ("to_date({})", "2024-1", "2024-01-01"),
    ("TRY_CAST({} AS DATE)", "+2024-01-31", "2024-01-31"),
    ("TRY_CAST({} AS DATE)", "2024-01-31Tx", "2024-01-31"),
    ("TRY_CAST({} AS DATE)", "2024/01/31", None),
    ("TRY_CAST({} AS DATE)", "0000-01-01", "0000-01-01"),
    ("TRY_CAST({} AS DATE)", "-0001-01-01", "-0001-01-01"),
    ("date_add(CAST({} AS DATE), 1)", "9999-12-31", "+10000-01-01"),
    ("TRY_CAST({} AS TIMESTAMP)", "0000-01-01", "0000-01-01 00:00:00"),
    ("TRY_CAST({} AS BOOLEAN)", " 1 ", "true"),
    ("CAST({} AS BOOLEAN)", " true ", "true"),
    ("CAST(TRY_CAST({} AS DOUBLE) AS INT)", "1d", "1"),
    ("CAST(TRY_CAST({} AS DOUBLE) AS INT)", " +1.5e1F ", "15"),
    ("CAST(TRY_CAST({} AS FLOAT) AS INT)", "1f", "1"),
    ("CAST(TRY_CAST({} AS DOUBLE) AS INT)", "1dd", None),
    ("TRY_CAST({} AS DOUBLE) IS NULL", "-nan", "true"),
)
REFUSED = (
    ("CAST({} AS TIMESTAMP)", "2024/01/31", ts.InvalidInputError),
    ("CAST({} AS TIMESTAMP_NTZ)", "2024/01/31", ts.InvalidInputError),
    ("to_timestamp({})", "2024/01/31", ts.InvalidInputError),
    ("TIMESTAMP'2024-01-31 00:00:00' > {}", "2024/01/01", ts.InvalidInputError),
    ("DATE'2024-01-31' > {}", "2024/01/01", ts.InvalidInputError),
    ("TIMESTAMP_NTZ'2024-01-31 00:00:00' IN ({})", "2024/01/31", ts.InvalidInputError),
    ("CAST({} AS DATE)", "2024-01-31Z", ts.InvalidInputError),
    ("CAST({} AS DOUBLE)", "+nan", ts.InvalidInputError),
    ("try_to_timestamp({})", "10:11", ts.UnsupportedError),
    ("TRY_CAST({} AS TIMESTAMP)", "2024-01-31 10:11:12 CST", ts.UnsupportedError),
    ("TRY_CAST({} AS TIMESTAMP_NTZ)", "2024-01-31 10:11:12Europe/Rome", ts.UnsupportedError),
    ("TRY_CAST({} AS DOUBLE)", "0x1p3", ts.UnsupportedError),
)


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> ts.TableEnvironment:
    return ts.TableEnvironment.create(tmp_path_factory.mktemp("texts"), engine="duckdb")


@pytest.mark.deep_after(1)
@pytest.mark.parametrize("operand", ["'{}'", "t", "t || ''"])
def test_a_text_is_what_spark_reads(env: ts.TableEnvironment, operand: str) -> None:
    for expression, text, value in READ:
        query = f"SELECT CAST({expression.format(operand.format(text))} AS STRING) AS x FROM VALUES ('{text}') v(t)"
        assert env.execute_sql(query).to_arrow()["x"].to_pylist() == [value], query


@pytest.mark.deep_after(15)
@pytest.mark.parametrize("operand", ["'{}'", "t"])
@pytest.mark.parametrize(("expression", "text", "error"), REFUSED)
def test_a_text_of_no_form_is_an_error(
    env: ts.TableEnvironment, operand: str, expression: str, text: str, error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"expected|does not run"):
        env.execute_sql(f"SELECT {expression.format(operand.format(text))} AS x FROM VALUES ('{text}') v(t)").to_arrow()
