"""Paimon's REST catalog for Java against our service: the same commands give what they give in a catalog of directories."""

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import canonical
import pytest
from oracles import JavaOracle, OracleError

import tablestore as ts
from tests.support.servers.catalogservice import CatalogService

pytestmark = pytest.mark.interop

COLUMNS = [
    {"name": "day", "type": "DATE NOT NULL"},
    {"name": "id", "type": "BIGINT NOT NULL"},
    {"name": "v", "type": "STRING"},
]
OPTIONS = {"bucket": "1", "sink.parallelism": "3"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CatalogService]:
    with CatalogService(tmp_path_factory.mktemp("service") / "wh") as service:
        yield service


@pytest.fixture
def through(java: JavaOracle, service: CatalogService) -> Iterator[JavaOracle]:
    with java.through(service.client_options):
        yield java


def row(number: int, day: str = "2026-01-01", text: str = "a") -> canonical.Row:
    return {"day": day, "id": number, "v": text}


def scene(oracle: JavaOracle, table: Path) -> list[Any]:
    """What a client of a catalog sees of the same work: rows, changes, snapshots and partitions, without what is random."""
    seen: list[Any] = []
    oracle.create(table, COLUMNS, primary_key=["day", "id"], partition_by=["day"], options=OPTIONS)
    oracle.write(table, [row(1), row(2)], user="a", identifier=1)
    oracle.write(table, [row(2, text="b"), row(3, "2026-01-02")], user="a", identifier=2)
    oracle.write(table, [row(9)], user="a", identifier=2)  # it has landed before
    seen.append(sorted_rows(oracle.read(table)))
    seen.append(oracle.changes(table, from_snapshot=0, to_snapshot=2))
    option = {"action": "set", "key": "sink.parallelism", "value": "5"}
    oracle.alter(table, {"action": "add", "column": "note", "type": "STRING"}, option)
    oracle.write(table, [{**row(4), "note": "x"}])
    oracle.compact(table, partition={"day": "2026-01-01"}, bucket=0)
    oracle.write(table, [{**row(5, "2026-01-02"), "note": None}], overwrite={"day": "2026-01-02"})
    seen.append(sorted_rows(oracle.read(table)))
    seen.append(sorted_rows(oracle.read(table, snapshot=2)))
    kept = ("id", "schemaId", "commitKind", "totalRecordCount", "deltaRecordCount")
    seen.append([{key: one[key] for key in kept} for one in oracle.snapshots(table)])
    partitions = oracle.system(table, "partitions")["rows"]
    seen.append(sorted((one["partition"], one["record_count"], one["file_count"]) for one in partitions))
    oracle.rename(table, f"{table.name}2")
    seen.append(oracle.read(table.with_name(f"{table.name}2"), equals={"id": 4}))
    return seen


def sorted_rows(rows: list[canonical.Row]) -> list[canonical.Row]:
    return sorted(rows, key=lambda one: (one["day"], one["id"]))


def test_a_table_through_the_service_is_what_it_is_in_directories(
    java: JavaOracle, service: CatalogService, tmp_path: Path
) -> None:
    expected = scene(java, tmp_path / "db.db" / "t")
    with java.through(service.client_options):
        assert scene(java, service.warehouse / "db.db" / "t") == expected


def test_rows_of_the_service_and_of_ours_beside_it_are_in_one_table(through: JavaOracle, service: CatalogService) -> None:
    table = service.warehouse / "db.db" / "mixed"
    through.create(table, COLUMNS, primary_key=["day", "id"], partition_by=["day"], options=OPTIONS)
    ours = ts.open_catalog(str(service.warehouse)).table("db.mixed")
    assert isinstance(ours, ts.Table)
    for number in range(0, 6, 2):
        through.write(table, [row(number)])
        ours.upsert([{"day": date(2026, 1, 1), "id": number + 1, "v": "a"}])
    assert [one["id"] for one in sorted_rows(through.read(table))] == list(range(6))
    assert sorted(ours.to_arrow().column("id").to_pylist()) == list(range(6))


def test_tags_branches_rollback_and_consumers_go_through_the_service(through: JavaOracle, service: CatalogService) -> None:
    table = service.warehouse / "db.db" / "history"
    through.create(table, COLUMNS, primary_key=["day", "id"], partition_by=["day"], options=OPTIONS)
    for number in (1, 2, 3):
        through.write(table, [row(number)])
    assert through.call("catalog", table, call="tag", name="v1", snapshot=1) == {
        "snapshot": 1,
        "retained": "PT168H",
        "names": ["v1"],
    }
    assert through.call("catalog", table, call="branch", name="b1", tag="v1") == {"names": ["b1"]}
    branch = table.with_name("history$branch_b1")
    through.write(branch, [row(9)])
    assert [one["id"] for one in sorted_rows(through.read(branch))] == [1, 9]
    assert [one["id"] for one in sorted_rows(through.read(table))] == [1, 2, 3]
    through.call("catalog", table, call="rollback", snapshot=2)
    assert [one["id"] for one in sorted_rows(through.read(table))] == [1, 2]
    through.call("catalog", table, call="rollback", tag="v1")
    assert [one["id"] for one in sorted_rows(through.read(table))] == [1]
    through.call("catalog", table, call="forward", name="b1")
    assert [one["id"] for one in sorted_rows(through.read(table))] == [1, 9]
    snapshots = through.call("catalog", table, call="snapshots")
    assert snapshots["ids"] == list(range(1, len(snapshots["ids"]) + 1))
    assert snapshots["earliest"] == 1
    assert through.call("catalog", table, call="consumer", name="c", snapshot=2) == {"consumers": ["c 2"]}
    assert through.call("catalog", table, call="partitions") == {"partitions": ["{day=20454} 2 2"]}


def test_views_functions_and_databases_go_through_the_service(through: JavaOracle, service: CatalogService) -> None:
    table = service.warehouse / "db.db" / "seen"
    through.create(table, COLUMNS, primary_key=["day", "id"], partition_by=["day"], options=OPTIONS)
    through.write(table, [row(4), row(5)])
    view = through.call("catalog", table, call="view", name="v1", query="SELECT id FROM db.seen WHERE id > 4")
    assert view == {"same": True, "dialects": {"flink": "SELECT 1", "spark": "SELECT 2"}, "names": ["v1"]}
    assert through.call("catalog", table, call="function", name="twice") == {"same": True, "names": ["twice"]}
    answer = through.call("catalog", table, call="database", name="other")
    assert (answer["owner"], answer["a"]) == ("ann", "b")
    assert "other" not in answer["names"]
    with ts.TableEnvironment.create(ts.open_catalog(str(service.warehouse)), engine="duckdb") as environment:
        assert environment.execute_sql("SELECT db.twice(id) AS d FROM db.v1").to_arrow().column("d").to_pylist() == [10]


def test_what_the_service_refuses_is_the_error_that_java_has_for_it(through: JavaOracle, service: CatalogService) -> None:
    table = service.warehouse / "db.db" / "errors"
    with pytest.raises(OracleError) as error:
        through.read(table)
    assert error.value.kind == "TableNotExistException"
    through.create(table, COLUMNS, primary_key=["day", "id"], partition_by=["day"], options=OPTIONS)
    for kind, call in (
        ("TableAlreadyExistException", lambda: through.create(table, COLUMNS, options={"bucket": "-1"})),
        ("ColumnNotExistException", lambda: through.alter(table, {"action": "drop", "column": "none"})),
        ("ColumnAlreadyExistException", lambda: through.alter(table, {"action": "add", "column": "v", "type": "STRING"})),
        ("TableAlreadyExistException", lambda: through.rename(table, "errors")),
        ("TagNotExistException", lambda: through.call("catalog", table, call="branch", name="b", tag="none")),
        ("SnapshotNotExistException", lambda: through.call("catalog", table, call="tag", name="t", snapshot=7)),
        ("BranchNotExistException", lambda: through.call("catalog", table, call="forward", name="none")),
    ):
        with pytest.raises(OracleError) as error:
            call()
        assert error.value.kind == kind, error.value
