"""Runs DESCRIBE HISTORY: lists the retained snapshots of a table, the newest first, with the names that Delta gives them.

    version  timestamp  user  operation  restored_version  rows_added  rows  records_added  records  schema_id

``rows`` and ``rows_added`` are those of a reader, where the commit could count them without reading; ``records`` are those in
files, which also hold rows that later ones replace. Behind them stand the counts of the commit
(:class:`~tablestore.format.writecounts.WriteCounts`), NULL where it did not know.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from itertools import islice
from typing import Any

import pyarrow as pa

from tablestore.environment.result import Result, records
from tablestore.environment.session.session import Session
from tablestore.environment.source import Source
from tablestore.format.snapshot import Snapshot
from tablestore.format.writecounts import COUNT_NAMES
from tablestore.sql.statements.session import DescribeHistory
from tablestore.store.context import TableContext
from tablestore.table.history.restore import restored_snapshot_id
from tablestore.table.system.systemtext import local_time

HISTORY_SCHEMA = pa.schema(
    [
        pa.field("version", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms"), nullable=False),
        pa.field("user", pa.string(), nullable=False),
        pa.field("operation", pa.string(), nullable=False),
        ("restored_version", pa.int64()),
        ("rows_added", pa.int64()),
        ("rows", pa.int64()),
        ("records_added", pa.int64()),
        ("records", pa.int64()),
        pa.field("schema_id", pa.int64(), nullable=False),
        *((name, pa.int64()) for name in COUNT_NAMES),
    ]
)


def describe_history(session: Session, statement: DescribeHistory, source: Source) -> Result:
    """The snapshots of a managed table, or of a branch of one. Raises NotFoundError, InvalidInputError for anything else."""
    context = session.table(statement.path, "DESCRIBE HISTORY", source).context.still_there().ruled()
    return records(HISTORY_SCHEMA, map(_row, map(context.shown, islice(_newest_first(context), statement.limit))))


def _newest_first(context: TableContext) -> Iterator[Snapshot]:
    return context.snapshots.back_from(context.snapshots.latest())


def _row(snapshot: Snapshot) -> Mapping[str, Any]:
    restored = restored_snapshot_id(snapshot)
    return {
        "version": snapshot.id,
        "timestamp": local_time(snapshot.time_millis),
        "user": snapshot.commit_user,
        "operation": (snapshot.operation or str(snapshot.commit_kind)) if restored is None else "RESTORE",
        "restored_version": restored,
        "rows_added": snapshot.row_change,
        "rows": snapshot.rows,
        "records_added": snapshot.delta_record_count,
        "records": snapshot.total_record_count,
        "schema_id": snapshot.schema_id,
        **asdict(snapshot.counts),
    }
