"""Where the changes of a snapshot are found is decided from values alone."""

import numpy as np
import pyarrow as pa
import pytest

from tablestore.format.manifest.datafile import DataFileMeta, FileSource
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.snapshot import CommitKind, Snapshot
from tablestore.format.stats import EMPTY_STATS
from tablestore.store.changelogproducer import changelog_settings
from tablestore.store.changes.changefeed import filtered_kinds
from tablestore.store.changes.changeplan import ChangeFiles, ChangeRule, file_by_file, frame_by_frame, in_order, source_of
from tablestore.store.changes.changescope import Discontinuity
from tablestore.store.tracking import TRACKED_PROPERTY, is_tracked

EMPTY = b"\0" * 12


def rule(producer="none", *, keyed=True, plain=True, hides=False, postponed=False, overwrite=False):
    return ChangeRule(
        keyed=keyed,
        plain=plain,
        changelog=changelog_settings({"changelog-producer": producer}),
        hides_level_zero=hides,
        postponed=postponed,
        reads_overwrite=overwrite,
    )


def snapshot(kind=CommitKind.APPEND, *, tracked=None, changelog=False, rows=5):
    return Snapshot(
        id=7,
        schema_id=0,
        base_manifest_list="b",
        delta_manifest_list="d",
        changelog_manifest_list="c" if changelog else None,
        commit_user="u",
        commit_identifier=1,
        commit_kind=kind,
        time_millis=0,
        total_record_count=9,
        delta_record_count=rows,
        properties={} if tracked is None else {TRACKED_PROPERTY: str(tracked).lower()},
    )


def entry(name, level=0, *, kind=EntryKind.ADD, partition=EMPTY, bucket=0, sequence=0):
    file = DataFileMeta(
        file_name=name,
        file_size=1,
        row_count=1,
        min_key=EMPTY,
        max_key=EMPTY,
        key_stats=EMPTY_STATS,
        value_stats=EMPTY_STATS,
        min_sequence_number=sequence,
        max_sequence_number=sequence,
        schema_id=0,
        level=level,
        creation_time_millis=0,
        delete_row_count=0,
        file_source=FileSource.APPEND,
        value_stats_cols=(),
    )
    return ManifestEntry(kind=kind, partition=partition, bucket=bucket, total_buckets=1, file=file)


APPEND, COMPACT, OVERWRITE, ANALYZE = CommitKind.APPEND, CommitKind.COMPACT, CommitKind.OVERWRITE, CommitKind.ANALYZE


@pytest.mark.parametrize(
    ("given", "by", "expected"),
    [
        (snapshot(), rule(keyed=False), ChangeFiles.NEW_FILES),
        (snapshot(), rule(), ChangeFiles.LEVEL_ZERO),
        (snapshot(), rule(hides=True), ChangeFiles.NOWHERE),
        (snapshot(changelog=True), rule("input"), ChangeFiles.CHANGELOG_FILES),
        (snapshot(changelog=True), rule("input", plain=False), ChangeFiles.LEVEL_ZERO),
        (snapshot(changelog=True), rule("input", plain=False, hides=True), ChangeFiles.NOWHERE),
        (snapshot(COMPACT), rule("input", plain=False, hides=True), ChangeFiles.LEFT_LEVEL_ZERO),
        (snapshot(), rule("lookup"), ChangeFiles.NOWHERE),
        (snapshot(), rule("full-compaction"), ChangeFiles.NOWHERE),
        (snapshot(rows=0), rule("input"), ChangeFiles.NOWHERE),
        (snapshot(COMPACT, changelog=True, tracked=True), rule("lookup"), ChangeFiles.CHANGELOG_FILES),
        (snapshot(COMPACT), rule("lookup"), ChangeFiles.NOWHERE),
        (snapshot(COMPACT), rule(), ChangeFiles.NOWHERE),
        (snapshot(COMPACT, tracked=True), rule(hides=True), ChangeFiles.LEFT_LEVEL_ZERO),
        (snapshot(COMPACT, tracked=True), rule(postponed=True), ChangeFiles.LEVEL_ZERO),
        (snapshot(COMPACT), rule(keyed=False), ChangeFiles.NOWHERE),
        (snapshot(OVERWRITE), rule(overwrite=True), ChangeFiles.FRAMES),
        (snapshot(OVERWRITE, tracked=True), rule(overwrite=True), ChangeFiles.FRAMES),
        (snapshot(ANALYZE), rule(), ChangeFiles.NOWHERE),
    ],
)
def test_the_source_of_changes_follows_from_kind_and_producer(given, by, expected):
    assert source_of(given, by) is expected


@pytest.mark.parametrize(
    ("given", "by", "reason"),
    [
        (snapshot(OVERWRITE), rule(), "replaced rows"),
        (snapshot(OVERWRITE, tracked=False), rule("lookup"), "replaced rows"),
        (snapshot(tracked=False), rule(), "change-tracking"),
        (snapshot(tracked=False), rule("lookup"), "change-tracking"),
        (snapshot(tracked=False, changelog=True), rule("input"), "change-tracking"),
        (snapshot(COMPACT, tracked=False), rule("lookup"), "change-tracking"),
        (snapshot(COMPACT, tracked=False), rule(hides=True), "change-tracking"),
        (snapshot(OVERWRITE, tracked=False), rule(overwrite=True), "change-tracking"),
        (snapshot(), rule("input"), "no changelog files"),
    ],
)
def test_what_does_not_tell_its_changes_is_a_discontinuity(given, by, reason):
    found = source_of(given, by)
    assert isinstance(found, Discontinuity) and found.snapshot_id == 7 and reason in found.reason


def test_snapshots_of_others_count_as_tracked():
    assert all(is_tracked(snapshot(kind)) for kind in (APPEND, COMPACT, OVERWRITE))
    assert is_tracked(snapshot(OVERWRITE, tracked=True)) and not is_tracked(snapshot(tracked=False))


def test_files_come_by_partition_bucket_number_and_name():
    entries = [
        entry("a", partition=b"2", sequence=1),
        entry("z", bucket=1, sequence=0),
        entry("c", sequence=9),
        entry("b", sequence=9),
        entry("y", sequence=3),
    ]
    assert [e.file.file_name for e in in_order(entries)] == ["y", "b", "c", "z", "a"]


def names(files):
    return [file.file_name for file in files]


def test_each_new_file_is_compared_with_what_was_there_and_the_new_ones_before_it():
    base = {(EMPTY, 0): (entry("old", 5),)}
    steps = file_by_file(base, [entry("n1", sequence=1), entry("n2", sequence=2), entry("m", bucket=1)])
    assert [(names(s.before), names(s.after), names(s.touched)) for s in steps] == [
        (["old"], ["old", "n1"], ["n1"]),
        (["old", "n1"], ["old", "n1", "n2"], ["n2"]),
        ([], ["m"], ["m"]),
    ]
    assert names(e.file for e in base[EMPTY, 0]) == ["old"]


def test_a_compaction_is_compared_above_level_zero_for_the_keys_that_it_takes_from_there():
    base = {(EMPTY, 0): (entry("top", 5), entry("z1"), entry("z2"), entry("mid", 3))}
    gone = [entry(name, level, kind=EntryKind.DELETE) for name, level in (("z1", 0), ("mid", 3))]
    (step,) = frame_by_frame(base, [*gone, entry("new", 3)], rule(hides=True), snapshot_id=7, compaction=True)
    assert (names(step.before), names(step.after), names(step.touched)) == (["top", "mid"], ["top", "new"], ["z1"])
    assert (step.vectors_before, step.vectors_after) == (6, 7)
    only_upper = [entry("mid", 3, kind=EntryKind.DELETE), entry("new", 4)]
    assert frame_by_frame(base, only_upper, rule(hides=True), snapshot_id=7, compaction=True) == ()


def test_an_overwrite_is_compared_in_the_frame_for_all_that_goes_and_comes_there():
    base = {(EMPTY, 0): (entry("top", 5), entry("zero"))}
    gone = [entry("top", 5, kind=EntryKind.DELETE), entry("zero", kind=EntryKind.DELETE)]
    delta = [*gone, entry("new")]
    (plain,) = frame_by_frame(base, delta, rule(), snapshot_id=7, compaction=False)
    assert (names(plain.before), names(plain.after), names(plain.touched)) == (["top", "zero"], ["new"], ["top", "zero", "new"])
    (lookup,) = frame_by_frame(base, delta, rule("lookup"), snapshot_id=7, compaction=False)
    assert (names(lookup.before), names(lookup.after), names(lookup.touched)) == (["top"], [], ["top"])


def test_a_filter_turns_updates_that_leave_or_enter_into_deletes_and_inserts():
    kinds = np.array([1, 2, 1, 2, 1, 2, 1, 2, 0, 3, 0, 3], dtype=np.int8)
    matches = np.array([1, 1, 1, 0, 0, 1, 0, 0, 1, 1, 0, 0], dtype=bool)
    pairs = np.array([1, 0] * 4 + [0] * 4, dtype=bool)
    new, kept = filtered_kinds(kinds, matches, pairs, known_before=True)
    assert new[kept].tolist() == [1, 2, 3, 0, 0, 3]
    new, kept = filtered_kinds(kinds, matches, pairs, known_before=False)
    assert new[kept].tolist() == [1, 2, 3, 0, 0, 3, 3, 3], "what comes alone may take the place of a row that matched"
    assert pa.array(kinds).to_pylist()[4] == 1, "the input stays as it is"
