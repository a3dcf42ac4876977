"""``verify`` and ``repair``: what they show, what they return, and that ``repair`` waits for ``--yes``."""

import os
from collections.abc import Callable
from pathlib import Path

import tablestore as ts
from tests.support.commandline import Ran

Run = Callable[..., Ran]


def test_a_table_in_order_passes(run: Run, orders: ts.Table) -> None:
    assert run("verify", "shop.orders", "--json").json == {"table": "shop.orders", "healthy": True, "deep": False, "findings": []}
    assert "0 problem(s)" in run("verify", "shop.orders", "--deep").out


def test_damage_is_found_and_returns_3(run: Run, orders: ts.Table) -> None:
    next(Path(orders.location).glob("bucket-*/*.parquet")).unlink()
    found = run("verify", "shop.orders", "--json", code=3).json
    assert found["healthy"] is False
    assert [(one["kind"], one["severity"]) for one in found["findings"]] == [("file-missing", "problem")]
    assert "->" in run("verify", "shop.orders", code=3).out


def test_a_table_that_cannot_be_opened_has_a_problem(run: Run, orders: ts.Table) -> None:
    Path(orders.location, "schema", "schema-0").write_text("{}")
    (finding,) = run("verify", "shop.orders", "--json", code=3).json["findings"]
    assert finding["kind"] == "schema"
    run("verify", "shop.nothing", code=1)


def test_verify_names_orphans(run: Run, orders: ts.Table) -> None:
    orphan = Path(orders.location, "bucket-0", "data-00000000-0000-4000-8000-000000000000-0.parquet")
    orphan.write_bytes(b"left over")
    os.utime(orphan, (0, 0))
    (finding,) = run("verify", "shop.orders", "--json").json["findings"]
    assert (finding["kind"], finding["severity"]) == ("orphans", "warning")
    assert "tablestore clean shop.orders" in finding["fix"]


def test_a_repair_is_planned_waits_for_yes_and_leaves_a_table_that_passes(run: Run, orders: ts.Table) -> None:
    hint = Path(orders.location, "snapshot", "LATEST")
    hint.write_text("junk")
    assert "tablestore repair shop.orders" in run("verify", "shop.orders").out
    step = {"kind": "write-hints", "branch": "main", "target": "", "text": "write the hints LATEST and EARLIEST anew"}
    expected = {"table": "shop.orders", "repairs": [step], "done": False, "left": []}
    assert run("repair", "shop.orders", "--dry-run", "--json").json == expected
    assert "would write the hints" in run("repair", "shop.orders", "--dry-run").out
    assert run("repair", "shop.orders", "--json", code=3).json["plan"]["repairs"] == [step]
    assert "--yes" in run("repair", "shop.orders", code=3).err
    assert hint.read_text() == "junk"
    assert run("repair", "shop.orders", "--yes", "--json").json == {**expected, "done": True}
    assert hint.read_text() == "2"
    assert run("verify", "shop.orders", "--json").json["findings"] == []
    assert "no repair(s) done" in run("repair", "shop.orders").out


def test_what_no_repair_brings_back_is_named_with_what_to_do(run: Run, orders: ts.Table) -> None:
    next(Path(orders.location).glob("bucket-*/*.parquet")).unlink()
    Path(orders.location, "snapshot", "LATEST").write_text("junk")
    ran = run("repair", "shop.orders", "--yes", code=3)
    assert "is missing" in ran.out and "restore the file" in ran.out and "1 repair(s) done, 1 finding(s) left" in ran.out
    assert Path(orders.location, "snapshot", "LATEST").read_text() == "2"


def test_a_lost_snapshot_returns_3_before_and_after_a_repair(run: Run, orders: ts.Table) -> None:
    Path(orders.location, "snapshot", "snapshot-2").unlink()
    for _ in range(2):
        (finding,) = run("verify", "shop.orders", "--json", code=3).json["findings"]
        assert (finding["kind"], finding["repair"]) == ("snapshot-missing", None)
        assert "no repair(s) done" in run("repair", "shop.orders", "--yes", code=3).out


def test_a_branch_that_lost_its_schema_is_deleted_by_name_as_the_advice_says(run: Run, orders: ts.Table) -> None:
    orders.create_branch("trial")
    orders.branch("trial").create_tag("mine")
    Path(orders.location, "branch", "branch-trial", "schema", "schema-0").unlink()
    (finding,) = run("verify", "shop.orders", "--json", code=3).json["findings"]
    assert finding["fix"].endswith("tablestore branch delete shop.orders trial")
    run(*finding["fix"].rpartition("tablestore ")[2].split(), "--yes")
    assert run("verify", "shop.orders", "--json").json["findings"] == []


def test_the_machine_is_for_doctor_and_a_table_for_verify(run: Run, orders: ts.Table) -> None:
    run("doctor", "shop.orders", code=2)
