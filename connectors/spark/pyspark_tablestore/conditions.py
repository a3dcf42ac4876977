"""Translates a filter of ours to a condition of Spark's.

A filter is bound to its columns before (``tablestore.types.filter.binding``): every literal is a value of exactly the column's
type. So Spark casts nothing, and a condition means there what it means here: NaN equals NaN and is the greatest value, -0.0 equals
0.0, text and bytes are ordered byte by byte, unknown is not true. The text of the filter itself would not do: Spark's parser, its
casts and its session settings (ANSI, time zone, collation) would have a say.

What has no condition (the rows are then filtered by us): TIME, timestamps finer than microseconds, what is computed, and filters so
long that making the expression takes longer than reading a file.
"""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from operator import and_, eq, ge, gt, le, lt, ne, or_
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf

from pyspark_tablestore.native import column, reads_alike
from pyspark_tablestore.typemapping import spark_type
from tablestore.types.datatypes import AtomicType, Field, TypeRoot
from tablestore.types.filter.predicate import (
    And,
    Comparison,
    Computed,
    Constant,
    IsIn,
    IsNull,
    Like,
    Not,
    Or,
    Predicate,
    StartsWith,
    columns,
)

MOST_LITERALS = 1000

_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)
_OPERATORS: dict[str, Callable[[Column, Column], Column]] = {"=": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}


def has_condition(predicate: Predicate, fields: Mapping[str, Field]) -> bool:
    """True if :func:`condition` can say the predicate."""
    return all(reads_alike(fields[name].type) for name in columns(predicate)) and _literals(predicate) <= MOST_LITERALS


def condition(predicate: Predicate, fields: Mapping[str, Field]) -> Column:
    """The condition that is true for exactly the kept rows."""
    match predicate:
        case Constant(value):
            return sf.lit(value).cast("boolean")
        case And(children) | Or(children):
            join = and_ if isinstance(predicate, And) else or_
            parts = [condition(child, fields) for child in children]
            return _balanced(parts, join) if parts else sf.lit(isinstance(predicate, And))
        case Not(child):
            return ~condition(child, fields)
        case IsNull(name):
            return column(name).isNull()
        case StartsWith(name, prefix):
            return column(name).startswith(sf.lit(prefix))
        case Like(name, pattern):
            return column(name).like(_spark_pattern(pattern))
        case Computed():
            raise AssertionError("what is computed has no condition")
        case Comparison(op, name, value):
            return _OPERATORS[op](column(name), _literal(value, fields[name].type))
        case IsIn(name, values):
            both = [*values, *(-value for value in values if isinstance(value, float) and value == 0)]
            return column(name).isin([_literal(value, fields[name].type) for value in both])


def _literal(value: Any, data_type: Any) -> Column:
    """A literal of exactly this type, made from a number where Spark's own way from Python to the JVM is not exact."""
    assert isinstance(data_type, AtomicType), "nested columns are compared with nothing"
    if value is None:
        return sf.lit(None).cast(spark_type(data_type))
    match data_type.root:
        case TypeRoot.DATE:
            return sf.date_from_unix_date(sf.lit(value.toordinal() - _EPOCH.toordinal()))
        case TypeRoot.TIMESTAMP_LTZ:
            return sf.timestamp_micros(_long((value - _EPOCH) // _MICROSECOND))
        case TypeRoot.TIMESTAMP:
            return sf.expr(f"TIMESTAMP_NTZ'{value.isoformat(' ')}'")
        case TypeRoot.CHAR | TypeRoot.VARCHAR | TypeRoot.BOOLEAN | TypeRoot.BINARY | TypeRoot.VARBINARY:
            return sf.lit(value)
        case _:
            return sf.lit(value).cast(spark_type(data_type))


def _long(value: int) -> Column:
    return sf.lit(value).cast("bigint")


def _spark_pattern(pattern: str) -> str:
    """The same LIKE pattern without a backslash before anything but ``%``, ``_`` and itself, which Spark refuses."""
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character == "\\":
            following = next(characters, "")
            parts.append(following if following not in ("%", "_", "\\") else f"\\{following}")
        else:
            parts.append(character)
    return "".join(parts)


def _balanced(parts: Sequence[Column], join: Callable[[Column, Column], Column]) -> Column:
    """The conditions joined as a tree of least depth: Spark walks it by recursion."""
    level = list(parts)
    while len(level) > 1:
        level = [join(*level[at : at + 2]) if at + 1 < len(level) else level[at] for at in range(0, len(level), 2)]
    return level[0]


def _literals(predicate: Predicate) -> int:
    match predicate:
        case And(children) | Or(children):
            return sum(map(_literals, children))
        case Not(child):
            return _literals(child)
        case IsIn(_, values):
            return len(values)
        case Computed():
            return MOST_LITERALS + 1
        case _:
            return 1
