"""``tablestore token``: created once, listed without secrets, revoked at once."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import tablestore as ts
from tablestore.clock import SystemClock
from tablestore.ids import SystemIds
from tablestore.options import DAY_MS
from tablestore.server.access.accessstore import CurrentTokens, open_access_store
from tablestore.server.access.denials import Unauthenticated
from tablestore.server.access.identities import Authenticator
from tablestore.server.access.roles import Grant, Principal, Resource, Role
from tests.support.commandline import Ran

Run = Callable[..., Ran]


def caller(warehouse: str, token: str, *, days: int = 0, **options: str) -> Principal:
    store = open_access_store({"warehouse": warehouse, **options}, SystemIds())
    now_ms = SystemClock().now_ms() + days * DAY_MS
    return Authenticator(CurrentTokens(store)).authenticate(f"Bearer {token}", now_ms)


def test_a_token_is_printed_once_and_opens_what_it_was_created_for(run: Run, warehouse: str) -> None:
    ran = run("token", "create", "--role", "reader", "--database", "shop", "--table", "orders", "--name", "reports")
    token = ran.out.strip()
    assert caller(warehouse, token) == Principal(name="reports", grants=(Grant(Role.READER, Resource("shop", "orders")),))
    assert "shown this once" in " ".join(ran.err.split())
    assert token not in ran.err
    stored = (Path(warehouse) / ".tablestore" / "access.json").read_text()
    assert token not in stored + run("token", "list", "--json").out + run("token", "list").out


@pytest.mark.parametrize(
    ("scope", "resource"), [((), Resource()), (("--database", "shop"), Resource("shop"))], ids=["catalog", "database"]
)
@pytest.mark.parametrize("role", list(Role))
def test_each_role_is_given_on_what_is_named(
    run: Run, warehouse: str, role: Role, scope: Sequence[str], resource: Resource
) -> None:
    document = run("token", "create", "--role", role, *scope, "--json").json
    assert caller(warehouse, document["token"]).grants == (Grant(role, resource),)
    assert document["roles"] == [f"{role} on {resource}"]


def test_a_token_expires_after_its_time_and_after_ninety_days_unless_it_is_told(run: Run, warehouse: str) -> None:
    create = ("token", "create", "--role", "reader", "--json")
    for options, last_day in ((("--expires", "30d"), 29), ((), 89)):
        token = run(*create, *options).json["token"]
        assert caller(warehouse, token, days=last_day)
        with pytest.raises(Unauthenticated):
            caller(warehouse, token, days=last_day + 1)
    assert caller(warehouse, run(*create, "--expires", "never").json["token"], days=100_000)


def test_a_revoked_token_opens_nothing_and_is_listed_with_all_alone(run: Run, warehouse: str) -> None:
    first, second = (run("token", "create", "--role", "reader", "--name", "ada", "--json").json for _ in range(2))
    assert run("token", "revoke", first["id"], "--json").json == {"revoked": [first["id"]]}
    with pytest.raises(Unauthenticated):
        caller(warehouse, first["token"])
    assert caller(warehouse, second["token"]).name == "ada"
    assert [one["id"] for one in run("token", "list", "--json").json["tokens"]] == [second["id"]]
    assert [one["state"] for one in run("token", "list", "--all", "--json").json["tokens"]] == ["revoked", "live"]
    run("token", "revoke", "ada")
    with pytest.raises(Unauthenticated):
        caller(warehouse, second["token"])
    assert "did you mean 'ada'" in run("token", "revoke", "ad", code=1).err


def test_tokens_lie_in_the_database_of_a_sql_catalog_or_in_the_file_that_is_named(run: Run, warehouse: str, tmp_path: Path) -> None:
    sql = {"metastore": "jdbc", "uri": f"sqlite:///{tmp_path}/catalog.db"}
    storage = [word for key, value in sql.items() for word in ("--storage", f"{key}={value}")]
    token = run("token", "create", "--role", "admin", *storage).out.strip()
    assert caller(warehouse, token, **sql).grants == (Grant(Role.ADMIN),)
    file = tmp_path / "tokens.json"
    run("token", "create", "--role", "admin", "--tokens", file, "--warehouse", "s3://bucket/warehouse")
    assert len(json.loads(file.read_text())["tokens"]) == 1
    assert not (Path(warehouse) / ".tablestore").exists()
    assert "--tokens" in run("token", "list", "--warehouse", "s3://bucket/warehouse", code=1).err


def test_a_command_line_that_is_wrong_says_so_and_stores_nothing(run: Run, warehouse: str) -> None:
    create = ("token", "create", "--role")
    assert "--database" in run(*create, "reader", "--table", "orders", code=2).err
    assert "reader" in run(*create, "root", code=2).err
    for wrong in (("--database", "../etc"), ("--name", "<b>"), ("--expires", "soon"), ("--expires", "0 d")):
        run(*create, "reader", *wrong, code=1)
    assert not (Path(warehouse) / ".tablestore").exists()


def test_without_a_warehouse_and_a_file_the_place_is_asked_for(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TABLESTORE_WAREHOUSE")
    assert "--tokens" in run("token", "list", code=2).err


def test_rules_are_checked_against_their_tables_and_replaced_as_a_whole(run: Run, orders: ts.Table, tmp_path: Path) -> None:
    assert run("token", "rules", "--json").json == {"rules": []}
    file = tmp_path / "rules.json"
    rule = {"database": "shop", "table": "orders", "roles": ["reader"], "row_filter": "price < 5", "column_masks": {"item": "'*'"}}
    file.write_text(json.dumps([rule]))
    assert "--yes" in run("token", "rules", file, code=3).err
    assert run("token", "rules", "--json").json == {"rules": []}
    run("token", "rules", file, "--yes")
    assert run("token", "rules", "--json").json == {"rules": [{**rule, "principals": []}]}
    assert "price < 5" in run("token", "rules").out
    # Creating and revoking tokens leaves them alone.
    run("token", "create", "--role", "reader", "--name", "ada")
    run("token", "revoke", "ada")
    for wrong in ({"row_filter": "gone = 1"}, {"column_masks": {"price": "'x'"}}, {"table": "none"}, {"more": 1}):
        file.write_text(json.dumps([{**rule, **wrong}]))
        run("token", "rules", file, "--yes", code=1)
    for text in ("{}", "{", "[1]"):
        file.write_text(text)
        assert "rules.json" in run("token", "rules", file, "--yes", code=1).err
    assert run("token", "rules", "--json").json == {"rules": [{**rule, "principals": []}]}
    file.write_text("[]")
    run("token", "rules", file, "--yes")
    assert run("token", "rules", "--json").json == {"rules": []}
