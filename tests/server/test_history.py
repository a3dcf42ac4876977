"""Snapshots, rollback, partitions, tags, branches and consumers of the protocol."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tests.support.served import Served, ids_of, orders, rows

TABLE = "databases/shop/tables/orders"


@pytest.fixture
def table(served_any: Served) -> ts.Table:
    """Three snapshots: rows 1, 2 and 3 of two days."""
    table = orders(served_any.catalog)
    for number, day in ((1, "mon"), (2, "tue"), (3, "mon")):
        table.upsert(rows(number, day=day))
    return table


def current(served: Served) -> list[int]:
    return ids_of(served.catalog.table("shop.orders"))  # type: ignore[arg-type]


def test_snapshots_are_answered_as_their_files_are(served_any: Served, table: ts.Table) -> None:
    files = [json.loads((Path(table.location) / "snapshot" / f"snapshot-{number}").read_text()) for number in (1, 2, 3)]
    assert served_any.ok("GET", f"{TABLE}/snapshots") == {"snapshots": files, "nextPageToken": None}
    assert served_any.ok("GET", f"{TABLE}/snapshots", maxResults="1", pageToken="1") == {
        "snapshots": files[1:2],
        "nextPageToken": "2",
    }
    served_any.refused(400, "GET", f"{TABLE}/snapshots", pageToken="x")
    table.create_tag("v1.0", 2)
    for version, content in (("EARLIEST", files[0]), ("LATEST", files[2]), ("2", files[1]), ("v1.0", files[1])):
        assert served_any.ok("GET", f"{TABLE}/snapshots/{version}") == {"snapshot": content}
    for version in ("0", "4", "99999999999999999999", "none", "..%2f..%2fx"):
        answer = served_any.send("GET", f"{TABLE}/snapshots/{version}")
        assert answer.status_code == 404
    assert served_any.refused(404, "GET", f"{TABLE}/snapshots/4")["resourceType"] == "SNAPSHOT"


def test_a_table_without_rows_has_no_snapshot(served: Served) -> None:
    orders(served.catalog)
    for path in (f"{TABLE}/snapshot", f"{TABLE}/snapshots/LATEST", f"{TABLE}/snapshots/EARLIEST"):
        assert served.refused(404, "GET", path)["resourceType"] == "SNAPSHOT"
    assert served.ok("GET", f"{TABLE}/snapshots")["snapshots"] == []
    assert served.ok("GET", f"{TABLE}/partitions")["partitions"] == []
    assert served.refused(404, "POST", f"{TABLE}/tags", {"tagName": "t"})["resourceType"] == "SNAPSHOT"


def test_a_table_goes_back_to_a_snapshot_or_tag_and_keeps_its_history(served_any: Served, table: ts.Table) -> None:
    table.create_tag("t2", 2)
    served_any.ok("POST", f"{TABLE}/rollback", {"instant": {"type": "snapshot", "snapshotId": 1}, "fromSnapshot": 3})
    assert current(served_any) == [1]
    served_any.ok("POST", f"{TABLE}/rollback", {"instant": {"type": "tag", "tagName": "t2"}})
    assert current(served_any) == [1, 2]
    answer = served_any.refused(404, "POST", f"{TABLE}/rollback", {"instant": {"type": "snapshot", "snapshotId": 99}})
    assert (answer["resourceType"], answer["resourceName"]) == ("SNAPSHOT", "99")
    answer = served_any.refused(404, "POST", f"{TABLE}/rollback", {"instant": {"type": "tag", "tagName": "none"}})
    assert (answer["resourceType"], answer["resourceName"]) == ("TAG", "none")
    served_any.refused(409, "POST", f"{TABLE}/rollback", {"instant": {"type": "snapshot", "snapshotId": 1}, "fromSnapshot": 3})
    served_any.refused(400, "POST", f"{TABLE}/rollback", {"instant": {"type": "moon"}})
    served_any.refused(400, "POST", f"{TABLE}/rollback", {})
    assert current(served_any) == [1, 2]


def test_a_schema_goes_back_while_nothing_was_written_with_the_later_one(served: Served) -> None:
    table = orders(served.catalog)
    table.upsert(rows(1))
    table.alter(ts.AddColumn("note", "STRING"))
    served.ok("POST", f"{TABLE}/rollback-schema", {"schemaId": 0})
    schema = served.ok("GET", TABLE)
    assert [field["name"] for field in schema["schema"]["fields"]] == ["id", "day", "price"]
    assert schema["schemaId"] == 2
    table.refresh().alter(ts.AddColumn("text", "STRING"))
    assert served.ok("GET", TABLE)["schema"]["fields"][3]["id"] == 4
    table.refresh().upsert(rows(2).append_column("text", pa.array(["x"])))
    served.refused(400, "POST", f"{TABLE}/rollback-schema", {"schemaId": 0})
    served.refused(404, "POST", f"{TABLE}/rollback-schema", {"schemaId": 17})
    served.ok("POST", f"{TABLE}/rollback-schema", {"schemaId": 3})
    assert current(served) == [1, 2]


def test_partitions_are_those_that_have_rows(served_any: Served, table: ts.Table) -> None:
    answer = served_any.ok("GET", f"{TABLE}/partitions")
    assert [one["spec"] for one in answer["partitions"]] == [{"day": "mon"}, {"day": "tue"}]
    assert [(one["recordCount"], one["fileCount"]) for one in answer["partitions"]] == [(2, 2), (1, 1)]
    assert served_any.ok("GET", f"{TABLE}/partitions", partitionNamePattern="day=t%")["partitions"] == answer["partitions"][1:]
    assert served_any.ok("GET", f"{TABLE}/partitions", maxResults="1")["nextPageToken"] == "day=mon"
    named = served_any.ok("POST", f"{TABLE}/partitions/list-by-names", {"specs": [{"day": "tue"}, {"day": "sun"}]})
    assert named["partitions"] == answer["partitions"][1:]
    served_any.refused(400, "POST", f"{TABLE}/partitions/list-by-names", {"specs": [{"hour": "1"}]})
    dropped = served_any.ok("POST", f"{TABLE}/partitions/drop", {"partitionSpecs": [{"day": "mon"}, {"day": "sun"}]})
    assert dropped == {"dropped": [{"day": "mon"}], "missing": [{"day": "sun"}]}
    assert current(served_any) == [2]
    served_any.refused(400, "POST", f"{TABLE}/partitions/drop", {"partitionSpecs": [{"day": "sun"}], "ignoreIfNotExists": False})


def test_partitions_of_any_type_are_named_as_their_directories(served: Served) -> None:
    served.catalog.create_database("shop")
    table = served.catalog.create_table("shop.orders", "id BIGINT, day DATE, hour INT", partition_by=["day", "hour"])
    days = pa.array([19723, None], pa.int32()).cast(pa.date32())
    table.append(pa.table({"id": [1, 2], "day": days, "hour": pa.array([7, None], pa.int32())}))
    specs = [one["spec"] for one in served.ok("GET", f"{TABLE}/partitions")["partitions"]]
    assert specs == [{"day": "19723", "hour": "7"}, {"day": "__DEFAULT_PARTITION__", "hour": "__DEFAULT_PARTITION__"}]
    assert (Path(table.location) / "day=19723" / "hour=7").is_dir()
    assert served.ok("POST", f"{TABLE}/partitions/drop", {"partitionSpecs": specs[:1]})["dropped"] == specs[:1]
    assert table.refresh().scan().count() == 1


def test_a_partition_that_has_rows_is_created_by_finding_it(served_any: Served, table: ts.Table) -> None:
    specs = [{"day": "mon"}, {"day": "tue"}]
    assert served_any.ok("POST", f"{TABLE}/partitions", {"partitionSpecs": specs}) == {"created": [], "existed": specs}
    taken = served_any.refused(409, "POST", f"{TABLE}/partitions", {"partitionSpecs": specs, "ignoreIfExists": False})
    assert (taken["resourceType"], taken["resourceName"]) == ("PARTITION", "day=mon")
    assert "rows" in served_any.refused(501, "POST", f"{TABLE}/partitions", {"partitionSpecs": [*specs, {"day": "sun"}]})["message"]
    served_any.refused(400, "POST", f"{TABLE}/partitions", {"partitionSpecs": [{"hour": "1"}]})
    assert [one["spec"] for one in served_any.ok("GET", f"{TABLE}/partitions")["partitions"]] == specs


def test_partitions_are_listed_by_a_filter_that_their_client_applies_again(served: Served) -> None:
    table = orders(served.catalog)
    for number, day in enumerate(("mon", "tue", "wed")):
        table.upsert(rows(number, day=day))
    every = served.ok("GET", f"{TABLE}/partitions")["partitions"]
    first = served.ok("POST", f"{TABLE}/partitions/list-by-filter", {"filter": "{}", "maxResults": 2})
    assert (first["partitions"], first["nextPageToken"]) == (every[:2], "day=tue")
    body = {"filter": "{}", "maxResults": 0, "pageToken": "day=tue", "partitionNamePattern": "day=%"}
    assert served.ok("POST", f"{TABLE}/partitions/list-by-filter", body) == {"partitions": every[2:], "nextPageToken": None}
    for wrong in ({}, {"filter": 7}, {"filter": "{}", "maxResults": "many"}, {"filter": "{}", "maxResults": -1}):
        served.refused(400, "POST", f"{TABLE}/partitions/list-by-filter", wrong)


def test_partitions_that_the_catalog_keeps_are_marked_as_done_by_a_file(served_any: Served) -> None:
    days = pa.array([19723, 19724, None], pa.int32()).cast(pa.date32())
    served_any.catalog.create_database("shop")
    served_any.ok("POST", "databases/shop/tables", {
        "identifier": {"database": "shop", "object": "orders"},
        "schema": {"fields": [{"id": 0, "name": "id", "type": "BIGINT"}, {"id": 1, "name": "day", "type": "DATE"}],
                   "partitionKeys": ["day"], "primaryKeys": [], "options": {"metastore.partitioned-table": "true"}},
    })  # fmt: skip
    table = served_any.catalog.table("shop.orders")
    assert isinstance(table, ts.Table)
    table.append(pa.table({"id": [1, 2, 3], "day": days}))
    assert [one["done"] for one in served_any.ok("GET", f"{TABLE}/partitions")["partitions"]] == [False, False, False]
    specs = [{"day": "19724"}, {"day": "__DEFAULT_PARTITION__"}]
    served_any.ok("POST", f"{TABLE}/partitions/mark", {"specs": specs})
    answer = served_any.ok("GET", f"{TABLE}/partitions")["partitions"]
    assert {one["spec"]["day"]: one["done"] for one in answer} == {"19723": False, "19724": True, "__DEFAULT_PARTITION__": True}
    named = served_any.ok("POST", f"{TABLE}/partitions/list-by-names", {"specs": specs})
    assert [one["done"] for one in named["partitions"]] == [True, True]
    mark = Path(table.location) / "day=19724" / "_SUCCESS"
    first = json.loads(mark.read_text())
    assert first["creationTime"] == first["modificationTime"] > 0
    mark.write_text(json.dumps({"creationTime": 1, "modificationTime": 1}))
    served_any.ok("POST", f"{TABLE}/partitions/mark", {"specs": specs})
    again = json.loads(mark.read_text())
    assert again["creationTime"] == 1 and again["modificationTime"] >= first["modificationTime"]
    served_any.refused(400, "POST", f"{TABLE}/partitions/mark", {"specs": [*specs, {"day": "7"}]})
    assert not (Path(table.location) / "day=7").exists()
    # The rows are as they were, and what removes files that nobody names leaves the marks.
    table.remove_orphan_files("0 s", dry_run=False)
    assert mark.exists() and table.refresh().scan().count() == 3


def test_what_partitions_and_branches_of_this_format_do_not_have_is_said(served: Served) -> None:
    orders(served.catalog)
    assert "metastore.partitioned-table" in served.refused(501, "POST", f"{TABLE}/partitions/mark", {"specs": []})["message"]
    served.refused(501, "POST", f"{TABLE}/branches/b/rename", {"toBranch": "c"})


def test_tags_keep_snapshots_under_names(served_any: Served, table: ts.Table) -> None:
    served_any.ok("POST", f"{TABLE}/tags", {"tagName": "v1", "snapshotId": 1, "timeRetained": "7 d"})
    served_any.ok("POST", f"{TABLE}/tags", {"tagName": "v2", "snapshotId": None, "timeRetained": None})
    assert served_any.ok("GET", f"{TABLE}/tags") == {"tags": ["v1", "v2"], "nextPageToken": None}
    assert served_any.ok("GET", f"{TABLE}/tags", tagNamePrefix="v2%")["tags"] == ["v2"]
    tag = served_any.ok("GET", f"{TABLE}/tags/v1")
    assert tag["tagName"] == "v1"
    assert tag["snapshot"] == served_any.ok("GET", f"{TABLE}/snapshots/1")["snapshot"]
    assert tag["tagTimeRetained"] == "PT168H"
    assert tag["tagCreateTime"] > 0
    assert served_any.ok("GET", f"{TABLE}/tags/v2")["snapshot"]["id"] == 3
    answer = served_any.refused(409, "POST", f"{TABLE}/tags", {"tagName": "v1"})
    assert (answer["resourceType"], answer["resourceName"]) == ("TAG", None)
    served_any.ok("POST", f"{TABLE}/tags", {"tagName": "v1", "snapshotId": 1, "ignoreIfExists": True})
    answer = served_any.refused(404, "POST", f"{TABLE}/tags", {"tagName": "v3", "snapshotId": 99})
    assert (answer["resourceType"], answer["resourceName"]) == ("SNAPSHOT", "99")
    served_any.refused(400, "POST", f"{TABLE}/tags", {"tagName": "../x"})
    served_any.refused(400, "POST", f"{TABLE}/tags", {"tagName": "v4", "timeRetained": "a while"})
    served_any.ok("DELETE", f"{TABLE}/tags/v1")
    for method in ("GET", "DELETE"):
        answer = served_any.refused(404, method, f"{TABLE}/tags/v1")
        assert (answer["resourceType"], answer["resourceName"]) == ("TAG", "v1")


def test_branches_begin_are_written_and_bring_the_table_forward(served_any: Served, table: ts.Table) -> None:
    served_any.ok("POST", f"{TABLE}/tags", {"tagName": "v1", "snapshotId": 1})
    served_any.ok("POST", f"{TABLE}/branches", {"branch": "b1", "fromTag": "v1"})
    served_any.ok("POST", f"{TABLE}/branches", {"branch": "b2"})
    assert served_any.ok("GET", f"{TABLE}/branches") == {"branches": ["b1", "b2"]}
    assert served_any.ok("GET", f"{TABLE}%24branch_b1/snapshot")["snapshot"]["snapshot"]["id"] == 1
    assert served_any.refused(409, "POST", f"{TABLE}/branches", {"branch": "b1"})["resourceType"] == "BRANCH"
    answer = served_any.refused(404, "POST", f"{TABLE}/branches", {"branch": "b3", "fromTag": "none"})
    assert answer["resourceType"] == "TAG"
    table.branch("b1").upsert(rows(9))
    served_any.ok("POST", f"{TABLE}/branches/b1/forward", {})
    assert current(served_any) == [1, 9]
    served_any.ok("DELETE", f"{TABLE}/branches/b1")
    for method, path in (("DELETE", "b1"), ("POST", "b1/forward")):
        answer = served_any.refused(404, method, f"{TABLE}/branches/{path}", {})
        assert (answer["resourceType"], answer["resourceName"]) == ("BRANCH", "b1")
    served_any.refused(400, "DELETE", f"{TABLE}/branches/main")
    assert "branch" in served_any.refused(400, "DELETE", f"{TABLE}%24branch_b2")["message"]


def test_consumers_are_listed_moved_and_forgotten(served_any: Served, table: ts.Table) -> None:
    for name, number in (("a", 1), ("b", 2)):
        served_any.ok("POST", f"{TABLE}/consumers/reset", {"consumerId": name, "nextSnapshotId": number})
    listed = served_any.ok("GET", f"{TABLE}/consumers", maxResults="1")
    assert listed == {"consumers": [{"consumerId": "a", "nextSnapshot": 1}], "nextPageToken": "a"}
    served_any.ok("POST", f"{TABLE}/consumers/reset", {"consumerId": "a"})
    assert [one["consumerId"] for one in served_any.ok("GET", f"{TABLE}/consumers")["consumers"]] == ["b"]
    served_any.refused(400, "POST", f"{TABLE}/consumers/reset", {"consumerId": "../x", "nextSnapshotId": 1})
    served_any.refused(400, "POST", f"{TABLE}/consumers/reset", {})
