"""The REST catalogs of Paimon (Java) and pypaimon against our service: commands give what they give in a catalog of directories."""

import re
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import canonical
import pytest
from oracles import JavaOracle, Oracle, OracleError

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


@pytest.fixture(params=["java", "pypaimon_pure", "pypaimon_native"])
def client(request: pytest.FixtureRequest) -> Oracle:
    """A client of each kind."""
    oracle: Oracle = request.getfixturevalue(request.param)
    return oracle


@pytest.fixture
def through(client: Oracle, service: CatalogService) -> Iterator[Oracle]:
    """The client through the service."""
    with client.through(service.client_options):
        yield client


@pytest.fixture
def place(service: CatalogService, request: pytest.FixtureRequest) -> Path:
    """The place of a table of the test's own."""
    return service.warehouse / "db.db" / re.sub(r"\W+", "_", request.node.name)[-60:].strip("_")


def row(number: int, day: str = "2026-01-01", text: str = "a") -> canonical.Row:
    return {"day": day, "id": number, "v": text}


def scene(oracle: Oracle, table: Path) -> list[Any]:
    """What a client of a catalog sees of the same work: rows, changes, snapshots and partitions, without what is random."""
    seen: list[Any] = []
    oracle.create(table, COLUMNS, primary_key=["day", "id"], partition_by=["day"], options=OPTIONS)
    oracle.write(table, [row(1), row(2)], user="a", identifier=1)
    oracle.write(table, [row(2, text="b"), row(3, "2026-01-02")], user="a", identifier=2)
    if isinstance(oracle, JavaOracle):  # pypaimon writes it again
        oracle.write(table, [row(9)], user="a", identifier=2)
    seen.append(sorted_rows(oracle.read(table)))
    if isinstance(oracle, JavaOracle):
        seen.append(oracle.changes(table, from_snapshot=0, to_snapshot=2))
    option = {"action": "set", "key": "sink.parallelism", "value": "5"}
    oracle.alter(table, {"action": "add", "column": "note", "type": "STRING"}, option)
    oracle.write(table, [{**row(4), "note": "x"}])
    if isinstance(oracle, JavaOracle):
        oracle.compact(table, partition={"day": "2026-01-01"}, bucket=0)
    if oracle.name != "pypaimon-native":  # its writer overwrites nothing
        oracle.write(table, [{**row(5, "2026-01-02"), "note": None}], overwrite={"day": "2026-01-02"})
    seen.append(sorted_rows(oracle.read(table)))
    seen.append(sorted_rows(oracle.read(table, snapshot=2)))
    kept = ("id", "schemaId", "commitKind", "totalRecordCount", "deltaRecordCount")
    seen.append([{key: one[key] for key in kept} for one in oracle.snapshots(table)])
    if isinstance(oracle, JavaOracle):
        partitions = oracle.system(table, "partitions")["rows"]
        seen.append(sorted((one["partition"], one["record_count"], one["file_count"]) for one in partitions))
    oracle.rename(table, f"{table.name}2")
    seen.append(oracle.read(table.with_name(f"{table.name}2"), equals={"id": 4}))
    return seen


def sorted_rows(rows: list[canonical.Row]) -> list[canonical.Row]:
    return sorted(rows, key=lambda one: (one["day"], one["id"]))


def test_a_table_through_the_service_is_what_it_is_in_directories(
    client: Oracle, service: CatalogService, place: Path, tmp_path: Path
) -> None:
    expected = scene(client, tmp_path / "db.db" / place.name)
    with client.through(service.client_options):
        assert scene(client, place) == expected


def test_rows_of_the_service_and_of_ours_beside_it_are_in_one_table(through: Oracle, service: CatalogService, place: Path) -> None:
    table = place
    through.create(table, COLUMNS, primary_key=["day", "id"], partition_by=["day"], options=OPTIONS)
    ours = ts.open_catalog(str(service.warehouse)).table(f"db.{table.name}")
    assert isinstance(ours, ts.Table)
    for number in range(0, 6, 2):
        through.write(table, [row(number)])
        ours.upsert([{"day": date(2026, 1, 1), "id": number + 1, "v": "a"}])
    assert [one["id"] for one in sorted_rows(through.read(table))] == list(range(6))
    assert sorted(ours.to_arrow().column("id").to_pylist()) == list(range(6))


def test_tags_branches_rollback_and_consumers_go_through_the_service(through: Oracle, service: CatalogService, place: Path) -> None:
    table = place
    through.create(table, COLUMNS, primary_key=["day", "id"], partition_by=["day"], options=OPTIONS)
    for number in (1, 2, 3):
        through.write(table, [row(number)])
    assert through.call("catalog", table, call="tag", name="v1", snapshot=1) == {
        "snapshot": 1,
        "retained": "PT168H",
        "names": ["v1"],
    }
    assert through.call("catalog", table, call="branch", name="b1", tag="v1") == {"names": ["b1"]}
    branch = table.with_name(f"{table.name}$branch_b1")
    through.write(branch, [row(9)])
    assert [one["id"] for one in sorted_rows(through.read(branch))] == [1, 9]
    assert [one["id"] for one in sorted_rows(through.read(table))] == [1, 2, 3]
    through.call("catalog", table, call="rollback", snapshot=2)
    assert [one["id"] for one in sorted_rows(through.read(table))] == [1, 2]
    through.call("catalog", table, call="rollback", tag="v1")
    assert [one["id"] for one in sorted_rows(through.read(table))] == [1]
    through.call("catalog", table, call="forward", name="b1")
    assert [one["id"] for one in sorted_rows(through.read(table))] == [1, 9]
    if isinstance(through, JavaOracle):
        snapshots = through.call("catalog", table, call="snapshots")
        assert snapshots["ids"] == list(range(1, len(snapshots["ids"]) + 1))
        assert snapshots["earliest"] == 1
        assert through.call("catalog", table, call="consumer", name="c", snapshot=2) == {"consumers": ["c 2"]}
    assert through.call("catalog", table, call="partitions") == {"partitions": ["{day=20454} 2 2"]}


def test_views_functions_and_databases_go_through_the_service(through: Oracle, service: CatalogService, place: Path) -> None:
    table = place
    through.create(table, COLUMNS, primary_key=["day", "id"], partition_by=["day"], options=OPTIONS)
    through.write(table, [row(4), row(5)])
    twice, other = f"twice_{through.name.replace('-', '_')}", f"other_{through.name}"
    function = through.call("catalog", table, call="function", name=twice)
    assert function["same"] and twice in function["names"]
    answer = through.call("catalog", table, call="database", name=other)
    assert (answer["owner"], answer["a"]) == ("ann", "b")
    assert other not in answer["names"]
    relation = f"db.{table.name}"
    if isinstance(through, JavaOracle):
        relation = "db.v1"
        view = through.call("catalog", table, call="view", name="v1", query=f"SELECT id FROM db.{table.name} WHERE id > 4")
        assert view == {"same": True, "dialects": {"flink": "SELECT 1", "spark": "SELECT 2"}, "names": ["v1"]}
    with ts.TableEnvironment.create(ts.open_catalog(str(service.warehouse)), engine="duckdb") as environment:
        result = environment.execute_sql(f"SELECT db.{twice}(id) AS d FROM {relation} ORDER BY d").to_arrow()
    assert result.column("d").to_pylist()[-1] == 10


def test_what_the_service_refuses_is_the_error_that_java_has_for_it(through: Oracle, service: CatalogService, place: Path) -> None:
    table = place
    with pytest.raises(OracleError) as error:
        through.read(table)
    assert error.value.kind == "TableNotExistException"
    through.create(table, COLUMNS, primary_key=["day", "id"], partition_by=["day"], options=OPTIONS)
    for kind, call in (
        ("TableAlreadyExistException", lambda: through.create(table, COLUMNS, options={"bucket": "-1"})),
        ("TableAlreadyExistException", lambda: through.rename(table, table.name)),
        ("TagNotExistException", lambda: through.call("catalog", table, call="branch", name="b", tag="none")),
        ("BranchNotExistException", lambda: through.call("catalog", table, call="forward", name="none")),
        *(errors_of_java(through, table) if isinstance(through, JavaOracle) else ()),
    ):
        with pytest.raises(OracleError) as error:
            call()
        assert error.value.kind == kind, error.value


def errors_of_java(through: JavaOracle, table: Path) -> tuple[tuple[str, Callable[[], Any]], ...]:
    """Errors that pypaimon has no class for."""
    return (
        ("ColumnNotExistException", lambda: through.alter(table, {"action": "drop", "column": "none"})),
        ("ColumnAlreadyExistException", lambda: through.alter(table, {"action": "add", "column": "v", "type": "STRING"})),
        ("SnapshotNotExistException", lambda: through.call("catalog", table, call="tag", name="t", snapshot=7)),
    )
