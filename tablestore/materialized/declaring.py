"""Runs CREATE [OR ALTER] MATERIALIZED TABLE, and the parts of ALTER that declare: a table is made, or becomes what is declared.

    not there     what keeps it fresh is prepared -> a continuous table is filled where nobody sees it -> it has its name
    there         the difference is planned, checked and carried out; no difference: nothing happens at all

Until it has its name there is no table, for no session, and any failure leaves none. Of two sessions that make one at one time the
first does; for the other the table is there. What a process that dies has staged is in nobody's way, and is removed by the next
session there, once it is old (:mod:`tablestore.table.creation.sweep`).
"""

from dataclasses import replace

from tablestore.environment.definition.tabledefinition import check_own_options
from tablestore.environment.objectpath import ObjectPath, check_whole
from tablestore.environment.pipelines.creation import query_fields
from tablestore.environment.result import Notice, NoticeKind, Result
from tablestore.environment.rows.insert import QueryToInsert
from tablestore.environment.session.catalogs import sweep_dead
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import AlreadyExistsError, CommitOutcomeUnknown, InvalidInputError, NotFoundError, TablestoreError
from tablestore.materialized.altering import Act, plan_act, run_act
from tablestore.materialized.difference import DRIFTED, AlterationPlan, check_declared, diff, settled
from tablestore.materialized.expansion import check_lasts, expand_query, fill_names
from tablestore.materialized.freshness import (
    Freshness,
    LogicalRefreshMode,
    RefreshMode,
    parse_freshness,
    pick_mode,
)
from tablestore.materialized.materializedtable import (
    LAYOUT,
    MaterializedTable,
    RefreshStatus,
    Upkeep,
    default_constraint,
)
from tablestore.materialized.newversion import Version, build
from tablestore.materialized.refreshing import check_formats
from tablestore.materialized.sametext import same_query
from tablestore.materialized.storing import (
    StoredTable,
    check_not_initializing,
    find_materialized,
    open_materialized,
    rules_of,
    while_there,
)
from tablestore.materialized.upkeep import keeping_fresh
from tablestore.materialized.workflows import check_scheduler
from tablestore.options import is_materialized, with_options
from tablestore.sql.source import Fragment, Path
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.statements.alter import ResetOptions, SetOptions
from tablestore.sql.statements.materialized import (
    AlterMaterializedTable,
    CreateMaterializedTable,
    Interval,
    SetFreshness,
    SetQuery,
    SetRefreshMode,
)
from tablestore.sql.statements.rows import Insert
from tablestore.table.table import Table
from tablestore.types.datatypes import Field, with_nullable
from tablestore.types.typestring import type_to_sql


def create_materialized(session: Session, statement: CreateMaterializedTable, source: Source) -> Result:
    """Makes a table, or makes it what is declared. Raises InvalidInputError, UnsupportedError, AlreadyExistsError,
    NotFoundError."""
    act = _plan(session, statement, source)

    def run() -> None:
        try:
            act.run()
        except AlreadyExistsError as error:
            if error.kind != "table-exists" or not statement.or_alter:
                raise
            # Another session was the first to make it.
            _plan(session, statement, source).run()

    return run_act(session, replace(act, run=run))


def _plan(session: Session, statement: CreateMaterializedTable, source: Source) -> Act:
    path, stored = _table_of(session, statement, source)
    if stored is not None:
        with while_there(stored):
            return plan_act(session, stored, plan_declared(session, statement, source, stored))
    definition = _declared(session, statement, source, path)
    with placing(source, statement.path.span):
        check_scheduler(session, definition.refresh_mode)
        Version(path=path, definition=definition, upkeep=Upkeep(status=RefreshStatus.ACTIVATED)).check(session)
    continuous = definition.refresh_mode is RefreshMode.CONTINUOUS
    return Act(
        shown=_shown(path, definition),
        run=lambda: _create(session, path, definition),
        fills=continuous,
        notices=(_refreshed_here(path, definition.freshness),) if continuous else (),
    )


def _refreshed_here(path: ObjectPath, freshness: Freshness) -> Notice:
    return Notice(
        NoticeKind.REFRESHED_HERE,
        f"this process refreshes {path} every {freshness}, as long as its environment is open; after that `tablestore mt serve` or "
        "`tablestore serve --with-scheduler` does, while it runs",
    )


def explain_materialized(session: Session, statement: CreateMaterializedTable, source: Source) -> str:
    """The actions that the statement would take; nothing is done. Raises what the statement raises before it begins."""
    return _plan(session, statement, source).shown


def alter_declared(session: Session, statement: AlterMaterializedTable, source: Source) -> Result:
    """Runs ALTER MATERIALIZED TABLE … AS, SET, RESET, SET FRESHNESS, SET REFRESH_MODE."""
    stored = find_materialized(session, statement.path, source)
    check_not_initializing(stored, "alter")
    old = stored.definition
    new, same = old, True
    match statement.action:
        case SetQuery(query=query):
            new, same = with_query(session, old, query, source, stored.path, statement.path)
        case SetFreshness(freshness=interval):
            freshness = declared_freshness(interval, source)
            with placing(source, interval.span):
                freshness, mode = settled(old, freshness, old.logical_mode, rules_of(session.settings))
            new = replace(old, freshness=freshness, default_freshness=False, refresh_mode=mode)
        case SetRefreshMode(refresh_mode=word):
            logical = LogicalRefreshMode(word)
            old_freshness = None if old.default_freshness else old.freshness
            freshness, mode = settled(old, old_freshness, logical, rules_of(session.settings))
            new = replace(old, freshness=freshness, logical_mode=logical, refresh_mode=mode)
        case SetOptions(options=options):
            check_own_options(options, source)
            new = replace(old, options=with_options(old.options, options))
        case ResetOptions(keys=keys):
            check_own_options(dict.fromkeys(keys, ""), source)
            new = replace(old, options={key: value for key, value in old.options.items() if key not in keys})
    return run_act(session, plan_act(session, stored, diff(old, new, same_query=same)))


def plan_declared(session: Session, statement: CreateMaterializedTable, source: Source, stored: StoredTable) -> AlterationPlan:
    """The changes after which a table is what a statement declares, whether or not that can be done in its place.

    A statement that says nothing of the layout of the rows leaves it as it is, unless it declares another key or partitioning.
    """
    check_not_initializing(stored, "alter")
    old = stored.definition
    declared, same = with_query(session, old, statement.query, source, stored.path, statement.path)
    freshness = None if statement.freshness is None else declared_freshness(statement.freshness, source)
    logical = LogicalRefreshMode(statement.refresh_mode or LogicalRefreshMode.AUTOMATIC)
    with placing(source, statement.freshness.span if statement.freshness else statement.path.span):
        settled_freshness, mode = settled(old, freshness, logical, rules_of(session.settings))
    stays = (old.primary_key, old.partition_by) == (statement.primary_key, statement.partitioned_by)
    layout = {key: text for key, text in old.options.items() if key in LAYOUT} if stays else {}
    new = replace(
        declared,
        freshness=settled_freshness,
        default_freshness=freshness is None,
        logical_mode=logical,
        refresh_mode=mode,
        primary_key=statement.primary_key,
        constraint=statement.constraint or default_constraint(statement.primary_key),
        partition_by=statement.partitioned_by,
        comment=statement.comment,
        options={**layout, **statement.options},
    )
    return diff(old, new, same_query=same)


def _table_of(session: Session, statement: CreateMaterializedTable, source: Source) -> tuple[ObjectPath, StoredTable | None]:
    """The whole name, and the table that has it."""
    path = session.expand(statement.path, source)
    with placing(source, statement.path.span):
        check_whole(path)
        for key in statement.options:
            check_own_options({key: statement.options[key]}, source)
        if not session.kept.has(path) and not _exists(session, path):
            return path, None
        try:
            table = None if session.kept.has(path) else session.open_table(path)
        except NotFoundError:
            if _exists(session, path):
                raise
            # Another session has dropped it just now.
            return path, None
        if not statement.or_alter:
            raise _already_exists(path)
        if not isinstance(table, Table) or not is_materialized(table.options()):
            raise InvalidInputError(
                f"Table {path} is not a materialized table. Only materialized table support create or alter operation.",
                kind="not-materialized",
            )
        stored = open_materialized(session, path)
        if stored.upkeep.status is RefreshStatus.INITIALIZING:
            # Whoever was about to make it may have died long ago.
            sweep_dead(session.catalogs.get(path.catalog))
            if not _exists(session, path):
                return path, None
            stored = open_materialized(session, path)
    return path, stored


def _already_exists(path: ObjectPath) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"Table '{path.quoted}' already exists: CREATE OR ALTER MATERIALIZED TABLE makes a materialized table what it declares; "
        "otherwise DROP it first",
        kind="table-exists",
    )


def _exists(session: Session, path: ObjectPath) -> bool:
    return path.catalog in session.catalogs.names() and session.exists(path)


def _shown(path: ObjectPath, definition: MaterializedTable) -> str:
    """The table that a statement would make, as text."""
    columns = [
        f"{field.name} {type_to_sql(with_nullable(field.type, False) if field.name in definition.primary_key else field.type)}"
        for field in definition.fields
    ]
    if definition.primary_key:
        columns.append(f"PRIMARY KEY ({', '.join(definition.primary_key)}) NOT ENFORCED")
    options = ", ".join(f"'{key}' = '{text}'" for key, text in sorted(definition.options.items()))
    lines = [
        f"== Creates ==\n{path}: {', '.join(columns)}",
        f"PARTITIONED BY ({', '.join(definition.partition_by)})" if definition.partition_by else "",
        f"WITH ({options})" if options else "",
        f"FRESHNESS = {definition.freshness}, REFRESH_MODE = {definition.refresh_mode}\nAS {definition.expanded_query}",
        "" if definition.dialect is SqlDialect.SPARK else f"in the dialect {definition.dialect}: each refresh computes all of it",
    ]
    return "\n".join(filter(None, lines))


def _create(session: Session, path: ObjectPath, definition: MaterializedTable) -> None:
    sweep_dead(session.catalogs.get(path.catalog))
    continuous = definition.refresh_mode is RefreshMode.CONTINUOUS
    try:
        with keeping_fresh(session, path, definition) as prepared:
            upkeep = Upkeep(status=RefreshStatus.ACTIVATED, handler=prepared.handler, since_ms=session.clock.now_ms())
            version = Version(path=path, definition=definition, upkeep=upkeep)
            if continuous:
                build(session, version)
            else:
                session.factory.on_create_table(version.context(session), False)
    except AlreadyExistsError as error:
        if error.kind != "table-exists":
            raise
        raise _already_exists(path) from error
    except CommitOutcomeUnknown:
        raise
    except TablestoreError as error:
        message = (
            f"Submit continuous refresh job for materialized table {path} occur exception."
            if continuous
            else f"Failed to create refresh workflow for materialized table {path}."
        )
        error.message = f"{message} There is no table.\n{error.message}"
        error.args = (error.message,)
        raise


def _declared(session: Session, statement: CreateMaterializedTable, source: Source, path: ObjectPath) -> MaterializedTable:
    """The definition that a statement declares, of a table that is not there."""
    with placing(source, statement.path.span):
        check_lasts(session, path)
    expanded = expand_query(session, statement.query, source, path)
    declared = None if statement.freshness is None else declared_freshness(statement.freshness, source)
    logical = LogicalRefreshMode(statement.refresh_mode or LogicalRefreshMode.AUTOMATIC)
    with placing(source, statement.freshness.span if statement.freshness else statement.path.span):
        freshness, mode = pick_mode(declared, logical, rules_of(session.settings))
    definition = MaterializedTable(
        original_query=expanded.original,
        expanded_query=expanded.text,
        dialect=statement.query.dialect,
        freshness=freshness,
        default_freshness=declared is None,
        logical_mode=logical,
        refresh_mode=mode,
        fields=tuple(_fields(session, statement.path, statement.query, source)),
        primary_key=statement.primary_key,
        constraint=statement.constraint or default_constraint(statement.primary_key),
        partition_by=statement.partitioned_by,
        comment=statement.comment,
        options=statement.options,
    )
    check_declared(definition)
    check_formats(definition.options)
    return definition


def with_query(
    session: Session, old: MaterializedTable, query: Fragment, source: Source, path: ObjectPath, written: Path
) -> tuple[MaterializedTable, bool]:
    """The old definition with a query and the columns that it gives now, and whether the query says the same as before.

    Raises InvalidInputError, UnsupportedError, NotFoundError.
    """
    filled = fill_names(session, query)
    if SqlDialect.SPARK is query.dialect is old.dialect:
        same = same_query(filled, old.expanded_query)
    else:
        same = (query.dialect, filled) == (old.dialect, old.expanded_query)
    # The same text may read something else by now: a temporary object of this session may hide a source.
    expanded = expand_query(session, query, source, path)
    if not same:
        old = replace(old, original_query=expanded.original, expanded_query=expanded.text, dialect=query.dialect)
    try:
        return replace(old, fields=tuple(_fields(session, written, query, source))), same
    except InvalidInputError as error:
        if same:
            error.message = f"{error.message}\n{DRIFTED}"
            error.args = (error.message,)
        raise


def _fields(session: Session, written: Path, query: Fragment, source: Source) -> list[Field]:
    """The columns that a query gives. Raises InvalidInputError for those that no table can have."""
    session.engine_for("a materialized table")
    if query.dialect is not SqlDialect.SPARK:
        # As a refresh reads it: tables of catalogs alone.
        session = replace(session, reads_engine=False)
    rows = QueryToInsert.of(session, Insert(target=written, query=query), source, (), reads_rows=False)
    return query_fields(query, rows.given, source)


def declared_freshness(interval: Interval, source: Source) -> Freshness:
    """The freshness that a statement declares. Raises InvalidInputError."""
    with placing(source, interval.span):
        return parse_freshness(interval.interval, interval.unit)
