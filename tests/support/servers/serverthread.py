"""A catalog service on a port of its own, in a thread of the test's process."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread

import uvicorn
from starlette.types import ASGIApp

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.ids import SystemIds
from tablestore.server.application import Application
from tablestore.server.protocol.restservice import RestService

Wrap = Callable[[ASGIApp], ASGIApp]


def as_it_is(app: ASGIApp) -> ASGIApp:
    return app


@contextmanager
def catalog_service(catalog: ts.Catalog, name: str = "lake", wrap: Wrap = as_it_is) -> Iterator[str]:
    """The address of a service of ``catalog``. ``wrap``: puts something between it and its clients."""
    service = RestService(catalog=catalog, name=name, clock=SystemClock(), ids=SystemIds())
    with running_application(Application(service=service), wrap) as address:
        yield address


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
