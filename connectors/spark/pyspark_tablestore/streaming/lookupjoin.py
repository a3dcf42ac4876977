"""Joins rows, of a stream too, with a table as it is now: ``pyspark_tablestore.lookup(df, table, on="id")``.

    batch     the snapshot is chosen here, when the DataFrame is made
    stream    for each batch by a task of its own: a subquery that gives one value, which all tasks of the batch see. What is
              wrong then is a part of the value, and raised by them: of a subquery that fails Spark does not say why

Tasks look the keys up in the table's files; nothing is moved between them. A batch that Spark runs again after a restart may see a
newer snapshot than it saw first.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from pyspark_tablestore.sourceoptions import parse_options, placed
from pyspark_tablestore.sparkserver import check_server
from pyspark_tablestore.sparkversion import TimeType
from pyspark_tablestore.tasks import Batches, plain_errors
from pyspark_tablestore.typemapping import arrow_schema, spark_type, to_spark
from tablestore.distributed.keyedjoin import JoinPin, KeyedJoin, join_batches, pin_join, prepare_join
from tablestore.distributed.taskjson import decode_error, encode_error
from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.names import Names
from tablestore.store.context import Shared
from tablestore.table.system.systemtable import SystemTable
from tablestore.types.datatypes import Field
from tablestore.types.schema import KEY_PREFIX

# No column of a table has such a name: the prefix is reserved.
_PIN = f"{KEY_PREFIX} pin"
_PIN_SCHEMA = spark.StructType().add("snapshot", "long").add("schema", "long").add("error", "binary")
_INTEGERS: list[spark.DataType] = [spark.ByteType(), spark.ShortType(), spark.IntegerType(), spark.LongType()]
# Shared in this Python worker, which Spark keeps for later tasks.
_SHARED = Shared()


def lookup(
    df: DataFrame,
    table: str,
    *,
    on: Names | Mapping[str, str],
    columns: Names | Mapping[str, str] | None = None,
    how: str = "left",
    warehouse: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> DataFrame:
    """The rows of ``df`` with columns of the row that has their key in ``table``; with nulls (``left``) or not at all (``inner``)
    where there is none.

    ``on``: the columns of the whole primary key, of one name on both sides, or names in ``df`` and those in the table. A key with a
    null matches nothing. ``columns``: names, or new names and the table's; by default all but the key. ``table``, ``warehouse`` and
    ``storage_options`` as for ``read``. Raises InvalidInputError.
    """
    check_server(df.sparkSession)
    handle, spec = parse_options(placed(table, warehouse, storage_options)).open_any()
    if isinstance(handle, SystemTable):
        raise UnsupportedError(
            f"{handle.name} is a system table, which has no key to look rows up by; read it as a DataFrame, and join with that",
            kind="lookup",
        )
    join = prepare_join(handle, spec, df.columns, on=on, columns=columns, how=how)
    row_schema = df.schema
    for name, field in join.keys:
        _check_type(row_schema[name], field, handle.name)
    new = spark.StructType([spark.StructField(name, spark_type(field.type)) for name, field in join.columns])
    # By numbers: mapInArrow takes no names that come twice, or have a dot in them.
    names = [*row_schema.names, *new.names]
    numbered = [
        spark.StructField(str(n), column.dataType, column.nullable, column.metadata) for n, column in enumerate([*row_schema, *new])
    ]
    rows = df.toDF(*map(str, range(len(row_schema)))).select("*", _pin(df, join).alias(_PIN))
    return rows.mapInArrow(partial(_join, join, row_schema.names, new), spark.StructType(numbered)).toDF(*names)


def _pin(df: DataFrame, join: KeyedJoin) -> Column:
    """The snapshot to look into, as a column of one value."""
    if df.isStreaming:
        chosen = df.sparkSession.range(1).mapInArrow(partial(_choose, join), _PIN_SCHEMA)
        return chosen.select(sf.struct(*_PIN_SCHEMA.names).alias("pin")).scalar()
    pin = pin_join(join)
    return sf.struct(sf.lit(pin.snapshot_id), sf.lit(pin.schema_id), sf.lit(None)).cast(_PIN_SCHEMA)


def _choose(join: KeyedJoin, batches: Batches) -> Batches:
    for batch in batches:
        if batch.num_rows:
            pin, error = JoinPin(0, 0), None
            try:
                pin = pin_join(join, _SHARED)
            except TablestoreError as raised:
                error = encode_error(raised)
            row = {"snapshot": pin.snapshot_id, "schema": pin.schema_id, "error": error}
            yield pa.RecordBatch.from_pylist([row], schema=arrow_schema(_PIN_SCHEMA))


def _join(join: KeyedJoin, names: list[str], new: spark.StructType, batches: Batches) -> Batches:
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return
    pin = first.column(first.num_columns - 1)[0].as_py()
    target = arrow_schema(new)
    with plain_errors():
        if pin["error"] is not None:
            raise decode_error(pin["error"])
        row_batches = (_without_pin(batch).rename_columns(names) for batch in _behind(first, batches))
        for rows, stored in join_batches(join, JoinPin(pin["snapshot"], pin["schema"]), row_batches, _SHARED):
            looked_up = to_spark(stored, target)
            columns = [*rows.columns, *looked_up.columns]
            yield pa.RecordBatch.from_arrays(columns, names=[str(n) for n in range(len(columns))])


def _behind(first: pa.RecordBatch, following: Batches) -> Iterator[pa.RecordBatch]:
    yield first
    yield from following


def _without_pin(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.select(list(range(batch.num_columns - 1)))


def _check_type(row_field: spark.StructField, key: Field, table: str) -> None:
    """Refuses a column whose values could not be keys as they are. Smaller whole numbers can."""
    key_type = spark_type(key.type)
    row_type = row_field.dataType
    if row_type in _INTEGERS and key_type in _INTEGERS and _INTEGERS.index(row_type) <= _INTEGERS.index(key_type):
        return
    if row_type != key_type and not (isinstance(row_type, TimeType) and isinstance(key_type, TimeType)):
        raise InvalidInputError(
            f"look-up in table {table}: column {row_field.name!r} is {row_type.simpleString()}, the key {key.name!r} is "
            f"{key_type.simpleString()}; cast it: df.withColumn({row_field.name!r}, "
            f"col({row_field.name!r}).cast({key_type.simpleString()!r}))",
            kind="type-mismatch",
        )
