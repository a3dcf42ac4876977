"""Spark's functions on DuckDB: each query of a recording has Spark's answer, or is refused by name. There is no third."""

import datetime as dt
import math
import random
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.sql.duckdb.functions.momentreading import read_moment
from tablestore.sql.query.functions import SPARK_FUNCTIONS
from tests.support.sql.answers import (
    COLLECTIONS,
    EDGES,
    EXAMPLES,
    SCALAR_EDGES,
    judge,
    read_answers,
    share_by_function,
    wrong,
)


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path_factory.mktemp("warehouse"), engine="duckdb") as env:
        yield env


@pytest.mark.deep
@pytest.mark.parametrize(
    ("recording", "step"),
    [
        pytest.param(EXAMPLES, 1, id="examples"),
        pytest.param(EDGES, 9, id="some edges"),
        pytest.param(EDGES, 1, id="edges", marks=pytest.mark.slow),
        pytest.param(SCALAR_EDGES, 9, id="some edges of more functions"),
        pytest.param(SCALAR_EDGES, 1, id="edges of more functions", marks=pytest.mark.slow),
        pytest.param(COLLECTIONS, 4, id="some collections"),
        pytest.param(COLLECTIONS, 1, id="collections", marks=pytest.mark.slow),
    ],
)
def test_a_function_answers_as_in_spark_or_is_refused_by_name(recording: Path, step: int, env: ts.TableEnvironment) -> None:
    verdicts = [judge(answer, env) for answer in read_answers(recording)[::step]]
    sys.stdout.write("\n".join(share_by_function(verdicts)))
    assert not list(map(str, wrong(verdicts)))
    assert env.execute_sql("SELECT 1 AS a").to_arrow().to_pylist() == [{"a": 1}], "the session lives on"


@pytest.mark.parametrize(
    ("ends", "step", "expected"),
    [
        ("'2024-03-30 02:30:00', '2024-04-01 02:30:00'", "1 DAY", ["03-30 02:30", "03-31 03:30", "04-01 02:30"]),
        ("'2024-03-30 02:30:00', '2024-04-01 02:30:00'", "24 HOURS", ["03-30 02:30", "03-31 03:30", "04-01 02:30"]),
        ("'2024-03-31 01:30:00', '2024-03-31 04:30:00'", "1 HOUR", ["03-31 01:30", "03-31 03:30", "03-31 04:30"]),
        ("'2024-10-27 01:30:00', '2024-10-27 03:30:00'", "1 HOUR", ["10-27 01:30", "10-27 02:30", "10-27 02:30", "10-27 03:30"]),
        ("'2024-10-26 02:30:00', '2024-10-28 02:30:00'", "1 DAY", ["10-26 02:30", "10-27 02:30", "10-28 02:30"]),
        ("'2024-01-30 02:30:00', '2024-05-02 02:30:00'", "1 MONTH", ["01-30 02:30", "02-29 02:30", "03-30 02:30", "04-30 02:30"]),
        ("'2024-06-30 09:00:00', '2024-03-31 10:00:00'", "-1 MONTH", ["06-30 09:00", "05-30 09:00", "04-30 09:00"]),
    ],
)
def test_a_sequence_of_timestamps_goes_by_the_clocks_of_the_time_zone(
    ends: str, step: str, expected: list[str], tmp_path: Path
) -> None:
    with ts.TableEnvironment.create(tmp_path, engine="duckdb") as env:
        env.execute_sql("SET 'timezone' = 'Europe/Brussels'")
        first, last = (f"TIMESTAMP {end}" for end in ends.split(", "))
        query = f"SELECT transform(sequence({first}, {last}, INTERVAL {step}), x -> date_format(x, 'MM-dd HH:mm')) AS s"
        assert env.execute_sql(query).to_arrow()["s"][0].as_py() == expected


@pytest.mark.parametrize(
    ("step", "message"),
    [("make_dt_interval(0, n)", "by a step that is computed"), ("INTERVAL 1 MICROSECOND", "more than 10000000")],
)
def test_a_sequence_of_moments_by_a_computed_step_or_of_too_many_is_refused(
    step: str, message: str, env: ts.TableEnvironment
) -> None:
    ends = "TIMESTAMP '2024-01-01 00:00:00', TIMESTAMP '2024-01-02 00:00:00'"
    with pytest.raises(ts.UnsupportedError, match=message):
        env.execute_sql(f"SELECT sequence({ends}, {step}) FROM VALUES (1) AS t (n)").to_arrow()


@pytest.mark.parametrize(
    "text",
    [
        "SELECT now() AS current_timestamp",
        "SELECT current_timestamp AS current_timestamp",
        "SELECT now() AS x, now() AS current_timestamp, current_timestamp() AS y",
    ],
)
def test_the_time_of_a_query_may_be_called_as_its_function(text: str, env: ts.TableEnvironment) -> None:
    (row,) = env.execute_sql(text).to_arrow().to_pylist()
    assert len(set(row.values())) == 1 and isinstance(row["current_timestamp"], dt.datetime)


def test_the_day_of_a_query_is_that_of_its_time_zone(env: ts.TableEnvironment) -> None:
    text = "SELECT current_date AS current_date, curdate() AS other, to_date(now()) AS day"
    try:
        for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):
            env.execute_sql(f"SET TIME ZONE '{zone}'")
            (row,) = env.execute_sql(text).to_arrow().to_pylist()
            assert len(set(row.values())) == 1 and isinstance(row["current_date"], dt.date)
    finally:
        env.execute_sql("SET TIME ZONE 'UTC'")


def test_skewness_and_kurtosis_of_many_rows_are_those_of_spark(env: ts.TableEnvironment) -> None:
    query = "SELECT skewness(sin(id)) AS s, kurtosis(sin(id)) AS k, skewness(DISTINCT id % 3) AS d FROM range(0, {}, 1)"
    (few,) = env.execute_sql(query.format(1000)).to_arrow().to_pylist()
    assert few == {"s": pytest.approx(5.537450820815983e-05, rel=1e-10), "k": pytest.approx(-1.4985055047537623), "d": 0.0}
    # Long lists are parted.
    values = [math.sin(number) for number in range(5000)]
    mean = math.fsum(values) / len(values)
    second, third, fourth = (math.fsum((value - mean) ** power for value in values) for power in (2, 3, 4))
    (many,) = env.execute_sql(query.format(5000)).to_arrow().to_pylist()
    assert many["s"] == pytest.approx(math.sqrt(5000) * third / second**1.5, rel=1e-9)
    assert many["k"] == pytest.approx(5000 * fourth / second**2 - 3, rel=1e-12)


_ROW = (
    "VALUES (7, -3, 'kitten', CAST(NULL AS STRING), 0.0D, double('NaN'), double('Infinity'), 9223372036854775807, true) "
    "AS t (seven, below, word, nothing, zero, nan, infinite, greatest, yes)"
)


@pytest.mark.deep_after(19)
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("to_utc_timestamp('2016-08-31', 'Asia/Seoul')", dt.datetime(2016, 8, 30, 15, tzinfo=dt.UTC)),
        ("from_utc_timestamp('2016-08-31', 'Asia/Seoul')", dt.datetime(2016, 8, 31, 9, tzinfo=dt.UTC)),
        ("collect_list(nothing)", []),
        ("collect_set(nothing)", []),
        ("array_agg(nothing) FILTER (WHERE seven > 7)", []),
        ("size(collect_list(nothing))", 0),
        ("pmod(seven, below)", 1),
        ("pmod(below, seven)", 4),
        ("bit_count(below + 2)", 64),
        ("get_json_object('{\"a\": [1, {\"b c\": 2}]}', '$.a[1].b c')", "2"),
        ("get_json_object('{\"a:b\": 2}', '$.a:b')", "2"),
        ("to_json(named_struct('x', seven, 'y', nothing))", '{"x":7}'),
        ("levenshtein(word, 'sitting')", 3),
        ("levenshtein(word, 'k\u00eftten')", 1),
        ("substring_index('a.b.c', '.', seven - 9)", "b.c"),
        ("conv('-1', 10, 16)", "FFFFFFFFFFFFFFFF"),
        ("try_add(greatest, seven)", None),
        ("format_number(-zero, 1)", "-0.0"),
        ("mask(word, 'X', 'x')", "xxxxxx"),
        ("shiftright(below, seven - 7)", -3),
        ("try_cast('true' AS DECIMAL(1, 1))", None),
        ("corr(seven, below)", None),
        ("avg(a) FROM VALUES (9223372036854775807), (-9223372036854775808) AS t (a)", 0.0),
        ("pow(seven - 6, infinite) = nan", True),
        ("pow(1.0D, nan) = nan", True),
        ("pow(nan, 0)", 1.0),
        ("atan2(-zero, -1.0D)", math.pi),
        ("min_by(a, b) FROM VALUES (CAST(NULL AS INT), 1), (2, 2) AS t (a, b)", None),
        ("max_by(a, b, 2) FROM VALUES (CAST(NULL AS INT), 3), (2, 2), (1, 1) AS t (a, b)", [None, 2]),
        ("max_by(a, b) OVER () FROM VALUES (CAST(NULL AS INT), 3) AS t (a, b)", None),
        ("count_if(nothing > 'a')", 0),
        ("unix_timestamp(TIMESTAMP '1969-12-31 23:59:59.5')", 0),
        ("mod(CAST('-2147483648' AS INT), seven - 8)", 0),
        ("upper('stra\u00dfe')", "STRASSE"),
        ("seven & 12 >> 1", 6),
        ("1 | 4 & 2", 1),
        ("seven ^ 3 & 1", 6),
        ("below + 1 >>> 30", 3),
        ("256 >>> 2 >>> 1", 32),
        ("seven & 12 >>> 1", 6),
        ("zip_with(array(1), array('a'), (x, y) -> (y, x))", [{"y": "a", "x": 1}]),
        ("concat_ws(word)", ""),
        ("concat_ws(nothing)", None),
        ("decode(nothing, 'a', 1, NULL, 2)", 2),
        ("decode(seven, NULL, 'x', 'y')", "y"),
        ("nanvl(nan, seven)", 7.0),
        ("nanvl(CAST(NULL AS DOUBLE), seven)", None),
        ("nanvl(-zero, seven) IS NULL", False),
        ("hex(hmac('k', 'm', 'md5'))", "ED7E724D3A91554AAA2043041D9C5305"),
        ("hmac('', nothing)", None),
        ("date_part('days', interval 5 days 3 hours 7 minutes)", 5),
        ("extract(MONTH FROM INTERVAL -'25-3' YEAR TO MONTH)", -3),
        ("extract(HOUR FROM INTERVAL -'1 23:55:59.5' DAY TO SECOND)", -23),
        ("extract(SECOND FROM INTERVAL -'1 23:55:59.5' DAY TO SECOND)", Decimal("-59.500000")),
        ("extract(DAY FROM INTERVAL 2 WEEKS)", 14),
        ("width_bucket(INTERVAL '-1' DAY, INTERVAL '0' DAY, INTERVAL '36' HOUR, 3)", 0),
        ("width_bucket(INTERVAL '25' HOUR, INTERVAL '0' DAY, INTERVAL '36' HOUR, 3)", 3),
        ("try_add(TIME '23:30:00', INTERVAL 1 HOUR)", None),
        ("try_subtract(TIME '23:30:00', INTERVAL 1 HOUR)", dt.time(22, 30)),
        ("INTERVAL '1' DAY", dt.timedelta(days=1)),
        ("-INTERVAL 3 DAYS 4 HOURS", dt.timedelta(days=-3, hours=-4)),
        ("INTERVAL '1 day 2.5 seconds'", dt.timedelta(days=1, seconds=2.5)),
        ("INTERVAL '-.5 second'", dt.timedelta(seconds=-0.5)),
        ("INTERVAL '1. second'", dt.timedelta(seconds=1)),
        ("rpad(X'c3a9', 3, 'ab')", "éab"),
        ("lpad('ab', 4, X'6162')", "abab"),
        ("INTERVAL '10 11:12' DAY TO MINUTE", dt.timedelta(days=10, hours=11, minutes=12)),
        ("array(INTERVAL 1 DAY, NULL)", [dt.timedelta(days=1), None]),
        ("interval 13.123456789 seconds", dt.timedelta(seconds=13, microseconds=123456)),
        ("DATE '2020-01-10' - DATE '2020-01-01'", dt.timedelta(days=9)),
        ("TIMESTAMP_NTZ '2020-01-10 12:00:00' - INTERVAL 1 DAY 2 HOURS", dt.datetime(2020, 1, 9, 10)),
        ("CAST(TIMESTAMP '2020-03-31 12:00:00' - INTERVAL 1 MONTH AS STRING)", "2020-02-29 12:00:00"),
        ("CAST(TIMESTAMP '0001-01-30 12:00:00' + INTERVAL 13 MONTHS AS STRING)", "0002-02-28 12:00:00"),
        ("CAST(TIMESTAMP '1582-10-10 12:00:00' + INTERVAL 30 HOURS AS STRING)", "1582-10-11 18:00:00"),
        ("DATE '2020-01-31' + INTERVAL '1-1' YEAR TO MONTH", dt.date(2021, 2, 28)),
        ("sign(INTERVAL -'100' YEAR)", -1.0),
        ("INTERVAL '1-1' YEAR TO MONTH div INTERVAL '-1' MONTH", -13),
        ("make_dt_interval(1, 12, 30, 1.001001)", dt.timedelta(days=1, hours=12, minutes=30, seconds=1, microseconds=1001)),
        ("make_dt_interval(NULL)", None),
        ("concat(1)", "1"),
        ("concat(-0.5BD, 'x')", "-0.5x"),
        ("CAST(0.25BD AS STRING)", "0.25"),
        ("typeof(abs(NULL))", "double"),
        ("typeof(nullifzero(NULL))", "void"),
        ("typeof(uniform(NULL, 1))", "void"),
        ("to_char(encode('Spark SQL', 'utf-8'), ' hex ')", "537061726B2053514C"),
        ("'a%b' LIKE concat('a!', '%b') ESCAPE '!'", True),
        ("'a!b' LIKE 'a!!b' ESCAPE '!'", True),
        ("'a^b' LIKE concat('a^^', '_') ESCAPE '^'", True),
        ("hour(TIME '23:59:59.999999')", 23),
        ("minute(a) FROM VALUES (TIME '23:59:59.999999') AS t (a)", 59),
        ("time_trunc('MILLISECOND', TIME '09:32:05.123456')", dt.time(9, 32, 5, 123000)),
        ("TIME '23:59:59.999000'", dt.time(23, 59, 59, 999000)),
        ("TIME '01:00:00.000001' < TIME '01:00:00.000002'", True),
        ("ntile(2 + 1) OVER (ORDER BY seven)", 1),
        ("to_timestamp('2018-11-17 13:33:33.25', 'yyyy-MM-dd HH:mm:ss.SSSSSS') = '2018-11-17 13:33:33.25'", True),
        ("date_format(DATE '2018-02-03', 'yyyy y MM M MMM dd d D EEE EEEE')", "2018 2018 02 2 Feb 03 3 34 Sat Saturday"),
        ("concat(seven, NULL) IS NULL", True),
        ("hex(aes_encrypt('a', '0000111122223333', 'GCM', 'DEFAULT', CAST('abcdefghijkl' AS BINARY), 'x')) LIKE '6162%'", True),
        ("aes_decrypt(aes_encrypt('Spark', '0000111122223333'), '0000111122223333')", b"Spark"),
        ("try_aes_decrypt(unhex('00'), '0000111122223333', 'CBC')", None),
        ("aes_encrypt(nothing, '0000111122223333')", None),
        ("collect_union(a) FROM VALUES (array(2, 1, NULL)), (NULL), (array(2, 3)) AS t (a)", [1, 2, 3]),
        ("collect_union(a) FROM VALUES (CAST(NULL AS ARRAY<INT>)) AS t (a)", []),
        ("grouping_id() FROM VALUES (1, 2) AS t (a, b) GROUP BY GROUPING SETS ((b), (a, b)) HAVING grouping_id() > 0", 1),
        ("vector_norm(array(3F, 4F))", 5.0),
        ("vector_norm(array(3F, NULL))", None),
        ("vector_norm(CAST(array() AS ARRAY<FLOAT>), float('inf'))", 0.0),
        ("vector_normalize(array(0F, 0F))", None),
        ("vector_normalize(array(3F, 4F), 1.0F)", [0.4285714328289032, 0.5714285969734192]),
        ("vector_cosine_similarity(array(1e30F), array(1e30F))", 1.0),
        ("vector_l2_distance(array(1F, 2F), array(3F, 4F))", 2.8284270763397217),
        # Eight products at a time.
        (
            "vector_inner_product(array(1F, 0F, 0F, 0F, 0F, 0F, 0F, 0F, 1e10F, 1e10F, 0F, 0F, 0F, 0F, 0F, 0F), "
            "array(1F, 0F, 0F, 0F, 0F, 0F, 0F, 0F, 1e10F, -1e10F, 0F, 0F, 0F, 0F, 0F, 0F))",
            1.0,
        ),
        ("vector_sum(a) FROM VALUES (array(1F, 2F)), (NULL), (array(3F, 0.1F)) AS t (a)", [4.0, 2.0999999046325684]),
        (
            "vector_avg(a) FROM VALUES (array(16777216F)), (array(1F)), (array(1F)), (array(1F)), (array(-16777216F)) AS t (a)",
            [0.5],
        ),
        (
            "collect_list(d) FROM (SELECT counter_diff(c) OVER (ORDER BY t) AS d "
            "FROM VALUES (1, 100), (2, NULL), (3, 400), (4, 50), (5, 60) AS s (t, c) ORDER BY t)",
            [300, 10],
        ),
    ],
)
def test_values_that_were_wrong_in_silence_are_sparks(expression: str, value: object, env: ts.TableEnvironment) -> None:
    query = f"SELECT {expression}" if " FROM " in expression else f"SELECT {expression} FROM {_ROW}"
    assert env.execute_sql(query).to_arrow().column(0).to_pylist() == [value]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("rand(0)", 0.7604953758285915),
        ("rand(NULL)", 0.7604953758285915),
        ("rand(-3)", 0.7618556634486083),
        ("rand(123456789012L)", 0.6719680757150164),
        ("randn(-99)", 0.5636745205018655),
        ("randstr(10, 5)", "R0Tmgfhbai"),
        ("uniform(-5, 5, 3)", -2),
        ("uniform(1.5D, 2.5D, 9)", 2.2145670158242736),
        ("uniform(1F, 10, 0)", 7.84445858001709),
        ("uniform(5.5F, CAST(10.5 AS FLOAT), 123)", 6.289763927459717),
        ("uniform(CAST(1 AS DECIMAL(5, 2)), 10F, 0)", 7.84445858001709),
        ("uniform(1F, 10D, 0)", 7.844458382457324),
        ("rand() < 1 AND uniform(1, 2) < 3 AND randn() < 100", True),
    ],
)
def test_random_numbers_of_a_query_of_one_row_are_sparks(expression: str, value: object, env: ts.TableEnvironment) -> None:
    assert env.execute_sql(f"SELECT {expression}").to_arrow().column(0).to_pylist() == [value]


@pytest.mark.deep_after(23)
@pytest.mark.parametrize(
    "query",
    [
        "SELECT hmac('', 'm')",
        "SELECT hmac('k', 'm', 'MD-5')",
        "SELECT vector_norm(array(1F), 3.0F)",
        "SELECT vector_norm(array(1))",
        "SELECT vector_sum(a) FROM VALUES (array(1F)), (array(1F, 2F)) AS t (a)",
        "SELECT vector_inner_product(array(1F), array(1F, 2F))",
        "SELECT counter_diff(a) FROM VALUES (1) AS t (a)",
        "SELECT counter_diff(a) OVER (ORDER BY a) FROM VALUES (-1) AS t (a)",
        "SELECT grouping_id() FROM VALUES (1) AS t (a) GROUP BY a",
        "SELECT make_ym_interval(1, 2)",
        "SELECT INTERVAL '0' MONTH",
        "SELECT abs(INTERVAL -'1-1' YEAR TO MONTH)",
        "SELECT aes_encrypt('a', 'short')",
        "SELECT aes_encrypt('a', '0000111122223333', 'CBC', 'NONE')",
        "SELECT aes_decrypt(unhex('00'), '0000111122223333')",
        "SELECT filter(array(1), (x, X) -> x > 1)",
        "SELECT concat(array(1), NULL)",
        "SELECT make_dt_interval(2147483647, 2147483647)",
        "SELECT try_make_interval(1, NULL) AS i",
        "SELECT try_multiply(INTERVAL 2 YEAR, 3)",
        "SELECT unix_nanos(TIMESTAMP_NTZ '2008-12-25 15:30:00')",
        "SELECT grouping_id(b) FROM VALUES (1, 2) AS t (a, b) GROUP BY CUBE (a, b)",
        "SELECT regexp_count('a', '\\\\y')",
        "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY x, y) FROM VALUES (1, 1) AS t (x, y)",
        "SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY x, y) FROM VALUES (1, 1) AS t (x, y)",
        "SELECT percentile_disc(DISTINCT 0.5) WITHIN GROUP (ORDER BY x) FROM VALUES (1) AS t (x)",
        "SELECT percentile_cont(DISTINCT 0.5) WITHIN GROUP (ORDER BY x) FROM VALUES (1) AS t (x)",
        "SELECT percentile_disc(0.5) FROM VALUES (1) AS t (x)",
        "SELECT mode() WITHIN GROUP (ORDER BY x, y) FROM VALUES (1, 1) AS t (x, y)",
        "SELECT mode() FROM VALUES (1) AS t (x)",
        "SELECT uniform('1', 10, 0)",
        "SELECT uniform(1, 10, 3S)",
        "SELECT uniform(NULL, 10, 'foo')",
        "SELECT uniform(id, 10) FROM range(3)",
        "SELECT ntile(3S) OVER (ORDER BY id) FROM range(3)",
        "SELECT ntile(3L) OVER (ORDER BY id) FROM range(3)",
        "SELECT ntile('3') OVER (ORDER BY id) FROM range(3)",
        "SELECT ntile(NULL) OVER (ORDER BY id) FROM range(3)",
        "SELECT ntile(CAST(id AS INT)) OVER (ORDER BY id) FROM range(3)",
        "SELECT collect_set(v) FROM VALUES (map('a', 1)) AS t (v)",
        "SELECT collect_set(array(v)) FROM VALUES (map('a', 1)) AS t (v)",
        "SELECT from_json('{}', '')",
        "SELECT from_json('{}', '   ')",
        "SELECT unix_timestamp(DATE '2024-01-15', 123)",
        "SELECT to_unix_timestamp(DATE '2024-01-15', array('yyyy'))",
    ],
)
def test_calls_that_are_errors_in_spark_are_errors(query: str, env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.InvalidInputError, match=r"the function|regular expression|years and months|of a lambda"):
        env.execute_sql(query).to_arrow()


@pytest.mark.parametrize(
    ("item", "name"),
    [("floor(p, 1)", "floor(p, 1)"), ("ceil(p, 1)", "ceil(p, 1)"), ("round(p, 1)", "round(p, 1)"), ("floor(p)", "FLOOR(p)")],
)
def test_the_name_of_a_bound_with_digits_is_written_small(item: str, name: str, env: ts.TableEnvironment) -> None:
    column = env.execute_sql(f"SELECT {item} FROM VALUES (CAST(1.55 AS DECIMAL(10, 2))) AS t (p)").to_arrow().schema[0]
    assert (column.name, str(column.type)) == (name, "decimal128(9, 0)" if item == "floor(p)" else "decimal128(10, 1)")


@pytest.mark.deep_after(23)
@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("get_json_object(word, '$[*].a')", "get_json_object with a path"),
        ("get_json_object(word, '$.*')", "get_json_object with a path"),
        ("get_json_object(word, '$..a')", "get_json_object with a path"),
        ("get_json_object('{\"a\": 1} x', '$.a')", "JSON that is not well-formed"),
        ("to_json(named_struct('x', nan))", "to_json of DOUBLE"),
        ("regexp_extract(word, '(k)', seven)", "regexp_extract with a group that is computed"),
        ("regexp_extract(word, '(k)', NULL)", "regexp_extract with a group that is computed"),
        ("to_utc_timestamp('2016-08-31', 'UTC+1')", "a time zone"),
        ("try_cast(yes AS DECIMAL(1, 1))", "the cast of a BOOLEAN"),
        ("upper('\ufb01n')", "capitals of ligatures"),
        ("regexp_count(word, '(?<=t)')", "a regular expression"),
        ("regexp_count('a\\n', 'a$')", "that ends with the end of a line"),
        ("percentile_approx(a, 0.5, 1) FROM VALUES (1), (2) AS t (a)", "of more values than its accuracy"),
        ("mode(a) FROM VALUES (1), (2) AS t (a)", "mode of several values"),
        ("try_sum(a) FROM VALUES (9223372036854775807), (7), (-9) AS t (a)", "out of range on the way"),
        ("make_time(1, 2, 3.000001)", "finer than milliseconds"),
        ("trunc('2009-02-12', word)", "trunc to a unit that is computed"),
        ("date_trunc(word, '2015-03-05T09:32:05')", "date_trunc to a unit that is computed"),
        ("sha2(word, seven)", "sha2 with a number of bits that is computed"),
        ("to_timestamp_ntz('2024-02-29 12:30:00')", "a text without a pattern"),
        ("date_format(DATE '2026-06-15', 'g')", "the letter g"),
        ("date_format(DATE '2026-06-15', word)", "a pattern that is computed"),
        ("to_timestamp('2024-07-01 CET', 'yyyy-MM-dd z')", "such a time zone"),
        ("try_to_timestamp('+400000-07-01', 'yyyy-MM-dd')", "a year beyond 290000"),
        ("TIME '23:59:59.999999'", "a TIME finer than milliseconds"),
        ("coalesce(TIME '23:59:59.999999', NULL)", "a TIME finer than milliseconds"),
        ("TRY_CAST(concat('23:59', ':59.9999') AS TIME)", "a TIME finer than milliseconds"),
        ("from_json('{}', 'd DATE64')", "with the schema"),
        ("levenshtein(word, 'sitting', CAST(nothing AS INT))", "a threshold that is NULL"),
        ("CAST(seven AS VARIANT)", "the cast to a VARIANT"),
        ("abs(CAST('-99999999999999999999999999999999999999' AS DECIMAL(38, 0)))", "more than 34 digits"),
        ("INTERVAL '1 year 2 seconds'", "months and days at once"),
        ("INTERVAL 'later 5 seconds'", "an interval in this form"),
        ("INTERVAL '-.5 day'", "an interval in this form"),
        ("INTERVAL '5second'", "an interval in this form"),
        ("INTERVAL '1' DAY / 2", "an interval by a number"),
        ('from_json(\'{}\', \'{"type":"struct","fields":[]}\')', "with the schema"),
        ("rand(0)", "rand with a seed over rows"),
        ("extract(HOUR FROM INTERVAL 2 DAYS)", "a part that it has not"),
        ("DATE '2020-01-01' + make_ym_interval(1, 2)", "make_ym_interval of years and months"),
        ("width_bucket(INTERVAL 1 DAY, INTERVAL 0 MONTH, INTERVAL 1 MONTH, 3)", "width_bucket of intervals"),
        ("transform(array(1), x -> rand(0))", "rand with a seed over rows"),
        ("counter_diff(seven) OVER (ORDER BY below ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)", "with a frame"),
        ("grouping_id() FROM VALUES (1, 2) AS t (a, b) GROUP BY a, ROLLUP (b)", "grouping_id beside"),
        ("count_min_sketch(seven, 0.5D, 0.5D, 1)", "the function count_min_sketch"),
    ],
)
def test_what_would_be_wrong_in_silence_is_refused_by_name(expression: str, message: str, env: ts.TableEnvironment) -> None:
    query = f"SELECT {expression}" if " FROM " in expression else f"SELECT {expression} FROM {_ROW}"
    with pytest.raises(ts.UnsupportedError, match=f"DuckDB does not run .*{message}"):
        env.execute_sql(query).to_arrow()


@pytest.mark.deep_after(10)
@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (
            "date_format(at, 'G GGGG E EEEE a D DD DDD Q QQ QQQ QQQQ')",
            "AD Anno Domini Sat Saturday PM 69 69 069 1 01 Q1 1st quarter",
        ),
        (
            "date_format(at, 'S SS SSSSSSSSS h K k kk y yyy yyyyy yyyyyy yy F')",
            "1 12 123456000 1 1 13 13 2024 2024 02024 002024 24 2",
        ),
        ("date_format(at, 'VV z zzzz O OOOO Z ZZZZ ZZZZZ')", "UTC UTC Coordinated Universal Time GMT GMT +0000 GMT Z"),
        ("date_format(at, 'X XX XXX XXXX XXXXX x xx xxx')", "Z Z Z Z Z +00 +0000 +00:00"),
        ("date_format(at, \"[yyyy]-'T''x'[MM%d\")", "2024-T'x03%9"),
        ("date_format(at, '')", ""),
        ("date_format(TIME '12:30:05.123', 'a h:mm:ss.SSS')", "PM 12:30:05.123"),
        ("date_format(DATE '-0044-03-15', 'y yy yyy yyyy yyyyy')", "-44 44 -044 -0044 -00044"),
        ("date_format(DATE '0000-03-15', 'y yy yyy yyyy yyyyy G')", "1 01 001 0001 00001 BC"),
        ("date_format(DATE '+12345-03-15', 'y yy yyy yyyy yyyyy yyyyyy')", "12345 45 12345 +12345 12345 012345"),
        ("from_unixtime(0, 'EEEE, d MMMM yyyy QQQ')", "Thursday, 1 January 1970 Q1"),
        ("to_char(DATE '2024-01-01', 'Q EEEE')", "1 Monday"),
        ("to_date('2023-100', 'yyyy-DDD')", "2023-04-10"),
        ("to_date('100 04', 'DDD MM')", "1970-04-10"),
        ("try_to_date('100 05', 'DDD dd')", None),
        ("to_date('MARCH 5, 2024', 'MMMM d, yyyy')", "2024-03-05"),
        ("try_to_date('March 5, 2024', 'MMM d, yyyy')", None),
        ("to_date('99', 'yy')", "2099-01-01"),
        ("try_to_date('202435', 'yyyyMd')", None),
        ("to_date('20245', 'yyyyS')", "2024-01-01"),
        ("to_date('0044 BC', 'yyyy G')", "-0043-01-01"),
        ("try_to_date('02 29', 'MM dd')", None),
        ("to_timestamp('PM', 'a')", "1970-01-01 12:00:00"),
        ("to_timestamp('24', 'kk')", "1970-01-01 00:00:00"),
        ("try_to_timestamp('13 AM', 'HH a')", None),
        ("to_timestamp('13 30 AM', 'HH ss a')", "1970-01-01 13:00:30"),
        ("to_timestamp('2024-01-01 00:00:00', 'yyyy-MM-dd HH:mm:ss[.SSS]')", "2024-01-01 00:00:00"),
        ("to_timestamp('2024-01-01 00:00:00.5', 'yyyy-MM-dd HH:mm:ss.SSS')", "2024-01-01 00:00:00.5"),
        ("try_to_timestamp('2024-01-01 00:00:00.', 'yyyy-MM-dd HH:mm:ss.SSS')", None),
        ("try_to_timestamp('20240101123456789', 'yyyyMMddHHmmssSSS')", None),
        ("to_timestamp('2024-01-01T00:00:00+01:30', \"yyyy-MM-dd'T'HH:mm:ssXXX\")", "2023-12-31 22:30:00"),
        ("to_timestamp('2024-01-01 Europe/Rome', 'yyyy-MM-dd VV')", "2023-12-31 23:00:00"),
        ("to_timestamp('2024-07-01 PST', 'yyyy-MM-dd z')", "2024-07-01 07:00:00"),
        ("to_timestamp('2024-01-01 GMT+1', 'yyyy-MM-dd O')", "2023-12-31 23:00:00"),
        ("to_timestamp_ntz('2024-01-01 +01:00', 'yyyy-MM-dd XXX')", "2024-01-01 00:00:00"),
        ("to_timestamp('+19999-07-01', 'yyyy-MM-dd')", "+19999-07-01 00:00:00"),
        ("try_to_timestamp('+4000000000-07-01', 'yyyy-MM-dd')", None),
        ("unix_timestamp(DATE '2024-01-01', 'ddd')", "1704067200"),
        ("unix_timestamp('5 Mar 2024', 'd MMM yyyy')", "1709596800"),
        ("to_time('12:30 PM', 'hh:mm a')", "12:30:00"),
    ],
)
def test_a_pattern_of_dates_means_what_it_does_in_spark(expression: str, value: str | None, env: ts.TableEnvironment) -> None:
    row = "VALUES (TIMESTAMP '2024-03-09 13:05:07.123456') AS t (at)"
    assert env.execute_sql(f"SELECT CAST({expression} AS STRING) AS v FROM {row}").to_arrow().to_pylist() == [{"v": value}]


@pytest.mark.parametrize(
    "call",
    [
        *(
            f"date_format(DATE '2026-06-15', '{pattern}')"
            for pattern in ["Y", "YYYY", "MMMMM", "EEEEE", "ddd", "HHH", "aa", "zzzzz", "V", "n", "b", "yyyy]", "yyyyyyy"]
        ),
        "date_format(TIME '12:30:00', 'yyyy')",
        "from_unixtime(0, 'Y')",
        "try_to_timestamp('2024-07-01', 'ddd')",
        "to_date('Tue 5 2024', 'E d yyyy')",
        "unix_timestamp('2026-06-15', 'YYYY-MM-dd')",
    ],
)
def test_what_spark_has_no_pattern_for_is_an_error(call: str, env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.InvalidInputError, match="a pattern of dates as Spark has them"):
        env.execute_sql(f"SELECT {call}").to_arrow()


@pytest.mark.parametrize(
    "items",
    ["inline(rows), inline(rows)", "explode(numbers), stack(1, 2)", "explode_outer(numbers) + 1", "size(stack(1, numbers))"],
)
def test_a_function_that_gives_rows_stands_alone(items: str, env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.InvalidInputError, match=r"gives? rows"):
        env.execute_sql(f"SELECT {items} FROM VALUES (array(named_struct('x', 1)), array(1)) AS t (rows, numbers)").to_arrow()


@pytest.mark.parametrize(
    "expression",
    ["-(-2147483648)", "- -9223372036854775808", "-CAST('-2147483648' AS INT)", "split_part(word, 't', below + 3)"],
)
def test_what_is_an_error_in_spark_is_one(expression: str, env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.InvalidInputError, match=r"out of range|counts from 1"):
        env.execute_sql(f"SELECT {expression} FROM {_ROW}").to_arrow()


@pytest.mark.deep_after(8)
@pytest.mark.parametrize(
    "condition",
    [
        *(f"word {like} {kind} ()" for like in ("LIKE", "NOT LIKE", "ILIKE") for kind in ("ALL", "ANY", "SOME")),
        "'a!b' LIKE 'a!b' ESCAPE '!'", "'a!b' ILIKE 'a!b' ESCAPE '!'", "word LIKE 'a!' ESCAPE '!'", "word LIKE 'a' ESCAPE '##'",
        "word LIKE 'a' ESCAPE ''", "word LIKE concat('a', '!b') ESCAPE '!'", "word LIKE concat('a', '\\\\b')",
    ],
)  # fmt: skip
def test_a_pattern_of_like_that_spark_refuses_is_an_error(condition: str, env: ts.TableEnvironment) -> None:
    for query in (f"SELECT {condition} FROM {_ROW}", f"SELECT 1 FROM {_ROW} WHERE {condition}"):
        with pytest.raises(ts.InvalidInputError, match="LIKE: expected"):
            env.execute_sql(query).to_arrow()


def test_the_examples_are_of_functions_that_spark_has() -> None:
    named = {answer.function for answer in read_answers(EXAMPLES) if answer.function.replace("_", "").isalnum()}
    assert named <= SPARK_FUNCTIONS


def test_what_is_read_by_a_built_in_is_read_alike_text_by_text(env: ts.TableEnvironment) -> None:
    chosen = random.Random(7)
    days = [
        "0000-01-01",
        "0001-01-01",
        "1900-02-29",
        "2000-02-29",
        "2024-2-29",
        "2024-02-30",
        "9999-12-31",
        "+10000-01-01",
        "-001-01-01",
    ]
    clocks = ["00:00:00", "23:59:59", "24:00:00", "12:60:00", "1:02:03", "12:00:00 ", " 12:00:00", "12:00", "12:00:00.5"]
    texts = [f"{chosen.choice(days)} {chosen.choice(clocks)}" for _ in range(60)] + ["", "x"]
    for pattern in ("yyyy-MM-dd HH:mm:ss", "yyyy-M-dd HH:mm:ss", "yyyy-MM-dd H:mm:ss", "yyyy-MM-dd HH:mm"):
        rows = ", ".join(f"('{text}')" for text in texts)
        query = f"SELECT t, unix_micros(try_to_timestamp(t, '{pattern}')) AS m FROM VALUES {rows} AS v (t)"
        read = {row["t"]: row["m"] for row in env.execute_sql(query).to_arrow().to_pylist()}
        alone = {text: read_moment(text, pattern) for text in texts}
        assert read == {text: None if moment is None else moment.micros for text, moment in alone.items()}
