"""Holds a publisher of snapshots to what is promised: tests to subclass.

class TestMine(SnapshotCommitContract):
    @pytest.fixture
    def opened(self, tmp_path):
        return lambda: Opened(context, commit)      # each call opens one table anew, as another process would
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier

import pytest

from tablestore.format.snapshot import BATCH_IDENTIFIER, WRITER_VERSION, CommitKind, Snapshot, encode_snapshot
from tablestore.ids import SystemIds
from tablestore.store.commit.snapshotcommit import SnapshotCommit
from tablestore.store.context import TableContext
from tablestore.store.manifests import WrittenMetadata

_WRITERS = 8


@dataclass(frozen=True)
class Opened:
    """A table without snapshots, and who publishes them."""

    context: TableContext
    commit: SnapshotCommit


class SnapshotCommitContract:
    """Tests that of the writers of one id one wins, its snapshot is there as it was sent, and a repeated request does no harm."""

    @pytest.fixture
    def opened(self) -> Callable[[], Opened]:
        """Opens one table, which is new at first, as often as it is called."""
        raise NotImplementedError("override the fixture `opened`")

    def test_a_snapshot_is_there_as_it_was_sent(self, opened: Callable[[], Opened]) -> None:
        mine = opened()
        first = empty_snapshot(mine.context, 1)
        assert published(mine, first)
        second = empty_snapshot(mine.context, 2)
        assert published(mine, second, first)
        again = opened().context.snapshots
        assert (again.find(1), again.find(2)) == (first, second)

    def test_an_id_that_is_occupied_is_refused_and_keeps_its_snapshot(self, opened: Callable[[], Opened]) -> None:
        mine, other = opened(), opened()
        first = empty_snapshot(mine.context, 1)
        assert published(mine, first)
        assert not published(other, empty_snapshot(other.context, 1))
        assert opened().context.snapshots.find(1) == first

    def test_a_repeated_request_leaves_one_snapshot(self, opened: Callable[[], Opened]) -> None:
        mine = opened()
        first = empty_snapshot(mine.context, 1)
        assert published(mine, first)
        # Whether it is told apart from another one is not promised: who asked looks at the snapshot's uuid.
        assert published(opened(), first) in (True, False)
        assert opened().context.snapshots.listed_ids() == (1,) and opened().context.snapshots.find(1) == first

    def test_of_several_writers_at_once_one_wins(self, opened: Callable[[], Opened]) -> None:
        barrier = Barrier(_WRITERS)
        writers = [opened() for _ in range(_WRITERS)]
        snapshots = [empty_snapshot(writer.context, 1) for writer in writers]

        def publish(k: int) -> bool:
            barrier.wait(60)
            return published(writers[k], snapshots[k])

        with ThreadPoolExecutor(_WRITERS) as pool:
            outcomes = list(pool.map(publish, range(_WRITERS)))
        assert outcomes.count(True) == 1, outcomes
        assert opened().context.snapshots.find(1) == snapshots[outcomes.index(True)]


def published(opened: Opened, snapshot: Snapshot, base: Snapshot | None = None) -> bool:
    """The answer to one try to publish a snapshot without entries."""
    return opened.commit.publish(snapshot, encode_snapshot(snapshot), base, ())


def empty_snapshot(context: TableContext, snapshot_id: int) -> Snapshot:
    """A snapshot of that id without rows, whose manifest lists are there."""
    written = WrittenMetadata()
    base_name, base_size = context.manifests.write_list((), 0, written)
    delta_name, delta_size = context.manifests.write_list((), 1, written)
    context.manifests.flush(written)
    context.manifests.sync()
    ids = SystemIds()
    return Snapshot(
        uuid=ids.uuid(),
        id=snapshot_id,
        schema_id=context.schema.id,
        base_manifest_list=base_name,
        base_manifest_list_size=base_size,
        delta_manifest_list=delta_name,
        delta_manifest_list_size=delta_size,
        commit_user=ids.uuid(),
        writer_version=WRITER_VERSION,
        commit_identifier=BATCH_IDENTIFIER,
        commit_kind=CommitKind.APPEND,
        time_millis=context.clock.now_ms(),
        total_record_count=0,
        delta_record_count=0,
    )
