"""Runs CREATE TEMPORARY VIEW: a name for a query or for rows, in this session. It may hide a permanent table.

    a query                                        kept as text, run whenever the view is read
    a scan, a table's change                       read anew each time
    an object of the engine (a Spark DataFrame)    handed to it as it is
    anything else that Arrow can see               read once, kept in memory
"""

from typing import Any

import pyarrow as pa

from tablestore.environment.memoryrows import MemoryRows
from tablestore.environment.objectpath import ObjectPath
from tablestore.environment.result import Result, done
from tablestore.environment.rows.queries import in_place
from tablestore.environment.rows.relations import Relations
from tablestore.environment.session.objects import RowsView, View
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import InvalidInputError, UnsupportedError
from tablestore.sql.source import Span
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.statements.definition import CreateView
from tablestore.table.read.scan import ArrowSource
from tablestore.table.write.inputrows import schema_and_tables


def create_view(session: Session, statement: CreateView, source: Source) -> Result:
    """Keeps a query under a name. It is checked now, and run whenever it is read."""
    if not statement.temporary:
        raise UnsupportedError(
            source.mark("a permanent view is not supported: CREATE TEMPORARY VIEW makes one of this session", statement.path.span),
            kind="unsupported",
        )
    path = session.expand(statement.path, source)
    if statement.if_not_exists and session.objects.temporary(path) is not None:
        return done()
    catalog, database = session.place
    view = View(
        path=path,
        query=statement.query.text,
        dialect=statement.query.dialect,
        columns=statement.columns,
        comment=statement.comment,
        catalog=catalog,
        database=database,
    )
    query = statement.query
    is_spark = query.dialect is SqlDialect.SPARK
    shift = query.span.start if is_spark else 0
    relations = Relations(
        session=session, source=source, where=lambda span: Span(span.start + shift, span.end + shift), making=path
    )
    bound = relations.bind_query(query, query.text if is_spark else in_place(query, source))
    names = session.engine_for("a view").query(bound).schema.names
    if view.columns and len(view.columns) != len(names):
        raise InvalidInputError(
            source.mark(
                f"{path} names {len(view.columns)} columns ({', '.join(view.columns)}), and its query gives {len(names)} "
                f"({', '.join(names)})",
                statement.path.span,
            ),
            kind="columns",
        )
    with placing(source, statement.path.span):
        session.objects.add(view, replace=statement.replace)
    return done()


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
