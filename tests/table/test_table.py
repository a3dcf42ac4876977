"""The handle of a table: what users write, read, convert, and get wrong."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import tablestore as ts

SCHEMA = pa.schema([("id", pa.int64()), ("price", pa.float64()), ("day", pa.string())])


@pytest.fixture
def catalog(tmp_path: Path) -> ts.Catalog:
    catalog = ts.open_catalog(str(tmp_path / "warehouse"))
    catalog.create_database("shop")
    return catalog


@pytest.fixture
def orders(catalog: ts.Catalog) -> ts.Table:
    return catalog.create_table(
        "shop.orders", schema=SCHEMA, primary_key=["id", "day"], partition_by=["day"], options={"bucket": "2"}
    )


def rows(ids: list[int], prices: list[float], days: list[str]) -> pa.Table:
    return pa.table({"id": ids, "price": prices, "day": days}, schema=SCHEMA)


def content(table: ts.Table, **how: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row.values()) for row in table.scan(**how).to_arrow().to_pylist())


def test_the_name_of_one_column_need_not_be_a_list(catalog: ts.Catalog, tmp_path: Path) -> None:
    table = catalog.create_table("shop.a", {"day": str, "item": str}, partition_by="day")
    assert table.partition_by == ("day",)
    table.append({"day": ["a"], "item": ["x"]})
    with catalog.stage_table("shop.b", {"id": int}, primary_key="id") as staged:
        assert staged.table.primary_key == ("id",)
    assert table.scan("item").to_arrow().to_pydict() == {"item": ["x"]}
    assert table.changes(0, columns="item").to_arrow().column_names == ["_row_kind", "item"]
    (batch,) = table.consume("full", columns="item", follow=False)
    assert batch.rows.column_names == ["_row_kind", "item"]
    assert ts.deliver(table, str(tmp_path / "delivered"), columns="day").rows == 1
    with pytest.raises(ts.InvalidInputError, match="no column 'day,item' in this table"):
        table.scan("day,item")


THREE = rows([1, 2, 3], [1.0, 2.0, 3.0], ["a", "a", "b"])


@pytest.mark.parametrize(
    "given",
    [
        THREE,
        THREE.to_batches()[0],
        THREE.to_reader(),
        THREE.to_pandas(),
        pl.from_arrow(THREE),
        THREE.to_pylist(),
        THREE.select(["day", "id", "price"]),
        duckdb.connect().from_arrow(THREE),
    ],
    ids=["table", "batch", "reader", "pandas", "polars", "dicts", "reordered", "duckdb"],
)
def test_rows_are_taken_from_everything_that_arrow_can_see(orders: ts.Table, given: object) -> None:
    snapshot = orders.upsert(given)
    assert snapshot is not None
    assert snapshot.id == 1
    assert content(orders) == [(1, 1.0, "a"), (2, 2.0, "a"), (3, 3.0, "b")]


def test_a_scan_converts_to_everything(orders: ts.Table) -> None:
    orders.upsert(THREE)
    orders.upsert(rows([2], [20.0], ["a"]))
    scan = orders.scan(columns=["price", "id"], filter="price > 1.5")
    wanted = [(3.0, 3), (20.0, 2)]
    assert sorted(tuple(row.values()) for row in scan.to_arrow().to_pylist()) == wanted
    assert sum(batch.num_rows for batch in scan.to_batches()) == scan.count() == 2
    assert scan.to_reader().schema == scan.schema
    assert sorted(scan.to_pandas().itertuples(index=False, name=None)) == wanted
    assert sorted(scan.to_polars().rows()) == wanted
    assert pa.table(scan).num_rows == 2
    assert pl.DataFrame(scan).shape == (2, 2)


def test_a_view_in_duckdb_can_be_queried_again_and_again(orders: ts.Table) -> None:
    orders.upsert(THREE)
    connection = duckdb.connect()
    relation = orders.scan().to_duckdb(connection, "orders")
    assert relation.count("*").fetchall() == [(3,)]
    assert connection.sql("SELECT sum(price) FROM orders").fetchall() == [(6.0,)]
    assert connection.sql("SELECT sum(price) FROM orders").fetchall() == [(6.0,)]


def test_an_upsert_replaces_rows_of_the_same_key_and_the_later_row_of_one_call_wins(orders: ts.Table) -> None:
    orders.upsert(rows([1, 1], [1.0, 1.5], ["a", "a"]))
    assert content(orders) == [(1, 1.5, "a")]
    orders.upsert(rows([1], [2.0], ["a"]))
    assert content(orders) == [(1, 2.0, "a")]


def test_rows_are_deleted_by_key_and_by_condition(orders: ts.Table) -> None:
    orders.upsert(THREE)
    orders.delete(pa.table({"id": [1], "day": ["a"]}))
    assert content(orders) == [(2, 2.0, "a"), (3, 3.0, "b")]
    snapshot = orders.delete("price >= 3")
    assert snapshot is not None
    assert snapshot.operation == "DELETE"
    assert content(orders) == [(2, 2.0, "a")]
    assert orders.delete(pc.field("price") > 100) is None
    orders.delete(pc.field("id") == 2)
    assert content(orders) == []
    assert content(orders, snapshot_id=1) == [(1, 1.0, "a"), (2, 2.0, "a"), (3, 3.0, "b")]


@pytest.mark.parametrize("options", [{}, {"bucket": "3", "bucket-key": "id"}], ids=["unaware", "bucketed"])
def test_rows_of_an_append_table_are_deleted_by_condition_in_file_order(catalog: ts.Catalog, options: dict[str, str]) -> None:
    log = catalog.create_table("shop.log", schema=pa.schema([("id", pa.int64()), ("x", pa.int64())]), options=options)
    for start in (0, 10, 20):
        log.append(pa.table({"id": range(start, start + 10), "x": [start] * 10}))
    snapshot = log.delete("id BETWEEN 5 AND 12 OR id IS NULL")
    assert snapshot is not None
    assert snapshot.commit_kind == "OVERWRITE"
    assert sorted(log.scan(columns=["id"]).to_arrow()["id"].to_pylist()) == [*range(5), *range(13, 30)]
    untouched = set(log.files()["file_path"].to_pylist())
    assert log.delete("id > 1000") is None
    assert set(log.files()["file_path"].to_pylist()) == untouched


def test_an_overwrite_replaces_the_partitions_of_its_rows_or_those_it_names(orders: ts.Table) -> None:
    orders.upsert(THREE)
    orders.overwrite(rows([9], [9.0], ["a"]))
    assert content(orders) == [(3, 3.0, "b"), (9, 9.0, "a")]
    orders.overwrite(pa.table({"id": [7], "price": [7.0]}), partition={"day": "b"})
    assert content(orders) == [(7, 7.0, "b"), (9, 9.0, "a")]
    orders.overwrite(rows([], [], []), partition={"day": "b"})
    assert content(orders) == [(9, 9.0, "a")]
    orders.overwrite(rows([1], [1.0], ["z"]), partition={})
    assert content(orders) == [(1, 1.0, "z")]


def test_an_overwrite_outside_of_its_partition_is_refused_and_leaves_no_file(orders: ts.Table, tmp_path: Path) -> None:
    orders.upsert(THREE)
    before = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(ts.InvalidInputError, match="does not belong to this partition"):
        orders.overwrite(rows([1], [1.0], ["b"]), partition={"day": "a"})
    assert sorted(tmp_path.rglob("*.parquet")) == before
    assert content(orders) == [(1, 1.0, "a"), (2, 2.0, "a"), (3, 3.0, "b")]


def test_changes_are_applied_in_order_by_their_row_kind(orders: ts.Table) -> None:
    changes = rows([1, 1, 2, 2, 3], [1.0, 1.5, 2.0, 2.0, 3.0], ["a"] * 5)
    orders.write_changes(changes.append_column("_row_kind", pa.array(["+I", "+U", "+I", "-D", "-D"])))
    assert content(orders) == [(1, 1.5, "a")]


def test_time_travel_by_id_and_by_time_sees_the_rows_of_then(orders: ts.Table) -> None:
    for number in (1, 2, 3):
        orders.upsert(rows([number], [float(number)], ["a"]))
    times = {snapshot.id: snapshot.time_millis for snapshot in orders.snapshots()}
    assert orders.scan(snapshot_id=2).count() == 2
    assert orders.scan(timestamp=times[2]).count() == 2
    assert orders.scan(timestamp=datetime.fromtimestamp(times[2] / 1000, UTC)).count() == 2
    assert orders.scan(timestamp=datetime.fromtimestamp(times[2] / 1000, UTC).isoformat()).count() == 2
    assert orders.scan(timestamp=datetime.fromtimestamp(times[2] / 1000).isoformat(" ")).count() == 2, "local time, as in SQL"
    assert [one.snapshot_id for one in orders.consume("from-timestamp", timestamp="2100-01-01", follow=False)] == []
    assert orders.scan(timestamp=times[3] + 10_000).count() == 3
    with pytest.raises(ts.NotFoundError, match="earliest retained one is 1"):
        orders.scan(timestamp=times[1] - 1)


def test_a_numbered_commit_is_applied_once_and_empty_ones_are_recorded(orders: ts.Table) -> None:
    with orders.new_writer(commit_user="etl") as writer:
        writer.write(THREE)
        first = writer.commit(identifier=1)
        writer.write(rows([9], [9.0], ["a"]))
        assert writer.commit(identifier=1) == first
        assert writer.commit(identifier=2) is not None
    assert orders.scan().count() == 3
    with orders.new_writer(commit_user="etl") as writer:
        writer.write(rows([9], [9.0], ["a"]))
        assert writer.commit(identifier=2) is not None
        writer.write(rows([9], [9.0], ["a"]))
        with pytest.raises(ts.InvalidInputError, match="identifier=3"):
            writer.commit()
    assert orders.scan().count() == 3


def test_a_writer_left_without_a_commit_leaves_no_file(orders: ts.Table, tmp_path: Path) -> None:
    with orders.new_writer() as writer:
        writer.write(THREE)
        writer.flush()
        assert list(tmp_path.rglob("*.parquet"))
    assert list(tmp_path.rglob("*.parquet")) == []
    assert orders.snapshots() == ()


def test_an_empty_table_reads_as_no_rows_in_every_form(orders: ts.Table) -> None:
    scan = orders.scan()
    assert scan.count() == 0
    assert scan.to_arrow().schema.names == SCHEMA.names
    assert scan.snapshot_id is None
    assert orders.upsert(SCHEMA.empty_table()) is None
    assert orders.delete("id > 0") is None
    assert "the table is empty" in scan.explain()


def test_explain_tells_what_pruning_leaves(orders: ts.Table) -> None:
    orders.upsert(THREE)
    orders.upsert(rows([9], [9.0], ["c"]))
    text = orders.scan(filter="day = 'c' AND price > 5").explain()
    assert "day = 'c' AND price > 5" in text
    assert "1 of 2 read" in text, "one manifest is pruned by its partitions"
    assert orders.scan(filter="day = 'a' AND id = 77").plan.files == ()


def test_pruning_by_value_never_uncovers_an_older_row(orders: ts.Table) -> None:
    orders.upsert(rows([1, 2], [100.0, 100.0], ["a", "a"]))
    orders.upsert(rows([1, 2], [1.0, 1.0], ["a", "a"]))
    assert content(orders, filter="price > 50") == []
    orders.delete(pa.table({"id": [1], "day": ["a"]}))
    assert content(orders, filter="price > 0") == [(2, 1.0, "a")]


def test_what_a_table_is_made_of_is_listed(orders: ts.Table) -> None:
    orders.upsert(THREE)
    assert orders.files().num_rows == orders.partitions()["file_count"].to_pandas().sum()
    assert orders.partitions()["partition"].to_pylist() == ["day=a", "day=b"]
    assert orders.schema_history()["primary_keys"].to_pylist() == [["id", "day"]]
    assert orders.options()["bucket"] == "2"
    assert orders.primary_key == ("id", "day")


@pytest.mark.deep_after(11)
@pytest.mark.parametrize(
    ("wrong", "kind", "says"),
    [
        (lambda t: t.upsert(pa.table({"id": [1]})), "missing-column", "day"),
        (lambda t: t.upsert(THREE.append_column("x", pa.array([1, 2, 3]))), None, "x"),
        (lambda t: t.upsert(pa.table([[1], [1], [1.0], ["a"]], names=["id", "id", "price", "day"])), "duplicate-column", "id"),
        (lambda t: t.upsert(pa.table({"id": [1], "price": ["x"], "day": ["a"]})), "type-mismatch", "price"),
        (lambda t: t.upsert(pa.table({"id": [None], "price": [1.0], "day": ["a"]})), "null-in-not-null", "id"),
        (lambda t: t.upsert(pa.table({"id": [1], "price": [1.0], "day": [None]})), "null-in-not-null", "day"),
        (lambda t: t.upsert(pa.table({"id": pa.array([2**64 - 1], pa.uint64()), "price": [1.0], "day": ["a"]})), None, "id"),
        (lambda t: t.upsert(5), "not-rows", "int"),
        (lambda t: t.upsert(pa.table({})), "missing-column", "found none"),
        (lambda t: t.append(THREE), "keyed-table", "upsert"),
        (lambda t: t.write_changes(THREE), "row-kind", "_row_kind"),
        (lambda t: t.upsert(THREE.append_column("_row_kind", pa.array(["+I"] * 3))), "row-kind", "write_changes"),
        (lambda t: t.write_changes(THREE.append_column("_row_kind", pa.array(["+X"] * 3))), None, r"\+X"),
        (lambda t: t.delete(pa.table({"id": [1]})), "missing-column", "day"),
        (lambda t: t.delete(7), "not-rows", "int"),
        (lambda t: t.scan(columns=["idd"]), "unknown-column", "idd"),
        (lambda t: t.scan(columns=["id", "id"]), "duplicate-column", "id"),
        (lambda t: t.scan(columns=7), None, "names of columns"),
        (lambda t: t.scan(filter="nope > 3"), "unknown-column", "nope"),
        (lambda t: t.scan(filter="price >"), None, "price >"),
        (lambda t: t.scan(filter=5), None, "int"),
        (lambda t: t.scan(snapshot_id="1"), None, "whole number"),
        (lambda t: t.scan(timestamp="2020"), None, "datetime"),
        (lambda t: t.scan(snapshot_id=1, timestamp=2), None, "at most one"),
        (lambda t: t.scan(tag="../x"), "invalid-name", "tag"),
        (lambda t: t.new_writer(""), None, "commit user"),
        (lambda t: t.overwrite(THREE, partition={"nope": 1}), "unknown-partition-column", "nope"),
        (lambda t: t.overwrite(THREE, partition={"day": 5}), None, "day"),
    ],
)
def test_wrong_input_is_refused_by_name_and_the_table_stays_as_it_is(
    orders: ts.Table, wrong: Any, kind: str | None, says: str
) -> None:
    orders.upsert(THREE)
    with pytest.raises(ts.InvalidInputError, match=says) as caught:
        wrong(orders)
    assert kind is None or caught.value.kind == kind
    assert len(orders.snapshots()) == 1
    assert content(orders) == [(1, 1.0, "a"), (2, 2.0, "a"), (3, 3.0, "b")]
    assert orders.upsert(rows([4], [4.0], ["a"])) is not None


def test_what_is_not_there_is_not_found(orders: ts.Table, tmp_path: Path) -> None:
    orders.upsert(THREE)
    with pytest.raises(ts.NotFoundError, match="retained are 1 to 1"):
        orders.scan(snapshot_id=99)
    with pytest.raises(ts.NotFoundError, match="v1"):
        orders.scan(tag="v1")
    with pytest.raises(ts.NotFoundError, match="no table at"):
        ts.open_table(str(tmp_path / "nothing"))
    (tmp_path / "file").write_text("x")
    with pytest.raises(ts.InvalidInputError, match="found a file"):
        ts.open_table(str(tmp_path / "file"))


def test_rows_that_do_not_fit_a_keyed_writer_leave_the_rows_before_them(orders: ts.Table) -> None:
    with orders.new_writer() as writer:
        writer.write(THREE)
        with pytest.raises(ts.InvalidInputError):
            writer.write(pa.table({"id": ["x"], "price": [1.0], "day": ["a"]}))
        writer.commit()
    assert orders.scan().count() == 3


def test_a_table_of_all_partition_and_bucket_shapes_folds_small_buffers_and_rolls_files(catalog: ts.Catalog) -> None:
    table = catalog.create_table(
        "shop.tiny",
        schema=SCHEMA,
        primary_key=["id", "day"],
        partition_by=["day"],
        options={"bucket": "3", "write-buffer-size": "2 kb", "target-file-size": "1 kb", "write-only": "true"},
    )
    with table.new_writer() as writer:
        for start in range(0, 2_000, 50):
            ids = list(range(start, start + 60))
            writer.write(rows(ids, [float(start)] * 60, [f"d{number % 2}" for number in ids]))
        writer.commit()
    wanted = {number: float(min(number // 50 * 50, 1950)) for number in range(2_010)}
    assert {row[0]: row[1] for row in content(table)} == wanted
    assert table.files().num_rows > 50


def test_pandas_frames_of_another_index_lose_only_the_index(orders: ts.Table) -> None:
    frame = THREE.to_pandas()
    frame.index = pd.Index([10, 20, 30])
    orders.upsert(frame)
    assert content(orders) == [(1, 1.0, "a"), (2, 2.0, "a"), (3, 3.0, "b")]


@pytest.mark.parametrize(
    "act",
    [
        lambda table: table.scan(),
        lambda table: table.changes(0),
        lambda table: list(table.consume(follow=False)),
        lambda table: table.delete("v = 'a'"),
        lambda table: table.upsert(pa.table({"id": [1], "v": ["b"]})),
        lambda table: table.upsert(pa.table({"id": [1]}), missing_columns="keep"),
        lambda table: table.expire_snapshots(retain_max=1, retain_min=1),
    ],
    ids=["scan", "changes", "consume", "delete", "upsert", "keep", "expire"],
)
def test_an_open_handle_does_not_take_another_table_for_its_own(tmp_path: Path, act: Callable[[ts.Table], object]) -> None:
    catalog = ts.open_catalog(str(tmp_path))
    catalog.create_database("d")
    table = catalog.create_table("d.t", schema=pa.schema([("id", pa.int64()), ("v", pa.string())]), primary_key=["id"])
    table.upsert(pa.table({"id": [1, 2], "v": ["a", "a"]}))
    assert table.scan().count() == 2
    catalog.drop_table("d.t")
    with pytest.raises(ts.NotFoundError) as gone:
        act(table)
    assert gone.value.kind == "no-such-table"
    other = catalog.create_table("d.t", schema=pa.schema([("v", pa.string()), ("n", pa.int32())]), primary_key=["n"])
    for _ in range(2):
        other.upsert(pa.table({"v": ["x"], "n": pa.array([7], pa.int32())}))
        with pytest.raises(ts.ConflictError) as replaced:
            act(table)
        assert replaced.value.kind == "table-replaced"
    assert other.scan().to_arrow().to_pylist() == [{"v": "x", "n": 7}] and len(other.snapshots()) == 2
