"""Makes DataFrames of rows that this process holds.

What Spark 4.3 makes of Arrow data has traps, so it gets whole batches only: behind two empty ones in a row it sees no more rows, a
nested column needs a chunk, and lists of timestamps must not begin in the middle of their data.
"""

import numpy as np
import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from pyspark_tablestore.typemapping import spark_schema
from tablestore.types.arrowtypes import fields_from_arrow
from tablestore.types.conform import conform

_BATCH_ROWS = 1 << 16


def held_frame(spark: SparkSession, rows: pa.Table, name: str) -> DataFrame:
    """The rows in the driver's memory. Raises UnsupportedError for a type that no table has, or an error of Spark's."""
    rows, schema = _of_spark(rows, name)
    batches = [_whole(batch) for batch in rows.to_batches(max_chunksize=_BATCH_ROWS) if batch.num_rows]
    held = pa.Table.from_batches(batches, rows.schema) if batches else rows.schema.empty_table()
    return spark.createDataFrame(held, schema)


def _of_spark(rows: pa.Table, name: str) -> tuple[pa.Table, StructType]:
    """The rows, and their schema: without one, Spark puts a time without a zone into that of the session."""
    try:
        # A time without a zone stays one in Spark before 4.2 too.
        return rows, from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
    except PySparkTypeError:
        # A type of Arrow that Spark has under another name, such as a view of a string.
        fields, _ = fields_from_arrow(rows.schema, where=name)
        return conform(rows, fields, where=name), spark_schema(fields)


def _whole(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, with data that begins at its first row where a column is nested."""
    is_nested = any(pa.types.is_nested(kind) for kind in batch.schema.types)
    return batch.take(pa.array(np.arange(batch.num_rows))) if is_nested else batch
