"""Puts all checks that know nothing of tables around an application, in the one order in which they protect each other.

    request id -> security headers -> size -> host and origin -> rate -> time -> application

What is refused has an id and the headers too; what is cheap to refuse is refused first; the size of a body is also bounded while it
is read, inside of its time. Web sockets are closed: the service has none.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Receive, Scope, Send

from tablestore.ids import Ids
from tablestore.server.http.hosts import HostCheck, HostRules
from tablestore.server.http.refusal import OnRefusal, ignore_refusals
from tablestore.server.http.requestids import RequestIds
from tablestore.server.http.requestrate import RequestLimiter, RequestRateLimit
from tablestore.server.http.requestsize import RequestSizeLimit, RequestSizes
from tablestore.server.http.requesttime import LIMIT_S, RequestTimeLimit
from tablestore.server.http.securityheaders import SecurityHeaders

_POLICY_VIOLATION = 1008


def _is_never_endless(path: str) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardSettings:
    """The bounds of one service. ``endless``: the paths that answer for as long as their caller listens."""

    hosts: HostRules
    is_secure: bool
    sizes: RequestSizes = field(default_factory=RequestSizes)
    time_limit_s: float = LIMIT_S
    endless: Callable[[str], bool] = _is_never_endless


def guarded(
    app: ASGIApp, settings: GuardSettings, *, limiter: RequestLimiter, ids: Ids, on_refusal: OnRefusal = ignore_refusals
) -> ASGIApp:
    """The application behind all checks."""
    app = RequestTimeLimit(app, settings.time_limit_s, settings.endless, on_refusal)
    app = RequestRateLimit(app, limiter, on_refusal=on_refusal)
    app = HostCheck(app, settings.hosts, on_refusal)
    app = RequestSizeLimit(app, settings.sizes, on_refusal)
    app = _WithoutSockets(app)
    return RequestIds(SecurityHeaders(app, is_secure=settings.is_secure), ids)


class _WithoutSockets:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})
            return
        await self._app(scope, receive, send)
