"""Snapshots, tags, branches, consumers, compaction, expiry and clean-up from the command line: shown, planned, done with --yes."""

from collections.abc import Callable
from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest

import tablestore as ts
from tablestore.cli.command import CommandRun
from tablestore.cli.commands.housekeeping import run_service
from tablestore.cli.text.render import Output
from tablestore.store.history.retentionleases import RetentionLeases, target_hold
from tablestore.testing.deterministic import SeededIds
from tests.support.commandline import Ran

Run = Callable[..., Ran]


def ids(table: ts.Table) -> list[int]:
    return [snapshot.id for snapshot in table.snapshots()]


@pytest.fixture
def visits(catalog: ts.Catalog) -> ts.Table:
    schema = pa.schema([("day", pa.date32()), ("n", pa.int64())])
    table = catalog.create_table("shop.visits", schema=schema, partition_by=["day"], options={"write-only": "true"})
    for day in (1, 2, 1):
        table.append(pa.table({"day": [date(2026, 1, day)], "n": [day]}, schema=schema))
    return table


# -- snapshots


def test_a_listing_of_snapshots_counts_rows_and_not_only_records(run: Run, catalog: ts.Catalog) -> None:
    table = catalog.create_table("shop.counted", "id INT", primary_key="id")
    table.upsert([{"id": number} for number in range(10)])
    table.delete("id < 5")
    listed = run("snapshot", "list", "shop.counted", "--json").json["snapshots"]
    assert [(one["rows"], one["row_change"], one["total_records"]) for one in listed] == [(5, -5, 15), (10, 10, 10)]
    events = run("table", "history", "shop.counted", "--json").json["history"]
    assert [event["detail"] for event in events[:2]] == ["5 rows (-5)", "10 rows (+10)"]


def test_snapshots_are_listed_shown_and_compared(run: Run, orders: ts.Table) -> None:
    orders.create_tag("first", 1)
    listed = run("snapshot", "list", "shop.orders", "--json").json["snapshots"]
    assert [(one["id"], one["kind"], one["tags"]) for one in listed] == [(2, "APPEND", []), (1, "APPEND", ["first"])]
    assert listed[0]["time"].endswith("Z")
    assert len(run("snapshot", "list", "shop.orders", "--limit", "1", "--json").json["snapshots"]) == 1
    shown = run("snapshot", "show", "shop.orders", "2", "--json").json
    assert (shown["id"], shown["total_records"]) == (2, 5)
    assert shown["delta_manifest_list"].startswith("manifest-list-")
    assert "tablestore.next-sequence" in shown["properties"]
    assert "manifest list" in run("snapshot", "show", "shop.orders", "2").out
    difference = run("snapshot", "diff", "shop.orders", "1", "2", "--json").json
    assert (difference["files_removed"], difference["records"]) == (0, [3, 5])
    assert difference["files_added"] > 0
    assert "3 -> 5" in run("snapshot", "diff", "shop.orders", "1", "2").out
    run("snapshot", "show", "shop.orders", "9", code=1)


def test_a_rollback_is_planned_then_done_forward(run: Run, orders: ts.Table) -> None:
    plan = run("snapshot", "rollback", "shop.orders", "1", "--json", code=3).json
    assert plan["plan"] == {"table": "shop.orders", "to_snapshot": 1, "latest_snapshot": 2}
    assert orders.scan().count() == 4
    assert run("snapshot", "rollback", "shop.orders", "1", "--yes", "--json").json["snapshot_id"] == 3
    assert orders.scan().count() == 3
    orders.create_tag("all", 2)
    run("snapshot", "rollback", "shop.orders", "--tag", "all", "--yes")
    assert orders.scan().count() == 4
    run("snapshot", "rollback", "shop.orders", "--yes", code=2)
    run("snapshot", "rollback", "shop.orders", "1", "--tag", "all", "--yes", code=2)
    run("snapshot", "rollback", "shop.orders", "77", "--yes", code=1)


# -- names


def test_tags_are_made_listed_renamed_and_deleted(run: Run, orders: ts.Table) -> None:
    assert run("tag", "create", "shop.orders", "v1", "-s", "1", "--json").json == {"tag": "v1", "snapshot_id": 1}
    run("tag", "create", "shop.orders", "v1", "-s", "1", code=1)
    run("tag", "create", "shop.orders", "v1", "--if-not-exists")
    run("tag", "create", "shop.orders", "v2", "--retain", "30 d")
    listed = run("tag", "list", "shop.orders", "--json").json["tags"]
    assert [(one["name"], one["snapshot_id"], one["expires"] is None) for one in listed] == [("v1", 1, True), ("v2", 2, False)]
    assert run("table", "count", "shop.orders", "--tag", "v1").out == "3\n"
    run("tag", "rename", "shop.orders", "v2", "v3")
    assert run("tag", "delete", "shop.orders", "v1", "--json", code=3).json["plan"]["snapshot_id"] == 1
    run("tag", "delete", "shop.orders", "v1", "--yes")
    assert [tag.name for tag in orders.tags()] == ["v3"]
    run("tag", "delete", "shop.orders", "v1", "--yes", code=1)


def test_a_branch_is_a_table_until_it_is_brought_home(run: Run, orders: ts.Table) -> None:
    assert run("branch", "create", "shop.orders", "trial", "--json").json["created_from_snapshot"] == 2
    orders.branch("trial").upsert(pa.table({"id": [9], "item": ["new"], "price": [1.0]}))
    assert run("table", "count", "shop.orders$branch_trial").out == "5\n"
    assert [one["name"] for one in run("branch", "list", "shop.orders", "--json").json["branches"]] == ["trial"]
    run("branch", "fast-forward", "shop.orders", "trial", code=3)
    assert orders.scan().count() == 4
    run("branch", "fast-forward", "shop.orders", "trial", "--yes")
    assert orders.scan().count() == 5
    assert "snapshot(s)" in run("branch", "delete", "shop.orders", "trial", code=3).out
    run("branch", "delete", "shop.orders", "trial", "--yes")
    assert orders.branches() == ()
    run("branch", "delete", "shop.orders", "trial", "--yes", code=1)


def test_a_tag_that_a_branch_needs_stays(run: Run, orders: ts.Table) -> None:
    run("tag", "create", "shop.orders", "v1")
    run("branch", "create", "shop.orders", "trial", "--tag", "v1")
    assert "trial" in run("tag", "delete", "shop.orders", "v1", "--yes", code=1).err


def test_consumers_are_listed_reset_and_forgotten(run: Run, orders: ts.Table) -> None:
    run("consumer", "reset", "shop.orders", "billing", "--next", "2", code=3)
    run("consumer", "reset", "shop.orders", "billing", "--next", "2", "--yes")
    assert run("consumer", "list", "shop.orders", "--json").json == {"consumers": [{"name": "billing", "next_snapshot": 2}]}
    run("consumer", "delete", "shop.orders", "billing", "--yes")
    assert run("consumer", "delete", "shop.orders", "billing", "--yes", "--json").json == {"deleted": None}


# -- compaction


def test_compaction_leaves_the_rows_and_fewer_runs(run: Run, orders: ts.Table) -> None:
    before = sorted(orders.scan().to_arrow().to_pylist(), key=str)
    (report,) = run("compact", "shop.orders", "--full", "--json").json["tables"]
    assert report["table"] == "shop.orders"
    assert report["files_read"] > report["files_written"] > 0
    assert run("table", "describe", "shop.orders", "--json").json["totals"]["debt_bytes"] == 0
    assert sorted(orders.scan().to_arrow().to_pylist(), key=str) == before
    assert "nothing to compact" in run("compact", "shop.orders").out


def test_only_the_named_partition_is_compacted(run: Run, visits: ts.Table) -> None:
    run("compact", "shop.visits", "--full", "--partition", "day=2026-01-01")
    files = visits.files().to_pylist()
    assert len(files) == 2
    run("compact", "shop.visits", "--partition", "month=1", code=1)
    run("compact", "shop.visits", "--partition", "day=soon", code=1)
    run("compact", "shop.visits", "--partition", "day", code=2)


class Slept:
    """A clock that lets something happen while it sleeps."""

    def __init__(self, then: Callable[[], object]) -> None:
        self.then, self.waits = then, list[float]()

    def now_ms(self) -> int:
        return 0

    def steady_s(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.then()


def test_the_service_compacts_what_comes_and_rests_when_nothing_does(
    orders: ts.Table, warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = pa.table({"id": [1], "item": ["pen"], "price": [2.0]})
    clock = Slept(lambda: orders.upsert(rows) if len(clock.waits) == 1 else None)
    session = CommandRun(out=Output(as_json=True, now_millis=0), warehouse=warehouse)
    run_service(session, [orders], [None], clock, full=True, wait_s=5, looks=4)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert clock.waits == [5, 5, 5]
    assert [snapshot.commit_kind for snapshot in orders.snapshots()][2:] == ["COMPACT", "APPEND", "COMPACT"]


def test_the_service_outlives_a_table_that_goes(
    orders: ts.Table, visits: ts.Table, catalog: ts.Catalog, warehouse: str, capsys: pytest.CaptureFixture[str]
) -> None:
    catalog.drop_table("shop.orders")
    session = CommandRun(out=Output(as_json=True, now_millis=0), warehouse=warehouse)
    run_service(session, [orders, visits], [None, None], Slept(lambda: None), full=True, wait_s=1, looks=2)
    assert len(visits.files()) == 2


# -- expiry and clean-up


def test_expiry_shows_its_plan_and_keeps_to_it(run: Run, orders: ts.Table) -> None:
    args = ("expire", "snapshots", "shop.orders", "--retain-max", "1", "--retain-min", "1", "--older-than", "0 ms")
    plan = run(*args, "--json", code=3).json["plan"]
    assert (plan["snapshots"], plan["dry_run"]) == ([1], True)
    assert ids(orders) == [1, 2]
    assert run(*args, "--yes", "--json").json["snapshots"] == [1]
    assert ids(orders) == [2]
    # Nothing is left to do: nothing wants a --yes.
    assert "0 snapshot(s)" in run(*args).out
    run("expire", "snapshots", "shop.orders", "--retain-min", "5", "--retain-max", "2", "--yes", code=1)
    run("expire", "snapshots", "shop.orders", "--older-than", "soon", "--yes", code=1)


def test_partitions_expire_and_drop_only_when_they_are_named(run: Run, visits: ts.Table) -> None:
    plan = run("expire", "partitions", "shop.visits", "--older-than", "1 d", "--json", code=3)
    assert len(plan.json["plan"]["partitions"]) == 2
    assert visits.scan().count() == 3
    run("table", "drop-partition", "shop.visits", "day=2026-01-01", code=3)
    done = run("table", "drop-partition", "shop.visits", "day=2026-01-01", "--yes", "--json").json
    assert (done["rows"], done["snapshot_id"]) == (2, 4)
    assert visits.scan().count() == 1
    run("expire", "partitions", "shop.visits", "--older-than", "1 d", "--yes")
    assert visits.scan().count() == 0


def test_clean_lists_orphans_and_removes_them_with_yes(run: Run, orders: ts.Table) -> None:
    orphan = Path(orders.location, "bucket-0", "data-00000000-0000-4000-8000-000000000000-0.parquet")
    orphan.write_bytes(b"left over")
    # Young files belong to somebody who is still writing.
    assert "0 orphan" in run("clean", "shop.orders").out
    plan = run("clean", "shop.orders", "--older-than", "0 ms", code=3)
    assert orphan.name in plan.out
    assert orphan.exists()
    assert run("clean", "shop.orders", "--older-than", "0 ms", "--json", code=3).json["plan"]["bytes"] == 9
    run("clean", "shop.orders", "--older-than", "0 ms", "--yes")
    assert not orphan.exists()
    assert orders.scan().count() == 4


def test_clean_without_a_table_removes_what_creations_that_died_have_left(run: Run, orders: ts.Table) -> None:
    catalog = ts.open_catalog(str(Path(orders.location).parents[1]))
    assert run("clean", "--json").json == {"dry_run": False, "creations": [], "holds": []}
    staged = catalog.stage_table("shop.totals", orders.schema, job_id="nightly")
    visible, _ = catalog.intend_creation("hourly", "shop.counts").create_table(orders.schema)
    # Young ones belong to somebody who is still at it.
    assert "swept 0 creation(s)" in run("clean").out
    plan = run("clean", "--older-than", "0 ms", code=3)
    assert "staged table shop.totals of job nightly: removed" in plan.out and "visible table shop.counts" in plan.out
    assert Path(staged.table.location).exists() and Path(visible.location).exists()
    done = run("clean", "--older-than", "0 ms", "--yes", "--json").json
    assert [(one["job_id"], one["table"], one["kind"], one["outcome"]) for one in done["creations"]] == [
        ("hourly", "shop.counts", "create", "removed"),
        ("nightly", "shop.totals", "stage", "removed"),
    ]
    assert not Path(staged.table.location).exists() and catalog.list_tables("shop") == ("orders",)


def test_clean_lets_go_of_snapshots_that_are_kept_for_a_table_that_is_gone_and_of_no_others(run: Run, orders: ts.Table) -> None:
    warehouse, holds = str(Path(orders.location).parents[1]), RetentionLeases(orders.context.files)
    catalog = ts.open_catalog(warehouse)
    there, made = catalog.create_table("shop.totals", orders.schema), SeededIds(1)
    lost, kept = f"{warehouse}/shop.db/lost", target_hold(there.context.table_uuid)
    elsewhere, earlier, unnamed = target_hold("b" * 32), target_hold("c" * 32), target_hold(None)
    holds.take(target_hold("a" * 32), 1, owner="materialized table shop.lost", ids=made, target=lost)
    holds.take(kept, 1, owner="materialized table shop.totals", ids=made, target=there.location)
    holds.take(elsewhere, 1, owner="materialized table shop.far", ids=made, target="s3://far/shop.db/far")
    holds.take(earlier, 1, owner="materialized table shop.old", ids=made)
    holds.take(unnamed, 1, owner="materialized table shop.foreign", ids=made, target=lost)
    holds.take("log", 1, owner="log shop.orders", ids=made)
    planned = "would release snapshots of table shop.orders from 1 on, kept for materialized table shop.lost, which is gone, or"
    assert planned in run("clean", code=3).out
    assert len(holds.all()) == 6
    (released,) = run("clean", "--yes", "--json").json["holds"]
    assert (released["table"], released["branch"], released["next_snapshot"]) == ("shop.orders", "main", 1)
    assert {one.name for one in holds.all()} == {kept, elsewhere, earlier, unnamed, "log"}
