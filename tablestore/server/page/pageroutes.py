"""The one table of page routes: each with its view, its template, and the role that it takes; and the service that answers them.

Every page shows only what its caller sees: what a path names is looked up through the caller's eyes, so a table that it does not
see answers as one that is not there. An application mounts the table, which knows nothing of HTTP beyond status and headers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from tablestore.clock import Clock, SystemClock
from tablestore.errors import InvalidInputError, NotFoundError, TablestoreError, UnsupportedError
from tablestore.server.access.roles import CATALOG, Principal, Resource, Role
from tablestore.server.page.definitionview import view_definition, view_readers
from tablestore.server.page.graphview import view_graph, view_materialized
from tablestore.server.page.historyview import view_changes, view_history
from tablestore.server.page.jobsview import server_sent_event, survey_refreshes, view_jobs, visible_view
from tablestore.server.page.keptview import view_kept
from tablestore.server.page.pagecontext import AccessLine, JobLine, PageContext
from tablestore.server.page.pagelinks import LiveLinks
from tablestore.server.page.queryrunner import QueryRunner
from tablestore.server.page.queryview import Download, download_query, view_query
from tablestore.server.page.rendering import ASSETS, POLICY, PageTemplates, asset
from tablestore.server.page.storageview import view_storage
from tablestore.server.page.tableview import view_table
from tablestore.server.page.warehousesurvey import WarehouseSurvey
from tablestore.server.page.warehouseview import TableLine, view_warehouse
from tablestore.table.catalog import Catalog
from tablestore.table.system.systemkinds import SEPARATOR

View = Callable[[PageContext], object]
"""Computes the value that a page shows."""
HTML = "text/html; charset=utf-8"
EVENT_STREAM = "text/event-stream; charset=utf-8"


class PageScope(Enum):
    """The object of a route's role, by the parameters of its path."""

    CATALOG = "catalog"
    OBJECT = "object"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRoute:
    """A route of a page. ``need`` None: it takes no role, and shows what the caller sees. ``template`` None: no page but a file."""

    path: str
    view: View
    template: str | None
    scope: PageScope = PageScope.CATALOG
    need: Role | None = None
    method: str = "GET"

    @property
    def name(self) -> str:
        """The name of what it shows, for logs."""
        return getattr(self.view, "__name__", self.path)

    def resource(self, names: Mapping[str, str]) -> Resource:
        """The object of the role, by the parameters of the path."""
        if self.scope is PageScope.CATALOG:
            return CATALOG
        name = next(names[key] for key in ("table", "view") if key in names)
        # A role on a table is one on its branches.
        return Resource(names["database"], name.partition(SEPARATOR)[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """A file that pages need."""

    content_type: str
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event of a stream."""

    body: bytes


def view_asset(context: PageContext) -> Asset:
    """A file that pages need. Raises NotFoundError."""
    name = context.names["name"]
    if name not in ASSETS:
        raise NotFoundError(f"there is no file {name:.80}", kind="no-such-page")
    return Asset(content_type=ASSETS[name], body=asset(name))


_TABLE = "/tables/{database}/{table}"


def _of_table(path: str, view: View, template: str) -> PageRoute:
    return PageRoute(path=path, view=view, template=template, scope=PageScope.OBJECT, need=Role.READER)


PAGE_ROUTES = (
    PageRoute(path="", view=view_warehouse, template="warehouse.html"),
    PageRoute(path="/graph", view=view_graph, template="graph.html"),
    PageRoute(path="/jobs", view=view_jobs, template="jobs.html"),
    PageRoute(path="/jobs/events", view=view_jobs, template="jobrows.html"),
    PageRoute(path="/query", view=view_query, template="query.html"),
    PageRoute(path="/query/result", view=download_query, template=None),
    PageRoute(path="/static/{name}", view=view_asset, template=None),
    _of_table(_TABLE, view_table, "table.html"),
    _of_table(f"{_TABLE}/storage", view_storage, "storage.html"),
    _of_table(f"{_TABLE}/history", view_history, "history.html"),
    _of_table(f"{_TABLE}/history/{{snapshot}}", view_changes, "changes.html"),
    _of_table(f"{_TABLE}/definition", view_definition, "definition.html"),
    _of_table(f"{_TABLE}/readers", view_readers, "readers.html"),
    _of_table("/materialized/{database}/{table}", view_materialized, "materialized.html"),
    _of_table("/views/{database}/{view}", view_kept, "view.html"),
)
"""The routes, below the prefix of the pages."""
EVENTS = next(route for route in PAGE_ROUTES if route.path == "/jobs/events")


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAnswer:
    """The answer to a request. ``headers`` are those that a page needs to be safe, whatever else is set."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorView:
    """The page of an error. ``database`` and ``table``: the table that cannot be read, whose other pages may be."""

    status: int
    title: str
    message: str
    database: str = ""
    table: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageService:
    """Answers requests for pages of one catalog. Threads may share it; the arguments are those of :class:`PageContext`."""

    catalog: Catalog
    clock: Clock = field(default_factory=SystemClock)
    jobs: Callable[[], Sequence[JobLine]] = tuple
    grants: Callable[[Resource], Sequence[AccessLine]] | None = None
    runner: QueryRunner | None = None
    query_role: Role = Role.READER
    prefix: str = "/page"
    survey: WarehouseSurvey[TableLine] = field(default_factory=WarehouseSurvey)
    templates: PageTemplates = field(default_factory=PageTemplates)

    def answer(self, route: PageRoute, principal: Principal, names: Mapping[str, str], query: Mapping[str, str]) -> PageAnswer:
        """The page of a route, or the page that says why there is none. ``names`` are decoded; of ``query`` the last value counts.
        Raises nothing that the world is to blame for."""
        context = self._context(principal, names, query)
        try:
            if route.need is not None and not principal.may(route.need, route.resource(names)):
                raise NotFoundError(f"there is no table or view {str(route.resource(names))[:300]}", kind="no-such-table")
            view = route.view(context)
            if route.template is None:
                return _file(view)
            text = self._rendered(route.template, view, context)
        except TablestoreError as error:
            view = error_view(error, names)
            return PageAnswer(
                status=view.status,
                content_type=HTML,
                body=self._rendered("error.html", view, context).encode(),
                headers=PAGE_HEADERS,
            )
        if route is EVENTS:
            return PageAnswer(status=200, content_type=EVENT_STREAM, body=server_sent_event("jobs", text), headers=PAGE_HEADERS)
        return PageAnswer(status=200, content_type=HTML, body=text.encode(), headers=PAGE_HEADERS)

    def job_events(self, principals: Sequence[Principal]) -> list[bytes]:
        """An event with the jobs for each of these callers. The tables are looked at once for all."""
        contexts = [self._context(principal, {}, {}) for principal in principals]
        refreshes = survey_refreshes(self.catalog, lambda *place: any(context.sees(*place) for context in contexts))
        views = [(context, visible_view(context, refreshes)) for context in contexts]
        return [server_sent_event("jobs", self._rendered("jobrows.html", view, context)) for context, view in views]

    def _context(self, principal: Principal, names: Mapping[str, str], query: Mapping[str, str]) -> PageContext:
        return PageContext(
            catalog=self.catalog,
            principal=principal,
            now_ms=self.clock.now_ms(),
            jobs=self.jobs,
            grants=self.grants,
            runner=self.runner,
            query_role=self.query_role,
            survey=self.survey,
            names=names,
            query=query,
        )

    def _rendered(self, template: str, view: object, context: PageContext) -> str:
        links = LiveLinks(self.prefix, context.may_query())
        return self.templates.render(template, view, links, now_ms=context.now_ms, caller=context.principal.name)


PAGE_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}


def _file(view: object) -> PageAnswer:
    match view:
        case Download():
            named = {"Content-Disposition": f'attachment; filename="{view.file_name}"'}
            return PageAnswer(status=200, content_type=view.content_type, body=view.body, headers={**PAGE_HEADERS, **named})
        case Asset():
            kept = {**PAGE_HEADERS, "Cache-Control": "max-age=3600"}
            return PageAnswer(status=200, content_type=view.content_type, body=view.body, headers=kept)
    raise AssertionError(f"{type(view).__name__} is no file")


def error_view(error: TablestoreError, names: Mapping[str, str]) -> ErrorView:
    """The page that says why there is no other."""
    match error:
        case NotFoundError():
            return ErrorView(status=404, title="Not here", message=error.message)
        case UnsupportedError(kind="no-query"):
            return ErrorView(status=403, title="Not for you", message=error.message)
        case UnsupportedError() | InvalidInputError():
            return ErrorView(status=400, title="That cannot be shown", message=error.message)
    table = names.get("table", "")
    return ErrorView(status=503, title="It cannot be read", message=error.message, database=names.get("database", ""), table=table)
