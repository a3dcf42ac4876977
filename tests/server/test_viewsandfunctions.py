"""Views and functions of the protocol: kept beside those of sessions, each read by the other side."""

from typing import Any

import pytest

import tablestore as ts
from tests.support.served import Served, orders, rows


def view(name: str = "dear", **changes: Any) -> dict[str, Any]:
    schema = {
        "fields": [
            {"id": 0, "name": "id", "type": "BIGINT", "description": "number"},
            {"id": 1, "name": "price", "type": "DOUBLE"},
        ],
        "query": "SELECT id, price FROM shop.orders WHERE price > 1",
        "dialects": {"flink": "SELECT id, price FROM orders"},
        "comment": "those that cost",
        "options": {"k": "v"},
        **changes,
    }
    return {"identifier": {"database": "shop", "object": name}, "schema": schema}


def function(name: str = "double_it", **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "inputParams": [{"id": 0, "name": "x", "type": "BIGINT"}],
        "returnParams": [{"id": 1, "name": "y", "type": "BIGINT"}],
        "deterministic": True,
        "definitions": {"spark": {"type": "sql", "definition": "x + x"}},
        "comment": "twice",
        "options": {"k": "v"},
        **changes,
    }


def test_a_view_is_kept_described_and_queried_by_a_session(served_any: Served) -> None:
    orders(served_any.catalog).upsert(rows(1, 2, 3))
    served_any.ok("POST", "databases/shop/views", view())
    answer = served_any.ok("GET", "databases/shop/views/dear")
    assert answer["name"] == "dear"
    assert answer["id"]
    assert answer["schema"] == view()["schema"]
    assert served_any.ok("GET", "databases/shop/views") == {"views": ["dear"], "nextPageToken": None}
    assert served_any.ok("GET", "databases/shop/view-details")["viewDetails"] == [answer]
    assert served_any.ok("GET", "views")["views"] == [{"database": "shop", "object": "dear"}]
    assert served_any.ok("GET", "databases/shop/tables")["tables"] == ["orders"]
    with ts.TableEnvironment.create(served_any.catalog, engine="duckdb") as environment:
        assert environment.execute_sql("SELECT id FROM shop.dear ORDER BY id").to_arrow().column("id").to_pylist() == [2, 3]


def test_a_view_of_a_session_is_seen_through_the_service(served: Served) -> None:
    orders(served.catalog)
    with ts.TableEnvironment.create(served.catalog, engine="duckdb") as environment:
        environment.execute_sql("CREATE VIEW shop.mine COMMENT 'own' AS SELECT id FROM shop.orders")
        environment.execute_sql("CREATE TABLE shop.outside (id BIGINT) WITH ('connector' = 'print')")
    assert served.ok("GET", "databases/shop/views")["views"] == ["mine"]
    schema = served.ok("GET", "databases/shop/views/mine")["schema"]
    assert schema["comment"] == "own"
    assert "shop.orders" in schema["query"]
    assert served.refused(404, "GET", "databases/shop/views/outside")["resourceType"] == "VIEW"


def test_a_view_shares_its_name_with_tables(served_any: Served) -> None:
    orders(served_any.catalog)
    assert served_any.refused(409, "POST", "databases/shop/views", view("orders"))["resourceType"] == "VIEW"
    served_any.ok("POST", "databases/shop/views", view())
    answer = served_any.refused(409, "POST", "databases/shop/views", view())
    assert (answer["resourceType"], answer["resourceName"]) == ("VIEW", "dear")
    body = {"identifier": {"database": "shop", "object": "dear"}, "schema": {"fields": [{"id": 0, "name": "a", "type": "INT"}]}}
    assert served_any.refused(409, "POST", "databases/shop/tables", body)["resourceType"] == "TABLE"


def test_a_view_is_altered_renamed_and_dropped(served_any: Served) -> None:
    orders(served_any.catalog)
    served_any.catalog.create_database("old")
    served_any.ok("POST", "databases/shop/views", view())
    changes = [
        {"action": "setOption", "key": "a", "value": "b"},
        {"action": "removeOption", "key": "k"},
        {"action": "updateComment", "comment": None},
        {"action": "addDialect", "dialect": "spark", "query": "SELECT 1"},
        {"action": "updateDialect", "dialect": "spark", "query": "SELECT 2"},
        {"action": "dropDialect", "dialect": "flink"},
    ]
    served_any.ok("POST", "databases/shop/views/dear", {"changes": changes})
    schema = served_any.ok("GET", "databases/shop/views/dear")["schema"]
    assert (schema["options"], schema["comment"], schema["dialects"]) == ({"a": "b"}, None, {"spark": "SELECT 2"})
    for action, code in (("updateDialect", 404), ("dropDialect", 404)):
        change = {"action": action, "dialect": "hive", "query": "SELECT 3"}
        assert served_any.refused(code, "POST", "databases/shop/views/dear", {"changes": [change]})["resourceType"] == "DIALECT"
    change = {"action": "addDialect", "dialect": "spark", "query": "SELECT 3"}
    assert served_any.refused(409, "POST", "databases/shop/views/dear", {"changes": [change]})["resourceType"] == "DIALECT"
    request = {"source": {"database": "shop", "object": "dear"}, "destination": {"database": "old", "object": "cheap"}}
    served_any.ok("POST", "views/rename", request)
    assert served_any.ok("GET", "databases/old/views/cheap")["schema"] == schema
    assert served_any.refused(404, "POST", "views/rename", request)["resourceType"] == "VIEW"
    served_any.ok("DELETE", "databases/old/views/cheap")
    assert served_any.refused(404, "DELETE", "databases/old/views/cheap")["resourceType"] == "VIEW"
    assert served_any.refused(404, "GET", "databases/none/views/cheap")["resourceType"] == "DATABASE"


@pytest.mark.parametrize(
    "changes", [{"query": None}, {"query": 7}, {"fields": 7}, {"dialects": []}, {"options": {"password": "hunter2"}}]
)
def test_a_view_that_is_none_is_refused(served: Served, changes: dict[str, Any]) -> None:
    orders(served.catalog)
    assert "hunter2" not in served.refused(400, "POST", "databases/shop/views", view(**changes))["message"]
    assert served.ok("GET", "databases/shop/views")["views"] == []


def test_a_function_in_sql_is_kept_described_and_called_by_a_session(served_any: Served) -> None:
    orders(served_any.catalog).upsert(rows(1, 2))
    served_any.ok("POST", "databases/shop/functions", function())
    answer = served_any.ok("GET", "databases/shop/functions/double_it")
    assert {key: answer[key] for key in function()} == function()
    assert answer["uuid"]
    assert served_any.ok("GET", "databases/shop/functions")["functions"] == ["double_it"]
    assert served_any.ok("GET", "databases/shop/function-details")["functionDetails"] == [answer]
    assert served_any.ok("GET", "functions", functionNamePattern="d%")["functions"] == [{"database": "shop", "object": "double_it"}]
    with ts.TableEnvironment.create(served_any.catalog, engine="duckdb") as environment:
        result = environment.execute_sql("SELECT shop.double_it(id) AS d FROM shop.orders ORDER BY d").to_arrow()
    assert result.column("d").to_pylist() == [2, 4]


def test_a_function_of_a_session_is_seen_through_the_service(served: Served) -> None:
    served.catalog.create_database("shop")
    with ts.TableEnvironment.create(served.catalog, engine="duckdb") as environment:
        environment.execute_sql("CREATE FUNCTION shop.plus_one(x BIGINT) RETURNS BIGINT RETURN x + 1")
    answer = served.ok("GET", "databases/shop/functions/plus_one")
    assert answer["definitions"] == {"tablestore": {"type": "sql", "definition": "x + 1"}}
    assert answer["inputParams"] == [{"id": 0, "name": "x", "type": "BIGINT"}]


def test_a_function_is_altered_and_dropped_and_its_definitions_are_named(served_any: Served) -> None:
    served_any.catalog.create_database("shop")
    file = {
        "type": "file",
        "fileResources": [{"resourceType": "JAR", "uri": "/a.jar"}],
        "language": "java",
        "className": "A",
        "functionName": "f",
    }
    served_any.ok("POST", "databases/shop/functions", function(definitions={"flink": file}))
    assert served_any.refused(409, "POST", "databases/shop/functions", function())["resourceType"] == "FUNCTION"
    new = {"type": "lambda", "definition": "(x) -> x", "language": "java"}
    changes = [
        {"action": "addDefinition", "name": "spark", "definition": new},
        {"action": "updateDefinition", "name": "spark", "definition": {**new, "definition": "(x) -> 2 * x"}},
        {"action": "dropDefinition", "name": "flink"},
        {"action": "setOption", "key": "a", "value": "b"},
        {"action": "removeOption", "key": "k"},
        {"action": "updateComment", "comment": "new"},
    ]
    served_any.ok("POST", "databases/shop/functions/double_it", {"changes": changes})
    answer = served_any.ok("GET", "databases/shop/functions/double_it")
    assert answer["definitions"] == {"spark": {**new, "definition": "(x) -> 2 * x"}}
    assert (answer["options"], answer["comment"]) == ({"a": "b"}, "new")
    for change, code in (
        ({"action": "addDefinition", "name": "spark", "definition": new}, 409),
        ({"action": "updateDefinition", "name": "none", "definition": new}, 404),
        ({"action": "dropDefinition", "name": "none"}, 404),
    ):
        answer = served_any.refused(code, "POST", "databases/shop/functions/double_it", {"changes": [change]})
        assert answer["resourceType"] == "DEFINITION"
        assert answer["resourceName"] == change["name"]
    bad = {"action": "addDefinition", "name": "x", "definition": {"type": "pickle"}}
    served_any.refused(400, "POST", "databases/shop/functions/double_it", {"changes": [bad]})
    served_any.ok("DELETE", "databases/shop/functions/double_it")
    assert served_any.refused(404, "GET", "databases/shop/functions/double_it")["resourceType"] == "FUNCTION"
