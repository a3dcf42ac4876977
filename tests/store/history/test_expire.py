"""Expiry: what goes, what stays, and that neither a crash nor a sleeper changes that."""

from collections.abc import Callable
from typing import Any

import pytest

from tablestore.errors import InvalidInputError, StorageError, TablestoreError
from tablestore.io.memory import MemoryFileStore
from tablestore.store.history.consumers import Consumers
from tablestore.store.history.references import own_branch
from tablestore.store.history.retention import Retention, changelog_retention, pick_end
from tablestore.testing.auditor import walk
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.lab import Lab
from tests.support.commitrules.scenes import once

ALL = {"retain_min": 1, "retain_max": 1}


def lab(name: str, **options: Any) -> Lab:
    """A keyed lab whose files are dated by its own clock, and which compacts and expires only when asked."""
    clock = ManualClock()
    keyed = options.pop("keyed", True)
    made = Lab(MemoryFileStore(f"expire-{name}", clock=clock), keyed=keyed, options={"write-only": "true", **options})
    made.clock = clock
    return made


@pytest.fixture
def numbered(request: pytest.FixtureRequest) -> Callable[..., Lab]:
    return lambda **options: lab(request.node.name, **options)


def snapshot_files(made: Lab) -> list[str]:
    return sorted(info.name for info in made.files.list("snapshot"))


# ---- which


def end_of(first: int, latest: int, times: dict[int, int], now: int, **retention: int) -> int:
    wanted = Retention(**{"num_min": 1, "num_max": 1000, "age_millis": 100, "limit": 1000, **retention})
    return pick_end(first, latest, time_of=times.__getitem__, now_millis=now, retention=wanted)


def test_a_snapshot_goes_once_its_successor_is_old_enough() -> None:
    times = {1: 0, 2: 500, 3: 600, 4: 1000}
    # Snapshot 2 was the table until 600, and 600 is 101 ago; 3 was the table until 1000.
    assert end_of(1, 4, times, 701) == 3
    assert end_of(1, 4, times, 700) == 2
    assert end_of(1, 4, times, 10_000) == 4, "the newest always stays"


def test_the_minimum_stays_whatever_its_age_and_the_maximum_goes_whatever_its_age() -> None:
    times = {i: i for i in range(1, 11)}
    assert end_of(1, 10, times, 10_000, num_min=4) == 7
    assert end_of(1, 10, times, 10, num_max=3) == 8
    assert end_of(1, 10, times, 10, num_max=3, limit=2) == 3
    assert end_of(9, 10, times, 10_000, num_min=5) == 9, "nothing is left to go"


def test_changes_are_kept_apart_only_if_they_are_to_stay_longer() -> None:
    assert changelog_retention({}) is None
    assert changelog_retention({"changelog.num-retained.max": "5", "snapshot.num-retained.max": "10"}) is None
    kept = changelog_retention({"changelog.time-retained": "1 d"})
    assert kept is not None and kept.age_millis == 86_400_000 and kept.num_min == 10


@pytest.mark.parametrize("arguments", [{"retain_max": 0, "retain_min": 1}, {"retain_max": 3}, {"retain_min": 0}, {"limit": 0}])
def test_keeping_less_than_the_minimum_is_refused(numbered: Callable[..., Lab], arguments: dict[str, int]) -> None:
    made = numbered()
    made.write_new((1, "a"))
    with pytest.raises(InvalidInputError) as refused:
        made.open().expire_snapshots(**arguments)
    assert refused.value.kind == "invalid-retention"


# ---- what


def test_expiry_removes_what_only_old_snapshots_needed_and_the_table_reads_the_same(numbered: Callable[..., Lab]) -> None:
    made = numbered(keyed=False)
    for number in range(6):
        made.write_new((number, "a"))
    table = made.open()
    table.delete("id < 3")
    before = len(list(walk(made.files)))
    report = table.expire_snapshots(**ALL)
    assert report.snapshots == (1, 2, 3, 4, 5, 6) and report.data_files == 3 and report.bytes > 0
    assert "expired 6 snapshot(s) (1 to 6)" in str(report)
    made.check([(3, "a"), (4, "a"), (5, "a")])
    assert [snapshot.id for snapshot in made.open().snapshots()] == [7]
    assert made.files.read("snapshot/EARLIEST") == b"7"
    assert made.auditor.orphans() == set()
    assert len(list(walk(made.files))) < before
    assert list(made.files.list("tablestore-expiry")) == []


def test_a_dry_run_tells_the_same_and_removes_nothing(numbered: Callable[..., Lab]) -> None:
    made = numbered(keyed=False)
    for number in range(4):
        made.write_new((number, "a"))
    made.open().overwrite(made.rows((9, "z")), {})
    before = sorted(walk(made.files))
    planned = made.open().expire_snapshots(**ALL, dry_run=True)
    assert sorted(walk(made.files)) == before
    done = made.open().expire_snapshots(**ALL)
    assert planned.dry_run and str(planned).startswith("would expire 4 snapshot(s)")
    assert (planned.snapshots, planned.data_files, planned.metadata_files, planned.bytes) == (
        done.snapshots,
        done.data_files,
        done.metadata_files,
        done.bytes,
    )


def test_the_limit_of_one_run_is_kept(numbered: Callable[..., Lab]) -> None:
    made = numbered()
    for number in range(8):
        made.write_new((number, "a"))
    assert made.open().expire_snapshots(**ALL, limit=3).snapshots == (1, 2, 3)
    assert made.open().expire_snapshots(**ALL, limit=3).snapshots == (4, 5, 6)


def test_a_file_that_moved_to_another_level_is_not_deleted(numbered: Callable[..., Lab]) -> None:
    made = numbered()
    made.write_new((1, "a"))
    made.write_new((2, "b"))
    made.open().compact(full=True)
    levels = made.open().files().column("level").to_pylist()
    assert set(levels) != {0}, "nothing was moved, the test tests nothing"
    made.open().expire_snapshots(**ALL)
    made.check([(1, "a"), (2, "b")])


def test_a_consumer_keeps_the_snapshots_that_it_still_needs(numbered: Callable[..., Lab]) -> None:
    made = numbered(**{"consumer.expiration-time": "1 h"})
    for number in range(6):
        made.write_new((number, "a"))
    Consumers(made.files).write("billing", 3)
    report = made.open().expire_snapshots(**ALL)
    assert report.snapshots == (1, 2) and report.kept_by == "consumer 'billing'"
    assert "held back by consumer 'billing'" in str(report)
    made.clock.advance(3601)
    assert made.open().expire_snapshots(**ALL).snapshots == (3, 4, 5), "it has not moved for an hour"


def test_automatic_expiry_after_a_commit_follows_the_options(numbered: Callable[..., Lab]) -> None:
    made = numbered(**{"write-only": "false", "snapshot.num-retained.min": "2", "snapshot.num-retained.max": "3", "bucket": "1"})
    for number in range(12):
        made.write_new((number, "a"))
    assert len(made.open().snapshots()) == 3
    made.check([(number, "a") for number in range(12)])
    assert made.auditor.orphans() == set()


def test_a_failing_expiry_does_not_fail_the_commit_before_it(numbered: Callable[..., Lab]) -> None:
    made = numbered(**{"write-only": "false", "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"})
    made.write_new((1, "a"))
    table, faults = made.faulty()
    faults.fail_nth(1, op="delete")
    made.write(table, (2, "b"))
    assert faults.injected_total == 1
    made.check([(1, "a"), (2, "b")])
    made.write_new((3, "c"))
    assert [snapshot.id for snapshot in made.open().snapshots()] == [3], "the next run finishes"
    assert made.auditor.orphans() == set()


# ---- crashes and sleepers


@pytest.mark.deep
def test_a_run_that_dies_at_any_step_is_finished_by_the_next() -> None:
    reached = 0
    for step in range(1, 200):
        made = lab(f"crash-{step}", keyed=False)
        for number in range(4):
            made.write_new((number, "a"))
        made.open().overwrite(made.rows((9, "z"), (8, "y")), {})
        table, faults = made.faulty()
        faults.fail_nth(step)
        try:
            table.expire_snapshots(**ALL)
        except TablestoreError:
            assert faults.injected_total == 1
            reached += 1
        made.check([(8, "y"), (9, "z")])
        for snapshot in made.open().snapshots():
            made.open().scan(snapshot_id=snapshot.id).count()
        made.write_new((7, "x"))
        made.open().expire_snapshots(**ALL)
        made.check([(7, "x"), (8, "y"), (9, "z")])
        assert made.auditor.orphans() == set(), f"step {step}"
        assert snapshot_files(made) == ["EARLIEST", "LATEST", "snapshot-6"], f"step {step}"
        assert list(made.files.list("tablestore-expiry")) == []
        if faults.injected_total == 0:
            break
    assert reached > 20


@pytest.mark.parametrize("hint", [b"5", b"1", None], ids=["right", "stale", "none"])
def test_an_expiry_between_a_late_publish_and_its_committers_look_takes_nothing_from_it(
    numbered: Callable[..., Lab], hint: bytes | None
) -> None:
    made = numbered(keyed=False)
    for number in range(3):
        made.write_new((number, "a"))
    slow, faults = made.faulty()

    def others_commit_and_expire_past_it() -> None:
        made.write_new((3, "a"))
        made.write_new((4, "a"))
        made.write_new((5, "a"))
        made.open().expire_snapshots(retain_min=2, retain_max=2)

    def others_expire_again() -> None:
        assert snapshot_files(made)[-3:] == ["snapshot-4", "snapshot-5", "snapshot-6"], "it did not land beside the history"
        if hint is None:
            made.files.delete("snapshot/EARLIEST")
        else:
            made.files.overwrite("snapshot/EARLIEST", hint)
        made.open().expire_snapshots(**ALL)
        made.open().remove_orphan_files(dry_run=False)

    once(faults, "before", "publish_if_absent", others_commit_and_expire_past_it)
    once(faults, "after", "publish_if_absent", others_expire_again)
    made.write(slow, (99, "late"))
    made.check([*((number, "a") for number in range(6)), (99, "late")])
    assert made.open().snapshots()[-1].id == 7


def test_a_dead_snapshot_next_to_the_history_is_left_alone_without_any_hint(numbered: Callable[..., Lab]) -> None:
    made = numbered(keyed=False)
    for number in range(5):
        made.write_new((number, "a"))
    dead = made.files.read("snapshot/snapshot-4")
    made.open().expire_snapshots(**ALL)
    assert snapshot_files(made) == ["EARLIEST", "LATEST", "snapshot-5"]
    # As if a sleeper had linked its snapshot 4 now: another commit than the one that snapshot 5 was built on.
    made.files.write("snapshot/snapshot-4", dead)
    made.make_foreign(4, uuid="00000000-0000-4000-8000-000000000000")
    made.files.delete("snapshot/EARLIEST")
    made.write_new((5, "a"))
    report = made.open().expire_snapshots(**ALL)
    assert report.snapshots == (5,)
    assert "snapshot-4" in snapshot_files(made)
    made.check([(number, "a") for number in range(6)])


@pytest.mark.deep
def test_two_runs_at_once_remove_the_same_and_agree() -> None:
    for step in range(1, 60):
        made = lab(f"two-{step}", keyed=False)
        for number in range(5):
            made.write_new((number, "a"))
        made.open().overwrite(made.rows((9, "z")), {})
        slow, faults = made.faulty()
        done = []

        def other(call: Any, made: Lab = made, done: list[int] = done, step: int = step) -> None:
            done.append(1)
            if len(done) == step:
                made.open().expire_snapshots(**ALL)

        faults.before(other)
        slow.expire_snapshots(retain_min=2, retain_max=2)
        made.check([(9, "z")])
        assert made.auditor.orphans() == set(), f"step {step}"
        if len(done) < step:
            break


def test_changes_of_expired_snapshots_stay_as_long_as_they_are_asked_for(numbered: Callable[..., Lab]) -> None:
    made = numbered(
        keyed=False,
        **{
            "changelog.num-retained.min": "1",
            "changelog.num-retained.max": "4",
            "snapshot.num-retained.max": "2",
            "snapshot.num-retained.min": "1",
        },
    )
    for number in range(3):
        made.write_new((number, "a"))
    made.open().overwrite(made.rows((9, "z")), {})
    report = made.open().expire_snapshots(retain_min=1, retain_max=1)
    assert report.snapshots == (1, 2, 3)
    kept = made.open().context.files.list("changelog")
    assert [info.name for info in kept] == ["EARLIEST", "LATEST", "changelog-1", "changelog-2", "changelog-3"]
    table = made.open()
    branch = own_branch(table.context)
    for snapshot in branch.changelogs.all():
        for entry in table.context.manifests.delta(snapshot):
            assert made.files.exists(made.auditor.path_of(entry.file.file_name)), "the files of the changes are there"
    for number in range(10, 14):
        made.write_new((number, "a"))
    report = made.open().expire_snapshots(retain_min=1, retain_max=1)
    assert report.changelogs, "changes go in the end"
    assert branch.changelogs.ids()[0] > 1
    made.open().expire_snapshots(retain_min=1, retain_max=1)


def test_a_host_whose_clock_is_ahead_takes_no_living_consumer_for_dead(numbered: Callable[..., Lab]) -> None:
    made = numbered(**{"consumer.expiration-time": "1 d"})
    for key in range(5):
        made.write_new((key, "a"))
    made.open().reset_consumer("reader", 2)
    host = made.open(clock=ManualClock(start_ms=made.clock.now_ms() + 25 * 3_600_000))
    with pytest.raises(StorageError) as refused:
        host.expire_snapshots(**ALL)
    assert refused.value.kind == "clock-skew" and not made.files.list("tablestore-expiry")
    assert "snapshot-2" in snapshot_files(made)
    assert made.open().expire_snapshots(**ALL).snapshots == (1,)
