"""Deletion vectors of a bucket: more positions, fewer files; and what the committer does about index files."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from tablestore.errors import FormatError
from tablestore.format.manifest.indexmanifest import IndexEntry
from tablestore.format.manifest.manifestfile import EntryKind
from tablestore.io.memory import MemoryFileStore
from tablestore.store.deletionvectors import DeletionVectors
from tablestore.store.indexfiles import IndexFiles
from tablestore.testing.deterministic import SeededIds

PARTITION = bytes(12)


def positions(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int64)


@pytest.fixture
def files(request: pytest.FixtureRequest) -> IndexFiles:
    return IndexFiles(MemoryFileStore(request.node.name), SeededIds(1))


def applied(index: tuple[IndexEntry, ...], changes: tuple[IndexEntry, ...]) -> tuple[IndexEntry, ...]:
    gone = {change.file_name for change in changes if change.kind is EntryKind.DELETE}
    return (*(e for e in index if e.file_name not in gone), *(c for c in changes if c.kind is EntryKind.ADD))


def contents(files: IndexFiles, index: tuple[IndexEntry, ...]) -> dict[str, list[int]]:
    vectors = DeletionVectors(files, index)
    names = [vector.data_file for entry in index for vector in entry.deletion_vectors or ()]
    return {name: vectors.positions(name).tolist() for name in names}


def marked(
    files: IndexFiles, index: tuple[IndexEntry, ...], marks: Mapping[str, np.ndarray], gone: tuple[str, ...] = (), bucket: int = 0
) -> tuple[IndexEntry, ...]:
    return DeletionVectors(files, index).replace_bucket(PARTITION, bucket, marks=marks, gone=gone)


def test_new_positions_are_added_to_the_old_and_vectors_of_gone_files_dropped(files: IndexFiles) -> None:
    index = marked(files, (), {"f1": positions(3), "f2": positions(0, 7)})
    assert contents(files, index) == {"f1": [3], "f2": [0, 7]}
    changes = marked(files, index, {"f1": positions(5, 3), "f3": positions(1), "f2": positions(1)}, gone=("f2",))
    assert (changes[0].kind, changes[0].file_name) == (EntryKind.DELETE, index[0].file_name)
    after = applied(index, changes)
    assert contents(files, after) == {"f1": [3, 5], "f3": [1]}
    assert len(after) == 1
    assert after[0].row_count == 2
    assert [vector.cardinality for vector in after[0].deletion_vectors or ()] == [2, 1]


def test_a_bucket_keeps_one_index_file_and_others_are_left_alone(files: IndexFiles) -> None:
    index = applied(marked(files, (), {"f1": positions(3)}), marked(files, (), {"g1": positions(9)}, bucket=1))
    index = applied(index, marked(files, index, {"f1": positions(4)}))
    assert contents(files, index) == {"f1": [3, 4], "g1": [9]}
    assert sorted(entry.bucket for entry in index) == [0, 1]
    # A writer that keeps several files in a bucket: all are put into one.
    several = (*index, *marked(files, (), {"f2": positions(8)}))
    together = applied(several, marked(files, several, {"f3": positions(0)}))
    assert contents(files, together) == {"g1": [9], "f1": [3, 4], "f2": [8], "f3": [0]}
    assert sorted(entry.bucket for entry in together) == [0, 1]


def test_nothing_is_written_where_nothing_changes(files: IndexFiles) -> None:
    index = marked(files, (), {"f1": positions(3)})
    assert marked(files, index, {}) == ()
    assert marked(files, index, {"f1": positions()}, gone=("elsewhere",)) == ()


def test_the_last_vector_goes_with_its_index_file(files: IndexFiles) -> None:
    index = marked(files, (), {"f1": positions(3)})
    changes = marked(files, index, {}, gone=("f1",))
    assert changes == (replace(index[0], kind=EntryKind.DELETE),)


def test_an_index_file_of_java_without_a_count_is_counted(files: IndexFiles) -> None:
    (entry,) = marked(files, (), {"f1": positions(1, 2, 3)})
    ranges = tuple(replace(vector, cardinality=None) for vector in entry.deletion_vectors or ())
    theirs = (replace(entry, deletion_vectors=ranges),)
    assert DeletionVectors(files, theirs).deleted_count("f1") == 3
    after = applied(theirs, marked(files, theirs, {"f2": positions(0)}))
    assert [vector.cardinality for vector in after[0].deletion_vectors or ()] == [3, 1]


def test_two_attempts_with_the_same_content_write_two_files_that_are_checked_against_their_names(files: IndexFiles) -> None:
    one, two = (marked(files, (), {"f1": positions(3)})[0] for _ in range(2))
    assert one.file_name != two.file_name
    store = files.files
    data = bytearray(store.read(f"index/{one.file_name}"))
    data[-1] ^= 1
    store.overwrite(f"index/{one.file_name}", bytes(data))
    with pytest.raises(FormatError, match="checksum"):
        DeletionVectors(files, (one,)).positions("f1")
    assert DeletionVectors(files, (two,)).positions("f1").tolist() == [3]
