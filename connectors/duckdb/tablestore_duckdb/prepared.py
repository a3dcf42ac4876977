"""Writes a bound query in DuckDB's SQL; what it reads stands in the text, or is a view of this query alone.

relation             in the text                                               view
ManagedRelation      the files that DuckDB reads, UNION ALL a view             the stream of what we merge (``scans``)
RowsRelation                                                                   the stream
QueryRelation                                                                  its query
ConnectorRelation    DuckDB's reader of the files                              the stream of those that it does not read
NativeRelation       the SQL of a relation of the session's connection         anything that exports Arrow data
"""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
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
from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.memo import Memo
from tablestore.sql.binding.scopes import Columns
from tablestore.sql.binding.sqltypes import Type
from tablestore.sql.duckdb.functions.intervalvalues import months_at_result
from tablestore.sql.duckdb.rowconditions import RowConditions
from tablestore.sql.duckdb.transpile import Known, OtherTables, Translated, stumbled_at, translated
from tablestore.sql.freshnames import fresh_name
from tablestore.sql.query.functions import with_own_calls, without_prefix
from tablestore.sql.query.parsedquery import RELATION_PREFIX, ParsedQuery
from tablestore.sql.source import unedited
from tablestore.sql.sqldialect import SqlDialect
from tablestore_duckdb.columntypes import Parameters, parameter_types, relation_columns
from tablestore_duckdb.connectors import connector_sql
from tablestore_duckdb.ownwords import Parse, check_written, checked_tree, pruned
from tablestore_duckdb.pivotvalues import OpenPivot, open_pivots, values_query, with_values
from tablestore_duckdb.quoting import Sql, ViewPlace, identifier, joined, sql_text
from tablestore_duckdb.scans import PlannedScan, RowStream, plan_managed

VIEW_PREFIX = "__tablestore_"
_NO_CONDITIONS = RowConditions()
_ANY_MAY_FAIL = RowConditions(failing=None, filters=True, computes=True)
_VIEW = re.compile(rf"{VIEW_PREFIX}[0-9a-f]{{32}}")
_NAMED = re.compile(rf'"?({_VIEW.pattern})"?')


@dataclass(frozen=True, slots=True, kw_only=True)
class TemporaryView:
    """A temporary view: SQL, or an object that is registered under the name. ``kept``: a temporary table of the rows of the SQL."""

    name: str
    sql: Sql | None = None
    source: Any = None
    kept: bool = False
    parameters: Parameters = ()

    def create(self, connection: duckdb.DuckDBPyConnection, text: Callable[[Sql], str] = sql_text) -> None:
        """Creates the view in a connection. ``text``: how its SQL names other views."""
        if self.sql is None:
            connection.register(self.name, self.source)
        else:
            create_text = f"CREATE OR REPLACE TEMPORARY {self._kind} {identifier(self.name)} AS {text(self.sql)}"
            if self.parameters:
                (statement,) = connection.extract_statements(create_text)
                connection.execute(statement, asked_for(statement, self.parameters)).complete()
            else:
                connection.execute(create_text).complete()

    def drop(self, connection: duckdb.DuckDBPyConnection) -> None:
        """Drops it again."""
        if self.sql is None:
            connection.unregister(self.name)
        else:
            connection.execute(f"DROP {self._kind} IF EXISTS {identifier(self.name)}").complete()

    @property
    def _kind(self) -> str:
        return "TABLE" if self.kept else "VIEW"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedQuery:
    """A query in DuckDB's SQL, and the views that it needs, each after those that it uses itself.

    ``text`` is the query as it was written, for messages, ``names`` are those of relations by the names in their place,
    ``columns`` those that its tables have. ``has_durations``: its intervals come out as durations, as Spark's.
    """

    sql: Sql
    text: str
    views: tuple[TemporaryView, ...] = ()
    scans: tuple[tuple[str, PlannedScan], ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    parameters: Parameters = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    has_durations: bool = False

    def readable(self, message: str) -> str:
        """A message of DuckDB's with the names of relations and functions as the user knows them."""
        return without_prefix(self._with_relations(message))

    def column_name(self, name: str) -> str:
        """A name that DuckDB gives to a column, with relations and calls of functions as the user wrote them."""
        return with_own_calls(self._with_relations(name))

    def _with_relations(self, text: str) -> str:
        return _NAMED.sub(lambda match: self.names.get(match[1], match[0]), text)

    @property
    def streams(self) -> tuple[RowStream, ...]:
        """The streams that DuckDB pulls."""
        return tuple(view.source for view in self.views if isinstance(view.source, RowStream))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parser:
    """DuckDB's own parser. ``rows``: the first column of a query that is run now.

    ``reads_files``: the connection is the user's own, so its table functions read what that lets them.
    ``compares_texts``: surely by their bytes.
    """

    parse: Parse
    rows: "Callable[[PreparedQuery], Sequence[str | None]]"
    reads_files: bool
    compares_texts: bool


Placed: TypeAlias = "tuple[Sql, Columns | None]"
"""The text that stands for a relation, and its columns."""
Describe: TypeAlias = Callable[[Sequence[Sql], PreparedQuery], Sequence[Columns | None]]
"""Gives the columns of what stands in FROM as SQL, which may name views of a prepared query."""


def prepare(
    query: BoundQuery,
    new_name: Callable[[], str],
    memo: Memo,
    describe: Describe,
    functions: Mapping[str, Type],
    placed_relations: Mapping[int, Placed] | None = None,
    parser: "Parser | None" = None,
) -> PreparedQuery:
    """Plans the relations of a query and writes it in DuckDB's SQL; ``new_name`` gives names for views, ``memo`` knows how
    texts were written before, ``describe`` asks DuckDB. ``functions``: the types that functions of the user's give.
    ``placed_relations``: what has the rows of relations already, by their places. ``parser``: of queries in DuckDB's own words.

    Raises InvalidInputError, UnsupportedError.
    """
    preparing = _Preparing(new_name=new_name, memo=memo, describe=describe, functions=functions, parser=parser)
    text = query.text if query.statement is None else query.statement
    try:
        sql, result = preparing.query(query, placed_relations or {})
        months_at_result(result)
    except TablestoreError as error:
        from tablestore_duckdb.queryerrors import placed

        raise placed(error, text) from error.__cause__
    return PreparedQuery(
        sql=sql,
        text=text,
        views=tuple(preparing.views),
        scans=tuple(preparing.scans),
        names=preparing.names,
        parameters=query.parameters,
        columns=tuple(name for relation in query.relations for name, _ in relation_columns(relation) or ()),
        has_durations=query.dialect is SqlDialect.SPARK,
    )


@dataclass(slots=True, kw_only=True)
class _Preparing:
    """Collects what the relations of a query become in DuckDB's SQL: the views, and the text in their places."""

    new_name: Callable[[], str]
    memo: Memo
    describe: Describe
    functions: Mapping[str, Type]
    parser: "Parser | None" = None
    views: list[TemporaryView] = field(default_factory=list)
    scans: list[tuple[str, PlannedScan]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    translations: dict[tuple[Hashable, ...], Translated] = field(default_factory=dict)

    def query(
        self, query: BoundQuery, placed: Mapping[int, Placed] = MappingProxyType({}), outer: RowConditions = _NO_CONDITIONS
    ) -> Placed:
        """A query in DuckDB's SQL, and its columns. ``outer``: the conditions of the queries that read it."""
        if query.dialect is SqlDialect.DUCKDB:
            return self._in_own_words(query), None
        conditions = self._conditions(query, placed).inside(outer)
        relations = [
            placed[position] if position in placed else self._placed(relation, conditions)
            for position, relation in enumerate(query.relations)
        ]
        written = self._translated(query, relations, query.named())
        if written.is_ambiguous:
            # A text that was written with escapes has such a name in it, or a column that is behind a star.
            prefix = fresh_name(RELATION_PREFIX, written.sql)
            written = self._translated(query, relations, ParsedQuery.of(query.text, query.edits, prefix))
        return joined(*(piece if isinstance(piece, str) else relations[piece][0] for piece in written.pieces)), written.columns

    def _in_own_words(self, query: BoundQuery) -> Sql:
        """A query in DuckDB's own words, with a view in the place of each table."""
        assert self.parser is not None, "an engine that runs DuckDB's words has its parser"
        if opened := open_pivots(query.text):
            # What the values are is asked for behind the checks.
            named = with_values(query, [(pivot, ["value"]) for pivot in opened])
            checked_tree(named, self.parser.parse, reads_files=self.parser.reads_files)
            query = with_values(query, [(pivot, self._values(query, pivot)) for pivot in opened])
        tree = checked_tree(query, self.parser.parse, reads_files=self.parser.reads_files)
        relations = pruned(query, tree, compares_texts=self.parser.compares_texts)
        places = [
            self._view(relation, sql=joined("SELECT * FROM ", self._placed(relation, _ANY_MAY_FAIL)[0])) for relation in relations
        ]
        sql: list[str | ViewPlace] = []
        at = 0
        for edit in query.edits:
            sql.append(query.text[at : edit.span.start])
            sql += [edit.text] if edit.relation is None else [places[edit.relation], edit.text]
            at = edit.span.end
        whole = (*sql, query.text[at:])
        check_written(sql_text(whole), self.parser.parse, {place.view for place in places}, query.engine_tables)
        return whole

    def _values(self, query: BoundQuery, pivot: OpenPivot) -> Sequence[str]:
        """The values of an expression of a PIVOT, in the order of DuckDB's columns. Raises UnsupportedError if there are none."""
        assert self.parser is not None, "an engine that runs DuckDB's words has its parser"
        inner = _Preparing(
            new_name=self.new_name, memo=self.memo, describe=self.describe, functions=self.functions, parser=self.parser
        )
        sql = inner._in_own_words(values_query(query, pivot))
        rows = self.parser.rows(
            PreparedQuery(
                sql=sql,
                text=query.text,
                views=tuple(inner.views),
                scans=tuple(inner.scans),
                names=inner.names,
                parameters=query.parameters,
            )
        )
        texts = [text for text in rows if text is not None]
        if not texts:
            raise UnsupportedError(
                "a PIVOT without IN takes its columns from the values of its rows, and there are none: name the values, as in "
                "PIVOT t ON k IN ('a', 'b') USING sum(v)",
                kind="engine",
            )
        return texts

    def _conditions(self, query: BoundQuery, placed: Mapping[int, Placed] = MappingProxyType({})) -> RowConditions:
        """The conditions of a query by itself, from which it depends how its relations are read."""
        try:
            return self._outlined(query, placed).conditions
        except TablestoreError:
            # It is refused as soon as its relations are placed.
            return _ANY_MAY_FAIL

    def _outlined(self, query: BoundQuery, placed: Mapping[int, Placed] = MappingProxyType({})) -> Translated:
        """A query in DuckDB's words, from what is known of its relations before they are placed."""
        columns: list[Columns | None] = []
        for position, relation in enumerate(query.relations):
            if position in placed:
                columns.append(placed[position][1])
            elif isinstance(relation, QueryRelation) and relation.query.dialect is SqlDialect.SPARK:
                columns.append(self._outlined(relation.query).columns)
            else:
                columns.append(relation_columns(relation))
        parsed = query.named()
        try:
            return self._written(parsed, query, columns)
        except OtherTables:
            return self._written(parsed, query, columns, {})

    def _translated(self, query: BoundQuery, relations: Sequence[Placed], parsed: ParsedQuery) -> Translated:
        """A query in DuckDB's words. ``parsed``: with the names of relations."""
        columns = [columns for _, columns in relations]
        try:
            try:
                return self._written(parsed, query, columns)
            except OtherTables as unknown_tables:
                placed = {f"{parsed.prefix}{number}": sql for number, (sql, _) in enumerate(relations)}
                sources = [placed.get(name[0]) or (".".join(map(identifier, name)),) for name in unknown_tables.names]
                described_columns = self._described(sources, query)
                described = {
                    ".".join(name).casefold(): one for name, one in zip(unknown_tables.names, described_columns, strict=True)
                }
                return self._written(parsed, query, columns, described)
        except InvalidInputError as error:
            from tablestore_duckdb.queryerrors import marked_at

            if (span := stumbled_at(error.__cause__, parsed.text)) is not None:
                length = len(parsed.prefix)
                place = query.written(unedited(query.edits, span, lambda number: length + len(str(number)), len(query.text)))
                marked_at(error, place, query.text if query.statement is None else query.statement)
            raise

    def _described(self, sources: Sequence[Sql], query: BoundQuery) -> Sequence[Columns | None]:
        """The columns of what stands in FROM, as DuckDB says."""
        return self.describe(
            sources,
            PreparedQuery(sql=(), text=query.text, views=tuple(self.views), names=self.names, parameters=query.parameters),
        )

    def _written(
        self,
        parsed: ParsedQuery,
        query: BoundQuery,
        columns: Sequence[Columns | None],
        other_tables: Mapping[str, Columns | None] | None = None,
    ) -> Translated:
        """A text in DuckDB's words: as it was written before, if nothing that it depends on is another.

        ``columns``: those of its relations, as far as they are known. ``other_tables``: columns of others; None raises OtherTables.
        """
        table_columns: tuple[tuple[str, Columns | None], ...] = tuple(
            (f"{parsed.prefix}{number}", tuple(one)) for number, one in enumerate(columns) if one is not None
        )
        if other_tables:
            table_columns += tuple((name, None if one is None else tuple(one)) for name, one in other_tables.items())
        # Types are equal whether or not they count nanoseconds, and the text is another one.
        fine = tuple(kind is not None and kind.has_fine for _, columns in table_columns for _, kind in columns or ())
        functions, parameters = tuple(self.functions.items()), parameter_types(query.parameters)
        key = (parsed, table_columns, query.engine_tables, fine, functions, parameters, other_tables is None)
        if key not in self.translations:
            # The memo keeps nothing of a long text.
            self.translations[key] = self.memo(_written, parsed.text, *key)
        return self.translations[key]

    def _placed(self, relation: Relation, conditions: RowConditions) -> Placed:
        """The text that stands for a relation, and its columns."""
        columns = relation_columns(relation)
        match relation:
            case ManagedRelation():
                planned = plan_managed(relation)
                self.scans.append((relation.name, planned))
                sql = planned.to_sql(lambda stream: self._view(relation, source=stream), conditions)
                return joined("(", sql, ")"), columns
            case RowsRelation():
                return (self._view(relation, source=RowStream(relation.rows.schema, relation.rows.to_batches)),), columns
            case QueryRelation(query=query):
                sql, columns = self.query(query, outer=conditions)
                if query.dialect is SqlDialect.DUCKDB:
                    (columns,) = self._described([joined("(", sql, ")")], query)
                # A view takes no parameters.
                return joined("(", sql, ")") if query.parameters else (self._view(relation, sql=sql),), columns
            case ConnectorRelation():
                sql = connector_sql(relation, lambda stream: self._view(relation, source=stream))
                return joined("(", sql, ")"), columns
            case NativeRelation(value=duckdb.DuckDBPyRelation() as value):
                return (f"({value.sql_query()})",), columns
            case NativeRelation():
                return (self._view(relation, source=relation.value),), columns

    def _view(self, relation: Relation, *, sql: Sql | None = None, source: Any = None) -> ViewPlace:
        self.views.append(TemporaryView(name=self._named(relation), sql=sql, source=source))
        return ViewPlace(self.views[-1].name)

    def _named(self, relation: Relation) -> str:
        name = self.new_name()
        self.names[name] = relation.name
        return name


def asked_for(statement: duckdb.Statement, parameters: Parameters) -> Parameters:
    """The parameters that a statement has; of others DuckDB says that they are too many."""
    if not isinstance(parameters, Mapping):
        return parameters
    return {name: value for name, value in parameters.items() if name in statement.named_parameters}


def is_view_name(name: str) -> bool:
    """True if a name is that of a view of some query."""
    return _VIEW.fullmatch(name) is not None


def _written(
    _text: str,
    parsed: ParsedQuery,
    tables: Sequence[tuple[str, Columns | None]],
    engine_tables: Sequence[tuple[str, ...]],
    _fine: Sequence[bool],
    functions: Sequence[tuple[str, Type]],
    parameters: Sequence[tuple[str, Type]],
    whole: bool,
) -> Translated:
    known = Known(
        tables=dict(tables),
        engine_tables=frozenset(tuple(part.casefold() for part in name) for name in engine_tables),
        functions=dict(functions),
        parameters=dict(parameters),
    )
    return translated(parsed, known, whole=whole)
