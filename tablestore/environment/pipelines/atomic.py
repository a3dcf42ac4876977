"""Creates tables from queries with all their rows or not at all (``table.ctas.atomicity-enabled``),
and tables that are replaced, which always are.

    StagedCreation     a managed table: written where nobody sees it, and given its name when it is whole
    HookedCreation     a managed table of a factory that stages none: a hook of the job makes it, and takes it back
    hooked_stream      a managed table that a stream writes: as HookedCreation, since it is read while the stream runs
    KeptCreation       files of a table with a connector: the session forgets the table if the job fails

A hook makes and drops the table through the catalog that it carries, in whatever process the job runs: so the catalog has to
survive being pickled. It drops only the table that it made itself. What a process that dies leaves behind is on record in the
warehouse: :meth:`Catalog.sweep_creations` removes it, and so do the next session there and the next creation of this kind.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from tablestore.environment.engine import BoundQuery, InsertTarget
from tablestore.environment.filelayout import FILESYSTEM
from tablestore.environment.jobs import Job, JobStatusHook, why_not_serializable
from tablestore.environment.managed.factory import ManagedTableContext, StagesTables
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.pipelines.inserts import OneInsert
from tablestore.environment.pipelines.pipeline import JobPlan
from tablestore.environment.pipelines.streams import StreamInsert, StreamSetting
from tablestore.environment.result import SNAPSHOT_SCHEMA, Result, ResultKind, landed
from tablestore.environment.rows.insert import Insertion, bound_to
from tablestore.environment.rows.queries import explained
from tablestore.environment.session.catalogs import sweep_dead
from tablestore.environment.session.objects import ConnectorTable
from tablestore.environment.session.session import Session, spec_of
from tablestore.environment.source import Source
from tablestore.errors import AlreadyExistsError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.table.catalog import Catalog
from tablestore.table.creation.stagedtable import StagedTable
from tablestore.table.table import Table

CREATE_AS = "CREATE TABLE AS"
"""What a statement is called that makes a table from a query, by those who watch it."""


def check_atomic(session: Session, path: ObjectPath, connector_target: ConnectorTable | None) -> None:
    """Raises UnsupportedError unless a table of that name can be made with all its rows or not at all. Nothing is made yet."""
    if connector_target is not None and connector_target.connector != FILESYSTEM:
        raise UnsupportedError(
            f"what is written with the connector {connector_target.connector!r} cannot be taken back, so it does not support "
            "atomic CREATE TABLE AS SELECT; SET 'table.ctas.atomicity-enabled' = 'false'",
            kind="not-atomic",
        )
    if path.catalog not in session.catalogs.names():
        return
    catalog = session.catalogs.get(path.catalog)
    if not catalog.serializable or why_not_serializable(catalog) is not None:
        raise UnsupportedError(
            f"Catalog '{path.catalog}' can not be serialized, so it does not support atomic CREATE TABLE AS SELECT.",
            kind="not-serializable",
        )


@dataclass(frozen=True, slots=True)
class NoRows:
    """The rows of a table that is made empty."""

    def write(self, table: Table, catalog: Catalog, job: Job[Result]) -> None:
        """Writes nothing."""

    def explain(self) -> str:
        """The text in place of a plan."""
        return "no rows"


@dataclass(frozen=True, slots=True, kw_only=True)
class StagedCreation:
    """The plan of a managed table that nobody sees before it is whole; ``replaces``: the one of its name stays until then.

    ``when_taken`` plans what is done where another job took the name meanwhile; None: nothing.
    """

    rows: "PendingRows | NoRows"
    context: ManagedTableContext
    factory: StagesTables
    replaces: bool = False
    must_exist: bool = False
    when_taken: Callable[[], JobPlan] | None = None
    kind: ResultKind = "snapshot"
    schema: pa.Schema = SNAPSHOT_SCHEMA
    hooks: tuple[JobStatusHook, ...] = ()

    def run(self, job: Job[Result]) -> Result:
        sweep_dead(self.context.catalog)
        try:
            with self._staged(job.id) as staged:
                self._fill(staged, job)
                return landed(staged.snapshot)
        except AlreadyExistsError:
            if self.when_taken is None:
                raise
            return self.when_taken().run(job)

    def _fill(self, staged: StagedTable, job: Job[Result]) -> None:
        try:
            self.rows.write(staged.table, self.context.catalog, job)
        except TablestoreError as error:
            if isinstance(error, NotFoundError):
                # Whoever takes a job for dead removes what it writes to.
                staged.renew()
            # The user knows the table by its name alone.
            error.message = error.message.replace(staged.table.location, str(self.context.path))
            error.args = (error.message,)
            raise
        job.check()
        try:
            staged.publish()
        except NotFoundError as error:
            path = self.context.path
            if error.kind == "no-such-database":
                subject, way_out = f"the database of {path}", "CREATE DATABASE makes it again"
            elif error.kind == "no-such-table" and self.replaces:
                subject, way_out = f"table {path}", "CREATE OR REPLACE TABLE makes it anew"
            else:
                raise
            raise NotFoundError(
                f"{subject} was dropped while the new table was made, of which nothing is left; {way_out}", kind=error.kind
            ) from error

    def _staged(self, job_id: str) -> StagedTable:
        if self.replaces:
            return self.factory.on_stage_replacement(self.context, job_id, self.must_exist)
        return self.factory.on_stage_table(self.context, job_id)

    def explain(self) -> str:
        return self.rows.explain()


@dataclass(frozen=True, slots=True, kw_only=True)
class HookedCreation:
    """The plan of a managed table that a hook makes before the job runs."""

    rows: "PendingRows"
    context: ManagedTableContext
    when_taken: Callable[[], JobPlan] | None = None
    kind: ResultKind = "snapshot"
    schema: pa.Schema = SNAPSHOT_SCHEMA

    @property
    def hooks(self) -> tuple[JobStatusHook, ...]:
        return (CreateTableHook(self.context, ignore_if_exists=self.when_taken is not None),)

    def run(self, job: Job[Result]) -> Result:
        creation = self.context.catalog.creation(job.id)
        if self.when_taken is not None and creation is not None and not creation.is_made:
            return self.when_taken().run(job)
        with _made_by_hook(self.context, job.id) as table:
            return self.rows.write(table, self.context.catalog, job)

    def explain(self) -> str:
        return self.rows.explain()


def hooked_stream(rows: "PendingRows", context: ManagedTableContext, setting: StreamSetting) -> StreamInsert:
    """The plan of a stream into a managed table: a hook makes it before the stream begins, and drops it if that fails or is
    canceled."""

    @contextmanager
    def into(job_id: str) -> Iterator[InsertTarget]:
        with _made_by_hook(context, job_id) as table:
            yield InsertTarget(table=table, spec=spec_of(context.catalog, table))

    hooks = (CreateTableHook(context),)
    return StreamInsert(session=rows.session, setting=setting, query=rows.query, into=into, source=rows.source, hooks=hooks)


@contextmanager
def _made_by_hook(context: ManagedTableContext, job_id: str) -> Iterator[Table]:
    """The table that the hook of a job has made; its record says that the job lives."""
    table = context.catalog.table(context.path.in_catalog)
    creation = context.catalog.creation(job_id)
    assert isinstance(table, Table) and creation is not None, "the hook has made it"
    with creation.renewing():
        yield table


@dataclass(frozen=True, slots=True)
class CreateTableHook:
    """Makes the table of a job, and drops it if the job fails or is canceled: the one that it made, and no other.

    ``ignore_if_exists``: another table of that name stays, and the job finds out that it is not its own.
    """

    context: ManagedTableContext
    ignore_if_exists: bool = False

    def on_created(self, job_id: str) -> None:
        context = self.context
        sweep_dead(context.catalog)
        creation = context.catalog.intend_creation(job_id, context.path.in_catalog, commit_user=job_id)
        creation.create_table(
            context.fields,
            primary_key=context.primary_key,
            partition_by=context.partition_by,
            options=context.options,
            comment=context.comment,
            ignore_if_exists=self.ignore_if_exists,
        )

    def on_finished(self, job_id: str) -> None:
        if (creation := self.context.catalog.creation(job_id)) is not None:
            creation.finished()

    def on_failed(self, job_id: str, error: BaseException) -> None:
        self._take_back(job_id)

    def on_canceled(self, job_id: str) -> None:
        self._take_back(job_id)

    def _take_back(self, job_id: str) -> None:
        if (creation := self.context.catalog.creation(job_id)) is not None:
            creation.undo()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptCreation:
    """The plan of a table with a connector. Its files are visible when the engine has written all."""

    session: Session
    made: ConnectorTable
    insert: OneInsert
    when_taken: Callable[[], JobPlan]
    hooks: tuple[JobStatusHook, ...] = ()

    @property
    def kind(self) -> ResultKind:
        return self.insert.kind

    @property
    def schema(self) -> pa.Schema:
        return self.insert.schema

    def run(self, job: Job[Result]) -> Result:
        try:
            self.session.kept.keep(self.made)
        except AlreadyExistsError:
            return self.when_taken().run(job)
        try:
            return self.insert.run(job)
        except BaseException:
            self.session.kept.drop(self.made.path)
            raise

    def explain(self) -> str:
        return self.insert.explain()


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingRows:
    """The rows of a table that is made when the job runs."""

    session: Session
    name: str
    query: BoundQuery
    source: Source

    def write(self, table: Table, catalog: Catalog, job: Job[Result]) -> Result:
        """Writes them as the first snapshot of the table, in the name of the job."""
        target = InsertTarget(table=table, spec=spec_of(catalog, table), commit_user=job.id)
        insertion = Insertion(
            name=self.name, bind=bound_to(self.query), target=target, operation=CREATE_AS, text=self.source.statement
        )
        return OneInsert(session=self.session, insertion=insertion, source=self.source).run(job)

    def explain(self) -> str:
        """The plan of the query."""
        return explained(self.session, self.query)
