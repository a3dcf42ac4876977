"""``tablestore consume``: what changed, row by row; once between two snapshots, or on and on."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, cast

import pyarrow as pa
import typer

import tablestore as ts
from tablestore.cli.command import Session, TableName, command
from tablestore.cli.commands.tableread import Columns, FilterOption, Format, Limit, OutputFile, say_written
from tablestore.cli.rows.rowsink import RowFormat, write_rows
from tablestore.cli.text.units import parse_time
from tablestore.log.events import Event
from tablestore.log.follow.consumption import ChangeBatch
from tablestore.log.follow.request import ScanMode
from tablestore.names import split_names
from tablestore.table.read.changes import earliest_start
from tablestore.table.table import Table
from tablestore.types.rowkind import ROW_KIND_COLUMN

app = typer.Typer()


class TopicForm(StrEnum):
    """What the messages of a topic are."""

    JSON = "json"
    DEBEZIUM_JSON = "debezium-json"


Gaps = Annotated[bool, typer.Option("--skip-gaps", help="Go on past snapshots without changes on record, such as overwrites.")]
Restart = Annotated[
    bool, typer.Option("--restart-at-gaps", help="At such a snapshot begin anew with all rows; a restart event comes first.")
]


@command(
    app,
    "consume",
    "tablestore consume shop.orders --from-snapshot 3",
    'tablestore consume shop.orders --from-snapshot 3 --to-snapshot 9 --filter "price > 10" --json | jq ._row_kind',
    "tablestore consume shop.orders --scan full --consumer billing --follow --json",
    "tablestore consume shop.orders --to archive.orders --follow",
    "tablestore consume shop.orders --to-topic order-changes --brokers kafka:9092",
)
def consume(
    session: Session,
    name: TableName,
    from_snapshot: Annotated[
        int | None, typer.Option("--from-snapshot", "-s", min=0, help="The changes after this snapshot; 0: all.")
    ] = None,
    to_snapshot: Annotated[int | None, typer.Option("--to-snapshot", help="Up to and with this one; else the newest.")] = None,
    scan: Annotated[
        str | None,
        typer.Option("--scan", metavar="full|latest|from-timestamp", help="Begin with all rows, with what comes, or at a time."),
    ] = None,
    timestamp: Annotated[
        str | None, typer.Option("--timestamp", metavar="TIME", help="Where --scan from-timestamp begins.")
    ] = None,
    consumer: Annotated[
        str | None, typer.Option("--consumer", metavar="NAME", help="Keep how far this is in the table, and go on from there.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-F", help="Wait for further snapshots; end with Ctrl-C.")] = False,
    columns: Columns = None,
    filter: FilterOption = None,
    after_only: Annotated[
        bool, typer.Option("--after-only", help="Only what rows are afterwards: no -U, and nothing looked up.")
    ] = False,
    snapshot_ids: Annotated[bool, typer.Option("--snapshot-ids", help="Add the snapshot of every change.")] = False,
    skip_gaps: Gaps = False,
    restart_at_gaps: Restart = False,
    limit: Limit = None,
    format: Format = None,
    output: OutputFile = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="TABLE", help="Bring the changes into another table, each once.")
    ] = None,
    to_files: Annotated[
        str | None, typer.Option("--to-files", metavar="FOLDER", help="Bring them into files of a folder, each once.")
    ] = None,
    to_topic: Annotated[
        str | None, typer.Option("--to-topic", metavar="TOPIC", help="Bring them into a Kafka topic, each once.")
    ] = None,
    topic_format: Annotated[TopicForm, typer.Option("--topic-format", help="What the messages are.")] = TopicForm.JSON,
    brokers: Annotated[
        str | None,
        typer.Option(
            "--brokers", metavar="HOST:PORT,...", envvar="TABLESTORE_KAFKA_BOOTSTRAP_SERVERS", help="Brokers to begin with."
        ),
    ] = None,
) -> None:
    """Print changes, oldest first: +I, -U, +U, -D in the column _row_kind.

    Between two snapshots (--from-snapshot, else from the earliest whose changes are there), or from a place on (--scan,
    --consumer), with --follow for ever. A named consumer is recorded batch by batch, behind what was printed.

    With --to, --to-files or --to-topic nothing is printed: the other table, the folder, or a topic beside the topic says how far
    it is, so each change is there once.

    Under --json an event is a line of its own: {"_event": "restart", ...} says that all rows come next and those before are to be
    dropped, {"_event": "schema", ...} that the columns were altered. Else it is noted on standard error.
    """
    between = from_snapshot is not None or to_snapshot is not None
    targets = {"--to": to, "--to-files": to_files, "--to-topic": to_topic}
    if chosen := [option for option, target in targets.items() if target is not None]:
        printed = {
            "--from-snapshot": between,
            "--snapshot-ids": snapshot_ids,
            "--after-only": after_only,
            "--restart-at-gaps": restart_at_gaps,
            "--timestamp": timestamp is not None,
            "--limit": limit is not None,
            "--output": output is not None,
            **dict.fromkeys(chosen[1:], True),
        }
        if wrong := [one for one, given in printed.items() if given]:
            raise typer.BadParameter("does not go with what is delivered", param_hint=f"'{wrong[0]}'")
        target: Table | ts.Topic | str
        if to is not None:
            target = session.table(to)
        else:
            target = ts.Topic(to_topic, brokers, topic_format.value) if to_topic is not None else str(to_files)
        if format not in (None, RowFormat.JSON, RowFormat.PARQUET) or (format is not None and to_files is None):
            raise typer.BadParameter("only files have one, json or parquet; a topic has --topic-format", param_hint="'--format'")
        _deliver(session, name, target, scan, consumer, follow, columns, filter, skip_gaps, format)
        return
    onward = scan is not None or timestamp is not None or consumer is not None or follow
    sink = _Sink(session, format, output, limit)
    _refuse_mixed(between=between, onward=onward, snapshot_ids=snapshot_ids, follow=follow, at_end=sink.at_end)
    if restart_at_gaps and (skip_gaps or not onward):
        raise typer.BadParameter("goes with --scan, --consumer or --follow, not with --skip-gaps", param_hint="'--restart-at-gaps'")
    session.says_itself = True
    table = session.table(name)
    wanted = split_names(columns) if columns is not None else None
    gaps: Literal["raise", "skip"] = "skip" if skip_gaps else "raise"
    if onward:
        batches = table.consume(
            cast("ScanMode | None", scan),
            consumer_id=consumer,
            timestamp=parse_time(timestamp) if timestamp is not None else None,
            columns=wanted,
            filter=filter,
            pairs=not after_only,
            follow=follow,
            on_discontinuity="restart" if restart_at_gaps else gaps,
        )
        fields = [table.schema.field(one) for one in (table.schema.names if wanted is None else wanted)]
        sink.follow(fields, batches, recorded=consumer is not None)
    else:
        start = _earliest(session, table, pairs=not after_only) if from_snapshot is None else from_snapshot
        pairs = not after_only
        changes = table.changes(start, to_snapshot, wanted, filter, pairs=pairs, snapshot_ids=snapshot_ids, on_discontinuity=gaps)
        sink.write(changes.schema, changes.to_batches())
        for gap in changes.discontinuities() if skip_gaps else ():
            session.out.note(f"some changes are left out: {gap.reason}")


def _deliver(
    session: Session,
    name: str,
    to: Table | ts.Topic | str,
    scan: str | None,
    consumer: str | None,
    follow: bool,
    columns: str | None,
    filter: str | None,
    skip_gaps: bool,
    format: RowFormat | None,
) -> None:
    report = ts.deliver(
        session.table(name),
        to,
        format="parquet" if format is RowFormat.PARQUET else "json",
        storage_options=session.storage,
        scan=cast("ScanMode | None", scan),
        columns=split_names(columns) if columns is not None else None,
        filter=filter,
        follow=follow,
        consumer_id=consumer,
        on_discontinuity="skip" if skip_gaps else "raise",
        on_commit=lambda done: _say_delivered(session, done),
    )
    session.out.done(asdict(report), f"{name} to {to if isinstance(to, str) else to.name}: {report}.")


def _say_delivered(session: Session, done: ts.DeliveryReport) -> None:
    if session.out.as_json:
        session.out.line(asdict(done))
        session.out.flush()


def _refuse_mixed(*, between: bool, onward: bool, snapshot_ids: bool, follow: bool, at_end: bool) -> None:
    if between and onward:
        raise typer.BadParameter(
            "--from-snapshot and --to-snapshot name a range; --scan, --timestamp, --consumer and --follow go on from a place",
            param_hint="'--from-snapshot'",
        )
    if onward and snapshot_ids:
        raise typer.BadParameter("only a range of snapshots has them: use --from-snapshot", param_hint="'--snapshot-ids'")
    if follow and at_end:
        raise typer.BadParameter("a file is whole only at the end, which there is none of: print instead", param_hint="'--follow'")


def _earliest(session: Session, table: Table, *, pairs: bool) -> int:
    """The earliest snapshot whose changes are there."""
    start = earliest_start(table.context, pairs=pairs)
    if start:
        session.out.note(f"the changes up to snapshot {start} have expired; --scan full begins with the rows instead")
    return start


@dataclass(frozen=True)
class _Sink:
    """Where the changes go, and how they look there. ``at_end``: only at the end are they whole."""

    session: Session
    format: RowFormat | None
    output: Path | None
    limit: int | None

    @property
    def at_end(self) -> bool:
        return self.format is RowFormat.PARQUET or (self.output is not None and str(self.output) != "-")

    def write(self, schema: pa.Schema, rows: Iterable[pa.RecordBatch], *, draw: bool = True) -> None:
        """Write rows, and say how many a file has got."""
        out = self.session.out
        written = write_rows(out, schema, rows, row_format=self.format, output=self.output, limit=self.limit, draw=draw)
        say_written(self.session, written, "changes", self.output)

    def follow(self, fields: "Sequence[pa.Field[Any]]", batches: Iterator[ChangeBatch], *, recorded: bool) -> None:
        """Write batches as they come, and their events; ``recorded``: keep in the table how far this has come."""
        out = self.session.out
        as_lines = not self.at_end and (self.format is RowFormat.JSON or (self.format is None and out.as_json))
        on_event = _event_line if as_lines else lambda event: out.note(str(event))
        recording = _Recording(batches, recorded=recorded, at_end=self.at_end, on_event=on_event)
        kind = pa.field(ROW_KIND_COLUMN, pa.string(), nullable=False)
        self.write(pa.schema([kind, *fields]), recording.rows(), draw=False)
        recording.record()


def _event_line(event: Event) -> None:
    """Behind the rows before it: those were written when this one was asked for."""
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
