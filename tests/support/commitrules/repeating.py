"""Rules of messages that are committed again by whoever did not hear what became of them: nothing happens."""

from collections.abc import Callable, Sequence
from typing import Any

from tablestore.distributed.write import abort_messages, commit_messages
from tablestore.errors import CommitOutcomeUnknown, ConflictError, StorageError
from tablestore.format.snapshot import Snapshot
from tablestore.io.filestore import FileStore
from tablestore.store.compact.bucketcompaction import run_compaction
from tablestore.store.message import CommitMessage
from tablestore.table.table import Table
from tablestore.table.upkeep.compaction import commit_compaction
from tablestore.table.upkeep.compactplan import TaskPicker, newest_buckets
from tablestore.testing.files import FileCall
from tablestore.testing.lab import Lab
from tests.support.commitrules.scenes import once, refused, rule

Names = dict[str, Any]
# With and without a user, and its number.
USERS: tuple[Names, ...] = ({}, {"commit_user": "job"}, {"commit_user": "job", "identifier": 7})
Meanwhile = Callable[[Lab], object]


def written(lab: Lab, *parts: Sequence[tuple[Any, ...]]) -> list[CommitMessage]:
    """The messages of as many tasks that wrote these rows, and did not commit."""
    messages = []
    for part in parts:
        writer = lab.open().new_writer()
        writer.write(lab.rows(*part))
        messages.append(CommitMessage.from_bytes(writer.prepare().to_bytes()))
    return messages


def state(lab: Lab) -> tuple[list[int], list[tuple[Any, ...]], set[str]]:
    """What a replay must leave alone."""
    return lab.auditor.ids(), lab.audited(), lab.auditor.orphans()


def _compact(lab: Lab) -> None:
    lab.write_new((50, "others"))
    lab.open().compact(full=True)


def _compact_and_expire(lab: Lab) -> None:
    _compact(lab)
    lab.open().expire_snapshots(retain_max=1, retain_min=1)


def _tag_and_expire(lab: Lab) -> None:
    lab.open().create_tag("kept")
    _compact_and_expire(lab)


MEANWHILE: dict[str, Meanwhile] = {
    "nothing": lambda lab: None,
    "others write": lambda lab: lab.write_new((1, "others"), (60, "others")),
    "compacted": _compact,
    "expired": lambda lab: (lab.write_new((51, "others")), lab.open().expire_snapshots(retain_max=1, retain_min=1)),
    "compacted and expired": _compact_and_expire,
    "tagged, compacted and expired": _tag_and_expire,
    "foreign": lambda lab: lab.make_foreign(lab.write_new((52, "others")).id),
}


def replayed(lab: Lab, messages: list[CommitMessage], landed: Snapshot, how: Names) -> None:
    before = state(lab)
    for table in (lab.open(), lab.open()):
        again = commit_messages(table, messages, **how)
        assert again is None or again.uuid == landed.uuid
        assert (again is not None) == (landed.id in lab.auditor.ids())
        assert state(lab) == before, "a replay has changed something"
    abort_messages(lab.open(), messages)
    assert state(lab) == before, "an abort has changed something"
    lab.check(before[1])


@rule
def messages_that_are_committed_again_change_nothing(files: FileStore) -> None:
    for keyed in (True, False):
        for number, (what, meanwhile) in enumerate(MEANWHILE.items()):
            for position, how in enumerate(USERS):
                # Written on a table that others have written to since: their numbers have to be changed.
                for overtaken in (False, True):
                    lab = Lab(files.at(f"{keyed}-{number}-{position}-{overtaken}"), keyed=keyed)
                    lab.write_new((0, "first"))
                    messages = written(lab, [(1, "a"), (2, "a")], [(3, "a"), (4, "a")])
                    if overtaken:
                        lab.write_new((1, "quick"))
                    landed = commit_messages(lab.open(), messages, **how)
                    assert landed is not None
                    meanwhile(lab)
                    try:
                        replayed(lab, messages, landed, how)
                    except Exception as error:
                        error.add_note(f"keyed={keyed}, {what}, {how}, overtaken={overtaken}")
                        raise


@rule
def an_overwrite_that_is_committed_again_changes_nothing(files: FileStore) -> None:
    for keyed in (True, False):
        lab = Lab(files.at(f"{keyed}"), keyed=keyed)
        lab.write_new((0, "first"))
        messages = written(lab, [(1, "a")])
        landed = commit_messages(lab.open(), messages, overwrite=True)
        lab.write_new((2, "others"))
        before = state(lab)
        again = commit_messages(lab.open(), messages, overwrite=True)
        assert landed is not None and again is not None and again.uuid == landed.uuid
        assert state(lab) == before
        lab.check([(1, "a"), (2, "others")])


@rule
def a_part_of_messages_that_landed_is_not_committed_with_others(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    lab.write_new((0, "first"))
    one, two, three = written(lab, [(1, "a")], [(2, "a")], [(3, "a")])
    landed = commit_messages(lab.open(), [one, two])
    lab.write_new((9, "others"))
    before = lab.audited()
    assert landed is not None
    again = commit_messages(lab.open(), [two])
    assert again is not None and again.uuid == landed.uuid
    assert refused(ConflictError, lambda: commit_messages(lab.open(), [two, three])).kind == "partly-committed"
    assert lab.audited() == before
    lab.check(before)


@rule
def messages_of_an_unknown_outcome_are_committed_once(files: FileStore) -> None:
    for lands in ("never", "before", "late"):
        for overtaken in (False, True):
            lab = Lab(files.at(f"{lands}-{overtaken}"))
            lab.write_new((0, "first"))
            messages = written(lab, [(1, "a"), (2, "a")])
            if overtaken:
                lab.write_new((1, "quick"))
            slow, faults = lab.faulty()
            late = faults.capture_publish()

            def unreachable(faults: Any = faults) -> None:
                def fail(call: FileCall) -> None:
                    raise StorageError("no answer; this is a test", kind="unknown-outcome")

                faults.before(fail, op="publish_if_absent")

            once(faults, "before", "publish_if_absent", unreachable)
            refused(CommitOutcomeUnknown, lambda slow=slow, messages=messages: commit_messages(slow, messages))  # type: ignore[misc]
            if lands == "before":
                assert late.apply()
            first = commit_messages(lab.open(), messages)
            if lands == "late":
                assert not late.apply()
            again = commit_messages(lab.open(), messages)
            assert first is not None and again is not None and again.uuid == first.uuid
            lab.check([(0, "first"), (1, "a"), (2, "a")])


@rule
def two_commits_of_the_same_messages_at_once_are_one(files: FileStore) -> None:
    for when in ("before", "after"):
        for overtaken in (False, True):
            lab = Lab(files.at(f"{when}-{overtaken}"))
            lab.write_new((0, "first"))
            messages = written(lab, [(1, "a"), (2, "a")])
            if overtaken:
                lab.write_new((1, "quick"))
            slow, faults = lab.faulty()
            found: list[Snapshot | None] = []

            def other(lab: Lab = lab, found: list[Snapshot | None] = found, messages: list[CommitMessage] = messages) -> None:
                found.append(commit_messages(lab.open(), messages))

            once(faults, "before" if when == "before" else "after", "publish_if_absent", other)
            mine = commit_messages(slow, messages)
            assert mine is not None and found[0] is not None and mine.uuid == found[0].uuid
            lab.check([(0, "first"), (1, "a"), (2, "a")])
            assert lab.auditor.orphans() == set()


@rule
def a_replay_that_is_refused_removes_nothing_that_landed(files: FileStore) -> None:
    lab = Lab(files, keyed=False)
    messages = written(lab, [(1, "a")])
    commit_messages(lab.open(), messages)
    lab.clock.advance(2 * 86_400)
    lab.write_new((2, "others"))
    replay = commit_messages(lab.open(), messages)
    assert replay is not None and replay.id == 1
    # Together with others it is refused: only what the table does not name goes.
    refused(ConflictError, lambda: commit_messages(lab.open(), [*messages, *written(lab, [(3, "never")])]))
    lab.check([(1, "a"), (2, "others")])
    assert lab.auditor.orphans() == set()


@rule
def messages_whose_files_are_gone_are_refused(files: FileStore) -> None:
    lab = Lab(files)
    lab.write_new((0, "first"))
    messages = written(lab, [(1, "a")])
    abort_messages(lab.open(), messages)
    assert refused(ConflictError, lambda: commit_messages(lab.open(), messages)).kind == "files-gone"
    lab.check([(0, "first")])


@rule
def a_compaction_that_is_committed_again_changes_nothing(files: FileStore) -> None:
    lab = Lab(files)
    for number in range(3):
        lab.write_new((1, f"v{number}"), (number, "a"))
    messages = [_compaction(lab.open())]
    assert commit_compaction(lab.open().context, messages, prepared=True).snapshot_ids
    for _ in range(2):
        before = state(lab)
        commit_compaction(lab.open().context, messages, prepared=True)
        assert state(lab) == before
        lab.write_new((9, "others"))
    lab.check(lab.audited())


def _compaction(table: Table) -> CommitMessage:
    latest, buckets = newest_buckets(table.context)
    (bucket,) = buckets.values()
    task = TaskPicker(table.context).pick(bucket, full=True)
    assert latest is not None and task is not None
    return CommitMessage.from_bytes(run_compaction(table.context, latest, bucket, task).to_bytes())
