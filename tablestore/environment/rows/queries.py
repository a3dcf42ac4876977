"""Runs SELECT and whatever else gives rows, and explains how it would run and what it reads of each managed table."""

from collections.abc import Iterator

from tablestore.environment.engine import BoundQuery, ManagedRelation, QueryRelation
from tablestore.environment.result import Result
from tablestore.environment.rows.freshrows import FreshRows
from tablestore.environment.rows.relations import Relations
from tablestore.environment.session.session import Session
from tablestore.environment.source import Source
from tablestore.lazy import imported
from tablestore.sql.query.parameters import Parameters
from tablestore.sql.source import Fragment
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.statements.rows import Query
from tablestore.types.filter.predicatetext import to_sql


def run_query(session: Session, statement: Query, source: Source, parameters: Parameters) -> Result:
    """Makes a query ready: its names, types and snapshots are settled, its rows come when they are read.

    A table that was replaced by then is found anew (``freshrows``).
    """
    engine = session.engine_for("a query")
    return Result(FreshRows(lambda: bound_query(session, statement.query, source, parameters), engine.query))


def explain_query(session: Session, query: Fragment, source: Source, parameters: Parameters) -> str:
    """The plan of a query. Raises what running it would raise."""
    return explained(session, bound_query(session, query, source, parameters))


def explained(session: Session, query: BoundQuery) -> str:
    """The plan of a bound query: its managed scans, then the engine's own plan."""
    plan = session.engine_for("EXPLAIN").explain(query)
    scans = "\n".join(_scans(query))
    return f"== Managed scans ==\n{scans}\n\n{plan}" if scans else plan


def bound_query(session: Session, query: Fragment, source: Source, parameters: Parameters) -> BoundQuery:
    """A query as it stands in a source, its tables resolved. Places in its text are places in the source."""
    relations = Relations(
        session=session, source=source, parameters=parameters, reads_rows=True, streams=session.settings.is_streaming
    )
    return relations.bind_query(query, in_place(query, source))


def in_place(fragment: Fragment, source: Source) -> str:
    """The text of a fragment at its place in the source: what stands before it is blank, line breaks stay."""
    before = source.text[: fragment.span.start]
    return "".join(char if char == "\n" else " " for char in before) + fragment.text


def _scans(query: BoundQuery) -> Iterator[str]:
    for relation in query.relations:
        if isinstance(relation, QueryRelation):
            yield from _scans(relation.query)
        elif isinstance(relation, ManagedRelation):
            yield _scan(relation, is_pruned=query.dialect is SqlDialect.SPARK)


def _scan(relation: ManagedRelation, *, is_pruned: bool) -> str:
    """A table, with what the query uses of it; in other words than Spark's the engine finds that out, and says it below."""
    snapshot = "no snapshot" if relation.pin.snapshot_id is None else f"snapshot {relation.pin.snapshot_id}"
    if relation.follows is not None:
        snapshot = f"a stream from {snapshot} on, log.scan = {relation.follows.scan}"
    if not is_pruned:
        return f"{relation.name}: {snapshot}"
    columns = "all columns" if relation.columns is None else f"columns {', '.join(relation.columns) or 'none'}"
    condition = "" if relation.filter is None else f", filter {to_sql(relation.filter)}"
    return f"{relation.name}: {snapshot}, {columns}{condition}{_analyzed(relation)}"


def _analyzed(relation: ManagedRelation) -> str:
    """The rows that ANALYZE TABLE counted, where the snapshot names its numbers."""
    context = relation.pin.at_schema(relation.table.context)
    snapshot = relation.pin.read_snapshot(context)
    if snapshot is None or snapshot.statistics is None:
        return ""
    statistics = imported("tablestore.table.upkeep.analysis:read_statistics")(context, snapshot)
    if statistics is None or statistics.row_count is None:
        return ""
    return f", {statistics.row_count:,} rows when analyzed at snapshot {statistics.snapshot_id}"
