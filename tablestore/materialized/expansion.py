"""Expands the query of a materialized table: finds the tables that it reads, and fills up all names.

    SELECT id FROM orders            SELECT id FROM `lake`.`shop`.`orders`

The table outlives the session, so only what outlives it too may be read: permanent tables of catalogs. Temporary objects, tables
with a connector, views and what the query engine itself has are refused, each with the way out. A table does
not read itself, nor one that is made from it.
"""

from dataclasses import dataclass

from tablestore.environment.objectpath import MOST_PARTS, ObjectPath, expand
from tablestore.environment.session.objects import ConnectorTable, InformationView, TemporaryTable, View, kind_of
from tablestore.environment.session.session import Session, placing
from tablestore.environment.source import Source
from tablestore.errors import InvalidInputError, TablestoreError, UnsupportedError
from tablestore.materialized.materializedtable import definition_of
from tablestore.options import is_materialized
from tablestore.sql.query.functions import function_edits
from tablestore.sql.query.tablereferences import Reference, references_in
from tablestore.sql.query.tokenstream import Tokens, tokens_of
from tablestore.sql.source import NOWHERE, Edit, Fragment, Span, apply_edits
from tablestore.sql.sqldialect import SqlDialect
from tablestore.table.system.systemtable import SystemTable
from tablestore.table.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpandedQuery:
    """A query whose names are filled up. ``text`` is ``original`` with whole names; ``sources`` are the tables that it reads, in
    order of their place."""

    original: str
    text: str
    sources: tuple[ObjectPath, ...]


def expand_query(session: Session, query: Fragment, source: Source, target: ObjectPath) -> ExpandedQuery:
    """Fills up the names of the query of the table ``target``. Raises InvalidInputError, UnsupportedError, NotFoundError."""
    text = _plain(query.text)
    start = query.span.start + (len(query.text) - len(query.text.lstrip())) if query.span != NOWHERE else 0

    def place(span: Span) -> Span:
        return Span(span.start + start, span.end + start) if query.span != NOWHERE else NOWHERE

    tokens = Tokens(text, query.dialect)
    for resolve, owner in ((session.temporary_function, "a temporary one of this session"), (session.function, "one of a catalog")):
        for edit in function_edits(tokens, resolve):
            name = text[edit.span.start : edit.span.end].rstrip("( ")
            raise UnsupportedError(
                source.mark(
                    f"the function {name} is {owner}, and a materialized table outlives what it is now: write its expression into "
                    "the query, or use a function of the engine",
                    place(edit.span),
                ),
                kind="temporary-object",
            )
    edits, sources = [], []
    for reference in references_in(tokens):
        path = _source(session, reference, source, place(reference.span))
        edits.append(Edit(span=reference.span, text=_quoted(path, query.dialect)))
        sources.append(path.plain)
    paths = tuple(dict.fromkeys(sources))
    _check_no_cycle(session, paths, target, source, place(Span(0, len(text))))
    return ExpandedQuery(original=text, text=apply_edits(text, edits, str), sources=paths)


def check_lasts(session: Session, path: ObjectPath) -> None:
    """Raises UnsupportedError for a table of a catalog that ends with this process: whoever refreshes it would not find it."""
    if path.catalog in session.catalogs.names() and not session.catalogs.get(path.catalog).serializable:
        raise UnsupportedError(
            f"{path}: the catalog {path.catalog} lies in the memory of this process and ends with it, and a materialized table "
            "outlives the session: take a catalog whose warehouse stays, a directory or a URL such as s3://bucket/path (metastore "
            "= filesystem or jdbc)",
            kind="catalog-in-memory",
        )


def check_whole(relation: object) -> None:
    """Raises UnsupportedError for a table of which rules of a catalog service hide something from the caller: whoever reads the
    materialized table gets its rows, and for others it would lack some."""
    table = relation.base if isinstance(relation, SystemTable) else relation
    if isinstance(table, Table):
        table.context.check_sees_all("a materialized table that reads it")


def fill_names(session: Session, query: Fragment) -> str:
    """A query with whole names, whatever they stand for. Raises InvalidInputError for what is no query."""
    text = _plain(query.text)
    edits = [
        Edit(span=reference.span, text=_quoted(session.expand(reference.path), query.dialect))
        for reference in references_in(Tokens(text, query.dialect))
    ]
    return apply_edits(text, edits, str)


def _quoted(path: ObjectPath, dialect: SqlDialect) -> str:
    if dialect is SqlDialect.SPARK:
        return path.quoted
    return ".".join('"' + part.replace('"', '""') + '"' for part in (path.catalog, path.database, path.full_name))


def sources_of(expanded: Fragment) -> tuple[ObjectPath, ...]:
    """The tables that an expanded query reads. Raises InvalidInputError for what is none."""
    paths = [reference.path for reference in references_in(tokens_of(expanded))]
    return tuple(dict.fromkeys(expand(path, *path.parts[:2]).plain for path in paths if len(path.parts) == MOST_PARTS))


def _plain(query: str) -> str:
    return query.strip().rstrip(";").rstrip()


def _source(session: Session, reference: Reference, source: Source, place: Span) -> ObjectPath:
    path = session.expand(reference.path)
    if reference.call is not None:
        raise UnsupportedError(
            source.mark(
                "table_changes gives changes between two snapshots, and the query of a materialized table reads tables as they "
                "are: name the table itself",
                place,
            ),
            kind="materialized-source",
        )
    if reference.options:
        raise UnsupportedError(
            source.mark(
                f"OPTIONS are for one statement, and the query of a materialized table is run again and again: {reference.path} "
                "VERSION AS OF … names a snapshot that it always reads",
                place,
            ),
            kind="materialized-source",
        )
    hiding = session.objects.temporary(path.plain)
    if hiding is not None:
        kind = "table" if isinstance(hiding, TemporaryTable) else kind_of(hiding)
        raise UnsupportedError(
            source.mark(
                f"{path} is a temporary {kind} of this session, and a materialized table outlives it: read permanent tables, and "
                "write the query of a view into the query",
                place,
            ),
            kind="temporary-object",
        )
    with placing(source, place):
        relation = session.find(reference.path)
    if isinstance(relation, ConnectorTable | View):
        what, way_out = (
            ("a view", "write its query into the query")
            if isinstance(relation, View)
            else ("a table with a connector", "INSERT its rows into a managed table, and read that")
        )
        raise UnsupportedError(
            source.mark(f"{path} is {what}, whose changes nobody knows: {way_out}", place), kind="materialized-source"
        )
    if relation is None:
        raise UnsupportedError(
            source.mark(
                f"{reference.path} is a table of the query engine itself, which only this session knows: INSERT its rows into a "
                "managed table, and read that",
                place,
            ),
            kind="materialized-source",
        )
    if isinstance(relation, InformationView):
        raise UnsupportedError(
            source.mark(f"{path} describes a catalog as it is, and is no table that a materialized table is made from", place),
            kind="materialized-source",
        )
    with placing(source, place):
        check_lasts(session, path)
        check_whole(relation)
    return path


def _check_no_cycle(session: Session, sources: tuple[ObjectPath, ...], target: ObjectPath, source: Source, place: Span) -> None:
    seen: set[ObjectPath] = set()
    waiting: list[tuple[ObjectPath, ...]] = [(path,) for path in sources]
    while waiting:
        chain = waiting.pop()
        if chain[-1] == target:
            shown = " reads ".join(str(path) for path in (target, *chain))
            raise InvalidInputError(
                source.mark(
                    f"a materialized table cannot be made from itself: {shown}; take one of them out of the circle, or make it a "
                    "plain table",
                    place,
                ),
                kind="materialized-cycle",
            )
        if chain[-1] not in seen:
            seen.add(chain[-1])
            waiting += [(*chain, below) for below in _below(session, chain[-1])]


def _below(session: Session, path: ObjectPath) -> tuple[ObjectPath, ...]:
    try:
        table = session.open_table(path)
        if isinstance(table, Table) and is_materialized(table.options()):
            return sources_of(definition_of(table.table_schema).query)
    except TablestoreError:
        # A table that cannot be read is refused when it is read.
        pass
    return ()
