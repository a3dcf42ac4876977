"""Printing changes, or writing them to a file: what ``tablestore consume`` does."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

import pyarrow as pa

import tablestore as ts
from tablestore.cli.command import CommandRun
from tablestore.cli.commands.changes.consumeoptions import ConsumeOptions, Shown
from tablestore.cli.commands.tableread import say_written
from tablestore.cli.rows.rowformat import RowFormat
from tablestore.cli.rows.rowsink import write_rows
from tablestore.log.events import Event
from tablestore.log.follow.consumption import ChangeBatch
from tablestore.log.follow.request import ScanMode
from tablestore.table.read.changes import earliest_start
from tablestore.types.rowkind import ROW_KIND_COLUMN


def print_changes(session: CommandRun, name: str, options: ConsumeOptions, shown: Shown) -> None:
    """Print the changes between two snapshots, or those from a place on."""
    session.says_itself = True
    table, sink = session.table(name), _Sink(session, shown)
    if options.onward:
        _print_onward(sink, table, options)
    else:
        start = _earliest(session, table, pairs=options.pairs) if options.from_snapshot is None else options.from_snapshot
        _print_between(sink, table, options, start)


def _print_onward(sink: "_Sink", table: ts.Table, options: ConsumeOptions) -> None:
    batches = table.consume(
        cast("ScanMode | None", options.scan),
        consumer_id=options.consumer,
        timestamp=options.timestamp,
        columns=options.columns,
        filter=options.filter,
        pairs=options.pairs,
        follow=options.follow,
        on_discontinuity=options.gaps,
    )
    fields = [table.schema.field(name) for name in (table.schema.names if options.columns is None else options.columns)]
    sink.follow(fields, batches, recorded=options.consumer is not None)


def _print_between(sink: "_Sink", table: ts.Table, options: ConsumeOptions, start: int) -> None:
    gaps: Literal["raise", "skip"] = "skip" if options.gaps == "skip" else "raise"
    changes = table.changes(
        start,
        options.to_snapshot,
        options.columns,
        options.filter,
        pairs=options.pairs,
        snapshot_ids=options.snapshot_ids,
        on_discontinuity=gaps,
    )
    sink.write(changes.schema, changes.to_batches())
    for gap in changes.discontinuities() if gaps == "skip" else ():
        sink.session.out.note(f"some changes are left out: {gap.reason}")


def _earliest(session: CommandRun, table: ts.Table, *, pairs: bool) -> int:
    """The earliest snapshot whose changes are there."""
    start = earliest_start(table.context, pairs=pairs)
    if start:
        session.out.note(f"the changes up to snapshot {start} have expired; --scan full begins with the rows instead")
    return start


@dataclass(frozen=True)
class _Sink:
    """The place that changes go to, and their form there."""

    session: CommandRun
    shown: Shown

    def write(self, schema: pa.Schema, rows: Iterable[pa.RecordBatch], *, draw: bool = True) -> None:
        """Write rows, and say how many a file has got."""
        out, shown = self.session.out, self.shown
        written = write_rows(out, schema, rows, row_format=shown.format, output=shown.output, limit=shown.limit, draw=draw)
        say_written(self.session, written, "changes", shown.output)

    def follow(self, fields: "Sequence[pa.Field[Any]]", batches: Iterator[ChangeBatch], *, recorded: bool) -> None:
        """Write batches as they come, and their events; ``recorded``: keep in the table how far this has come."""
        out = self.session.out
        at_end, row_format = self.shown.at_end, self.shown.format
        as_lines = not at_end and (row_format is RowFormat.JSON or (row_format is None and out.as_json))
        on_event = _event_line if as_lines else lambda event: out.note(str(event))
        recording = _Recording(batches, recorded=recorded, at_end=at_end, on_event=on_event)
        kind = pa.field(ROW_KIND_COLUMN, pa.string(), nullable=False)
        self.write(pa.schema([kind, *fields]), recording.rows(), draw=False)
        recording.record()


def _event_line(event: Event) -> None:
    """Write an event as a line. The rows before it are written already: that happened before its batch was asked for."""
    sys.stdout.buffer.write(json.dumps({"_event": event.name, **asdict(event)}).encode() + b"\n")


class _Recording:
    """Batches on their way out. A batch counts as done when the next one is asked for: then it has been written."""

    def __init__(self, batches: Iterator[ChangeBatch], *, recorded: bool, at_end: bool, on_event: Callable[[Event], None]) -> None:
        self._batches, self._recorded, self._at_end, self._on_event = batches, recorded, at_end, on_event
        self._done: ChangeBatch | None = None

    def rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of each batch."""
        for batch in self._batches:
            if batch.event is not None:
                self._on_event(batch.event)
            yield batch.rows
            self._done = batch
            if not self._at_end:
                sys.stdout.flush()
                self.record()

    def record(self) -> None:
        """Keep in the table how far this has come."""
        if self._recorded and self._done is not None:
            self._done.commit()
        self._done = None
