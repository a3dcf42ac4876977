"""Rules of commits that are repeated, and of writers that failed."""

from functools import partial

from tablestore.errors import InvalidInputError, StorageError
from tablestore.format.snapshot import Snapshot
from tablestore.io.filestore import FileStore
from tablestore.testing.files import When
from tablestore.testing.lab import Lab
from tests.support.commitrules.scenes import numbered, once, refused, rule


@rule
def a_numbered_commit_is_applied_once(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    first = numbered(lab.open(), lab, 7, (1, "a"))
    again = numbered(lab.open(), lab, 7, (1, "a"))
    earlier = numbered(lab.open(), lab, 3, (3, "never"))
    assert first is not None and again is not None and again.uuid == first.uuid and earlier is None
    numbered(lab.open(), lab, 8, (2, "b"))
    numbered(lab.open(), lab, 7, (1, "other"), user="another job")
    lab.check([(1, "a"), (1, "other"), (2, "b")])
    assert lab.auditor.orphans() == set()


@rule
def a_zombie_and_its_replacement_commit_a_number_once(files: FileStore) -> None:
    moments: tuple[When, ...] = ("before", "after")
    for when in moments:
        lab = Lab(files.at(when), keyed=False)
        zombie, faults = lab.faulty()
        found: list[Snapshot | None] = []

        def replacement(lab: Lab = lab, found: list[Snapshot | None] = found) -> None:
            found.append(numbered(lab.open(), lab, 1, (1, "a")))

        once(faults, when, "publish_if_absent", replacement)
        mine = numbered(zombie, lab, 1, (1, "a"))
        assert mine is not None and found[0] is not None and mine.uuid == found[0].uuid
        lab.check([(1, "a")])


@rule
def the_mark_of_a_job_outlives_expiry_and_commits_of_other_engines(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    numbered(lab.open(), lab, 7, (1, "a"))
    for number in range(3):
        snapshot = lab.write(lab.open(), (10 + number, "others"))
        lab.make_foreign(snapshot.id)
    lab.expire(keep=2)
    assert numbered(lab.open(), lab, 7, (1, "a")) is None
    assert numbered(lab.open(), lab, 8, (2, "b")) is not None
    lab.check([(1, "a"), (2, "b"), *[(10 + number, "others") for number in range(3)]])


@rule
def the_marks_in_snapshots_hold_where_the_side_file_is_lost(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    numbered(lab.open(), lab, 7, (1, "a"))
    lab.write(lab.open(), (2, "others"))
    lab.expire(keep=1)
    files.delete_directory("tablestore-marks")
    assert numbered(lab.open(), lab, 7, (1, "a")) is None
    lab.check([(1, "a"), (2, "others")])


@rule
def a_mark_that_could_not_be_written_fails_no_commit_and_is_written_before_its_snapshot_goes(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    table, faults = lab.faulty()
    once(faults, "after", "publish_if_absent", lambda: faults.fail_nth(1, op="publish_if_absent"))
    assert numbered(table, lab, 1, (1, "a")) is not None
    assert faults.injected_total == 1 and not files.list("tablestore-marks")
    for number in range(3):
        lab.make_foreign(lab.write(lab.open(), (10 + number, "others")).id)
    lab.open().expire_snapshots(retain_max=1, retain_min=1)
    assert numbered(lab.open(), lab, 1, (1, "a")) is None
    lab.check([(1, "a"), *[(10 + number, "others") for number in range(3)]])


@rule
def one_user_either_numbers_its_commits_or_does_not(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    numbered(lab.open(), lab, 1, (1, "a"))

    def plain(user: str) -> None:
        with lab.open().new_writer(commit_user=user) as writer:
            writer.write(lab.rows((2, "b")))
            writer.commit()

    assert refused(InvalidInputError, lambda: plain("etl")).kind == "commit-identifier"
    plain("by hand")
    assert refused(InvalidInputError, lambda: numbered(lab.open(), lab, 1, (3, "c"), user="by hand")).kind == "commit-identifier"
    lab.check([(1, "a"), (2, "b")])
    assert lab.auditor.orphans() == set()


@rule
def a_failed_commit_is_not_repeated_as_an_empty_one(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    table, faults = lab.faulty()
    with table.new_writer(commit_user="etl") as writer:
        writer.write(lab.rows((1, "a")))
        faults.fail_nth(1, op="write")
        refused(StorageError, lambda: writer.commit(identifier=1))
        refused(InvalidInputError, lambda: writer.commit(identifier=1))
    numbered(lab.open(), lab, 1, (1, "a"))
    lab.check([(1, "a")])


@rule
def a_writer_that_failed_to_flush_does_not_commit_the_rest(files: FileStore) -> None:
    for op in ("open_output", "output.write", "output.close"):
        for n in (1, 2):
            lab = Lab(files.at(f"{op}-{n}"), options={"bucket": "4", "write-buffer-size": "1 b"})
            table, faults = lab.faulty()
            with table.new_writer() as writer:
                faults.fail_nth(n, op=op)
                refused(StorageError, partial(writer.write, lab.rows(*[(i, "a") for i in range(20)])))
                refused(InvalidInputError, writer.commit)
            assert lab.auditor.ids() == []
            assert lab.auditor.orphans() == set()
