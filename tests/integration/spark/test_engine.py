"""Spark as a query engine."""

from typing import TYPE_CHECKING

import pytest

from tablestore.testing.contracts.queryengine import QueryEngineContract

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark_tablestore.engine import SparkEngine

pytestmark = pytest.mark.spark


class TestSparkEngine(QueryEngineContract):
    @pytest.fixture
    def engine(self, spark: "SparkSession") -> "SparkEngine":
        from pyspark_tablestore.engine import SparkEngine

        return SparkEngine(spark)
