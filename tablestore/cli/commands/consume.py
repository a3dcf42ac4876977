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
from tablestore.cli import wordcompletion
from tablestore.cli.command import Session, TableName, command
from tablestore.cli.commands.tableread import Columns, FilterOption, Format, Limit, OutputFile, say_written
from tablestore.cli.rows.rowformat import RowFormat
from tablestore.cli.rows.rowsink import write_rows
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
    "tablestore consume shop.orders --to-topic order-changes --brokers kafka:9092 --name warehouse",
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
        str | None,
        typer.Option(
            "--consumer",
            metavar="NAME",
            help="Keep how far this is in the table, and go on from there.",
            autocompletion=wordcompletion.consumer,
        ),
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
    job: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="Keep under this name how far the delivery is; else the table's uuid."),
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
    asked = _Asked(
        scan=cast("ScanMode | None", scan),
        timestamp=parse_time(timestamp) if timestamp is not None else None,
        consumer=consumer,
        follow=follow,
        columns=split_names(columns) if columns is not None else None,
        filter=filter,
        pairs=not after_only,
        gaps="skip" if skip_gaps else "restart" if restart_at_gaps else "raise",
    )
    if skip_gaps and restart_at_gaps:
        raise typer.BadParameter("does not go with --skip-gaps", param_hint="'--restart-at-gaps'")
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
        if format not in (None, RowFormat.JSON, RowFormat.PARQUET) or (format is not None and to_files is None):
            raise typer.BadParameter("only files have one, json or parquet; a topic has --topic-format", param_hint="'--format'")
        topic = ts.Topic(to_topic, brokers, topic_format.value) if to_topic is not None else None
        _deliver(session, name, topic or (session.table(to) if to is not None else str(to_files)), asked, format, job)
        return
    if job is not None:
        raise typer.BadParameter("names a delivery: it goes with --to, --to-files or --to-topic", param_hint="'--name'")
    sink = _Sink(session, format, output, limit)
    _refuse_mixed(asked, between=between, snapshot_ids=snapshot_ids, at_end=sink.at_end)
    session.says_itself = True
    table = session.table(name)
    if asked.onward:
        _print_onward(sink, table, asked)
    else:
        start = _earliest(session, table, pairs=asked.pairs) if from_snapshot is None else from_snapshot
        _print_between(sink, table, asked, start, to_snapshot, snapshot_ids=snapshot_ids)


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """Which changes of a table."""

    scan: ScanMode | None
    timestamp: int | None
    consumer: str | None
    follow: bool
    columns: Sequence[str] | None
    filter: str | None
    pairs: bool
    gaps: Literal["raise", "skip", "restart"]

    @property
    def onward(self) -> bool:
        """From a place on, and not between two snapshots."""
        return self.scan is not None or self.timestamp is not None or self.consumer is not None or self.follow


def _print_onward(sink: "_Sink", table: Table, asked: _Asked) -> None:
    batches = table.consume(
        asked.scan,
        consumer_id=asked.consumer,
        timestamp=asked.timestamp,
        columns=asked.columns,
        filter=asked.filter,
        pairs=asked.pairs,
        follow=asked.follow,
        on_discontinuity=asked.gaps,
    )
    fields = [table.schema.field(one) for one in (table.schema.names if asked.columns is None else asked.columns)]
    sink.follow(fields, batches, recorded=asked.consumer is not None)


def _print_between(sink: "_Sink", table: Table, asked: _Asked, start: int, end: int | None, *, snapshot_ids: bool) -> None:
    gaps: Literal["raise", "skip"] = "skip" if asked.gaps == "skip" else "raise"
    changes = table.changes(
        start, end, asked.columns, asked.filter, pairs=asked.pairs, snapshot_ids=snapshot_ids, on_discontinuity=gaps
    )
    sink.write(changes.schema, changes.to_batches())
    for gap in changes.discontinuities() if gaps == "skip" else ():
        sink.session.out.note(f"some changes are left out: {gap.reason}")


def _deliver(
    session: Session, name: str, to: Table | ts.Topic | str, asked: _Asked, format: RowFormat | None, job: str | None
) -> None:
    report = ts.deliver(
        session.table(name),
        to,
        format="parquet" if format is RowFormat.PARQUET else "json",
        storage_options=session.storage,
        name=job,
        scan=asked.scan,
        columns=asked.columns,
        filter=asked.filter,
        follow=asked.follow,
        consumer_id=asked.consumer,
        on_discontinuity="skip" if asked.gaps == "skip" else "raise",
        on_commit=lambda done: _say_delivered(session, done),
    )
    session.out.done(asdict(report), f"{name} to {to if isinstance(to, str) else to.name}: {report}.")


def _say_delivered(session: Session, done: ts.DeliveryReport) -> None:
    if session.out.as_json:
        session.out.line(asdict(done))
        session.out.flush()


def _refuse_mixed(asked: _Asked, *, between: bool, snapshot_ids: bool, at_end: bool) -> None:
    if between and asked.onward:
        raise typer.BadParameter(
            "--from-snapshot and --to-snapshot name a range; --scan, --timestamp, --consumer and --follow go on from a place",
            param_hint="'--from-snapshot'",
        )
    if asked.onward and snapshot_ids:
        raise typer.BadParameter("only a range of snapshots has them: use --from-snapshot", param_hint="'--snapshot-ids'")
    if asked.follow and at_end:
        raise typer.BadParameter("a file is whole only at the end, which there is none of: print instead", param_hint="'--follow'")
    if asked.gaps == "restart" and not asked.onward:
        raise typer.BadParameter("goes with --scan, --consumer or --follow", param_hint="'--restart-at-gaps'")


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
