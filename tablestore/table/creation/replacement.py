"""Replaces the definition and the rows of a table together, by those of a staged table.

Key, partitioning and layout stay: the table remains what it is, with its history, tags, log and readers.

    publish     files beside those of the table ── schema ── one OVERWRITE snapshot ── record gone

Readers open the table at the new schema only once there is a snapshot above it (:func:`tablestore.store.context.open_context`):
they see the old definition with the old rows, or the new one with the new rows. Whatever rows the table has by then are replaced,
as by INSERT OVERWRITE. An alteration since the staging, or another table of that name, is a conflict; for writers with the old
schema this is one. If the snapshot does not come, the old definition is published as one more schema, by the job or by the sweeper,
and an empty snapshot makes a job lose that comes too late.

They change: two directories change places in one step, where the store can. It is another table then, without that history.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from tablestore.catalog import refusals
from tablestore.catalog.creations import CreationRecord, marked
from tablestore.catalog.identifier import Identifier
from tablestore.errors import (
    CommitOutcomeUnknown,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    TablestoreError,
    UnsupportedError,
)
from tablestore.format.manifest.indexmanifest import DELETION_VECTORS
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.format.paths import index_path
from tablestore.format.snapshot import Snapshot
from tablestore.io.filestore import ExchangesDirectories, copy_file
from tablestore.log.settings import log_settings
from tablestore.options import is_materialized
from tablestore.store.commit.alterschema import publish_schema, take_back_schema
from tablestore.store.commit.committer import CommitRequest
from tablestore.store.commit.committerfactory import committer
from tablestore.store.compact.bucketcompaction import discard_unnamed
from tablestore.store.context import TableContext
from tablestore.store.datapaths import entry_directory
from tablestore.store.message import CommitMessage
from tablestore.store.schemas import TABLE_UUID_OPTION, check_is_same
from tablestore.store.snapshots import CONTENT_PREFIX
from tablestore.table.creation.creationtools import CreationTools
from tablestore.table.creation.stagedtable import StagedTable, begin_staging
from tablestore.table.table import Table
from tablestore.table.write.committing import Origin, commit_message, overwriting
from tablestore.types.evolution.replacing import (
    REPLACED_BY_OPTION,
    REPLACES_AFTER_OPTION,
    is_in_force,
    keeps_layout,
    replacing_schema,
)
from tablestore.types.schema import TableSchema

_LOG_PREFIXES = ("log.", "tablestore.log.")


def stage_replacement(tools: CreationTools, record: CreationRecord, definition: TableSchema) -> StagedTable:
    """Begin to replace the table that has the name of the record. Raises NotFoundError, UnsupportedError, StorageError."""
    identifier = record.identifier
    context = tools.open(identifier).context
    # As an overwrite, it would remove rows that its author does not know of.
    context.check_sees_all("replacing of the table")
    old = context.schemas.refreshed_latest()
    if is_materialized(old.options) and not is_materialized(definition.options):
        raise InvalidInputError(
            f"table {identifier} is a materialized table, and a plain one does not take its place: DROP MATERIALIZED TABLE "
            f"{identifier} first",
            kind="materialized-table",
        )
    record = marked(replace(record, replaced_uuid=old.options.get(TABLE_UUID_OPTION)))
    kept_options = {key: value for key, value in old.options.items() if key.startswith(_LOG_PREFIXES)}
    before, after = (
        log_settings(schema, name=str(identifier))
        for schema in (old, replace(definition, options={**kept_options, **definition.options}))
    )
    if not keeps_layout(old, definition):
        _check_exchange(tools, identifier, has_log="kafka" in (before.system, after.system))
        begin_staging(tools, record, replace(definition, options={**definition.options, TABLE_UUID_OPTION: record.table_uuid}))
        return ExchangedTable(tools, record, old.id)
    if before != after:
        raise UnsupportedError(
            f"the definition that replaces table {identifier} gives it another log: leave the options log.* out, which keeps its "
            "log as it is, and alter them with ALTER TABLE before or after",
            kind="log-option",
        )
    if old.options.get(TABLE_UUID_OPTION) is not None:
        kept_options[TABLE_UUID_OPTION] = old.options[TABLE_UUID_OPTION]
    record = marked(replace(record, replaced_schema_id=old.id))
    begin_staging(tools, record, replacing_schema(old, definition, kept_options=kept_options))
    return ReplacedInPlace(tools, record)


class ReplacedInPlace(StagedTable):
    """The replacement of the definition and the rows of a table that stays the same one."""

    def _give_name(self) -> Table:
        tools, record = self._tools, self._record
        self.renew()
        context = tools.open(record.identifier).context
        base = context.schemas.refreshed_latest()
        check_is_same(record.replaced_uuid, base, table=self.name)
        if base.id != record.replaced_schema_id:
            raise _altered(self.name)
        tools.creations.begin_publishing(record, makes_log=False)
        message = _message(record, self._table.context, context)
        properties = self._says_of_rows()
        new_schema = _with_condition(record, self._table.table_schema, context)
        try:
            _bring_files(tools, record, message, context)
            if not publish_schema(context, new_schema, base):
                raise _altered(self.name)
            self.snapshot = self._commit(context.at_schema(new_schema), message, base, properties)
        except CommitOutcomeUnknown:
            raise
        except Exception:
            with suppress(TablestoreError):
                discard_unnamed(context, message)
            raise
        self._forget()
        return self._at_its_name(new_schema)

    def _commit(
        self, context: TableContext, message: CommitMessage, base: TableSchema, properties: Mapping[str, str]
    ) -> Snapshot | None:
        tools, record = self._tools, self._record

        def everything(partition: bytes) -> bool:
            return True

        effect = overwriting(
            plan_deletes=lambda latest: [replace(e, kind=EntryKind.DELETE) for e in context.manifests.live(latest)],
            replaces=everything,
            properties=properties,
            # Whoever stages a materialized table has its rows from its query.
            keeps_rows=True,
        )
        try:
            # Whoever gives the job up says so before he looks for the schema.
            tools.creations.check_is_wanted(record)
            return commit_message(
                context, tools.logs.of(context), message, replace(effect, allow_empty=True), Origin(user=record.job_id)
            )
        except CommitOutcomeUnknown:
            raise
        except Exception as error:
            _take_back(context, base, error)
            raise

    def _says_of_rows(self) -> dict[str, str]:
        """The notes of the newest staged snapshot about its rows, which are those of the new snapshot too."""
        staged = self._table.context.snapshots.latest()
        properties = {} if staged is None else staged.properties
        return {key: value for key, value in properties.items() if key.startswith(CONTENT_PREFIX)}


class ExchangedTable(StagedTable):
    """The table that is to take the place of another one. ``old_schema_id``: of the table when this was staged."""

    def __init__(self, tools: CreationTools, record: CreationRecord, old_schema_id: int) -> None:
        super().__init__(tools, record)
        self._old_schema_id = old_schema_id

    def _give_name(self) -> Table:
        tools, record = self._tools, self._record
        self.renew()
        old = tools.open(record.identifier).context.schemas.refreshed_latest()
        check_is_same(record.replaced_uuid, old, table=self.name)
        if old.id != self._old_schema_id:
            raise _altered(self.name)
        latest = self._table.context.snapshots.latest()
        tools.creations.begin_publishing(record, makes_log=False)
        try:
            tools.meta.exchange_table(record.identifier, record.staged_directory, table_uuid=record.replaced_uuid)
        except (NotFoundError, StorageError, CommitOutcomeUnknown) as error:
            if not self._has_landed(error):
                if isinstance(error, NotFoundError):
                    tools.creations.check_is_wanted(record)
                raise
        self._forget()  # with it the old table
        self.snapshot = latest
        return self._at_its_name(self._table.table_schema)


def sweep_replacement(tools: CreationTools, record: CreationRecord, directory: str, *, dry_run: bool = False) -> str:
    """Finish or undo a replacement in place whose job is dead, and return the outcome; ``directory``: that of the staged
    table.

    Its snapshot is there, or never will be: after the old definition has come back, an empty snapshot outruns the job's.
    """
    try:
        context = tools.open(record.identifier).context
        base, newest = context.schemas.read(record.replaced_schema_id or 0), context.schemas.refreshed_latest()
        check_is_same(record.replaced_uuid, newest, table=record.table)
    except (NotFoundError, ConflictError):
        return "removed"  # another table
    if _has_landed(context, record):
        return "finished"
    if dry_run:
        return "removed"
    if _waits_for(record, newest, context.snapshots.latest()):
        undone = context.at_schema(take_back_schema(context, newest, base))
        latest = undone.snapshots.latest()
        fence = CommitRequest(user=undone.ids.uuid(), operation="ALTER", message=undone.message(latest), allow_empty=True)
        committer(undone).commit(fence)
        if _has_landed(context, record):
            # Between the two looks: the rows are there, and their definition comes back too.
            take_back_schema(undone, undone.schema, newest)
            return "finished"
    if record.marks_its_table:
        # Else the copies wait for the removal of orphans, which asks nobody whose they are.
        with suppress(NotFoundError):  # nothing was staged
            discard_unnamed(context, _message(record, tools.context(tools.meta.files.at(directory)), context))
    return "removed"


def _altered(name: str) -> ConflictError:
    """The error of a replacement that would undo an alteration."""
    return ConflictError(
        f"table {name} was altered while its replacement was made, which would undo that; nothing was replaced: repeat it",
        kind="schema-changed",
    )


def _bring_files(tools: CreationTools, record: CreationRecord, message: CommitMessage, context: TableContext) -> None:
    """Copy what the staged table holds beside the files of the table, which has the same layout."""
    files = tools.meta.files
    paths = [
        f"{entry_directory(context.paths, entry, context.schema)}/{name}"
        for entry in message.entries
        for name in (entry.file.file_name, *entry.file.extra_files)
    ]
    paths += [index_path(change.file_name) for change in message.index_changes]
    for path in paths:
        copy_file(files, f"{record.staged_directory}/{path}", f"{record.identifier.directory}/{path}")
    for directory in sorted({path.rpartition("/")[0] for path in paths}):
        context.files.sync(directory)


def _message(record: CreationRecord, staged: TableContext, context: TableContext) -> CommitMessage:
    snapshot = staged.snapshots.latest()
    vectors = () if snapshot is None else staged.manifests.read_index(snapshot)
    return replace(
        context.message(context.snapshots.latest(), created_millis=record.begun_millis),
        schema_id=staged.schema.id,
        entries=tuple(staged.manifests.live(snapshot)),
        index_changes=tuple(entry for entry in vectors if entry.index_type == DELETION_VECTORS),
    )


def _with_condition(record: CreationRecord, schema: TableSchema, context: TableContext) -> TableSchema:
    latest = context.snapshots.latest()
    condition = {REPLACES_AFTER_OPTION: str(latest.id if latest is not None else 0), REPLACED_BY_OPTION: record.table_uuid}
    return replace(schema, options={**schema.options, **condition})


def _waits_for(record: CreationRecord, newest: TableSchema, latest: Snapshot | None) -> bool:
    """True if the newest schema is that of the job, and counts only with the rows that the job did not commit.

    A record of an earlier release says nothing of whose such a schema is: it may be that of a job at work.
    """
    if latest is not None and is_in_force(newest, snapshot_id=latest.id, schema_id=latest.schema_id):
        return False
    of_job = newest.options.get(REPLACED_BY_OPTION) == (record.table_uuid if record.marks_its_table else None)
    return of_job and REPLACES_AFTER_OPTION in newest.options and newest.id - 1 == record.replaced_schema_id


def _take_back(context: TableContext, base: TableSchema, error: Exception) -> None:
    try:
        take_back_schema(context, context.schema, base)
    except ConflictError:
        pass  # altered on top of it: there is nothing to take back
    except TablestoreError as left:
        raise CommitOutcomeUnknown(
            f"table {context.files.root_uri} was not replaced ({error}), and its definition could not be taken back ({left}): "
            "readers see the old one until there are new rows, and writers are refused; `tablestore clean` takes it back"
        ) from error


def _has_landed(context: TableContext, record: CreationRecord) -> bool:
    return any(snapshot.commit_user == record.job_id for snapshot in context.snapshots.stream())


def _check_exchange(tools: CreationTools, identifier: Identifier, *, has_log: bool) -> None:
    if not isinstance(tools.meta.files, ExchangesDirectories):
        raise refusals.cannot_exchange(identifier, tools.meta.files.root_uri)
    if has_log:
        raise UnsupportedError(
            f"table {identifier} has another key, partitioning or layout than what is to replace it, so it becomes another table, "
            "and its topic cannot go over to that: set log.system = filestore first, or drop the table and create it anew",
            kind="log-option",
        )
