"""Databases and tables from the command line: made, listed, read in every format, dropped only when it is meant."""

import io
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import tablestore as ts
from tablestore.store.history.retentionleases import RetentionLeases
from tests.support.commandline import Ran

Run = Callable[..., Ran]
LATEST = [
    {"id": 1, "item": "pen", "price": 1.5},
    {"id": 2, "item": "ink", "price": 9},
    {"id": 3, "item": "pad", "price": 4},
    {"id": 4, "item": None, "price": 0.5},
]


def by_id(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(rows, key=lambda row: int(str(row["id"])))


def test_a_database_is_made_listed_and_dropped(run: Run) -> None:
    assert run("db", "list", "--json").json == {"databases": []}
    assert run("db", "create", "shop", "--json").json == {"created": "shop"}
    assert "shop" in run("db", "create", "shop", code=1).err
    run("db", "create", "shop", "--if-not-exists")
    assert run("db", "list").out == "name\ttables\nshop\t0\n"
    assert run("db", "drop", "shop", code=3).out.startswith("Drops the database shop")
    assert run("db", "drop", "shop", "--yes", "--json").json == {"dropped": "shop", "tables": []}
    run("db", "drop", "shop", "--yes", code=1)
    run("db", "drop", "shop", "--yes", "--if-exists")


def test_a_database_with_tables_goes_only_with_cascade(run: Run, orders: ts.Table) -> None:
    assert "orders" in run("db", "drop", "shop", "--yes", code=1).err
    assert run("db", "drop", "shop", "--cascade", "--json", code=3).json["plan"] == {"database": "shop", "tables": ["orders"]}
    assert orders.scan().count() == 4
    run("db", "drop", "shop", "--cascade", "--yes")
    assert run("db", "list", "--json").json == {"databases": []}


def test_a_table_is_made_from_sql_columns(run: Run, catalog: ts.Catalog) -> None:
    columns = "id BIGINT NOT NULL, `odd name` STRING COMMENT 'it''s', price DECIMAL(10, 2), tags ARRAY<STRING>, m MAP<STRING, INT>"
    made = run(
        "table", "create", "shop.t", "--schema", columns, "--primary-key", "id", "-o", "bucket=3", "--comment", "c", "--json"
    )
    assert made.json["created"] == "shop.t"
    table = catalog.table("shop.t")
    assert table.schema.names == ["id", "odd name", "price", "tags", "m"]
    assert table.schema.field("price").type == pa.decimal128(10, 2)
    assert (table.primary_key, table.options()["bucket"], table.comment) == (("id",), "3", "c")
    assert table.table_schema.field("odd name").description == "it's"
    assert "exists" in run("table", "create", "shop.t", "--schema", "id INT", code=1).err
    run("table", "create", "shop.t", "--schema", "id INT", "--if-not-exists")
    assert catalog.table("shop.t").schema.names[1] == "odd name"


def test_a_table_is_made_from_a_file(run: Run, catalog: ts.Catalog, tmp_path: Path) -> None:
    pq.write_table(pa.table({"day": ["a"], "n": pa.array([1], pa.int32())}), tmp_path / "x.parquet")
    (tmp_path / "x.csv").write_text("day,n\na,1\n")
    (tmp_path / "x.jsonl").write_text('{"day":"a","n":1}\n')
    for name, kind in (("parquet", pa.int32()), ("csv", pa.int64()), ("jsonl", pa.int64())):
        run("table", "create", f"shop.{name}", "--schema-from", tmp_path / f"x.{name}", "--partition-by", "day")
        table = catalog.table(f"shop.{name}")
        assert (table.schema.field("n").type, table.partition_by) == (kind, ("day",))


@pytest.mark.parametrize(
    "columns",
    [
        "",
        "id",
        "id INT,, name",
        "id INT) x",
        "id ARRAY<INT",
        "id MAP<INT>",
        "id NOTATYPE",
        "`id INT",
        "id INT NOT",
        "a" + " ARRAY<" * 99,
    ],
)
def test_columns_that_are_none_are_refused(run: Run, catalog: ts.Catalog, columns: str) -> None:
    ran = run("table", "create", "shop.t", "--schema", columns, code=1)
    assert ran.err.startswith("Error: ")
    assert "Traceback" not in ran.err
    assert catalog.list_tables("shop") == ()


def test_tables_are_listed_with_what_they_are(run: Run, orders: ts.Table) -> None:
    assert run("table", "list").out == "name\nshop.orders\n"
    assert run("table", "list", "shop", "--json").json == {"tables": [{"name": "shop.orders"}]}
    (record,) = run("table", "list", "--long", "--json").json["tables"]
    assert record["primary_key"] == ["id"]
    assert record["snapshot_id"] == 2
    assert record["time"].endswith("Z")


def test_one_broken_table_does_not_hide_the_others(run: Run, orders: ts.Table) -> None:
    Path(orders.location, "schema", "schema-0").write_text("{}")
    (record,) = run("table", "list", "--long", "--json").json["tables"]
    assert "schema-0" in record["error"]


def test_rows_come_out_in_every_format(run: Run, orders: ts.Table, tmp_path: Path) -> None:
    assert by_id(run("table", "read", "shop.orders", "--json").rows) == LATEST
    assert by_id(run("table", "read", "shop.orders", "--format", "json").rows) == LATEST
    lines = run("table", "read", "shop.orders").out.splitlines()
    assert lines[0] == "id\titem\tprice"
    assert sorted(lines[1:]) == ["1\tpen\t1.5", "2\tink\t9", "3\tpad\t4", "4\t\t0.5"]
    csv = run("table", "read", "shop.orders", "--format", "csv")
    assert by_id(pa.csv.read_csv(io.BytesIO(csv.raw)).to_pylist())[:3] == LATEST[:3]
    parquet = run("table", "read", "shop.orders", "--format", "parquet")
    assert by_id(pq.read_table(io.BytesIO(parquet.raw)).to_pylist()) == LATEST
    done = run("table", "read", "shop.orders", "--output", tmp_path / "o.parquet", "--format", "parquet", "--json").json
    assert done == {"rows": 4, "output": str(tmp_path / "o.parquet")}
    assert by_id(pq.read_table(tmp_path / "o.parquet").to_pylist()) == LATEST
    assert [path.name for path in tmp_path.glob(".*")] == []


def test_reading_chooses_columns_rows_and_the_snapshot(run: Run, orders: ts.Table) -> None:
    assert run("table", "read", "shop.orders", "-c", "price, id", "-f", "price > 8.5", "--json").rows == [{"price": 9, "id": 2}]
    assert len(run("table", "read", "shop.orders", "--json", "--limit", "3").rows) == 3
    assert run("table", "read", "shop.orders", "--json", "--limit", "0").rows == []
    assert run("table", "count", "shop.orders", "--snapshot", "1").out == "3\n"
    assert run("table", "count", "shop.orders", "--json").json == {"rows": 4, "snapshot_id": 2}
    first = orders.snapshots()[0].time_millis
    assert run("table", "count", "shop.orders", "--timestamp", first, "--json").json["snapshot_id"] == 1
    assert run("table", "explain", "shop.orders", "-f", "id = 1", "--json").json["files"]["total"] == len(orders.files())
    assert "manifests" in run("table", "explain", "shop.orders").out


def test_a_table_is_named_by_its_path_too(run: Run, orders: ts.Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TABLESTORE_WAREHOUSE")
    assert run("table", "count", orders.location).out == "4\n"
    monkeypatch.chdir(orders.location)
    assert run("table", "count", ".").out == "4\n"


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["table", "read", "shop.nothing"], "nothing"),
        (["table", "read", "orders"], "database.table"),
        (["table", "read", "shop.orders", "--filter", "price >"], "filter"),
        (["table", "read", "shop.orders", "--columns", "idd"], "idd"),
        (["table", "read", "shop.orders", "--snapshot", "99"], "99"),
        (["table", "read", "shop.orders", "--snapshot", "1", "--tag", "x"], "at most one"),
        (["table", "read", "shop.orders", "--timestamp", "yesterday"], "yesterday"),
        (["table", "read", "/nowhere/at/all"], "nowhere"),
        (["table", "read", "shop.orders", "--output", "/nowhere/at/all.csv"], "nowhere"),
        (["table", "create", "shop.x", "--schema-from", "nothing.parquet"], "nothing.parquet"),
    ],
    ids=lambda value: " ".join(value[2:]) if isinstance(value, list) else "",
)
def test_what_fails_says_why_in_one_message(run: Run, orders: ts.Table, args: list[str], word: str) -> None:
    ran = run(*args, code=1)
    assert word in ran.err
    assert "Traceback" not in ran.err
    assert not ran.out
    error = json.loads(run(*args, "--json", code=1).err)["error"]
    assert word in error["message"]
    assert error["kind"]


def test_debug_shows_the_trace(run: Run, orders: ts.Table) -> None:
    assert "Traceback" in run("table", "read", "shop.nothing", "--debug", code=1).err


def test_a_table_is_dropped_only_with_yes(run: Run, orders: ts.Table) -> None:
    plan = run("table", "drop", "shop.orders", "--json", code=3).json
    assert plan["needs"] == "--yes"
    assert plan["plan"]["snapshots"] == 2
    assert orders.scan().count() == 4
    run("table", "drop", "shop.orders", "--yes")
    assert run("table", "list", "--json").json == {"tables": []}
    run("table", "drop", "shop.orders", "--yes", code=1)
    assert run("table", "drop", "shop.orders", "--yes", "--if-exists", "--json").json == {"dropped": None}


def test_a_materialized_table_is_not_dropped_as_a_table(run: Run, orders: ts.Table) -> None:
    run("sql", "-e", "CREATE MATERIALIZED TABLE shop.items FRESHNESS = INTERVAL '1' HOUR AS SELECT item FROM shop.orders")
    assert "DROP MATERIALIZED TABLE shop.items" in run("table", "drop", "shop.items", "--yes", code=1).err
    assert "shop.items" in run("table", "list").out


def test_files_partitions_and_history(run: Run, orders: ts.Table) -> None:
    files = run("table", "files", "shop.orders", "--json").json["files"]
    assert {file["file_path"] for file in files} == set(orders.files()["file_path"].to_pylist())
    (partition,) = run("table", "partitions", "shop.orders", "--json").json["partitions"]
    assert partition["record_count"] == 5
    events = run("table", "history", "shop.orders", "--json").json["history"]
    assert [(event["event"], event["id"]) for event in events] == [("commit WRITE", 2), ("commit WRITE", 1), ("schema", 0)]
    assert len(run("table", "history", "shop.orders", "--limit", "1", "--json").json["history"]) == 1
    run("table", "rename", "shop.orders", "shop.old")
    assert run("table", "count", "shop.old").out == "4\n"


def test_values_are_exact_in_json(run: Run, catalog: ts.Catalog) -> None:
    table = catalog.create_table("shop.v", schema=pa.schema([("d", pa.decimal128(30, 10)), ("b", pa.binary()), ("n", pa.int64())]))
    table.append(pa.table({"d": [Decimal("12345678901234567890.0000000001")], "b": [b"\x00\xff"], "n": [2**63 - 1]}, table.schema))
    (row,) = run("table", "read", "shop.v", "--json").rows
    assert row == {"d": "12345678901234567890.0000000001", "b": "AP8=", "n": 2**63 - 1}


def test_names_in_a_database_are_options_of_the_storage(run: Run, tmp_path: Path) -> None:
    options = {"metastore": "jdbc", "uri": f"sqlite:///{tmp_path}/names.db", "table-default.bucket": "3"}
    named = [word for key, value in options.items() for word in ("--storage", f"{key}={value}")]
    run("db", "create", "sales", *named)
    run("table", "create", "sales.t", "--schema", "id BIGINT", "--primary-key", "id", *named)
    assert run("table", "list", "sales", "--json", *named).rows
    assert run("table", "list", "shop", *named, code=1).err  # another catalog in the same warehouse has it
    assert "did you mean 'metastore'" in run("db", "list", "--storage", "metastor=jdbc", code=1).err


def test_a_materialized_table_is_altered_and_dropped_by_its_own_statements(run: Run, orders: ts.Table) -> None:
    run(
        "sql",
        "-e",
        "CREATE DATABASE mart; CREATE MATERIALIZED TABLE mart.t REFRESH_MODE = FULL AS SELECT id, item FROM shop.orders",
    )
    run("sql", "-e", "ALTER MATERIALIZED TABLE mart.t REFRESH")
    for words in (("add-column", "mart.t", "note STRING"), ("set", "mart.t", "write-only=true"), ("drop-column", "mart.t", "item")):
        assert "is not for a materialized table" in run("table", "alter", *words, code=1).err
    assert "DROP MATERIALIZED TABLE mart.t drops it" in run("table", "drop", "mart.t", code=1).err
    assert "keeps its name" in run("table", "rename", "mart.t", "mart.u", code=1).err
    assert RetentionLeases(orders.context.files).all()
    run("db", "drop", "mart", "--cascade", "--yes")
    assert RetentionLeases(orders.context.files).all() == ()
    assert run("db", "list", "--json").json["databases"] == [{"name": "shop", "tables": 1}]
