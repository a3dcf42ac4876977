"""Explains how a query would run, and what it reads of each managed table after pruning."""

from collections.abc import Iterator

from tablestore.environment.engine import BoundQuery, ManagedRelation, QueryRelation
from tablestore.environment.rows.queries import bound_query
from tablestore.environment.session.session import Session
from tablestore.environment.source import Source
from tablestore.sql.query.parameters import Parameters
from tablestore.sql.source import Fragment
from tablestore.types.filter.predicatetext import to_sql


def explain_query(session: Session, query: Fragment, source: Source, parameters: Parameters) -> str:
    """The plan of a query. Raises what running it would raise."""
    return explained(session, bound_query(session, query, source, parameters))


def explained(session: Session, query: BoundQuery) -> str:
    """The plan of a bound query: its managed scans, then the engine's own plan."""
    plan = session.engine_for("EXPLAIN").explain(query)
    scans = "\n".join(_scans(query))
    return f"== Managed scans ==\n{scans}\n\n{plan}" if scans else plan


def _scans(query: BoundQuery) -> Iterator[str]:
    for relation in query.relations:
        if isinstance(relation, QueryRelation):
            yield from _scans(relation.query)
        elif isinstance(relation, ManagedRelation):
            yield _scan(relation)


def _scan(relation: ManagedRelation) -> str:
    snapshot = "no snapshot" if relation.pin.snapshot_id is None else f"snapshot {relation.pin.snapshot_id}"
    columns = "all columns" if relation.columns is None else f"columns {', '.join(relation.columns) or 'none'}"
    condition = "" if relation.filter is None else f", filter {to_sql(relation.filter)}"
    return f"{relation.name}: {snapshot}, {columns}{condition}"
