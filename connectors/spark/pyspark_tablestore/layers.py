"""Overlapping files, read by Spark's own Parquet scan: rows that do not count are left out by key.

The keys lie in arrays, in a relation of one row, and conditions look them up by arithmetic (``tablestore.distributed.keybits``):
some nanoseconds a row. A broadcast join costs more than ten times as much, and takes as long to build as a scan. No part of a
condition can overflow, since Spark may compute it for rows that another part leaves out.

Each mention of an array in a condition is a copy of it in what every task gets. Conditions are SQL text: each step of a Python
expression is several calls to the JVM.
"""

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession

from pyspark_tablestore.native import native_scan, quoted
from tablestore.distributed.keybits import KeyBits, NumberedKeys
from tablestore.distributed.layers import LayerPlan
from tablestore.format.parquet.parquetschema import KIND_COLUMN, SEQUENCE_COLUMN
from tablestore.types.datatypes import AtomicType, Field, TypeRoot
from tablestore.types.rowkind import RowKind
from tablestore.types.schema import KEY_PREFIX

_SEQUENCE = Field(id=-1, name=SEQUENCE_COLUMN, type=AtomicType(root=TypeRoot.BIGINT, nullable=False))
_KIND = Field(id=-2, name=KIND_COLUMN, type=AtomicType(root=TypeRoot.TINYINT, nullable=False))
# No column of a table has such a name: the prefix is reserved.
_HIDDEN, _STARTS, _KEYS, _NUMBERS = (f"{KEY_PREFIX} {name}" for name in ("hidden", "starts", "keys", "numbers"))
_INDEX_MASK = 0x7FFFFFFF


def layer_scans(
    spark: SparkSession, layer: LayerPlan, fields: Sequence[Field], path_of: Callable[[str], str]
) -> Iterator[DataFrame]:
    """The rows of a layer that count, of these columns and perhaps more: of the base, and of the newer files."""
    wanted = [*fields, *([] if layer.key in fields else [layer.key])]
    key = f"CAST({quoted(layer.key.name)} AS BIGINT)"
    hidden, newest = layer.hidden, layer.newest
    arrays = _arrays(spark, layer)
    if layer.base:
        rows = native_scan(spark, [path_of(path) for path in layer.base], wanted, also=arrays[:1] if hidden else ())
        yield rows.where(f"NOT {_is_hidden(hidden, key)}") if hidden else rows
    if layer.newer:
        system = [*([_SEQUENCE] if newest else []), *([_KIND] if layer.retractions else [])]
        rows = native_scan(spark, [path_of(path) for path in layer.newer], [*wanted, *system], also=arrays[1:])
        conditions = []
        if layer.retractions:
            conditions.append(f"{KIND_COLUMN} IN ({RowKind.INSERT:d}, {RowKind.UPDATE_AFTER:d})")
        if newest:
            conditions.append(f"{SEQUENCE_COLUMN} >= coalesce({_number_of(newest, key)}, {SEQUENCE_COLUMN})")
        yield rows.where(" AND ".join(conditions)) if conditions else rows


def _arrays(spark: SparkSession, layer: LayerPlan) -> list[Column]:
    """The arrays of the hidden keys, and of the newest rows, each as a column of one value."""
    arrays: dict[str, pa.Array] = {}
    if layer.hidden:
        arrays[_HIDDEN] = pa.array([layer.hidden.words], pa.list_(pa.int64()))
    if layer.newest:
        arrays[_STARTS] = pa.array([layer.newest.starts], pa.list_(pa.int32()))
        arrays[_KEYS] = pa.array([layer.newest.keys], pa.list_(pa.int64()))
        arrays[_NUMBERS] = pa.array([layer.newest.numbers], pa.list_(pa.int64()))
    if not arrays:
        return []
    row = spark.createDataFrame(pa.table(arrays))
    return [row.select(quoted(name)).scalar().alias(name) for name in arrays]


def _is_hidden(keys: KeyBits, key: str) -> str:
    """Whether a key is in the set; never unknown."""
    index = f"CAST((shiftright({key}, 6) - ({keys.low_word}L)) & {_INDEX_MASK}L AS INT)"
    bit = f"getbit(get({quoted(_HIDDEN)}, {index}), CAST({key} & 63L AS INT))"
    return f"({key} BETWEEN {keys.low}L AND {keys.high}L AND {bit} = 1)"


def _number_of(numbered: NumberedKeys, key: str) -> str:
    """The number of a key; NULL if it is not in the set."""
    place = f"CAST(pmod({key}, {numbered.places}L) AS INT)"
    start, end = (f"get({quoted(_STARTS)}, {place} + {step})" for step in (0, 1))
    # Counted from 1, and 0 where there is none.
    position = f"array_position(slice({quoted(_KEYS)}, {start} + 1, {end} - {start}), {key})"
    number = f"get({quoted(_NUMBERS)}, CAST(IF({position} = 0, -1L, {start} + {position} - 1) AS INT))"
    return f"IF({start} = {end}, NULL, {number})"
