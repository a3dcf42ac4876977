"""Writes the pages of a warehouse as a folder of files, with links from one to another, and to nowhere else.

Of what grows without end the newest is written: ``MOST_TABLES`` tables, ``HISTORY_PAGES`` pages of the history of each, and the
changes of its ``CHANGES`` newest commits. A page that cannot be shown is written as the page that says why.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from tablestore.clock import Clock, SystemClock
from tablestore.errors import StorageError, TablestoreError
from tablestore.options import is_materialized
from tablestore.server.access.roles import Grant, Principal, Role
from tablestore.server.page.definitionview import view_definition, view_readers
from tablestore.server.page.graphview import view_graph, view_materialized
from tablestore.server.page.historyview import COMMITS_A_PAGE, view_changes, view_history
from tablestore.server.page.jobsview import view_jobs
from tablestore.server.page.keptview import view_kept
from tablestore.server.page.pagecontext import PageContext, branch_table
from tablestore.server.page.pagelinks import (
    GRAPH_PAGE,
    JOBS_PAGE,
    SiteLinks,
    changes_page,
    home_page,
    materialized_page,
    table_page,
    view_page,
)
from tablestore.server.page.pageroutes import PAGE_ROUTES, View, error_view
from tablestore.server.page.rendering import ASSETS, PageTemplates, asset
from tablestore.server.page.storageview import view_storage
from tablestore.server.page.tableview import view_table
from tablestore.server.page.warehouseview import TABLES_A_PAGE, view_warehouse
from tablestore.table.catalog import Catalog
from tablestore.table.table import Table

MOST_TABLES = 1_000
HISTORY_PAGES = 4
CHANGES = 20
_TEMPLATES: Mapping[View, str] = {route.view: route.template for route in reversed(PAGE_ROUTES) if route.template is not None}
_SECTIONS: Mapping[str, View] = {
    "overview": view_table,
    "storage": view_storage,
    "definition": view_definition,
    "readers": view_readers,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteReport:
    """The site that was written. ``left_out``: tables and views beyond the number that is written; ``unreadable``: pages that say
    why they show nothing."""

    folder: str
    pages: int
    left_out: int
    unreadable: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _SitePage:
    path: str
    view: View
    names: Mapping[str, str]
    query: Mapping[str, str]


def write_site(catalog: Catalog, folder: Path, *, clock: Clock | None = None) -> SiteReport:
    """Writes the pages of all tables of a catalog into a folder, which is made; files of that name are replaced.

    Raises StorageError where the folder cannot be written, and what listing the tables raises.
    """
    clock = clock or SystemClock()
    whole = Principal(name="", grants=(Grant(Role.ADMIN),))
    context = PageContext(catalog=catalog, principal=whole, now_ms=clock.now_ms())
    every = [
        *((database, name, False) for database in context.databases() for name in context.tables(database)),
        *((database, name, True) for database in context.databases() for name in context.kept(database)),
    ]
    pages = list(_pages(context, every))
    templates, known, unreadable = PageTemplates(), frozenset(page.path for page in pages), []
    try:
        for page in pages:
            links, request = SiteLinks(page.path, known), replace(context, names=page.names, query=page.query)
            try:
                text = templates.render(_TEMPLATES[page.view], page.view(request), links, now_ms=context.now_ms)
            except TablestoreError as error:
                text = templates.render("error.html", error_view(error, page.names), links, now_ms=context.now_ms)
                unreadable.append(page.path)
            _write(folder / page.path, text.encode())
        for name in ASSETS:
            _write(folder / "static" / name, asset(name))
    except OSError as error:
        raise StorageError(f"cannot write the site into {folder}: {error.strerror}", kind="file") from error
    return SiteReport(folder=str(folder), pages=len(pages), left_out=max(len(every) - MOST_TABLES, 0), unreadable=tuple(unreadable))


def _pages(context: PageContext, every: list[tuple[str, str, bool]]) -> Iterator[_SitePage]:
    for number in range(1, max(-(-len(every) // TABLES_A_PAGE), 1) + 1):
        yield _SitePage(path=home_page(number), view=view_warehouse, names={}, query={"page": str(number)})
    yield _SitePage(path=GRAPH_PAGE, view=view_graph, names={}, query={})
    yield _SitePage(path=JOBS_PAGE, view=view_jobs, names={}, query={})
    for database, name, kept in every[:MOST_TABLES]:
        if kept:
            yield _SitePage(path=view_page(database, name), view=view_kept, names={"database": database, "view": name}, query={})
            continue
        yield from _table_pages(context, database, name)


def _table_pages(context: PageContext, database: str, name: str) -> Iterator[_SitePage]:
    names = {"database": database, "table": name}
    for section, view in _SECTIONS.items():
        yield _SitePage(path=table_page(database, name, section), view=view, names=names, query={})
    yield _SitePage(path=table_page(database, name, "history"), view=view_history, names=names, query={})
    try:
        table = context.catalog.table(f"{database}.{name}")
        if not isinstance(table, Table):
            return
        ids = tuple(reversed(table.context.snapshots.live_ids()))
        branches = [branch.name for branch in table.branches()] if table.branch_name == "main" else []
    except TablestoreError:
        # Its pages say what is wrong with it.
        return
    for number in range(2, min(-(-len(ids) // COMMITS_A_PAGE), HISTORY_PAGES) + 1):
        path = table_page(database, name, "history", number)
        yield _SitePage(path=path, view=view_history, names=names, query={"page": str(number)})
    for snapshot in ids[:CHANGES]:
        changed = {**names, "snapshot": str(snapshot)}
        yield _SitePage(path=changes_page(database, name, snapshot), view=view_changes, names=changed, query={})
    if is_materialized(table.options()):
        yield _SitePage(path=materialized_page(database, name), view=view_materialized, names=names, query={})
    for branch in branches:
        yield from _table_pages(context, database, branch_table(name, branch))


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
