"""Spark as a query engine."""

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from tablestore.environment.engine import BoundQuery, Function, QueryEngine
from tablestore.errors import UnsupportedError
from tablestore.table.table import Table
from tablestore.testing.contracts.queryengine import QueryEngineContract
from tests.integration.spark.sparkversion import sparkversion
from tests.support.sql.received import Received

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark_tablestore.engine import SparkEngine

pytestmark = pytest.mark.spark


@pytest.mark.deep_but(
    "test_rows_that_were_replaced_or_deleted_do_not_come_out",
    "test_conditions_on_floats_see_nan_as_the_greatest_value_and_one_zero",
    "test_deleted_rows_of_partitions_and_older_schemas_are_read_as_a_scan_reads_them",
    "test_a_relation_is_read_at_its_snapshot",
    "test_the_rows_of_a_query_become_one_snapshot",
    "test_a_numbered_insert_is_applied_once",
    "test_a_query_changes_rows_of_a_keyed_table",
    "test_a_query_that_is_wrong_is_refused_in_words_of_ours",
    "test_a_damaged_file_is_an_error_that_names_it",
)
class TestSparkEngine(QueryEngineContract):
    # Spark 4.0 has none.
    has_time = sparkversion() >= (4, 1)

    @pytest.fixture
    def engine(self, spark: "SparkSession") -> "SparkEngine":
        from pyspark_tablestore.engine import SparkEngine

        return SparkEngine(spark)

    def test_a_query_that_is_wrong_is_refused_in_words_of_ours(
        self, engine: QueryEngine, orders: Table, received: Received
    ) -> None:
        super().test_a_query_that_is_wrong_is_refused_in_words_of_ours(engine, orders)
        # It lists no tables of Spark's, and Spark itself says that there is none.
        with pytest.raises(AssertionError, match="there_is_no_such_table"):
            received.check()


@pytest.mark.deep
def test_streamed_rows_are_computed_as_they_are_read_and_can_be_cancelled(spark: "SparkSession", tmp_path: Path) -> None:
    from pyspark import TaskContext
    from pyspark_tablestore.engine import SparkEngine

    def mark(value: int) -> int:
        context = TaskContext.get()
        assert context is not None
        (tmp_path / str(context.partitionId())).touch()
        return value

    engine = SparkEngine(spark)
    arguments, returns = (pa.int64(),), pa.int64()
    engine.register_function("mark", Function(name="mark", call=mark, arguments=arguments, returns=returns))
    rows = engine.query(BoundQuery(text="SELECT mark(id) AS id FROM range(0, 400, 1, 20)"))
    reader = rows.streamed()
    assert len(list(tmp_path.iterdir())) == 0
    first = reader.read_next_batch()
    # This partition and the next one; the one behind them may have been begun.
    assert len(list(tmp_path.iterdir())) <= 3
    engine.cancel()
    with pytest.raises(UnsupportedError, match="was cancelled"):
        reader.read_all()
    assert len(list(tmp_path.iterdir())) <= 3
    del reader
    found = pa.Table.from_batches(rows.streamed())
    assert found["id"].to_pylist() == list(range(400)) and first.equals(found.to_batches()[0])
    assert len(list(tmp_path.iterdir())) == 20


@pytest.mark.deep
def test_a_partition_that_the_driver_may_not_hold_is_refused_and_several_small_ones_are_streamed(spark: "SparkSession") -> None:
    from pyspark_tablestore.engine import SparkEngine

    engine, conf = SparkEngine(spark), spark.sparkContext._jsc.sc().conf()
    before = conf.get("spark.driver.maxResultSize", "1g")
    conf.set("spark.driver.maxResultSize", "1m")
    try:
        text = "SELECT {} uuid() AS text FROM range(0, 100000, 1, 1)"
        with pytest.raises(UnsupportedError, match=r"at most 1024\.0 KiB of a result .*spark\.driver\.maxResultSize") as refused:
            engine.query(BoundQuery(text=text.format(""))).streamed().read_all()
        assert refused.value.kind == "limit"
        assert engine.query(BoundQuery(text=text.format("/*+ REPARTITION(8) */"))).streamed().read_all().num_rows == 100_000
    finally:
        conf.set("spark.driver.maxResultSize", before)
