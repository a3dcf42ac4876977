"""Runs INSERT, and several of them as one STATEMENT SET.

All are planned before the first one runs: they read their tables as these were at the beginning, and one that is wrong leaves
nothing. They run one after another, and each lands as a snapshot of its own. In streaming mode they run beside one another, in one
job.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from tablestore.environment.engine import InsertTarget
from tablestore.environment.jobs import Job, JobStatusHook
from tablestore.environment.pipelines.pipeline import run_statement
from tablestore.environment.pipelines.streams import StreamInsert, check_names, stream_insert
from tablestore.environment.result import DONE_SCHEMA, SNAPSHOT_SCHEMA, Result, ResultKind, done, inserted, row_counts
from tablestore.environment.rows.insert import Insertion, plan_insert, run_insertion
from tablestore.environment.rows.queries import explained
from tablestore.environment.session.session import Session
from tablestore.environment.source import Source
from tablestore.errors import TablestoreError
from tablestore.format.snapshot import Snapshot
from tablestore.sql.query.parameters import Parameters
from tablestore.sql.statements.rows import ExecuteStatementSet, Insert

_SET_SCHEMA = pa.schema([("table", pa.string()), *SNAPSHOT_SCHEMA])


def insert(session: Session, statement: Insert, source: Source, parameters: Parameters) -> Result:
    """Writes the rows of a query. Raises InvalidInputError, UnsupportedError, NotFoundError, ConflictError."""
    return run_statement(session, plan_one(session, statement, source, parameters))


def insert_all(session: Session, statement: ExecuteStatementSet, source: Source, parameters: Parameters) -> Result:
    """Runs INSERTs one after another. An error says what has landed before it. The result has a row for each."""
    return run_statement(session, plan_set(session, statement, source, parameters))


def plan_one(session: Session, statement: Insert, source: Source, parameters: Parameters) -> "OneInsert | StreamInsert":
    """Plans one INSERT, by the mode of the session."""
    if session.settings.is_streaming:
        insertion = plan_insert(session, statement, source, parameters)
        return stream_insert(session, session.expand(statement.target), insertion, statement.query, source)
    return OneInsert(session=session, insertion=plan_insert(session, statement, source, parameters), source=source)


def plan_set(
    session: Session, statement: ExecuteStatementSet, source: Source, parameters: Parameters
) -> "SeveralInserts | StreamInsert":
    """Plans the INSERTs of a statement."""
    return plan_all([partial(plan_one, session, one, source, parameters) for one in statement.inserts])


def plan_all(plans: Sequence[Callable[[], "OneInsert | StreamInsert"]]) -> "SeveralInserts | StreamInsert":
    """Plans several INSERTs; streams run beside one another. An error says which of them it is."""
    inserts: list[OneInsert] = []
    streams: list[StreamInsert] = []
    for plan in plans:
        try:
            planned = plan()
            if isinstance(planned, OneInsert):
                inserts.append(planned)
            else:
                check_names((*streams, planned))
                streams.append(planned)
        except TablestoreError as error:
            _say_which(error, len(inserts) + len(streams), len(plans), "")
            raise
    return replace(streams[0], beside=tuple(streams[1:])) if streams else SeveralInserts(inserts=tuple(inserts))


@dataclass(frozen=True, slots=True, kw_only=True)
class OneInsert:
    """The plan of one INSERT."""

    session: Session
    insertion: Insertion
    source: Source
    hooks: tuple[JobStatusHook, ...] = ()

    @property
    def kind(self) -> ResultKind:
        return "snapshot" if isinstance(self.insertion.target, InsertTarget) else "nothing"

    @property
    def schema(self) -> pa.Schema:
        return SNAPSHOT_SCHEMA if self.kind == "snapshot" else DONE_SCHEMA

    def run(self, job: Job[Result]) -> Result:
        try:
            snapshot = run_insertion(self.session, self.insertion, job.id)
        except TablestoreError as error:
            self.source.guess(error)
            raise
        return inserted(snapshot) if self.kind == "snapshot" else done()

    def explain(self) -> str:
        return explained(self.session, self.insertion.query)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralInserts:
    """The plan of a STATEMENT SET."""

    inserts: tuple[OneInsert, ...]
    kind: ResultKind = "snapshot"
    schema: pa.Schema = _SET_SCHEMA
    hooks: tuple[JobStatusHook, ...] = ()

    def run(self, job: Job[Result]) -> Result:
        snapshots: list[Snapshot | None] = []
        for one in self.inserts:
            try:
                job.check()
                result = one.run(job)
            except TablestoreError as error:
                _say_which(error, len(snapshots), len(self.inserts), self._landed(snapshots))
                raise
            snapshots.append(result.snapshot)
        rows = [
            (one.insertion.name, None if snapshot is None else snapshot.id, *row_counts(snapshot))
            for one, snapshot in zip(self.inserts, snapshots, strict=True)
        ]
        return Result(pa.table(list(map(pa.array, zip(*rows, strict=True))), schema=_SET_SCHEMA), kind=self.kind)

    def explain(self) -> str:
        total = len(self.inserts)
        parts = [f"== INSERT {place} of {total} ==\n{one.explain()}" for place, one in enumerate(self.inserts, 1)]
        return "\n\n".join(parts)

    def _landed(self, snapshots: Sequence[Snapshot | None]) -> str:
        return ", ".join(
            f"{one.insertion.name} (snapshot {None if snapshot is None else snapshot.id})"
            for one, snapshot in zip(self.inserts, snapshots, strict=False)
        )


def _say_which(error: TablestoreError, before: int, total: int, landed_before: str) -> None:
    error.message = f"{error.message}\nINSERT {before + 1} of {total}; landed before it: {landed_before or 'nothing'}"
    error.args = (error.message,)
