"""Serves the metrics of a registry at ``/metrics`` of a port: what ``mt serve`` counts, for Prometheus and the like.

The text is prometheus-client's, as OpenMetrics unless the collector asks for another format. Whoever reaches the port learns the
names of tables, and nothing else. A client that says nothing is hung up on, more than ``MOST_CONNECTIONS`` at once are, and a
browser that a foreign page sends here under another name (DNS rebinding) is refused.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from socket import socket
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app

import tablestore as ts

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

MOST_CONNECTIONS = 16
_SILENCE_S = 5.0
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_ANY_ADDRESS = frozenset({"", "0.0.0.0", "::"})
_FORMAT = "application/openmetrics-text; version=1.0.0"
_SOFTWARE = "tablestore"


@contextmanager
def served_metrics(host: str, port: int, registry: CollectorRegistry, *, silence_s: float = _SILENCE_S) -> Iterator[int]:
    """Serve a registry from threads of its own; yields the port. ``silence_s``: how long a client may say nothing.

    Raises InvalidInputError of kind ``port`` for a port that is taken.
    """

    class Handler(_QuietHandler):
        timeout = silence_s

    try:
        server = _BoundedServer((host, port), Handler)
    except OSError as error:
        raise ts.InvalidInputError(
            f"cannot serve metrics at {host}:{port}: {error.strerror}; choose another --metrics-port", kind="port"
        ) from error
    # Whoever serves at all addresses of the machine does so under names that are not known here.
    names = None if host in _ANY_ADDRESS else _LOOPBACK | {host.lower()}
    server.set_app(_checked(make_wsgi_app(registry), names))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _checked(metrics: "WSGIApplication", names: frozenset[str] | None) -> "WSGIApplication":
    """The application for ``/metrics`` and the hosts ``names`` alone; None: for all hosts."""

    def application(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *rest: Any) -> Any:
            return start_response(status, [*headers, ("Server", _SOFTWARE)], *rest)

        def refuse(status: str, text: str) -> Iterable[bytes]:
            start(status, [("Content-Type", "text/plain; charset=utf-8")])
            return [f"{text}\n".encode()]

        if names is not None and _host_of(environ.get("HTTP_HOST", "")) not in names:
            return refuse("421 Misdirected Request", f"expected one of the hosts {', '.join(sorted(names))}")
        if environ["PATH_INFO"] != "/metrics":
            return refuse("404 Not Found", "the figures are at /metrics")
        return metrics({"HTTP_ACCEPT": _FORMAT, **environ}, start)

    return application


class _QuietHandler(WSGIRequestHandler):
    """Names neither its own version nor Python's."""

    def version_string(self) -> str:
        """The text of the header ``Server``."""
        return _SOFTWARE

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not worth a line."""


class _BoundedServer(ThreadingMixIn, WSGIServer):
    """Hangs up on whoever comes while ``MOST_CONNECTIONS`` are served."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[WSGIRequestHandler]) -> None:
        self._free = threading.BoundedSemaphore(MOST_CONNECTIONS)
        super().__init__(address, handler)

    def process_request(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: socket | tuple[bytes, socket], client_address: Any) -> None:
        """A client that hangs up is no error of ours."""


def _host_of(header: str) -> str:
    """The host that the header ``Host`` names, without its port, in small letters."""
    host, separator, port = header.strip().lower().rpartition(":")
    return host if separator and port.isdigit() else header.strip().lower()
