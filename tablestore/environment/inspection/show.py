"""Runs SHOW: lists catalogs, databases, tables, columns, partitions, snapshots and whatever else there is."""

import re
from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from tablestore.environment.definition.databases import database_path
from tablestore.environment.definition.partitions import partition_of
from tablestore.environment.engine import ListsFunctions
from tablestore.environment.inspection.columns import COLUMNS_SCHEMA, column_rows, view_rows
from tablestore.environment.inspection.showcreate import create_catalog_statement, create_statement, create_view_statement
from tablestore.environment.jobs import Job
from tablestore.environment.procedures.call import SYSTEM
from tablestore.environment.procedures.registry import PROCEDURES
from tablestore.environment.result import Result, listed, one_text, pairs, records
from tablestore.environment.session.objects import VIEWS, ConnectorTable, RowsView, View
from tablestore.environment.session.session import Session, placing
from tablestore.environment.session.statements import by_engine
from tablestore.environment.source import Source
from tablestore.errors import InvalidInputError, NotFoundError, UnsupportedError
from tablestore.names import did_you_mean
from tablestore.options import holds_no_secret, is_materialized
from tablestore.redaction import shown_option
from tablestore.sql.query.functions import FUNCTION_PREFIX
from tablestore.sql.source import NOWHERE, Path
from tablestore.sql.statements.session import EngineStatement, Show, ShowKind
from tablestore.table.inspect.listing import partition_values
from tablestore.table.system.systemtable import SystemTable
from tablestore.table.table import Table
from tablestore.types.arrowtypes import to_arrow_schema
from tablestore.types.filter.filters import parse_filter
from tablestore.types.filter.predicate import evaluate

_JOBS_SCHEMA = pa.schema([("job_id", pa.string()), ("status", pa.string()), ("error", pa.string())])


def show(session: Session, statement: Show, source: Source) -> Result:
    """The objects that there are. Raises NotFoundError, InvalidInputError, UnsupportedError."""
    match statement.kind:
        case ShowKind.CATALOGS:
            return listed("catalog", matching(session.catalogs.names(), statement))
        case ShowKind.DATABASES:
            with placing(source, statement.path.span if statement.path else NOWHERE):
                catalog = str(statement.path) if statement.path is not None else session.catalogs.current
                return listed("database", matching(session.catalogs.databases(catalog), statement))
        case ShowKind.TABLES:
            names = _temporary if statement.temporary else _tables
            return listed("table", matching(names(session, statement, source), statement))
        case ShowKind.VIEWS:
            names = _temporary if statement.temporary else _views
            return listed("view", matching(names(session, statement, source), statement))
        case ShowKind.CURRENT_CATALOG:
            return listed("catalog", [session.catalogs.current])
        case ShowKind.CURRENT_DATABASE:
            return listed("database", [session.catalogs.current_database])
        case ShowKind.OPTIONS if statement.path is None:
            return _options(session.settings.all().items(), statement)
        case ShowKind.CREATE_CATALOG:
            name = path_of(statement)
            with placing(source, name.span):
                entry = session.catalogs.entry(str(name))
            return one_text("result", create_catalog_statement(str(name), entry.shown()))
        case ShowKind.PROCEDURES:
            return listed("procedure", matching([f"{SYSTEM}.{name}" for name in PROCEDURES], statement))
        case ShowKind.FUNCTIONS if statement.temporary:
            return listed("function", matching(session.functions.names(database_of(session, statement, source)), statement))
        case ShowKind.FUNCTIONS if statement.user:
            return listed("function", matching(_own_functions(session, statement, source), statement))
        case ShowKind.FUNCTIONS:
            engine = session.engine_for("SHOW FUNCTIONS")
            known = engine.function_names(session.settings.dialect) if isinstance(engine, ListsFunctions) else None
            if known is not None:
                own = () if statement.system else _own_functions(session, statement, source)
                return listed("function", matching(sorted({*known, *own}), statement))
            if statement.text is not None:
                listed_there = by_engine(session, EngineStatement(text=statement.text), source)
                if statement.system:
                    return listed_there
                own = matching(_own_functions(session, statement, source), statement)
                of_engine = [str(name) for name in listed_there.to_arrow().column(0).to_pylist()]
                return listed("function", sorted({*(name for name in of_engine if not name.startswith(FUNCTION_PREFIX)), *own}))
            rows = engine.execute("SHOW FUNCTIONS")
            if rows is None:
                raise UnsupportedError("this engine does not list its functions", kind="unsupported")
            names_there = rows.to_reader().read_all().column(0).to_pylist()
            ours_hidden = [name for name in names_there if not name.startswith(FUNCTION_PREFIX)]
            return listed("function", matching(sorted({*ours_hidden, *_own_functions(session, statement, source)}), statement))
        case ShowKind.JOBS:
            jobs = (*session.jobs.failed(), *session.jobs.under_way())
            return records(_JOBS_SCHEMA, map(_job_row, jobs))
    return _of_table(session, statement, source)


def _own_functions(session: Session, statement: Show, source: Source) -> list[str]:
    """The functions of a database, with those of the session."""
    place = database_of(session, statement, source)
    return sorted({*session.functions.names(place), *session.kept_functions.names(*place)})


def _of_table(session: Session, statement: Show, source: Source) -> Result:
    path = path_of(statement)
    target = session.find(path, source)
    match statement.kind:
        case ShowKind.COLUMNS if isinstance(target, Table | SystemTable | ConnectorTable):
            rows = {row["name"]: row for row in column_rows(target)}
            return records(COLUMNS_SCHEMA, [rows[name] for name in matching(rows, statement)])
        case ShowKind.CREATE_TABLE if isinstance(target, Table) and is_materialized(target.options()):
            raise InvalidInputError(
                source.mark(
                    f"{session.expand(path)} is a materialized table: SHOW CREATE MATERIALIZED TABLE shows its statement", path.span
                ),
                kind="materialized-table",
            )
        case ShowKind.COLUMNS if isinstance(target, VIEWS):
            rows = {row["name"]: row for row in view_rows(session, target)}
            return records(COLUMNS_SCHEMA, [rows[name] for name in matching(rows, statement)])
        case ShowKind.CREATE_VIEW if isinstance(target, View):
            return one_text("result", create_view_statement(target))
        case ShowKind.CREATE_VIEW if target is not None:
            description = "is a view of rows that Python has" if isinstance(target, RowsView) else "is no view"
            raise InvalidInputError(
                source.mark(f"{path} {description}: it has no statement that makes it", path.span), kind="not-a-view"
            )
        case ShowKind.CREATE_TABLE if isinstance(target, Table | ConnectorTable):
            whole = session.expand(path)
            temporary = session.objects.temporary(whole) is not None
            return one_text("result", create_statement(whole, target, temporary=temporary))
        case ShowKind.OPTIONS if isinstance(target, ConnectorTable):
            return _options(target.options.items(), statement)
    table = session.table(path, f"SHOW {statement.kind.value}", source)
    match statement.kind:
        case ShowKind.PARTITIONS:
            return _partitions(table, statement, source)
        case ShowKind.SNAPSHOTS:
            return Result(table.system("snapshots").scan().to_arrow())
        case ShowKind.TAGS:
            return Result(table.system("tags").scan().to_arrow())
        case ShowKind.BRANCHES:
            return Result(table.system("branches").scan().to_arrow())
        case ShowKind.OPTIONS:
            return _options(table.options().items(), statement)
    raise UnsupportedError(source.mark(f"SHOW {statement.kind.value} is not supported", path.span), kind="unsupported")


def _job_row(job: Job[Any]) -> dict[str, str | None]:
    return {"job_id": job.id, "status": job.status.value, "error": None if job.error is None else str(job.error)}


def _options(items: Iterable[tuple[str, str]], statement: Show) -> Result:
    options = dict(sorted(items))
    if statement.key is not None and statement.key not in options:
        near = did_you_mean(statement.key, options)
        raise NotFoundError(f"{statement.path} does not set {statement.key!r:.80}{near}", kind="unknown-option")
    keys = matching(options, statement) if statement.key is None else [statement.key]
    return pairs((key, shown_option(key, options[key], holds_no_secret)) for key in keys)


def _partitions(table: Table, statement: Show, source: Source) -> Result:
    if not table.partition_by:
        raise InvalidInputError(
            source.mark(f"table {table.name} is not partitioned", path_of(statement).span), kind="not-partitioned"
        )
    spec = {} if statement.partition is None else partition_of(table, statement.partition, source)
    partitions = [one for one in partition_values(table.context.still_there()) if spec.items() <= one[1].items()]
    names = pa.array([text for text, _ in partitions], pa.string())
    if statement.where is not None:
        with placing(source, statement.where.span):
            condition = parse_filter(statement.where.text, table.context.schema.partition_fields)
            values = pa.Table.from_pylist(
                [values for _, values in partitions], to_arrow_schema(table.context.schema.partition_fields)
            )
            names = names.filter(evaluate(condition, values))
    return Result(pa.table({"partition": names}))


def _tables(session: Session, statement: Show, source: Source) -> list[str]:
    catalog, database = database_of(session, statement, source)
    ours = [one.path.name for one in session.kept.all(catalog, database) if isinstance(one, ConnectorTable)]
    with placing(source, statement.path.span if statement.path else NOWHERE):
        return sorted({*session.catalogs.tables(catalog, database), *ours})


def _temporary(session: Session, statement: Show, source: Source) -> list[str]:
    """The temporary tables or views of a database, which need not exist."""
    place = database_of(session, statement, source)
    objects = session.objects.temporary_tables() if statement.kind is ShowKind.TABLES else session.objects.views()
    return [one.path.name for one in objects if (one.path.catalog, one.path.database) == place]


def _views(session: Session, statement: Show, source: Source) -> list[str]:
    of_engine = session.engine.list_views() if session.engine is not None else ()
    kept = [one.path.name for one in session.kept.all(*database_of(session, statement, source)) if isinstance(one, View)]
    return sorted({*_temporary(session, statement, source), *kept, *of_engine})


def database_of(session: Session, statement: Show, source: Source) -> tuple[str, str]:
    """The catalog and database whose objects a statement lists."""
    if statement.path is None:
        return session.catalogs.current, session.catalogs.current_database
    return database_path(session, statement.path, source)


def path_of(statement: Show) -> Path:
    """The object that a statement shows. Raises InvalidInputError."""
    if statement.path is None:
        raise InvalidInputError(f"SHOW {statement.kind.value}: expected the name of a table", kind="sql-syntax")
    return statement.path


def matching(names: Iterable[str], statement: Show) -> list[str]:
    """The names that ``[NOT] LIKE 'pattern'`` leaves: ``%`` and ``*`` are any text, ``_`` a character, ``|`` stands between
    patterns."""
    if statement.like is None:
        return list(names)
    patterns = [
        "".join({"%": ".*", "*": ".*", "_": "."}.get(char, re.escape(char)) for char in one) for one in statement.like.split("|")
    ]
    pattern = re.compile("|".join(patterns), re.IGNORECASE | re.DOTALL)
    return [name for name in names if (pattern.fullmatch(name) is None) is statement.not_like]
