"""Mounts the pages of a warehouse in the application, behind the same callers, threads, figures and audit log as its other routes.

A browser shows a token as the password of HTTP Basic authentication (any user name), which it asks its user for. All pages are read
by GET and change nothing, so a browser that sends the password by itself does no harm.

Rules for queries (:mod:`tablestore.server.access.queryrules`) are carried out by clients. Pages cannot: a table that a rule
restricts for the caller is on none of its pages.
"""

from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from tablestore.errors import TablestoreError
from tablestore.server.access.auditlog import AuditRecord, Decision
from tablestore.server.access.denials import Unauthenticated
from tablestore.server.access.queryrules import QueryRule
from tablestore.server.access.roles import Principal, Resource, Role
from tablestore.server.application import Application, error_answer, path_names, unrecorded
from tablestore.server.eventstreams import EventStreams
from tablestore.server.http.requestids import request_id_of
from tablestore.server.page.pageroutes import EVENT_STREAM, EVENTS, PAGE_HEADERS, PAGE_ROUTES, PageRoute, PageService
from tablestore.server.protocol.errorresponse import RequestRefused, unavailable

PREFIX = "/page"
EVENTS_PATH = PREFIX + EVENTS.path
_ASK = {"WWW-Authenticate": 'Basic realm="tablestore: the token is the password", charset="UTF-8"'}


@dataclass(frozen=True, slots=True, kw_only=True)
class PageReader(Principal):
    """The caller of a page. ``hidden``: tables that it may read in parts only, and that no page shows it."""

    hidden: frozenset[Resource]

    def role_on(self, resource: Resource) -> Role | None:
        """No role on what is hidden."""
        return None if resource in self.hidden else Principal.role_on(self, resource)

    def sees(self, resource: Resource) -> bool:
        """Sees nothing of what is hidden."""
        return resource not in self.hidden and Principal.sees(self, resource)


def page_reader(principal: Principal, rules: Iterable[QueryRule]) -> PageReader:
    """The caller as pages take it: without the tables that rules restrict for it."""
    hidden = frozenset(rule.table for rule in rules if rule.applies_to(principal, rule.table))
    return PageReader(name=principal.name, grants=principal.grants, hidden=hidden)


def page_routes(application: Application, pages: PageService) -> list[Route]:
    """The routes of the pages, and of the root, which leads to them."""

    async def to_pages(request: Request) -> Response:
        return RedirectResponse(PREFIX)

    routes = [
        Route(
            PREFIX + one.path,
            _streamed(application, pages) if one is EVENTS else _handled(application, pages, one),
            methods=[one.method],
            name=one.name,
        )
        for one in PAGE_ROUTES
    ]
    return [Route("/", to_pages, methods=["GET"], name="root"), *routes]


def _handled(application: Application, pages: PageService, route: PageRoute) -> Callable[[Request], Awaitable[Response]]:
    path = PREFIX + route.path

    async def handle(request: Request) -> Response:
        began_s = pages.clock.steady_s()
        request_id = request_id_of(request.scope)
        if application.liveness.is_ending:
            return error_answer(unavailable("the service is ending").response, request_id)
        application.liveness.begin()
        with application.metrics.in_flight():
            try:
                names = path_names(path, request)
                response = await application.in_thread(lambda: _answer(application, pages, route, request, names, began_s))
            except RequestRefused as refused:
                response = error_answer(refused.response, request_id)
            finally:
                application.liveness.end()
        seconds = pages.clock.steady_s() - began_s
        application.metrics.answered(method=route.method, route=path, status=response.status_code, seconds=seconds)
        return response

    return handle


def _streamed(application: Application, pages: PageService) -> Callable[[Request], Awaitable[Response]]:
    """The streams of events. Who opens one is checked and recorded as for any page, and checked again with each look."""

    def look(headers: Iterable[str | None]) -> dict[str | None, bytes | None]:
        events: dict[str | None, bytes | None] = {}
        readers: dict[str | None, PageReader] = {}
        rules = application.service.rules()
        for header in headers:
            try:
                readers[header] = page_reader(application.authenticate(header, pages.clock.now_ms()), rules)
            except Unauthenticated:
                events[header] = None
        return events | dict(zip(readers, pages.job_events(list(readers.values())), strict=True))

    streams = EventStreams(look=look, in_thread=application.in_thread)
    application.liveness.at_end.append(streams.end)

    async def handle(request: Request) -> Response:
        began_s = pages.clock.steady_s()
        header = bearer_of(request.headers.get("authorization"))
        try:
            streams.check_room()
            response = await application.in_thread(
                lambda: _answer(application, pages, EVENTS, request, {}, began_s, is_stream=True)
            )
        except RequestRefused as refused:
            response = error_answer(refused.response, request_id_of(request.scope))
        seconds = pages.clock.steady_s() - began_s
        application.metrics.answered(method="GET", route=EVENTS_PATH, status=response.status_code, seconds=seconds)
        if response.status_code != 200:
            return response
        return StreamingResponse(streams.listen(header), headers=dict(PAGE_HEADERS), media_type=EVENT_STREAM)

    return handle


def _answer(
    application: Application,
    pages: PageService,
    route: PageRoute,
    request: Request,
    names: dict[str, str],
    began_s: float,
    *,
    is_stream: bool = False,
) -> Response:
    """The page, and its line in the audit log; runs in a thread. Of a stream an empty answer: it may begin."""
    principal: Principal | None = None
    try:
        header = bearer_of(request.headers.get("authorization"))
        principal = application.authenticate(header, pages.clock.now_ms())
        application.check_rate(principal)
        if is_stream:
            response = Response()
        else:
            reader = page_reader(principal, application.service.rules())
            answer = pages.answer(route, reader, names, dict(request.query_params))
            response = Response(answer.body, answer.status, {**answer.headers, "content-type": answer.content_type})
    except Unauthenticated as error:
        response = Response(error.message, 401, _ASK, "text/plain")
    except RequestRefused as refused:
        response = error_answer(refused.response, request_id_of(request.scope))
    client = request.client
    decision = Decision.ALLOWED if response.status_code not in (403, 404) else Decision.DENIED
    record = AuditRecord(
        request=request_id_of(request.scope),
        principal=None if principal is None else principal.name,
        address="unknown" if client is None else client.host,
        method=route.method,
        route=PREFIX + route.path,
        resource=str(route.resource(names)),
        role="sight" if route.need is None else route.need.value,
        decision=Decision.UNAUTHENTICATED if principal is None else decision,
        status=response.status_code,
        duration_ms=int((pages.clock.steady_s() - began_s) * 1000),
    )
    try:
        application.audit(record)
    except TablestoreError:
        return error_answer(unrecorded(), record.request)
    return response


def bearer_of(header: str | None) -> str | None:
    """The header with the password of HTTP Basic authentication as a bearer token; any other header as it is."""
    scheme, _, value = (header or "").partition(" ")
    if scheme.lower() != "basic":
        return header
    try:
        _, separator, password = b64decode(value.strip(), validate=True).decode().partition(":")
    except ValueError:  # of base64, of UTF-8
        return "Bearer"
    return f"Bearer {password}" if separator and password else "Bearer"
