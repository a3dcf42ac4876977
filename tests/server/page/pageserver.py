"""Serves the pages over HTTP in a thread of the test, as an application mounts them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qsl, unquote, urlsplit

from tablestore.server.access.roles import Principal
from tablestore.server.page.pageroutes import PAGE_ROUTES, PageAnswer, PageService


def answer(service: PageService, principal: Principal, address: str) -> PageAnswer:
    """The answer to an address. Raises LookupError for one that no route has."""
    parts = urlsplit(address)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    for route in PAGE_ROUTES:
        pattern = re.sub(
            r"\{(\w+)\}", r"(?P<\1>[^/]+)", re.escape(f"{service.prefix}{route.path}").replace(r"\{", "{").replace(r"\}", "}")
        )
        if match := re.fullmatch(pattern, parts.path):
            return service.answer(route, principal, {key: unquote(text) for key, text in match.groupdict().items()}, query)
    raise LookupError(address)


@contextmanager
def serving(service: PageService, principal: Principal) -> Iterator[str]:
    """The address of a server on this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                page = answer(service, principal, self.path)
            except LookupError:
                self.send_error(404)
                return
            self.send_response(page.status)
            for name, value in {**page.headers, "Content-Type": page.content_type, "Content-Length": str(len(page.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(page.body)

        def log_message(self, format: str, *args: object) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
