"""Tables of the protocol: created with columns and options of any engine, described, altered, renamed, registered, dropped."""

import shutil
from pathlib import Path
from typing import Any

import pytest

import tablestore as ts
from tests.support.served import Served, ids_of, orders, rows


def new_table(name: str = "orders", **changes: Any) -> dict[str, Any]:
    schema = {
        "fields": [
            {"id": 0, "name": "id", "type": "BIGINT NOT NULL", "description": "number"},
            {"id": 1, "name": "day", "type": "DATE NOT NULL"},
            {"id": 2, "name": "items", "type": {"type": "ARRAY", "element": {"type": "ROW", "fields": [
                {"id": 3, "name": "sku", "type": "STRING"}]}}},
        ],
        "partitionKeys": ["day"], "primaryKeys": ["day", "id"],
        "options": {"bucket": "2", "sink.parallelism": "3"}, "comment": "what was sold", **changes,
    }  # fmt: skip
    return {"identifier": {"database": "shop", "object": name}, "schema": schema}


def test_a_table_is_made_as_it_was_sent_and_described_as_it_is(served_any: Served) -> None:
    served = served_any
    served.ok("POST", "databases", {"name": "shop"})
    served.ok("POST", "databases/shop/tables", new_table())
    answer = served.ok("GET", "databases/shop/tables/orders")
    table = served.catalog.table("shop.orders")
    assert (answer["database"], answer["name"], answer["schemaId"], answer["isExternal"]) == ("shop", "orders", 0, False)
    assert answer["path"] == f"file://{table.location}"
    assert answer["id"] == table.options()["tablestore.table-uuid"]
    assert answer["schema"]["fields"] == new_table()["schema"]["fields"]
    assert answer["schema"]["primaryKeys"] == ["day", "id"]
    assert answer["schema"]["partitionKeys"] == ["day"]
    assert answer["schema"]["comment"] == "what was sold"
    assert answer["schema"]["options"].items() >= {"bucket": "2", "sink.parallelism": "3"}.items()
    assert answer["createdAt"] == answer["updatedAt"] == table.table_schema.time_millis
    assert served.refused(409, "POST", "databases/shop/tables", new_table())["resourceType"] == "TABLE"
    assert served.ok("GET", f"tables/id/{answer['id']}") == answer
    assert served.refused(404, "GET", "tables/id/none")["resourceType"] == "TABLE"


def test_what_is_not_there_is_said_by_its_kind(served: Served) -> None:
    assert served.refused(404, "GET", "databases/shop/tables/orders")["resourceType"] == "TABLE"
    assert served.refused(404, "POST", "databases/shop/tables", new_table())["resourceType"] == "DATABASE"
    served.catalog.create_database("shop")
    answer = served.refused(404, "GET", "databases/shop/tables/orders")
    assert (answer["resourceType"], answer["resourceName"]) == ("TABLE", "orders")
    assert served.refused(404, "GET", "databases/other/tables")["resourceType"] == "DATABASE"
    orders(served.catalog)
    assert served.refused(404, "GET", "databases/shop/tables/orders$branch_none")["resourceType"] == "TABLE"
    assert served.refused(404, "GET", "databases/shop/tables/orders$files")["resourceType"] == "TABLE"


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"fields": []}, "column"),
        ({"fields": None}, "column"),
        ({"fields": [{"id": 0, "name": "id", "type": "NUMBERS"}]}, "NUMBERS"),
        ({"fields": "id BIGINT"}, "list"),
        ({"fields": [{"id": 0, "name": "id"}]}, "type"),
        ({"primaryKeys": ["nothing"]}, "nothing"),
        ({"options": {"bucket": "many"}}, "bucket"),
        ({"options": {"s3.secret-key": "hunter2"}}, "secret"),
        ({"options": {"bucket": 2}}, "options"),
        ({"comment": 7}, "comment"),
    ],
)
def test_a_table_that_cannot_be_is_refused_and_not_made(served: Served, changes: dict[str, Any], word: str) -> None:
    served.catalog.create_database("shop")
    answer = served.refused(400, "POST", "databases/shop/tables", new_table(**changes))
    assert word in answer["message"]
    assert "hunter2" not in answer["message"]
    assert served.catalog.list_tables("shop") == ()


def test_a_name_that_leads_out_of_the_warehouse_is_no_table(served: Served) -> None:
    orders(served.catalog)
    for name in ("..%2F..%2Fetc", "%2e%2e", "orders%00", "a b", "or+ders", "%C3%A4", "orders%2Fschema"):
        assert served.send("GET", f"databases/shop/tables/{name}").status_code == 404
        assert served.send("DELETE", f"databases/shop/tables/{name}").status_code == 404
    assert served.catalog.list_tables("shop") == ("orders",)
    body = new_table("../orders2")
    served.refused(400, "POST", "databases/shop/tables", body)
    body["identifier"]["database"] = "other"
    served.refused(400, "POST", "databases/shop/tables", body)


def test_tables_are_listed_by_name_by_details_and_across_databases(served: Served) -> None:
    for name in ("shop.a", "shop.b", "shop.c", "log.a"):
        orders(served.catalog, name)
    assert served.ok("GET", "databases/shop/tables") == {"tables": ["a", "b", "c"], "nextPageToken": None}
    assert served.ok("GET", "databases/shop/tables", maxResults="1", pageToken="a") == {"tables": ["b"], "nextPageToken": "b"}
    assert served.ok("GET", "databases/shop/tables", tableNamePattern="b%")["tables"] == ["b"]
    assert served.ok("GET", "databases/shop/tables", tableType="format-table")["tables"] == []
    details = served.ok("GET", "databases/shop/table-details", maxResults="2")
    assert [one["name"] for one in details["tableDetails"]] == ["a", "b"]
    assert details["tableDetails"][0] == served.ok("GET", "databases/shop/tables/a")
    assert details["nextPageToken"] == "b"
    first = served.ok("GET", "tables", maxResults="2")
    assert first["tables"] == [{"database": "log", "object": "a"}, {"database": "shop", "object": "a"}]
    rest = served.ok("GET", "tables", maxResults="2", pageToken=first["nextPageToken"])
    assert rest == {"tables": [{"database": "shop", "object": "b"}, {"database": "shop", "object": "c"}], "nextPageToken": None}
    assert served.ok("GET", "tables", databaseNamePattern="l%", tableNamePattern="a")["tables"] == [
        {"database": "log", "object": "a"}
    ]


def test_columns_options_and_comments_are_altered_all_or_none(served: Served) -> None:
    table = orders(served.catalog)
    table.upsert(rows(1, 2))
    changes = [
        {"action": "addColumn", "fieldNames": ["note"], "dataType": "STRING", "comment": "free text", "move": {
            "fieldName": "note", "referenceFieldName": "id", "type": "AFTER"}},
        {"action": "renameColumn", "fieldNames": ["price"], "newName": "amount"},
        {"action": "updateColumnComment", "fieldNames": ["amount"], "newComment": "net"},
        {"action": "updateColumnPosition", "move": {"fieldName": "amount", "type": "FIRST"}},
        {"action": "setOption", "key": "snapshot.num-retained.max", "value": "50"},
        {"action": "setOption", "key": "sink.parallelism", "value": "7"},
        {"action": "updateComment", "comment": "sold"},
    ]  # fmt: skip
    served.ok("POST", "databases/shop/tables/orders", {"changes": changes})
    schema = served.ok("GET", "databases/shop/tables/orders")["schema"]
    assert [field["name"] for field in schema["fields"]] == ["amount", "id", "note", "day"]
    assert schema["fields"][2] == {"id": 3, "name": "note", "type": "STRING", "description": "free text"}
    assert schema["options"].items() >= {"snapshot.num-retained.max": "50", "sink.parallelism": "7"}.items()
    assert schema["comment"] == "sold"
    more = [
        {"action": "removeOption", "key": "sink.parallelism"},
        {"action": "updateColumnType", "fieldNames": ["note"], "newDataType": "STRING", "keepNullability": True},
        {"action": "updateColumnDefaultValue", "fieldNames": ["note"], "newDefaultValue": "-"},
        {"action": "dropColumn", "fieldNames": ["amount"]},
    ]
    served.ok("POST", "databases/shop/tables/orders", {"changes": more})
    schema = served.ok("GET", "databases/shop/tables/orders")["schema"]
    assert "sink.parallelism" not in schema["options"]
    assert [field["name"] for field in schema["fields"]] == ["id", "note", "day"]
    before = schema
    answer = served.refused(404, "POST", "databases/shop/tables/orders", {"changes": [
        {"action": "addColumn", "fieldNames": ["x"], "dataType": "INT"},
        {"action": "dropColumn", "fieldNames": ["nothing"]}]})  # fmt: skip
    assert answer["resourceType"] == "COLUMN"
    answer = served.refused(409, "POST", "databases/shop/tables/orders", {"changes": [
        {"action": "addColumn", "fieldNames": ["note"], "dataType": "INT"}]})  # fmt: skip
    assert (answer["resourceType"], answer["resourceName"]) == ("COLUMN", "note")
    assert served.ok("GET", "databases/shop/tables/orders")["schema"] == before
    assert ids_of(served.catalog.table("shop.orders")) == [1, 2]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"action": "dropPrimaryKey"}, 501),
        ({"action": "explode"}, 400),
        ({"action": "setOption", "key": "bucket"}, 400),
        ({"action": "setOption", "key": "path", "value": "/etc"}, 400),
        ({"action": "setOption", "key": "s3.secret-key", "value": "hunter2"}, 400),
        ({"action": "addColumn", "fieldNames": ["x"], "dataType": "INT NOT NULL"}, 400),
        ({"action": "addColumn", "fieldNames": [], "dataType": "INT"}, 400),
        ({"action": "addColumn", "fieldNames": ["x"], "dataType": "INT", "move": {"fieldName": "x", "type": "AFTER"}}, 400),
        ({"action": "updateColumnType", "fieldNames": ["price"], "newDataType": "INT"}, 501),
        ({}, 400),
    ],
)
def test_a_change_that_cannot_be_changes_nothing(served: Served, change: dict[str, Any], code: int) -> None:
    table = orders(served.catalog)
    table.upsert(rows(1))
    answer = served.refused(code, "POST", "databases/shop/tables/orders", {"changes": [change]})
    assert "hunter2" not in answer["message"]
    assert served.ok("GET", "databases/shop/tables/orders")["schemaId"] == 0
    served.refused(400, "POST", "databases/shop/tables/orders", {"changes": []})


def test_a_table_is_renamed_across_databases_with_its_identity(served_any: Served) -> None:
    served = served_any
    orders(served.catalog).upsert(rows(1))
    served.catalog.create_database("old")
    before = served.ok("GET", "databases/shop/tables/orders")
    request = {"source": {"database": "shop", "object": "orders"}, "destination": {"database": "old", "object": "orders1"}}
    served.ok("POST", "tables/rename", request)
    after = served.ok("GET", "databases/old/tables/orders1")
    assert after["id"] == before["id"]
    assert ids_of(served.catalog.table("old.orders1")) == [1]
    assert served.refused(404, "POST", "tables/rename", request)["resourceType"] == "TABLE"
    orders(served.catalog)
    answer = served.refused(409, "POST", "tables/rename", request)
    assert (answer["resourceType"], answer["resourceName"]) == ("TABLE", "orders1")


def test_a_table_of_another_engine_has_an_identity_that_stays(served: Served) -> None:
    table = orders(served.catalog)
    folder = Path(table.location)
    (folder / "schema" / "schema-0").write_text(
        '{"version": 3, "id": 0, "fields": [{"id": 0, "name": "id", "type": "BIGINT"}], "highestFieldId": 0, "partitionKeys": [], '
        '"primaryKeys": [], "options": {"bucket": "-1"}, "timeMillis": 5}'
    )
    first = served.ok("GET", "databases/shop/tables/orders")
    assert first["id"] == served.ok("GET", "databases/shop/tables/orders")["id"] != ""
    assert served.ok("GET", f"tables/id/{first['id']}")["name"] == "orders"


def test_a_table_that_lies_beside_the_databases_is_registered_by_its_folder(served_any: Served) -> None:
    served = served_any
    orders(served.catalog).upsert(rows(1, 2))
    location = Path(served.catalog.location)
    shutil.copytree(location / "shop.db" / "orders", location / "brought")
    request = {"identifier": {"database": "shop", "object": "more"}, "path": f"file://{location}/brought"}
    served.ok("POST", "databases/shop/register", request)
    assert ids_of(served.catalog.table("shop.more")) == [1, 2]
    served.refused(409, "POST", "databases/shop/register", {**request, "path": f"{location}/shop.db/more"})
    for path, code in (
        ("/etc", 400), (f"{location}/../x", 400), (f"{location}/shop.db/orders", 501), (f"{location}/none", 400), ("", 400),
        (f"{location}/_ctas/x", 501), (f"{location}", 400),
    ):  # fmt: skip
        served.refused(code, "POST", "databases/shop/register", {"identifier": {"database": "shop", "object": "x"}, "path": path})
    assert served.catalog.list_tables("shop") == ("more", "orders")


def test_a_dropped_table_is_gone_and_a_materialized_one_stays(served_any: Served) -> None:
    served = served_any
    orders(served.catalog)
    with ts.TableEnvironment.create(served.catalog, engine="duckdb") as environment:
        environment.execute_sql("CREATE MATERIALIZED TABLE shop.sums FRESHNESS = INTERVAL '1' HOUR AS SELECT id FROM shop.orders")
    assert "MATERIALIZED" in served.refused(400, "DELETE", "databases/shop/tables/sums")["message"]
    served.ok("DELETE", "databases/shop/tables/orders")
    assert served.catalog.list_tables("shop") == ("sums",)
    served.refused(404, "DELETE", "databases/shop/tables/orders")


def test_a_client_is_told_the_storage_keys_and_the_restrictions_of_a_table(served: Served) -> None:
    orders(served.catalog)
    token = served.ok("GET", "databases/shop/tables/orders/token")
    assert token["token"] == {}
    assert token["expiresAtMillis"] > 0
    assert served.ok("POST", "databases/shop/tables/orders/auth", {"select": ["id"]}) == {"filter": [], "columnMasking": {}}
    assert served.ok("POST", "databases/shop/tables/orders/auth", {"select": None})["filter"] == []
    served.refused(404, "POST", "databases/shop/tables/none/auth", {"select": None})
