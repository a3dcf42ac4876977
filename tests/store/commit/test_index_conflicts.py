"""What becomes of the list of index files in a commit: pure, values only."""

from dataclasses import replace

import pytest

from tablestore.format.binaryrow import EMPTY_ROW
from tablestore.format.manifest.datafile import DataFileMeta, FileSource
from tablestore.format.manifest.indexmanifest import DELETION_VECTORS, HASH, DeletionVectorRange, IndexEntry
from tablestore.format.manifest.manifestfile import EntryKind, ManifestEntry
from tablestore.format.stats import EMPTY_STATS
from tablestore.store.commit.conflict import StalePlan, changed_index, check_vectors


def index(
    name: str, *data_files: str, bucket: int = 0, kind: EntryKind = EntryKind.ADD, index_type: str = DELETION_VECTORS
) -> IndexEntry:
    ranges = tuple(DeletionVectorRange(data_file=file, offset=1, length=2) for file in data_files)
    return IndexEntry(
        kind=kind,
        partition=bytes(12),
        bucket=bucket,
        index_type=index_type,
        file_name=name,
        file_size=9,
        row_count=len(ranges),
        deletion_vectors=ranges if index_type == DELETION_VECTORS else None,
    )


def data(name: str, kind: EntryKind = EntryKind.ADD, level: int = 0) -> ManifestEntry:
    meta = DataFileMeta(
        file_name=name,
        file_size=1,
        row_count=1,
        min_key=EMPTY_ROW,
        max_key=EMPTY_ROW,
        key_stats=EMPTY_STATS,
        value_stats=EMPTY_STATS,
        min_sequence_number=0,
        max_sequence_number=0,
        schema_id=0,
        level=level,
        creation_time_millis=0,
        delete_row_count=0,
        file_source=FileSource.APPEND,
    )
    return ManifestEntry(kind=kind, partition=bytes(12), bucket=0, total_buckets=1, file=meta)


DELETE = EntryKind.DELETE


def test_vectors_of_overwritten_files_go_one_by_one() -> None:
    there = (index("i1", "f1", "f2"), index("h1", index_type=HASH))
    first = changed_index(there, (), (data("f1", DELETE),), table="t")
    assert [vector.data_file for vector in first[0].deletion_vectors or ()] == ["f2"]
    assert first[0].row_count == 1
    assert changed_index(first, (), (data("f2", DELETE),), table="t") == (there[1],)


def test_a_compaction_must_replace_the_vectors_of_what_it_rewrites() -> None:
    there = (index("i1", "f1", "f2"),)
    with pytest.raises(StalePlan, match="i1"):
        changed_index(there, (), (data("f1", DELETE),), keeps_rows=True, table="t")
    replaced = (index("i1", kind=DELETE), index("i2", "f2"))
    assert changed_index(there, replaced, (data("f1", DELETE),), keeps_rows=True, table="t") == (replaced[1],)
    # A delete that landed after the compaction was planned wrote i3, which knows more about f1.
    with pytest.raises(StalePlan, match="i1"):
        changed_index((index("i3", "f1", "f2"),), replaced, (data("f1", DELETE),), keeps_rows=True, table="t")


def test_an_upgraded_file_keeps_its_vector_in_a_compaction() -> None:
    there = (index("i1", "f1"),)
    upgrade = (data("f1", DELETE), data("f1", level=5))
    assert changed_index(there, (), upgrade, keeps_rows=True, table="t") == there


@pytest.mark.parametrize("index_type", [DELETION_VECTORS, HASH])
def test_a_second_index_file_of_a_kind_in_a_bucket_is_refused(index_type: str) -> None:
    there = (index("i1", index_type=index_type),)
    with pytest.raises(StalePlan, match="was not replaced"):
        changed_index(there, (index("i2", index_type=index_type),), (), table="t")
    assert len(changed_index(there, (index("i2", bucket=1, index_type=index_type),), (), table="t")) == 2
    other = HASH if index_type == DELETION_VECTORS else DELETION_VECTORS
    assert len(changed_index(there, (index("i2", index_type=other),), (), table="t")) == 2


def test_marks_in_files_that_are_gone_are_refused() -> None:
    check_vectors((index("i1", "f1"),), (), (data("f1"),), table="t")
    check_vectors((index("i1", "f2"),), (data("f2"),), (), table="t")
    check_vectors((replace(index("i0", "gone"), kind=DELETE),), (), (), table="t")
    with pytest.raises(StalePlan, match="no longer live"):
        check_vectors((index("i1", "f1"),), (), (data("f2"),), table="t")
    with pytest.raises(StalePlan, match="no longer live"):
        check_vectors((index("i1", "f1"),), (data("f1", DELETE),), (data("f1"),), table="t")
