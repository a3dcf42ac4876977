"""Sketches of Apache DataSketches on DuckDB: their bytes and estimates are those that Spark 4.3 gives."""

from collections.abc import Iterator

import pytest

import tablestore as ts

_THREE = "FROM VALUES (1, 2D), (2, 3D), (3, 4D), (2, 0D), (NULL, 1D) AS t (a, b)"


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ts.TableEnvironment]:
    with ts.TableEnvironment.create(tmp_path_factory.mktemp("warehouse"), engine="duckdb") as env:
        yield env


@pytest.mark.deep_after(12)
@pytest.mark.parametrize(
    ("query", "value"),
    [
        (f"hex(theta_sketch_agg(a)) {_THREE}", "0104033E011ACC930316861AF72DF7E4558FBE9C3477E9EAEFB2E5966BADAA3DC0"),
        (f"hex(theta_sketch_agg(a)) {_THREE} WHERE a > 5", "01030300001E0000"),
        (f"hex(theta_sketch_agg(a)) {_THREE} WHERE a = 1", "01030300003ACC9315F97DCBBD86A105"),
        (
            "hex(theta_sketch_agg(a)) FROM VALUES ('a'), ('\u00e9'), ('') t (a)",
            "0104033E011ACC9302FC04CD6D9BC1FB1BBFFD429EB2D42510",
        ),
        (
            "hex(theta_sketch_agg(a)) FROM VALUES (0D), (-0D), (double('NaN')), (1.5D) t (a)",
            "0104033D011ACC930354422226B2F4C7A93C47D257EDAA0721963A75709855A8",
        ),
        ("md5(theta_sketch_agg(id, 4)) FROM range(1000)", "61d79565a5e2b6d9a753d511668f4799"),
        ("md5(theta_sketch_agg(id)) FROM range(20000)", "8077d583ab98d9e3613f8b7ad1daa18f"),
        ("theta_sketch_estimate(theta_sketch_agg(id)) FROM range(20000)", 19994),
        (
            "theta_sketch_estimate(theta_intersection(theta_sketch_agg(id, 4), theta_sketch_agg(id + 500, 4))) FROM range(1000)",
            459,
        ),
        (
            "hex(theta_intersection(theta_sketch_agg(id, 4), theta_sketch_agg(id + 5000, 4))) FROM range(1000)",
            "03030300001ACC93000000000000803F94DED6C8A0752A02",
        ),
        ("hex(hll_sketch_agg(a)) FROM VALUES (CAST(NULL AS INT)) t (a)", "0201070C03040008" + "00" * 32),
        ("md5(hll_sketch_agg(id)) FROM range(50)", "85818a665942bc6a08bbdf39083ee65d"),
        ("hll_sketch_estimate(hll_sketch_agg(id)) FROM range(300)", 300),
        (
            "hex(kll_sketch_agg_double(a)) FROM VALUES (double('NaN')), (0D), (-0D), (double('inf')) t (a)",
            "05010F00C80008000300000000000000C8000100C50000000000000000000080000000000000F07F00000000000000000000000000000080000000000000F07F",
        ),
        (
            "kll_sketch_get_quantile_bigint(kll_sketch_agg_bigint(a), array(0D, 0.25D, 1D)) FROM VALUES (30), (10), (20) t (a)",
            [10, 10, 30],
        ),
        ("kll_sketch_get_quantile_bigint(kll_sketch_agg_bigint(id), 0.30000000000000004D) FROM range(10)", 2),
        ("kll_sketch_get_rank_bigint(kll_sketch_agg_bigint(id), 2) FROM range(6)", 0.5),
        (f"tuple_sketch_summary_double(tuple_sketch_agg_double(a, b)) {_THREE}", 9.0),
        (f"tuple_sketch_summary_double(tuple_sketch_agg_double(a, b, 12, 'max'), 'max') {_THREE}", 4.0),
        (f"hex(tuple_sketch_agg_integer(a, int(b))) {_THREE} WHERE a = 1", "01030901000ACC9315F97DCBBD86A1050200000000"),
        (
            "tuple_sketch_summary_integer(tuple_sketch_agg_integer(a, b)) "
            "FROM VALUES (1, 2147483647), (1, 3), (3, 2147483647) t (a, b)",
            1,
        ),
        ("approx_top_k(a, 1) FROM VALUES (1), (NULL) t (a)", [{"item": 1, "count": 1}]),
        ("approx_top_k(a) FROM VALUES (1) t (a) WHERE a > 5", []),
        (
            "approx_top_k(a) FROM VALUES (1), (1), (2), (2), (NULL), (NULL) t (a)",
            [{"item": 2, "count": 2}, {"item": 1, "count": 2}, {"item": None, "count": 2}],
        ),
        (
            "approx_top_k(a, 3) FROM VALUES (1L), (2L), (-1L), (9999999999L) t (a)",
            [{"item": -1, "count": 1}, {"item": 2, "count": 1}, {"item": 1, "count": 1}],
        ),
        (
            "hex(approx_top_k_accumulate(a, 100).sketch) FROM VALUES ('aa'), ('b'), ('\u00e9') t (a)",
            "04010A08030000000300000000000000030000000000000000000000000000000100000000000000010000000000000001"
            "00000000000000010000006202000000616102000000C3A90000000000000000",
        ),
    ],
)
def test_a_sketch_is_sparks(query: str, value: object, env: ts.TableEnvironment) -> None:
    assert env.execute_sql(f"SELECT {query}").to_arrow().column(0).to_pylist() == [value]


def test_each_group_and_window_has_its_sketch(env: ts.TableEnvironment) -> None:
    query = (
        "SELECT a, theta_sketch_estimate(theta_sketch_agg(b) FILTER (WHERE b > 1)) n FROM VALUES (1, 1), (2, 2), (2, 3) t (a, b)"
    )
    assert env.execute_sql(f"{query} GROUP BY a ORDER BY a").to_arrow().to_pydict() == {"a": [1, 2], "n": [0, 2]}
    over = "SELECT hll_sketch_estimate(hll_sketch_agg(b) OVER (ORDER BY b)) n FROM VALUES (1), (2), (2) t (b) ORDER BY n"
    assert env.execute_sql(over).to_arrow().to_pydict() == {"n": [1, 2, 2]}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("kll_sketch_agg_bigint(id, 8) FROM range(9)", "a KLL sketch of more values than its size"),
        ("hll_sketch_agg(id, 4) FROM range(10)", "an HLL sketch of more than 7 values"),
        ("tuple_sketch_agg_integer(int(id), 1, 4) FROM range(17)", "a tuple sketch of more than 16 values"),
        (
            "tuple_sketch_agg_double(1, a) FROM VALUES (0.1D), (0.2D), (0.3D) t (a)",
            "last digits depend on the order of the rows",
        ),
        ("approx_top_k(int(id), 40) FROM range(40)", "whose order depends on that of the rows"),
        ("approx_top_k(int(id), 1, 2) FROM range(3)", "more different items than it tracks"),
    ],
)
def test_what_depends_on_chance_or_order_is_refused(query: str, message: str, env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.UnsupportedError, match=message):
        env.execute_sql(f"SELECT {query}").to_arrow()


@pytest.mark.parametrize(
    "query",
    [
        "hll_sketch_estimate(X'01')",
        "theta_sketch_estimate(X'01')",
        "tuple_sketch_estimate_double(X'01')",
        "kll_sketch_get_n_bigint(X'01')",
        "hll_union(hll_sketch_agg(1, 10), hll_sketch_agg(1, 14))",
        "theta_sketch_agg(1, 3)",
    ],
)
def test_what_is_no_sketch_is_an_error(query: str, env: ts.TableEnvironment) -> None:
    with pytest.raises(ts.InvalidInputError, match="expected"):
        env.execute_sql(f"SELECT {query}").to_arrow()
