"""Holds a log store to what it promises: tests to subclass; what readers of a table get from it is in ``following``.

    class TestMine(LogStoreContract):
        @pytest.fixture
        def log_of(self, tmp_path):
            def make(partitions=1):
                log = MyLogStore(tmp_path / "log")
                log.create(partitions=partitions, retention_ms=None, ignore_if_exists=True)
                return log

            return make

Every test has a log of its own. Waiting is bounded: ten polls of a second find what has been published.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing

import numpy as np
import pytest

from tablestore.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from tablestore.log.logstore import LogStore, SlotFenced
from tablestore.log.record import LogRecords, Mark, RawRecords
from tablestore.types.rowkind import RowKind

TABLE = "3f1c"
TIME_MILLIS = 1_700_000_000_000
LogOf = Callable[..., LogStore]


def records(snapshot_id: int, count: int, *, bucket: int = 0, first: int = 0) -> LogRecords:
    """Changes of one snapshot; every fifth has no value, as a tombstone."""
    return LogRecords(
        bucket=bucket,
        snapshot_id=snapshot_id,
        time_millis=TIME_MILLIS + snapshot_id,
        ordinals=np.arange(first, first + count, dtype=np.int64),
        kinds=np.full(count, RowKind.UPDATE_AFTER, dtype=np.int8),
        keys=[f'{{"id":{i}}}'.encode() for i in range(count)],
        values=[None if i % 5 == 4 else f'{{"after":{{"id":{i}}},"op":"c"}}'.encode() for i in range(count)],
    )


def publish(log: LogStore, *batches: LogRecords, slot: int = 0) -> Mapping[int, int]:
    """Open the slot, publish, close; the positions behind."""
    with closing(log.open_slot(slot, (), timeout_s=30)) as opened:
        return opened.publish(batches, table=TABLE)


def read(log: LogStore, offsets: Mapping[int, int], count: int) -> list[RawRecords]:
    """At least so many records from these positions on, unless ten polls find less."""
    found: list[RawRecords] = []
    with closing(log.open_cursor(offsets)) as cursor:
        for _ in range(10):
            found += cursor.poll(1.0, 1000)
            if sum(map(len, found)) >= count:
                break
    return found


def marks(batches: list[RawRecords]) -> list[tuple[int, int]]:
    """(snapshot, ordinal) of each record."""
    return [mark for batch in batches for mark in zip(batch.snapshots.tolist(), batch.ordinals.tolist(), strict=True)]


class LogStoreContract:
    """Publishing, reading on, and who may write."""

    @pytest.fixture
    def log_of(self) -> LogOf:
        """Makes the log of this test: ``log_of(partitions=1)``."""
        raise NotImplementedError("override the fixture `log_of`")

    def test_records_come_back_with_all_that_they_carry(self, log_of: LogOf) -> None:
        log = log_of(2)
        publish(log, records(1, 3), records(1, 5, bucket=1))
        (found,) = read(log, {1: log.bounds([1])[1][0]}, 5)
        sent = records(1, 5, bucket=1)
        assert found.bucket == 1 and found.values == sent.values
        assert found.keys == [key if value is None else None for key, value in zip(sent.keys, sent.values, strict=True)]
        assert found.tables == [TABLE.encode()] * 5 and found.snapshots.tolist() == [1] * 5
        assert found.ordinals.tolist() == sent.ordinals.tolist() and found.kinds.tolist() == sent.kinds.tolist()
        assert found.offsets.tolist() == sorted(set(found.offsets.tolist())) and found.next_offset > found.offsets[-1]

    def test_a_reader_goes_on_where_it_stopped_and_misses_nothing(self, log_of: LogOf) -> None:
        log = log_of()
        publish(log, records(1, 3))
        first = read(log, {0: log.bounds([0])[0][0]}, 3)
        publish(log, records(2, 2))
        assert marks(first) == [(1, 0), (1, 1), (1, 2)]
        assert marks(read(log, {0: first[-1].next_offset}, 2)) == [(2, 0), (2, 1)]

    def test_an_empty_log_has_tails_and_bounds_without_a_record(self, log_of: LogOf) -> None:
        log = log_of(2)
        tail = log.tails([1])[1]
        first, behind = log.bounds([1])[1]
        assert tail.empty and tail.mark is None and tail.table is None
        assert first == behind == tail.next_offset

    def test_the_tail_is_the_last_record_and_publishing_gives_the_position_behind_it(self, log_of: LogOf) -> None:
        log = log_of(2)
        behind = publish(log, records(1, 2), records(7, 4), records(7, 1, bucket=1))
        tails = log.tails([0, 1])
        assert {bucket: tail.mark for bucket, tail in tails.items()} == {0: Mark(7, 3), 1: Mark(7, 0)}
        assert tails[0].table == TABLE.encode() and not tails[0].empty
        publish(log, records(8, 2))
        assert marks(read(log, {0: behind[0]}, 2)) == marks(read(log, {0: tails[0].next_offset}, 2)) == [(8, 0), (8, 1)]

    def test_what_a_fenced_holder_sends_is_not_seen(self, log_of: LogOf) -> None:
        log = log_of()
        publish(log, records(1, 2))
        overtaken = log.open_slot(0, (), timeout_s=30)

        def taken_over_while_sending() -> Iterator[LogRecords]:
            yield records(2, 3)
            publish(log, records(2, 2))

        for batches in (taken_over_while_sending(), [records(3, 1)]):
            with pytest.raises(SlotFenced):
                overtaken.publish(batches, table=TABLE)
        overtaken.close()
        assert marks(read(log, {0: log.bounds([0])[0][0]}, 4)) == [(1, 0), (1, 1), (2, 0), (2, 1)]
        assert log.tails([0])[0].mark == Mark(2, 1)

    def test_a_publish_that_fails_half_way_shows_nothing(self, log_of: LogOf) -> None:
        log = log_of()
        publish(log, records(1, 1))

        def failing() -> Iterator[LogRecords]:
            yield records(2, 3)
            raise ZeroDivisionError("the caller's own")

        slot = log.open_slot(0, (), timeout_s=30)
        with pytest.raises(ZeroDivisionError):
            slot.publish(failing(), table=TABLE)
        slot.close()
        assert log.tails([0])[0].mark == Mark(1, 0)
        publish(log, records(2, 3))
        assert marks(read(log, {0: log.bounds([0])[0][0]}, 4)) == [(1, 0), (2, 0), (2, 1), (2, 2)]

    def test_slots_do_not_fence_each_other(self, log_of: LogOf) -> None:
        log = log_of(2)
        one, other = log.open_slot(0, (), timeout_s=30), log.open_slot(1, (), timeout_s=30)
        one.publish([records(1, 1)], table=TABLE)
        other.publish([records(1, 1, bucket=1)], table=TABLE)
        one.publish([records(2, 1)], table=TABLE)
        one.close()
        other.close()
        assert {bucket: tail.mark for bucket, tail in log.tails([0, 1]).items()} == {0: Mark(2, 0), 1: Mark(1, 0)}

    def test_changes_are_found_by_their_time(self, log_of: LogOf) -> None:
        log = log_of()
        for snapshot_id in (1, 5):
            publish(log, records(snapshot_id, 2))
        for after, mark in ((0, Mark(1, 0)), (1, Mark(1, 0)), (2, Mark(5, 0)), (5, Mark(5, 0)), (6, None)):
            found = log.since(TIME_MILLIS + after, [0], table=TABLE.encode())[0]
            assert found.mark == mark and found.time_millis == (None if mark is None else TIME_MILLIS + mark.snapshot_id)
            assert found.whole
            if mark is not None:
                assert marks(read(log, {0: found.offset}, 1))[0] == (mark.snapshot_id, mark.ordinal)

    def test_a_log_is_made_once_and_dropped_once(self, log_of: LogOf) -> None:
        log = log_of(3)
        first = log.incarnation(partitions=3)
        with pytest.raises(AlreadyExistsError):
            log.create(partitions=3, retention_ms=1000, ignore_if_exists=False)
        assert log.create(partitions=3, retention_ms=1000, ignore_if_exists=True) is False
        with pytest.raises(InvalidInputError):
            log.create(partitions=4, retention_ms=None, ignore_if_exists=True)
        log.drop(ignore_if_not_exists=False)
        with pytest.raises(NotFoundError):
            log.drop(ignore_if_not_exists=False)
        log.drop(ignore_if_not_exists=True)
        with pytest.raises(NotFoundError):
            log.incarnation(partitions=3)
        assert log.create(partitions=3, retention_ms=86_400_000, ignore_if_exists=False) is True
        assert log.incarnation(partitions=3) != first, "a log made again is another one"
