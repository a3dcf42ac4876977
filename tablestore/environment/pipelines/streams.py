"""Runs INSERT INTO in streaming mode: a job that writes the rows of a stream, and ends when it is canceled or the stream does.

    SET 'execution.runtime-mode' = 'streaming'
    SET 'execution.checkpointing.dir' = '/data/streams'      a folder in it for each table
    INSERT INTO t SELECT … FROM v                            v: a view of a streaming DataFrame

The statement gives its job as soon as the stream runs. The folder is what a stream is known by: the same statement goes on where
the last one ended, and a second stream into one table needs another folder. Tables that are no streams are read as they were when
the stream began.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from threading import Event
from urllib.parse import quote

import pyarrow as pa

from tablestore.distributed.streambatch import no_checkpoint
from tablestore.environment.engine import BoundQuery, InsertTarget, StreamsInserts
from tablestore.environment.jobs import Job, JobStatusHook
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.result import DONE_SCHEMA, Result, ResultKind, done
from tablestore.environment.rows.insert import Insertion
from tablestore.environment.rows.queries import explained
from tablestore.environment.session.session import Session
from tablestore.environment.session.sessionsettings import CHECKPOINT_INTERVAL, CHECKPOINTS
from tablestore.environment.source import Source
from tablestore.errors import TablestoreError, UnsupportedError
from tablestore.options import parse_duration

# A request to cancel is seen within this time.
_LOOK_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSetting:
    """The settings that a stream needs beside its query and its table."""

    engine: StreamsInserts
    checkpoint: str
    interval_ms: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamInsert:
    """The plan of an INSERT without end. ``into``: where a job (its id) writes; entered while the stream runs."""

    session: Session
    setting: StreamSetting
    query: BoundQuery
    into: Callable[[str], AbstractContextManager[InsertTarget]]
    source: Source
    hooks: tuple[JobStatusHook, ...] = ()
    kind: ResultKind = "nothing"
    schema: pa.Schema = DONE_SCHEMA
    _begun: Event = field(default_factory=Event)

    def run(self, job: Job[Result]) -> Result:
        setting = self.setting
        try:
            with self.into(job.id) as target:
                stream = setting.engine.insert_stream(
                    self.query, target, checkpoint=setting.checkpoint, interval_ms=setting.interval_ms
                )
                self._begun.set()
                try:
                    while not stream.wait(_LOOK_S):
                        job.check()
                finally:
                    stream.stop()
        except TablestoreError as error:
            self.source.guess(error)
            raise
        return done()

    def wait_begun(self, job: Job[Result]) -> None:
        """Waits until the stream runs. Raises what the job ended with before that."""
        while not self._begun.wait(_LOOK_S):
            if job.done():
                job.result()
                return

    def explain(self) -> str:
        return explained(self.session, self.query)


def stream_insert(session: Session, path: ObjectPath, insertion: Insertion, source: Source) -> StreamInsert:
    """Plans to write a stream. Raises as :func:`stream_setting`."""
    setting = stream_setting(session, path, insertion.query, managed=isinstance(insertion.target, InsertTarget))
    return stream_into(session, setting, insertion, source)


def stream_into(session: Session, setting: StreamSetting, insertion: Insertion, source: Source) -> StreamInsert:
    """The plan of a stream into a table that is there."""
    target = insertion.target
    assert isinstance(target, InsertTarget), "it was checked"
    return StreamInsert(
        session=session, setting=setting, query=insertion.query, into=lambda job_id: nullcontext(target), source=source
    )


def stream_setting(session: Session, path: ObjectPath, query: BoundQuery, *, managed: bool) -> StreamSetting:
    """The settings of a stream into a table.

    Raises InvalidInputError without a folder for its checkpoint, UnsupportedError for an engine without streams, a table with a
    connector, a query that reads no stream.
    """
    engine = session.engine_for("INSERT")
    if not isinstance(engine, StreamsInserts):
        raise UnsupportedError(
            f"execution.runtime-mode = streaming: the engine {engine.name} runs no streams; run the statement on the engine spark, "
            "or SET 'execution.runtime-mode' = 'batch'",
            kind="streaming",
        )
    if not managed:
        raise UnsupportedError(
            f"execution.runtime-mode = streaming: {path} has a connector, and only managed tables take streams here; write it with "
            "df.writeStream, or SET 'execution.runtime-mode' = 'batch'",
            kind="streaming",
        )
    if not engine.is_stream(query):
        raise UnsupportedError(
            "execution.runtime-mode = streaming: the query reads no stream, so it would end. SET 'execution.runtime-mode' = "
            "'batch' to run it once, or read a view that env.create_temporary_view made of a streaming DataFrame",
            kind="streaming",
        )
    folder = session.settings.get(CHECKPOINTS.key)
    if not folder:
        raise no_checkpoint(str(path), f"SET '{CHECKPOINTS.key}' = '/data/streams'")
    interval = session.settings.get(CHECKPOINT_INTERVAL.key)
    name = ".".join(quote(part, safe="") for part in (path.catalog, path.database, path.name))
    return StreamSetting(
        engine=engine,
        checkpoint=f"{folder.rstrip('/')}/{name}",
        interval_ms=None if interval is None else parse_duration(interval),
    )
