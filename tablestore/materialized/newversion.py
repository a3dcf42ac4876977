"""Makes a version of a materialized table where nobody sees it, and gives it the name when it is whole.

    staged ── rows of another version, with the cursor that they have ── refreshed to now ── published, in one step

Definition, columns, rows and cursor land together. A table of that name is replaced as by CREATE OR REPLACE TABLE … AS
(:mod:`tablestore.table.creation.replacement`): it stays the same table where key, partitioning and buckets stay. A process that
dies leaves the old version or the new one; what it has staged is swept.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tablestore.distributed.read import pin_at
from tablestore.environment.definition.create import new_managed, planned_managed
from tablestore.environment.definition.tabledefinition import TableDefinition
from tablestore.environment.engine import InsertTarget, ManagedRelation
from tablestore.environment.managed.factory import ManagedTableContext, StagesTables
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.rows.relations import Relations
from tablestore.environment.session.session import Session
from tablestore.errors import CommitOutcomeUnknown, ConflictError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.materialized.incremental.holding import held_sources, hold_cursor, release
from tablestore.materialized.materializedtable import MaterializedTable, Upkeep, options_of
from tablestore.materialized.refreshing import refresh_now, refresh_session
from tablestore.materialized.storing import StoredTable, read_stored
from tablestore.materialized.tableversions import drop_stored, is_version
from tablestore.options import MATERIALIZED_PREFIX, OWN_MATERIALIZED_PREFIX, TYPE
from tablestore.sql.incremental.shapes import TARGET
from tablestore.sql.query.edits import quote_name
from tablestore.store.schemas import TABLE_UUID_OPTION
from tablestore.store.snapshots import CONTENT_PREFIX
from tablestore.table.creation.stagedtable import StagedTable
from tablestore.table.table import Table
from tablestore.table.write.committing import CommitNote
from tablestore.types.evolution.replacing import OF_REPLACEMENTS

_NOT_OF_VERSIONS = ("log.", "tablestore.log.", MATERIALIZED_PREFIX, OWN_MATERIALIZED_PREFIX)


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version to be made. ``like``: the table whose options it has, but for those that its definition declares otherwise; None:
    those of its definition.

    ``marks``: options that say which version it is. A log belongs to the name, not to a version of what lies there.
    """

    path: ObjectPath
    definition: MaterializedTable
    upkeep: Upkeep
    like: StoredTable | None = None
    marks: Mapping[str, str] = field(default_factory=dict)

    def context(self, session: Session) -> ManagedTableContext:
        """The context of the factory for it."""
        return self._with_definition(new_managed(session, self.path, self._as_table()))

    def check(self, session: Session) -> None:
        """Raises what making a table of it would raise before there is one; nothing is made."""
        context = self._with_definition(planned_managed(session, self.path, self._as_table()))
        context.catalog.check_new_table(
            self.path.in_catalog, context.fields, context.primary_key, context.partition_by, context.options, context.comment
        )

    def _as_table(self) -> TableDefinition:
        definition = self.definition
        return TableDefinition(
            fields=definition.fields,
            primary_key=definition.primary_key,
            partition_by=definition.partition_by,
            comment=definition.comment,
            options=definition.options if self.like is None else self._options_as(self.like),
        )

    def _with_definition(self, context: ManagedTableContext) -> ManagedTableContext:
        return context.with_options({**context.options, **options_of(self.definition, self.upkeep), **self.marks})

    def _options_as(self, like: StoredTable) -> dict[str, str]:
        declared, before = self.definition.options, like.definition.options
        options = {key: text for key, text in like.table.options().items() if key in declared or key not in before}
        options |= {key: text for key, text in declared.items() if before.get(key) != text}
        return {key: text for key, text in options.items() if _is_of_versions(key)}


def build(
    session: Session,
    version: Version,
    *,
    over: StoredTable | None = None,
    rows: StoredTable | None = None,
    refreshes: bool = True,
    once_whole: Callable[[], object] = lambda: None,
) -> StoredTable:
    """Makes a version, in the place of the table ``over`` if there is one.

    ``rows``: the version that it has its rows from; ``refreshes``: it is refreshed before anybody sees it; ``once_whole``: what is
    done when only its name is missing. Raises ConflictError if ``over`` was altered meanwhile, UnsupportedError where the store
    cannot replace it, and what the query raises.
    """
    inner = refresh_session(session)
    before = {} if over is None else held_sources(inner, over.table, over.definition.query)
    # The settings of this session have no part in a version that is like another one.
    context = version.context(session if version.like is None else inner)
    with _staged(inner, context, over) as staged:
        built = read_stored(version.path, staged.table)
        same = over is not None and over.table.context.table_uuid == built.table.context.table_uuid
        try:
            if rows is not None:
                _copy(inner, rows, built)
            if refreshes:
                refresh_now(session, built)
                hold_cursor(inner, built.table)
            once_whole()
            table = staged.publish()
        except BaseException as error:
            if not isinstance(error, CommitOutcomeUnknown):
                held = held_sources(inner, built.table, version.definition.query)
                release(built.table, held, but=before if same else ())
            if isinstance(error, TablestoreError):
                # The user knows the table by its name alone.
                error.message = error.message.replace(staged.table.location, str(version.path))
                error.args = (error.message,)
            raise
    if over is not None:
        release(over.table, before, but=held_sources(inner, table, version.definition.query) if same else ())
    return read_stored(version.path, table)


def _staged(session: Session, context: ManagedTableContext, over: StoredTable | None) -> StagedTable:
    factory, job_id = session.factory, session.jobs.ids.uuid()
    if not isinstance(factory, StagesTables):
        raise UnsupportedError(
            f"{context.path}: the factory of managed tables stages none, and a materialized table is filled before anybody sees "
            "it: give it REFRESH_MODE = FULL, or install a factory that stages tables",
            kind="not-managed",
        )
    if over is None:
        return factory.on_stage_table(context, job_id)
    try:
        staged = factory.on_stage_replacement(context, job_id, True)
    except UnsupportedError:
        if not is_version(over.table):
            raise
        # Nobody depends on what lies beside a table: it need not go in one step.
        drop_stored(session, over)
        return factory.on_stage_table(context, job_id)
    try:
        unchanged = _stamp(session.open_table(over.path)) == _stamp(over.table)
    except NotFoundError:
        unchanged = False
    if not unchanged:
        staged.discard()
        raise changed_meanwhile(over.path)
    return staged


def changed_meanwhile(path: ObjectPath) -> ConflictError:
    """The error of whoever was not the first."""
    return ConflictError(
        f"Materialized table {path} or one of its versions was changed by another session meanwhile; nothing was changed here: "
        "look what it is now, and repeat the statement",
        kind="materialized-changed",
    )


def _stamp(table: object) -> object:
    return (table.table_schema.id, table.context.table_uuid) if isinstance(table, Table) else None


def _copy(session: Session, rows: StoredTable, into: StoredTable) -> None:
    """Gives a staged table the newest rows of a version, and what its snapshot says of them."""
    source, target = rows.table, into.table
    snapshot = source.context.snapshots.latest()
    says = {} if snapshot is None else {k: v for k, v in snapshot.properties.items() if k.startswith(CONTENT_PREFIX)}
    if snapshot is None or not says:
        # Never refreshed, or written by something else: the rows are made anew.
        return
    columns = ", ".join(quote_name(column.name) for column in target.table_schema.fields)
    pin = pin_at(source.context, session.spec(rows.path, source), snapshot.id)
    query = Relations(session=session).bind(
        f"SELECT {columns} FROM {TARGET}", {TARGET: ManagedRelation(name=source.name, table=source, pin=pin)}
    )
    note = CommitNote(properties=says)
    session.engine_for("a version of a materialized table").insert(
        query, InsertTarget(table=target, spec=session.spec(into.path, target), overwrite={}, note=note)
    )


def _is_of_versions(key: str) -> bool:
    return key not in (TYPE.key, TABLE_UUID_OPTION, *OF_REPLACEMENTS) and not key.startswith(_NOT_OF_VERSIONS)
