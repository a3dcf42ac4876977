"""Resolves what the table references of one statement read.

managed table                 one snapshot a table, the newest or the one that time travel or its options name, fixed for the whole
                              statement
… of a stream                 its rows and then every change; with TIMESTAMP AS OF now() the newest snapshot as of each batch
… with computed columns       a SELECT over it
table$ro                      its fully compacted part, as a managed table
other system tables           rows that tablestore makes
table_changes('t', 1, 5)      rows that tablestore makes: the changes of snapshots 2 to 5
view                          its query, its names filled up as they were when it was made; or rows of Python
table with a connector        whatever the engine reads under that name
none of these                 the engine's own
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from tablestore.distributed.read import ReadPin, pin_read
from tablestore.environment.boundquery import bind, bind_dialect, selecting
from tablestore.environment.engine import (
    BoundQuery,
    ConnectorRelation,
    ManagedRelation,
    MetadataField,
    NativeRelation,
    QueryRelation,
    Relation,
    RowsRelation,
    SelectList,
    StreamStart,
)
from tablestore.environment.objectpath import MOST_PARTS, ObjectPath
from tablestore.environment.rows.dynamicoptions import connector_options, followed_from, scanned_at
from tablestore.environment.session.objects import ConnectorTable, RowsView, View
from tablestore.environment.session.session import Found, Place, Session, named_files, placing
from tablestore.environment.source import NO_SOURCE, Source
from tablestore.environment.timetravel import time_argument, version_argument
from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.options import SCHEMA_PREFIX
from tablestore.sql.parse.cursor import Cursor
from tablestore.sql.parse.datatype import data_type
from tablestore.sql.query.functions import Called, may_call_others
from tablestore.sql.query.parameters import Parameters, bind_parameters, literal_value, may_have_markers
from tablestore.sql.query.tablereferences import Reference, TimeTravel
from tablestore.sql.query.tokenstream import Tokens
from tablestore.sql.source import NOWHERE, Fragment, Path, Span
from tablestore.sql.sqldialect import SqlDialect
from tablestore.sql.stored.storedquery import check_stored_query
from tablestore.table.read.scan import check_filled
from tablestore.table.system.systemkinds import READ_OPTIMIZED
from tablestore.table.system.systemtable import SystemTable
from tablestore.table.table import Table
from tablestore.types.rowposition import POSITION_COLUMNS
from tablestore.types.typestring import quote_identifier

MOST_VIEWS = 64
_NOW = re.compile(r"(?:now\s*\(\s*\)|current_timestamp(?:\s*\(\s*\))?)", re.IGNORECASE)
# The name of a query in what is written around it.
_QUERY = "_tablestore_query"


@dataclass(slots=True, kw_only=True)
class Relations:
    """The relations of one statement. ``pins``: the snapshot of each table that it reads, by location and branch.

    ``making`` is the view that the query becomes: neither it nor a view below it may read that.
    ``where`` leads from a place in the text that is bound to the place in the source that it comes from, or nowhere.
    ``reads_rows``: not only its columns are asked for, so a materialized table that was not filled yet is refused.
    ``given_places``: which of its relations are given ones, by their names in the text that was bound last.
    ``computed``: how many values the engine has computed to find snapshots.
    ``permanent``: its text is one that a catalog keeps, which names nothing of this session or of its engine.
    ``streams``: a managed table without time travel is a stream, as in streaming mode.
    """

    session: Session
    source: Source = NO_SOURCE
    where: Callable[[Span], Span] = lambda span: span
    parameters: Parameters = ()
    place: Place | None = None
    pins: dict[tuple[str, str], ReadPin] = field(default_factory=dict)
    depth: int = 0
    making: ObjectPath | None = None
    reads_rows: bool = False
    text: str = ""
    dialect: SqlDialect = SqlDialect.SPARK
    given_places: dict[str, int] = field(default_factory=dict)
    computed: int = 0
    permanent: bool = False
    streams: bool = False

    def bind(self, text: str, relations_by_name: Mapping[str, Relation] | None = None) -> BoundQuery:
        """A query with its tables resolved; ``relations_by_name`` are relations by their names in text that is not the user's.

        Raises InvalidInputError, NotFoundError, UnsupportedError.
        """
        self.text, self.given_places, self.dialect = text, {}, SqlDialect.SPARK
        if self.session.restrictions is not None:
            tokens = Tokens(text)
            self.session.restrictions.check_words(len(tokens) + sum(map(len, tokens.hints.values())))
        resolved: list[Relation] = []

        def resolve(reference: Reference) -> Relation | None:
            name = reference.path.parts[0] if len(reference.path.parts) == 1 else ""
            relation = relations_by_name.get(name) if relations_by_name and not self._is_written(reference.path.span) else None
            if relation is None:
                relation = self.resolve(reference)
            else:
                self.given_places[name] = len(resolved)
            if relation is not None:
                resolved.append(relation)
            return relation

        session = self.session
        return self._contained(bind(text, resolve, self.parameters, self._functions(), session.memo))

    def bind_query(self, query: Fragment, text: str | None = None) -> BoundQuery:
        """A query in its own dialect with its tables resolved; ``text``: it, where it stands in another one. Raises as ``bind``."""
        text = query.text if text is None else text
        if query.dialect is SqlDialect.SPARK:
            return self.bind(text)
        session = self.session
        session.check_dialect(query.dialect)
        self.text, self.given_places, self.dialect = text, {}, query.dialect
        is_closed = self.permanent or not session.reads_engine
        return bind_dialect(text, query.dialect, self.resolve, self.parameters, self._functions(), is_closed=is_closed)

    def _functions(self) -> Callable[[Path], Called | None] | None:
        """The names or texts to put in the places of functions; None where the engine finds all of them itself."""
        session = self.session
        overrides = bool(session.functions.called()) and not self.permanent
        if not overrides and not session.memo(may_call_others, self.text):
            return None
        return lambda path: session.function(path, self.place, permanent=self.permanent)

    def bind_around(self, query: Fragment, before: str, behind: str, text: str | None = None) -> BoundQuery:
        """A query of ours (in Spark's words) around one of the user's: ``before (query) behind``, which is in whatever dialect."""
        if query.dialect is SqlDialect.SPARK:
            return self.bind(f"{before}({text or query.text}\n){behind}")
        inner = self.bind_query(query, text)
        relation = QueryRelation(name=_QUERY, query=inner)
        bound = bind(f"{before}{_QUERY}{behind}", lambda _: relation)
        return replace(bound, parameters=inner.parameters)

    def _contained(self, bound: BoundQuery) -> BoundQuery:
        """The query, which in a restricted environment must not reach out of its relations."""
        if self.session.restrictions is not None:
            # Its modules are those of a whole parse, which most sessions leave to the engine.
            from tablestore.environment.restricted.containment import check_contained

            check_contained(bound)
        return bound

    def _is_written(self, span: Span) -> bool:
        """True if a place of the text that is bound is one of the source, and not of what is written around it."""
        return self.source is not NO_SOURCE and self.where(span) != NOWHERE

    def resolve(self, reference: Reference) -> Relation | None:
        """The relation that a reference reads; None for what the engine knows itself."""
        with placing(self.source, self.where(reference.path.span)):
            self._check_not_made(reference)
            target = self._target(reference)
            if reference.call is not None:
                _check_no_options(reference)
                return self._changes(target, reference)
            match target:
                case Table():
                    path = self.session.expand(reference.path, place=self.place)
                    return self._followed(path, target, reference) or self.managed(path, target, self._at(target, reference))
                case SystemTable():
                    return self._system(self.session.expand(reference.path, place=self.place), target, reference)
            if reference.time_travel is not None and target is not None:
                raise UnsupportedError(
                    f"{reference.path} has no snapshots to look back to: only managed tables have", kind="no-time-travel"
                )
            if isinstance(target, ConnectorTable):
                if self.session.restrictions is not None:
                    raise UnsupportedError(
                        f"{reference.path} has a connector of its own, and a restricted environment reads tables of its catalogs "
                        "alone",
                        kind="restricted",
                    )
                self.session.check_access(target)
                return self._connector(replace(target, options=connector_options(target.options, reference.options)))
            _check_no_options(reference)
            match target:
                case View():
                    return self._view(target)
                case RowsView(native=True):
                    return NativeRelation(name=str(target.path), value=target.rows)
                case RowsView():
                    return RowsRelation(name=str(target.path), rows=target.rows)
        return None

    def _target(self, reference: Reference) -> Found | None:
        """The object of a name. One that stands for files (``csv.`/data/x.csv```) is one where this session's own text has it."""
        try:
            return self.session.find(reference.path, place=self.place, permanent=self.permanent)
        except UnsupportedError as error:
            named = named_files(reference.path)
            # A text that is stored is not this session's, and a restricted one reads tables alone.
            is_own = not self.permanent and self.session.reads_engine and self.session.restrictions is None
            if error.kind != "files" or named is None or not is_own:
                raise
        file_format, place = named
        # What Spark takes where nothing is said: texts, without a line of names.
        options = {"format": file_format, "path": place, **({"inferschema": "false"} if file_format == "csv" else {})}
        path = ObjectPath(self.session.catalogs.current, file_format, place)
        return ConnectorTable(path=path, connector="filesystem", options=options, temporary=True)

    def _connector(self, table: ConnectorTable) -> Relation:
        """A table with a connector, with the columns that are computed and those about its rows."""
        plain = connector_relation(table)
        if table.unstored is None:
            return plain
        from tablestore.environment.managed.nonphysical import in_order

        metadata = tuple(
            MetadataField(name=column.name, key=column.metadata, type=data_type(Cursor(column.type_text)))
            for column in table.unstored.columns
            if column.metadata is not None
        )
        # A table without columns of its own has them in front.
        stored = ["*"] if table.schema is None else [quote_identifier(name) for name in table.schema.names]
        columns = [
            column
            if isinstance(column, str)
            else f"{column.expression} AS {quote_identifier(column.name)}"
            if column.expression is not None
            else quote_identifier(column.name)
            for column in in_order(stored, table.unstored)
            if table.schema is not None or isinstance(column, str) or column.expression is not None
        ]
        text = f"SELECT {', '.join(columns)} FROM {table.path.quoted}"
        return QueryRelation(name=plain.name, query=bind(text, lambda _: replace(plain, metadata=metadata)))

    def _followed(self, path: ObjectPath, table: Table, reference: Reference) -> Relation | None:
        """A managed table as a stream, or as it is when a stream looks rows up in it; None where one snapshot of it is read."""
        if not self.streams:
            return None
        if (travel := reference.time_travel) is not None:
            is_now = travel.kind == "timestamp" and _NOW.fullmatch(travel.expression.text.strip()) is not None
            return self.managed(path, table, at_each_batch=True) if is_now and not reference.options else None
        options = reference.options
        with placing(self.source, self.where(Span(options[0].span.start, options[-1].span.end) if options else reference.span)):
            start = followed_from(table.context, str(reference.path), options)
        return None if start is None else self.managed(path, table, follows=start)

    def managed(
        self,
        path: ObjectPath,
        table: Table,
        at: Mapping[str, Any] | None = None,
        *,
        positions: bool = False,
        follows: StreamStart | None = None,
        at_each_batch: bool = False,
    ) -> Relation:
        """A managed table with all its columns; ``at``: the snapshot (None: the newest); ``positions``: also those that say where a
        row lies; ``follows`` and ``at_each_batch`` as of ManagedRelation."""
        relation = self._stored(path, table, at)
        if not isinstance(relation, ManagedRelation):
            return relation
        relation = replace(relation, positions=positions, follows=follows, at_each_batch=at_each_batch)
        schema = relation.schema
        if not any(key.startswith(SCHEMA_PREFIX) for key in schema.options):
            return relation
        from tablestore.environment.managed.nonphysical import in_order, mentions, read_unstored, refused_column
        from tablestore.sql.stored.storedexpression import check_expressions

        unstored = read_unstored(schema.options, schema.field_names)
        if not unstored.computed:
            return relation
        texts = {column.name: column.expression or "" for column in unstored.computed}
        checked = check_expressions(tuple(schema.field_names), tuple(texts.items()))
        refused = {name: refused_column(path.plain.quoted, name, one.refusal) for name, one in checked.items() if one.refusal}
        columns: dict[str, str] = {}
        for column in in_order(schema.field_names, unstored):
            if isinstance(column, str):
                columns[column] = quote_identifier(column)
            elif column.expression is not None:
                text = "NULL" if column.name in refused else checked[column.name].text
                columns[column.name] = f"{text} AS {quote_identifier(column.name)}"
        columns |= {name: quote_identifier(name) for name in POSITION_COLUMNS if positions}
        selected = SelectList(columns=columns, table=path.quoted, refused=refused)
        selected_relation = selecting(selected, relation)
        # Other writers may make a computed column of another one, which then cannot be left out.
        alone = not any(mentions(text, other) for name, text in texts.items() for other in texts if other != name)
        if alone:
            return selected_relation
        selected.check_used(columns)
        return replace(selected_relation, selected=None)

    def _stored(self, path: ObjectPath, table: Table, at: Mapping[str, Any] | None) -> Relation:
        if not at:
            pin = self.pin(path, table)
            if self.reads_rows:
                check_filled(pin.snapshot_id, table.table_schema, str(path))
            return ManagedRelation(name=str(path), table=table, pin=pin)
        spec = self.session.spec(path, table)
        if "tag" in at:
            scan = table.scan(tag=at["tag"])
            assert scan.snapshot_id is not None
            if table.context.snapshots.find(scan.snapshot_id) is None:
                # A tag outlives its snapshot: then only its own file leads to the rows.
                return RowsRelation(name=str(path), rows=scan)
            at = {"snapshot_id": scan.snapshot_id}
        return ManagedRelation(name=str(path), table=table, pin=pin_read(table, spec, **at))

    def pin(self, path: ObjectPath, table: Table) -> ReadPin:
        """The newest snapshot of a table, the same one through the whole statement."""
        place = (table.location, table.branch_name)
        if place not in self.pins:
            self.pins[place] = pin_read(table, self.session.spec(path, table))
        return self.pins[place]

    def _system(self, path: ObjectPath, table: SystemTable, reference: Reference) -> Relation:
        base = table.base
        at = self._at(base, reference) if isinstance(base, Table) else {}
        if table.kind == READ_OPTIMIZED and isinstance(base, Table):
            relation = self._stored(path, base, at)
            if isinstance(relation, ManagedRelation):
                return replace(relation, pin=replace(relation.pin, read_optimised=True))
        return RowsRelation(name=str(path), rows=table.scan(**at))

    def _view(self, view: View) -> Relation:
        if self.depth >= MOST_VIEWS:
            raise InvalidInputError(f"views are nested more than {MOST_VIEWS} levels deep, or read themselves", kind="limit")
        inner = Relations(
            session=self.session,
            place=(view.catalog, view.database),
            pins=self.pins,
            depth=self.depth + 1,
            making=self.making,
            reads_rows=self.reads_rows,
            permanent=self.permanent or not view.temporary,
            streams=self.streams,
        )
        if not view.temporary:
            self._check_kept(view)
        columns = ", ".join(map(quote_identifier, view.columns))
        query = Fragment(view.query, dialect=view.dialect)
        bound = inner.bind_around(query, "SELECT * FROM ", f" AS `view` ({columns})") if columns else inner.bind_query(query)
        return QueryRelation(name=str(view.path), query=bound)

    def _check_kept(self, view: View) -> None:
        """Raises UnsupportedError or InvalidInputError for a permanent view whose query is not to be run here."""
        if self.session.restrictions is not None:
            raise UnsupportedError(
                f"{view.path} is a view of the catalog, whose query anybody may have written, and a restricted environment reads "
                "tables of its catalogs alone",
                kind="restricted",
            )
        try:
            check_stored_query(view.query, view.dialect)
        except TablestoreError as error:
            raise type(error)(f"the view {view.path}: {error.message}", kind=error.kind) from error

    def _check_not_made(self, reference: Reference) -> None:
        parts = len(reference.path.parts)
        if self.making is None or parts > MOST_PARTS or self.session.expand(reference.path, place=self.place) != self.making:
            return
        raise InvalidInputError(
            f"the view {self.making} would read itself; give it another name, or write the query that it has now in place of its "
            "name",
            kind="recursive-view",
        )

    def _changes(self, target: object, reference: Reference) -> Relation:
        if not isinstance(target, Table):
            raise InvalidInputError(f"table_changes: {reference.path} is not a managed table", kind="not-managed")
        assert reference.call is not None
        bounds = [self._value(fragment) for fragment in reference.call[1:]]
        if not 1 <= len(bounds) <= 2 or not all(isinstance(bound, int) and not isinstance(bound, bool) for bound in bounds):
            raise InvalidInputError(
                "expected table_changes('table', from_snapshot [, to_snapshot]) with snapshot ids as whole numbers; the changes "
                "behind from_snapshot are read, 0 for all of them",
                kind="invalid-argument",
            )
        return RowsRelation(name=str(reference.path), rows=target.changes(*bounds))

    def _at(self, table: Table, reference: Reference) -> dict[str, Any]:
        """The snapshot that a reference names, as :meth:`_moment`; empty for the newest."""
        options, travel = reference.options, reference.time_travel
        if not options:
            return {} if travel is None else self._moment(table, travel)
        with placing(self.source, self.where(Span(options[0].span.start, options[-1].span.end))):
            scanned = scanned_at(table.context, str(reference.path), options)
            if travel is not None and scanned.chosen is not None:
                raise InvalidInputError(
                    f"{reference.path}: {scanned.chosen} and {travel.kind.upper()} AS OF each say which snapshot is read; give "
                    "one of them",
                    kind="invalid-option",
                )
        return dict(scanned.at) if travel is None else self._moment(table, travel)

    def _moment(self, table: Table, travel: TimeTravel) -> dict[str, Any]:
        """``snapshot_id``, ``timestamp`` in milliseconds or ``tag``."""
        value = self._value(travel.expression)
        with placing(self.source, self.where(travel.expression.span)):
            if travel.kind == "version":
                return version_argument(table, value)
            return {"timestamp": time_argument(value)}

    def _value(self, fragment: Fragment) -> Any:
        value = literal_value(self.text, replace(fragment, dialect=self.dialect), self.parameters)
        if self.dialect is not SqlDialect.SPARK and (value is None or (isinstance(value, str) and "\\" in value)):
            raise InvalidInputError(
                self.source.mark(
                    f"expected a number, a text or a parameter, found {fragment.text or 'none'!r:.80}", self.where(fragment.span)
                ),
                kind="invalid-argument",
            )
        if value is not None or self.session.engine is None:
            return value
        if self.session.restrictions is not None:
            self.session.restrictions.check_values(self.computed)
        self.computed += 1
        try:
            value = self._computed(fragment.text)
            if isinstance(value, date) and getattr(value, "tzinfo", None) is None:
                # A day, or a TIMESTAMP_NTZ: the moment that clocks of the session's zone show it.
                value = self._computed(f"CAST(({fragment.text}) AS TIMESTAMP)")
        except (InvalidInputError, UnsupportedError) as error:
            if error.kind in ("restricted", "limit-exceeded"):
                raise
            # The place that the engine names is one in another text.
            cause = f" ({error.message.splitlines()[0]})" if isinstance(error, UnsupportedError) else ""
            raise InvalidInputError(
                self.source.mark(
                    f"expected a value, or an expression that reads no table, found {fragment.text or 'none'!r:.80}{cause}; a name "
                    "stands between quotes, and a parameter needs a value",
                    self.where(fragment.span),
                ),
                kind="invalid-argument",
            ) from error
        return value

    def _computed(self, text: str) -> Any:
        """The value of an expression by the engine; None if there are several."""
        assert self.session.engine is not None, "without one only literals are values"
        # No table: an engine's own may be a file of the host.
        bound = self._contained(bind(f"SELECT {text} AS `value`", _no_table))
        rows = self.session.engine.read(bound).read_all()
        return rows.column(0)[0].as_py() if rows.num_rows == 1 else None


def _no_table(reference: Reference) -> None:
    raise InvalidInputError(f"{reference.path}: a table in a value", kind="invalid-argument")


def _check_no_options(reference: Reference) -> None:
    if reference.options:
        name = "table_changes" if reference.call is not None else str(reference.path)
        raise UnsupportedError(
            f"{name} takes no OPTIONS: they are for managed tables and tables with a connector; a view has those that stand in its "
            "query",
            kind="unsupported",
        )


def connector_relation(table: ConnectorTable) -> ConnectorRelation:
    """A table with a connector, as an engine knows it: its stored columns."""
    return ConnectorRelation(
        name=str(table.path),
        connector=table.connector,
        options=table.options,
        schema=table.schema,
        partition_by=table.partition_by,
    )


def by_name(source: Source, parameters: Parameters) -> Parameters:
    """Parameters by name, those by place as ``_1``, ``_2``, …: a statement that is cut and put together anew keeps them so.

    Raises InvalidInputError if they do not match the text.
    """
    if not parameters and not may_have_markers(source.text):
        return parameters
    _, named = bind_parameters(source.text, Tokens(source.text), parameters)
    return named
