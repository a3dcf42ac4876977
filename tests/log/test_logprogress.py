"""How far a log has been published: what is recorded, and what of it a power failure may take back."""

from pathlib import Path

import pytest

from tablestore.io.local import LocalFileStore
from tablestore.log.logprogress import LogProgress, SlotProgress


class SyncedNames(LocalFileStore):
    """Notes which directories were synced after which files had been made in them."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self.lasting: set[str] = set()

    def sync(self, directory: str) -> None:
        super().sync(directory)
        self.lasting.update(f"{directory}/{info.name}" for info in self.list(directory))


def progress(snapshot_id: int) -> SlotProgress:
    return SlotProgress(snapshot_id=snapshot_id, snapshot_uuid="u", incarnation="t", offsets={0: 10 * snapshot_id})


@pytest.fixture
def files(tmp_path: Path) -> SyncedNames:
    return SyncedNames(str(tmp_path))


def names(files: SyncedNames, slot: int = 0) -> list[int]:
    return [int(info.name) for info in files.list(f"tablestore-log/2-{slot}")]


def test_the_greatest_snapshot_counts_and_older_records_stay_until_one_lasts(files: SyncedNames) -> None:
    kept = LogProgress(files)
    assert kept.read(0, 2) is None
    kept.record(0, 2, progress(1))
    for snapshot_id in (2, 3):
        kept.record(0, 2, progress(snapshot_id), lasting=False)
    assert kept.read(0, 2) == progress(3)
    assert names(files) == [1, 2, 3], "a power failure may take 2 and 3 away: 1 is what is left then"
    kept.record(0, 2, progress(4))
    assert kept.read(0, 2) == progress(4)
    assert names(files) == [4]


def test_a_record_that_is_there_already_stays_as_it_is(files: SyncedNames) -> None:
    kept = LogProgress(files)
    for lasting in (False, True):
        kept.record(0, 2, progress(5), lasting=lasting)
        kept.record(0, 2, SlotProgress(snapshot_id=5, snapshot_uuid="other", incarnation="t", offsets={}), lasting=lasting)
        assert kept.read(0, 2) == progress(5)


def test_what_is_said_to_last_was_synced(files: SyncedNames) -> None:
    kept = LogProgress(files)
    assert kept.read_lasting(2) == []
    kept.record(0, 2, progress(7), lasting=False)
    kept.record(1, 2, progress(8), lasting=False)
    assert files.lasting == set()
    assert kept.read_lasting(2) == [progress(7), progress(8)]
    assert files.lasting == {f"tablestore-log/2-0/{7:020d}", f"tablestore-log/2-1/{8:020d}"}


def test_a_slot_that_is_set_back_forgets_what_came_later(files: SyncedNames) -> None:
    kept = LogProgress(files)
    kept.record(0, 2, progress(3))
    for snapshot_id in (4, 5):
        kept.record(0, 2, progress(snapshot_id), lasting=False)
    kept.set_back(0, 2, progress(4))
    assert kept.read(0, 2) == progress(4)
    assert names(files) == [3, 4]
