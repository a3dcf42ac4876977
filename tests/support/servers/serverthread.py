"""A catalog service on a port of its own, in a thread of the test's process."""

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Thread

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.ids import SystemIds
from tablestore.server.access.queryrules import QueryRule
from tablestore.server.application import Application
from tablestore.server.protocol.restservice import RestService
from tests.support.served import authenticate

Wrap = Callable[[ASGIApp], ASGIApp]


def as_it_is(app: ASGIApp) -> ASGIApp:
    return app


@contextmanager
def catalog_service(catalog: ts.Catalog, name: str = "lake", wrap: Wrap = as_it_is) -> Iterator[str]:
    """The address of a service of ``catalog``. ``wrap``: puts something between it and its clients."""
    service = RestService(catalog=catalog, name=name, clock=SystemClock(), ids=SystemIds())
    with running_application(Application(service=service), wrap) as address:
        yield address


@dataclass
class RuledService:
    """A service whose callers are named by their token (those of ``tests.support.served``), under rules that may change."""

    address: str
    rules: list[QueryRule]
    requests: list[str]

    def catalog(self, who: str) -> ts.Catalog:
        """The catalog as a caller opens it."""
        return ts.open_catalog(self.options(who))

    def options(self, who: str) -> dict[str, str]:
        """Its options."""
        return {"metastore": "rest", "uri": self.address, "token": who}

    def commits(self) -> int:
        """The number of commits that it was sent."""
        return sum(request.startswith("POST") and request.endswith("/commit") for request in self.requests)


@contextmanager
def ruled_service(catalog: ts.Catalog, rules: Sequence[QueryRule] = (), name: str = "lake") -> Iterator[RuledService]:
    """A service of ``catalog`` under rules for queries, which notes its requests."""
    kept, requests = list(rules), list[str]()
    service = RestService(catalog=catalog, name=name, clock=SystemClock(), ids=SystemIds(), rules=lambda: tuple(kept))

    def noting(app: ASGIApp) -> ASGIApp:
        async def noted(scope: Scope, receive: Receive, send: Send) -> None:
            requests.append(f"{scope.get('method')} {scope.get('path')}")
            await app(scope, receive, send)

        return noted

    with running_application(Application(service=service, authenticate=authenticate), noting) as address:
        yield RuledService(address, kept, requests)


@contextmanager
def running_application(application: Application, wrap: Wrap = as_it_is) -> Iterator[str]:
    """The address of an application."""
    # With its protocol named: the event loop sends small answers at once on such sockets alone.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        config = uvicorn.Config(wrap(application.app()), log_config=None, access_log=False, lifespan="off")
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(60)
