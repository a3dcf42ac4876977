"""``tablestore ingest``: a topic into a table, exactly once, to its end or on and on."""

from contextlib import nullcontext
from dataclasses import asdict
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import tablestore as ts
from tablestore.cli.command import CommandRun, TableName, command, is_path, parse_pairs
from tablestore.cli.commands.changes.consume import Brokers
from tablestore.cli.commands.sql import Engine, open_environment
from tablestore.cli.text.render import Bar

app = typer.Typer()
_SUFFIX = "_dead_letters"


class IngestFormat(StrEnum):
    """The format of records."""

    DEBEZIUM_JSON = "debezium-json"
    JSON = "json"
    DEBEZIUM_AVRO = "debezium-avro"
    AVRO = "avro"


class StartAt(StrEnum):
    """The place where the first run begins."""

    EARLIEST = "earliest"
    LATEST = "latest"


class BadRecords(StrEnum):
    """The fate of records that cannot become rows."""

    DEAD_LETTER = "dead-letter"
    SKIP = "skip"
    STOP = "stop"


Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic to read.")]
Format = Annotated[IngestFormat, typer.Option("--format", "-f", help="What the records are.")]
Name = Annotated[str | None, typer.Option("--name", metavar="NAME", help="Keep its progress under this name; else the topic's.")]
Follow = Annotated[bool, typer.Option("--follow", "-F", help="Wait for further records; end with Ctrl-C.")]
Start = Annotated[StartAt, typer.Option("--start", help="Where the first run begins.")]
Reset = Annotated[bool, typer.Option("--reset", help="Forget the progress and begin at --start.")]
DeadLetters = Annotated[
    str | None,
    typer.Option(
        "--dead-letters", metavar="TABLE", help=f"Where records go that cannot become rows; else TABLE{_SUFFIX}. It is made."
    ),
]
OnError = Annotated[BadRecords, typer.Option("--on-error", help="What happens to records that cannot become rows.")]
Evolve = Annotated[bool, typer.Option("--evolve", help="Add columns that records have, and widen those too narrow.")]
AvroSchema = Annotated[
    Path | None, typer.Option("--avro-schema", metavar="FILE", help="The schema of Avro records.", exists=True, dir_okay=False)
]
AvroSchemaId = Annotated[
    int | None, typer.Option("--avro-schema-id", metavar="N", help="Its number, if records name it (Confluent).")
]
AvroKeySchema = Annotated[
    Path | None, typer.Option("--avro-key-schema", metavar="FILE", help="The schema of Avro keys.", exists=True, dir_okay=False)
]
AvroKeySchemaId = Annotated[int | None, typer.Option("--avro-key-schema-id", metavar="N", help="Its number, if keys name it.")]
TaskEngine = Annotated[
    Engine | None, typer.Option("--engine", help="Read and write with tasks of this engine (spark); left out: in this process.")
]
CommitEvery = Annotated[float, typer.Option("--commit-every", metavar="SECONDS", help="Commit at least so often.")]
CommitRecords = Annotated[int, typer.Option("--commit-records", metavar="N", min=1, help="Commit after so many records.")]
Properties = Annotated[
    list[str] | None,
    typer.Option("--property", "-p", metavar="KEY=VALUE", help="A property of the Kafka client. May be repeated."),
]


@command(
    app,
    "ingest",
    "tablestore ingest shop.orders db.public.orders --brokers kafka:9092",
    "tablestore ingest shop.orders orders --format json --brokers kafka:9092 --follow --json",
    "tablestore ingest shop.orders orders --name orders-eu --dead-letters shop.refused --commit-every 60",
)
def ingest(
    session: CommandRun,
    name: TableName,
    topic: Topic,
    brokers: Brokers = None,
    format: Format = IngestFormat.DEBEZIUM_JSON,
    job: Name = None,
    follow: Follow = False,
    start: Start = StartAt.EARLIEST,
    reset: Reset = False,
    dead_letters: DeadLetters = None,
    on_error: OnError = BadRecords.DEAD_LETTER,
    evolve: Evolve = False,
    avro_schema: AvroSchema = None,
    avro_schema_id: AvroSchemaId = None,
    avro_key_schema: AvroKeySchema = None,
    avro_key_schema_id: AvroKeySchemaId = None,
    engine: TaskEngine = None,
    commit_every: CommitEvery = 10.0,
    commit_records: CommitRecords = 1_000_000,
    properties: Properties = None,
) -> None:
    """Read a topic into a table: rows, and the changes of rows, each exactly once.

    The first run begins at the earliest record, each further one where the last commit was: rows and offsets are one snapshot. It
    ends with the records that are there now, unless it is to --follow. Records that cannot become rows go to a table of dead
    letters.

    Under --json each commit is a line of its own, and the last line is the sum.
    """
    from tablestore.environment.engine import ingest_engine

    table = session.table(name)
    letters = _letters(session, table, name, dead_letters) if on_error is BadRecords.DEAD_LETTER else None
    with (
        nullcontext() if engine is None else open_environment(session, engine) as environment,
        session.out.progress(f"{topic} to {table.name}", None if follow else 1.0) as bar,
    ):
        report = ts.ingest(
            table,
            topic,
            format=format.value,
            servers=brokers,
            properties=parse_pairs(properties or (), "--property"),
            name=job,
            start=start.value,
            reset=reset,
            follow=follow,
            commit_every=timedelta(seconds=commit_every),
            commit_records=commit_records,
            dead_letters=letters,
            on_error=on_error.value,
            evolve=evolve,
            avro_schema=avro_schema.read_text() if avro_schema is not None else None,
            avro_schema_id=avro_schema_id,
            avro_key_schema=avro_key_schema.read_text() if avro_key_schema is not None else None,
            avro_key_schema_id=avro_key_schema_id,
            on_commit=_Shown(session, bar),
            engine=ingest_engine(environment.engine, session.storage) if environment and environment.engine else None,
        )
    session.out.done(asdict(report), f"{topic}: {report}.")
    if report.bad_records and letters is not None:
        session.out.note(f"{report.bad_records:,} records are in {letters.name}, with the reasons")


class _Shown:
    """Shows commits: a line each under ``--json``, else on the bar."""

    def __init__(self, session: CommandRun, bar: Bar) -> None:
        self._session, self._bar, self._done = session, bar, 0

    def __call__(self, commit: "ts.IngestCommit") -> None:
        self._done += commit.records
        if self._session.out.as_json:
            self._session.out.line(asdict(commit))
            self._session.out.flush()
        lag = commit.lag or 0
        self._bar.reach(
            self._done / max(1, self._done + lag), f"snapshot {commit.snapshot_id}  {self._done:,} records  {lag:,} to go"
        )


def _letters(session: CommandRun, table: "ts.Table", name: str, letters_name: str | None) -> "ts.Table":
    if letters_name is not None and is_path(letters_name):
        return session.table(letters_name)
    if letters_name is None and is_path(name):
        raise typer.BadParameter(
            "a table named by its path: name the table for dead letters, or choose --on-error", param_hint="'--dead-letters'"
        )
    return ts.dead_letter_table(session.catalog(), letters_name or f"{table.name.partition('$')[0]}{_SUFFIX}")
