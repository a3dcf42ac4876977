"""Lets in requests for a name of this service alone, and of pages none but its own.

A page of somebody else can point a name of its own at this machine (DNS rebinding) and then read what a browser here may read: its
requests carry that name in ``Host``. And it can send forms and scripts here, under its own name in ``Origin``.

    Host      exactly one, well-formed: else 400; a name of the list with any port: else 421
    Origin    none, the service's own, or one of the list: else 403
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from tablestore.errors import InvalidInputError
from tablestore.server.http.address import LOOPBACK_NAMES, is_anywhere, is_loopback
from tablestore.server.http.refusal import OnRefusal, Refusal, header_values, ignore_refusals

_HOST = re.compile(r"(?P<name>[a-z0-9](?:[a-z0-9.-]{0,252})|\[[0-9a-f:.]{2,45}\])(?::(?P<port>\d{1,5}))?", re.IGNORECASE | re.ASCII)
_ORIGIN = re.compile(r"https?://(?P<host>[^/?#@\s]+)", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostRules:
    """The names of the service, without ports, and the origins of other pages that may send requests; in small letters."""

    names: frozenset[str]
    origins: frozenset[str] = frozenset()

    def refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> Refusal | None:
        """The answer to a request with these headers, if it goes no further."""
        headers = list(headers)
        hosts, origins = header_values(headers, b"host"), header_values(headers, b"origin")
        match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
        if match is None:
            return Refusal(status=400, reason="host", message="expected one header Host with a name and perhaps a port")
        if match["name"].lower() not in self.names:
            return Refusal(status=421, reason="host", message="the service has another name than the header Host says")
        if origins and not (len(origins) == 1 and self._is_own(origins[0], hosts[0])):
            return Refusal(status=403, reason="origin", message="pages of another origin may not send requests to the service")
        return None

    def _is_own(self, origin: str, host: str) -> bool:
        match = _ORIGIN.fullmatch(origin)
        return match is not None and (match["host"].lower() == host.lower() or origin.lower() in self.origins)


def host_rules(bind_host: str, names: Sequence[str] = (), origins: Sequence[str] = ()) -> HostRules:
    """The rules of a service at ``bind_host`` that is also known by ``names``. Raises InvalidInputError."""
    known = {name.strip().lower().rstrip(".") for name in names}
    for name in known:
        if (match := _HOST.fullmatch(name)) is None or match["port"] is not None:
            raise InvalidInputError(
                f"--allowed-host: expected a name without a port, such as tables.example.com, found {name!r:.100}"
            )
    for origin in origins:
        if _ORIGIN.fullmatch(origin) is None:
            raise InvalidInputError(f"--allowed-origin: expected an origin such as https://example.com, found {origin!r:.100}")
    if is_loopback(bind_host):
        known |= LOOPBACK_NAMES
    elif not is_anywhere(bind_host):
        known.add(f"[{bind_host.strip('[]').lower()}]" if ":" in bind_host else bind_host.lower())
    if not known:
        raise InvalidInputError(
            "the service listens at all addresses and knows no name of its own; name it with --allowed-host", kind="no-host-name"
        )
    return HostRules(names=frozenset(known), origins=frozenset(origin.lower() for origin in origins))


class HostCheck:
    """Middleware: refuses what :class:`HostRules` refuse."""

    def __init__(self, app: ASGIApp, rules: HostRules, on_refusal: OnRefusal = ignore_refusals) -> None:
        self._app, self._rules, self._on_refusal = app, rules, on_refusal

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and (refusal := self._rules.refusal(scope["headers"])) is not None:
            self._on_refusal(refusal.reason)
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)
