"""Implements ``tablestore.ingest``: a topic into a table, in one call."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from functools import partial
from typing import Protocol

from tablestore.cdc.ingest.deadletters import DEAD_LETTER_KEY, DEAD_LETTER_SCHEMA, DeadLetters
from tablestore.cdc.ingest.ingestion import Ingestion
from tablestore.cdc.ingest.ingestrequest import IngestCommit, IngestReport, IngestRequest, OnError, Start
from tablestore.cdc.lineagejobs import ingest_job, topic_dataset
from tablestore.cdc.records.avroobjects import parse_avro_schema
from tablestore.cdc.topicsource import TopicSource, open_topic_source
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table
from tablestore.table.upkeep.ages import millis_of
from tablestore.telemetry.lineage import Written, recorded

SERVERS = "bootstrap.servers"


class IngestEngine(Protocol):
    """Ingests with tasks of its own, in other processes. Its commits are those of :class:`Ingestion`."""

    def commits(
        self,
        table: Table,
        open_source: Callable[[], TopicSource],
        request: IngestRequest,
        dead_letters: Table | None,
        stop: Callable[[], bool],
    ) -> Iterator[IngestCommit]:
        """Ingests, commit by commit. ``open_source`` travels to the tasks. Raises as :func:`ingest`."""
        ...


def ingest(
    table: Table,
    topic: str,
    *,
    servers: str | None = None,
    format: str = "debezium-json",
    properties: Mapping[str, str] | None = None,
    name: str | None = None,
    start: Start = "earliest",
    reset: bool = False,
    follow: bool = False,
    commit_every: timedelta | int = timedelta(seconds=10),
    commit_records: int = 1_000_000,
    dead_letters: Table | None = None,
    on_error: OnError | None = None,
    evolve: bool = False,
    avro_schema: str | None = None,
    avro_schema_id: int | None = None,
    avro_key_schema: str | None = None,
    avro_key_schema_id: int | None = None,
    on_commit: Callable[[IngestCommit], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
    engine: IngestEngine | None = None,
) -> IngestReport:
    """Reads a topic into a table, exactly once: each commit holds rows and the offsets behind them.

    ``format`` is ``debezium-json``, ``debezium-avro``, ``json`` or ``avro``. Avro needs the schema of the records as
    ``avro_schema`` (JSON), and ``avro_schema_id`` if they name it, as with a schema registry of Confluent; ``avro_key_schema`` and
    its id the same of keys, which are JSON or text otherwise.

    A later call goes on where the last commit of its ``name`` (default: the topic's) was; the first one begins at the ``start``
    (``"earliest"`` or ``"latest"``), as does any with ``reset``. It ends with the records that are there now; with ``follow`` it
    waits for more until ``stop()``. ``commit_every``: a timedelta, or milliseconds.

    ``evolve``: columns that records have and the table lacks are added to it, and those that are too narrow widened.
    A record that cannot become a row stops it, unless there is a table for ``dead_letters`` (:func:`dead_letter_table`), or
    ``on_error="skip"``. ``servers`` are the brokers; ``properties`` of the client that tables may set too, others (secrets) come
    from the environment. ``engine``: reads and writes with tasks of its own.

    Raises FormatError of kind ``bad-record``, ConflictError of kind ``fenced`` (another process ingests under this name),
    PositionLost, NotFoundError, InvalidInputError, StorageError.
    """
    client_properties = {**(properties or {}), **({SERVERS: servers} if servers else {})}
    request = IngestRequest(
        name=topic if name is None else name,
        format=format,
        start=start,
        reset=reset,
        follow=follow,
        commit_every_s=(millis_of(commit_every, "commit_every") or 0) / 1000,
        commit_records=commit_records,
        on_error=on_error or ("stop" if dead_letters is None else "dead-letter"),
        evolve=evolve,
        schema=None if avro_schema is None else parse_avro_schema(avro_schema, avro_schema_id),
        key_schema=None if avro_key_schema is None else parse_avro_schema(avro_key_schema, avro_key_schema_id),
    )
    open_source = partial(open_topic_source, "kafka", topic, client_properties)

    def run() -> IngestReport:
        if engine is None:
            return run_ingest(table, open_source(), request, dead_letters, on_commit=on_commit, stop=stop)
        return _reported(engine.commits(table, open_source, request, dead_letters, stop), on_commit)

    if (lineage := table.context.shared.observers.lineage) is None:
        return run()
    broker = client_properties.get(SERVERS)
    with recorded(lineage, lambda: ingest_job(topic_dataset(topic, broker), table, follow=follow)) as outcome:
        report = run()
        outcome.written = Written(rows=report.rows, snapshot_id=report.snapshot_id)
        return report


def run_ingest(
    table: Table,
    source: TopicSource,
    request: IngestRequest,
    dead_letters: Table | None = None,
    *,
    on_commit: Callable[[IngestCommit], None] | None = None,
    stop: Callable[[], bool] = lambda: False,
) -> IngestReport:
    """Ingests as :func:`ingest` does, from a source that is open."""
    letters = None if dead_letters is None else DeadLetters(dead_letters)
    return _reported(Ingestion(table.refresh(), source, request, letters).commits(stop), on_commit)


def _reported(commits: Iterator[IngestCommit], on_commit: Callable[[IngestCommit], None] | None) -> IngestReport:
    report = IngestReport()
    for commit in commits:
        report = report.after(commit)
        if on_commit is not None:
            on_commit(commit)
    return report


def dead_letter_table(catalog: Catalog, name: str) -> Table:
    """The table ``database.name`` for records that cannot become rows; it is made if it is not there."""
    return catalog.create_table(
        name,
        schema=DEAD_LETTER_SCHEMA,
        primary_key=DEAD_LETTER_KEY,
        comment="Records that could not become rows",
        ignore_if_exists=True,
    )
