"""The whole service: callers by their tokens, checks of every request, figures, records, and where it may listen."""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from starlette.testclient import TestClient

import tablestore as ts
from tablestore.errors import InvalidInputError, StorageError
from tablestore.ids import SystemIds
from tablestore.server.access.accessstore import AccessStore, open_access_store
from tablestore.server.access.identities import create_token, revoke_tokens
from tablestore.server.access.queryrules import QueryRule
from tablestore.server.access.roles import CATALOG, Grant, Resource, Role
from tablestore.server.teamservice import ServiceSettings, build_service
from tablestore.testing.deterministic import ManualClock

SETTINGS = ServiceSettings(name="lake")


class Team:
    """A warehouse, its store of tokens, and a clock."""

    def __init__(self, folder: Path) -> None:
        self.catalog = ts.open_catalog(str(folder))
        self.catalog.create_database("shop")
        self.catalog.create_table("shop.orders", "id BIGINT, region STRING, email STRING").append(
            pa.table({"id": [1], "region": ["eu"], "email": ["a@b"]})
        )
        self.store: AccessStore = open_access_store({"warehouse": str(folder)}, SystemIds())
        self.clock = ManualClock()

    def token(self, name: str, role: Role, resource: Resource = CATALOG, expires_in_ms: int | None = None) -> str:
        token, text = create_token(
            SystemIds(), name=name, grants=[Grant(role, resource)], now_ms=self.clock.now_ms(), expires_in_ms=expires_in_ms
        )
        self.store.change(lambda document: replace(document, tokens=(*document.tokens, token)))
        return text

    @contextmanager
    def client(self, settings: ServiceSettings = SETTINGS, host: str = "127.0.0.1") -> Iterator["Client"]:
        built = build_service(settings, self.catalog, self.store, self.clock, SystemIds())
        with closing(built), TestClient(built.app, base_url=f"http://{host}", raise_server_exceptions=False) as client:
            yield Client(client)


class Client:
    """Requests with a token."""

    def __init__(self, http: TestClient) -> None:
        self.http = http

    def status(self, method: str, path: str, token: str | None = None, **options: Any) -> int:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        return int(self.http.request(method, path, headers=headers, **options).status_code)


@pytest.fixture
def team(tmp_path: Path) -> Team:
    return Team(tmp_path / "wh")


TABLE = "/v1/lake/databases/shop/tables/orders"


def test_from_the_first_token_on_every_request_needs_one(team: Team) -> None:
    with team.client() as client:
        assert client.status("GET", TABLE) == 200
        token = team.token("ada", Role.READER)
        assert client.status("GET", TABLE) == 401
        assert client.status("GET", TABLE, "tsk_" + "x" * 43) == 401
        assert client.status("GET", TABLE, token) == 200
        assert client.status("DELETE", TABLE, token) == 403
    assert team.catalog.table_exists("shop.orders")


def test_a_token_that_is_revoked_or_expired_opens_nothing_from_then_on(team: Team) -> None:
    token, brief = team.token("ada", Role.ADMIN), team.token("eve", Role.ADMIN, expires_in_ms=1000)
    with team.client() as client:
        assert (client.status("GET", TABLE, token), client.status("GET", TABLE, brief)) == (200, 200)
        team.clock.sleep(2)
        assert client.status("GET", TABLE, brief) == 401
        now_ms = team.clock.now_ms()
        team.store.change(lambda document: replace(document, tokens=revoke_tokens(document.tokens, "ada", now_ms)[0]))
        assert client.status("GET", TABLE, token) == 401


def test_a_service_whose_tokens_were_removed_lets_nobody_in(team: Team, tmp_path: Path) -> None:
    token = team.token("ada", Role.ADMIN)
    with team.client() as client:
        assert client.status("GET", TABLE, token) == 200
        (tmp_path / "wh" / ".tablestore" / "access.json").unlink()
        assert client.status("GET", TABLE) == 401 and client.status("DELETE", TABLE, token) == 401
    assert team.catalog.table_exists("shop.orders")


@pytest.mark.parametrize("verb", ["publish", "exchange", "abandon"])
@pytest.mark.parametrize(
    "directory", [".tablestore", "raw", "shop.db/orders", "_ctas/job", "_ctas/.x/t", "_ctas/job/t/schema", "_jobs/a/b"]
)
def test_only_the_directory_of_a_job_gets_a_name(team: Team, tmp_path: Path, verb: str, directory: str) -> None:
    token = team.token("ada", Role.OWNER, Resource("shop"))
    (tmp_path / "wh" / "raw").mkdir()
    (tmp_path / "wh" / "raw" / "x.csv").write_text("1")
    uuid = team.catalog.table("shop.orders").table_schema.options["tablestore.table-uuid"]
    body = {"directory": directory, "tableUuid": uuid}
    with team.client() as client:
        for table in ("orders", "n1"):
            assert client.status("POST", f"/v1/lake/databases/shop/tables/{table}/{verb}", token, json=body) == 400
        assert client.status("GET", "/v1/lake/databases") == 401
    assert (tmp_path / "wh" / "raw" / "x.csv").exists() and team.catalog.list_tables("shop") == ("orders",)


def test_a_table_with_a_rule_is_not_renamed_away_from_it(team: Team) -> None:
    token = team.token("eve", Role.OWNER)
    rule = QueryRule(table=Resource("shop", "orders"), row_filter="region = 'us'")
    team.store.change(lambda document: replace(document, rules=(rule,)))
    names = {"source": {"database": "shop", "object": "orders"}, "destination": {"database": "shop", "object": "sales"}}
    with team.client() as client:
        assert client.status("POST", "/v1/lake/tables/rename", token, json=names) == 400
        assert client.status("POST", "/v1/lake/tables/rename?own-log=true", token, json=names) == 400
    assert team.catalog.table_exists("shop.orders")


def test_a_role_on_a_function_ignores_case_as_its_name_does(team: Team) -> None:
    sql = {"type": "sql", "definition": "1"}
    function = {
        "name": "area",
        "inputParams": [],
        "returnParams": [{"id": 0, "name": "r", "type": "INT"}],
        "definitions": {"x": sql},
    }
    admin = team.token("ada", Role.ADMIN)
    upper, lower = team.token("eve", Role.OWNER, Resource("shop", "AREA")), team.token("bob", Role.OWNER, Resource("shop", "area"))
    with team.client() as client:
        assert client.status("POST", "/v1/lake/databases/shop/functions", admin, json=function) == 200
        assert client.status("DELETE", "/v1/lake/databases/shop/functions/AREA", upper) == 404
        assert client.status("DELETE", "/v1/lake/databases/shop/functions/AREA", lower) == 200


def test_a_time_that_no_tag_can_hold_is_refused_and_leaves_no_tag(team: Team) -> None:
    with team.client() as client:
        body = {"tagName": "t3", "timeRetained": "9999999999999999 d"}
        assert client.status("POST", f"{TABLE}/tags", json=body) == 400
        assert client.http.get(f"{TABLE}/tags").json()["tags"] == []


def test_a_damaged_tag_can_be_deleted(team: Team) -> None:
    table = team.catalog.table("shop.orders")
    assert isinstance(table, ts.Table)
    table.context.files.write("tag/tag-broken", b"{")
    with team.client() as client:
        assert client.status("DELETE", f"{TABLE}/tags/broken") == 200
    assert table.tags() == ()


def test_tokens_can_be_needed_before_there_is_one(team: Team) -> None:
    with team.client(replace(SETTINGS, tokens_required=True)) as client:
        assert client.status("GET", TABLE) == 401


def test_a_role_on_one_table_shows_that_table_alone(team: Team) -> None:
    team.catalog.create_database("secret")
    team.catalog.create_table("secret.plans", "id BIGINT")
    token = team.token("ada", Role.WRITER, Resource("shop", "orders"))
    with team.client() as client:
        headers = {"authorization": f"Bearer {token}"}
        assert client.http.get("/v1/lake/databases", headers=headers).json()["databases"] == ["shop"]
        assert client.status("GET", "/v1/lake/databases/secret/tables/plans", token) == 404
        assert client.status("GET", "/v1/lake/databases/secret", token) == 404
        assert client.status("POST", "/v1/lake/databases/shop/tables", token, json={}) == 403


def test_rules_for_queries_are_what_auth_answers_at_once(team: Team) -> None:
    token = team.token("ada", Role.READER)
    rule = QueryRule(table=Resource("shop", "orders"), row_filter="region = 'eu'", column_masks=(("email", None),))
    with team.client() as client:
        headers = {"authorization": f"Bearer {token}"}
        assert client.http.post(f"{TABLE}/auth", headers=headers, json={}).json() == {"filter": [], "columnMasking": {}}
        team.store.change(lambda document: replace(document, rules=(rule,)))
        answer = client.http.post(f"{TABLE}/auth", headers=headers, json={}).json()
    assert len(answer["filter"]) == 1 and "region" in answer["filter"][0] and list(answer["columnMasking"]) == ["email"]


def test_every_request_leaves_a_line_without_its_token(team: Team, tmp_path: Path) -> None:
    token = team.token("ada", Role.READER, Resource("shop"))
    log = tmp_path / "audit.jsonl"
    with team.client(replace(SETTINGS, audit_log=str(log))) as client:
        client.status("GET", TABLE, token)
        client.status("DELETE", TABLE, token)
        client.status("GET", TABLE, "wrong")
        request = client.http.get(TABLE, headers={"authorization": f"Bearer {token}"}).headers["x-request-id"]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    decided = [(line["principal"], line["method"], line["resource"], line["decision"], line["status"]) for line in lines]
    assert decided == [
        ("ada", "GET", "shop.orders", "allowed", 200),
        ("ada", "DELETE", "shop.orders", "denied", 403),
        (None, "GET", "", "unauthenticated", 401),
        ("ada", "GET", "shop.orders", "allowed", 200),
    ]
    assert lines[-1]["request"] == request and token not in log.read_text() and "wrong" not in log.read_text()


def test_what_cannot_be_recorded_is_not_answered(team: Team, tmp_path: Path) -> None:
    settings = replace(SETTINGS, audit_log=str(tmp_path / "no" / "folder"))
    with pytest.raises(StorageError, match="audit log"), team.client(settings):
        pass
    with team.client(replace(SETTINGS, audit_log="/dev/full")) as client:
        assert client.status("GET", TABLE) == 503


def test_a_token_has_so_many_requests_and_then_waits(team: Team) -> None:
    token, other = team.token("ada", Role.READER), team.token("eve", Role.READER)
    with team.client(replace(SETTINGS, requests_per_s=100)) as client:
        statuses = [client.status("GET", TABLE, token) for _ in range(250)]
        assert statuses.count(200) == 200 and statuses[-1] == 429
        team.clock.sleep(10)
        assert client.status("GET", TABLE, other) == 200


def test_figures_are_for_readers_of_the_catalog(team: Team) -> None:
    reader, narrow = team.token("ada", Role.READER), team.token("eve", Role.READER, Resource("shop"))
    with team.client() as client:
        client.status("GET", TABLE, reader)
        assert client.status("GET", "/metrics") == 401 and client.status("GET", "/metrics", narrow) == 403
        text = client.http.get("/metrics", headers={"authorization": f"Bearer {reader}"}).text
    assert (
        'tablestore_requests_total{method="GET",route="/v1/{prefix}/databases/{database}/tables/{table}",status="200"} 1.0' in text
    )


def test_pages_show_a_caller_what_it_sees_and_ask_a_browser_for_its_token(team: Team) -> None:
    team.catalog.create_database("secret")
    team.catalog.create_table("secret.plans", "id BIGINT")
    with team.client() as client:
        assert client.http.get("/").url.path == "/page" and "plans" in client.http.get("/page").text
        token = team.token("ada", Role.READER, Resource("shop"))
        asked = client.http.get("/page")
        assert asked.status_code == 401 and asked.headers["www-authenticate"].startswith("Basic ")
        shown = client.http.get("/page", auth=("anybody", token))
        assert shown.status_code == 200 and "orders" in shown.text and "plans" not in shown.text
        assert client.http.get("/page/tables/secret/plans", auth=("", token)).status_code == 404
        table = client.http.get("/page/tables/shop/orders", auth=("", token))
        assert "a@b" in table.text and "script-src 'self'" in table.headers["content-security-policy"]
        assert client.http.get("/page/tables/shop/orders", auth=("", "wrong")).status_code == 401
        for header in (b"Basic %%%", b"Basic \xff", b"Basic /w=="):
            assert client.http.get("/page/tables/shop/orders", headers={b"authorization": header}).status_code == 401


def test_a_table_with_a_rule_for_its_caller_is_on_no_page(team: Team) -> None:
    token, owner = team.token("ada", Role.READER), team.token("eve", Role.OWNER)
    rule = QueryRule(table=Resource("shop", "orders"), roles=(Role.READER,), column_masks=(("email", None),))
    team.store.change(lambda document: replace(document, rules=(rule,)))
    with team.client(replace(SETTINGS, query_role=Role.READER)) as client:
        for path in ("/page", "/page/tables/shop/orders", "/page/query?sql=SELECT * FROM shop.orders"):
            assert "a@b" not in client.http.get(path, auth=("", token)).text
        assert client.http.get("/page/tables/shop/orders", auth=("", token)).status_code == 404
        assert "a@b" in client.http.get("/page/tables/shop/orders", auth=("", owner)).text


def test_queries_on_the_page_are_for_the_role_that_has_them(team: Team) -> None:
    reader, writer = team.token("ada", Role.READER), team.token("eve", Role.WRITER)
    query = "/page/query?q=SELECT%20email%20FROM%20shop.orders&sql=SELECT%20email%20FROM%20shop.orders"
    with team.client(replace(SETTINGS, query_role=Role.WRITER)) as client:
        assert "a@b" in client.http.get(query, auth=("", writer)).text
        refused = client.http.get(query, auth=("", reader))
        assert refused.status_code == 403 and "a@b" not in refused.text
    with team.client() as client:
        assert "a@b" not in client.http.get(query, auth=("", writer)).text


@pytest.mark.parametrize(("host", "status"), [("127.0.0.1", 200), ("localhost", 200), ("evil.example", 421)])
def test_a_name_that_is_not_its_own_is_refused(team: Team, host: str, status: int) -> None:
    with team.client(host=host) as client:
        assert client.status("GET", TABLE) == status


def test_a_page_of_another_site_sends_nothing(team: Team) -> None:
    with team.client() as client:
        response = client.http.request("DELETE", TABLE, headers={"origin": "https://evil.example"})
        assert response.status_code == 403
        assert client.http.get(TABLE).headers["content-security-policy"].startswith("default-src 'none'")
    assert team.catalog.table_exists("shop.orders")


@pytest.mark.parametrize(
    ("changes", "has_tokens", "words"),
    [
        ({"host": "0.0.0.0", "allowed_hosts": ("lake.example",)}, False, "everybody may do anything"),
        ({"host": "0.0.0.0", "allowed_hosts": ("lake.example",)}, True, "without TLS"),
        ({"host": "0.0.0.0", "proxies": ("10.0.0.5",)}, True, "--allowed-host"),
        ({"proxies": ("10.0.0.5",)}, False, "everybody may do anything"),
        ({"certificate": "c.pem"}, True, "two files"),
        ({"certificate": "/none/c.pem", "key": "/none/k.pem"}, True, "no certificate with its key"),
    ],
)
def test_an_unsafe_service_does_not_start(team: Team, changes: dict[str, Any], has_tokens: bool, words: str) -> None:
    if has_tokens:
        team.token("ada", Role.ADMIN)
    with pytest.raises(InvalidInputError, match=words):
        build_service(replace(SETTINGS, **changes), team.catalog, team.store, team.clock, SystemIds())
