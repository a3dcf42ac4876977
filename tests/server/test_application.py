"""The application: one check for every route, limits, faults that show nothing, and an end that loses nothing."""

import logging
import threading
from typing import Any

import pytest

import tablestore as ts
from tablestore.server.access.auditlog import Decision
from tablestore.server.access.roles import Role
from tablestore.server.endpoints import ENDPOINTS, Endpoint, Need, Scope
from tests.support.served import PRINCIPALS, Served, ids_of, orders, rows, serving

NAMES = {
    "prefix": "wh", "database": "shop", "table": "orders", "view": "dear", "function": "double_it", "tag": "t1", "branch": "b1",
    "version": "1", "tableId": "x", "kind": "relations", "object": "dear",
}  # fmt: skip
# The paths of the protocol, by https://github.com/apache/paimon docs/static/rest-catalog-open-api.yaml.
PROTOCOL = """
GET /v1/config
GET POST /v1/{prefix}/databases
GET POST DELETE /v1/{prefix}/databases/{database}
POST /v1/{prefix}/databases/{database}/register
GET POST /v1/{prefix}/databases/{database}/tables
GET /v1/{prefix}/databases/{database}/table-details
GET /v1/{prefix}/tables
GET /v1/{prefix}/tables/id/{tableId}
POST /v1/{prefix}/tables/rename
GET POST DELETE /v1/{prefix}/databases/{database}/tables/{table}
POST /v1/{prefix}/databases/{database}/tables/{table}/commit
POST /v1/{prefix}/databases/{database}/tables/{table}/rollback
POST /v1/{prefix}/databases/{database}/tables/{table}/rollback-schema
GET /v1/{prefix}/databases/{database}/tables/{table}/token
POST /v1/{prefix}/databases/{database}/tables/{table}/auth
GET /v1/{prefix}/databases/{database}/tables/{table}/snapshot
GET /v1/{prefix}/databases/{database}/tables/{table}/snapshots/{version}
GET /v1/{prefix}/databases/{database}/tables/{table}/snapshots
GET POST /v1/{prefix}/databases/{database}/tables/{table}/partitions
POST /v1/{prefix}/databases/{database}/tables/{table}/partitions/drop
POST /v1/{prefix}/databases/{database}/tables/{table}/partitions/mark
POST /v1/{prefix}/databases/{database}/tables/{table}/partitions/list-by-names
POST /v1/{prefix}/databases/{database}/tables/{table}/partitions/list-by-filter
GET POST /v1/{prefix}/databases/{database}/tables/{table}/branches
DELETE /v1/{prefix}/databases/{database}/tables/{table}/branches/{branch}
POST /v1/{prefix}/databases/{database}/tables/{table}/branches/{branch}/rename
POST /v1/{prefix}/databases/{database}/tables/{table}/branches/{branch}/forward
GET POST /v1/{prefix}/databases/{database}/tables/{table}/tags
GET DELETE /v1/{prefix}/databases/{database}/tables/{table}/tags/{tag}
GET /v1/{prefix}/databases/{database}/tables/{table}/consumers
POST /v1/{prefix}/databases/{database}/tables/{table}/consumers/reset
GET POST /v1/{prefix}/databases/{database}/views
GET /v1/{prefix}/databases/{database}/view-details
GET /v1/{prefix}/views
GET POST DELETE /v1/{prefix}/databases/{database}/views/{view}
POST /v1/{prefix}/views/rename
GET POST /v1/{prefix}/databases/{database}/functions
GET /v1/{prefix}/databases/{database}/function-details
GET /v1/{prefix}/functions
GET POST DELETE /v1/{prefix}/databases/{database}/functions/{function}
POST /v1/{prefix}/databases/{database}/tables/{table}/commit-turn
POST /v1/{prefix}/databases/{database}/tables/{table}/publish
POST /v1/{prefix}/databases/{database}/tables/{table}/exchange
POST /v1/{prefix}/databases/{database}/tables/{table}/abandon
GET /v1/{prefix}/databases/{database}/definitions/{kind}
GET PUT DELETE /v1/{prefix}/databases/{database}/definitions/{kind}/{object}
"""


def path_of(endpoint: Endpoint) -> str:
    return endpoint.path.format(**NAMES)


def described(endpoint: Endpoint) -> str:
    return f"{endpoint.method} {endpoint.path}"


def test_every_path_of_the_protocol_is_served_and_no_other() -> None:
    lines = [line.split() for line in PROTOCOL.strip().splitlines()]
    assert sorted(map(described, ENDPOINTS)) == sorted(f"{method} {words[-1]}" for words in lines for method in words[:-1])


def test_every_route_of_the_application_is_in_the_table(served: Served) -> None:
    routes = {(route.path, method) for route in served.client.app.routes for method in route.methods - {"HEAD"}}  # type: ignore[attr-defined]
    assert routes - {("/healthz", "GET"), ("/readyz", "GET")} == {(one.path, one.method) for one in ENDPOINTS}


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=described)
def test_every_route_that_changes_something_needs_a_role(endpoint: Endpoint) -> None:
    assert endpoint.handler.__doc__
    if endpoint.method in ("POST", "DELETE") and endpoint.need is not Need.BODY:
        assert isinstance(endpoint.need, Role)
        reads = ("/auth", "/list-by-names", "/list-by-filter")
        least = Role.READER if endpoint.path.endswith(reads) else Role.WRITER
        assert endpoint.need.includes(least)
    if isinstance(endpoint.need, Role):
        assert endpoint.scope is not Scope.CATALOG or endpoint.need is Role.ADMIN


@pytest.mark.parametrize("who", PRINCIPALS)
def test_every_route_gives_each_role_what_it_may_have_and_never_a_fault(served: Served, who: str) -> None:
    for endpoint in ENDPOINTS:
        orders(served.catalog, "shop.orders" if not served.catalog.table_exists("shop.orders") else "other.x")
        served.catalog.drop_database("other", cascade=True, ignore_if_not_exists=True)
        response = served.send(endpoint.method, path_of(endpoint), {}, who=who)
        assert response.status_code < 500 or response.status_code == 501, f"{described(endpoint)}: {response.text}"
        decision = served.decisions[-1]
        assert (decision.principal, decision.method, decision.route) == (who, endpoint.method, endpoint.path)
        assert decision.status == response.status_code
        if not isinstance(endpoint.need, Role):
            continue
        resource = endpoint.resource({key: name for key, name in NAMES.items() if f"{{{key}}}" in endpoint.path})
        grants = [grant for grant in PRINCIPALS[who] if grant.resource in tuple(resource.scopes())]
        may = any(grant.role.includes(endpoint.need) for grant in grants)
        assert (decision.decision is Decision.ALLOWED) == may, f"{described(endpoint)} by {who}: {response.text}"
        if not may:
            assert response.status_code in (403, 404)


def test_what_a_caller_may_not_see_looks_as_if_it_was_not_there(served: Served) -> None:
    orders(served.catalog)
    orders(served.catalog, "secret.plans")
    for who in ("reader", "nobody"):
        hidden = served.refused(404, "GET", "databases/secret/tables/plans", who=who)
        nothing = served.refused(404, "GET", "databases/secret/tables/none", who=who)
        assert {**hidden, "resourceName": "", "message": ""} == {**nothing, "resourceName": "", "message": ""}
        assert served.send("GET", "databases/secret/tables", who=who).status_code == 404
    assert served.send("GET", "databases", who="reader").json()["databases"] == ["shop"]
    assert served.send("GET", "databases", who="nobody").json()["databases"] == []
    assert served.send("GET", "tables", who="reader").json()["tables"] == [{"database": "shop", "object": "orders"}]
    orders(served.catalog, "shop.other")
    assert served.send("GET", "databases/shop/tables", who="reader").json()["tables"] == ["orders"]
    identity = served.ok("GET", "databases/secret/tables/plans")["id"]
    assert served.send("GET", f"tables/id/{identity}", who="reader").status_code == 404
    assert served.refused(403, "DELETE", "databases/shop/tables/orders", who="reader")["resourceType"] == "TABLE"


def test_a_rename_needs_the_role_on_both_ends(served: Served) -> None:
    orders(served.catalog)
    served.catalog.create_database("other")
    request = {"source": {"database": "shop", "object": "orders"}, "destination": {"database": "other", "object": "o"}}
    served.refused(404, "POST", "tables/rename", request, who="owner")
    served.refused(403, "POST", "tables/rename", {**request, "destination": {"database": "shop", "object": "o"}}, who="writer")
    assert (
        served.send(
            "POST", "tables/rename", {**request, "destination": {"database": "shop", "object": "o"}}, who="owner"
        ).status_code
        == 200
    )


def test_a_token_that_nobody_knows_is_401(served: Served) -> None:
    assert served.refused(401, "GET", "databases", who="stranger")["message"].startswith("a valid token is needed")


def test_a_body_over_its_limit_is_refused_before_it_is_read(served: Served) -> None:
    generator = serving(served.catalog, most_body_bytes=1000)
    small = next(generator)
    small.refused(413, "POST", "databases", {"name": "x" * 2000})

    def endless() -> Any:
        for _ in range(10):
            yield b"x" * 500

    response = small.client.post("/v1/wh/databases", content=endless())
    assert response.status_code == 413
    small.ok("POST", "databases", {"name": "shop"})
    generator.close()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'{"name": "a", "name": "b"}',
        b'{"name": NaN}',
        b"[" * 100_000,
        b'{"name": "\\ud800"}',
    ],
)
def test_a_body_that_is_no_json_object_is_refused(served: Served, body: bytes) -> None:
    response = served.client.post("/v1/wh/databases", content=body)
    assert response.status_code == 400
    assert response.json()["code"] == 400


def test_a_path_or_method_that_nobody_serves_is_refused_in_json(served: Served) -> None:
    for path in ("/", "/v1", "/v1/wh/nothing", "/v1/wh/databases/a%2Fb", "/v2/config", "/v1/wh/databases/%ff"):
        response = served.client.get(path)
        assert response.status_code in (400, 404)
        assert response.json()["code"] == response.status_code
    assert served.client.put("/v1/wh/databases").json()["code"] == 405


def test_what_nobody_has_foreseen_is_500_without_a_trace_and_is_logged(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(self: ts.Catalog) -> tuple[str, ...]:
        raise RuntimeError("password=hunter2 in /secret/place")

    monkeypatch.setattr(ts.Catalog, "list_databases", broken)
    with caplog.at_level(logging.ERROR):
        response = served.send("GET", "databases")
    assert response.status_code == 500
    assert "hunter2" not in response.text
    assert "secret" not in response.text
    assert response.headers["x-request-id"] in response.json()["message"]
    assert response.headers["x-request-id"] in caplog.text


def test_a_damaged_file_of_a_table_is_500_and_other_tables_are_served(served: Served) -> None:
    table = orders(served.catalog)
    table.upsert(rows(1))
    orders(served.catalog, "shop.other")
    with open(f"{table.location}/snapshot/snapshot-1", "w") as file:
        file.write("{}")
    served.catalog.forget_cached()
    served.refused(500, "GET", "databases/shop/tables/orders/snapshot")
    assert served.ok("GET", "databases/shop/tables")["tables"] == ["orders", "other"]


def test_health_and_readiness_are_told_apart(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    assert served.client.get("/healthz").json() == {"alive": True}
    assert served.client.get("/readyz").json() == {"ready": True}

    def fails(self: ts.Catalog) -> tuple[str, ...]:
        raise ts.StorageError("gone")

    monkeypatch.setattr(ts.Catalog, "list_databases", fails)
    assert served.client.get("/healthz").status_code == 200
    assert served.client.get("/readyz").status_code == 503
    assert served.refused(503, "GET", "databases")["message"] == "gone"
    assert served.send("GET", "databases").headers["retry-after"] == "1"


def test_a_service_that_ends_refuses_new_requests_and_ends_those_that_run(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, go_on = threading.Event(), threading.Event()
    list_databases = ts.Catalog.list_databases

    def slow(self: ts.Catalog) -> tuple[str, ...]:
        entered.set()
        assert go_on.wait(30)
        return list_databases(self)

    monkeypatch.setattr(ts.Catalog, "list_databases", slow)
    answers: list[int] = []
    running = threading.Thread(target=lambda: answers.append(served.send("GET", "databases").status_code))
    running.start()
    assert entered.wait(30)
    liveness = served.application.liveness
    assert served.client.portal is not None
    ended = served.client.portal.start_task_soon(liveness.drained, 30.0)
    while not liveness.is_ending:
        pass
    response = served.send("GET", "databases")
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    assert served.client.get("/readyz").status_code == 503
    assert not ended.done()
    go_on.set()
    running.join()
    assert ended.result(30) is True
    assert answers == [200]


def test_requests_wait_for_a_thread_for_a_while(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = serving(served.catalog, threads=1, waiting_s=0.05)
    narrow = next(generator)
    entered, go_on = threading.Event(), threading.Event()

    def slow(self: ts.Catalog) -> tuple[str, ...]:
        entered.set()
        assert go_on.wait(30)
        return ()

    monkeypatch.setattr(ts.Catalog, "list_databases", slow)
    running = threading.Thread(target=lambda: narrow.send("GET", "databases"))
    running.start()
    assert entered.wait(30)
    assert "busy" in narrow.refused(503, "GET", "databases/shop")["message"]
    go_on.set()
    running.join()
    assert narrow.send("GET", "databases").status_code == 200
    generator.close()


def test_every_decision_is_recorded_with_its_answer(served: Served) -> None:
    table = orders(served.catalog)
    table.upsert(rows(1))
    served.send("DELETE", "databases/shop/tables/orders", who="reader")
    decision = served.decisions[-1]
    assert (decision.principal, decision.method, decision.resource) == ("reader", "DELETE", "shop.orders")
    assert (decision.role, decision.decision, decision.status) == ("owner", Decision.DENIED, 403)
    assert ids_of(table) == [1]
    assert decision.request
