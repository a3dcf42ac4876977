"""Requests to a catalog service, against a real server that answers what a test says."""

import json
import pickle
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from tablestore.errors import (
    AlreadyExistsError,
    ConflictError,
    FormatError,
    InvalidInputError,
    NotFoundError,
    StorageError,
    TablestoreError,
    UnsupportedError,
)
from tablestore.io.opening import open_store
from tablestore.io.service.serviceclient import ERROR_HEADER, KIND_HEADER, UNDONE_HEADER, ServiceClient
from tablestore.io.service.servicestore import ServiceFileStore
from tablestore.testing.deterministic import ManualClock


@dataclass(frozen=True)
class Answer:
    """An answer; status 0 closes the connection instead, and ``cut`` half of the body comes."""

    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    cut: bool = False


@dataclass
class Service:
    """A server, its address, and the requests that came."""

    client: ServiceClient
    requests: list[tuple[str, str, dict[str, str], bytes]]


@contextmanager
def answering(*answers: Answer) -> Iterator[Service]:
    """A server that gives these answers in turn, the last one again and again."""
    requests: list[tuple[str, str, dict[str, str], bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            headers = {key.lower(): value for key, value in self.headers.items()}
            requests.append((self.command, self.path, headers, body))
            answer = answers[min(len(requests), len(answers)) - 1]
            if not answer.status:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for key, value in answer.headers.items():
                self.send_header(key, value)
            self.send_header("content-length", str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body[: len(answer.body) // 2] if answer.cut else answer.body)
            self.close_connection = answer.cut

        do_GET = do_POST = do_DELETE = do_PUT = answer

        def log_message(self, *_: Any) -> None:
            """Prints nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield Service(ServiceClient(uri=f"http://127.0.0.1:{server.server_port}", clock=ManualClock()), requests)
        finally:
            server.shutdown()
            thread.join(60)


def test_a_question_is_asked_in_json_with_the_token_that_the_environment_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CATALOG_TOKEN", "canary")
    with answering(Answer(body=b'{"tables": ["a"]}')) as service:
        client = replace(service.client, token="env:CATALOG_TOKEN", prefix="team/one")
        path = client.path("databases", "odd name/ä", "tables")
        assert client.get(path, {"maxResults": 2, "pageToken": None}) == {"tables": ["a"]}
        method, target, headers, body = service.requests[0]
    assert (method, body) == ("GET", b"")
    assert target == "/v1/team/one/databases/odd%20name%2F%C3%A4/tables?maxResults=2"
    assert headers["authorization"] == "Bearer canary"


def test_a_change_is_sent_in_json_and_an_empty_answer_is_nothing() -> None:
    with answering(Answer(body=b"")) as service:
        assert service.client.send("POST", "/v1/databases", {"name": "ä"}) is None
        method, _, headers, body = service.requests[0]
    assert (method, json.loads(body), headers["content-type"]) == ("POST", {"name": "ä"}, "application/json")


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_service_that_is_busy_is_asked_again_when_it_says(status: int, method: str) -> None:
    clock = ManualClock()
    with answering(Answer(status, headers={"retry-after": "7", UNDONE_HEADER: "true"}), Answer(body=b"1")) as service:
        client = replace(service.client, clock=clock)
        began = clock.steady_s()
        assert (client.get("/v1/x") if method == "GET" else client.send(method, "/v1/x")) == 1
    assert clock.steady_s() - began >= 7 and len(service.requests) == 2


def test_a_service_that_stays_busy_is_an_error_that_decides_nothing_wrong() -> None:
    with answering(Answer(503, headers={UNDONE_HEADER: "true"})) as service, pytest.raises(StorageError) as refused:
        service.client.send("POST", "/v1/x")
    # It did nothing, so it is certain that nothing happened.
    assert refused.value.kind == "unavailable" and len(service.requests) == 5


@pytest.mark.parametrize(
    "broken",
    [
        Answer(0),
        Answer(500),
        Answer(502),
        Answer(503),
        Answer(503, headers={ERROR_HEADER: "StorageError"}),
        Answer(body=b'{"a": 1}' * 100, cut=True),
    ],
)
def test_a_question_without_an_answer_is_repeated_and_a_change_is_not(broken: Answer) -> None:
    with answering(broken, Answer(body=b"2")) as service:
        assert service.client.get("/v1/x") == 2
    with answering(broken, Answer(body=b"2")) as service, pytest.raises(StorageError) as refused:
        service.client.send("POST", "/v1/x")
    assert refused.value.kind == "unknown-outcome" and len(service.requests) == 1


def test_a_service_that_is_not_there_was_certainly_not_asked() -> None:
    with answering(Answer()) as service:
        client = service.client
    with pytest.raises(StorageError, match="nothing answers") as refused:
        client.send("POST", "/v1/x")
    assert refused.value.kind == "unavailable"


@pytest.mark.parametrize(
    ("status", "body", "error", "kind"),
    [
        (400, {"message": "bad"}, InvalidInputError, "invalid-input"),
        (401, {"message": "who"}, StorageError, "denied"),
        (403, {"message": "no"}, StorageError, "denied"),
        (404, {"message": "gone", "resourceType": "TABLE"}, NotFoundError, "no-such-table"),
        (404, {"message": "gone", "resourceType": "DATABASE"}, NotFoundError, "no-such-database"),
        (409, {"message": "there", "resourceType": "TABLE"}, AlreadyExistsError, "table-exists"),
        (501, {"message": "not here"}, UnsupportedError, "unsupported"),
        (404, "no json", NotFoundError, "not-found"),
    ],
)
def test_what_a_service_answers_is_an_error_of_ours(status: int, body: object, error: type[TablestoreError], kind: str) -> None:
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    with answering(Answer(status, content)) as service, pytest.raises(error) as refused:
        service.client.get("/v1/x")
    assert refused.value.kind == kind and len(service.requests) == 1


def test_a_service_of_tablestore_names_class_and_kind_of_its_errors() -> None:
    headers = {ERROR_HEADER: "ConflictError", KIND_HEADER: "table-replaced"}
    with answering(Answer(409, b'{"message": "another table"}', headers)) as service, pytest.raises(ConflictError) as refused:
        service.client.send("DELETE", "/v1/x")
    assert (refused.value.kind, refused.value.message) == ("table-replaced", "another table")
    # What is no error of ours is never looked up as one.
    with answering(Answer(400, b"{}", {ERROR_HEADER: "without_secrets"})) as service, pytest.raises(InvalidInputError):
        service.client.get("/v1/x")


def test_what_is_no_json_is_named() -> None:
    with answering(Answer(body=b"<html>")) as service, pytest.raises(FormatError, match="address of a catalog service"):
        service.client.get("/v1/x")


def test_a_redirect_is_not_followed_because_the_token_would_be_sent_along() -> None:
    with answering(Answer(302, headers={"location": "http://127.0.0.1:1/"})) as service, pytest.raises(StorageError):
        service.client.send("POST", "/v1/x")
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("token", "stays"), [("env:CATALOG_TOKEN", True), ("file:/run/token", True), ("canary", False), (None, True)]
)
def test_a_token_in_plain_text_does_not_leave_the_process(token: str | None, stays: bool) -> None:
    client = ServiceClient(uri="https://host", token=token, prefix="p")
    assert "canary" not in repr(client) and b"canary" not in pickle.dumps(client)
    copy = pickle.loads(pickle.dumps(client))
    assert (copy.uri, copy.prefix) == (client.uri, client.prefix) and (copy.token == token) is stays


@pytest.mark.parametrize("token", ["canary\n", "canary canary", "canary☃", "canary\x00", ""])
def test_a_token_that_no_header_can_hold_is_refused_without_being_shown(token: str) -> None:
    with answering(Answer()) as service, pytest.raises(InvalidInputError) as refused:
        replace(service.client, token=token).get("/v1/x")
    assert refused.value.kind == "secret" and "canary" not in str(refused.value) and not service.requests


def test_a_store_with_a_service_keeps_it_in_every_directory_and_process(tmp_path: Any) -> None:
    options = {"catalog.service.uri": "https://host/", "catalog.service.token": "env:T"}
    store = open_store(tmp_path, options).at("shop.db/orders")
    assert isinstance(store, ServiceFileStore) and store.service.uri == "https://host"
    copy = pickle.loads(pickle.dumps(store))
    assert copy.service == store.service and copy.root_uri == store.root_uri


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"catalog.service.urii": "https://host"}, "catalog.service.uri"),
        ({"catalog.service.token": "env:T"}, "without catalog.service.uri"),
        ({"catalog.service.uri": "host:80"}, "address of a catalog service"),
        ({"catalog.service.uri": "ftp://host"}, "address of a catalog service"),
        ({"catalog.service.uri": "https://host/?x=1"}, "address of a catalog service"),
        ({"catalog.service.uri": "https://me:secret@host"}, "no user and password"),
        ({"catalog.service.uri": "me:secret@host"}, "address of a catalog service"),
        ({"catalog.service.uri": "http://me:secret@[::1"}, "address of a catalog service"),
    ],
)
def test_options_of_a_service_are_checked(tmp_path: Any, options: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidInputError, match=words) as refused:
        open_store(tmp_path, options)
    assert "secret@" not in str(refused.value)
