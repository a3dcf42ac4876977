"""Types of results, casts and quotients on DuckDB: what a name stands for decides, and not where else it stands."""

from collections.abc import Iterator
from decimal import Decimal as D
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from tablestore_duckdb.engine import DuckDBEngine
from tablestore_duckdb.rowtypes import cast, rows_out, with_durations

import tablestore as ts
from tablestore.errors import UnsupportedError
from tests.support.sql.answers import EQUAL, TYPES, judge, read_answers
from tests.support.sql.randomqueries import VIEWS

# A share of them where time is short.
_STEP = 4


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path_factory.mktemp("warehouse"), engine="duckdb") as env:
        env.execute_sql("CREATE DATABASE shop")
        env.execute_sql("USE shop")
        env.execute_sql(
            "CREATE TABLE t (id BIGINT, a INT, f DOUBLE, p DECIMAL(10, 2), s ROW<x DOUBLE, y INT>, l ARRAY<DOUBLE>, "
            "m MAP<STRING, DOUBLE>, ls ARRAY<ROW<x DOUBLE>>, ti TINYINT, g STRING)"
        )
        env.execute_sql(
            "INSERT INTO t VALUES (1, 1, 2.7D, 2.50, named_struct('x', 2.7D, 'y', 1), array(2.7D, -2.7D), map('k', 2.7D), "
            "array(named_struct('x', -2.7D)), CAST(100 AS TINYINT), '7')"
        )
        env.execute_sql("CREATE TEMPORARY VIEW v AS SELECT a * 2 AS n, p AS q FROM t UNION ALL SELECT f, p / 3 FROM t")
        yield env


def values(env: ts.TableEnvironment, query: str, **parameters: Any) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The types of the columns, and the rows in order."""
    found = env.execute_sql(query, **parameters).to_arrow()
    return [str(one) for one in found.schema.types], sorted(tuple(row.values()) for row in found.to_pylist())


@pytest.mark.deep_after(7)
@pytest.mark.parametrize(
    ("query", "types", "rows"),
    [
        ("SELECT n FROM (SELECT a * 2 AS n FROM t UNION ALL SELECT f FROM t)", ["double"], [(2.0,), (2.7,)]),
        ("SELECT n FROM (SELECT a * 2 AS n FROM t EXCEPT SELECT f FROM t)", ["double"], [(2.0,)]),
        ("SELECT n FROM (SELECT f AS n FROM t INTERSECT SELECT f FROM t WHERE a = (SELECT 1 AS n))", ["double"], [(2.7,)]),
        ("SELECT n FROM v", ["double"], [(2.0,), (2.7,)]),
        ("SELECT f AS n FROM t WHERE EXISTS (SELECT a * 2 AS n FROM t)", ["double"], [(2.7,)]),
        ("SELECT s.x AS y, a * 2 AS x FROM t", ["double", "int32"], [(2.7, 2)]),
        ("SELECT x FROM (SELECT f * 1e10D AS x FROM t) WHERE x > (SELECT length(g) AS x FROM t)", ["double"], [(2.7e10,)]),
        ("SELECT b.a FROM (SELECT a * 2 AS a, f FROM t) AS c JOIN (SELECT f AS a FROM t) AS b ON c.f = b.a", ["double"], [(2.7,)]),
        ("SELECT a FROM t UNION ALL SELECT p FROM t", ["decimal128(12, 2)"], [(D("1.00"),), (D("2.50"),)]),
        ("SELECT * FROM (SELECT a, p FROM t UNION SELECT f, a FROM t LIMIT 0)", ["double", "decimal128(12, 2)"], []),
        ("SELECT a FROM t UNION ALL (SELECT CAST(f AS FLOAT) FROM t LIMIT 1)", ["double"], [(1.0,), (2.700000047683716,)]),
        ("SELECT f FROM t WHERE f IN (SELECT CAST(2.7D AS FLOAT) AS y) OR f IN (SELECT 2.7D)", ["double"], [(2.7,)]),
        ("SELECT array(CAST(1 AS FLOAT), 16777217) AS x", ["list<element: double>"], [([1.0, 16777217.0],)]),
        ("SELECT x FROM VALUES (0.5), (CAST(2 AS FLOAT)), (16777217) AS w (x)", ["double"], [(0.5,), (2.0,), (16777217.0,)]),
        ("SELECT x FROM VALUES (1), (0.5) AS w (x)", ["decimal128(11, 1)"], [(D("0.5"),), (D("1.0"),)]),
        ("SELECT x FROM VALUES (1), (2.5) AS w (x)", ["decimal128(11, 1)"], [(D("1.0"),), (D("2.5"),)]),
        ("SELECT ti + 100 AS x, ti * 2L AS y FROM t WHERE ti + 1 < 200", ["int32", "int64"], [(200, 200)]),
        ("SELECT length(g) AS n, count(*) FROM t GROUP BY n HAVING length(g) < 2 ORDER BY length(g)", ["int32", "int64"], [(1, 1)]),
    ],
)  # fmt: skip
def test_a_column_has_the_type_of_what_it_is(
    env: ts.TableEnvironment, query: str, types: list[str], rows: list[tuple[Any, ...]]
) -> None:
    assert values(env, query) == (types, rows)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("CAST(s.x AS INT)", 2),
        ("CAST(t.s.x AS BIGINT)", 2),
        ("CAST(l[1] AS INT)", -2),
        ("CAST(element_at(l, 2) AS INT)", -2),
        ("CAST(m['k'] AS INT)", 2),
        ("CAST(ls[0].x AS INT)", -2),
        ("CAST(l AS ARRAY<INT>)", [2, -2]),
        ("TRY_CAST(l AS ARRAY<INT>)", [2, -2]),
        ("CAST(m AS MAP<STRING, INT>)", [("k", 2)]),
        ("CAST(s AS STRUCT<x: INT, y: STRING>)", {"x": 2, "y": "1"}),
        ("CAST(ls AS ARRAY<STRUCT<z: INT>>)", [{"z": -2}]),
        ("transform(l, x -> CAST(x AS INT))", [2, -2]),
        ("filter(l, x -> CAST(x AS INT) = -2)", [-2.7]),
        ("aggregate(l, 0, (so_far, x) -> so_far + CAST(x AS INT))", 0),
        ("CAST(array(2.7D, a)[0] AS INT)", 2),
        ("CAST((SELECT max(f) FROM t) AS INT)", 2),
        ("CAST(:n AS INT)", 2),
        ("CAST(:d AS INT) + :i", 3),
        ("CAST(p AS DECIMAL)", D(3)),
    ],
)
def test_a_cast_to_a_whole_number_cuts_off_whatever_it_casts(env: ts.TableEnvironment, expression: str, expected: object) -> None:
    parameters = {name: value for name, value in {"n": 2.7, "d": D("2.70"), "i": 1}.items() if f":{name}" in expression}
    assert env.execute_sql(f"SELECT {expression} AS r FROM t", **parameters).to_arrow()["r"].to_pylist() == [expected]


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT CAST(n AS INT) AS r FROM v", [(2,), (2,)]),
        ("SELECT CAST(e AS INT) AS r FROM t LATERAL VIEW explode(l) x AS e", [(-2,), (2,)]),
        ("SELECT CAST(v AS INT) AS r FROM t LATERAL VIEW explode(m) x AS k, v", [(2,)]),
        ("SELECT CAST(x.e AS INT) AS r FROM t JOIN LATERAL explode(l) AS x (e)", [(-2,), (2,)]),
        ("SELECT CAST(e AS INT) AS r FROM (SELECT explode(l) AS e FROM t)", [(-2,), (2,)]),
        ("SELECT CAST(col AS INT) AS r FROM explode(array(2.7D, -2.7))", [(-2,), (2,)]),
        ("SELECT CAST(e AS INT) AS r FROM explode(array(2.7D)) AS x (e)", [(2,)]),
        ("SELECT CAST(e.x AS INT) AS r FROM t LATERAL VIEW explode(ls) AS e", [(-2,)]),
    ],
)
def test_a_cast_cuts_off_what_comes_of_views_and_generators(
    env: ts.TableEnvironment, query: str, rows: list[tuple[Any, ...]]
) -> None:
    assert values(env, query) == (["int32"], rows)


@pytest.mark.deep
@pytest.mark.parametrize("step", [pytest.param(_STEP, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)])
def test_random_queries_have_the_types_and_rows_that_spark_gives(step: int) -> None:
    with ts.TableEnvironment.create({"metastore": "memory"}, engine="duckdb") as env:
        for name, query in VIEWS.items():
            env.execute_sql(f"CREATE TEMPORARY VIEW {name} AS {query}")
        verdicts = [judge(answer, env) for answer in read_answers(TYPES)[::step]]
    assert not [str(verdict) for verdict in verdicts if verdict.outcome != EQUAL]


def test_a_quotient_of_what_a_view_selects_has_sparks_type(env: ts.TableEnvironment) -> None:
    assert values(env, "SELECT q / q AS r FROM v") == (["decimal128(35, 21)"], [(D(1),)] * 2)
    assert values(env, "SELECT q / 3 AS r FROM (SELECT p AS q FROM t)") == (["decimal128(14, 6)"], [(D("0.833333"),)])
    assert values(env, "SELECT :d / 3 AS r", d=D("2.70")) == (["decimal128(7, 6)"], [(D("0.900000"),)])


def test_tables_and_functions_that_only_the_engine_knows_have_types() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE own AS SELECT 2.7::DOUBLE AS f, {'x': -2.7::DOUBLE} AS s, 2.50::DECIMAL(10, 2) AS p")
        connection.execute("CREATE SCHEMA other; CREATE VIEW other.own AS SELECT 1 AS f")
        with ts.TableEnvironment.create({"metastore": "memory"}, engine=DuckDBEngine(connection)) as env:
            env.create_temporary_function("half", lambda x: x / 2, arguments=[pa.float64()], returns=pa.float64())
            query = "SELECT CAST(f AS INT) AS a, CAST(s.x AS INT) AS b, p / 3 AS c, CAST(half(f + 3) AS INT) AS d FROM own"
            assert values(env, query) == (["int32", "int32", "decimal128(14, 6)", "int32"], [(2, -2, D("0.833333"), 2)])
            assert values(env, "SELECT f / 2 AS r FROM other.own") == (["double"], [(0.5,)])


def test_what_depends_on_a_type_that_is_not_known_is_refused_with_its_place() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE own AS SELECT union_value(x := 2.7::DOUBLE) AS x")
        with ts.TableEnvironment.create({"metastore": "memory"}, engine=DuckDBEngine(connection)) as env:
            for expression in ("CAST(x AS INT)", "x / 2", "x DIV 2"):
                with pytest.raises(ts.UnsupportedError, match=r"of a value whose type is not known in `") as refused:
                    env.execute_sql(f"SELECT {expression} AS r FROM own")
                assert f"in `{expression}`" in str(refused.value)
                assert "line 1, column 8" in str(refused.value)


def test_a_merge_and_a_table_of_a_query_store_what_spark_stores(env: ts.TableEnvironment) -> None:
    env.execute_sql("CREATE TABLE k (id INT, n DOUBLE, PRIMARY KEY (id) NOT ENFORCED)")
    env.execute_sql("INSERT INTO k VALUES (1, 1.5D)")
    source = "SELECT 1 AS id, a * 2 AS n FROM t UNION ALL SELECT 2, f FROM t"
    env.execute_sql(
        f"MERGE INTO k USING ({source}) AS s ON k.id = s.id WHEN MATCHED THEN UPDATE SET n = s.n "
        "WHEN NOT MATCHED THEN INSERT (id, n) VALUES (s.id, s.n)"
    )
    assert values(env, "SELECT id, n FROM k") == (["int32", "double"], [(1, 2.0), (2, 2.7)])
    env.execute_sql(f"CREATE TABLE made AS {source}")
    assert values(env, "SELECT n FROM made") == (["double"], [(2.0,), (2.7,)])


def test_a_materialized_table_over_two_full_joins_is_refreshed_again(env: ts.TableEnvironment) -> None:
    for name in ("x", "y", "z"):
        env.execute_sql(f"CREATE TABLE {name} (id INT, n DECIMAL(10, 2), PRIMARY KEY (id) NOT ENFORCED)")
        env.execute_sql(f"INSERT INTO {name} VALUES (1, 1.5), (2, 2.5)")
    env.execute_sql(
        "CREATE MATERIALIZED TABLE joined AS SELECT coalesce(x.id, y.id, z.id) AS id, x.n * 2 AS a, y.n / 3 AS b, z.n AS c "
        "FROM x FULL JOIN y ON x.id = y.id FULL JOIN z ON x.id = z.id"
    )
    for number in (3, 4):
        env.execute_sql(f"INSERT INTO {'xyz'[number - 3]} VALUES ({number}, 1.00)")
        env.execute_sql("ALTER MATERIALIZED TABLE joined REFRESH")
    types, rows = values(env, "SELECT id, a, b, c FROM joined WHERE id > 1")
    assert types == ["int32", "decimal128(12, 2)", "decimal128(14, 6)", "decimal128(10, 2)"]
    assert rows == [(2, D("5.00"), D("0.833333"), D("2.50")), (3, D("2.00"), None, None), (4, None, D("0.333333"), None)]


@pytest.mark.parametrize(
    ("expression", "micros"),
    [
        ("make_dt_interval(106751)", 106_751 * 86_400_000_000),
        ("make_dt_interval(106752)", 106_752 * 86_400_000_000),
        ("make_dt_interval(-106751991, -4, 0, -54.775807)", -(2**63) + 1),
        ("timestamp'9999-12-31 00:00:00' - timestamp'0001-01-01 00:00:00'", 3_652_058 * 86_400_000_000),
        ("INTERVAL '110000 01:00:00' DAY TO SECOND", (110_000 * 24 + 1) * 3_600_000_000),
        ("array(make_dt_interval(200000), NULL)", [200_000 * 86_400_000_000, None]),
        ("make_dt_interval(NULL)", None),
    ],
)
def test_an_interval_of_more_nanoseconds_than_arrow_counts_keeps_its_microseconds(
    env: ts.TableEnvironment, expression: str, micros: object
) -> None:
    (column,) = env.execute_sql(f"SELECT {expression} AS i").to_arrow().columns
    number = pa.list_(pa.int64()) if pa.types.is_list(column.type) else pa.int64()
    assert column.cast(number).to_pylist() == [micros]


def test_intervals_in_lists_that_are_slices() -> None:
    lists = duckdb.sql(
        "SELECT CASE WHEN i % 3 = 0 THEN NULL ELSE [to_days(i::INTEGER)] END AS a FROM range(9) t(i)"
    ).to_arrow_table()
    schema = with_durations(rows_out(lists.schema, ["INTERVAL[]"]))
    batch = cast(pa.RecordBatch.from_arrays([lists.column(0).chunk(0).slice(2, 5)], names=["a"]), schema)
    assert batch.column(0).cast(pa.list_(pa.int64())).to_pylist() == [
        None if i % 3 == 0 else [i * 86_400_000_000] for i in range(2, 7)
    ]


@pytest.mark.parametrize("expression", ["named_struct('x', make_dt_interval(1))", "map('x', make_dt_interval(1))"])
def test_intervals_inside_of_rows_and_maps_are_refused(env: ts.TableEnvironment, expression: str) -> None:
    with pytest.raises(UnsupportedError, match="intervals inside of the type"):
        env.execute_sql(f"SELECT {expression} AS i").to_arrow()
