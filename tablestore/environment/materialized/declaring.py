"""CREATE [OR ALTER] MATERIALIZED TABLE, and the parts of ALTER that declare: a table is made, or becomes what is declared.

    not there     INITIALIZING -> what keeps it fresh is prepared -> ACTIVATED -> it begins      any failure: the table is dropped
    there         the difference is planned, checked and carried out; no difference: nothing happens at all

The creation is on record in the warehouse until the end (:mod:`tablestore.catalog.creations`): what a process that dies leaves
behind is removed by the next session there, once it is old.
"""

from collections.abc import Callable
from dataclasses import replace

from tablestore.environment.definition.create import new_managed
from tablestore.environment.definition.tabledefinition import TableDefinition, check_own_options
from tablestore.environment.managed.factory import ManagedTableContext
from tablestore.environment.materialized.altering import carry_out
from tablestore.environment.materialized.difference import Plan, check_declared, diff, settled, validate
from tablestore.environment.materialized.expansion import expand_query, fill_names
from tablestore.environment.materialized.freshness import (
    Freshness,
    LogicalRefreshMode,
    RefreshMode,
    parse_freshness,
    pick_mode,
)
from tablestore.environment.materialized.materializedtable import (
    MaterializedTable,
    RefreshStatus,
    Upkeep,
    default_constraint,
    options_of,
)
from tablestore.environment.materialized.refreshing import check_formats
from tablestore.environment.materialized.sametext import same_query, takes_all_columns
from tablestore.environment.materialized.storing import (
    Found,
    check_not_initializing,
    find_materialized,
    open_materialized,
    rules_of,
    store,
)
from tablestore.environment.materialized.upkeep import prepare_upkeep
from tablestore.environment.materialized.workflows import check_scheduler
from tablestore.environment.objectpath import ObjectPath, check_whole
from tablestore.environment.pipelines.creation import query_fields
from tablestore.environment.result import Result, done
from tablestore.environment.rows.insert import QueryToInsert
from tablestore.environment.session.catalogs import sweep_dead
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import AlreadyExistsError, InvalidInputError, TablestoreError
from tablestore.options import is_materialized
from tablestore.sql.source import Fragment, Path
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
from tablestore.types.datatypes import Field
from tablestore.types.typestring import type_to_sql


def create_materialized(session: Session, statement: CreateMaterializedTable, source: Source) -> Result:
    """Make a table, or make it what is declared. Raises InvalidInputError, UnsupportedError, AlreadyExistsError, NotFoundError."""
    path, found = _there(session, statement, source)
    if found is None:
        return _create(session, statement, source, path)
    plan = plan_declared(session, statement, source, found)
    return carry_out(session, found, plan)


def explain_materialized(session: Session, statement: CreateMaterializedTable, source: Source) -> str:
    """What the statement would do; nothing is done."""
    path, found = _there(session, statement, source)
    if found is None:
        made = _declared(session, statement, source, path)
        columns = ", ".join(f"{one.name} {type_to_sql(one.type)}" for one in made.fields)
        return (
            f"== Creates ==\n{path}: {columns}\nFRESHNESS = {made.freshness}, REFRESH_MODE = {made.refresh_mode}\n"
            f"AS {made.expanded_query}"
        )
    plan = plan_declared(session, statement, source, found)
    restarts = "\nthe refresh begins anew" if plan.restarts and found.upkeep.status is RefreshStatus.ACTIVATED else ""
    return f"== Alters ==\n{path}\n{plan}{restarts}"


def alter_declared(session: Session, statement: AlterMaterializedTable, source: Source) -> Result:
    """ALTER MATERIALIZED TABLE … AS, SET, RESET, SET FRESHNESS, SET REFRESH_MODE."""
    found = find_materialized(session, statement.path, source)
    check_not_initializing(found, "alter")
    old = found.definition
    new, same = old, True
    match statement.action:
        case SetQuery(query=query):
            new, same = with_query(session, old, query, source, found.path, statement.path)
        case SetFreshness(freshness=interval):
            freshness = declared_freshness(interval, source)
            with placing(source, interval.span):
                freshness, mode = settled(old, freshness, old.logical_mode, rules_of(session.settings))
            new = replace(old, freshness=freshness, default_freshness=False, refresh_mode=mode)
        case SetRefreshMode(refresh_mode=word):
            logical = LogicalRefreshMode(word)
            given = None if old.default_freshness else old.freshness
            freshness, mode = settled(old, given, logical, rules_of(session.settings))
            new = replace(old, freshness=freshness, logical_mode=logical, refresh_mode=mode)
        case SetOptions(options=options):
            check_own_options(options, source)
            new = replace(old, options={**old.options, **options})
        case ResetOptions(keys=keys):
            check_own_options(dict.fromkeys(keys, ""), source)
            new = replace(old, options={key: value for key, value in old.options.items() if key not in keys})
    plan = diff(old, new, same_query=same)
    _check(plan)
    return carry_out(session, found, plan)


def plan_declared(
    session: Session, statement: CreateMaterializedTable, source: Source, found: Found, *, checked: bool = True
) -> Plan:
    """What has to change so that a table is what a statement declares. Nothing happens. ``checked``: it can be done in place."""
    check_not_initializing(found, "alter")
    old = found.definition
    declared, same = with_query(session, old, statement.query, source, found.path, statement.path)
    freshness = None if statement.freshness is None else declared_freshness(statement.freshness, source)
    logical = LogicalRefreshMode(statement.refresh_mode or LogicalRefreshMode.AUTOMATIC)
    with placing(source, statement.freshness.span if statement.freshness else statement.path.span):
        settled_freshness, mode = settled(old, freshness, logical, rules_of(session.settings))
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
        options=statement.options,
    )
    plan = diff(old, new, same_query=same)
    if checked:
        _check(plan)
    return plan


def _check(plan: Plan) -> None:
    if plan.changes:
        validate(plan)
        check_formats(plan.new.options)


def _there(session: Session, statement: CreateMaterializedTable, source: Source) -> tuple[ObjectPath, Found | None]:
    """The whole name, and the table that has it."""
    path = session.expand(statement.path, source)
    with placing(source, statement.path.span):
        check_whole(path)
        for key in statement.options:
            check_own_options({key: statement.options[key]}, source)
        if session.objects.permanent(path) is None and not _exists(session, path):
            return path, None
        table = None if session.objects.permanent(path) is not None else session.open_table(path)
        if not statement.or_alter:
            raise AlreadyExistsError(
                f"Table '{path.quoted}' already exists: CREATE OR ALTER MATERIALIZED TABLE makes a materialized table what it "
                "declares; otherwise DROP it first",
                kind="table-exists",
            )
        if not isinstance(table, Table) or not is_materialized(table.options()):
            raise InvalidInputError(
                f"Table {path} is not a materialized table. Only materialized table support create or alter operation.",
                kind="not-materialized",
            )
        found = open_materialized(session, path)
        if found.upkeep.status is RefreshStatus.INITIALIZING:
            # Whoever was about to make it may have died long ago.
            sweep_dead(session.catalogs.get(path.catalog))
            if not _exists(session, path):
                return path, None
            found = open_materialized(session, path)
    return path, found


def _exists(session: Session, path: ObjectPath) -> bool:
    return path.catalog in session.catalogs.names() and session.exists(path)


def _create(session: Session, statement: CreateMaterializedTable, source: Source, path: ObjectPath) -> Result:
    definition = _declared(session, statement, source, path)
    with placing(source, statement.path.span):
        check_scheduler(session, definition.refresh_mode)
        upkeep = Upkeep(status=RefreshStatus.INITIALIZING, since_ms=session.clock.now_ms())
        context = new_managed(session, path, _as_table(definition))
    context = context.with_options({**context.options, **options_of(definition, upkeep)})
    sweep_dead(context.catalog)
    creation = context.catalog.intend_creation(session.jobs.ids.uuid(), path.in_catalog)
    try:
        with creation.renewing():
            _make(creation.create_table, context)
            _activate(session, open_materialized(session, path))
    except BaseException:
        creation.undo()
        raise
    creation.finished()
    return done()


def _make(create_table: Callable[..., object], context: ManagedTableContext) -> None:
    create_table(
        context.fields,
        primary_key=context.primary_key,
        partition_by=context.partition_by,
        options=context.options,
        comment=context.comment,
    )


def _activate(session: Session, found: Found) -> None:
    continuous = found.definition.refresh_mode is RefreshMode.CONTINUOUS
    message = (
        f"Submit continuous refresh job for materialized table {found.path} occur exception."
        if continuous
        else f"Failed to create refresh workflow for materialized table {found.path}."
    )
    try:
        prepared = prepare_upkeep(session, found.path, found.definition)
        try:
            store(found, replace(found.upkeep, status=RefreshStatus.ACTIVATED, handler=prepared.handler))
            prepared.begin()
        except BaseException:
            prepared.take_back()
            raise
    except TablestoreError as error:
        error.message = f"{message} The table is dropped again.\n{error.message}"
        error.args = (error.message,)
        raise


def _declared(session: Session, statement: CreateMaterializedTable, source: Source, path: ObjectPath) -> MaterializedTable:
    """What a statement declares, of a table that is not there."""
    expanded = expand_query(session, statement.query, source, path)
    given = None if statement.freshness is None else declared_freshness(statement.freshness, source)
    logical = LogicalRefreshMode(statement.refresh_mode or LogicalRefreshMode.AUTOMATIC)
    with placing(source, statement.freshness.span if statement.freshness else statement.path.span):
        freshness, mode = pick_mode(given, logical, rules_of(session.settings))
    definition = MaterializedTable(
        original_query=expanded.original,
        expanded_query=expanded.text,
        freshness=freshness,
        default_freshness=given is None,
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
    """The old definition with a query, and whether that says the same as before.

    The engine is only asked for the columns where the query says something else, or takes all columns of a table.

    Raises InvalidInputError, UnsupportedError, NotFoundError.
    """
    same = same_query(fill_names(session, query.text), old.expanded_query)
    if same and not takes_all_columns(old.expanded_query):
        return old, True
    expanded = expand_query(session, query, source, path)
    fields = tuple(_fields(session, written, query, source))
    if same and [one.name for one in fields] == [one.name for one in old.fields]:
        return old, True
    return replace(old, original_query=expanded.original, expanded_query=expanded.text, fields=fields), False


def _fields(session: Session, written: Path, query: Fragment, source: Source) -> list[Field]:
    """The columns that a query gives. Raises InvalidInputError for those that no table can have."""
    session.engine_for("a materialized table")
    rows = QueryToInsert.of(session, Insert(target=written, query=query), source, ())
    return query_fields(query, rows.given, source)


def declared_freshness(interval: Interval, source: Source) -> Freshness:
    """How fresh a statement wants it. Raises InvalidInputError."""
    with placing(source, interval.span):
        return parse_freshness(interval.interval, interval.unit)


def _as_table(definition: MaterializedTable) -> TableDefinition:
    return TableDefinition(
        fields=definition.fields,
        primary_key=definition.primary_key,
        partition_by=definition.partition_by,
        comment=definition.comment,
        options=definition.options,
    )
