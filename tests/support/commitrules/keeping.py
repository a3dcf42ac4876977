"""Rules of what removes files: expiry and the removal of orphans."""

from functools import partial

from tablestore.clock import SystemClock
from tablestore.io.filestore import FileStore
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.files import FileCall, SimulatedCrash
from tablestore.testing.holdings import Holdings
from tablestore.testing.lab import Lab
from tests.support.commitrules.scenes import once, refused, rule


def rewritten(files: FileStore) -> Lab:
    """A table whose first file is needed by its first snapshot only."""
    lab = Lab(files, keyed=False)
    lab.write_new((1, "first"))
    lab.open().overwrite(lab.rows((2, "second")), {})
    lab.open().overwrite(lab.rows((3, "third")), {})
    return lab


def later() -> ManualClock:
    """A clock by which files that are there are past, as it is by the clock of their store."""
    return ManualClock(start_ms=SystemClock().now_ms() + 1_000)


@rule
def an_expiry_that_dies_leaves_no_snapshot_that_cannot_be_read(files: FileStore) -> None:
    for deleted in range(1, 6):
        lab = rewritten(files.at(f"{deleted}"))
        table, faults = lab.faulty()
        faults.crash_nth(deleted, op="delete")
        refused(SimulatedCrash, partial(table.expire_snapshots, retain_min=1, retain_max=1))
        assert Holdings(lab.files).missing() == {}
        for snapshot in lab.open().snapshots():
            lab.open().scan(snapshot_id=snapshot.id).count()
        lab.check([(3, "third")])


@rule
def what_a_tag_needs_outlives_its_snapshot(files: FileStore) -> None:
    lab = rewritten(files)
    lab.open().create_tag("kept", 1)
    lab.open().expire_snapshots(retain_min=1, retain_max=1)
    assert Holdings(lab.files).missing() == {}
    assert lab.read(tag="kept") == [(1, "first")]


@rule
def what_a_branch_needs_outlives_the_snapshots_of_the_others(files: FileStore) -> None:
    lab = rewritten(files)
    lab.open().create_tag("fork", 1)
    lab.open().create_branch("work", tag="fork")
    lab.open().expire_snapshots(retain_min=1, retain_max=1)
    assert Holdings(lab.files).missing() == {}
    assert lab.open().branch("work").scan().to_arrow().to_pylist() == [{"id": 1, "v": "first"}]


@rule
def a_branch_that_is_made_during_a_clean_keeps_its_files(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    lab.write_new((1, "first"))
    cleaner, faults = lab.faulty(clock=later())
    listed = 0

    def act(call: FileCall) -> None:
        # First the candidates are listed, then, at the second listing, the branches whose files are needed.
        nonlocal listed
        listed += call.path == "branch"
        if call.path == "branch" and listed == 2:
            lab.open().create_branch("work")
            lab.open().overwrite(lab.rows((2, "second")), {})
            lab.open().expire_snapshots(retain_min=1, retain_max=1)

    faults.after(act, op="list")
    assert cleaner.remove_orphan_files(0, dry_run=False).examined > 0
    assert listed >= 2 and lab.open().branches(), "the scene is another one"
    assert Holdings(lab.files).missing() == {}
    assert lab.open().branch("work").scan().to_arrow().to_pylist() == [{"id": 1, "v": "first"}]
    lab.check([(2, "second")])


@rule
def a_tag_that_is_renamed_during_a_clean_keeps_its_files(files: FileStore) -> None:
    lab = rewritten(files)
    lab.open().create_tag("a", 1)
    lab.open().expire_snapshots(retain_min=1, retain_max=1)
    cleaner, faults = lab.faulty(clock=later())
    # Its old name was listed, its new one was not.
    once(faults, "before", "read", lambda: lab.open().rename_tag("a", "z"), match=lambda call: call.path == "tag/tag-a")
    assert cleaner.remove_orphan_files(0, dry_run=False).examined > 0
    assert [tag.name for tag in lab.open().tags()] == ["z"], "the scene is another one"
    assert Holdings(lab.files).missing() == {}
    assert lab.read(tag="z") == [(1, "first")]
