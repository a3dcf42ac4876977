"""Deletes in append tables with deletion vectors: rows are marked, and races lose nothing."""

from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from tablestore.errors import InvalidInputError, NotFoundError, StorageError
from tablestore.format.snapshot import CommitKind
from tablestore.io.memory import MemoryFileStore
from tablestore.testing.files import FileCall
from tablestore.testing.lab import Lab
from tests.support.commitrules.scenes import once

VECTORS = {"deletion-vectors.enabled": "true", "write-only": "true"}
NAMES = count()


def vector_lab(**options: Any) -> Lab:
    return Lab(MemoryFileStore(f"marks-{next(NAMES)}"), keyed=False, options={**VECTORS, **options.pop("more", {})}, **options)


def names_of(lab: Lab) -> list[str]:
    return sorted(file.path for file in lab.auditor.live_files())


def test_matching_rows_are_marked_and_no_file_is_written_again() -> None:
    lab = vector_lab()
    lab.write_new(*((i, "ab"[i % 2]) for i in range(10)))
    lab.write_new(*((i, None) for i in range(10, 14)))
    before = names_of(lab)
    snapshot = lab.open().delete("v = 'a' OR id = 12")
    assert snapshot is not None
    assert snapshot.commit_kind is CommitKind.OVERWRITE
    assert snapshot.delta_record_count == 0
    assert names_of(lab) == before
    lab.check([(1, "b"), (3, "b"), (5, "b"), (7, "b"), (9, "b"), (10, None), (11, None), (13, None)])
    assert lab.open().scan().count() == 8
    assert lab.open().scan(filter="id >= 9").count() == 4
    assert len(lab.read(snapshot_id=2)) == 14
    assert lab.auditor.orphans() == set()


def test_a_file_without_a_row_left_goes_and_its_vector_with_it() -> None:
    lab = vector_lab()
    lab.write_new((1, "a"), (2, "b"))
    lab.write_new((3, "a"), (4, "b"))
    lab.open().delete("id = 1")
    assert len(lab.auditor.index_entries()) == 1
    snapshot = lab.open().delete("id <= 2")
    assert snapshot is not None
    assert snapshot.total_record_count == 2
    assert len(names_of(lab)) == 1
    assert lab.auditor.index_entries() == []
    lab.check([(3, "a"), (4, "b")])


def test_a_delete_that_finds_nothing_new_publishes_nothing() -> None:
    lab = vector_lab()
    lab.write_new((1, "a"), (2, "b"))
    assert lab.open().delete("id = 1") is not None
    for condition in ("id = 1", "id > 9", "v IS NULL"):
        assert lab.open().delete(condition) is None
    assert len(lab.open().snapshots()) == 2
    assert lab.auditor.orphans() == set()


def test_partitions_and_buckets_have_index_files_of_their_own() -> None:
    schema = pa.schema([("id", pa.int64()), ("day", pa.string())])
    lab = vector_lab(schema=schema, partition_by=["day"], more={"bucket": "2", "bucket-key": "id"})
    lab.write_new(*((i, day) for i in range(12) for day in ("x", "y/z")))
    lab.open().delete("id >= 6 AND day = 'y/z'")
    lab.open().delete("id = 7")
    lab.check([(i, "x") for i in range(12) if i != 7] + [(i, "y/z") for i in range(6)])
    lab.open().overwrite(lab.rows((5, "y/z")), {"day": "y/z"})
    lab.check([(i, "x") for i in range(12) if i != 7] + [(5, "y/z")])
    partitions = {entry["_PARTITION"] for entry in lab.auditor.index_entries()}
    assert len(partitions) == 1


def test_two_deletes_in_one_file_lose_neither() -> None:
    lab = vector_lab()
    lab.write_new(*((i, "a") for i in range(8)))
    lab.open().delete("id = 0")
    slow, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.open().delete("id = 3"))
    assert slow.delete("id IN (0, 5, 3)") is not None
    lab.check([(i, "a") for i in (1, 2, 4, 6, 7)])
    assert lab.auditor.orphans() == set()


def test_the_same_rows_deleted_twice_at_once_are_deleted_once() -> None:
    lab = vector_lab()
    lab.write_new(*((i, "a") for i in range(4)))
    slow, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.open().delete("id < 2"))
    assert slow.delete("id < 2") is None
    lab.check([(2, "a"), (3, "a")])
    assert len(lab.open().snapshots()) == 2
    assert lab.auditor.orphans() == set()


def test_rows_appended_before_the_delete_lands_are_looked_at_too_and_files_only_once() -> None:
    lab = vector_lab()
    lab.write_new((1, "a"), (2, "b"))
    slow, faults = lab.faulty()
    opened: list[str] = []

    def note(call: FileCall) -> None:
        opened.append(call.path)

    faults.before(note, op="open_input")
    once(faults, "before", "publish_if_absent", lambda: lab.write_new((3, "a"), (4, "b")))
    assert slow.delete("v = 'a'") is not None
    lab.check([(2, "b"), (4, "b")])
    data = [path for path in opened if "/data-" in path]
    assert sorted(data) == sorted(set(data)) and len(data) == 2


def test_an_overwrite_that_comes_first_leaves_no_mark_behind() -> None:
    lab = vector_lab()
    lab.write_new((1, "a"), (2, "b"))
    slow, faults = lab.faulty()
    once(faults, "before", "publish_if_absent", lambda: lab.open().overwrite(lab.rows((1, "c"), (2, "a"), (5, "d")), {}))
    assert slow.delete("v = 'a'") is not None
    lab.check([(1, "c"), (5, "d")])
    assert [len(entry["_DELETIONS_VECTORS_RANGES"]) for entry in lab.auditor.index_entries()] == [1]


@pytest.mark.deep
def test_every_failing_call_is_success_or_an_error_that_lost_nothing() -> None:
    failed = 0
    for n in range(1, 60):
        lab = vector_lab()
        lab.write_new(*((i, "a") for i in range(6)))
        lab.open().delete("id = 0")
        table, faults = lab.faulty()
        faults.fail_nth(n)
        try:
            table.delete("id >= 4")
        except StorageError:
            failed += 1
        if not faults.injected_total:
            break
        landed = len(lab.open().snapshots()) == 3
        lab.check([(i, "a") for i in range(1, 4 if landed else 6)])
        lab.open().delete("id >= 4")
        lab.check([(i, "a") for i in range(1, 4)])
    else:
        raise AssertionError("the delete has more calls than this test fails")
    assert failed > 5


@pytest.mark.parametrize("kind", ["-D", "-U"])
def test_retractions_stay_refused(kind: str) -> None:
    lab = vector_lab()
    rows = lab.rows((1, "a")).append_column("_row_kind", pa.array([kind]))
    with pytest.raises(InvalidInputError, match="append tables take inserts"):
        lab.open().write_changes(rows)
    assert lab.open().snapshots() == ()


def test_a_reader_whose_index_file_has_expired_is_told_so() -> None:
    """Found by schedules 200109 and 200438: it was an untyped error of the store."""
    lab = vector_lab()
    lab.write_new((1, "a"), (2, "b"))
    lab.open().delete("id = 1")
    (entry,) = lab.auditor.index_entries()
    lab.files.delete(f"index/{entry['_FILE_NAME']}")
    with pytest.raises(NotFoundError, match="scan the latest snapshot again") as caught:
        lab.read()
    assert caught.value.kind == "data-file-gone"
