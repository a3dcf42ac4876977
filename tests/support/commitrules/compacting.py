"""Rules of compactions: what they may drop, and when they have to be dropped themselves."""

import math
from dataclasses import replace
from functools import partial

import pyarrow as pa

from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.io.filestore import FileStore
from tablestore.store.commit.committer import CommitRequest
from tablestore.store.commit.committerfactory import committer
from tablestore.store.commit.conflict import StalePlan
from tablestore.store.message import CommitMessage
from tablestore.testing.holdings import Holdings
from tablestore.testing.lab import Lab
from tests.support.commitrules.scenes import once, refused, rule

TOP = 5
VECTORS = {"deletion-vectors.enabled": "true", "write-only": "true"}


def upgrade(lab: Lab, entries: list[ManifestEntry], base: Snapshot | None) -> Snapshot | None:
    """Move files to the top level as they are."""
    context = lab.open().context
    message = CommitMessage(
        table_uuid=context.table_uuid,
        schema_id=context.schema.id,
        base_snapshot_id=base.id if base else 0,
        created_millis=context.clock.now_ms(),
        compact_before=tuple(replace(entry, kind=EntryKind.DELETE) for entry in entries),
        compact_after=tuple(replace(entry, file=replace(entry.file, level=TOP)) for entry in entries),
    )
    return committer(context).commit(CommitRequest(user="upgrade", kind=CommitKind.COMPACT, message=message))


def live(lab: Lab) -> tuple[list[ManifestEntry], Snapshot | None]:
    """The live files and the snapshot that they are of."""
    context = lab.open().context
    latest = context.snapshots.latest()
    return list(context.manifests.live(latest)), latest


@rule
def a_retraction_stays_as_long_as_an_older_row_may_lie_below_it(files: FileStore) -> None:
    lab = Lab(files, options={"num-sorted-run.compaction-trigger": "3"})
    old = [(i, f"{i:x}" * 20) for i in range(2_000)]
    lab.write_new(*old)
    lab.open().compact(full=True)
    lab.open().delete([{"id": 7}])
    lab.write_new((9, "new"))
    lab.open().compact()
    levels = {entry.file.level for entry in live(lab)[0]}
    assert 0 not in levels and len(levels) == 2, "the scene is another one: the newer runs were to become one above the oldest"
    expected = [(i, "new" if i == 9 else v) for i, v in old if i != 7]
    lab.check(expected)
    lab.open().compact(full=True)
    lab.check(expected)


@rule
def a_level_that_was_filled_meanwhile_takes_no_file_that_meets_it(files: FileStore) -> None:
    lab = Lab(files)
    lab.write_new((1, "old"), (5, "old"))
    lab.write_new((3, "new"), (5, "new"))
    entries, base = live(lab)
    upgrade(lab, entries[:1], base)
    refused(StalePlan, lambda: upgrade(lab, entries[1:], base))
    lab.check([(1, "old"), (3, "new"), (5, "new")])


@rule
def a_level_with_nan_and_both_zeros_is_in_order(files: FileStore) -> None:
    schema = pa.schema(
        [pa.field("x", pa.float64(), nullable=False), pa.field("id", pa.int64(), nullable=False), ("v", pa.string())]
    )
    lab = Lab(files, schema=schema, primary_key=("x", "id"))
    rows = [(-0.0, 9, "a"), (0.0, 1, "b"), (math.nan, 2, "c"), (-math.nan, 3, "d")]
    for row in rows:
        lab.write_new(row)
    entries, base = live(lab)
    assert upgrade(lab, entries, base) is not None
    found = lab.open().scan().to_arrow().sort_by("id")
    assert found["v"].to_pylist() == ["b", "c", "d", "a"]


@rule
def a_compaction_of_files_that_were_replaced_meanwhile_is_dropped(files: FileStore) -> None:
    for keyed in (True, False):
        lab = Lab(files.at(f"keyed-{keyed}"), keyed=keyed)
        lab.write_new((1, "a"), (2, "a"))
        lab.write_new((3, "b"))
        slow, faults = lab.faulty()
        once(faults, "before", "publish_if_absent", partial(lab.open().compact, full=True))
        slow.compact(full=True)
        lab.check([(1, "a"), (2, "a"), (3, "b")])
        assert lab.auditor.orphans() == set()


@rule
def a_compaction_brings_nothing_back_that_an_overwrite_replaced(files: FileStore) -> None:
    for keyed in (True, False):
        lab = Lab(files.at(f"keyed-{keyed}"), keyed=keyed)
        lab.write_new((1, "a"), (2, "a"))
        lab.write_new((3, "b"))
        slow, faults = lab.faulty()
        once(faults, "before", "publish_if_absent", partial(lab.open().overwrite, lab.rows((4, "instead")), {}))
        slow.compact(full=True)
        lab.check([(4, "instead")])
        assert lab.auditor.orphans() == set()


@rule
def a_file_that_moves_to_another_level_is_still_there(files: FileStore) -> None:
    lab = Lab(files)
    lab.write_new((1, "a"), (2, "a"))
    entries, base = live(lab)
    assert upgrade(lab, entries, base) is not None
    lab.check([(1, "a"), (2, "a")])
    # Expiry goes by the names of the files that were deleted and not added again.
    lab.write_new((2, "b"))
    lab.open().expire_snapshots(retain_min=1, retain_max=1)
    assert Holdings(lab.files).missing() == {}
    lab.check([(1, "a"), (2, "b")])


@rule
def rows_that_were_marked_during_a_compaction_stay_deleted(files: FileStore) -> None:
    lab = Lab(files, keyed=False, options=VECTORS)
    lab.write_new((1, "a"), (2, "a"), (3, "a"))
    lab.write_new((4, "b"), (5, "b"))
    slow, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.open().delete("id IN (2, 4)"))
    slow.compact(full=True)
    lab.check([(1, "a"), (3, "a"), (5, "b")])
    lab.open().compact(full=True)
    lab.check([(1, "a"), (3, "a"), (5, "b")])


@rule
def marks_of_files_that_a_compaction_replaced_are_made_again(files: FileStore) -> None:
    lab = Lab(files, keyed=False, options=VECTORS)
    lab.write_new((1, "a"), (2, "a"), (3, "a"))
    lab.write_new((4, "b"), (5, "b"))
    slow, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.open().compact(full=True))
    slow.delete("id IN (2, 4)")
    lab.check([(1, "a"), (3, "a"), (5, "b")])
