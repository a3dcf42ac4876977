"""An S3 store inside the test process: moto behind HTTP, on a port of its own, with faults on request.

    with FakeS3() as s3:
        store = S3FileStore(s3.make_bucket("tables"), s3.options)
        s3.answer_next("PUT", status=503)                       # refused, not applied
        s3.answer_next("PUT", status=500, apply_first=True)     # applied, but reported as failed

Writes run one after another, because moto looks for the object of a conditional write and makes it in two steps.
"""

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from threading import Lock, Thread
from typing import Any

_BODY = "<?xml version='1.0'?><Error><Code>{code}</Code><Message>injected by a test</Message></Error>"
_REASONS = {
    400: "RequestTimeout",
    403: "AccessDenied",
    409: "ConditionalRequestConflict",
    412: "PreconditionFailed",
    500: "InternalError",
    501: "NotImplemented",
    503: "ServiceUnavailable",
}


@dataclass
class _Answer:
    method: str
    status: int
    apply_first: bool
    times: int
    only_path: str


class FakeS3:
    """The server; a context manager."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str]] = []
        self.ignore_conditions = False
        self._answers: list[_Answer] = []
        self._lock = Lock()
        self._server: Any = None
        self._thread: Thread | None = None

    def __enter__(self) -> "FakeS3":
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
        from werkzeug.serving import make_server

        class Quiet(MotoRequestHandler):
            def log(self, type: str, message: str, *args: Any) -> None:
                """Requests are in ``FakeS3.requests``, not on the terminal."""

        self._app = DomainDispatcherApplication(create_backend_app)
        self._server = make_server("127.0.0.1", 0, self._serve, threaded=True, request_handler=Quiet)
        self._thread = Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._thread is not None
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def options(self) -> dict[str, Any]:
        """What to hand to ``S3FileStore``."""
        return {
            "key": "test",
            "secret": "test",
            "endpoint_url": f"http://127.0.0.1:{self._server.server_port}",
            "client_kwargs": {"region_name": "us-east-1"},
        }

    def make_bucket(self, name: str) -> str:
        """Make a bucket; its URL."""
        with closing(HTTPConnection("127.0.0.1", self._server.server_port)) as connection:
            connection.request("PUT", f"/{name}")
            assert connection.getresponse().status == 200
        return f"s3://{name}"

    def answer_next(self, method: str, *, status: int, apply_first: bool = False, times: int = 1, only_path: str = "") -> None:
        """Answer the next ``times`` requests of that method (whose path holds ``only_path``) with an error."""
        self._answers.append(_Answer(method, status, apply_first, times, only_path))

    def clear(self) -> None:
        """Forget faults and the record of requests."""
        self._answers.clear()
        self.requests.clear()
        self.ignore_conditions = False

    def _serve(self, environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        if self.ignore_conditions:
            environ.pop("HTTP_IF_NONE_MATCH", None)
        with self._lock:
            self.requests.append((method, path))
            answer = self._take(method, path)
            if answer is None:
                return list(self._app(environ, start))
            if answer.apply_first:
                list(self._app(environ, lambda *_: None))
            else:
                # Else the server closes the connection with the body unread, and the client sees a reset.
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
        code = _REASONS.get(answer.status, "Unknown")
        start(f"{answer.status} {code}", [("Content-Type", "application/xml")])
        return [] if method == "HEAD" else [_BODY.format(code=code).encode()]

    def _take(self, method: str, path: str) -> _Answer | None:
        for answer in self._answers:
            if answer.method == method and answer.only_path in path and answer.times > 0:
                answer.times -= 1
                return answer
        return None
