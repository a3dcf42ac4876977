"""The Starlette application: every route of the table behind one check, in a bounded number of threads.

    request ── is it ending?  503 ── body within its limit ── a free thread
        └ in the thread:  who asks ── what the path names ── may they ── audit ── handler ── answer

Handlers block on files, so they run in threads: at most ``threads`` at a time. A request that waits longer for one than
``waiting_s`` gets 503. Commits wait for their `turn <committurns>` in between, without a thread. Authentication, the audit log and
middleware are handed in.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import unquote_plus

import anyio
import anyio.to_thread
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tablestore.errors import CommitOutcomeUnknown, TablestoreError
from tablestore.server.access.auditlog import AuditRecord, Decision
from tablestore.server.access.denials import Unauthenticated
from tablestore.server.access.roles import Grant, Principal, Resource, Role
from tablestore.server.committurns import CommitTurns
from tablestore.server.endpoints import ENDPOINTS, Endpoint, Need
from tablestore.server.http.requestids import request_id_of
from tablestore.server.http.requestrate import RequestLimiter
from tablestore.server.metrics import CommitOutcome, ServerMetrics
from tablestore.server.protocol.errorresponse import (
    RETRY_AFTER_S,
    ErrorResponse,
    RequestObjects,
    RequestRefused,
    error_response,
    unavailable,
)
from tablestore.server.protocol.exchange import MOST_BODY_BYTES, Call
from tablestore.server.protocol.restcommit import commit_table, commit_user, take_turn
from tablestore.server.protocol.restconfig import check_prefix
from tablestore.server.protocol.restservice import RestService

LOG = logging.getLogger(__name__)
T = TypeVar("T")

ANONYMOUS = Principal(name="anonymous", grants=(Grant(Role.ADMIN),))
"""The caller of a service without tokens."""

Authenticate = Callable[[str | None, int], Principal]
"""The caller that an Authorization header names, at a time in milliseconds. Raises Unauthenticated."""


Audit = Callable[[AuditRecord], None]
"""Records a decided request. Raises StorageError: what cannot be recorded is not answered."""


def without_tokens(header: str | None, now_millis: int) -> Principal:
    """The one caller of a service without tokens, whatever it says."""
    return ANONYMOUS


def unaudited(record: AuditRecord) -> None:
    """Records nothing."""


@dataclass(slots=True)
class Liveness:
    """Tells if the service is ending, and how many requests it is at. Used by the thread of the event loop alone.

    ``at_end`` is called once it begins to end.
    """

    is_ending: bool = False
    running: int = 0
    at_end: list[Callable[[], None]] = field(default_factory=list)
    _idle: anyio.Event = field(default_factory=anyio.Event)

    def begin(self) -> None:
        """A request begins."""
        self.running += 1

    def end(self) -> None:
        """A request has ended."""
        self.running -= 1
        if self.is_ending and not self.running:
            self._idle.set()

    async def drained(self, most_s: float) -> bool:
        """Refuses new requests, and waits until those that run have ended; False if that takes too long."""
        self.is_ending = True
        for react in self.at_end:
            react()
        with anyio.move_on_after(most_s):
            if self.running:
                await self._idle.wait()
        return not self.running


@dataclass(slots=True, kw_only=True)
class Application:
    """The parts of one application. ``app`` is what a server runs."""

    service: RestService
    authenticate: Authenticate = without_tokens
    audit: Audit = unaudited
    metrics: ServerMetrics = field(default_factory=ServerMetrics)
    limiter: RequestLimiter | None = None
    threads: int = 16
    waiting_s: float = 30.0
    most_body_bytes: int = MOST_BODY_BYTES
    liveness: Liveness = field(default_factory=Liveness)
    turns: CommitTurns = field(default_factory=CommitTurns)
    _free_threads: anyio.CapacityLimiter | None = None

    def __post_init__(self) -> None:
        self.liveness.at_end.append(self.turns.open)

    def app(self, *, middleware: Sequence[Middleware] = (), routes: Sequence[BaseRoute] = ()) -> Starlette:
        """The application, with routes of others beside those of the protocol."""
        return Starlette(
            routes=[
                Route("/healthz", _answer_health, methods=["GET"], name="healthz"),
                Route("/readyz", self._answer_readiness, methods=["GET"], name="readyz"),
                *(Route(one.path, self._handled(one), methods=[one.method], name=f"{one.method} {one.path}") for one in ENDPOINTS),
                *routes,
            ],
            middleware=list(middleware),
            exception_handlers={404: _answer_unknown, 405: _answer_wrong_method, 500: _answer_fault},
        )

    async def _answer_readiness(self, request: Request) -> Response:
        """Ready while it takes requests, and its warehouse answers."""
        if self.liveness.is_ending:
            return json_response({"ready": False, "reason": "ending"}, 503)
        try:
            await self.in_thread(lambda: self.service.catalog.list_databases())
        except (TablestoreError, RequestRefused) as error:
            LOG.warning("not ready: %s", error)
            return json_response({"ready": False, "reason": "the warehouse does not answer"}, 503)
        return json_response({"ready": True})

    def _handled(self, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            if self.liveness.is_ending:
                return error_answer(unavailable("the service is ending").response, "")
            exchange = _Exchange(endpoint, request, request_id_of(request.scope) or self.service.ids.uuid())
            began_s = self.service.clock.steady_s()
            self.liveness.begin()
            with self.metrics.in_flight():
                try:
                    exchange.body = await self._body(request)
                    exchange.names = path_names(endpoint.path, request)
                    if endpoint.handler in (commit_table, take_turn):
                        response = await self._answered_in_turn(exchange, began_s)
                    else:
                        response = await self.in_thread(lambda: self._recorded(exchange, began_s))
                except RequestRefused as refused:
                    response = error_answer(refused.response, exchange.request_id)
                finally:
                    self.liveness.end()
            seconds = self.service.clock.steady_s() - began_s
            self.metrics.answered(method=endpoint.method, route=endpoint.path, status=response.status_code, seconds=seconds)
            return response

        return handle

    async def _answered_in_turn(self, exchange: "_Exchange", began_s: float) -> Response:
        """The answer to a commit, or to a client that is about to, once it is its turn. Who may not commit is told so at once, and
        takes nobody's turn."""
        client = await self.in_thread(lambda: self._client_of(exchange))
        if client is None:
            return await self.in_thread(lambda: self._recorded(exchange, began_s))
        table, loop = (exchange.names["database"], exchange.names["table"]), asyncio.get_running_loop()
        async with self.turns.turn(table, client) as turn:
            exchange.has_waited = turn.has_come.is_set()
            exchange.landed = lambda: loop.call_soon_threadsafe(turn.landed)
            response = await self.in_thread(lambda: self._recorded(exchange, began_s))
            # Whoever has left does not come again.
            turn.end(is_late=exchange.is_late and not await exchange.request.is_disconnected())
        return response

    def _client_of(self, exchange: "_Exchange") -> tuple[str, str] | None:
        """The client that commits; None where the commit is refused, whose answer says why."""
        try:
            call = exchange.call = self._decided(exchange)
            return call.principal.name, commit_user(call)
        except Exception as error:
            exchange.error = error
            return None

    async def in_thread(self, work: Callable[[], T]) -> T:
        """The result of ``work`` in one of the threads. Raises RequestRefused if none becomes free in time."""
        if self._free_threads is None:
            self._free_threads = anyio.CapacityLimiter(self.threads)
        limiter, ticket = self._free_threads, object()
        with anyio.move_on_after(self.waiting_s) as waiting:
            await limiter.acquire_on_behalf_of(ticket)
        if waiting.cancelled_caught:
            raise unavailable("the service is busy")
        try:
            # A request that has begun ends, whether its client waits or not: a commit is never half of one.
            return await anyio.to_thread.run_sync(work, limiter=anyio.CapacityLimiter(1), abandon_on_cancel=False)
        finally:
            limiter.release_on_behalf_of(ticket)

    def _recorded(self, exchange: "_Exchange", began_s: float) -> Response:
        """The answer of an endpoint, and its line in the audit log; runs in a thread, and raises nothing."""
        response = self._answer(exchange)
        client = exchange.request.client
        record = AuditRecord(
            request=exchange.request_id,
            principal=exchange.principal,
            address="unknown" if client is None else client.host,
            method=exchange.endpoint.method,
            route=exchange.endpoint.path,
            resource="" if exchange.resource is None else str(exchange.resource),
            role=exchange.endpoint.need_text,
            decision=exchange.decision,
            status=response.status_code,
            duration_ms=int((self.service.clock.steady_s() - began_s) * 1000),
        )
        try:
            self.audit(record)
        except TablestoreError as error:
            LOG.error("request %s: %s", exchange.request_id, error)
            return error_answer(unrecorded(), exchange.request_id)
        return response

    def _answer(self, exchange: "_Exchange") -> Response:
        endpoint, request_id, objects = exchange.endpoint, exchange.request_id, RequestObjects()
        try:
            objects = endpoint.objects(exchange.names)
            if exchange.error is not None:
                raise exchange.error
            if exchange.call is None:
                content = endpoint.handler(self.service, self._decided(exchange))
            elif endpoint.handler is take_turn:
                content, exchange.is_late = {"waited": exchange.has_waited}, True
            else:
                content = commit_table(self.service, exchange.call, exchange.landed)
                exchange.is_late = not content["success"]
                self.metrics.committed(CommitOutcome.LOST if exchange.is_late else CommitOutcome.LANDED)
            return json_response({} if content is None else content, request_id=request_id)
        except Unauthenticated as error:
            response = ErrorResponse(code=401, message=error.message)
            return json_response(response.content(), 401, request_id=request_id, headers={"WWW-Authenticate": "Bearer"})
        except RequestRefused as refused:
            return error_answer(refused.response, request_id)
        except TablestoreError as error:
            if isinstance(error, CommitOutcomeUnknown) and endpoint.handler is commit_table:
                self.metrics.committed(CommitOutcome.UNKNOWN)
            if (refusal := error_response(error, objects)) is not None:
                if refusal.code >= 500:
                    LOG.warning("request %s, %s: %s", request_id, endpoint.name, error)
                return error_answer(refusal, request_id)
            return fault_answer(endpoint.name, request_id)
        except Exception:
            return fault_answer(endpoint.name, request_id)

    def check_rate(self, principal: Principal) -> None:
        """Raises RequestRefused if the caller sends too many requests."""
        if self.limiter is not None and (refusal := self.limiter.refusal(f"principal {principal.name}")) is not None:
            self.metrics.rejected(refusal.reason)
            raise RequestRefused(ErrorResponse(code=refusal.status, message=refusal.message, retry_after_s=refusal.retry_after_s))

    def _decided(self, exchange: "_Exchange") -> Call:
        """The call, once its caller is known and may make it. Raises Unauthenticated, RequestRefused."""
        request, endpoint = exchange.request, exchange.endpoint
        exchange.decision = Decision.UNAUTHENTICATED
        principal = self.authenticate(request.headers.get("authorization"), self.service.clock.now_ms())
        exchange.principal, exchange.decision = principal.name, Decision.DENIED
        self.check_rate(principal)
        call = Call(principal=principal, names=exchange.names, query=dict(request.query_params), body=exchange.body)
        if "prefix" in call.names:
            check_prefix(self.service, call.names["prefix"])
        if endpoint.need is not Need.BODY:
            exchange.resource = endpoint.resource(call.names)
        endpoint.check(call)
        exchange.decision = Decision.ALLOWED
        return call

    async def _body(self, request: Request) -> bytes:
        """The body, within its limit. Raises RequestRefused."""
        too_large = ErrorResponse(
            code=413, message=f"a body may have {self.most_body_bytes:,} bytes, and has more; send less at once"
        )
        length = request.headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self.most_body_bytes:
            raise RequestRefused(too_large)
        parts, size = list[bytes](), 0
        try:
            async for part in request.stream():
                size += len(part)
                if size > self.most_body_bytes:
                    raise RequestRefused(too_large)
                parts.append(part)
        except ClientDisconnect as error:
            raise RequestRefused(ErrorResponse(code=400, message="the client has left")) from error
        return b"".join(parts)


@dataclass(slots=True)
class _Exchange:
    """A request on its way, and what has been decided of it so far.

    Of a commit, ``call`` or ``error`` before it is its turn, for which it ``has_waited``; ``landed`` is called when it has landed;
    ``is_late``: it has not.
    """

    endpoint: Endpoint
    request: Request
    request_id: str
    names: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    principal: str | None = None
    resource: Resource | None = None
    decision: Decision = Decision.UNAUTHENTICATED
    call: Call | None = None
    error: Exception | None = None
    has_waited: bool = False
    landed: Callable[[], object] = bool
    is_late: bool = False


def path_names(path: str, request: Request) -> dict[str, str]:
    """The parameters of a path, decoded as clients encode them: a plus is a blank, and an encoded slash is no separator.

    Raises RequestRefused for a path that does not fit once it is taken apart at its own slashes.
    """
    raw = request.scope.get("raw_path") or request.scope["path"].encode()
    segments = raw.decode("ascii", "replace").partition("?")[0].removeprefix(request.scope.get("root_path", "")).split("/")
    pattern = path.split("/")
    if len(segments) != len(pattern):
        raise RequestRefused(ErrorResponse(code=404, message="there is no such path; a name holds no slash"))
    names = {}
    for expected, segment in zip(pattern, segments, strict=True):
        if expected.startswith("{"):
            try:
                names[expected.strip("{}")] = unquote_plus(segment, errors="strict")
            except UnicodeDecodeError as error:
                raise RequestRefused(ErrorResponse(code=400, message="expected names in UTF-8 in the path")) from error
    return names


def json_response(
    content: Mapping[str, object], code: int = 200, *, request_id: str = "", headers: Mapping[str, str] | None = None
) -> Response:
    """An answer in JSON."""
    body = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    named = {"x-request-id": request_id} if request_id else {}
    return Response(body, code, {**(headers or {}), **named, "cache-control": "no-store"}, "application/json")


def unrecorded() -> ErrorResponse:
    """The response to a request that was answered, and could not be recorded: it may have been carried out."""
    return ErrorResponse(code=503, message="the service cannot record what it does", retry_after_s=RETRY_AFTER_S)


def error_answer(response: ErrorResponse, request_id: str) -> Response:
    """The answer of a refused request."""
    return json_response(response.content(), response.code, request_id=request_id, headers=response.headers())


def fault_answer(operation: str, request_id: str) -> Response:
    """The answer to what nobody has foreseen: its trace is in the log alone."""
    LOG.exception("request %s, %s failed", request_id, operation)
    message = f"the service failed; its log says more of request {request_id}"
    return error_answer(ErrorResponse(code=500, message=message), request_id)


async def _answer_health(request: Request) -> Response:
    """Alive, whatever its warehouse does."""
    return json_response({"alive": True})


async def _answer_unknown(request: Request, error: Exception) -> Response:
    return error_answer(ErrorResponse(code=404, message="there is no such path"), "")


async def _answer_wrong_method(request: Request, error: Exception) -> Response:
    return error_answer(ErrorResponse(code=405, message=f"the path takes no {request.method:.20}"), "")


async def _answer_fault(request: Request, error: Exception) -> Response:
    LOG.error("a request failed outside of its handler", exc_info=error)
    return error_answer(ErrorResponse(code=500, message="the service failed; its log says more"), "")
