"""Numbers that Spark computes in another way than DuckDB: their types and all of their digits. The values are Spark 4.3's."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal as D

import duckdb
import pyarrow as pa
import pytest

from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.sql.binding.sqltypes import BIGINT, DATE, DOUBLE, FLOAT, INT, decimal
from tablestore.sql.duckdb.transpile import to_duckdb

ROWS = pa.table(
    {
        "id": pa.array([1, 2, 3, 4], pa.int32()),
        "f": pa.array([0.1, 2.5, None, 16777216.0], pa.float32()),
        "d": pa.array([0.1, 2.675, None, 1.005], pa.float64()),
        "p": pa.array([D("0.10"), D("2.68"), None, D("-2.65")], pa.decimal128(10, 2)),
        "b": pa.array([1, 16777217, None, 9007199254740993], pa.int64()),
        "day": pa.array([date(2024, 1, 31), date(2023, 2, 1), None, date(1969, 12, 31)]),
    }
)
KINDS = {"t": [("id", INT), ("f", FLOAT), ("d", DOUBLE), ("p", decimal(10, 2)), ("b", BIGINT), ("day", DATE)]}


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.register("t", ROWS)
        yield connection


@pytest.mark.deep_after(27)
@pytest.mark.parametrize(
    ("expression", "type_name", "values"),
    [
        ("cast(d as decimal(10, 2))", "decimal128(10, 2)", [D("0.10"), D("2.68"), None, D("1.01")]),
        ("try_cast(d as decimal(1, 1))", "decimal128(1, 1)", [D("0.1"), None, None, None]),
        ("cast(f as decimal(20, 10))", "decimal128(20, 10)", [D("0.1000000015"), D("2.5000000000"), None, D("16777216")]),
        ("f=0.1", "bool", [False, False, None, False]),
        ("f in (0.1,2.5)", "bool", [False, True, None, False]),
        ("case when f > 0 then case when id > 0 then null end end", "null", [None] * 4),
        ("case when id > 0 then null end + 1", "int32", [None] * 4),
        ("f+1", "double", [1.1000000014901161, 3.5, None, 16777217.0]),
        ("f*f", "float", [0.010000000707805157, 6.25, None, 281474976710656.0]),
        ("f*0.1", "double", [0.010000000149011612, 0.25, None, 1677721.6]),
        ("f%0.3", "double", [0.10000000149011612, 0.10000000000000009, None, 0.10000000062088171]),
        ("f/3", "double", [0.033333333830038704, 0.8333333333333334, None, 5592405.333333333]),
        ("p*f", "double", [0.010000000149011612, 6.7, None, -44459622.4]),
        ("b+f", "double", [1.1000000014901161, 16777219.5, None, 9007199271518208.0]),
        ("round(d,2)", "double", [0.1, 2.68, None, 1.01]),
        ("round(f,1)", "float", [0.10000000149011612, 2.5, None, 16777216.0]),
        ("round(p,1)", "decimal128(10, 1)", [D("0.1"), D("2.7"), None, D("-2.7")]),
        ("round(p,-1)", "decimal128(9, 0)", [D("0"), D("0"), None, D("0")]),
        ("round(b/3,2)", "double", [0.33, 5592405.67, None, 3002399751580330.5]),
        ("floor(f)", "int64", [0, 2, None, 16777216]),
        ("floor(p)", "decimal128(9, 0)", [D("0"), D("2"), None, D("-3")]),
        ("ceil(b)", "int64", [1, 16777217, None, 9007199254740993]),
        ("coalesce(f,1)", "double", [0.10000000149011612, 2.5, 1.0, 16777216.0]),
        ("if(id=1,f,0.1)", "double", [0.10000000149011612, 0.1, 0.1, 0.1]),
        ("nullif(f,0.1)", "float", [0.10000000149011612, 2.5, None, 16777216.0]),
        ("year(day)+1", "int32", [2025, 2024, None, 1970]),
        ("datediff(day,date '2020-01-01')*3", "int32", [4473, 3381, None, -54789]),
        ("p/b", "decimal128(31, 23)", [D("0.10000000000000000000000"), D("1.5974043847677478E-7"), None, D("-2.9420910E-16")]),
        ("p/id", "decimal128(21, 13)", [D("0.1000000000000"), D("1.3400000000000"), None, D("-0.6625000000000")]),
        ("p/d", "double", [1.0, 1.0018691588785047, None, -2.63681592039801]),
        ("p/year(day)", "decimal128(21, 13)", [D("0.0000494071146"), D("0.0013247652002"), None, D("-0.0013458608431")]),
        ("p*year(day)", "decimal128(21, 2)", [D("202.40"), D("5421.64"), None, D("-5217.85")]),
        (
            "p/count(*) over ()",
            "decimal128(31, 23)",
            [D("0.02500000000000000000000"), D("0.67000000000000000000000"), None, D("-0.66250000000000000000000")],
        ),
        ("sum(p)/count(*)", "decimal128(38, 20)", [D("0.03250000000000000000")]),
        ("sum(p)/sum(id)", "decimal128(38, 20)", [D("0.01300000000000000000")]),
        ("sum(p)*sum(id)", "decimal128(38, 2)", [D("1.30")]),
        ("sum(p)/sum(length('abc'))", "decimal128(38, 20)", [D("0.01083333333333333333")]),
        ("100.0*count(*)/sum(id)", "decimal128(38, 14)", [D("40.00000000000000")]),
        ("count(*)*1.5", "decimal128(23, 1)", [D("6.0")]),
        ("round(sum(p)/count(*),2)", "decimal128(21, 2)", [D("0.03")]),
        ("avg(p)", "decimal128(14, 6)", [D("0.043333")]),
        ("avg(distinct p)", "decimal128(14, 6)", [D("0.043333")]),
        ("avg(p) filter (where id > 1)", "decimal128(14, 6)", [D("0.015000")]),
        ("avg(p) filter (where id > 9)", "decimal128(14, 6)", [None]),
        ("avg(p) over (order by id)", "decimal128(14, 6)", [D("0.100000"), D("1.390000"), D("1.390000"), D("0.043333")]),
        ("avg(avg(p)) over (partition by avg(p))", "decimal128(18, 10)", [D("0.0433330000")]),
        ("avg(cast(b as decimal(38, 10)))", "decimal128(38, 14)", [D("3002399757172737.00000000000000")]),
        ("sum(f)/count(*)", "double", [4194304.65]),
        ("max(year(day))+1", "int32", [2025]),
    ],
)
def test_types_and_digits_are_sparks(
    connection: duckdb.DuckDBPyConnection, expression: str, type_name: str, values: list[object]
) -> None:
    by_row = "" if len(values) == 1 else " ORDER BY id"
    result = connection.sql(to_duckdb(f"SELECT {expression} AS r FROM t{by_row}", KINDS)).to_arrow_table()["r"]
    assert (str(result.type), result.to_pylist()) == (type_name, values)


@pytest.mark.parametrize("source", ["(SELECT {} AS r FROM t) AS q", "(SELECT * FROM (SELECT {} AS r FROM t) AS p) AS q"])
def test_types_behind_a_star_are_sparks(connection: duckdb.DuckDBPyConnection, source: str) -> None:
    for expression, type_name in [("year(day)", "int32"), ("p / 2", "decimal128(14, 6)"), ("sum(p)", "decimal128(20, 2)")]:
        for query in (f"SELECT * FROM {source.format(expression)}", f"SELECT q.* FROM {source.format(expression)}"):
            result = connection.sql(to_duckdb(query, KINDS)).to_arrow_table()
            assert [str(kind) for kind in result.schema.types] == [type_name]


def test_what_has_no_exact_form_in_duckdb_is_refused() -> None:
    for expression, named in [
        ("day - CAST(day AS TIMESTAMP)", "the difference of DATE and TIMESTAMP"),
        ("round(d, id)", "digits that are computed"),
    ]:
        with pytest.raises(UnsupportedError, match=named):
            to_duckdb(f"SELECT {expression} FROM t", KINDS)


def test_an_average_of_too_many_digits_is_an_error(connection: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT avg(CAST(w AS DECIMAL(38, 18))) FROM VALUES ('12345678901234567890.5') AS v (w)"
    with pytest.raises(duckdb.OutOfRangeException, match="INT128"):
        connection.execute(to_duckdb(query))


def test_a_quotient_of_too_many_digits_is_an_error(connection: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT CAST(w AS DECIMAL(38, 18)) / CAST(3 AS DECIMAL(38, 18)) FROM VALUES ('12345678901234567890.5') AS v (w)"
    with pytest.raises(duckdb.OutOfRangeException, match="INT128"):
        connection.execute(to_duckdb(query))


def test_date_trunc_gives_a_timestamp_with_time_zone(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("SET TimeZone = 'UTC'")
    result = connection.sql(to_duckdb("SELECT date_trunc('month', day) AS r FROM t WHERE id = 1", KINDS)).to_arrow_table()["r"]
    assert str(result.type) == "timestamp[us, tz=UTC]"
    assert str(result[0]) == "2024-01-01 00:00:00+00:00"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("-0.0D", "-0.0"),
        ("-0.0F", "-0.0"),
        ("cast(1e300 as float)", "inf"),
        ("try_cast(-3.4028235677973366e38 as float)", "-inf"),
        ("cast(double('NaN') as float)", "nan"),
        ("cast(3.4028235e38D as float)", "3.4028234663852886e+38"),
    ],
)
def test_floats_keep_the_sign_of_zero_and_end_in_infinities(
    connection: duckdb.DuckDBPyConnection, expression: str, value: str
) -> None:
    assert str(connection.sql(to_duckdb(f"SELECT {expression} AS x")).to_arrow_table()["x"][0].as_py()) == value


def test_products_and_sums_of_short_decimals_have_all_of_their_digits(connection: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT p * p AS a, p * n AS b, n * p AS c, w + w AS d, w - (0 - w) AS e FROM t"
    ends = {"p": decimal(10, 2), "n": INT, "w": decimal(18, 0)}
    row = "SELECT CAST(99999999.99 AS DECIMAL(10, 2)) AS p, 2147483647 AS n, CAST(999999999999999999 AS DECIMAL(18, 0)) AS w"
    made = connection.sql(f"WITH t AS ({row}) {to_duckdb(query, {'t': list(ends.items())})}").to_arrow_table()
    assert made.schema.types == [pa.decimal128(*digits) for digits in ((21, 4), (21, 2), (21, 2), (19, 0), (20, 0))]
    product = D("99999999.99") * 2147483647
    assert list(made.to_pylist()[0].values()) == [
        D("9999999998000000.0001"),
        product,
        product,
        D("1999999999999999998"),
        D("1999999999999999998"),
    ]


@pytest.mark.parametrize(
    "expression",
    ["b as date", "d as timestamp_ntz", "b as binary", "day as int", "day as boolean", "unhex('61') as int", "b > 0 as date"],
)
def test_casts_that_spark_does_not_know_are_refused(expression: str) -> None:
    for name in ("cast", "try_cast"):
        with pytest.raises(InvalidInputError, match="expected a value that can be"):
            to_duckdb(f"SELECT {name}({expression}) FROM t", KINDS)


def test_numbers_beyond_the_moments_of_duckdb_are_refused(connection: duckdb.DuckDBPyConnection) -> None:
    for number in ("9000000000001L", "double('NaN')", "-1e300D"):
        with pytest.raises(duckdb.Error, match="the cast of a number beyond 9000000000000 seconds"):
            connection.sql(to_duckdb(f"SELECT CAST({number} AS TIMESTAMP) AS x")).fetchall()
