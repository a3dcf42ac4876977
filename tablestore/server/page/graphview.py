"""Views the graph of a warehouse: tables, the views over them, the materialized tables made from them, and each of these."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tablestore.environment.objectpath import ObjectPath, expand
from tablestore.environment.session.catalogs import DEFAULT_CATALOG
from tablestore.environment.session.objects import View
from tablestore.errors import TablestoreError
from tablestore.materialized.expansion import sources_of
from tablestore.materialized.figures.freshnessfigures import FreshnessFigures, PastRefresh
from tablestore.materialized.figures.refreshplan import RefreshPlan
from tablestore.materialized.figures.tablegraph import Freshness, GraphNode, TableGraph, lay_out_graph
from tablestore.materialized.materializedtable import MaterializedTable
from tablestore.server.page.pagecontext import PageContext
from tablestore.server.page.tableview import TableHead, head_of
from tablestore.sql.query.tablereferences import references_in
from tablestore.sql.query.tokenstream import Tokens
from tablestore.tableenvironment import TableEnvironment

MOST_NODES = 300
MOST_REFRESHES = 60
HIDDEN = "a table that you do not see"


@dataclass(frozen=True, slots=True, kw_only=True)
class MaterializedView:
    """The page of one materialized table; ``history`` newest first."""

    head: TableHead
    definition: MaterializedTable
    figures: FreshnessFigures | None
    freshness: Freshness
    plan: RefreshPlan
    sources: tuple[GraphNode, ...]
    readers: tuple[GraphNode, ...]
    history: tuple[PastRefresh, ...]


def view_graph(context: PageContext) -> TableGraph:
    """The graph of what the caller sees."""
    with TableEnvironment.create(context.catalog) as environment:
        return _graph(context, environment)


def view_materialized(context: PageContext) -> MaterializedView:
    """The page of the materialized table of the path. Raises NotFoundError, InvalidInputError for another table."""
    table, database, name = context.table(), context.names["database"], context.names["table"]
    with TableEnvironment.create(context.catalog) as environment:
        path = f"`{database}`.`{name}`"
        definition = environment.materialized_table(path)
        graph = _graph(context, environment)
        key = f"{database}.{name}"
        node = next((one for one in graph.nodes if one.key == key), None)
        into = {source for source, target in graph.edges if target == key}
        out = {target for source, target in graph.edges if source == key}
        return MaterializedView(
            head=head_of(context, table),
            definition=definition,
            figures=node.figures if node else None,
            freshness=node.freshness if node else Freshness.SOURCE,
            plan=environment.refresh_plan(path),
            sources=tuple(one for one in graph.nodes if one.key in into),
            readers=tuple(one for one in graph.nodes if one.key in out),
            history=environment.refresh_history(path)[:MOST_REFRESHES],
        )


def _graph(context: PageContext, environment: TableEnvironment) -> TableGraph:
    figures = {f"{one.table.database}.{one.table.name}": one for one in environment.freshness()}
    figures = {key: one for key, one in figures.items() if context.sees(one.table.database, one.table.name)}
    kinds: dict[str, str] = dict.fromkeys(figures, "materialized")
    edges: list[tuple[str, str]] = []
    for key, one in figures.items():
        edges += [(source, key) for source in _sources(context, environment, one.table)]
    for key, view in _views(context):
        kinds[key] = "view"
        edges += [(source, key) for source in _view_sources(context, view)]
    return lay_out_graph(kinds, edges, figures, most=MOST_NODES, hidden=HIDDEN)


def _key(context: PageContext, path: ObjectPath) -> str:
    """The key of a source; what the caller does not see has no name."""
    return f"{path.database}.{path.name}" if context.sees(path.database, path.name) else HIDDEN


def _sources(context: PageContext, environment: TableEnvironment, path: ObjectPath) -> Sequence[str]:
    try:
        definition = environment.materialized_table(f"`{path.database}`.`{path.name}`")
        return [_key(context, source) for source in sources_of(definition.query)]
    except TablestoreError:
        # Its own page says what is wrong with it.
        return ()


def _views(context: PageContext) -> Iterator[tuple[str, View]]:
    for database in context.databases():
        for name in context.kept(database):
            try:
                kept = context.kept_object(database, name)
            except TablestoreError:
                continue
            if isinstance(kept, View):
                yield f"{database}.{name}", kept


def _view_sources(context: PageContext, view: View) -> Sequence[str]:
    try:
        references = references_in(Tokens(view.query, view.dialect))
        paths = [expand(one.path, DEFAULT_CATALOG, view.database).plain for one in references]
    except TablestoreError:
        return ()
    return [_key(context, path) for path in paths if path.catalog == DEFAULT_CATALOG]
