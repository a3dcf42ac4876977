"""The recorded types of expressions are Spark's. With WRITE_SQL_CORPUS set they are written anew."""

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.sql.binding.test_binder import COLUMNS, RECORDED, recorded

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
# A share of them where time is short.
_STEP = 40


@pytest.mark.parametrize("step", [pytest.param(_STEP, id="some"), pytest.param(1, id="all", marks=pytest.mark.slow)])
def test_spark_gives_expressions_the_recorded_types(step: int, spark: "SparkSession") -> None:
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.sql(COLUMNS).createOrReplaceTempView("t")
    found = [(text, session.sql(f"SELECT {text} AS x FROM t").schema[0].dataType.simpleString()) for text, _ in recorded()[::step]]
    if os.environ.get("WRITE_SQL_CORPUS") and step == 1:
        RECORDED.write_text("".join(f"{json.dumps(one)}\n" for one in found))
    assert found == recorded()[::step]
