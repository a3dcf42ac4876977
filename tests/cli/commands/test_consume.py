"""Changes and system tables from the command line."""

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.table.system.systemkinds import SYSTEM_TABLES
from tests.support.commandline import Ran

Run = Callable[..., Ran]


def kinds(rows: list[dict[str, object]]) -> list[tuple[object, object]]:
    return sorted((str(row["_row_kind"]), row["id"]) for row in rows)


def test_changes_between_snapshots_come_as_pairs(run: Run, orders: ts.Table) -> None:
    assert kinds(run("consume", "shop.orders", "-s", "1", "--json").rows) == [("+I", 4), ("+U", 2), ("-U", 2)]
    assert kinds(run("consume", "shop.orders", "-s", "1", "--after-only", "--json").rows) == [("+I", 2), ("+I", 4)]
    assert kinds(run("consume", "shop.orders", "--to-snapshot", "1", "--json").rows) == [("+I", 1), ("+I", 2), ("+I", 3)]
    rows = run("consume", "shop.orders", "-s", "0", "--snapshot-ids", "-f", "id = 2", "-c", "price,id", "--json").rows
    assert [(row["_snapshot_id"], row["_row_kind"], row["price"]) for row in rows] == [(1, "+I", 8), (2, "-U", 8), (2, "+U", 9)]
    assert run("consume", "shop.orders", "-s", "2", "--json").rows == []
    assert run("consume", "shop.orders", "-s", "1").out.splitlines()[0] == "_row_kind\tid\titem\tprice"


def test_an_overwrite_is_a_gap_that_can_be_skipped(run: Run, orders: ts.Table) -> None:
    orders.overwrite(pa.table({"id": [7], "item": ["cap"], "price": [1.0]}))
    assert "3" in run("consume", "shop.orders", "-s", "1", "--json", code=1).err
    ran = run("consume", "shop.orders", "-s", "1", "--skip-gaps", "--json")
    assert kinds(ran.rows) == [("+I", 4), ("+U", 2), ("-U", 2)]
    assert "snapshot 3" in ran.err


@pytest.mark.parametrize("left", [[], [7]])
def test_a_restart_and_a_new_schema_are_events_among_the_rows(run: Run, orders: ts.Table, left: list[int]) -> None:
    consume = ("consume", "shop.orders", "--consumer", "billing", "--restart-at-gaps")
    assert len(run(*consume, "--scan", "full", "--json").rows) == 4
    orders.overwrite(pa.table({"id": pa.array(left, pa.int64()), "item": ["cap"] * len(left), "price": [1.0] * len(left)}))
    noted = run("consume", "shop.orders", "--scan", "from-timestamp", "--timestamp", "1970-01-01", "--restart-at-gaps")
    assert "come next, drop those before" in noted.err and "_event" not in noted.out
    event, *rows = run(*consume, "--json").rows
    assert (event["_event"], event["snapshot_id"]) == ("restart", 3) and "snapshot 3" in event["reason"]
    assert [row["id"] for row in rows] == left
    assert run(*consume, "--json").rows == []
    for wrong in (("--skip-gaps", "--scan", "full"), ()):
        assert "--restart-at-gaps" in run("consume", "shop.orders", "--restart-at-gaps", *wrong, code=2).err


def test_a_named_consumer_goes_on_where_it_was(run: Run, orders: ts.Table) -> None:
    assert kinds(run("consume", "shop.orders", "--scan", "full", "--consumer", "billing", "--json").rows) == [
        ("+I", 1),
        ("+I", 2),
        ("+I", 3),
        ("+I", 4),
    ]
    assert run("consume", "shop.orders", "--consumer", "billing", "--json").rows == []
    orders.upsert(pa.table({"id": [5], "item": ["cap"], "price": [1.0]}))
    assert kinds(run("consume", "shop.orders", "--consumer", "billing", "--json").rows) == [("+I", 5)]
    assert [one.next_snapshot for one in orders.consumers()] == [4]


@pytest.mark.parametrize("row_format", ["json", "parquet"])
def test_a_consumer_is_recorded_only_behind_what_is_whole(run: Run, orders: ts.Table, tmp_path: Path, row_format: str) -> None:
    lost = tmp_path / "missing" / "rows"
    args = ("consume", "shop.orders", "--scan", "full", "--consumer", "b", "--format", row_format)
    run(*args, "--output", lost, code=1)
    assert run("consume", "shop.orders", "--scan", "full", "--consumer", "b", "--limit", "1", "--json").out.count("\n") == 1
    # Neither of these was whole, so all rows come again; then none do.
    assert run(*args, "--output", tmp_path / "rows", "--json").json["rows"] == 4
    assert run("consume", "shop.orders", "--consumer", "b", "--json").rows == []


def test_changes_go_into_a_file(run: Run, orders: ts.Table, tmp_path: Path) -> None:
    done = run("consume", "shop.orders", "-s", "1", "--output", tmp_path / "c.jsonl", "--json").json
    assert done["rows"] == 3
    assert len((tmp_path / "c.jsonl").read_text().splitlines()) == 3


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["--from-snapshot", "1", "--follow"], 2),
        (["--to-snapshot", "1", "--scan", "full"], 2),
        (["--consumer", "b", "--snapshot-ids"], 2),
        (["--follow", "--output", "x.json"], 2),
        (["--follow", "--format", "parquet"], 2),
        (["--scan", "sideways"], 1),
        (["--from-snapshot", "99"], 1),
        (["--consumer", "../x", "--scan", "full"], 1),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_cannot_be_consumed_is_refused(run: Run, orders: ts.Table, args: list[str], code: int) -> None:
    ran = run("consume", "shop.orders", *args, code=code)
    assert ran.err
    assert not ran.out
    assert orders.consumers() == ()


@pytest.mark.parametrize("system", SYSTEM_TABLES)
def test_every_system_table_is_shown(run: Run, orders: ts.Table, system: str) -> None:
    wanted = orders.system(system).scan().to_arrow()
    assert len(run("table", "show", "shop.orders", system, "--json").rows) == wanted.num_rows
    assert list(run("table", "show", f"shop.orders${system}").out.splitlines()[0].split("\t")) == wanted.schema.names


def test_system_tables_are_listed_chosen_from_and_only_read(run: Run, orders: ts.Table) -> None:
    assert [one["name"] for one in run("table", "show", "shop.orders", "--json").json["system_tables"]] == list(SYSTEM_TABLES)
    rows = run("table", "show", "shop.orders", "snapshots", "-c", "snapshot_id", "-f", "snapshot_id > 1", "--json").rows
    assert rows == [{"snapshot_id": 2}]
    assert run("table", "read", "shop.orders$snapshots", "-c", "snapshot_id", "--json").rows == [
        {"snapshot_id": 1},
        {"snapshot_id": 2},
    ]
    assert len(run("table", "show", f"{orders.location}$files", "--snapshot", "1", "--json").rows) > 0
    run("table", "show", "shop.orders", "nothing", code=1)
    assert "system table" in run("table", "describe", "shop.orders$files", code=1).err


@pytest.mark.parametrize("after_only", [(), ("--after-only",)])
def test_without_a_beginning_changes_begin_with_the_earliest_that_are_there(
    run: Run, orders: ts.Table, after_only: tuple[str, ...]
) -> None:
    for key in range(5, 8):
        orders.upsert(pa.table({"id": [key], "item": ["cap"], "price": [1.0]}))
    assert run("consume", "shop.orders", "--json", *after_only).err == ""
    orders.expire_snapshots(retain_min=2, retain_max=2)
    ran = run("consume", "shop.orders", "--json", *after_only)
    assert kinds(ran.rows)[-1] == ("+I", 7) and "have expired" in ran.err
    assert "expired" in run("consume", "shop.orders", "-s", "0", "--json", *after_only, code=1).err
    assert kinds(run("consume", "shop.orders", "--scan", "full", "--json").rows) == [("+I", key) for key in range(1, 8)]
