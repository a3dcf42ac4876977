"""CREATE TEMPORARY VIEW: a name for a query, in this session. It may hide a permanent table."""

from tablestore.environment.result import Result, done
from tablestore.environment.rows.relations import Relations
from tablestore.environment.session.objects import View
from tablestore.environment.session.session import Session
from tablestore.environment.source import Source
from tablestore.errors import UnsupportedError
from tablestore.sql.source import Span
from tablestore.sql.statements.definition import CreateView


def create_view(session: Session, statement: CreateView, source: Source) -> Result:
    """Keep a query under a name. It is checked now, and run whenever it is read."""
    if not statement.temporary:
        raise UnsupportedError(
            source.mark("a permanent view is not supported: CREATE TEMPORARY VIEW makes one of this session", statement.path.span),
            kind="unsupported",
        )
    path = session.expand(statement.path, source)
    if statement.if_not_exists and session.objects.find(path) is not None:
        return done()
    catalog, database = session.place
    view = View(
        path=path,
        query=statement.query.text,
        columns=statement.columns,
        comment=statement.comment,
        catalog=catalog,
        database=database,
    )
    shift = statement.query.span.start
    relations = Relations(session=session, source=source, where=lambda span: Span(span.start + shift, span.end + shift))
    session.engine_for("a view").query(relations.bind(view.query))
    session.objects.add(view, replace=statement.replace)
    return done()
