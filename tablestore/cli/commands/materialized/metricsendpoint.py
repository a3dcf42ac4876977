"""Serves one text at ``/metrics`` of a port: what ``mt serve`` counts, for Prometheus and the like.

Whoever reaches the port learns the names of tables, and nothing else. A client that says nothing is hung up on, more than
``MOST_CONNECTIONS`` at once are, and a browser that a foreign page sends here under another name (DNS rebinding) is refused.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socket import socket
from typing import Any

import tablestore as ts
from tablestore.materialized.figures.openmetrics import CONTENT_TYPE

MOST_CONNECTIONS = 16
_SILENCE_S = 5.0
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})
_ANY_ADDRESS = frozenset({"", "0.0.0.0", "::"})
_PLAIN_TEXT = "text/plain; charset=utf-8"


@contextmanager
def served_metrics(host: str, port: int, text: Callable[[], str], *, silence_s: float = _SILENCE_S) -> Iterator[int]:
    """Serve what ``text`` returns from threads of its own; yields the port. ``silence_s``: how long a client may say nothing.

    Raises InvalidInputError of kind ``port`` for a port that is taken.
    """
    # Whoever serves at all addresses of the machine does so under names that are not known here.
    names = None if host in _ANY_ADDRESS else _LOOPBACK | {host.lower()}

    class Handler(_MetricsHandler):
        timeout = silence_s

        def answer(self) -> tuple[int, str, str]:
            if names is not None and _host_of(self.headers.get("Host", "")) not in names:
                return 421, _PLAIN_TEXT, f"expected one of the hosts {', '.join(sorted(names))}\n"
            if self.path.partition("?")[0] != "/metrics":
                return 404, _PLAIN_TEXT, "the figures are at /metrics\n"
            return 200, CONTENT_TYPE, text()

    try:
        server = _BoundedServer((host, port), Handler)
    except OSError as error:
        raise ts.InvalidInputError(
            f"cannot serve metrics at {host}:{port}: {error.strerror}; choose another --metrics-port", kind="port"
        ) from error
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True)
    thread.start()
    try:
        yield int(server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _MetricsHandler(BaseHTTPRequestHandler):
    """Answers GET. It names neither its own version nor Python's."""

    def answer(self) -> tuple[int, str, str]:
        """The status, the content type and the text for this request."""
        raise NotImplementedError

    def do_GET(self) -> None:
        status, content_type, text = self.answer()
        body = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        """The text of the header ``Server``."""
        return "tablestore"

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not worth a line."""


class _BoundedServer(ThreadingHTTPServer):
    """Hangs up on whoever comes while ``MOST_CONNECTIONS`` are served."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
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
