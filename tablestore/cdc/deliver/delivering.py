"""Implements ``tablestore.deliver``: the rows of a table and then every change into another table, files or a topic, each once.

    sink says where its last commit ended ── consume from there ── write … ── commit rows + position ── …

A commit comes where a snapshot of the table ends, or after so many rows. Memory: two batches, and what the sink keeps until it
commits.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from tablestore.cdc.deliver.changesink import ChangeSink
from tablestore.cdc.deliver.filesink import FileFormat, FileSink
from tablestore.cdc.deliver.tablesink import SinkNeeds, TableSink, needs_of
from tablestore.cdc.deliver.topicsink import Topic, open_topic_sink
from tablestore.cdc.lineagejobs import delivery_job, folder_dataset, table_dataset, topic_dataset
from tablestore.errors import InvalidInputError
from tablestore.io.opening import open_store
from tablestore.log.follow.request import ScanMode
from tablestore.log.position import LogPlace, Position
from tablestore.names import Names, names_of
from tablestore.store.history.consumers import Consumers
from tablestore.store.schemas import table_uuid_of
from tablestore.table.table import Table
from tablestore.telemetry.lineage import LineageDataset, Outcome, Written, recorded
from tablestore.types.filter.filters import Filter


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReport:
    """Reports what was delivered: changes, commits, and the last snapshot that is done in whole or in part."""

    rows: int = 0
    commits: int = 0
    snapshot_id: int | None = None

    def __str__(self) -> str:
        return f"{self.rows:,} changes in {self.commits:,} commits"


def deliver(
    table: Table,
    to: Table | Topic | str,
    *,
    format: FileFormat = "json",
    storage_options: Mapping[str, Any] | None = None,
    name: str | None = None,
    scan: ScanMode | None = None,
    columns: Names | None = None,
    filter: Filter = None,
    follow: bool = False,
    commit_rows: int = 100_000,
    consumer_id: str | None = None,
    on_discontinuity: Literal["raise", "skip"] = "raise",
    on_commit: Callable[[DeliveryReport], None] | None = None,
    stop: Callable[[], bool] | None = None,
) -> DeliveryReport:
    """Brings the rows of a table and then every change into another table, a topic, or a folder of files, exactly once.

    ``to`` is a table, a ``Topic``, or where a folder lies: files of ``format`` ``"json"`` (lines) or ``"parquet"`` with
    ``_row_kind``. A later call goes on where the last commit of its ``name`` (default: the table's uuid; a folder has one) ended;
    the first one begins as ``scan`` says. It ends at the newest snapshot, or with ``follow`` waits for more. ``consumer_id``:
    expiry keeps what is still to be delivered, as the consumer of that name.

    A table of another primary key than this one's, or with another ``sequence.field``, follows it too: the rows before an update
    are looked up. Its key has to be one of the rows of this table, of which each has at most one row at any time.
    A table without a primary key takes new rows only. A topic gets each commit in one transaction: with
    ``isolation.level=read_committed`` readers see each change once. Raises ConflictError of kind ``fenced`` if another process
    delivers under this name, and as ``table.consume`` and the writer of the other table do.
    """
    columns = None if columns is None else tuple(names_of(columns))
    sink, needs = _open_sink(table, to, format, storage_options, name, columns=columns, has_filter=filter is not None)
    with ExitStack() as ended:
        ended.callback(sink.close)
        outcome = Outcome()
        if (lineage := table.context.shared.observers.lineage) is not None:
            job = partial(delivery_job, table, _dataset(to), columns, follow=follow)
            outcome = ended.enter_context(recorded(lineage, job))
        begin = sink.position()
        if begin is None and scan == "latest":
            # The latest position is known only now: it has to be kept.
            latest = table.refresh().context.snapshots.latest()
            begin = str(table.position_after(0 if latest is None else latest.id))
            sink.commit(begin)
        batches = table.consume(
            scan if begin is None else None,
            position=begin,
            columns=columns,
            filter=filter,
            pairs=needs.pairs,
            as_written=needs.as_written,
            follow=follow,
            on_discontinuity=on_discontinuity,
            stop=stop,
        )
        report, pending, last = DeliveryReport(), 0, None
        for batch in batches:
            last = batch
            if batch.rows.num_rows:
                sink.write(batch.rows)
                pending += batch.rows.num_rows
                report = replace(report, rows=report.rows + batch.rows.num_rows)
            report = replace(report, snapshot_id=batch.snapshot_id)
            ends = _may_end(batch.position)
            full = pending >= commit_rows and (ends or batch.in_frame or not needs.whole_snapshots)
            if full or (pending and ends and (follow or needs.whole_snapshots)):
                report = _commit(table, sink, batch.position, consumer_id, report, on_commit)
                pending, last = 0, None
        if last is not None and pending:
            report = _commit(table, sink, last.position, consumer_id, report, on_commit)
        outcome.written = Written(rows=report.rows, snapshot_id=report.snapshot_id if isinstance(to, Table) else None)
        return report


def _dataset(to: Table | Topic | str) -> LineageDataset:
    match to:
        case Table():
            return table_dataset(to)
        case Topic():
            return topic_dataset(to.name, to.servers or to.properties.get("bootstrap.servers"))
    return folder_dataset(to)


def _open_sink(
    table: Table,
    to: Table | Topic | str,
    format: FileFormat,
    storage_options: Mapping[str, Any] | None,
    name: str | None,
    *,
    columns: Sequence[str] | None,
    has_filter: bool,
) -> tuple[ChangeSink, SinkNeeds]:
    """The sink that the changes go to, and what it needs of them."""
    if format not in ("json", "parquet"):
        raise InvalidInputError(f"expected json or parquet as format, found {format!r:.80}", kind="invalid-argument")
    named = name or table_uuid_of(table.table_schema) or table.name
    if isinstance(to, Table):
        if (to.location, to.branch_name) == (table.location, table.branch_name):
            raise InvalidInputError(
                f"the changes of table {table.name} cannot go into itself: each delivery would be the next one's change; "
                "name another table",
                kind="invalid-argument",
            )
        needs = needs_of(table.context, to.context, frozenset(table.schema.names if columns is None else columns))
        return TableSink(to, named, removes_first=needs.whole_snapshots), needs
    if isinstance(to, Topic):
        # A message of a key replaces the one before: what was there is only needed to fold rows, or to see them leave a filter.
        pairs = to.format != "json" or not table.primary_key or has_filter or not table.context.settings.is_plain
        return open_topic_sink(to, named, table.primary_key, columns), SinkNeeds(pairs=pairs)
    return FileSink(open_store(to, storage_options), format, table.context.ids), SinkNeeds(pairs=True)


def _commit(
    table: Table,
    sink: ChangeSink,
    position: Position,
    consumer_id: str | None,
    report: DeliveryReport,
    on_commit: Callable[[DeliveryReport], None] | None,
) -> DeliveryReport:
    sink.commit(str(position))
    if consumer_id is not None:
        Consumers(table.context.files).write(consumer_id, max(1, position.place.needed_snapshot))
    report = replace(report, commits=report.commits + 1)
    if on_commit is not None:
        on_commit(report)
    return report


def _may_end(position: Position) -> bool:
    """True if a commit need not wait for more: a snapshot ends there, or each bucket of a topic has a place of its own."""
    place = position.place
    return isinstance(place, LogPlace) or (place.phase == "changes" and not place.rows)
