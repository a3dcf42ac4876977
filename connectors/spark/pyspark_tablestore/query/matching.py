"""Finds the part of its target that a MERGE has to look at.

The rows that equal a row of the source in the columns that its condition compares. So the source is read once, and kept:

    least and greatest value     a filter of the scan, which leaves out files, row groups and partitions
    its keys                     a semi join of the scan with them, broadcast where they are few

What is left joins with the source. All of a large target would have to be shuffled and sorted for that. A source of few rows that
are found by the whole primary key changes few rows: one task joins and writes them, because to plan more takes Spark longer. Most
such sources do not come here: their rows are looked up by key (``keypairs``).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql import types as spark

from pyspark_tablestore.native import column
from pyspark_tablestore.query.keypairs import MOST_OF_A_TASK
from tablestore.environment.engine import ManagedRelation, QueryRelation, Relation
from tablestore.types.datatypes import Field
from tablestore.types.filter.equalvalues import where_between
from tablestore.types.filter.predicate import Predicate, all_of
from tablestore.types.schema import KEY_PREFIX

# The most rows whose keys are sent to every task.
MOST_BROADCAST = 1 << 20
_INTEGERS = (spark.ByteType, spark.ShortType, spark.IntegerType, spark.LongType)


@dataclass(frozen=True, slots=True)
class _Range:
    """The least and the greatest value, None without any; dates as days since 1970."""

    low: int | None
    high: int | None
    are_dates: bool


@dataclass(frozen=True, slots=True)
class NeededPart:
    """The part of a target that a MERGE needs.

    ``relation``: the target with a filter; :meth:`of` leaves out more rows. ``pairs``: columns of it and of ``keys``.
    ``is_small``: one task is enough for what is left and for the source.
    """

    relation: Relation
    keys: DataFrame | None
    pairs: tuple[tuple[str, str], ...]
    is_small: bool

    def of(self, read: Callable[[Relation], DataFrame]) -> DataFrame:
        """The rows that count, and perhaps more; ``read`` gives those of a relation."""
        target = read(self.relation)
        names_by_folded = unique_names(target.columns)
        joined_keys = [
            (names_by_folded[mine], theirs, f"{KEY_PREFIX} {place}")
            for place, (mine, theirs) in enumerate(self.pairs)
            if mine in names_by_folded
        ]
        if self.keys is None or not joined_keys:
            return target
        keys = self.keys.select(*(column(theirs).alias(key) for _, theirs, key in joined_keys))
        equal = [column(mine) == column(key) for mine, _, key in joined_keys]
        found_rows = target.join(sf.broadcast(keys), equal, "left_semi")
        return found_rows.repartition(1) if self.is_small else found_rows


@contextmanager
def kept(source: DataFrame) -> Iterator[DataFrame]:
    """The source with its rows kept, in memory or on disk, from the first time that they are read."""
    level = source.storageLevel
    if level.useMemory or level.useDisk:
        # Whoever cached the same query is the one to give it up.
        yield source
        return
    source = source.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield source
    finally:
        source.unpersist()


def needed_part(source: DataFrame, target: Relation, columns: Sequence[tuple[str, str]], primary_key: Sequence[str]) -> NeededPart:
    """The part that is needed of a target that has to equal the source in ``columns``. Reads all of the source."""
    names_by_folded = unique_names(source.columns)
    pairs = [(mine, names_by_folded[theirs]) for mine, theirs in columns if theirs in names_by_folded]
    types = {theirs: source.schema[theirs].dataType for _, theirs in pairs}
    bounded = [(mine, theirs) for mine, theirs in pairs if isinstance(types[theirs], (*_INTEGERS, spark.DateType))]
    bounds = [function(_number(theirs, types[theirs])) for _, theirs in bounded for function in (sf.min, sf.max)]
    count, *ends = source.agg(sf.count(sf.lit(1)), *bounds).collect()[0]
    ranges = {
        mine: _Range(ends[2 * place], ends[2 * place + 1], isinstance(types[theirs], spark.DateType))
        for place, (mine, theirs) in enumerate(bounded)
    }
    keys = source if pairs and count <= MOST_BROADCAST else None
    by_key = bool(primary_key) and {name.casefold() for name in primary_key} <= {mine for mine, _ in pairs}
    return NeededPart(_with_ranges(target, ranges), keys, tuple(pairs), by_key and count <= MOST_OF_A_TASK)


def unique_names(names: Sequence[str]) -> dict[str, str]:
    """Names without regard to case, and as they are; those that could mean several columns are left out."""
    folded = [name.casefold() for name in names]
    return {folded_name: name for folded_name, name in zip(folded, names, strict=True) if folded.count(folded_name) == 1}


def _with_ranges(relation: Relation, ranges: Mapping[str, _Range]) -> Relation:
    """The relation with values of columns in these ranges, where it is a table, or a query that only adds columns to one."""
    match relation:
        case ManagedRelation():
            fields = {field.name.casefold(): field for field in relation.schema.fields}
            conditions = [_in_range(fields[name], ends) for name, ends in ranges.items() if name in fields]
            filters = [relation.filter, *conditions]
            present = [condition for condition in filters if condition is not None]
            return replace(relation, filter=all_of(present) if present else None)
        case QueryRelation(query=query) if len(query.relations) == 1:
            inner = tuple(_with_ranges(inner_relation, ranges) for inner_relation in query.relations)
            return replace(relation, query=replace(query, relations=inner))
        case _:
            return relation


def _in_range(field: Field, ends: _Range) -> Predicate | None:
    """The condition on a column, if it can be said in its type."""
    if ends.low is None or ends.high is None:
        return None
    return where_between(field, pa.array([ends.low, ends.high], pa.date32() if ends.are_dates else pa.int64()))


def _number(name: str, data_type: spark.DataType) -> Column:
    """A value as a whole number: dates of Spark reach beyond those of Python."""
    return sf.unix_date(column(name)) if isinstance(data_type, spark.DateType) else column(name)
