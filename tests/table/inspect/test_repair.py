"""Repairs: each kind of damage is planted, found, planned and put right; nothing that is needed goes; a whole table has none."""

from contextlib import suppress
from typing import Any

import pytest

import tablestore as ts
from tablestore.errors import StorageError, TablestoreError
from tablestore.io.filestore import FileStore
from tablestore.io.memory import MemoryFileStore
from tablestore.store.context import open_context
from tablestore.store.history.branchfiles import branch_files
from tablestore.store.history.unfinishedbranches import mark_deleting
from tablestore.table.inspect.check import check_table
from tablestore.table.inspect.findings import Finding, RepairKind
from tablestore.table.inspect.repair import Repair, do_repair, plan_repairs
from tablestore.table.table import Table
from tablestore.table.upkeep.expiry import clean
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.files import SimulatedCrash
from tablestore.testing.lab import Lab

ALL = {"retain_min": 1, "retain_max": 1}
DAY_MS = 86_400_000


@pytest.fixture
def lab(request: pytest.FixtureRequest) -> Lab:
    return numbered(request.node.name)


def numbered(name: str, **options: str) -> Lab:
    """A lab with four snapshots, whose files are dated by its own clock."""
    clock = ManualClock()
    made = Lab(MemoryFileStore(f"repair-{name}", clock=clock), options={"write-only": "true", **options})
    made.clock = clock
    for number in range(4):
        made.write_new((number, "a"))
    return made


def findings(made: Lab) -> tuple[Finding, ...]:
    return check_table(made.open().context, deep=True)


def plan(made: Lab) -> list[tuple[str, str, str]]:
    return [(step.kind, step.branch, step.target) for step in plan_repairs(findings(made))]


def repair(made: Lab, table: Table | None = None) -> None:
    context = (table or made.open()).context
    for step in plan_repairs(check_table(context)):
        do_repair(context, step)


def rows_of_all(made: Lab) -> dict[int, list[Any]]:
    return {one.id: made.read(snapshot_id=one.id) for one in made.open().snapshots()}


def test_a_whole_table_has_no_repairs(lab: Lab) -> None:
    lab.open().create_tag("v1", 2)
    lab.open().create_branch("b", tag="v1")
    lab.open().branch("b").upsert(lab.rows((9, "z")))
    lab.open().compact(full=True)
    lab.open().expire_snapshots(retain_min=1, retain_max=2)
    assert findings(lab) == ()


@pytest.mark.deep_after(3)
@pytest.mark.parametrize("hint", ["LATEST", "EARLIEST"])
@pytest.mark.parametrize("content", [b"0", b"", b"\xff\x00", b"4" * 100], ids=["zero", "empty", "bytes", "long"])
@pytest.mark.parametrize("branch", ["main", "b"])
def test_a_hint_that_leads_nowhere_is_written_anew(lab: Lab, hint: str, content: bytes, branch: str) -> None:
    lab.open().create_branch("b", snapshot_id=3)
    files = branch_files(lab.files, branch)
    right = {name: files.read(f"snapshot/{name}") for name in ("LATEST", "EARLIEST")}
    files.overwrite(f"snapshot/{hint}", content)
    assert [(one.kind, one.severity) for one in findings(lab)] == [("hint", "warning")]
    assert plan(lab) == [("write-hints", branch, "")]
    repair(lab)
    assert findings(lab) == ()
    assert {name: files.read(f"snapshot/{name}") for name in right} == right


def test_an_earliest_hint_ahead_of_the_newest_snapshot_is_written_anew(lab: Lab) -> None:
    lab.files.overwrite("snapshot/EARLIEST", b"99")
    assert plan(lab) == [("write-hints", "main", "")]
    repair(lab)
    assert findings(lab) == () and lab.files.read("snapshot/EARLIEST") == b"1"


@pytest.mark.deep_after(2)
@pytest.mark.parametrize("branch", ["main", "b"])
@pytest.mark.parametrize("earliest", [b"1", b"99", b"junk"])
def test_no_repair_removes_the_trace_of_a_lost_newest_snapshot(lab: Lab, branch: str, earliest: bytes) -> None:
    lab.open().create_branch("b", snapshot_id=4)
    lab.open().branch("b").upsert(lab.rows((7, "b")))
    lab.open().upsert(lab.rows((7, "a")))
    files = branch_files(lab.files, branch)
    files.delete("snapshot/snapshot-5")
    files.overwrite("snapshot/EARLIEST", earliest if branch == "main" else b"4")
    for _ in range(2):
        (lost,) = (one for one in findings(lab) if one.kind == "snapshot-missing")
        assert (lost.severity, lost.repair, lost.branch) == ("problem", None, branch)
        repair(lab)
        assert files.read("snapshot/LATEST") == b"5"
    files.delete("snapshot/LATEST")
    repair(lab)
    assert findings(lab) == (), "the hint is a hint only: who knows of a rollback removes it"


def test_hints_that_are_missing_or_lag_behind_are_in_order(lab: Lab) -> None:
    lab.files.overwrite("snapshot/LATEST", b"2")
    lab.files.delete("snapshot/EARLIEST")
    assert findings(lab) == ()


def test_a_hint_without_any_snapshot_is_a_loss_that_nothing_repairs(lab: Lab) -> None:
    for number in range(1, 5):
        lab.files.delete(f"snapshot/snapshot-{number}")
    found = findings(lab)
    assert {(one.kind, one.severity) for one in found} == {("snapshots-gone", "problem")}
    assert plan_repairs(found) == ()


@pytest.mark.deep
@pytest.mark.parametrize("decoupled", [False, True])
def test_an_expiry_that_died_at_any_step_is_finished(request: pytest.FixtureRequest, decoupled: bool) -> None:
    options = {"changelog.time-retained": "30 d"} if decoupled else {}
    seen = kept = 0
    for step in range(1, 200, 3):
        made = numbered(f"{request.node.name}-{step}", **options)
        made.open().create_tag("v", 2)
        made.open().compact(full=True)
        table, faults = made.faulty()
        faults.fail_nth(step)
        with suppress(TablestoreError):
            table.expire_snapshots(**ALL)
        died = faults.injected_total == 1
        steps = plan(made)
        assert set(steps) <= {("finish-expiry", "main", "")}
        seen += bool(steps)
        before = rows_of_all(made)
        repair(made)
        assert findings(made) == (), f"step {step}"
        after = rows_of_all(made)
        assert max(after) == max(before) and all(before[one] == rows for one, rows in after.items())
        made.check([(number, "a") for number in range(4)])
        assert made.read(tag="v") == [(0, "a"), (1, "a")]
        if steps:
            assert list(made.files.list("tablestore-expiry")) == []
        kept = len(made.files.names("changelog", prefix="changelog-"))
        if not died:
            break
    assert seen > 3 and kept == (4 if decoupled else 0)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"snapshots": {"1": "x"}}', b"no json"])
def test_an_intent_that_cannot_be_understood_is_removed_and_nothing_else(lab: Lab, content: bytes) -> None:
    lab.files.overwrite("tablestore-expiry/1-3", content)
    assert plan(lab) == [("remove-intent", "main", "tablestore-expiry/1-3")]
    before = rows_of_all(lab)
    repair(lab)
    assert findings(lab) == ()
    assert rows_of_all(lab) == before and len(before) == 4


def files_of(files: FileStore, directory: str) -> list[str]:
    found = []
    for info in files.list(directory):
        path = f"{directory}/{info.name}"
        found += files_of(files, path) if info.is_dir else [path]
    return found


@pytest.mark.deep
@pytest.mark.parametrize("what", ["create", "delete"])
def test_a_branch_that_was_half_made_or_half_deleted_goes_once_it_is_old(request: pytest.FixtureRequest, what: str) -> None:
    seen = 0
    for number in range(1, 40):
        made = numbered(f"{request.node.name}-{number}")
        if what == "delete":
            made.open().create_branch("b", snapshot_id=2)
            made.open().branch("b").upsert(made.rows((7, "b")))
        table, faults = made.faulty()
        faults.crash_nth(number)
        with suppress(SimulatedCrash):
            table.create_branch("b", snapshot_id=2) if what == "create" else table.delete_branch("b")
        if not faults.crashed:
            break
        half = [one for one in findings(made) if one.kind == "branch-unfinished"]
        if half:
            seen += 1
            assert plan(made) == [], "somebody may be at work on it"
            made.clock.advance(2 * DAY_MS / 1000)
            assert plan(made) == [("remove-branch", "main", "b")]
            repair(made)
            assert files_of(made.files, "branch") == []
        assert plan(made) == []
        made.check([(one, "a") for one in range(4)])
        assert len(made.open().snapshots()) == 4
    assert seen >= (3 if what == "create" else 1)


def a_branch(made: Lab, change: str) -> None:
    """A branch at snapshot 2 that holds something of its own."""
    made.open().create_branch("b", snapshot_id=2)
    branch = made.open().branch("b")
    if change == "schema":
        branch.alter([ts.SetOption("write-only", "false")])
    elif change == "tag":
        branch.create_tag("mine", 2)
    elif change == "consumer":
        branch_files(made.files, "b").write("consumer/consumer-c", b'{"nextSnapshot": 3}')
    else:
        branch.upsert(made.rows((7, "b")))
    if change == "expired":
        made.open().branch("b").expire_snapshots(**ALL)


@pytest.mark.deep_after(3)
@pytest.mark.parametrize("change", ["rows", "expired", "schema", "tag", "consumer"])
def test_a_branch_that_lost_its_schema_is_never_removed_while_it_holds_something_of_its_own(lab: Lab, change: str) -> None:
    a_branch(lab, change)
    files = branch_files(lab.files, "b")
    before = {path: lab.files.read(path) for path in files_of(lab.files, "branch") + files_of(lab.files, "bucket-0")}
    rows = lab.open().branch("b").scan().to_arrow().to_pylist()
    lost = files.read("schema/schema-0")
    files.delete("schema/schema-0")
    lab.clock.advance(30 * DAY_MS / 1000)
    (found,) = findings(lab)
    assert (found.severity, found.kind, found.repair) == ("problem", "branch-damaged", None)
    assert "restore branch/branch-b/schema/schema-0" in found.fix and "branch delete <table> b" in found.fix
    repair(lab)
    do_repair(lab.open().context, Repair(kind="remove-branch", branch="main", target="b"))
    clean(lab.open().context)
    files.write("schema/schema-0", lost)
    assert {path: lab.files.read(path) for path in before} == before
    assert lab.open().branch("b").scan().to_arrow().to_pylist() == rows
    assert findings(lab) == ()
    files.delete("schema/schema-0")
    lab.open().delete_branch("b")
    assert files_of(lab.files, "branch") == [] and findings(lab) == ()


def test_a_branch_that_is_written_to_after_its_deletion_stopped_is_not_taken_for_half_deleted(lab: Lab) -> None:
    a_branch(lab, "rows")
    mark_deleting(lab.files, "b")
    lab.open().branch("b").upsert(lab.rows((8, "b")))
    branch_files(lab.files, "b").delete("schema/schema-0")
    lab.clock.advance(30 * DAY_MS / 1000)
    assert [one.kind for one in findings(lab)] == ["branch-damaged"]


def test_a_branch_is_not_removed_by_a_host_whose_clock_is_ahead(lab: Lab) -> None:
    lab.files.write("branch/branch-b/tablestore-branch", b"v")
    ahead = ManualClock()
    ahead.advance(2 * DAY_MS / 1000)
    with pytest.raises(StorageError) as refused:
        repair(lab, lab.open(clock=ahead))
    assert refused.value.kind == "clock-skew"
    assert files_of(lab.files, "branch") == ["branch/branch-b/tablestore-branch"]


def test_what_another_process_has_put_right_meanwhile_is_left_alone(lab: Lab) -> None:
    lab.open().create_branch("b", snapshot_id=2)
    context = open_context(lab.files, clock=lab.clock)
    before = {path: lab.files.read(path) for path in files_of(lab.files, "branch") + files_of(lab.files, "snapshot")}
    for step in (
        Repair(kind="remove-branch", branch="main", target="b"),
        Repair(kind="remove-branch", branch="main", target="never"),
        Repair(kind="remove-intent", branch="main", target="snapshot/snapshot-1"),
        Repair(kind="finish-expiry", branch="main"),
        Repair(kind="write-hints", branch="b"),
    ):
        do_repair(context, step)
    assert {path: lab.files.read(path) for path in before} == before


def test_the_plan_names_each_step_once_and_finishes_what_writes_hints_first() -> None:
    def found(repair: RepairKind | None, branch: str = "main", target: str = "") -> Finding:
        return Finding(severity="warning", kind="x", subject="s", message="m", fix="f", repair=repair, branch=branch, target=target)

    steps = plan_repairs(
        [
            found("write-hints"),
            found("write-hints"),
            found(None),
            found("remove-branch", target="c"),
            found("finish-expiry", "b", "tablestore-expiry/1-3"),
            found("finish-expiry", "b", "tablestore-expiry/4-5"),
            found("remove-intent", target="x"),
            found("remove-intent", target="y"),
            found("finish-expiry"),
        ]
    )
    assert [str(step) for step in steps] == [
        "finish the expiries that have begun (branch b)",
        "finish the expiries that have begun",
        "remove x, which cannot be understood",
        "remove y, which cannot be understood",
        "remove what is left of branch c",
        "write the hints LATEST and EARLIEST anew",
    ]
    assert plan_repairs([]) == ()
