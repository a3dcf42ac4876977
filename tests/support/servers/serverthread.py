"""A catalog service on a port of its own, in a thread of the test's process."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import uvicorn

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.ids import SystemIds
from tablestore.server.application import Application
from tablestore.server.protocol.restservice import RestService


@contextmanager
def catalog_service(catalog: ts.Catalog, name: str = "lake") -> Iterator[str]:
    """The address of a service of ``catalog``."""
    service = RestService(catalog=catalog, name=name, clock=SystemClock(), ids=SystemIds())
    with running_application(Application(service=service)) as address:
        yield address


@contextmanager
def running_application(application: Application) -> Iterator[str]:
    """The address of an application."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(application.app(), log_config=None, access_log=False, lifespan="off")
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(60)
