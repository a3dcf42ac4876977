"""Runs INSERT INTO in streaming mode: a job that writes the rows of a stream, and ends when it is canceled or the stream does.

    SET 'execution.runtime-mode' = 'streaming'
    INSERT INTO k SELECT … FROM t                            t: a managed table, its rows and then every change

The statement gives its job as soon as the stream runs. The same statement goes on where the last one ended:

duckdb    under its name (``pipeline.name``, else its target and its text), with the positions in the snapshots of the target
spark     with its folder in ``execution.checkpointing.dir``, named like the target, or ``pipeline.name``; a view of a streaming
          DataFrame is a stream there too
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from threading import Event
from urllib.parse import quote

import pyarrow as pa

from tablestore.distributed.streambatch import no_checkpoint
from tablestore.environment.engine import BoundQuery, InsertTarget, Stream, StreamsInserts
from tablestore.environment.jobs import Job, JobStatusHook
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.result import DONE_SCHEMA, Result, ResultKind, done
from tablestore.environment.rows.insert import Insertion
from tablestore.environment.rows.observing import job_of, observed
from tablestore.environment.rows.queries import explained
from tablestore.environment.session.session import Session
from tablestore.environment.session.sessionsettings import CHECKPOINT_INTERVAL, CHECKPOINTS, PIPELINE_NAME
from tablestore.environment.source import Source
from tablestore.environment.streams.microbatches import MicroBatches
from tablestore.environment.streams.streamedquery import ends, streamed_query, streams_of
from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.options import parse_duration
from tablestore.sql.query.tokenstream import tokens_of
from tablestore.sql.source import Fragment
from tablestore.table.table import Table
from tablestore.telemetry.lineage import LineageJob

# A request to cancel is seen within this time.
_LOOK_S = 0.1


StreamSetting = Callable[[BoundQuery, InsertTarget], Stream]
"""Begins to write the rows of a query into a table, and goes on where the same stream ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamInsert:
    """The plan of an INSERT without end. ``into``: where a job (its id) writes; entered while the stream runs. ``name``: what the
    stream goes on by. ``beside``: further ones, which run in the same job: where one of them fails, all end."""

    session: Session
    setting: StreamSetting
    query: BoundQuery
    into: Callable[[str], AbstractContextManager[InsertTarget]]
    source: Source
    name: str = ""
    beside: "tuple[StreamInsert, ...]" = ()
    hooks: tuple[JobStatusHook, ...] = ()
    kind: ResultKind = "nothing"
    schema: pa.Schema = DONE_SCHEMA
    _begun: Event = field(default_factory=Event)

    def run(self, job: Job[Result]) -> Result:
        with ExitStack() as ended:
            running = [(one, one._begin(job, ended)) for one in (self, *self.beside)]
            self._begun.set()
            while running:
                for one, stream in tuple(running):
                    job.check()
                    with one._placing():
                        if stream.wait(_LOOK_S / len(running)):
                            running.remove((one, stream))
        return done()

    def _begin(self, job: Job[Result], ended: ExitStack) -> Stream:
        with self._placing():
            target = ended.enter_context(self.into(job.id))
            ended.enter_context(observed(target.table, "stream", lambda: self._job(target.table)))
            stream = self.setting(self.query, target)
            ended.callback(stream.stop)
            return stream

    def _job(self, table: Table) -> LineageJob:
        return job_of(self.session, "STREAM", table, self.query, self.source.statement, is_stream=True)

    @contextmanager
    def _placing(self) -> Iterator[None]:
        try:
            yield
        except TablestoreError as error:
            self.source.guess(error)
            raise

    def wait_begun(self, job: Job[Result]) -> None:
        """Waits until the stream runs. Raises what the job ended with before that."""
        while not self._begun.wait(_LOOK_S):
            if job.done():
                job.result()
                return

    def explain(self) -> str:
        return "\n\n".join(explained(one.session, one.query) for one in (self, *self.beside))


def stream_insert(session: Session, path: ObjectPath, insertion: Insertion, query: Fragment, source: Source) -> StreamInsert:
    """Plans to write a stream. Raises as :func:`stream_setting`."""
    bound = insertion.query
    managed = insertion.target if isinstance(insertion.target, InsertTarget) else None
    setting = stream_setting(session, path, bound, query, is_managed=managed is not None)
    if managed is not None:
        check_target(bound, managed.table)
    plan = stream_into(session, setting, insertion, source)
    return replace(plan, name=f"{path} {session.settings.get(PIPELINE_NAME.key) or _name_of(path, query)}")


def stream_into(session: Session, setting: StreamSetting, insertion: Insertion, source: Source) -> StreamInsert:
    """The plan of a stream into a table that is there."""
    target = insertion.target
    assert isinstance(target, InsertTarget), "it was checked"
    return StreamInsert(
        session=session, setting=setting, query=insertion.query, into=lambda job_id: nullcontext(target), source=source
    )


def stream_setting(session: Session, path: ObjectPath, bound: BoundQuery, query: Fragment, *, is_managed: bool) -> StreamSetting:
    """The way to stream a query (``bound``, and as it was written) into a table.

    Raises InvalidInputError without a folder for its checkpoint where the engine needs one, UnsupportedError for a table with a
    connector, a query that reads no stream, and one that the engine does not stream.
    """
    engine = session.engine_for("INSERT")
    if not is_managed:
        raise UnsupportedError(
            f"execution.runtime-mode = streaming: {path} has a connector, and only managed tables take streams here; write it with "
            "df.writeStream, or SET 'execution.runtime-mode' = 'batch'",
            kind="streaming",
        )
    interval = session.settings.get(CHECKPOINT_INTERVAL.key)
    interval_ms = None if interval is None else parse_duration(interval)
    name = session.settings.get(PIPELINE_NAME.key)
    if isinstance(engine, StreamsInserts):
        if not engine.is_stream(bound):
            raise ends()
        folder = session.settings.get(CHECKPOINTS.key)
        if not folder:
            raise no_checkpoint(str(path), f"SET '{CHECKPOINTS.key}' = '/data/streams'")
        named = (
            quote(name, safe="") if name else ".".join(quote(part, safe="") for part in (path.catalog, path.database, path.name))
        )
        checkpoint = f"{folder.rstrip('/')}/{named}"
        return partial(engine.insert_stream, checkpoint=checkpoint, interval_ms=interval_ms)
    streamed = streamed_query(engine, bound)
    stream_name = name or _name_of(path, query)
    return lambda _, target: MicroBatches(streamed, target, stream_name, interval_ms)


def check_names(streams: Sequence[StreamInsert]) -> None:
    """Raises InvalidInputError where the last one goes on by the same name as another one before it."""
    *others, last = streams
    if any(other.name == last.name for other in others):
        raise InvalidInputError(
            "execution.runtime-mode = streaming: two INSERTs into one table would go on by the same name; RESET 'pipeline.name', "
            "so that each goes on by its text, or write them as one with UNION ALL",
            kind="streaming",
        )


def check_target(query: BoundQuery, target: Table) -> None:
    """Raises UnsupportedError for a stream of a table into itself."""
    for relation in streams_of(query):
        if (relation.table.location, relation.table.branch_name) == (target.location, target.branch_name):
            raise UnsupportedError(
                f"execution.runtime-mode = streaming: {relation.name} would be written with its own changes, without end; write "
                "into another table",
                kind="streaming",
            )


def _name_of(path: ObjectPath, query: Fragment) -> str:
    """The name of a stream that was given none: of the same target and text, but for blanks and comments, the same."""
    tokens = tokens_of(query)
    text = " ".join(tokens[at].text for at in range(len(tokens)))
    return hashlib.sha256(f"{path}\0{text}".encode()).hexdigest()[:16]
