"""The removal of orphan files: everything that nothing names, and nothing else."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tablestore.errors import NotFoundError, StorageError, TablestoreError, UnsupportedError
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.auditor import walk
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.files import SimulatedCrash
from tablestore.testing.holdings import Holdings
from tablestore.testing.lab import Lab
from tests.support.commitrules.scenes import once

Make = Callable[..., Lab]
ALL: dict[str, Any] = {"retain_min": 1, "retain_max": 1}
DAY_S = 86_400


@pytest.fixture
def make(request: pytest.FixtureRequest) -> Make:
    made = 0

    def one(**options: Any) -> Lab:
        nonlocal made
        made += 1
        clock = ManualClock()
        store = MemoryFileStore(f"orphans-{abs(hash(request.node.name))}-{made}", clock=clock)
        keyed, partition_by = options.pop("keyed", False), options.pop("partition_by", ())
        primary_key = ["id", *partition_by] if keyed else ()
        return Lab(
            store,
            keyed=keyed,
            primary_key=primary_key,
            partition_by=partition_by,
            options={"write-only": "true", **options},
            clock=clock,
        )

    return one


def everything(lab: Lab) -> Lab:
    """A table with all that holds on to files: history, tag, branch, kept changes, deletion vectors."""
    for number in range(3):
        lab.write_new((number, "a"))
    lab.open().create_tag("t")
    lab.open().create_branch("b")
    lab.write(lab.open().branch("b"), (7, "branch"))
    lab.open().delete("id = 1")
    lab.write_new((8, "a"))
    lab.open().expire_snapshots(retain_min=1, retain_max=2)
    return lab


def little(lab: Lab) -> Lab:
    """A small one, for sweeps over every call: a tag, a branch, two snapshots."""
    lab.write_new((0, "a"))
    lab.open().create_branch("b")
    lab.open().overwrite(lab.rows((0, "a"), (2, "a")), {})
    lab.write_new((8, "a"))
    lab.open().expire_snapshots(retain_min=1, retain_max=2)
    return lab


def test_a_table_without_orphans_loses_nothing(make: Make) -> None:
    lab = everything(make(**{"changelog.num-retained.max": "100", "snapshot.num-retained.max": "50"}))
    lab.clock.advance(10 * DAY_S)
    before = sorted(walk(lab.files))
    report = lab.open().remove_orphan_files(dry_run=False)
    assert report.orphans == () and report.examined > 10
    assert sorted(walk(lab.files)) == before


def test_old_files_of_every_kind_go_and_young_ones_stay(make: Make) -> None:
    lab = everything(make(partition_by=["v"], keyed=True))
    strays = [
        "manifest/manifest-00000000-0000-4000-8000-000000000000-0",
        "index/index-00000000-0000-4000-8000-000000000000-0",
        "statistics/stat-1",
        "v=a/bucket-0/data-00000000-0000-4000-8000-000000000000-0.parquet",
        "v=never seen/bucket-postpone/data-x.avro",
        "bucket-0/changelog-x.parquet",
        "snapshot/.tmp-1",
        "schema/.tmp-2",
        "branch/branch-b/tag/.tmp-3",
        "tablestore-marks/0123/.tmp-4",
        "branch/branch-half/snapshot/snapshot-5",
        "branch/branch-half/schema/schema-1",
        "branch/branch-half/tablestore-deleting",
    ]
    others = ["README.md", "notes/mine.txt", "v=a/mine.txt"]
    before = sorted(walk(lab.files))
    whole = lab.files.read(f"snapshot/snapshot-{lab.open().snapshots()[-1].id}")
    for path in (*strays, *others):
        lab.files.write(path, whole if "snapshot-" in path else b"12345")
    lab.clock.advance(DAY_S)
    assert lab.open().remove_orphan_files(dry_run=False).orphans == (), "they are not older than a day yet"
    lab.clock.advance(1)
    planned = lab.open().remove_orphan_files()
    assert planned.dry_run and {orphan.path for orphan in planned.orphans} == set(strays)
    assert planned.bytes == 5 * (len(strays) - 1) + len(whole)
    done = lab.open().remove_orphan_files(dry_run=False)
    assert done.orphans == planned.orphans
    assert str(done).startswith(f"removed {len(strays)} orphan file(s) (3 branch, 4 temporary")
    assert sorted(walk(lab.files)) == sorted((*before, *others))
    assert Holdings(lab.files).missing() == {}


def test_what_an_abandoned_writer_left_goes(make: Make) -> None:
    lab = make()
    lab.write_new((1, "a"))
    table, faults = lab.faulty()
    faults.crash_nth(1, op="publish_if_absent")
    with pytest.raises(SimulatedCrash):
        lab.write(table, (2, "b"))
    assert lab.auditor.orphans()
    lab.clock.advance(2 * DAY_S)
    report = lab.open().remove_orphan_files(dry_run=False)
    assert {orphan.kind for orphan in report.orphans} == {"data", "metadata"}
    assert Holdings(lab.files).unheld() == set()
    lab.check([(1, "a")])


def test_the_files_of_a_slow_commit_are_safe(make: Make) -> None:
    """A commit whose files are as old as that is refused before they can be taken away."""
    for hours, lands in ((11, True), (13, False), (30, False)):
        lab = make()
        lab.write_new((1, "a"))
        writer = lab.open().new_writer()
        writer.write(lab.rows((2, "b")))
        writer.flush()
        lab.clock.advance(hours * 3600)
        lab.open().remove_orphan_files(dry_run=False)
        try:
            writer.commit()
            assert lands
        except TablestoreError:
            assert not lands
        lab.check([(1, "a"), (2, "b")] if lands else [(1, "a")])
        assert Holdings(lab.files).missing() == {}


@pytest.mark.deep
def test_a_commit_that_lands_while_files_are_looked_up_keeps_its_files(make: Make) -> None:
    for step in range(1, 200):
        lab = little(make())
        writer = lab.open().new_writer()
        writer.write(lab.rows((9, "slow")))
        writer.flush()
        lab.clock.advance(11 * 3600)
        table, faults = lab.faulty()
        steps = 0

        def other(call: Any, step: int = step, writer: Any = writer) -> None:
            nonlocal steps
            steps += 1
            if steps == step:
                writer.commit()

        faults.before(other)
        # Half of the orphan age is the most that a commit's files are old, so this is the hardest that a clean may be.
        table.remove_orphan_files(timedelta(hours=12), dry_run=False)
        assert Holdings(lab.files).missing() == {}, f"step {step}"
        if steps < step:
            return
    raise AssertionError("it never ended")


def test_missing_metadata_ends_it_before_anything_is_removed(make: Make) -> None:
    for kind in ("manifest-list-", "manifest-"):
        lab = everything(make())
        lab.files.write("manifest/stray", b"x")
        lab.clock.advance(2 * DAY_S)
        manifest = max(path for path in Holdings(lab.files).all_held() if path.startswith(f"manifest/{kind}"))
        lab.files.delete(manifest)
        before = sorted(walk(lab.files))
        with pytest.raises(NotFoundError) as missing:
            lab.open().remove_orphan_files(dry_run=False)
        assert missing.value.kind == "metadata-gone" and "nothing was removed" in str(missing.value)
        assert sorted(walk(lab.files)) == before


def test_a_damaged_hint_does_not_make_snapshots_orphans(make: Make) -> None:
    lab = make()
    for number in range(4):
        lab.open().overwrite(lab.rows((number, "a")), {})
    lab.clock.advance(2 * DAY_S)
    before = sorted(walk(lab.files))
    for hint in (b"4", b"1", b"99", b"", b"\xff"):
        lab.files.overwrite("snapshot/EARLIEST", hint)
        lab.open().remove_orphan_files(dry_run=False)
        assert sorted(walk(lab.files)) == before


def test_snapshots_below_a_gap_and_nobodys_parents_go_with_all_they_brought(make: Make) -> None:
    lab = make()
    for number in range(6):
        lab.write_new((number, "a"))
    dead = lab.files.read("snapshot/snapshot-2")
    lab.open().expire_snapshots(**ALL)
    lab.files.write("snapshot/snapshot-2", dead)
    lab.files.write("snapshot/snapshot-5", dead)
    lab.make_foreign(5, id=5, uuid="00000000-0000-4000-8000-000000000000")
    lab.files.delete("snapshot/EARLIEST")
    young = lab.open().remove_orphan_files(dry_run=False)
    assert young.orphans == ()
    lab.clock.advance(2 * DAY_S)
    report = lab.open().remove_orphan_files(dry_run=False)
    assert {o.path for o in report.orphans if o.kind == "snapshot"} == {"snapshot/snapshot-2", "snapshot/snapshot-5"}
    assert Holdings(lab.files).unheld() == set() and Holdings(lab.files).missing() == {}
    lab.check([(number, "a") for number in range(6)])


@pytest.mark.deep
def test_one_clean_takes_what_an_expiry_that_died_left(make: Make) -> None:
    steps = 0
    for step in range(1, 100):
        lab = little(make())
        table, faults = lab.faulty()
        faults.crash_nth(step)
        crashed = False
        try:
            table.expire_snapshots(**ALL)
        except SimulatedCrash:
            crashed = True
        lab.clock.advance(2 * DAY_S)
        lab.open().remove_orphan_files(dry_run=False)
        assert Holdings(lab.files).missing() == {}, f"step {step}"
        assert Holdings(lab.files).unheld() == set(), f"step {step}"
        lab.check([(0, "a"), (2, "a"), (8, "a")])
        steps = step
        if not crashed:
            break
    assert steps > 20


@pytest.mark.deep
def test_a_clean_that_dies_or_fails_at_any_step_is_repeated_safely(make: Make) -> None:
    for step in range(1, 200):
        lab = little(make())
        lab.files.write("manifest/stray", b"x")
        lab.files.write("bucket-0/stray.parquet", b"x")
        lab.clock.advance(2 * DAY_S)
        table, faults = lab.faulty()
        faults.fail_nth(step)
        try:
            table.remove_orphan_files(dry_run=False)
        except TablestoreError:
            assert faults.injected_total == 1
        assert Holdings(lab.files).missing() == {}, f"step {step}"
        lab.write_new((5, "new"))
        # What the failed clean itself has left is young.
        lab.clock.advance(2 * DAY_S)
        lab.open().remove_orphan_files(dry_run=False)
        assert Holdings(lab.files).unheld() == set(), f"step {step}"
        if faults.injected_total == 0:
            return
    raise AssertionError("it never ended")


def test_a_sleeping_publish_beside_a_clean(make: Make) -> None:
    """Others commit and expire past a committer; a clean in between leaves it its files."""
    lab = make()
    for number in range(3):
        lab.write_new((number, "a"))
    slow, faults = lab.faulty()

    def others() -> None:
        for number in range(3, 6):
            lab.write_new((number, "a"))
        lab.open().expire_snapshots(**ALL)
        lab.open().remove_orphan_files(dry_run=False)

    once(faults, "before", "publish_if_absent", others)
    once(faults, "after", "publish_if_absent", lambda: lab.open().remove_orphan_files(dry_run=False))
    lab.write(slow, (99, "late"))
    lab.check([*((number, "a") for number in range(6)), (99, "late")])


def test_a_host_whose_clock_is_ahead_of_the_stores_removes_nothing_by_age(make: Make) -> None:
    """A commit under way on another host: its files look a day old to a host that is 25 hours ahead."""
    lab = little(make())
    with lab.open().new_writer() as writer:
        writer.write(lab.rows((7, "under way")))
        writer.flush()
        ahead = ManualClock(start_ms=lab.clock.now_ms() + 25 * 3_600_000)
        host = lab.open(clock=ahead)
        for remove in (
            lambda: host.remove_orphan_files(dry_run=False),
            lambda: host.remove_orphan_files(),
            lambda: host.expire_snapshots(retain_min=1, retain_max=1),
        ):
            with pytest.raises(StorageError, match="ahead") as refused:
                remove()
            assert refused.value.kind == "clock-skew"
        writer.commit()
    assert (7, "under way") in lab.read()
    assert not [info for info in lab.files.list("tablestore-expiry") if not info.is_dir]


def test_a_host_whose_clock_is_behind_the_stores_removes_what_is_old_by_both(make: Make) -> None:
    lab = little(make())
    lab.files.write("manifest/stray", b"x")
    lab.clock.advance(2 * DAY_S)
    behind = lab.open(clock=ManualClock(start_ms=lab.clock.now_ms() - 25 * 3_600_000))
    assert behind.remove_orphan_files(dry_run=False).orphans == ()
    assert [orphan.path for orphan in lab.open().remove_orphan_files(dry_run=False).orphans] == ["manifest/stray"]


def test_a_reader_that_may_not_write_may_still_look_for_orphans(make: Make) -> None:
    lab = little(make())
    table, faults = lab.faulty()
    faults.fail_nth(1, op="write", error=lambda message: StorageError(message, kind="denied"))
    assert table.remove_orphan_files().orphans == ()
    faults.fail_nth(1, op="write", error=lambda message: StorageError(message, kind="denied"))
    with pytest.raises(StorageError):
        table.remove_orphan_files(dry_run=False)


def test_a_store_that_tells_no_times_is_not_cleaned(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    lab = little(make())
    real = MemoryFileStore.list

    def timeless(self: MemoryFileStore, directory: str, prefix: str = "") -> object:
        return [replace(info, modified_ms=0) for info in real(self, directory, prefix)]

    monkeypatch.setattr(MemoryFileStore, "list", timeless)
    with pytest.raises(UnsupportedError) as refused:
        lab.open().remove_orphan_files(dry_run=False)
    assert refused.value.kind == "no-file-times"
