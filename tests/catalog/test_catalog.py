"""The catalog: names, all-or-nothing creation, and the same promises on disk and in memory."""

import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.io.memory import MemoryFileStore

SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string())])
HOSTILE = [
    "", " ", ".", "..", "../x", "a/b", "/etc", "a\\b", "a\0b", "a\nb", "~", "-rf", "a b", "x" * 300, "ä", "a.b", "*", "a?", "$HOME",
    "`id`", "a;b", "a'b", 'a"b', "%2e%2e", "..%2f", "con:", "a|b", "<x>", "\u202e", "a\u0000/../../b", "schema/../..",
]  # fmt: skip


@pytest.fixture(params=["disk", "memory"])
def catalog(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ts.Catalog]:
    if request.param == "disk":
        yield ts.open_catalog(str(tmp_path / "warehouse"))
    else:
        yield ts.open_catalog(f"memory://{tmp_path.name}")
        MemoryFileStore.forget(tmp_path.name)


def test_databases_and_tables_are_listed_in_order_and_dropped(catalog: ts.Catalog) -> None:
    assert catalog.list_databases() == ()
    catalog.create_database("shop")
    catalog.create_database("audit")
    assert catalog.list_databases() == ("audit", "shop")
    for name in ("orders", "customers"):
        catalog.create_table(f"shop.{name}", schema=SCHEMA, primary_key=["id"])
    assert catalog.list_tables("shop") == ("customers", "orders")
    catalog.drop_table("shop.orders")
    assert catalog.list_tables("shop") == ("customers",)
    with pytest.raises(ts.InvalidInputError, match="cascade"):
        catalog.drop_database("shop")
    catalog.drop_database("shop", cascade=True)
    assert catalog.list_databases() == ("audit",)


def test_what_exists_is_an_error_unless_ignored_and_is_then_left_as_it_is(catalog: ts.Catalog) -> None:
    catalog.create_database("shop")
    with pytest.raises(ts.AlreadyExistsError, match="ignore_if_exists"):
        catalog.create_database("shop")
    catalog.create_database("shop", ignore_if_exists=True)
    table = catalog.create_table("shop.orders", schema=SCHEMA, primary_key=["id"])
    table.upsert(pa.table({"id": [1], "name": ["a"]}))
    with pytest.raises(ts.AlreadyExistsError, match=r"already exists in .*; .*ignore_if_exists=True .*drop_table"):
        catalog.create_table("shop.orders", schema=SCHEMA)
    again = catalog.create_table("shop.orders", schema=pa.schema([("other", pa.int8())]), ignore_if_exists=True)
    assert again.schema.names == ["id", "name"]
    assert again.scan().count() == 1


def test_what_is_missing_is_an_error_unless_ignored(catalog: ts.Catalog) -> None:
    catalog.create_database("shop")
    for drop in (
        lambda: catalog.drop_table("shop.nope"),
        lambda: catalog.drop_database("nope"),
        lambda: catalog.table("shop.nope"),
    ):
        with pytest.raises(ts.NotFoundError, match="nope"):
            drop()
    catalog.drop_table("shop.nope", ignore_if_not_exists=True)
    catalog.drop_database("nope", ignore_if_not_exists=True)
    with pytest.raises(ts.NotFoundError, match="create_database"):
        catalog.create_table("nowhere.orders", schema=SCHEMA)


@pytest.mark.parametrize(
    "arguments",
    [
        {"primary_key": ["missing"]},
        {"primary_key": ["id", "id"]},
        {"partition_by": ["missing"]},
        {"primary_key": ["id"], "partition_by": ["name"]},
        {"options": {"buckett": "3"}},
        {"options": {"bucket": "many"}},
        {"options": {"bucket": "0"}},
        {"options": {"bucket": "3"}},
    ],
)
def test_a_creation_that_is_refused_leaves_nothing(catalog: ts.Catalog, arguments: dict[str, object]) -> None:
    catalog.create_database("shop")
    with pytest.raises(ts.InvalidInputError):
        catalog.create_table("shop.orders", schema=SCHEMA, **arguments)
    assert catalog.list_tables("shop") == ()
    assert catalog.create_table("shop.orders", schema=SCHEMA, primary_key=["id"]).scan().count() == 0


def test_a_dropped_and_recreated_table_is_another_table(catalog: ts.Catalog) -> None:
    catalog.create_database("shop")
    old = catalog.create_table("shop.orders", schema=SCHEMA, primary_key=["id"])
    old.upsert(pa.table({"id": [1], "name": ["a"]}))
    writer = old.new_writer()
    writer.write(pa.table({"id": [2], "name": ["b"]}))
    catalog.drop_table("shop.orders")
    new = catalog.create_table("shop.orders", schema=SCHEMA, primary_key=["id"])
    with pytest.raises(ts.ConflictError, match="dropped and created again"):
        writer.commit()
    assert new.snapshots() == ()
    assert new.scan().count() == 0


def test_a_renamed_table_keeps_its_rows(catalog: ts.Catalog) -> None:
    catalog.create_database("shop")
    catalog.create_database("old")
    catalog.create_table("shop.orders", schema=SCHEMA, primary_key=["id"]).upsert(pa.table({"id": [1], "name": ["a"]}))
    catalog.create_table("shop.taken", schema=SCHEMA)
    with pytest.raises(ts.AlreadyExistsError):
        catalog.rename_table("shop.orders", "shop.taken")
    catalog.rename_table("shop.orders", "old.orders_2024")
    assert catalog.list_tables("shop") == ("taken",)
    assert catalog.table("old.orders_2024").scan().count() == 1


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_refused_and_touch_nothing(tmp_path: Path, name: str) -> None:
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    before = sorted(tmp_path.rglob("*"))
    attempts = [
        lambda: catalog.create_database(name),
        lambda: catalog.drop_database(name),
        lambda: catalog.list_tables(name),
        lambda: catalog.create_table(f"shop.{name}", schema=SCHEMA),
        lambda: catalog.create_table(f"{name}.orders", schema=SCHEMA),
        lambda: catalog.drop_table(f"shop.{name}"),
        lambda: catalog.table(f"{name}.orders"),
        lambda: catalog.rename_table("shop.orders", f"shop.{name}"),
    ]
    for attempt in attempts:
        with pytest.raises((ts.InvalidInputError, ts.NotFoundError)):
            attempt()
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("value", [name for name in HOSTILE if "\0" not in name])
def test_hostile_partition_values_stay_inside_the_table(tmp_path: Path, value: str) -> None:
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", schema=SCHEMA, primary_key=["id", "name"], partition_by=["name"])
    outside = {path for path in tmp_path.rglob("*") if "orders" not in path.parts}
    try:
        table.upsert(pa.table({"id": [1], "name": [value]}))
    except ts.InvalidInputError:
        assert table.scan().count() == 0
    else:
        assert table.scan(filter=None).to_arrow().to_pylist() == [{"id": 1, "name": value}]
    assert {path for path in tmp_path.rglob("*") if "orders" not in path.parts} == outside
    assert table.upsert(pa.table({"id": [2], "name": ["plain"]})) is not None


@pytest.mark.parametrize("path", ["notes/x.txt", "rows.csv", "dt=2024-01-01/part-0.parquet", "dt=1/hour=2/x/y", "_SUCCESS"])
def test_a_directory_that_holds_others_files_does_not_become_a_table(catalog: ts.Catalog, path: str) -> None:
    """It would be deleted with the table."""
    catalog.create_database("shop")
    files = catalog._meta.files
    files.write(f"shop.db/orders/{path}", b"mine")
    with pytest.raises(ts.AlreadyExistsError, match=re.escape(repr(path.partition("/")[0])[:-1])) as caught:
        catalog.create_table("shop.orders", schema=SCHEMA)
    assert caught.value.kind == "directory-exists"
    assert "Failed to create file store path. Reason: directory " in str(caught.value)
    assert catalog.list_tables("shop") == ()
    assert files.read(f"shop.db/orders/{path}") == b"mine"
    taken = catalog.create_table("shop.orders", schema=SCHEMA, ignore_if_exists=True)
    taken.append(pa.table({"id": [1], "name": ["a"]}))
    assert files.read(f"shop.db/orders/{path}") == b"mine"


def test_a_directory_that_holds_what_a_dropped_tables_writer_left_becomes_a_table(catalog: ts.Catalog) -> None:
    catalog.create_database("shop")
    for path in ("bucket-0/data-1-0.parquet", "dt=1/hour=2/bucket-1/data-2-0.parquet", "manifest/manifest-1-0", ".DS_Store"):
        catalog._meta.files.write(f"shop.db/orders/{path}", b"left")
    assert catalog.create_table("shop.orders", schema=SCHEMA).scan().count() == 0
