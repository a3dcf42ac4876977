"""Reads overlapping files by Spark's own Parquet scan: rows that do not count are left out by key.

The keys lie in arrays, in a relation of one row, and conditions look them up by arithmetic (``tablestore.distributed.keybits``):
some nanoseconds a row. A broadcast join costs more than ten times as much, and takes as long to build as a scan. No part of a
condition can overflow, since Spark may compute it for rows that another part leaves out.

A condition mentions its array once: for each mention Spark optimises the relation again, and sends every task a copy. Elements that
cannot be null are not asked whether they are. Most of a condition is SQL text: each step of a Python expression is several calls to
the JVM.

What a plan holds in memory, here, in the driver's JVM and in each task: a bit for each number in the range of the newer keys, and
for each key that lies in several newer files some 130 bytes: at most 16 MB and 128 MB.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from pyspark_tablestore.native import quoted, screened, unscreened_scan
from tablestore.distributed.keybits import KeyBits, NumberedKeys
from tablestore.distributed.layers import LayerPlan
from tablestore.format.parquet.parquetschema import KIND_COLUMN, SEQUENCE_COLUMN
from tablestore.types.datatypes import AtomicType, Field, TypeRoot
from tablestore.types.rowkind import RowKind

_SEQUENCE = Field(id=-1, name=SEQUENCE_COLUMN, type=AtomicType(root=TypeRoot.BIGINT, nullable=False))
_KIND = Field(id=-2, name=KIND_COLUMN, type=AtomicType(root=TypeRoot.TINYINT, nullable=False))
_HIDDEN, _NUMBERS = "hidden", "numbers"
_WORDS = pa.list_(pa.field("element", pa.int64(), nullable=False))
_MAP = pa.map_(pa.int64(), pa.field("value", pa.int64(), nullable=False))
_INDEX_MASK = 0x7FFFFFFF

_NUMBER_BYTES = 130


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReadyLayer:
    """A planned layer with the conditions by which rows of its base and of its newer files count: columns of Spark; None: all
    do."""

    plan: LayerPlan
    is_shown: Column | None
    is_newest: Column | None

    @property
    def bytes(self) -> int:
        """The bytes that it holds in memory, about."""
        hidden, newest = self.plan.hidden, self.plan.newest
        return 2 * (hidden.words.nbytes if hidden else 0) + _NUMBER_BYTES * (len(newest.keys) if newest else 0)


def ready(spark: SparkSession, plan: LayerPlan) -> ReadyLayer:
    """A planned layer with its conditions."""
    key = f"CAST({quoted(plan.key.name)} AS BIGINT)"
    arrays = _arrays(spark, plan)
    return ReadyLayer(
        plan=plan,
        is_shown=_is_shown(plan.hidden, arrays[_HIDDEN], key) if plan.hidden else None,
        is_newest=_is_newest(plan.newest, arrays[_NUMBERS], key) if plan.newest else None,
    )


def layer_scans(
    spark: SparkSession, layer: ReadyLayer, fields: Sequence[Field], path_of: Callable[[str], str]
) -> Iterator[DataFrame]:
    """The rows of a layer that count, with these columns: of the base, and of the newer files."""
    plan, is_shown, is_newest = layer.plan, layer.is_shown, layer.is_newest
    keyed = [*fields, *([] if plan.key in fields else [plan.key])]
    if plan.base:
        rows = unscreened_scan(spark, [path_of(path) for path in plan.base], keyed)
        if is_shown is not None:
            rows = rows.where(is_shown)
        yield screened(rows, fields, has_more=len(keyed) > len(fields))
    if plan.newer:
        read = [*keyed, *([] if is_newest is None else [_SEQUENCE]), *([_KIND] if plan.retractions else [])]
        rows = unscreened_scan(spark, [path_of(path) for path in plan.newer], read)
        if plan.retractions:
            rows = rows.where(f"{KIND_COLUMN} IN ({RowKind.INSERT:d}, {RowKind.UPDATE_AFTER:d})")
        if is_newest is not None:
            rows = rows.where(is_newest)
        yield screened(rows, fields, has_more=len(read) > len(fields))


def _arrays(spark: SparkSession, layer: LayerPlan) -> dict[str, Column]:
    """The arrays of the hidden keys, and of the newest rows, each as a column of one value."""
    arrays: dict[str, pa.Array] = {}
    if layer.hidden:
        arrays[_HIDDEN] = pa.array([layer.hidden.words], _WORDS)
    if layer.newest:
        maps = _maps(layer.newest)
        arrays[_NUMBERS] = pa.ListArray.from_arrays(pa.array([0, len(maps)], pa.int32()), maps)
    if not arrays:
        return {}
    row = spark.createDataFrame(pa.table(arrays))
    return {name: (row.select(name) if len(arrays) > 1 else row).scalar() for name in arrays}


def _maps(numbered: NumberedKeys) -> pa.Array:
    """The numbers of each place by their keys; null where there are none."""
    starts = numbered.starts
    entries = pa.StructArray.from_arrays([numbered.keys, numbered.numbers], fields=[_MAP.key_field, _MAP.item_field])
    is_valid = pa.py_buffer(np.packbits(starts[1:] > starts[:-1], bitorder="little"))
    return pa.Array.from_buffers(_MAP, numbered.places, [is_valid, pa.py_buffer(starts)], children=[entries])


def _is_shown(hidden: KeyBits, words: Column, key: str) -> Column:
    """The condition that a key is not in the set; never unknown."""
    index = f"CAST((shiftright({key}, 6) - ({hidden.low_word}L)) & {_INDEX_MASK}L AS INT)"
    bit = sf.getbit(sf.get(words, sf.expr(index)), sf.expr(f"CAST({key} & 63L AS INT)"))
    return sf.expr(f"{key} NOT BETWEEN {hidden.low}L AND {hidden.high}L") | (bit == 0)


def _is_newest(newest: NumberedKeys, maps: Column, key: str) -> Column:
    """The condition that no newer row has the key; never unknown."""
    numbers = sf.get(maps, sf.expr(f"CAST(pmod({key}, {newest.places}L) AS INT)"))
    return sf.col(SEQUENCE_COLUMN) >= sf.coalesce(sf.element_at(numbers, sf.expr(key)), sf.col(SEQUENCE_COLUMN))
