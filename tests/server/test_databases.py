"""Databases of the protocol: listed in pages, created, described, altered, dropped."""

from pathlib import Path

import pytest

import tablestore as ts
from tests.support.served import Served, orders, serving


def test_a_client_learns_the_prefix_of_its_paths(served: Served) -> None:
    for query in (
        {},
        {"warehouse": "wh"},
        {"warehouse": served.catalog.location},
        {"warehouse": f"file://{served.catalog.location}"},
    ):
        assert served.ok("GET", "/v1/config", **query)["overrides"] == {"prefix": "wh"}
    assert "'wh'" in served.refused(404, "GET", "/v1/config", warehouse="other")["message"]
    assert served.refused(404, "GET", "/v1/other/databases")["resourceType"] is None


def test_a_client_learns_the_options_of_new_tables(tmp_path: Path) -> None:
    defaults = {"table-default.bucket": "3", "table-default.snapshot.num-retained.max": "70"}
    for served in serving(ts.open_catalog(str(tmp_path / "wh"), **defaults)):
        answer = served.ok("GET", "/v1/config")
        assert answer["defaults"].items() >= defaults.items()
        assert answer["overrides"] == {"prefix": "wh"}


def test_databases_are_made_described_altered_and_dropped_with_all_in_them(served_any: Served) -> None:
    served = served_any
    served.ok("POST", "databases", {"name": "shop", "options": {"owner": "ann", "comment": "sales"}})
    assert served.refused(409, "POST", "databases", {"name": "shop"})["resourceType"] == "DATABASE"
    database = served.ok("GET", "databases/shop")
    assert database["options"] == {"owner": "ann", "comment": "sales"}
    assert database["owner"] == "ann"
    assert database["location"] == f"file://{served.catalog.location}/shop.db"
    answer = served.ok("POST", "databases/shop", {"removals": ["comment", "nothing"], "updates": {"owner": "bob", "a": "b"}})
    assert answer == {"removed": ["comment"], "updated": ["a", "owner"], "missing": ["nothing"]}
    assert served.ok("GET", "databases/shop")["options"] == {"owner": "bob", "a": "b"}
    orders(served.catalog)
    served.ok("DELETE", "databases/shop")
    assert served.catalog.list_databases() == ()
    assert served.refused(404, "DELETE", "databases/shop") == {
        "code": 404, "message": "there is no database 'shop'", "resourceType": "DATABASE", "resourceName": "shop",
    }  # fmt: skip


def test_properties_do_not_keep_a_database_from_being_empty(served_any: Served) -> None:
    served_any.ok("POST", "databases", {"name": "shop", "options": {"owner": "ann"}})
    served_any.catalog.drop_database("shop")
    assert served_any.catalog.list_databases() == ()
    served_any.ok("POST", "databases", {"name": "shop"})
    assert served_any.ok("GET", "databases/shop")["options"] == {}


def test_databases_are_listed_in_pages_that_fit_a_pattern(served: Served) -> None:
    for name in ("a1", "a2", "a3", "b1", "a_b"):
        served.catalog.create_database(name)
    assert served.ok("GET", "databases") == {"databases": ["a1", "a2", "a3", "a_b", "b1"], "nextPageToken": None}
    first = served.ok("GET", "databases", maxResults="2")
    assert first == {"databases": ["a1", "a2"], "nextPageToken": "a2"}
    served.catalog.drop_database("a2")
    assert served.ok("GET", "databases", maxResults="2", pageToken="a2")["databases"] == ["a3", "a_b"]
    assert served.ok("GET", "databases", databaseNamePattern="a%")["databases"] == ["a1", "a3", "a_b"]
    assert served.ok("GET", "databases", databaseNamePattern="a1")["databases"] == ["a1"]
    assert served.ok("GET", "databases", databaseNamePattern="a\\_%")["databases"] == ["a_b"]
    served.refused(400, "GET", "databases", databaseNamePattern="%a")
    served.refused(400, "GET", "databases", maxResults="many")
    served.refused(400, "GET", "databases", maxResults="-1")


@pytest.mark.parametrize("name", ["../x", "a/b", "", "a.b", " ", "\u202e", "x" * 200, "-rf"])
def test_a_name_that_no_database_may_have_is_refused_and_makes_nothing(served: Served, name: str) -> None:
    served.refused(400, "POST", "databases", {"name": name})
    assert served.catalog.list_databases() == ()


def test_a_property_that_may_hold_a_secret_is_refused(served: Served) -> None:
    answer = served.refused(400, "POST", "databases", {"name": "shop", "options": {"s3.secret-key": "hunter2"}})
    assert "hunter2" not in answer["message"]
    assert served.catalog.list_databases() == ()


def test_tables_of_a_materialized_kind_keep_their_database(served: Served) -> None:
    orders(served.catalog)
    with ts.TableEnvironment.create(served.catalog, engine="duckdb") as environment:
        environment.execute_sql("CREATE MATERIALIZED TABLE shop.sums FRESHNESS = INTERVAL '1' HOUR AS SELECT id FROM shop.orders")
    served.refused(400, "DELETE", "databases/shop")
    assert served.catalog.list_tables("shop") == ("orders", "sums")
