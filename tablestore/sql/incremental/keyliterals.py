"""Writes the few values that a column must have as literals in a query: by them a scan leaves out files, where a join reads all.

Only whole numbers and texts are written, and only beside columns of the same kind: a comparison of a text and a number converts
one of them, and an IN need not convert the same one as an equality.
"""

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from tablestore.types.datatypes import INTEGER_ROOTS, AtomicType, DataType, TypeRoot

MOST_LITERALS = 100


def literal_kind(data_type: DataType) -> str | None:
    """The kind of a column whose values can be written as literals."""
    root = data_type.root if isinstance(data_type, AtomicType) else None
    return "number" if root in INTEGER_ROOTS else "text" if root is TypeRoot.VARCHAR else None


def add_literals(select: exp.Select, column: exp.Expr, rows: pa.Table, name: str, *, join: exp.Join | None = None) -> None:
    """Adds the condition that ``column`` has one of the values that ``name`` has in ``rows``, if these are few and none is NULL.

    It is said in the WHERE, or in the ON of ``join``.
    """
    if not isinstance(column, exp.Column) or (values := _few_values(rows, name)) is None:
        return
    condition = exp.In(this=column.copy(), expressions=values)
    if join is None:
        select.where(condition, copy=False)
    else:
        join.on(condition, copy=False)


def without_nulls(rows: pa.Table, name: str) -> pa.Table:
    """The rows whose column is not NULL: those that an equality can find."""
    column = _column(rows, name)
    return rows if column is None else rows.filter(pc.is_valid(column))


def _few_values(rows: pa.Table, name: str) -> list[exp.Expr] | None:
    column = _column(rows, name)
    if column is None or not (pa.types.is_integer(column.type) or pa.types.is_string(column.type)):
        return None
    unique = pc.unique(column)
    if not 0 < len(unique) <= MOST_LITERALS or unique.null_count:
        return None
    return [exp.convert(value) for value in unique.to_pylist()]


def _column(rows: pa.Table, name: str) -> pa.ChunkedArray | None:
    place = next((n for n, column_name in enumerate(rows.schema.names) if column_name.lower() == name), None)
    return None if place is None else rows.column(place)
