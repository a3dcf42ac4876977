"""A bound query becomes DuckDB's SQL over views of this query alone.

    relation               view
    ManagedRelation        its plain files, UNION ALL the stream of what we merge (``scans``)
    RowsRelation           the stream
    QueryRelation          its query, over views of its own
    ConnectorRelation      DuckDB's reader of the files
    NativeRelation         the object itself: a relation of the session's connection, or anything that exports Arrow data
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb

from tablestore.environment.engine import (
    BoundQuery,
    ConnectorRelation,
    ManagedRelation,
    NativeRelation,
    QueryRelation,
    Relation,
    RowsRelation,
)
from tablestore.sql.query.transpile import to_duckdb
from tablestore_duckdb.connectors import connector_sql
from tablestore_duckdb.names import identifier
from tablestore_duckdb.scans import PlannedScan, Stream, plan_managed

VIEW_PREFIX = "__tablestore_"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A temporary view: SQL, or an object that is registered under the name. ``stands_for``: the name of its relation."""

    name: str
    stands_for: str
    sql: str | None = None
    source: Any = None

    def create(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Create the view in a connection."""
        if self.sql is None:
            connection.register(self.name, self.source)
        else:
            connection.execute(f"CREATE OR REPLACE TEMPORARY VIEW {identifier(self.name)} AS {self.sql}").complete()

    def drop(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Drop it again."""
        if self.sql is None:
            connection.unregister(self.name)
        else:
            connection.execute(f"DROP VIEW IF EXISTS {identifier(self.name)}").complete()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A query in DuckDB's SQL, and the views that it needs, each after those that it uses itself.

    ``text`` is the query as it was written, for messages.
    """

    sql: str
    text: str
    views: tuple[View, ...] = ()
    scans: tuple[tuple[str, PlannedScan], ...] = ()
    parameters: Mapping[str, Any] | Sequence[Any] = field(default_factory=dict)

    def readable(self, message: str) -> str:
        """A message of DuckDB's with the names of relations in place of those of views."""
        names = {view.name: view.stands_for for view in self.views}
        return re.sub(rf"{VIEW_PREFIX}\d+", lambda found: names.get(found[0], found[0]), message)

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams that DuckDB pulls."""
        return tuple(view.source for view in self.views if isinstance(view.source, Stream))


def prepare(query: BoundQuery, new_name: Callable[[], str]) -> Prepared:
    """Plan the relations of a query and write it in DuckDB's SQL; ``new_name`` gives names for views.

    Raises InvalidInputError, UnsupportedError.
    """
    views: list[View] = []
    scans: list[tuple[str, PlannedScan]] = []
    sql = _prepared(query, new_name, views, scans)
    return Prepared(sql=sql, text=query.text, views=tuple(views), scans=tuple(scans), parameters=query.parameters)


def _prepared(
    query: BoundQuery, new_name: Callable[[], str], views: list[View], scans: list[tuple[str, PlannedScan]]
) -> str:
    names = [_add_view(relation, new_name, views, scans) for relation in query.relations]
    return to_duckdb(query.edited(lambda position: names[position]))


def _add_view(
    relation: Relation, new_name: Callable[[], str], views: list[View], scans: list[tuple[str, PlannedScan]]
) -> str:
    """Add the views of a relation; the name of the one that has its rows."""
    match relation:
        case ManagedRelation():
            planned = plan_managed(relation)
            scans.append((relation.name, planned))
            parts = [planned.native_sql()]
            if (stream := planned.stream()) is not None:
                views.append(View(name=new_name(), stands_for=relation.name, source=stream))
                parts.append(f"SELECT * FROM {identifier(views[-1].name)}")
            sql = " UNION ALL ".join(part for part in parts if part is not None)
            view = View(name=new_name(), stands_for=relation.name, sql=sql)
        case RowsRelation():
            view = View(name=new_name(), stands_for=relation.name, source=Stream(relation.rows.schema, relation.rows.to_batches))
        case QueryRelation():
            view = View(name=new_name(), stands_for=relation.name, sql=_prepared(relation.query, new_name, views, scans))
        case ConnectorRelation():
            view = View(name=new_name(), stands_for=relation.name, sql=connector_sql(relation))
        case NativeRelation(value=duckdb.DuckDBPyRelation() as value):
            view = View(name=new_name(), stands_for=relation.name, sql=value.sql_query())
        case NativeRelation():
            view = View(name=new_name(), stands_for=relation.name, source=relation.value)
    views.append(view)
    return view.name
