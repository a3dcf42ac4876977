"""Altered tables through their handles: rows of before and after, filters, time travel, defaults, and the catalog."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.distributed.read import pin_read, plan_read, read_task
from tablestore.distributed.spec import TableSpec
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.lab import Lab

SCHEMA = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("n", pa.int32()), pa.field("s", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    return catalog


@pytest.fixture(params=["keyed", "append"])
def table(request: pytest.FixtureRequest, catalog: ts.Catalog) -> ts.Table:
    key = ["id"] if request.param == "keyed" else []
    options = {"bucket": "2"} if key else {"bucket": "2", "bucket-key": "id"}
    return catalog.create_table("shop.t", schema=SCHEMA, primary_key=key, options=options)


def write(table: ts.Table, *rows: dict[str, Any]) -> None:
    data = pa.Table.from_pylist(list(rows), schema=pa.schema([table.schema.field(name) for name in rows[0]]))
    if table.primary_key:
        table.upsert(data, missing_columns="null")
    else:
        table.append(data)


def read(table: ts.Table, **how: Any) -> list[dict[str, Any]]:
    return sorted(table.scan(**how).to_arrow().to_pylist(), key=lambda row: next(row[k] for k in ("id", "key") if k in row))


def test_old_files_read_through_the_new_columns_and_time_travel_through_the_old(catalog: ts.Catalog, table: ts.Table) -> None:
    write(table, {"id": 1, "n": 10, "s": "a"}, {"id": 2, "n": None, "s": "b"})
    altered = catalog.alter_table(
        "shop.t",
        [
            ts.RenameColumn("id", to="key"),
            ts.ChangeType("n", "BIGINT"),
            ts.RenameColumn("n", to="count"),
            ts.DropColumn("s"),
            ts.AddColumn("s", "DOUBLE", first=True),
        ],
    )
    assert altered is not None
    assert altered.schema.names == ["s", "key", "count"]
    write(altered, {"s": 0.5, "key": 3, "count": 2**40})
    old = [{"s": None, "key": 1, "count": 10}, {"s": None, "key": 2, "count": None}]
    assert read(altered) == [*old, {"s": 0.5, "key": 3, "count": 2**40}]
    assert read(altered, filter="key = 1") == old[:1]
    assert read(altered, filter="count = 10") == old[:1]
    assert read(altered, filter="count > 1000") == [{"s": 0.5, "key": 3, "count": 2**40}]
    assert read(altered, filter="s IS NULL") == old
    assert read(altered, filter="count IS NULL") == old[1:]
    assert altered.scan(filter="s = 0.5").count() == 1
    assert read(altered, snapshot_id=1) == [{"id": 1, "n": 10, "s": "a"}, {"id": 2, "n": None, "s": "b"}]
    assert read(altered, snapshot_id=1, filter="s = 'a'") == [{"id": 1, "n": 10, "s": "a"}]


def test_a_key_is_found_in_its_bucket_under_its_new_name_and_updated_there(catalog: ts.Catalog) -> None:
    table = catalog.create_table(
        "shop.k", schema=SCHEMA, primary_key=["id"], options={"bucket": "4", "data-file.thin-mode": "false"}
    )
    write(table, *({"id": i, "n": i, "s": "old"} for i in range(20)))
    altered = table.alter(ts.RenameColumn("id", to="key"))
    write(altered, *({"key": i, "n": -i, "s": "new"} for i in range(0, 20, 2)))
    assert [row["n"] for row in read(altered)] == [-i if i % 2 == 0 else i for i in range(20)]
    for i in range(20):
        scan = altered.scan(filter=f"key = {i}")
        assert [row["n"] for row in scan.to_arrow().to_pylist()] == [-i if i % 2 == 0 else i]
        assert len({split.bucket for split in scan.plan.splits}) == 1
    altered.delete(pa.table({"key": [2, 3]}))
    assert altered.scan().count() == 18
    altered.delete("key < 10")
    assert altered.scan().count() == 10


def test_statistics_of_old_files_prune_by_what_the_values_are_now(table: ts.Table) -> None:
    write(table, {"id": 1, "n": 1, "s": "a"})
    write(table, {"id": 2, "n": 2**31 - 1, "s": "b"})
    altered = table.alter([ts.RenameColumn("n", to="s2"), ts.RenameColumn("s", to="n"), ts.ChangeType("s2", "BIGINT")])
    write(altered, {"id": 3, "s2": 2**31, "n": "c"})
    assert read(altered, filter="s2 >= 2147483648") == [{"id": 3, "s2": 2**31, "n": "c"}]
    assert read(altered, filter="n = 'a'") == [{"id": 1, "s2": 1, "n": "a"}]
    assert len(altered.scan(filter="s2 >= 2147483648").plan.files) == 1
    # An INT as text does not sort as the number did: its old bounds must not be used.
    text = altered.alter([ts.AddColumn("m", "INT")])
    write(text, {"id": 4, "s2": 4, "n": "d", "m": 9}, {"id": 5, "s2": 5, "n": "e", "m": 10})
    text = text.alter(ts.ChangeType("m", "STRING"))
    assert [row["id"] for row in read(text, filter="m >= '9'")] == [4]
    assert [row["id"] for row in read(text, filter="m < '2'")] == [5]


def test_files_of_a_wider_type_are_refused_by_who_reads_with_the_narrow_one(table: ts.Table) -> None:
    write(table, {"id": 1, "n": 1, "s": "a"})
    before = table.context
    write(table.alter(ts.ChangeType("n", "BIGINT")), {"id": 2, "n": 2**40, "s": "b"})
    with pytest.raises(ts.UnsupportedError, match=r"call table.refresh\(\)") as refused:
        ts.Scan(before, table.snapshots()[-1], ("id", "n"), None).to_arrow()
    assert refused.value.kind == "type-change"
    assert [row["n"] for row in read(table)] == [1, 2**40]


def test_widened_decimals_and_times_are_compared_after_the_cast(catalog: ts.Catalog) -> None:
    schema = pa.schema([("d", pa.decimal128(4, 1)), ("t", pa.timestamp("ms")), ("day", pa.date32()), ("f", pa.float32())])
    table = catalog.create_table("shop.w", schema=schema)
    columns = [pa.array(["1.5"]).cast(schema.field("d").type), pa.array([1_500]).cast(pa.timestamp("ms"))]
    columns += [pa.array([1], pa.int32()).cast(pa.date32()), pa.array([0.5], pa.float32())]
    table.append(pa.Table.from_arrays(columns, schema=schema))
    altered = table.alter(
        [
            ts.ChangeType("d", "DECIMAL(10, 3)"),
            ts.ChangeType("t", "TIMESTAMP(6)"),
            ts.ChangeType("day", "TIMESTAMP(3)"),
            ts.ChangeType("f", "DOUBLE"),
        ]
    )
    for text, hits in [
        ("d = 1.5", 1), ("d > 1.5", 0), ("t = '1970-01-01 00:00:01.500'", 1), ("t > '1970-01-01 00:00:01.500'", 0),
        ("day = '1970-01-02 00:00:00'", 1), ("day > '1970-01-02 00:00:00'", 0), ("f = 0.5", 1), ("f < 0.5", 0),
    ]:  # fmt: skip
        assert altered.scan(filter=text).count() == hits, text


def test_nested_values_evolve_by_id(catalog: ts.Catalog) -> None:
    inner = pa.struct([pa.field("a", pa.int32()), pa.field("b", pa.string())])
    schema = pa.schema([("id", pa.int64()), ("r", inner), ("l", pa.list_(inner)), ("m", pa.map_(pa.string(), inner))])
    table = catalog.create_table("shop.n", schema=schema)
    value = {"a": 1, "b": "x"}
    table.append(pa.Table.from_pylist([{"id": 1, "r": value, "l": [value, None], "m": [("k", value)]}], schema=schema))
    changes: list[Any] = []
    for path in ("r", "l.element", "m.value"):
        changes += [
            ts.RenameColumn(f"{path}.a", to="c"),
            ts.ChangeType(f"{path}.c", "BIGINT"),
            ts.DropColumn(f"{path}.b"),
            ts.AddColumn(f"{path}.b", "INT", first=True),
        ]
    altered = table.alter(changes)
    new = {"b": None, "c": 1}
    assert altered.scan().to_arrow().to_pylist() == [{"id": 1, "r": new, "l": [new, None], "m": [("k", new)]}]
    wide = {"b": 7, "c": 2**40}
    altered.append(pa.Table.from_pylist([{"id": 2, "r": wide, "l": [wide], "m": [("k", wide)]}], schema=altered.schema))
    assert altered.scan(filter="id = 2").to_arrow().to_pylist() == [{"id": 2, "r": wide, "l": [wide], "m": [("k", wide)]}]
    assert table.scan(snapshot_id=1).to_arrow().to_pylist()[0]["r"] == value


def test_a_default_fills_what_is_written_from_now_on(table: ts.Table) -> None:
    write(table, {"id": 1, "n": None, "s": None})
    altered = table.alter([ts.ChangeDefault("n", "5"), ts.AddColumn("c", "STRING", default="new")])
    write(altered, {"id": 2}, {"id": 3})
    write(altered, {"id": 4, "n": None, "s": "x", "c": "given"})
    assert read(altered) == [
        {"id": 1, "n": None, "s": None, "c": None},
        {"id": 2, "n": 5, "s": None, "c": "new"},
        {"id": 3, "n": 5, "s": None, "c": "new"},
        {"id": 4, "n": 5, "s": "x", "c": "given"},
    ]
    write(altered.alter(ts.ChangeDefault("c", None)), {"id": 5})
    assert read(altered, filter="id = 5") == [{"id": 5, "n": 5, "s": None, "c": None}]


def test_the_catalog_alters_by_name_and_knows_what_is_missing(catalog: ts.Catalog) -> None:
    with pytest.raises(ts.NotFoundError, match=r"shop\.nope"):
        catalog.alter_table("shop.nope", [ts.SetTableComment("x")])
    assert catalog.alter_table("shop.nope", [ts.SetTableComment("x")], ignore_if_not_exists=True) is None
    table = catalog.create_table("shop.t", schema=SCHEMA, comment="before")
    altered = catalog.alter_table("shop.t", ts.SetTableComment("after"))
    assert altered is not None
    assert (table.comment, altered.comment, table.refresh().comment) == ("before", "after", "after")
    assert altered.options() == {**table.options()}


def test_a_handle_follows_the_table_by_itself(catalog: ts.Catalog, table: ts.Table) -> None:
    write(table, {"id": 1, "n": 1, "s": "a"})
    other = catalog.table(table.name)
    scan = other.scan()
    write(table.alter([ts.DropColumn("s"), ts.AddColumn("x", "INT")]), {"id": 2, "n": 2, "x": 3})
    rows = [{"id": 1, "n": 1, "x": None}, {"id": 2, "n": 2, "x": 3}]
    # Nothing is looked up for what a handle knows; the next read or write finds out.
    assert other.schema.names == ["id", "n", "s"]
    assert read(other) == rows and other.schema.names == ["id", "n", "x"]
    assert scan.to_arrow().to_pylist() == [{"id": 1, "n": 1, "s": "a"}]
    table.alter(ts.RenameColumn("x", to="y"))
    with pytest.raises(ts.InvalidInputError, match="x"):
        write(other, {"id": 3, "n": 3, "x": 4})
    write(other, {"id": 3, "n": 3, "y": 4})
    table.alter(ts.SetTableComment("what for"))
    assert other.delete("y = 4") is not None and other.comment == "what for"
    assert read(other) == [{"id": 1, "n": 1, "y": None}, {"id": 2, "n": 2, "y": 3}]


def test_refresh_and_alter_change_the_handle_and_return_it(catalog: ts.Catalog, table: ts.Table) -> None:
    other = catalog.table(table.name)
    assert table.alter(ts.AddColumn("x", "INT")) is table and "x" in table.schema.names
    assert other.refresh() is other and other.schema == table.schema


def test_files_of_an_older_schema_stay_plain_for_columns_that_have_not_changed(catalog: ts.Catalog) -> None:
    table = catalog.create_table("shop.p", schema=SCHEMA)
    write(table, {"id": 1, "n": 1, "s": "a"})
    table = table.alter([ts.SetOption("write-only", "true"), ts.DropColumn("s")])
    write(table, {"id": 2, "n": 2})

    def plain(*columns: str) -> int:
        spec = TableSpec(location=table.location, storage_options={})
        pin = pin_read(table.refresh(), spec)
        plan = plan_read(pin, columns=columns, plain_files=tuple)
        rows = sum(batch.num_rows for task in plan.tasks for batch in read_task(spec, task))
        assert rows + len(plan.plain_files) == 2
        return len(plan.plain_files)

    assert plain("id", "n") == 2
    table.alter([ts.ChangeType("n", "BIGINT"), ts.AddColumn("s", "STRING")])
    assert (plain("id"), plain("id", "n"), plain("id", "s")) == (2, 0, 0)
    table.refresh().alter(ts.RenameColumn("id", to="key"))
    assert plain("key") == 0


def test_rows_that_are_written_again_keep_their_nulls(catalog: ts.Catalog) -> None:
    plain = catalog.create_table("shop.again", schema=SCHEMA)
    write(plain, {"id": 1, "n": None, "s": "a"}, {"id": 2, "n": None, "s": "b"})
    plain = plain.alter([ts.ChangeDefault("n", "5"), ts.AddColumn("c", "STRING", default="new")])
    plain.delete("id = 2")
    assert read(plain) == [{"id": 1, "n": None, "s": "a", "c": None}]
    keyed = catalog.create_table("shop.rescaled", schema=SCHEMA, primary_key=["id"], options={"bucket": "1"})
    write(keyed, {"id": 1, "n": None, "s": "a"})
    keyed = keyed.alter([ts.ChangeDefault("n", "5"), ts.AddColumn("c", "STRING", default="new")])
    write(keyed, {"id": 2, "s": "b"})
    keyed = keyed.rescale(3)
    keyed.compact(full=True)
    assert read(keyed) == [{"id": 1, "n": None, "s": "a", "c": None}, {"id": 2, "n": 5, "s": "b", "c": "new"}]


def test_a_scan_reads_the_schemas_of_the_files_that_it_looks_at_and_no_others(tmp_path: Path) -> None:
    lab = Lab(MemoryFileStore(f"schemas-{tmp_path}"))
    lab.write_new((1, "a"))
    for n in range(8):
        lab.open().alter(ts.AddColumn(f"c{n}", "INT"))
    table, faults = lab.faulty()
    assert table.scan(filter="v = 'a'").count() == 1
    read = {call.path for call in faults.calls if call.op == "read" and "schema" in call.path}
    assert read == {"schema/schema-0", "schema/schema-8"}
