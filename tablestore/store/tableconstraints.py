"""Refuses constraints of a table that its merge engine would not keep.

A writer compares the rows that it writes. Where rows of one key replace each other these are the rows that readers see; where they
are computed from several (partial-update, aggregation) a row that is read need not have been written:

    CHECK over key columns              kept: the key is the same in all versions
    CHECK over one other column         kept where the column has one of the values that were written (no function, last_value,
                                        first_value, max, …), and NULL passes, which it is before a row sets it
    any other CHECK                     refused: the columns may come from different rows, or a sum from none
"""

import pyarrow as pa

from tablestore.errors import TablestoreError, UnsupportedError
from tablestore.lsm.functions.mergefunction import MergeFunction
from tablestore.types.datatypes import AtomicType
from tablestore.types.filter.constraints import INVALID, Constraint, parse_constraints, violations
from tablestore.types.schema import TableSchema

_TELLING = 3
_WRITTEN_VALUES = frozenset({"last_value", "last_non_null_value", "first_value", "first_non_null_value", "max", "min"})
"""Functions whose result is one of the values that were written, or NULL."""


def telling_columns(schema: TableSchema) -> tuple[str, ...]:
    """The columns by which a message names a row: the key, else the first few that are not nested."""
    flat = [field.name for field in schema.fields if isinstance(field.type, AtomicType)]
    return schema.primary_keys or tuple(flat[:_TELLING])


def check_constraints(schema: TableSchema, merge: MergeFunction | None, table: str) -> None:
    """Refuse to write a table whose constraints cannot be computed, or would not hold. Raises InvalidInputError,
    UnsupportedError."""
    try:
        constraints = parse_constraints(schema.options, schema.fields)
    except TablestoreError as error:
        raise type(error)(f"table {table} cannot be written: {error.message}; drop that constraint", kind=error.kind) from error
    if merge is not None and merge.computes:
        for constraint in constraints:
            _check_kept(constraint, schema, merge, table)


def _check_kept(constraint: Constraint, schema: TableSchema, merge: MergeFunction, table: str) -> None:
    values = [name for name in constraint.columns if name not in schema.primary_keys]
    if not values:
        return
    if len(constraint.columns) > 1:
        raise _not_kept(constraint, merge, table, f"{', '.join(constraint.columns)} of one row may come from different ones")
    (name,) = values
    function = merge.function_of(name)
    if function is not None and function.name not in _WRITTEN_VALUES:
        raise _not_kept(constraint, merge, table, f"{name} is computed by {function.name}")
    field = schema.arrow_schema.field(name)
    unset = pa.table([pa.nulls(1, field.type)], schema=pa.schema([pa.field(name, field.type)]))
    if field.nullable and violations(constraint, unset).any():
        raise _not_kept(constraint, merge, table, f"{name} is NULL until a row sets it")


def _not_kept(constraint: Constraint, merge: MergeFunction, table: str, why: str) -> UnsupportedError:
    return UnsupportedError(
        f"table {table}: {constraint} compares the rows that are written, and with merge-engine {merge.engine} that says nothing "
        f"of the rows that are read: {why}. There a CHECK names key columns, or one other column whose value is one of those "
        "written and which may be NULL",
        kind=INVALID,
    )
