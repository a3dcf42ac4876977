"""Staged tables: a table is invisible until it is whole, and then gets its name in one step.

    stage       record ── schema, in a directory that no catalog lists
    write       the ordinary writers, and tasks of any engine; the log is silent
    publish     mark ── log made ── one step gives the table its name ── record gone ── its snapshots go to the log
                                    (:mod:`tablestore.catalog.tablepublish`)
    discard     log gone ── files gone ── record gone

A job that dies before the step leaves a record, by which :mod:`~tablestore.table.creation.sweep` removes everything. One that dies
after it leaves a whole table, whose log catches up with its next commit or publish. The log is made for the place where the table
will lie, so nothing in it has to be corrected afterwards.
"""

import logging
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from types import TracebackType
from typing import Self

from tablestore.catalog import refusals
from tablestore.catalog.creations import CreationRecord
from tablestore.errors import (
    AlreadyExistsError,
    CommitOutcomeUnknown,
    InvalidInputError,
    NotFoundError,
    StorageError,
    TablestoreError,
)
from tablestore.format.snapshot import Snapshot
from tablestore.store.postcommit import PostCommit, PostCommitTask
from tablestore.store.schemas import TABLE_UUID_OPTION, Schemas, table_uuid_of
from tablestore.table.creation.creationtools import CreationTools
from tablestore.table.creation.renewal import renewing
from tablestore.table.table import Table
from tablestore.types.schema import TableSchema

LOG = logging.getLogger(__name__)


class StagedTable:
    """A table on its way. As a context manager it is renewed meanwhile, and at the end discarded unless it was published."""

    def __init__(self, tools: CreationTools, record: CreationRecord, *, ignore_if_exists: bool = False) -> None:
        self._tools, self._record, self._ignore_if_exists = tools, record, ignore_if_exists
        self._published: Table | None = None
        self._is_over = False
        self._renewal: AbstractContextManager[None] | None = None
        self.published = False
        self.snapshot: Snapshot | None = None
        context = tools.context(tools.meta.files.at(record.staged_directory))
        self._table = Table(context, record.table, tools.logs.silenced())

    # -- what it is

    @property
    def name(self) -> str:
        """``database.table``: what it is to be called."""
        return self._record.table

    @property
    def job_id(self) -> str:
        """The job that makes it."""
        return self._record.job_id

    @property
    def table(self) -> Table:
        """The table in its hidden directory: an ordinary one, except that its log is silent."""
        return self._table

    # -- its life

    def renew(self) -> None:
        """Say that the job lives. Raises ConflictError of kind ``creation-swept`` if it was given up for dead."""
        self._tools.creations.renew(self._record, self._tools.clock.now_ms())

    def renewing(self) -> AbstractContextManager[None]:
        """Renews it every few minutes while the block runs, in a thread."""
        return renewing(self.renew)

    def __enter__(self) -> Self:
        self._renewal = self.renewing()
        self._renewal.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._renewal is not None:
            self._renewal.__exit__(None, None, None)
        try:
            self.discard()
        except TablestoreError as left:
            if error is None:
                raise
            error.add_note(f"what was staged for {self.name} could not be removed ({left}); `tablestore clean` does it later")

    def publish(self) -> Table:
        """Give the table its name: readers see nothing of it before, and all of it after. Returns it under its name;
        :attr:`snapshot` is then the one with the rows, None if there are none.

        Raises AlreadyExistsError if a table of that name came meanwhile (with ``ignore_if_exists`` that one is returned, and
        :attr:`published` stays False), NotFoundError if the database is gone, ConflictError of kind ``creation-swept``,
        StorageError: nothing is visible then, and what was staged is removed. CommitOutcomeUnknown: nothing is removed.
        """
        if self._published is not None:
            return self._published
        if self._is_over:
            raise InvalidInputError(f"the creation of {self.name} by job {self.job_id!r} is over: stage the table again")
        try:
            self._published = self._give_name()
        except CommitOutcomeUnknown:
            self._is_over = True
            raise
        except AlreadyExistsError:
            self._discard_after_error()
            if self._ignore_if_exists and self._tools.meta.has_table(self._record.identifier):
                return self._tools.open(self._record.identifier)
            raise
        except Exception:
            self._discard_after_error()
            raise
        self.published = self._is_over = True
        return self._published

    def discard(self) -> None:
        """Remove the staged table, unless it is over. Raises StorageError: the sweeper does it later."""
        if self._is_over:
            return
        record = self._record
        self._tools.meta.abandon_arrival(record.identifier, record.staged_directory)
        remove_log(self._tools, record, record.staged_directory)
        self._tools.creations.end(record.job_id)
        self._is_over = True

    def _discard_after_error(self) -> None:
        with suppress(TablestoreError):
            self.discard()
        self._is_over = True

    def _give_name(self) -> Table:
        record, creations, meta = self._record, self._tools.creations, self._tools.meta
        self.renew()
        latest = self._table.context.snapshots.latest()
        if meta.has_table(record.identifier):
            raise refusals.table_exists(record.identifier, meta.files.root_uri)
        log = self._tools.log_at_its_place(record, record.staged_directory)
        creations.begin_publishing(record, makes_log=not log.is_there())
        log.begin(ignore_if_exists=self._ignore_if_exists)
        try:
            meta.publish_table(record.identifier, record.staged_directory, is_wanted=lambda: creations.is_wanted(record))
        except (NotFoundError, StorageError, CommitOutcomeUnknown) as error:
            if not self._has_landed(error):
                if isinstance(error, NotFoundError):
                    creations.check_is_wanted(record)
                raise
        self._forget()
        self.snapshot = latest
        table = self._at_its_name(self._table.table_schema)
        if latest is not None:
            PostCommit(table.context.files, table.context.clock, latest.id).do(
                PostCommitTask.PUBLISH, table.change_log.after_commit
            )
        return table

    def _forget(self) -> None:
        with suppress(TablestoreError):
            # A record that stays is found out of date by the sweeper.
            self._tools.creations.end(self._record.job_id)

    def _at_its_name(self, schema: TableSchema) -> Table:
        # A publish that has landed raises nothing: the store is not asked for what is known.
        tools = self._tools
        return Table(tools.context(tools.meta.files.at(self._record.identifier.directory), schema), self.name, tools.logs)

    def _has_landed(self, error: TablestoreError) -> bool:
        """True if the table has its name after all. Raises CommitOutcomeUnknown."""
        try:
            return self._tools.uuid_of(self._record.identifier) == self._record.table_uuid
        except TablestoreError as unknown:
            raise CommitOutcomeUnknown(
                f"whether table {self.name} was created is not known, the store gave no answer: {error}. Look whether it is there; "
                "if it is not, `tablestore clean` removes what was staged, and the creation can be repeated"
            ) from unknown


def stage(tools: CreationTools, record: CreationRecord, definition: TableSchema, *, ignore_if_exists: bool) -> StagedTable:
    """Begin a staged table. Raises AlreadyExistsError (the table, or a creation of that job), NotFoundError, StorageError."""
    meta, identifier = tools.meta, record.identifier
    if not meta.has_database(identifier.database):
        raise refusals.no_database(identifier.database, meta.files.root_uri, meta.list_databases())
    if meta.has_table(identifier):
        raise refusals.table_exists(identifier, meta.files.root_uri)
    begin_staging(tools, record, replace(definition, options={**definition.options, TABLE_UUID_OPTION: record.table_uuid}))
    return StagedTable(tools, record, ignore_if_exists=ignore_if_exists)


def begin_staging(tools: CreationTools, record: CreationRecord, schema: TableSchema) -> None:
    """Write the record and the schema of a staged table. Raises AlreadyExistsError (a creation of that job), StorageError."""
    tools.creations.begin(record)
    try:
        Schemas(tools.meta.files.at(record.staged_directory)).publish(schema)
    except Exception:
        with suppress(TablestoreError):
            tools.creations.end(record.job_id)
        raise


def remove_log(tools: CreationTools, record: CreationRecord, directory: str) -> None:
    """Remove the log that the job has made for the table in ``directory``, if that has the job's mark. Any other is left alone."""
    if not tools.creations.makes_log(record):
        return
    with suppress(NotFoundError):
        staged = table_uuid_of(Schemas(tools.meta.files.at(directory)).latest())
        if record.marks_its_table and staged == record.table_uuid:
            tools.log_at_its_place(record, directory).drop(is_new=True)
        else:
            LOG.warning("a log for %s stays, nothing shows that job %s made it: delete it by hand", record.table, record.job_id)
