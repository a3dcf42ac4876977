"""Spark refreshes materialized tables as DuckDB does: every target holds the rows of its query after each batch of changes."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tablestore as ts
from tests.materialized.incremental.shapes import SHAPES
from tests.materialized.incremental.test_random import check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FEW = ["in_and_exists", "odd_names"]


@pytest.mark.deep
def test_a_few_shapes_equal_their_queries_after_a_batch(spark: "SparkSession", tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path / "wh", spark=spark) as env:
        modes = check(env, 8, 1, FEW)
    assert modes["incremental"] == len(FEW)


@pytest.mark.deep
def test_only_what_the_whole_query_fails_on_fails_a_refresh(spark: "SparkSession", tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path / "wh", spark=spark) as env:
        env.execute_sql("CREATE TABLE t (id INT, v STRING, PRIMARY KEY (id) NOT ENFORCED)")
        env.execute_sql("CREATE TABLE u (id INT, ok BOOLEAN, PRIMARY KEY (id) NOT ENFORCED)")
        env.execute_sql("INSERT INTO t VALUES (1, '1'), (2, 'unmatched')")
        env.execute_sql("INSERT INTO u VALUES (1, true), (2, false)")
        env.execute_sql(
            "CREATE MATERIALIZED TABLE m FRESHNESS = INTERVAL '1' DAY REFRESH_MODE = FULL AS "
            "SELECT t.id, CAST(v AS INT) AS v FROM t JOIN u ON t.id = u.id AND ok"
        )

        def refresh() -> dict[str, Any]:
            return dict(env.execute_sql("ALTER MATERIALIZED TABLE m REFRESH").to_arrow().to_pylist()[0])

        refresh()
        env.execute_sql("INSERT INTO t VALUES (1, 'x')")
        with pytest.raises(ts.InvalidInputError, match="'x'"):
            refresh()
        env.execute_sql("INSERT INTO t VALUES (1, '7')")
        assert refresh()["mode"] == "incremental"
        env.execute_sql("INSERT INTO t VALUES (2, '9')")
        env.execute_sql("INSERT INTO u VALUES (2, true)")
        report = refresh()
        assert report["mode"] == "full" and "'unmatched'" in report["reason"]
        assert env.execute_sql("SELECT v FROM m ORDER BY id").to_arrow().column(0).to_pylist() == [7, 9]


@pytest.fixture
def small(spark: "SparkSession") -> Iterator["SparkSession"]:
    """A session for queries of a few rows: a shuffle is one task, and no plan is made twice."""
    settings = {"spark.sql.shuffle.partitions": "1", "spark.sql.adaptive.enabled": "false"}
    before = {key: spark.conf.get(key) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield spark
    for key, value in before.items():
        assert value is not None
        spark.conf.set(key, value)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_two_shapes_equal_their_queries_after_each_of_25_batches(seed: int, small: "SparkSession", tmp_path: Path) -> None:
    """500 batches in all. One run takes a fifth of the shapes, so that each has several turns in it."""
    with ts.TableEnvironment.create(tmp_path / "wh", spark=small) as env:
        modes = check(env, 300 + seed, 25, list(SHAPES)[seed % 5 :: 5], at_once=2)
    assert modes.total() == 50 and modes["incremental"] > modes["none"]
