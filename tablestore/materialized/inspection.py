"""Runs SHOW, DESCRIBE and EXPLAIN, which are the environment's but for what they say about materialized tables."""

from tablestore.environment.inspection.describe import Details
from tablestore.environment.inspection.describe import describe as describe_any
from tablestore.environment.inspection.explaining import explain as explain_others
from tablestore.environment.inspection.parsedback import checked_text
from tablestore.environment.inspection.show import database_of, matching, path_of
from tablestore.environment.inspection.show import show as show_others
from tablestore.environment.inspection.showcreate import quoted_text, with_options
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.result import Result, listed, one_text
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.materialized.declaring import explain_materialized
from tablestore.materialized.due import due, materialized_tables
from tablestore.materialized.freshness import LogicalRefreshMode
from tablestore.materialized.lasterror import shown_error
from tablestore.materialized.materializedtable import default_constraint
from tablestore.materialized.refreshing import last_refresh, wall_time, zone_of
from tablestore.materialized.storing import StoredTable, find_materialized, read_stored
from tablestore.options import holds_no_secret, is_materialized
from tablestore.redaction import shown_options
from tablestore.sql.query.parameters import Parameters
from tablestore.sql.source import NOWHERE
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.statements.anystatement import Explain
from tablestore.sql.statements.materialized import CreateMaterializedTable
from tablestore.sql.statements.session import Describe, Show, ShowKind
from tablestore.table.table import Table
from tablestore.types.typestring import quote_identifier


def show(session: Session, statement: Show, source: Source) -> Result:
    """Lists objects, the materialized tables among them. Raises NotFoundError, InvalidInputError, UnsupportedError."""
    match statement.kind:
        case ShowKind.MATERIALIZED_TABLES:
            catalog, database = database_of(session, statement, source)
            with placing(source, statement.path.span if statement.path else NOWHERE):
                names = [path.name for path, _ in materialized_tables(session, catalog, database)]
            return listed("materialized_table", matching(names, statement))
        case ShowKind.CREATE_MATERIALIZED_TABLE:
            return one_text("result", _create_statement(find_materialized(session, path_of(statement), source)))
    return show_others(session, statement, source)


def describe(session: Session, statement: Describe, source: Source) -> Result:
    """Describes a table, database or catalog; EXTENDED, a materialized table with its definition and state.

    Raises NotFoundError, InvalidInputError.
    """

    def more(path: ObjectPath, table: Table) -> Details:
        if is_materialized(table.options()):
            yield from _details(session, read_stored(path, table))

    return describe_any(session, statement, source, more)


def explain(session: Session, statement: Explain, source: Source, parameters: Parameters) -> Result:
    """Explains a statement. Nothing is made or written. Raises UnsupportedError for one that neither reads nor changes rows."""
    inner = statement.statement
    if isinstance(inner, CreateMaterializedTable):
        return one_text("plan", explain_materialized(session, inner, source))
    return explain_others(session, statement, source, parameters)


def _details(session: Session, stored: StoredTable) -> Details:
    definition, upkeep, last, zone = stored.definition, stored.upkeep, last_refresh(stored), zone_of(stored)
    yield "original-query", "String", definition.original_query
    yield "expanded-query", "String", definition.expanded_query
    if definition.dialect is not SqlDialect.SPARK:
        yield "sql-dialect", "String", definition.dialect.value
    yield "freshness", "String", definition.freshness
    yield "logical-refresh-mode", "String", definition.logical_mode
    yield "refresh-mode", "String", definition.refresh_mode
    yield "refresh-status", "String", upkeep.status
    yield "refresh-handler", "String", upkeep.handler.summary if upkeep.handler is not None else None
    yield "last-refresh", "Timestamp", None if last is None else wall_time(last.at_ms, zone)
    yield "last-refresh-mode", "String", None if last is None else last.mode
    yield "last-refresh-reason", "String", None if last is None else last.reason
    when = due(stored, last, session.clock.now_ms())
    yield "refresh-due", "Timestamp", None if when is None else wall_time(when, zone)
    error = shown_error(session, stored)
    yield "last-error", "String", None if error is None else error.message
    yield "last-error-time", "Timestamp", None if error is None else wall_time(error.at_ms, zone)


def _create_statement(stored: StoredTable) -> str:
    """A statement that makes the same table. Raises FormatError where none does."""
    definition = stored.definition
    lines = [f"CREATE MATERIALIZED TABLE {stored.path.quoted}"]
    named = definition.constraint != default_constraint(definition.primary_key)
    if definition.primary_key:
        name = f"CONSTRAINT {quote_identifier(definition.constraint or '')} " if named else ""
        lines[0] += f" (\n  {name}PRIMARY KEY ({_names(definition.primary_key)}) NOT ENFORCED\n)"
    if definition.comment is not None:
        lines.append(f"COMMENT {quoted_text(definition.comment)}")
    if definition.partition_by:
        lines.append(f"PARTITIONED BY ({_names(definition.partition_by)})")
    lines += with_options(definition.options).split("\n")[1:]
    if not definition.default_freshness:
        lines.append(f"FRESHNESS = {definition.freshness}")
    if definition.logical_mode is not LogicalRefreshMode.AUTOMATIC:
        lines.append(f"REFRESH_MODE = {definition.logical_mode}")
    query = definition.original_query
    expected = {
        "the kind": "CreateMaterializedTable",
        "the name": (stored.path.catalog, stored.path.database, stored.path.name),
        "the primary key": definition.primary_key,
        "the constraint": definition.primary_key and named and definition.constraint,
        "the comment": definition.comment is not None and (definition.comment,),
        "the partitions": definition.partition_by,
        "the options": shown_options(definition.options, holds_no_secret),
        "the freshness": not definition.default_freshness and (str(definition.freshness.interval), definition.freshness.unit.value),
        "the refresh mode": definition.logical_mode is not LogicalRefreshMode.AUTOMATIC and definition.logical_mode.value,
        "the query": query.strip().rstrip(";").rstrip(),
    }
    return checked_text("\n".join([*lines, f"AS {query}"]), stored.path.plain.quoted, expected, definition.dialect)


def _names(names: tuple[str, ...]) -> str:
    return ", ".join(map(quote_identifier, names))
