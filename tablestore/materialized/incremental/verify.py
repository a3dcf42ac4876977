"""Verifies that a materialized table holds the rows of its query at the snapshots that its cursor names.

    missing    rows of the query that the table does not have, so many times
    extra      rows of the table that the query does not give

Rows are compared as bags, by what SQL calls equal: NaN is NaN, NULL is NULL, the two zeros are one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from tablestore.distributed.read import pin_at
from tablestore.distributed.spec import TableSpec
from tablestore.environment.engine import ManagedRelation, QueryEngine, QueryRelation, Relation
from tablestore.environment.rows.relations import Relations
from tablestore.environment.session.session import Session
from tablestore.errors import NotFoundError, UnsupportedError
from tablestore.materialized.incremental.refresh import target_names
from tablestore.materialized.incremental.refreshcursor import RefreshCursor, parse_cursor, stored_cursor
from tablestore.materialized.incremental.sources import RefreshSource, as_fragment, find_sources
from tablestore.sql.freshnames import fresh_name
from tablestore.sql.incremental.shapes import TARGET, FullRefresh
from tablestore.sql.query.edits import quote_name
from tablestore.sql.source import Fragment
from tablestore.table.table import Table

MOST_EXAMPLES = 20
_QUERY = "tablestore_query"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    """The differences of a table from its query: numbers of rows, and examples of them. ``sources``: the snapshots compared, by
    name."""

    missing: int
    extra: int
    examples_missing: pa.Table
    examples_extra: pa.Table
    sources: tuple[tuple[str, int | None], ...]

    @property
    def is_equal(self) -> bool:
        """True if there is no difference."""
        return not (self.missing or self.extra)

    def __str__(self) -> str:
        if self.is_equal:
            return "the table holds the rows of its query"
        shown = [
            f"{name}: {row}"
            for name, rows in (("missing", self.examples_missing), ("extra", self.examples_extra))
            for row in rows.to_pylist()
        ]
        return "\n".join([f"the table lacks {self.missing} rows of its query and has {self.extra} others", *shown])


def verify(session: Session, target: Table, query: str | Fragment, *, spec: TableSpec) -> VerifyReport:
    """Computes the query at the snapshots of the cursor, and compares. ``spec``: how engines find the target.

    Raises NotFoundError where the table was not refreshed or a snapshot has expired, UnsupportedError for a query that gives other
    rows each time or reads more than managed tables.
    """
    engine, query = session.engine_for("VERIFY"), as_fragment(query)
    latest = target.context.snapshots.latest()
    cursor = parse_cursor(stored_cursor(latest))
    if latest is None or cursor is None:
        raise NotFoundError(
            f"table {target.name} does not say which snapshots its rows were made from: it was not refreshed yet, or something "
            "else wrote to it; refresh it",
            kind="no-cursor",
        )
    source_set = find_sources(session, query)
    if isinstance(source_set, FullRefresh):
        raise UnsupportedError(f"the rows of {target.name} cannot be compared with its query: {source_set.reason}", kind="verify")
    relations = Relations(session=session)
    for source in source_set.sources:
        _pin(session, relations, source, cursor)
    names = ", ".join(map(quote_name, target_names(engine.query(relations.bind_query(query)).schema, query, target)))
    pin = pin_at(target.context, spec, latest.id)
    named_relations: dict[str, Relation] = {
        TARGET: ManagedRelation(name=target.name, table=target, pin=pin),
        _QUERY: QueryRelation(name="the query", query=relations.bind_around(query, "SELECT * FROM ", f" AS `query` ({names})")),
    }
    missing, examples_missing = difference(session, engine, target.schema, named_relations, (_QUERY, TARGET))
    extra, examples_extra = difference(session, engine, target.schema, named_relations, (TARGET, _QUERY))
    return VerifyReport(
        missing=missing,
        extra=extra,
        examples_missing=examples_missing,
        examples_extra=examples_extra,
        sources=tuple((point.name, point.snapshot_id) for point in cursor.points),
    )


def _pin(session: Session, relations: Relations, source: RefreshSource, cursor: RefreshCursor) -> None:
    """Lets the query read a source at the snapshot of the cursor."""
    point = cursor.of_source(source.name)
    if point is None or point.table_uuid != source.table.context.table_uuid:
        raise NotFoundError(f"source {source.name} is not the table that was read last; refresh first", kind="no-cursor")
    if point.snapshot_id is not None:
        source.table.context.snapshots.live(point.snapshot_id)
    relations.pins[source.table.location, source.table.branch_name] = source.pin(session, point.snapshot_id)


def difference(
    session: Session, engine: QueryEngine, schema: pa.Schema, named_relations: dict[str, Relation], sides: Sequence[str]
) -> tuple[int, pa.Table]:
    """The number of rows that one of two relations has in these columns and the other lacks, and some of them."""
    columns = ", ".join(quote_name(name) for name in schema.names)
    times = fresh_name("tablestore_times", *schema.names)
    more, less = (f"SELECT {columns}, {weight} AS {times} FROM {side}" for side, weight in zip(sides, (1, -1), strict=True))
    rows = (
        f"SELECT {columns}, sum({times}) AS {times} FROM ({more} UNION ALL {less}) AS `both` GROUP BY {columns} "
        f"HAVING sum({times}) > 0"
    )

    def read(sql: str) -> pa.Table:
        return engine.read(Relations(session=session).bind(sql, named_relations)).read_all()

    count = int(read(f"SELECT sum({times}) AS `rows` FROM ({rows}) AS `differing`").column(0)[0].as_py() or 0)
    if not count:
        return 0, schema.empty_table()
    return count, read(f"SELECT {columns} FROM ({rows}) AS `differing` LIMIT {MOST_EXAMPLES}")
