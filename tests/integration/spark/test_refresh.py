"""Spark refreshes materialized tables as DuckDB does: every target holds the rows of its query after each batch of changes."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tablestore as ts
from tests.environment.materialized.incremental.shapes import SHAPES
from tests.environment.materialized.incremental.test_random import check

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FEW = ["in_and_exists", "sums_counted"]


def test_a_few_shapes_equal_their_queries_after_a_batch(spark: "SparkSession", tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path / "wh", spark=spark) as env:
        modes = check(env, 7, 1, FEW)
    assert modes["incremental"] == len(FEW)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_every_shape_equals_its_query_after_each_batch(seed: int, spark: "SparkSession", tmp_path: Path) -> None:
    with ts.TableEnvironment.create(tmp_path / "wh", spark=spark) as env:
        check(env, 300 + seed, 8, list(SHAPES), share=0.3)
