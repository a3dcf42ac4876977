"""Rules of the publish: what is linked, what is dead, and what an unanswered try has become."""

from tablestore.errors import CommitOutcomeUnknown, ConflictError, StorageError
from tablestore.io.filestore import FileStore
from tablestore.testing.deterministic import ManualClock
from tablestore.testing.files import Faults, FileCall
from tablestore.testing.lab import Lab, is_snapshot
from tests.support.commitrules.scenes import once, refused, rule


@rule
def a_publish_never_replaces_what_is_there(files: FileStore) -> None:
    lab = Lab(files)
    slow, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.write(lab.open(), (2, "quick")))
    lab.write(slow, (1, "slow"))
    lab.check([(1, "slow"), (2, "quick")])
    assert lab.auditor.ids() == [1, 2]


@rule
def a_writer_paused_before_the_link_while_others_expire_past_it_does_not_land_on_a_dead_history(files: FileStore) -> None:
    lab = Lab(files)
    lab.write(lab.open(), (0, "first"))
    slow, faults = lab.faulty()

    def others() -> None:
        for number in range(1, 4):
            lab.write(lab.open(), (number, "quick"))
        lab.expire(keep=1)

    once(faults, "before", "publish_if_absent", others)
    snapshot = slow.upsert(lab.rows((9, "slow")))
    assert snapshot is not None and snapshot.id == 5, snapshot
    lab.check([(0, "first"), (1, "quick"), (2, "quick"), (3, "quick"), (9, "slow")])
    assert lab.auditor.ids() == [4, 5], "the dead id is still there"


@rule
def a_dead_snapshot_right_below_the_history_is_told_from_a_landed_one(files: FileStore) -> None:
    lab = Lab(files)
    lab.write(lab.open(), (0, "first"))
    slow, faults = lab.faulty()

    def others() -> None:
        for number in range(1, 3):
            lab.write(lab.open(), (number, "quick"))
        # Ids 1 and 2 are free again, 3 is the earliest: the slow one will link 2, and 3 comes right after it.
        lab.expire(keep=1)

    once(faults, "before", "publish_if_absent", others)
    snapshot = slow.upsert(lab.rows((9, "slow")))
    assert snapshot is not None and snapshot.id == 4, snapshot
    lab.check([(0, "first"), (1, "quick"), (2, "quick"), (9, "slow")])


@rule
def the_creator_of_snapshot_1_that_slept_past_its_expiry_plans_again(files: FileStore) -> None:
    lab = Lab(files)
    slow, faults = lab.faulty()

    def others() -> None:
        for number in range(1, 5):
            lab.write(lab.open(), (number, "quick"))
        lab.expire(keep=2)

    once(faults, "before", "publish_if_absent", others)
    snapshot = slow.upsert(lab.rows((9, "slow")))
    assert snapshot is not None and snapshot.id == 5
    lab.check([(1, "quick"), (2, "quick"), (3, "quick"), (4, "quick"), (9, "slow")])


@rule
def a_writer_paused_after_the_link_has_landed_once(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    lab.write(lab.open(), (0, "first"))
    slow, faults = lab.faulty()
    once(faults, "after", "publish_if_absent", lambda: lab.write(lab.open(), (1, "quick")))
    snapshot = slow.append(lab.rows((9, "slow")))
    assert snapshot is not None and snapshot.id == 2
    lab.check([(0, "first"), (1, "quick"), (9, "slow")])


@rule
def a_writer_paused_after_the_link_while_others_expire_its_base_has_landed_once(files: FileStore) -> None:
    for others_commits in (0, 1, 3):
        lab = Lab(files.at(f"t{others_commits}"), keyed=False)
        lab.write(lab.open(), (0, "first"))
        slow, faults = lab.faulty()

        def others(lab: Lab = lab, commits: int = others_commits) -> None:
            for number in range(commits):
                lab.write(lab.open(), (number + 1, "quick"))
            lab.expire(keep=1)

        once(faults, "after", "publish_if_absent", others)
        snapshot = slow.append(lab.rows((9, "slow")))
        assert snapshot is not None and snapshot.id == 2
        lab.check([(0, "first"), (9, "slow"), *[(number + 1, "quick") for number in range(others_commits)]])


@rule
def a_landed_snapshot_whose_rows_were_replaced_at_once_is_not_committed_again(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    lab.write(lab.open(), (0, "first"))
    slow, faults = lab.faulty()

    def others() -> None:
        lab.open().overwrite(lab.rows((5, "instead")), {})
        # The base goes, what the slow one published stays: only the history tells that it landed.
        lab.expire(keep=2)

    once(faults, "after", "publish_if_absent", others)
    snapshot = slow.append(lab.rows((9, "slow")))
    assert snapshot is not None and snapshot.id == 2
    lab.check([(5, "instead")])


@rule
def a_snapshot_that_expired_before_its_committer_looked_is_unknown_and_keeps_its_files(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    lab.write(lab.open(), (0, "first"))
    slow, faults = lab.faulty()
    deleted_by_slow: list[str] = []
    faults.after(lambda call: deleted_by_slow.append(call.path), op="delete")

    def others() -> None:
        lab.open().overwrite(lab.rows((5, "instead")), {})
        lab.write(lab.open(), (6, "more"))
        lab.expire(keep=1)

    once(faults, "after", "publish_if_absent", others)
    refused(CommitOutcomeUnknown, lambda: slow.append(lab.rows((9, "slow"))))
    assert deleted_by_slow == []
    lab.check([(5, "instead"), (6, "more")])


@rule
def a_successor_that_expires_while_it_is_looked_at_decides_nothing(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    lab.write(lab.open(), (0, "first"))
    slow, faults = lab.faulty()

    def others() -> None:
        lab.open().overwrite(lab.rows((5, "instead")), {})
        lab.write(lab.open(), (6, "more"))
        lab.expire(keep=3)

    once(faults, "after", "publish_if_absent", others)
    # The successor's file is read, then it and its lists go before the lists are read.
    once(faults, "after", "read", lambda: lab.expire(keep=1), match=lambda call: call.path == "snapshot/snapshot-3")
    refused(CommitOutcomeUnknown, lambda: slow.append(lab.rows((9, "slow"))))
    lab.check([(5, "instead"), (6, "more")])


@rule
def a_failed_read_after_the_link_takes_nothing_away_from_a_landed_snapshot(files: FileStore) -> None:
    for op in ("read", "list"):
        lab = Lab(files.at(op), keyed=False)
        lab.write(lab.open(), (0, "first"))
        slow, faults = lab.faulty()

        def break_down(faults: Faults = faults, op: str = op) -> None:
            faults.fail_nth(1, op=op)

        once(faults, "after", "publish_if_absent", break_down)
        slow.append(lab.rows((9, "slow")))
        lab.check([(0, "first"), (9, "slow")])


@rule
def a_store_that_fails_for_good_after_the_link_leaves_the_outcome_unknown_and_every_file_in_place(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    lab.write(lab.open(), (0, "first"))
    slow, faults = lab.faulty()

    def break_down() -> None:
        def fail(call: FileCall) -> None:
            faults.count_fault(call, "before")
            raise StorageError(f"the store is gone: {call.op} {call.path}; this is a test")

        faults.before(fail, op="read")

    once(faults, "after", "publish_if_absent", break_down)
    refused(CommitOutcomeUnknown, lambda: slow.append(lab.rows((9, "slow"))))
    assert faults.injected_total > 1
    lab.check([(0, "first"), (9, "slow")])


# three outcomes


@rule
def a_publish_that_was_applied_but_reported_failed_lands_once(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    lab.write(lab.open(), (0, "first"))
    slow, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: faults.fail_nth(1, when="after", op="publish_if_absent"))
    slow.append(lab.rows((9, "slow")))
    assert faults.injected_total == 1
    lab.check([(0, "first"), (9, "slow")])
    assert lab.auditor.ids() == [1, 2]


@rule
def a_publish_that_was_not_applied_is_repeated(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    slow, faults = lab.faulty()
    faults.fail_nth(1, op="publish_if_absent")
    slow.append(lab.rows((9, "slow")))
    assert faults.injected_total == 1
    lab.check([(9, "slow")])


@rule
def a_publish_that_times_out_and_lands_late_is_not_committed_twice(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    lab.write(lab.open(), (0, "first"))
    clock = ManualClock()
    slow, faults = lab.faulty(clock=clock)
    late = faults.capture_publish()

    def apply(_: float) -> None:
        late.apply()

    clock.on_sleep = apply
    slow.append(lab.rows((9, "slow")))
    assert late.captured
    lab.check([(0, "first"), (9, "slow")])
    assert lab.auditor.ids() == [1, 2]


@rule
def a_publish_that_lands_late_after_another_took_its_id_changes_nothing(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    lab.write(lab.open(), (0, "first"))
    clock = ManualClock()
    slow, faults = lab.faulty(clock=clock)
    late = faults.capture_publish()
    clock.on_sleep = lambda _: lab.write(lab.open(), (1, "quick")) if lab.auditor.ids() == [1] else None
    slow.append(lab.rows((9, "slow")))
    assert late.apply() is False
    lab.check([(0, "first"), (1, "quick"), (9, "slow")])


@rule
def an_unknown_outcome_deletes_nothing_and_lands_whole_when_it_lands_late(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    lab.write(lab.open(), (0, "first"))
    slow, faults = lab.faulty()
    late = faults.capture_publish()

    def unreachable() -> None:
        def fail(call: FileCall) -> None:
            raise StorageError("no answer; this is a test", kind="unknown-outcome")

        faults.before(fail, op="publish_if_absent")

    once(faults, "before", "publish_if_absent", unreachable)
    before = lab.auditor.orphans()
    refused(CommitOutcomeUnknown, lambda: slow.append(lab.rows((9, "slow"))))
    assert not [call for call in faults.calls if call.op == "delete"], "something was deleted"
    lab.check([(0, "first")])
    assert late.apply() is True
    lab.check([(0, "first"), (9, "slow")])
    assert lab.auditor.orphans() == before


@rule
def a_commit_that_never_wins_gives_up_in_time_and_leaves_nothing(files: FileStore) -> None:
    lab = Lab(files, keyed=False, options={"commit.timeout": "10 s"})
    lab.write(lab.open(), (0, "first"))
    clock = ManualClock()
    slow, faults = lab.faulty(clock=clock)
    quick = lab.open()
    count = 0

    def outrun(call: FileCall) -> None:
        nonlocal count
        if is_snapshot(call):
            count += 1
            clock.advance(1)
            lab.write(quick, (count, "quick"))

    faults.before(outrun, op="publish_if_absent")
    error = refused(ConflictError, lambda: slow.append(lab.rows((99, "slow"))))
    assert error.kind == "commit-timeout"
    assert 10 <= count < 20, f"{count} rounds in ten seconds of one round each"
    assert lab.auditor.orphans() == set()
    lab.check([(0, "first"), *[(number, "quick") for number in range(1, count + 1)]])


@rule
def a_base_that_a_late_duplicate_brought_back_proves_nothing(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    lab.write_new((0, "first"))
    base = files.read("snapshot/snapshot-1")
    slow, faults = lab.faulty()

    def others() -> None:
        for number in range(1, 4):
            lab.write_new((number, "quick"))
        lab.expire(keep=1)
        # The publish of snapshot 1 had been repeated; its first try arrives only now.
        assert files.publish_if_absent("snapshot/snapshot-1", base)

    once(faults, "before", "publish_if_absent", others)
    snapshot = slow.append(lab.rows((9, "slow")))
    assert snapshot is not None and snapshot.id == 5
    lab.check([(0, "first"), (1, "quick"), (2, "quick"), (3, "quick"), (9, "slow")])
