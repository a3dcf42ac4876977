"""Runs CREATE and ALTER VIEW: a name for a query, kept by a catalog, or in this session also for rows, where it may hide a table.

a query                                        kept as text, run whenever the view is read
a scan, a table's change                       read anew each time
an object of the engine (a Spark DataFrame)    handed to it as it is
anything else that Arrow can see               read once, kept in memory
"""

from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa

from tablestore.environment.memoryrows import MemoryRows
from tablestore.environment.objectpath import MOST_PARTS, ObjectPath, expand
from tablestore.environment.result import Result, already_there, done
from tablestore.environment.rows.queries import in_place
from tablestore.environment.rows.relations import Relations
from tablestore.environment.session.objects import RowsView, View, kind_of
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError, UnsupportedError
from tablestore.sql.query.functions import function_edits
from tablestore.sql.query.tablereferences import references_in
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.source import Fragment, Path, Span
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.statements.alter import AlterView, RenameTo, ResetOptions, SetOptions
from tablestore.sql.statements.definition import CreateView
from tablestore.sql.stored.storedquery import check_stored_query
from tablestore.table.read.scan import ArrowSource
from tablestore.table.write.inputrows import schema_and_tables


def create_view(session: Session, statement: CreateView, source: Source) -> Result:
    """Keeps a query under a name. It is checked now, and run whenever it is read."""
    path = session.expand(statement.path, source)
    if statement.if_not_exists:
        is_there = session.objects.temporary(path) is not None if statement.temporary else _is_taken(session, path)
        if is_there:
            return done() if statement.temporary else done(already_there(path))
    catalog, database = session.place
    view = View(
        path=path,
        query=statement.query.text,
        dialect=statement.query.dialect,
        columns=statement.columns,
        comment=statement.comment,
        catalog=catalog,
        database=database,
        options=statement.options,
        temporary=statement.temporary,
    )
    _check_query(session, view, statement.query, statement.path, source)
    with placing(source, statement.path.span):
        if statement.temporary:
            session.objects.add(view, replace=statement.replace)
            return done()
        if statement.replace and session.kept.table(path) is not None:
            raise AlreadyExistsError(f"{path} is a table: DROP TABLE drops it, or choose another name", kind="table-exists")
        session.kept.keep(view, replace=statement.replace)
    return done()


def alter_view(session: Session, statement: AlterView, source: Source) -> Result:
    """Runs ALTER VIEW, of a permanent view. Raises NotFoundError, InvalidInputError, and what its query raises."""
    path = session.expand(statement.path, source)
    with placing(source, statement.path.span):
        session.objects.check_permanent(path, "view", doing="altering")
        view = session.kept.find(path)
        if not isinstance(view, View):
            if view is not None or (path.catalog in session.catalogs.names() and session.exists(path)):
                raise InvalidInputError(f"{path} is a table: ALTER TABLE alters it", kind="not-a-view")
            if statement.if_exists:
                return done()
            raise NotFoundError(
                f"View with identifier '{path.quoted}' does not exist: SHOW VIEWS lists those that do", kind="no-such-view"
            )
    match statement.action:
        case Fragment() as query:
            catalog, database = session.place
            altered = replace(view, query=query.text, dialect=query.dialect, columns=(), catalog=catalog, database=database)
            _check_query(session, altered, query, statement.path, source)
        case RenameTo() as rename:
            new_path = expand(rename.path, path.catalog, path.database)
            if new_path.catalog != path.catalog:
                raise InvalidInputError(
                    source.mark(f"a view stays in its catalog, {path.catalog}; create it anew in the other one", rename.path.span),
                    kind="invalid-name",
                )
            altered = replace(view, path=new_path)
        case SetOptions() as new:
            altered = replace(view, options={**view.options, **new.options})
        case ResetOptions() as reset:
            altered = replace(view, options={key: value for key, value in view.options.items() if key not in reset.keys})
    session.kept.alter(view, altered)
    return done()


def _is_taken(session: Session, path: ObjectPath) -> bool:
    """True if a permanent object has a name."""
    return session.kept.has(path) or (path.catalog in session.catalogs.names() and session.exists(path))


def _check_query(session: Session, view: View, query: Fragment, written: Path, source: Source) -> None:
    """Raises for a query that cannot be run, or not in every session that will read a permanent view."""
    path = view.path
    is_spark = query.dialect is SqlDialect.SPARK
    shift = query.span.start if is_spark else 0
    relations = Relations(
        session=session,
        source=source,
        where=lambda span: Span(span.start + shift, span.end + shift),
        making=path,
        permanent=not view.temporary,
    )
    if not view.temporary:
        _check_outlives(session, query, source, shift)
    bound = relations.bind_query(query, query.text if is_spark else in_place(query, source))
    names = session.engine_for("a view").query(bound).schema.names
    if view.columns and len(view.columns) != len(names):
        raise InvalidInputError(
            source.mark(
                f"{path} names {len(view.columns)} columns ({', '.join(view.columns)}), and its query gives {len(names)} "
                f"({', '.join(names)})",
                written.span,
            ),
            kind="columns",
        )


def _check_outlives(session: Session, query: Fragment, source: Source, shift: int) -> None:
    """Raises UnsupportedError for a query that names what ends with this session, or reaches out of its tables."""
    tokens = Tokens(query.text, query.dialect)
    temporary_calls = ((edit.span, "function") for edit in function_edits(tokens, session.temporary_function))
    temporary_names = (
        (reference.path.span, kind_of(hiding))
        for reference in references_in(tokens)
        if len(reference.path.parts) <= MOST_PARTS
        and (hiding := session.objects.temporary(session.expand(reference.path).plain)) is not None
    )
    for span, what in chain(temporary_calls, temporary_names):
        name = query.text[span.start : span.end]
        raise UnsupportedError(
            source.mark(
                f"{name} is a temporary {what} of this session, and a permanent view outlives it: CREATE TEMPORARY VIEW, or name "
                "permanent objects",
                Span(span.start + shift, span.end + shift),
            ),
            kind="temporary-object",
        )
    check_stored_query(query.text, query.dialect)


def add_rows_view(session: Session, path: ObjectPath, rows: Any, *, replace: bool) -> None:
    """Keeps rows under a name. Raises InvalidInputError for what holds no rows, AlreadyExistsError."""
    if session.engine is not None and session.engine.is_native(rows):
        view = RowsView(path=path, rows=rows, native=True)
    else:
        view = RowsView(path=path, rows=rows if isinstance(rows, ArrowSource) else MemoryRows(_table(rows)))
    session.objects.add(view, replace=replace)


def _table(rows: Any) -> pa.Table:
    schema, tables = schema_and_tables(rows)
    return pa.concat_tables([schema.empty_table(), *tables])
