"""A bound query becomes DuckDB's SQL; what it reads stands in the text, or is a view of this query alone.

relation             in the text                                               view
ManagedRelation      the files that DuckDB reads, UNION ALL a view             the stream of what we merge (``scans``)
RowsRelation                                                                   the stream
QueryRelation                                                                  its query
ConnectorRelation    DuckDB's reader of the files
NativeRelation       the SQL of a relation of the session's connection         anything that exports Arrow data
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, TypeAlias

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
from tablestore.errors import InvalidInputError, TablestoreError
from tablestore.remembered import Remembered
from tablestore.sql.duckdb.columnnames import Columns
from tablestore.sql.duckdb.transpile import stumbled_at, to_duckdb
from tablestore.sql.query.functions import without_prefix
from tablestore.sql.source import unedited
from tablestore_duckdb.columnkinds import column_kinds
from tablestore_duckdb.connectors import connector_sql
from tablestore_duckdb.quoting import identifier
from tablestore_duckdb.scans import PlannedScan, Stream, plan_managed

VIEW_PREFIX = "__tablestore_"
Parameters: TypeAlias = "Mapping[str, Any] | Sequence[Any]"
_PLACED = re.compile(rf'"?({VIEW_PREFIX}\d+)"?')


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A temporary view: SQL, or an object that is registered under the name. ``kept``: a temporary table of the rows of the SQL."""

    name: str
    sql: str | None = None
    source: Any = None
    kept: bool = False
    parameters: Parameters = ()

    def create(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Create the view in a connection."""
        if self.sql is None:
            connection.register(self.name, self.source)
        else:
            made = f"CREATE OR REPLACE TEMPORARY {self._kind} {identifier(self.name)} AS {self.sql}"
            if self.parameters:
                (statement,) = connection.extract_statements(made)
                connection.execute(statement, asked_for(statement, self.parameters)).complete()
            else:
                connection.execute(made).complete()

    def drop(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Drop it again."""
        if self.sql is None:
            connection.unregister(self.name)
        else:
            connection.execute(f"DROP {self._kind} IF EXISTS {identifier(self.name)}").complete()

    @property
    def _kind(self) -> str:
        return "TABLE" if self.kept else "VIEW"


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A query in DuckDB's SQL, and the views that it needs, each after those that it uses itself.

    ``text`` is the query as it was written, for messages, ``names`` are those of relations by the names in their place,
    ``columns`` those that its tables have.
    """

    sql: str
    text: str
    views: tuple[View, ...] = ()
    scans: tuple[tuple[str, PlannedScan], ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    parameters: Parameters = field(default_factory=dict)
    columns: tuple[str, ...] = ()

    def readable(self, message: str) -> str:
        """A message of DuckDB's with the names of relations and functions as the user knows them."""
        return without_prefix(_PLACED.sub(lambda found: self.names.get(found[1], found[0]), message))

    @property
    def streams(self) -> tuple[Stream, ...]:
        """The streams that DuckDB pulls."""
        return tuple(view.source for view in self.views if isinstance(view.source, Stream))


def prepare(
    query: BoundQuery, new_name: Callable[[], str], remembered: Remembered, made: Mapping[int, str] | None = None
) -> Prepared:
    """Plan the relations of a query and write it in DuckDB's SQL; ``new_name`` gives names for views,
    ``remembered`` knows how texts were written before. ``made``: names of what has the rows of relations already, by their places.

    Raises InvalidInputError, UnsupportedError.
    """
    preparing = _Preparing(new_name=new_name, remembered=remembered)
    text = query.text if query.statement is None else query.statement
    try:
        sql = preparing.query(query, made or {})
    except TablestoreError as error:
        from tablestore_duckdb.queryerrors import placed

        raise placed(error, text) from error.__cause__
    return Prepared(
        sql=sql,
        text=text,
        views=tuple(preparing.views),
        scans=tuple(preparing.scans),
        names=preparing.names,
        parameters=query.parameters,
        columns=tuple(name for relation in query.relations for name, _ in column_kinds(relation) or ()),
    )


@dataclass(slots=True, kw_only=True)
class _Preparing:
    """What the relations of a query come to."""

    new_name: Callable[[], str]
    remembered: Remembered
    views: list[View] = field(default_factory=list)
    scans: list[tuple[str, PlannedScan]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def query(self, query: BoundQuery, made: Mapping[int, str] = MappingProxyType({})) -> str:
        """A query in DuckDB's SQL: written with names in place of the relations, which are replaced by what they stand for."""
        # By their places in this query, so that the same query has the same text each time.
        placed = {
            f"{VIEW_PREFIX}{position}": made.get(position) or self._placed(relation)
            for position, relation in enumerate(query.relations)
        }
        names = tuple(placed)
        text = query.edited(lambda position: names[position])
        try:
            written = self.remembered(_written, text, tuple(zip(names, map(column_kinds, query.relations), strict=True)))
        except InvalidInputError as error:
            from tablestore_duckdb.queryerrors import marked_at

            if (span := stumbled_at(error.__cause__, text)) is not None:
                place = query.written(unedited(query.edits, span, lambda number: len(names[number]), len(query.text)))
                marked_at(error, place, query.text if query.statement is None else query.statement)
            raise
        return with_places(written, placed)

    def _placed(self, relation: Relation) -> str:
        """What stands in the text for a relation."""
        match relation:
            case ManagedRelation():
                planned = plan_managed(relation)
                self.scans.append((relation.name, planned))
                return f"({planned.to_sql(lambda stream: self._view(relation, source=stream))})"
            case RowsRelation():
                return self._view(relation, source=Stream(relation.rows.schema, relation.rows.to_batches))
            case QueryRelation(query=query) if query.parameters:
                # A view takes no parameters.
                return f"({self.query(query)})"
            case QueryRelation():
                return self._view(relation, sql=self.query(relation.query))
            case ConnectorRelation():
                return f"({connector_sql(relation)})"
            case NativeRelation(value=duckdb.DuckDBPyRelation() as value):
                return f"({value.sql_query()})"
            case NativeRelation():
                return self._view(relation, source=relation.value)

    def _view(self, relation: Relation, *, sql: str | None = None, source: Any = None) -> str:
        self.views.append(View(name=self._named(relation), sql=sql, source=source))
        return self.views[-1].name

    def _named(self, relation: Relation) -> str:
        name = self.new_name()
        self.names[name] = relation.name
        return name


def asked_for(statement: duckdb.Statement, parameters: Parameters) -> Parameters:
    """Those of the parameters that a statement has; of others DuckDB says that they are too many."""
    if not isinstance(parameters, Mapping):
        return parameters
    return {name: value for name, value in parameters.items() if name in statement.named_parameters}


def with_places(sql: str, places: Mapping[str, str]) -> str:
    """SQL with what stands for these names in their places."""
    return _PLACED.sub(lambda found: places.get(found[1], found[0]), sql)


def _written(text: str, tables: Sequence[tuple[str, Columns | None]]) -> str:
    return to_duckdb(text, {name: columns for name, columns in tables if columns is not None})
