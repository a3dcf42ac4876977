"""Pairs rows of a MERGE's source with the rows of the target that have their primary keys: tasks that read the source look them up.

    source  ->  task: look-up by key  ->  (_tablestore_target, _tablestore_source)  ->  the query over pairs  ->  task: write

All of it is one job, of one task if that is enough. Neither side is shuffled, sorted or kept, and the source is read once. It is
the way for a source of few rows, because each task reads all row groups of the table in which one of its keys may lie. Where Spark
does not know how many rows there are, they are counted first, and kept for that.

Columns of the source pass through Python as Arrow. Types that do not come back as they were are not looked up for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import types as spark
from pyspark.sql.utils import is_remote

from pyspark_tablestore.tasks import Batches, map_batches, placed_by, plain_errors
from pyspark_tablestore.typemapping import arrow_schema, spark_schema, to_spark
from tablestore.distributed.keymatch import KeyMatch, match_by_key, matched_rows, task_of
from tablestore.distributed.read import pinned_fields
from tablestore.environment.engine import ManagedRelation
from tablestore.errors import UnsupportedError
from tablestore.sql.query.rowlevel import SOURCE, TARGET
from tablestore.store.context import Shared

# So many rows are looked up, joined and written by one task.
MOST_OF_A_TASK = 1 << 18
# Nodes of a plan, and what Spark takes an empty row for.
_HELD, _LEAST_ROW_BYTES = ("LocalRelation", "OneRowRelation", "Range"), 8
_INTEGERS = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)
# Shared in this Python worker, which Spark keeps for later tasks.
_SHARED = Shared()
# Texts of the collation by which keys compare.
_SOUGHT = (*(number() for number in _INTEGERS), spark.DateType(), spark.StringType())


@dataclass(frozen=True, slots=True)
class KeyPairs:
    """Looks up pairs. ``names``: the columns of the source that equal the primary key; ``found``: the columns of the target, as
    Spark has them."""

    match: KeyMatch
    names: tuple[str, ...]
    found: spark.StructType

    def of(self, source: DataFrame) -> DataFrame:
        """The pairs, in one partition."""
        schema = source.schema
        pairs = spark.StructType([spark.StructField(TARGET, self.found), spark.StructField(SOURCE, schema, False)])
        look = partial(_pairs, self.match, arrow_schema(self.found))
        cores = 1 if is_remote() else source.sparkSession.sparkContext.defaultParallelism
        if (count := self.match.tasks(cores)) < 2:
            return map_batches(source.coalesce(1), look, pairs)
        match = self.match

        def tasks(*keys: pa.Array) -> pa.Array:
            with plain_errors():
                return task_of(match, keys, count)

        return map_batches(placed_by(source, count, tasks, self.names), look, pairs).repartition(1)


def key_pairs(
    source: DataFrame, target: ManagedRelation, columns: Sequence[tuple[str, str]], primary_key: Sequence[str]
) -> KeyPairs | None:
    """The look-up that pairs rows that have to be equal in these columns, the primary key among them; None if that is not
    possible."""
    folded = {name.casefold(): name for name in source.columns}
    of_key = dict(reversed(columns))
    names = [folded.get(of_key[name.casefold()]) for name in primary_key]
    schema = source.schema
    key_columns = tuple(name for name in names if name is not None)
    if (
        len(key_columns) < len(names)
        or len(folded) < len(schema)
        or any(schema[name].dataType not in _SOUGHT for name in key_columns)
    ):
        return None
    try:
        source_schema = arrow_schema(schema)
    except UnsupportedError:
        return None
    if not _returns(schema):
        return None
    fields = pinned_fields(target.pin, target.columns)
    places = [schema.names.index(name) for name in key_columns]
    match = match_by_key(target.pin, source_schema, places, [field.name for field in fields])
    return None if match is None else KeyPairs(match, key_columns, spark_schema(fields))


def is_surely_small(source: DataFrame) -> bool:
    """True if a source is made of rows that the driver holds, and Spark takes it for few rows. To ask costs no job.

    What Spark says of files are compressed bytes, which may be any number of rows.
    """
    if is_remote():
        return False
    frame: Any = source
    plan = frame._jdf.queryExecution().analyzed()
    leaves = plan.collectLeaves()
    if not all(leaves.apply(place).nodeName() in _HELD for place in range(leaves.size())):
        return False
    row_bytes = _LEAST_ROW_BYTES + plan.schema().defaultSize()
    return bool(int(str(plan.stats().sizeInBytes())) <= MOST_OF_A_TASK * row_bytes)


def has_few_rows(source: DataFrame) -> bool:
    """True if a source has few rows: it is counted, up to where there are too many."""
    return int(source.limit(MOST_OF_A_TASK + 1).count()) <= MOST_OF_A_TASK


def _pairs(match: KeyMatch, target: pa.Schema, batches: Batches) -> Batches:
    with plain_errors():
        for rows, target_rows in matched_rows(match, batches, _SHARED):
            source = pa.StructArray.from_arrays(rows.columns, fields=list(rows.schema))
            if target_rows is None:
                pair = pa.nulls(rows.num_rows, pa.struct(list(target)))
            else:
                pair = pa.StructArray.from_arrays(to_spark(target_rows, target).columns, fields=list(target))
            yield pa.RecordBatch.from_arrays([pair, source], names=[TARGET, SOURCE])


def _returns(data_type: spark.DataType) -> bool:
    """True if Spark gets values back as it gave them."""
    match data_type:
        case spark.ArrayType():
            return _returns(data_type.elementType)
        case spark.MapType():
            return _returns(data_type.keyType) and _returns(data_type.valueType)
        case spark.StructType():
            return len(set(data_type.names)) == len(data_type) > 0 and all(_returns(field.dataType) for field in data_type)
        case spark.StringType():
            return data_type == spark.StringType()
        case _:
            return not isinstance(data_type, spark.NullType)
