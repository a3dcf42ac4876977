"""Updates rows by condition: computes the matching rows anew, batch by batch, and puts them in the place of the old ones.

The plan lands only on what it read (:mod:`~tablestore.table.write.current`): if others change rows meanwhile, it is made again.
Memory: a batch of rows, and the writer's buffer.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from tablestore.format.snapshot import Snapshot
from tablestore.log.port import ChangeLog
from tablestore.store.context import TableContext
from tablestore.store.scan.scanplan import plan_scan
from tablestore.store.scan.splitreader import SplitReader
from tablestore.store.scan.splits import Split
from tablestore.table.change.assigning import Assignments
from tablestore.table.change.changedrows import change_rows
from tablestore.table.write.changetasks import ChangeJob, run_changes
from tablestore.table.write.current import run_until_current, settled
from tablestore.table.write.rowchange import RowChange, check_change
from tablestore.types.expression.evaluate import ColumnValues
from tablestore.types.expression.sqlexpression import column_finder
from tablestore.types.filter.predicate import Predicate
from tablestore.types.rowkind import RowKind


def update_where(
    context: TableContext, log: ChangeLog, assigned: Mapping[str, Any], predicate: Predicate | None
) -> Snapshot | None:
    """Set columns of the rows for which ``predicate`` is TRUE (None: of all). None if there is none.

    Raises InvalidInputError, UnsupportedError, ConflictError when others change rows faster than it can plan.
    """
    schema = context.schema
    types = schema.arrow_schema
    finder = column_finder({"": schema.field_names}, "expression")
    fields = {field.name: field for field in schema.fields}
    sets = Assignments.parse(assigned, fields, finder, lambda column: types.field(column.name).type)
    change = RowChange(operation="UPDATE", sets=tuple(sets.expressions), reads=predicate)
    check_change(context, change)
    return run_until_current(context, partial(_update, context, log, change, sets, predicate))


def _update(
    context: TableContext,
    log: ChangeLog,
    change: RowChange,
    sets: Assignments,
    predicate: Predicate | None,
    base: Snapshot | None,
) -> Snapshot | None:
    if (base := settled(context, base)) is None:
        return None
    splits = plan_scan(context, base, predicate).splits
    return run_changes(context, log, ChangeJob.of(context, change, base), updated_rows(context, splits, sets, predicate))


def updated_rows(
    context: TableContext, splits: Iterable[Split], sets: Assignments, predicate: Predicate | None
) -> Iterator[pa.Table]:
    """The changes of an UPDATE: the rows of splits for which ``predicate`` is TRUE (None: all), with new values."""
    reader = SplitReader.whole(context, context.schema.field_names, predicate, positions=not context.schema.is_keyed)
    with context.reading():
        for split in splits:
            for batch in reader.read(split):
                rows = _rows_of(batch)
                columns = {
                    field.name: sets.values(field, rows) if field.name in sets.expressions else batch.column(field.name)
                    for field in context.schema.fields
                }
                old = pa.Table.from_batches([batch])
                yield change_rows(context, RowKind.UPDATE_AFTER, columns, batch.num_rows, old)


def removed_rows(context: TableContext, splits: Iterable[Split], predicate: Predicate | None) -> Iterator[pa.Table]:
    """The changes of a DELETE, as :func:`updated_rows`: in an append table only the places of the rows."""
    names, keyed = context.schema.field_names, context.schema.is_keyed
    reader = SplitReader.whole(context, names if keyed else names[:1], predicate, positions=not keyed)
    with context.reading():
        for split in splits:
            for batch in reader.read(split):
                columns = {name: batch.column(name) for name in reader.columns}
                yield change_rows(context, RowKind.DELETE, columns, batch.num_rows, pa.Table.from_batches([batch]))


def _rows_of(batch: pa.RecordBatch) -> ColumnValues:
    return ColumnValues(batch.num_rows, lambda column: batch.column(column.name))
