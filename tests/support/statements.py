"""UPDATE, DELETE and MERGE without SQL: the query of a statement is a function, from the rows that it reads to those it yields.

run(table, RowChange(operation="DELETE", deletes=True), lambda rows: [gone(row) for row in rows if row["id"] == 7])
"""

import pickle
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from tablestore.distributed.change import (
    RewriteTask,
    change_columns,
    decode_messages,
    encode_message,
    pin_change,
    plan_rewrites,
    prepare_change,
    run_rewrite,
)
from tablestore.distributed.read import pinned_scan
from tablestore.distributed.spec import TableSpec
from tablestore.format.snapshot import Snapshot
from tablestore.table.table import Table
from tablestore.table.write.changetasks import ChangeMessage, abort_changes, commit_changes, write_changes
from tablestore.table.write.current import run_until_current
from tablestore.table.write.rowchange import RowChange
from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.rowkind import ROW_BEFORE_COLUMN, ROW_KIND_COLUMN
from tablestore.types.rowposition import POSITION_COLUMNS, POSITION_FIELDS

Row = dict[str, Any]
Query = Callable[[list[Row]], Iterable[Row]]


def added(row: Row) -> Row:
    """A row that is inserted."""
    return {**row, ROW_KIND_COLUMN: "+I", **dict.fromkeys(POSITION_COLUMNS)}


def updated(row: Row, **values: Any) -> Row:
    """A row that was read, with other values."""
    before = {name: value for name, value in row.items() if name not in POSITION_COLUMNS}
    return {**row, **values, ROW_KIND_COLUMN: "+U", ROW_BEFORE_COLUMN: before}


def gone(row: Row) -> Row:
    """A row that was read and is deleted."""
    return {**row, ROW_KIND_COLUMN: "-D"}


def run(table: Table, change: RowChange, query: Query, **how: Any) -> Snapshot | None:
    """Run a statement until it lands; ``how`` as of :func:`attempt`."""
    return run_until_current(table.context, lambda base: attempt(table, change, query, **how))


def attempt(
    table: Table,
    change: RowChange,
    query: Query,
    *,
    tasks: int = 1,
    rewrite_apart: bool = False,
    before_commit: Callable[[], object] = lambda: None,
) -> Snapshot | None:
    """Run a statement once: its rows are dealt out to tasks, which open the table and send bytes. ``rewrite_apart``: files
    are written again by tasks, too."""
    spec = TableSpec(location=table.location, storage_options={})
    pin = pin_change(table, spec, change, table.context.snapshots.latest())
    columns = change_columns(table)
    read = pinned_scan(pin, positions=columns.positions).to_arrow()
    schema = change_schema(table)
    rows = list(query(read.to_pylist()))
    job = pickle.loads(pickle.dumps(prepare_change(table, pin, change)))
    messages: list[ChangeMessage] = []
    try:
        for task in range(tasks):
            share = pa.Table.from_pylist(rows[task::tasks], schema=schema)
            there = spec.table(job.schema_id)
            written = write_changes(there.context, there.change_log, job, share.to_batches(max_chunksize=3), task)
            messages += decode_messages([encode_message(written)])
        if rewrite_apart:
            for planned in plan_rewrites(table, job, messages, task_bytes=1):
                sent = RewriteTask.from_bytes(planned.to_bytes())
                messages += decode_messages([encode_message(run_rewrite(spec.table(job.schema_id), job, sent))])
    except BaseException:
        abort_changes(table.context, messages)
        raise
    before_commit()
    return commit_changes(table.context, table.change_log, job, messages, prepared=True)


def change_schema(table: Table) -> pa.Schema:
    """The columns of the rows that change this table."""
    columns = change_columns(table)
    nullable = [field.with_nullable(True) for field in table.schema]
    extra = [field.with_nullable(True) for field in to_arrow_schema(POSITION_FIELDS)] if columns.positions else []
    before = [field for field in nullable if field.name in columns.before]
    extra += [pa.field(ROW_BEFORE_COLUMN, pa.struct(before))] if before else []
    return pa.schema([pa.field(ROW_KIND_COLUMN, pa.string()), *nullable, *extra])
