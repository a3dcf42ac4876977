"""Commits through the service: each lands once, on the newest snapshot, beside those that go straight to the files."""

import json
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.errors import StorageError
from tablestore.io.local import LocalFileStore
from tests.support.served import Served, ids_of, orders, rows, serving

COMMIT = "databases/shop/tables/orders/commit"
_OURS = ("tablestore.", "writerVersion")


def prepared(table: ts.Table, data: pa.Table, *, foreign: bool = True, **changes: Any) -> dict[str, Any]:
    """What a client has ready before it commits: the files of a write are there, and its snapshot is not. ``foreign``: without the
    marks of ours; with a uuid only if ``changes`` give one."""
    snapshot = table.upsert(data)
    assert snapshot is not None
    path = Path(table.location) / "snapshot" / f"snapshot-{snapshot.id}"
    content = json.loads(path.read_text())
    path.unlink()
    (path.parent / "LATEST").write_text(str(snapshot.id - 1))
    if foreign:
        content.pop("uuid")
        content.pop("writerVersion")
        content["properties"] = {"a": "b"}
        content["unknownKey"] = {"of": "a newer writer"}
    return {**content, **changes}


def request(table: ts.Table, snapshot: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"tableId": table.options()["tablestore.table-uuid"], "snapshot": snapshot, "statistics": [], **changes}


def fresh(served: Served) -> ts.Table:
    table = served.catalog.table("shop.orders")
    assert isinstance(table, ts.Table)
    return table


def test_a_commit_lands_with_all_that_its_client_wrote(served_any: Served) -> None:
    table = orders(served_any.catalog)
    snapshot = prepared(table, rows(1, 2), commitUser="spark", commitIdentifier=7)
    assert served_any.ok("POST", COMMIT, request(table, snapshot)) == {"success": True}
    assert ids_of(fresh(served_any)) == [1, 2]
    content = json.loads((Path(table.location) / "snapshot" / "snapshot-1").read_text())
    assert content.pop("uuid")
    assert content == snapshot
    assert (Path(table.location) / "snapshot" / "LATEST").read_text() == "1"
    latest = served_any.ok("GET", "databases/shop/tables/orders/snapshot")["snapshot"]
    assert latest["snapshot"] == json.loads((Path(table.location) / "snapshot" / "snapshot-1").read_text())
    assert (latest["recordCount"], latest["fileCount"]) == (2, 1)
    assert latest["fileSizeInBytes"] > 0


def test_a_snapshot_of_ours_keeps_its_seal(served: Served) -> None:
    table = orders(served.catalog)
    table.upsert(rows(1))
    base = fresh(served).snapshots()[-1]
    snapshot = prepared(table, rows(2), foreign=False)
    assert served.ok("POST", COMMIT, request(table, snapshot, baseSnapshotUuid=base.uuid)) == {"success": True}
    assert fresh(served).snapshots()[-1].uuid == snapshot["uuid"]
    assert ids_of(fresh(served)) == [1, 2]
    broken = prepared(table, rows(3), foreign=False, totalRecordCount=99)
    assert "checksum" in served.refused(400, "POST", COMMIT, request(table, broken))["message"]


def test_a_repeated_request_succeeds_again_and_lands_once(served: Served) -> None:
    table = orders(served.catalog)
    snapshot = prepared(table, rows(1))
    for _ in range(3):
        assert served.ok("POST", COMMIT, request(table, snapshot)) == {"success": True}
    fresh(served).upsert(rows(2))
    assert served.ok("POST", COMMIT, request(table, snapshot)) == {"success": True}
    assert ids_of(fresh(served)) == [1, 2]
    assert [one.id for one in fresh(served).snapshots()] == [1, 2]
    other = {**snapshot, "commitUser": "another"}
    assert served.ok("POST", COMMIT, request(table, other)) == {"success": False}


def test_a_request_whose_snapshot_has_expired_is_not_called_lost(served: Served) -> None:
    table = orders(served.catalog)
    landed = prepared(table, rows(1))
    served.ok("POST", COMMIT, request(table, landed))
    for number in range(2, 5):
        fresh(served).upsert(rows(number))
    fresh(served).expire_snapshots(retain_max=1, retain_min=1, older_than=0)
    answer = served.send("POST", COMMIT, request(table, landed))
    # Its file may be compacted away by now: then nobody knows, and that is said.
    assert answer.status_code == 500 or answer.json() == {"success": True}
    if answer.status_code == 500:
        assert "unknown" in answer.json()["message"]


def test_another_commit_at_the_same_id_loses_and_changes_nothing(served: Served) -> None:
    table = orders(served.catalog)
    first, second = prepared(table, rows(1)), prepared(table, rows(2), commitUser="other")
    assert served.ok("POST", COMMIT, request(table, first)) == {"success": True}
    assert served.ok("POST", COMMIT, request(table, second)) == {"success": False}
    assert ids_of(fresh(served)) == [1]


def test_a_commit_beside_the_service_is_seen_by_those_through_it(served: Served) -> None:
    table = orders(served.catalog)
    stale = prepared(table, rows(1))
    ts.open_table(table.location).upsert(rows(2))
    assert served.ok("POST", COMMIT, request(table, stale)) == {"success": False}
    again = prepared(fresh(served), rows(1))
    assert served.ok("POST", COMMIT, request(table, again)) == {"success": True}
    ts.open_table(table.location).upsert(rows(3))
    assert ids_of(fresh(served)) == [1, 2, 3]


def test_a_commit_that_is_not_built_on_the_newest_snapshot_does_not_land(served: Served) -> None:
    table = orders(served.catalog)
    table.upsert(rows(1, 2))
    snapshot = prepared(table, rows(3))
    for changes, body in (
        ({"id": 3}, {}),
        ({"id": 9}, {}),
        ({"id": 1}, {}),
        ({}, {"baseSnapshotUuid": "00000000-0000-4000-8000-000000000000"}),
        ({"totalRecordCount": 77}, {}),
    ):
        assert served.ok("POST", COMMIT, request(table, {**snapshot, **changes}, **body)) == {"success": False}
    newest = fresh(served).snapshots()[-1]
    assert served.ok("POST", COMMIT, request(table, snapshot, baseSnapshotUuid=newest.uuid)) == {"success": True}


def test_a_commit_for_a_table_that_was_made_anew_is_for_no_table(served: Served) -> None:
    table = orders(served.catalog)
    snapshot = prepared(table, rows(1))
    served.catalog.drop_table("shop.orders")
    orders(served.catalog)
    answer = served.refused(404, "POST", COMMIT, request(table, snapshot))
    assert answer["resourceType"] == "TABLE"
    served.catalog.drop_table("shop.orders")
    assert served.refused(404, "POST", COMMIT, request(table, snapshot))["resourceType"] == "TABLE"


@pytest.mark.parametrize(
    "changes",
    [
        {"deltaManifestList": "manifest-list-00000000-0000-4000-8000-000000000000-1"},
        {"baseManifestList": "manifest-list-none"},
        {"indexManifest": "index-manifest-none"},
        {"statistics": "stats-none"},
        {"deltaManifestList": "../../other/manifest/list"},
        {"schemaId": 5},
        {"id": 0},
        {"id": "1"},
        {"commitKind": "EXPLODE"},
        {"version": 99},
        {"commitUser": None},
        {"timeMillis": 2**70},
    ],
)
def test_a_snapshot_that_readers_could_not_use_is_refused(served: Served, changes: dict[str, Any]) -> None:
    table = orders(served.catalog)
    snapshot = prepared(table, rows(1))
    served.refused(400, "POST", COMMIT, request(table, {**snapshot, **changes}))
    assert fresh(served).snapshots() == ()
    assert served.ok("POST", COMMIT, request(table, snapshot)) == {"success": True}


@pytest.mark.parametrize("body", [None, [], {}, {"snapshot": 7}, {"snapshot": {}}, "text", {"snapshot": {"id": 1}, "tableId": 5}])
def test_a_body_that_is_no_commit_is_refused(served: Served, body: Any) -> None:
    orders(served.catalog)
    served.refused(400, "POST", COMMIT, body)


def test_a_branch_is_committed_to_by_its_name(served: Served) -> None:
    table = orders(served.catalog)
    table.upsert(rows(1))
    served.ok("POST", "databases/shop/tables/orders/branches", {"branch": "b1"})
    branch = table.branch("b1")
    snapshot = branch.upsert(rows(2))
    assert snapshot is not None
    path = Path(table.location) / "branch" / "branch-b1" / "snapshot" / f"snapshot-{snapshot.id}"
    content = json.loads(path.read_text())
    path.unlink()
    answer = served.ok("POST", "databases/shop/tables/orders%24branch_b1/commit", request(table, content))
    assert answer == {"success": True}
    assert ids_of(fresh(served)) == [1]
    assert ids_of(fresh(served).branch("b1")) == [1, 2]
    assert served.ok("GET", "databases/shop/tables/orders%24branch_b1")["path"] == f"file://{table.location}"


def test_a_store_without_an_answer_is_503_and_the_repeated_request_lands(
    served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = orders(served.catalog)
    snapshot = prepared(table, rows(1))
    publish = LocalFileStore.publish_if_absent
    failing = {"on": True}

    def unanswered(self: LocalFileStore, path: str, data: bytes) -> bool:
        if failing["on"] and "snapshot-" in path:
            publish(self, path, data)
            raise StorageError("no answer", kind="unknown-outcome")
        return publish(self, path, data)

    monkeypatch.setattr(LocalFileStore, "publish_if_absent", unanswered)
    generator = serving(served.catalog)
    quick = next(generator)
    object.__setattr__(quick.application.service, "commit_timeout_s", 0.0)
    response = quick.send("POST", COMMIT, request(table, snapshot))
    # The first try has landed and nobody said so: looking settles it, or the client is told to ask again.
    assert response.status_code == 503 or response.json() == {"success": True}
    if response.status_code == 503:
        assert response.headers["retry-after"] == "1"
    failing["on"] = False
    assert quick.ok("POST", COMMIT, request(table, snapshot)) == {"success": True}
    assert ids_of(fresh(served)) == [1]
    generator.close()


def test_changes_of_a_landed_commit_are_published_by_the_service(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from tablestore.log.filestorelog import FileStoreLog

    published: list[int] = []
    monkeypatch.setattr(FileStoreLog, "after_commit", lambda log: published.append(1))
    table = orders(served.catalog)
    snapshot = prepared(table, rows(1))
    published.clear()
    served.ok("POST", COMMIT, request(table, snapshot))
    assert published == [1]
    served.ok("POST", COMMIT, request(table, snapshot))
    assert published == [1]


def test_many_clients_commit_at_once_and_each_row_is_there_once(served: Served) -> None:
    table = orders(served.catalog)
    outcomes: list[bool] = []
    lock = threading.Lock()
    snapshots = [prepared(table, rows(number), commitUser=f"user-{number}") for number in range(8)]

    def commit(snapshot: dict[str, Any]) -> None:
        success = served.ok("POST", COMMIT, request(table, snapshot))["success"]
        with lock:
            outcomes.append(success)

    threads = [threading.Thread(target=commit, args=(snapshot,)) for snapshot in snapshots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False] * 7 + [True]
    assert len(ids_of(fresh(served))) == 1
