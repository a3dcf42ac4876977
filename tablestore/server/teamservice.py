"""Builds the service of a warehouse out of its parts: the catalog, who is known and what they may do, the checks, the figures.

    the checks of every request (http)  ──  figures at /metrics  ──  the routes (application)  ──  the catalog

Without a token in its store a service has one caller, who may do all; from the first token on every request needs one. It listens
where that is safe (:mod:`tablestore.server.http.address`), and nothing of it starts before all of its settings have been checked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from tablestore.clock import Clock
from tablestore.ids import Ids
from tablestore.server.access.accessstore import AccessStore, CurrentTokens
from tablestore.server.access.auditlog import AuditLog
from tablestore.server.access.denials import Unauthenticated
from tablestore.server.access.identities import Authenticator, IssuedTokens
from tablestore.server.access.roles import CATALOG, Principal, Resource, Role
from tablestore.server.application import ANONYMOUS, Application, unaudited
from tablestore.server.http.address import Bind, check_tls_files, decide_bind
from tablestore.server.http.guard import GuardSettings, guarded
from tablestore.server.http.hosts import host_rules
from tablestore.server.http.requestrate import RequestLimiter, RequestRate
from tablestore.server.page.pagecontext import AccessLine
from tablestore.server.page.pageroutes import PageService
from tablestore.server.page.queryrunner import DuckdbRunner
from tablestore.server.pagemounting import EVENTS_PATH, PREFIX, page_routes
from tablestore.server.protocol.restservice import NoTokens, RestService
from tablestore.server.protocol.s3tokens import S3TableTokens
from tablestore.table.catalog import Catalog

METRICS_PATH = "/metrics"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """The settings of one service.

    ``published_locally``: in a container whose port this machine alone reaches. ``tokens_required``: also while its store has no
    token. ``issuer``: a file about an OpenID Connect issuer. ``requests_per_s``: of one token, or one address. ``query_role``: may
    run queries on the page; None: nobody. ``s3_role``: whose keys, narrowed to a table, are handed out; ``storage``: the store's
    options.
    """

    name: str
    host: str = "127.0.0.1"
    port: int = 8181
    threads: int = 16
    certificate: str | None = None
    key: str | None = None
    proxies: tuple[str, ...] = ()
    published_locally: bool = False
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    tokens_required: bool = False
    issuer: str | None = None
    audit_log: str | None = None
    requests_per_s: float = 2000.0
    s3_role: str | None = None
    query_role: Role | None = None
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamService:
    """A service that is ready to listen. ``has_tokens``: its callers need one now. Close it when nothing runs any more."""

    app: ASGIApp
    application: Application
    bind: Bind
    has_tokens: bool
    audit_log: AuditLog | None

    def close(self) -> None:
        """Closes the audit log."""
        if self.audit_log is not None:
            self.audit_log.close()


def build_service(settings: ServiceSettings, catalog: Catalog, store: AccessStore | None, clock: Clock, ids: Ids) -> TeamService:
    """The service of a catalog. ``store``: where its tokens lie; None where it can have none.

    Raises InvalidInputError for settings that are wrong or unsafe, StorageError for a store or log that cannot be read or written.
    """
    callers = _Callers(
        store, _issuer(settings.issuer, clock), clock, is_strict=settings.tokens_required or settings.issuer is not None
    )
    bind = decide_bind(
        settings.host,
        settings.port,
        certificate=settings.certificate,
        key=settings.key,
        has_tokens=callers.are_needed(),
        proxies=settings.proxies,
        published_locally=settings.published_locally,
        names=settings.allowed_hosts,
    )
    if bind.certificate is not None and bind.key is not None:
        check_tls_files(bind.certificate, bind.key)
    limiter = RequestLimiter(RequestRate(per_s=settings.requests_per_s, burst=int(settings.requests_per_s * 2) or 1), clock)
    service = RestService(
        catalog=catalog,
        name=settings.name,
        clock=clock,
        ids=ids,
        tokens=NoTokens() if settings.s3_role is None else S3TableTokens(settings.s3_role, settings.storage),
        rules=callers.rules,
    )
    audit_log = None if settings.audit_log is None else AuditLog(Path(settings.audit_log).expanduser(), clock)
    application = Application(
        service=service,
        authenticate=callers.authenticate,
        audit=unaudited if audit_log is None else audit_log.write,
        limiter=limiter,
        threads=settings.threads,
    )
    guard = GuardSettings(
        hosts=host_rules(settings.host, settings.allowed_hosts, settings.allowed_origins),
        is_secure=bind.is_secure,
        endless=lambda path: path == EVENTS_PATH,
    )
    pages = PageService(
        catalog=catalog,
        clock=clock,
        grants=callers.grants_on,
        runner=None if settings.query_role is None else DuckdbRunner(catalog=catalog),
        query_role=settings.query_role or Role.ADMIN,
        prefix=PREFIX,
    )
    routes = page_routes(application, pages)
    routes += [Route(METRICS_PATH, _metrics(application, callers.authenticate, clock), methods=["GET"], name="metrics")]
    app = guarded(application.app(routes=routes), guard, limiter=limiter, ids=ids, on_refusal=application.metrics.rejected)
    return TeamService(app=app, application=application, bind=bind, has_tokens=callers.are_needed(), audit_log=audit_log)


class _Callers:
    """Knows the callers of a service by what its store holds now."""

    def __init__(self, store: AccessStore | None, issued: IssuedTokens | None, clock: Clock, *, is_strict: bool) -> None:
        self._store, self._clock, self._is_strict = store, clock, is_strict
        self._tokens = None if store is None else CurrentTokens(store)
        self._authenticator = None if self._tokens is None else Authenticator(self._tokens, issued)

    def are_needed(self) -> bool:
        """True if a request needs a token now: once it did it always does, whatever becomes of the store."""
        self._is_strict = self._is_strict or (self._tokens is not None and bool(self._tokens().by_hash))
        return self._is_strict

    def authenticate(self, header: str | None, now_millis: int) -> Principal:
        """The caller that a header names. Raises Unauthenticated."""
        if not self.are_needed():
            return ANONYMOUS
        if self._authenticator is None:
            raise Unauthenticated("there is no store of tokens")
        return self._authenticator.authenticate(header, now_millis)

    def grants_on(self, resource: Resource) -> list[AccessLine]:
        """The roles on an object, by the names of those who have them."""
        now_ms, scopes = self._clock.now_ms(), set(resource.scopes())
        tokens = () if self._tokens is None else self._tokens().by_hash.values()
        lines = [
            AccessLine(name=token.name, role=grant.role.value, scope=str(grant.resource))
            for token in tokens
            if token.is_live(now_ms)
            for grant in token.grants
            if grant.resource in scopes
        ]
        return sorted(lines, key=lambda line: (line.name, line.role, line.scope))

    def rules(self) -> Any:
        """The rules for queries."""
        return () if self._store is None else self._store.read().rules


def _issuer(path: str | None, clock: Clock) -> IssuedTokens | None:
    if path is None:
        return None
    from tablestore.server.access.oidc import IssuerKeys, IssuerTokens, fetch_over_http, load_issuer  # loads PyJWT

    issuer = load_issuer(path)
    return IssuerTokens(issuer, IssuerKeys(issuer.issuer, clock, fetch_over_http))


def _metrics(
    application: Application, authenticate: Callable[[str | None, int], Principal], clock: Clock
) -> Callable[[Request], Response]:
    """Answers the figures, to readers of the catalog."""

    def answer(request: Request) -> Response:
        try:
            principal = authenticate(request.headers.get("authorization"), clock.now_ms())
        except Unauthenticated as error:
            return Response(error.message, 401, {"WWW-Authenticate": "Bearer"}, "text/plain")
        if not principal.may(Role.READER, CATALOG):
            return Response("the role reader on the catalog is needed", 403, media_type="text/plain")
        body, content_type = application.metrics.exposition(request.headers.get("accept", ""))
        return Response(body, 200, {"content-type": content_type})

    return answer
