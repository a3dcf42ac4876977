"""System tables: what a table is made of, read like a table."""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.store.history.branchfiles import branch_files
from tablestore.store.history.consumers import Consumers
from tablestore.table.system.systemkinds import SYSTEM_TABLES
from tablestore.table.system.systemtable import SystemTable
from tablestore.table.system.systemtext import duration_text

SCHEMA = pa.schema(
    [pa.field("day", pa.string(), nullable=False), pa.field("id", pa.int64(), nullable=False), pa.field("v", pa.string())]
)


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def orders(catalog: ts.Catalog) -> ts.Table:
    table = catalog.create_table(
        "shop.orders",
        schema=SCHEMA,
        primary_key=["day", "id"],
        partition_by=["day"],
        options={"bucket": "2", "write-only": "true"},
        comment="all of them",
    )
    table.upsert(rows(("d1", 1, "a"), ("d1", 2, "b"), ("d2", 3, "c")))
    table.upsert(rows(("d1", 2, "B"), ("d2", 4, None)))
    return table


def rows(*values: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, value, strict=True)) for value in values], schema=SCHEMA)


def read(table: ts.Table, name: str, **how: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.system(name).scan(**how).to_arrow().to_pylist()
    return found


@pytest.mark.deep_after(7)
@pytest.mark.parametrize("name", SYSTEM_TABLES)
def test_every_system_table_is_read_like_a_table(catalog: ts.Catalog, orders: ts.Table, name: str) -> None:
    system = orders.system(name)
    assert isinstance(catalog.table(f"shop.orders${name}"), SystemTable)
    assert isinstance(ts.open_table(f"{orders.location}${name}"), SystemTable)
    assert system.name == f"shop.orders${name}"
    data = system.to_arrow()
    assert data.schema == system.schema
    assert data.num_rows == system.count() == sum(batch.num_rows for batch in system.to_batches())
    assert list(system.to_pandas().columns) == system.to_polars().columns == system.schema.names
    last = system.schema.names[-1]
    assert system.scan(columns=[last]).to_arrow().schema.names == [last]
    assert system.scan(filter=f"{last} IS NULL").count() == data.column(last).null_count


@pytest.mark.parametrize("name", SYSTEM_TABLES)
def test_every_system_table_of_a_table_without_rows_is_there(catalog: ts.Catalog, name: str) -> None:
    table = catalog.create_table("shop.empty", schema=SCHEMA)
    assert table.system(name).count() == {"schemas": 1, "options": 2}.get(name, 0)


def test_snapshots_and_schemas_tell_the_history(orders: ts.Table) -> None:
    altered = orders.alter([ts.AddColumn("n", "INT"), ts.RenameColumn("v", to="w")])
    found = read(
        altered, "snapshots", columns=["snapshot_id", "schema_id", "commit_kind", "total_record_count", "delta_record_count"]
    )
    assert [tuple(row.values()) for row in found] == [(1, 0, "APPEND", 3, 3), (2, 0, "APPEND", 5, 2)]
    schemas = read(altered, "schemas")
    assert [row["schema_id"] for row in schemas] == [0, 1]
    assert [field["name"] for field in json.loads(schemas[1]["fields"])] == ["day", "id", "w", "n"]
    assert json.loads(schemas[0]["primary_keys"]) == ["day", "id"]
    assert (schemas[0]["partition_keys"], schemas[0]["comment"]) == ('["day"]', "all of them")
    assert {row["key"]: row["value"] for row in read(altered, "options")} == altered.options()


def test_files_partitions_and_buckets_count_what_is_stored(orders: ts.Table) -> None:
    files = read(orders, "files")
    assert {row["partition"] for row in files} == {"{d1}", "{d2}"}
    assert all(row["file_format"] == "parquet" and row["level"] == 0 and row["file_source"] == "APPEND" for row in files)
    assert sum(row["record_count"] for row in files) == 5
    assert all(Path(row["file_path"]).is_file() for row in files)
    assert all(Path(row["file_path"]).stat().st_size == row["file_size_in_bytes"] for row in files)
    by_max = {(row["partition"], row["min_key"]): row["max_value_stats"] for row in files}
    assert by_max["{d2}", "[4]"] == "{day=d2, id=4, v=null}"
    partitions = read(orders, "partitions", columns=["partition", "record_count", "file_count"])
    assert [row["partition"] for row in partitions] == ["day=d1", "day=d2"]
    assert sum(row["file_count"] for row in partitions) == len(files)
    assert sum(row["record_count"] for row in read(orders, "buckets")) == 5
    assert sum(row["num_added_files"] for row in read(orders, "manifests")) == len(files)


def test_tables_of_one_snapshot_look_back(orders: ts.Table) -> None:
    for name in ("files", "partitions", "buckets"):
        assert sum(row["record_count"] for row in read(orders, name, snapshot_id=1)) == 3
    assert len(read(orders, "manifests", snapshot_id=1)) == 1
    for name in ("snapshots", "audit_log", "options"):
        with pytest.raises(ts.InvalidInputError, match="snapshot_id means nothing"):
            orders.system(name).scan(snapshot_id=1)
    with pytest.raises(ts.NotFoundError):
        orders.system("files").scan(snapshot_id=9)


def test_filters_and_columns_work_as_for_tables(orders: ts.Table) -> None:
    found = read(orders, "snapshots", columns=["snapshot_id"], filter="delta_record_count < 3")
    assert found == [{"snapshot_id": 2}]
    with pytest.raises(ts.InvalidInputError, match=r"did you mean 'snapshot_id'"):
        orders.system("snapshots").scan(filter="snapshotid = 1")
    with pytest.raises(ts.InvalidInputError, match="no column 'nope'"):
        orders.system("snapshots").scan(columns=["nope"])


def test_the_audit_log_tells_every_change_with_its_kind(orders: ts.Table) -> None:
    orders.delete("id = 1")
    found = [(row["rowkind"], row["id"], row["v"]) for row in read(orders, "audit_log")]
    assert sorted(found[:3]) == [("+I", 1, "a"), ("+I", 2, "b"), ("+I", 3, "c")]
    assert sorted(found[3:6]) == [("+I", 4, None), ("+U", 2, "B"), ("-U", 2, "b")]
    assert found[6:] == [("-D", 1, "a")]
    assert read(orders, "audit_log", columns=["id", "rowkind"], filter="rowkind = '-D'") == [{"id": 1, "rowkind": "-D"}]
    assert orders.system("audit_log").schema.names == ["rowkind", *SCHEMA.names]


def test_the_audit_log_leaves_out_what_nobody_knows(orders: ts.Table) -> None:
    orders.overwrite(rows(("d9", 9, "z")), {})
    orders.upsert(rows(("d9", 9, "y")))
    found = [(row["rowkind"], row["id"], row["v"]) for row in read(orders, "audit_log")]
    assert found[-2:] == [("-U", 9, "z"), ("+U", 9, "y")]
    assert len(found) == 8


def test_read_optimised_sees_the_compacted_part_of_a_keyed_table_and_all_of_an_append_table(
    catalog: ts.Catalog, orders: ts.Table
) -> None:
    assert orders.system("ro").count() == 0
    assert orders.system("ro").schema == orders.schema
    plain = catalog.create_table("shop.plain", schema=SCHEMA)
    plain.append(rows(("d1", 1, "a")))
    assert read(plain, "ro") == [{"day": "d1", "id": 1, "v": "a"}]
    assert read(plain, "ro", filter="id = 2", columns=["v"]) == []


def test_read_optimised_keeps_what_was_compacted_while_newer_rows_wait(orders: ts.Table) -> None:
    before = orders.scan().to_arrow().to_pylist()
    orders.compact(full=True)
    orders.upsert(rows(("d1", 1, "later"), ("d3", 9, "new")))
    assert sorted(read(orders, "ro"), key=repr) == sorted(before, key=repr)
    assert orders.system("ro").count() == 4


def test_tags_consumers_and_branches_are_listed(orders: ts.Table) -> None:
    context = orders.context
    orders.create_tag("v1.0", 1, retain=90_000)
    Consumers(context.files).write("billing", 2)
    (tag,) = read(orders, "tags")
    assert (tag["tag_name"], tag["snapshot_id"], tag["record_count"], tag["time_retained"]) == ("v1.0", 1, 3, "PT1M30S")
    assert read(orders, "consumers") == [{"consumer_id": "billing", "next_snapshot_id": 2}]
    make_branch(orders, "b1")
    assert [row["branch_name"] for row in read(orders, "branches")] == ["b1"]


def make_branch(table: ts.Table, name: str) -> None:
    """The whole history so far, as another implementation would copy it."""
    files = table.context.files
    for directory in ("snapshot", "schema"):
        for info in files.list(directory):
            if not info.name.startswith("."):
                branch_files(files, name).write(f"{directory}/{info.name}", files.read(f"{directory}/{info.name}"))


@pytest.fixture(params=["catalog", "path"])
def opened(request: pytest.FixtureRequest, catalog: ts.Catalog, orders: ts.Table) -> Callable[[str], ts.Table]:
    """Opens ``orders`` with something behind it, in both ways."""
    if request.param == "catalog":
        return lambda suffix: catalog.table(f"shop.orders{suffix}")
    return lambda suffix: ts.open_table(f"{orders.location}{suffix}")


def test_a_branch_is_a_table_by_its_name(orders: ts.Table, opened: Callable[[str], ts.Table]) -> None:
    make_branch(orders, "v1.x")
    branch = opened("$branch_v1.x")
    branch.upsert(rows(("d1", 1, "on the branch")))
    branch.alter(ts.AddColumn("n", "INT"))
    assert orders.scan(filter="id = 1").to_arrow().to_pylist()[0]["v"] == "a"
    assert opened("$branch_v1.x").scan(filter="id = 1", columns=["v", "n"]).to_arrow().to_pylist() == [
        {"v": "on the branch", "n": None}
    ]
    assert opened("$branch_v1.x$snapshots").scan().count() == 3
    assert opened("$branch_main$snapshots").scan().count() == 2


@pytest.mark.parametrize(
    ("suffix", "error", "message"),
    [
        ("$snapshot", ts.NotFoundError, "did you mean 'snapshots'"),
        ("$", ts.InvalidInputError, "names no table"),
        ("$$files", ts.InvalidInputError, "names no table"),
        ("$files$files", ts.InvalidInputError, "names no table"),
        ("$branch_", ts.InvalidInputError, "not a valid branch name"),
        ("$branch_../x", (ts.InvalidInputError, ts.NotFoundError), "not a valid branch name|no table at"),
        ("$branch_nope", ts.NotFoundError, "no branch 'nope'"),
        ("$branch_main$", ts.InvalidInputError, "names no table"),
        ("$branch_main$branch_main", ts.NotFoundError, "no system table"),
    ],
)
def test_a_name_that_says_nothing_is_refused(opened: Callable[[str], ts.Table], suffix: str, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        opened(suffix)


def test_a_system_table_says_that_it_is_only_read(catalog: ts.Catalog, orders: ts.Table) -> None:
    files = catalog.table("shop.orders$files")
    attempts: list[Callable[[], object]] = [
        lambda: files.upsert(rows()),
        lambda: files.delete("level = 0"),
        lambda: files.compact(),
        lambda: files.alter(ts.SetTableComment("x")),
        lambda: catalog.alter_table("shop.orders$files", ts.SetTableComment("x")),
    ]
    for attempt in attempts:
        with pytest.raises(ts.UnsupportedError, match=r"shop\.orders\$files is a system table"):
            attempt()
    assert not hasattr(files, "no_such_thing") and not hasattr(files, "upsert") and hasattr(files, "scan")
    assert getattr(files, "compact", None) is None
    assert copy.copy(files).count() == files.count()
    assert get_type_hints(ts.Catalog.table)["return"] == ts.Table | ts.SystemTable == get_type_hints(ts.open_table)["return"]
    assert len(orders.snapshots()) == 2


def test_durations_are_spelled_as_java_does() -> None:
    cases = {0: "PT0S", 1: "PT0.001S", 1_500: "PT1.5S", 60_000: "PT1M", 3_661_000: "PT1H1M1S", 86_400_000: "PT24H"}
    assert {millis: duration_text(millis) for millis in cases} == cases


def test_the_audit_log_of_an_evolved_and_expired_table_tells_what_is_retained(orders: ts.Table) -> None:
    altered = orders.alter([ts.RenameColumn("v", to="w"), ts.AddColumn("n", "INT", first=True)])
    altered.upsert(pa.table({"n": pa.array([7], pa.int32()), "day": ["d1"], "id": [1], "w": ["A"]}))
    altered.expire_snapshots(retain_max=2, retain_min=2)
    found = [tuple(row.values()) for row in read(altered, "audit_log", filter="id < 3", columns=["rowkind", "n", "id", "w"])]
    assert found == [("-U", None, 2, "b"), ("+U", None, 2, "B"), ("-U", None, 1, "a"), ("+U", 7, 1, "A")]
